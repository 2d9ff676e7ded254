# SPDX-License-Identifier: GPL-2.0
"""The help of kunit.py and of `./mmcheck run`. This module imports little, so that the help is quick."""

from ..core.variables import NAMES, listed, statuses

READS = ("KERNEL", "KDIR", "PATCH", "PAGES", "FEATURES", "BASELINE", "JOBS", "O", "INSTALL", "DRY_RUN")
"""The variables that the command reads."""

MEANINGS = {**NAMES, "JOBS": "how many boots at a time, if all suites have run before (the number of CPUs)"}

HELP = f"""\
usage: kunit.py run|config|build|exec|parse [--arch=ARCH, default um] [argument of the kernel's kunit.py ...] [GLOB]

Builds and boots a kernel with the mmcheck suites and prints their verdicts.
It takes all verbs and arguments of the kernel's own kunit.py: see kunit.py run --help.
Relative paths start in the current folder. GLOB selects suites or cases: 'contpte*' or 'contpte*.set_ptes*'.
KUnit takes only one glob, not a list.

variables:
{listed(READS, MEANINGS)}

Instead of KERNEL=7.3 before the command, give KERNEL=7.3 or --kernel 7.3 as an argument; this holds for all of them
except --jobs, which is an option of the kernel's kunit.py.

arguments of this repository:
  --apply FILE  apply a patch, an mbox, or A..B of the git tree KDIR=, to a private copy (like PATCH=)
  --base NAME   run the tests on a second kernel first, and compare: "unpatched", or a commit of the git tree KDIR=.
                The status is 1 if a test fails only on your kernel, or no longer runs
  --no-install  the same as INSTALL=no

example: ./tools/testing/kunit/kunit.py run --arch=arm64 'contpte*'

{statuses()}
"""

LONGER = "The help of ./tools/testing/kunit/kunit.py run also has the arguments of the kernel's own kunit.py."
