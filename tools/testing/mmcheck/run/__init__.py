# SPDX-License-Identifier: GPL-2.0
"""One run.

launcher   the code of tools/testing/kunit/kunit.py
request    the command line of kunit.py
usage      the help of kunit.py
workspace  the kernel and tests of a run, their folders, and the lock on these folders
compare    the same tests on two kernels
prepare    provides the tools, the source and the working copy for a run
launch     one run of the kernel's own kunit.py in one build folder
channel    the channel through which our `make` reports its progress
merge      merges the verdicts of several boots into one file
kselftest  make kselftest
audit      ./mmcheck audit: runs a program in the virtual machine, and then an audit
debug      boots a kernel that stops where a case begins, with gdb attached
walk       random calls from several processes, compared with a model, in virtual machines
selftests  the programs of this project, their cases, and the machine that each needs
session    builds a kernel and selftests, and runs them in virtual machines, or on this machine
ktap       KTAP on standard output
upstream   the kernel's own mm selftests in the virtual machine
selftest_tar  the selftests as a tarball with run_kselftest.sh
bundle     kernel and selftests for a lab
cell       one kernel to test: a cell of the matrix, or a run of `make check`
record     the record of a run: O/runs/ID/run.json
skips      the skips that a cell may have
baseline   the known failures of the user's own tree
closing    the paragraph that ends a run
doctor     what this machine has, and what it lacks
"""
