# SPDX-License-Identifier: GPL-2.0
"""The overlay as a patch series.

main         make series
makefile     Makefiles: what they list, and what is left of them without some of the sources
kconfig      Kconfig files, entry by entry
overlay      the files of the overlay, and how they depend on one another
steps        which patch adds which sources
message      commit messages, from the comments in the sources
maintainers  our entry in MAINTAINERS
core         make series CORE=1: the sources of the shorter series
resolve      sources for one kernel tree alone
cover        the cover letter
"""
