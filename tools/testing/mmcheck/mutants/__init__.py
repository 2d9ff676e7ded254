# SPDX-License-Identifier: GPL-2.0
"""Mistakes that are put into a kernel. The *.toml in this folder are the catalogue.

main          make mutants
catalogue     the mutants that are written by hand, and patches from elsewhere
rules         mutants that rules generate
sample        a random sample of these, and what became of it
schemata      puts many mutants into one kernel
reach         which cases run which functions
mutated       a kernel with mutants, and how it is built
judge         boots it for each mutant, and sees which suite notices
guest_judge   the same for selftests
killmatrix    which cases notice each mutant, and what that says about the tests
suite_matrix  the rows of the kill matrix of the KUnit suites
guest_matrix  the same for selftests
matrix_run    make mutants MATRIX=1: fills the kill matrix
"""
