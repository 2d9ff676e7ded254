# SPDX-License-Identifier: GPL-2.0
"""One run.

launcher   what tools/testing/kunit/kunit.py runs: the kernel's own kunit.py on a working copy
kselftest  make kselftest
selftests  the programs of this project, their cases, and the machine that each needs
session    builds a kernel and selftests, and runs them in virtual machines, or here
ktap       KTAP on standard output
upstream   the kernel's own mm selftests in the same machine
bundle     kernel and selftests for a lab
cell       one kernel to test: a cell of the matrix, or a run of `make check`
record     the record of a run: O/runs/ID/run.json
skips      which skips a cell may have
closing    the paragraph that ends a run
doctor     what this machine has, and what it lacks
"""
