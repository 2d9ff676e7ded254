#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Starts the kernel's kunit.py from this repository.

Gets a kernel, adds the overlay to a private working copy of the kernel, and
passes all arguments to the kunit.py of this kernel. See README.md, or run with --help.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 (one line instead of a traceback)
    sys.stderr.write("kunit.py: needs Python 3.11 or newer, this is %s\n" % sys.version.split()[0])
    sys.exit(125)

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from mmcheck.run.launcher import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
