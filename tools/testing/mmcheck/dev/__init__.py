# SPDX-License-Identifier: GPL-2.0
"""Commands for developers of this repository.

check           runs the tests of the repository: the host side, the style of every file, the suites on real kernels
checked         stores the verdict of make check with its commit
release         checks a commit, tags it, and packs it
look            tests the page of make report in Chromium
htmldocs        writes Documentation/ as HTML
bench_launcher  measures the time that the launcher takes
series          writes the overlay as patches for `git am`
overlay         finds the cases of the suites and selftests
properties      writes COVERAGE.md: the tests of each property
"""
