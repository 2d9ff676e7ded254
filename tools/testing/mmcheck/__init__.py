# SPDX-License-Identifier: GPL-2.0
"""The host side of mmcheck, in packages. Each package imports only itself and the packages above it in this list.

core      settings, variables, errors, locks, progress, files
kernel    a kernel to build: its source, the overlay in it, compilers, known issues
boot      machines and their consoles
run       one run: KUnit suites by the kernel's own kunit.py, or selftests
mutants   mistakes in the kernel, and which tests notice them
tlb       simulates a TLB that never drops entries by itself, to find missing invalidations
patterns  places in a kernel that look like an earlier bug
study     commands that need many runs: matrix, coverage, benchmarks, the patches of known issues
report    results for readers: summaries, the HTML page, KCIDB
dev       this repository: its checks, its documents, the overlay as a patch series
verb      the description of one command
container runs a command in a container
verbs     the commands: their descriptions, modules, variables and help
completion  the function with which bash completes verbs and options
"""
