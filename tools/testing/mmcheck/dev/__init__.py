# SPDX-License-Identifier: GPL-2.0
"""Commands for those who work on this repository.

check           its tests: the host side, the style of every file, the suites on real kernels
checked         the verdict of make check, kept with its commit
release         checks a commit, tags it, packs it
look            tests of the report's page in Chromium
htmldocs        Documentation/ as HTML
bench_launcher  how much time the launcher takes
series          the overlay as patches for `git am`
overlay         suites and cases of the overlay
properties      COVERAGE.md: which property is tested where
"""
