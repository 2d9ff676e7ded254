# SPDX-License-Identifier: GPL-2.0
"""The host side of mmcheck, in packages. Each package imports only itself and the packages above it in this list.

core      settings, variables, errors, locks, progress, files
kernel    a kernel to build: its source, the overlay in it, compilers, known issues
boot      machines and their consoles
run       one run: KUnit suites by the kernel's own kunit.py, or selftests
mutants   mistakes in the kernel, and which tests notice them
tlb       a TLB that forgets nothing: invalidations that a kernel lacks
patterns  places in a kernel that look like an earlier bug
study     what takes many runs: matrix, coverage, benchmarks, the patches of known issues
report    what is read afterwards: summaries, the HTML page, KCIDB
dev       this repository: its checks, its documents, the overlay as a patch series
verb      what a command is
container a command in a container
verbs     the commands: what each does, its module, its variables, --help
completion  the functions with which bash completes verbs and options
"""
