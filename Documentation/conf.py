# SPDX-License-Identifier: GPL-2.0
"""Sphinx's settings for `make htmldocs`."""

project = "mmcheck"
root_doc = "mmcheck/index"
exclude_patterns: list[str] = []
html_theme = "alabaster"
html_show_copyright = False
nitpicky = True
