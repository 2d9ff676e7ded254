# SPDX-License-Identifier: GPL-2.0
"""Tests of the host side against a small fake kernel tree: no kernel is built, none is booted."""
