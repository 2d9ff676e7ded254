# SPDX-License-Identifier: GPL-2.0
"""What takes many runs.

child          one command of this repository as a separate process
matrix         kernels x architectures x page sizes x flavours
selection      which cells and suites to run: all, or those that a change can affect
bisect         the first commit that makes a test fail
radar          what a series does to the tests, and what the tests say of it
functions      which functions of a kernel the tests prove
coverage       lines and branches that the suites run
bench          what batches, contiguous blocks and forced write faults save
bench_numbers  numbers of benchmarks, as tables, plots and KTAP
bench_compare  two results of benchmarks
plot           plots as SVG
patched        make known-issues: does each patch fix its issue?
proof          whether verdicts without a patch and with it prove that
sendable       make patches: the patches as mails, each checked
"""
