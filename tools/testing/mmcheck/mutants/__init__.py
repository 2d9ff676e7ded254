# SPDX-License-Identifier: GPL-2.0
"""Mistakes that are put into a kernel. The *.toml in this folder are the catalogue.

main          make mutants
catalogue     the mutants that are written by hand, and patches from elsewhere
generated     mutants that rules generate
schemata      puts many mutants into one kernel
reach         which cases run which functions
judge         builds the kernel, boots it for each mutant, and sees which suite notices
guest_judge   the same for selftests
killmatrix    every case that notices a mutant
guest_matrix  the same for selftests
"""
