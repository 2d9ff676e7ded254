# SPDX-License-Identifier: GPL-2.0
"""Tests of the host side with a small fake kernel tree. They build and boot no kernel."""
