# SPDX-License-Identifier: GPL-2.0
"""Commands that need many runs of the tests.

child          one command of this repository as a separate process
matrix         kernels x architectures x page sizes x flavours
selection      which cells and suites to run: all, or those that a change can affect
bisect         the first commit that makes a test fail
radar          how a series changes the tests, and whether they pass with it
functions      the functions of a kernel in which the tests notice mistakes
coverage       lines and branches that the suites run
bench          the work that batches, contiguous blocks and forced write faults save
bench_numbers  numbers of benchmarks, as tables, plots and KTAP
bench_compare  compares two results of benchmarks
plot           plots as SVG
patched        make known-issues: does each patch fix its issue?
proof          judges the verdicts without the patches and with them
sendable       make patches: writes the patches as mails, and checks each mail
"""
