# SPDX-License-Identifier: GPL-2.0
"""`python3 -m mmcheck.patterns`."""

import sys

from . import start

sys.exit(start(sys.argv[1:]))
