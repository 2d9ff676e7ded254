# SPDX-License-Identifier: GPL-2.0
"""One run.

launcher   what tools/testing/kunit/kunit.py runs
request    what the command line of kunit.py asks for
workspace  what is built and run, the folders for it, and the lock on these
compare    the same tests on two kernels
prepare    provides what a run needs: tools, source, working copy
launch     one run of the kernel's own kunit.py in one build folder
channel    the channel through which our `make` reports its progress
merge      one file of the verdicts of several boots
kselftest  make kselftest
audit      ./mmcheck audit: a program in the virtual machine, with an audit after it
debug      a kernel that stops where a case begins, with gdb attached
walk       random lives of address spaces, in virtual machines
selftests  the programs of this project, their cases, and the machine that each needs
session    builds a kernel and selftests, and runs them in virtual machines, or here
ktap       KTAP on standard output
upstream   the kernel's own mm selftests in the same machine
selftest_tar  the selftests as a tarball with run_kselftest.sh
bundle     kernel and selftests for a lab
cell       one kernel to test: a cell of the matrix, or a run of `make check`
record     the record of a run: O/runs/ID/run.json
skips      which skips a cell may have
baseline   the known failures of the user's own tree
closing    the paragraph that ends a run
doctor     what this machine has, and what it lacks
"""
