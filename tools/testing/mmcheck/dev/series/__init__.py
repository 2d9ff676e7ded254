# SPDX-License-Identifier: GPL-2.0
"""The overlay as a patch series.

main         make series
makefile     the Makefiles: the sources that they list, and their texts for only some of the sources
kconfig      Kconfig files, entry by entry
overlay      the files of the overlay, and how they depend on one another
steps        the patches, and the sources that each patch adds
message      commit messages, from the comments in the sources
maintainers  the entry of the series in MAINTAINERS
core         make series CORE=1: the sources of the shorter series
resolve      sources that fit only one kernel tree
cover        the cover letter
"""
