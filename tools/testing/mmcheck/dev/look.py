# SPDX-License-Identifier: GPL-2.0
"""make check-report: tests the page of make report in Chromium. make report-pictures: makes pictures for documents.

The tests use the page as a user does: at three widths, with light and dark colours, and by keyboard. axe-core checks
accessibility. The tests need Chromium and its driver, which are installed on first use. No other check needs them.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..core import progress
from ..core.settings import PROJECT, out_of
from ..kernel import toolchain
from . import check

TESTS = Path(__file__).parents[1] / "tests"
WANTED = TESTS / "browser.txt"
CHROMIUM = "chromium"


def programs(out: Path) -> Path:
    """The folder of the programs that tests/browser.txt lists. They are installed on first use."""
    toolchain.provide([toolchain.ENSUREPIP, CHROMIUM])
    return check.tools(out, WANTED, "venv-browser")


def run(environ: Mapping[str, str]) -> int:
    """Run the tests. Returns the exit status."""
    out = out_of(environ)
    tally = check.Tally()
    check.pytest(tally, programs(out), out / "check/report.xml", TESTS / "test_browser.py")
    tally.close()
    return 1 if tally.failures else 0


def run_pictures(environ: Mapping[str, str]) -> int:
    """Run `make report-pictures`. Returns the exit status."""
    python = programs(out_of(environ)) / "python"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "tools/testing"), "PYTHONDONTWRITEBYTECODE": "1"}
    status = subprocess.run([python, "-m", "mmcheck.tests.browser"], env=environment, cwd=PROJECT).returncode
    if not status:
        progress.say("look at the pictures before you commit them")
    return 1 if status else 0
