# SPDX-License-Identifier: GPL-2.0
"""Mutants: small mistakes that are put into a kernel. The *.toml files in this folder are the catalogue of mutants.

main          make mutants
catalogue     mutants that are written by hand, and patches from a folder
rules         generates mutants by rules
sample        a random sample of generated mutants, and their verdicts
schemata      puts many mutants into one kernel
reach         finds the functions that each case runs
mutated       builds a kernel with mutants
judge         boots a kernel for each mutant, and finds a suite that notices the mutant
guest_judge   boots a kernel for each mutant, and finds a selftest that notices the mutant
killmatrix    the kill matrix: all cases that notice each mutant
suite_matrix  finds the rows of the kill matrix of the KUnit suites
guest_matrix  finds the rows of the kill matrix of the selftests
matrix_run    make mutants MATRIX=1: fills the kill matrix
"""
