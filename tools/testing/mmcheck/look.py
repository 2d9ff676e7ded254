# SPDX-License-Identifier: GPL-2.0
"""make check-report: the page of make report in Chromium. make report-pictures: its pictures in the documents.

The tests are of the page as a user has it: at three widths, light and dark, by keyboard, with axe-core, the checker of
accessibility. They need Chromium and a driver for it, which other checks do without; both are installed on first use.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import check, command, machine, progress
from .settings import PROJECT, out_of

TESTS = Path(__file__).parent / "tests"
WANTED = TESTS / "browser.txt"
CHROMIUM = "chromium"


def programs(out: Path) -> Path:
    """A folder with the programs of tests/browser.txt, made on first use."""
    machine.provide([machine.ENSUREPIP, CHROMIUM])
    return check.tools(out, WANTED, "venv-browser")


def tests(out: Path) -> int:
    """Run the tests; returns the exit status."""
    tally = check.Tally()
    check.pytest(tally, programs(out), out / "check/report.xml", TESTS / "test_browser.py")
    tally.close()
    return 1 if tally.failures else 0


def pictures(out: Path) -> int:
    """Make the pictures; returns the exit status."""
    python = programs(out) / "python"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "tools/testing"), "PYTHONDONTWRITEBYTECODE": "1"}
    status = subprocess.run([python, "-m", "mmcheck.tests.browser"], env=environment, cwd=PROJECT).returncode
    if not status:
        progress.say("look at the pictures before you commit them")
    return 1 if status else 0


VERBS = {"check-report": tests, "report-pictures": pictures}


def main(verb: str, environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run(verb, lambda given: VERBS[verb](out_of(given)), environ)


def start(arguments: Sequence[str]) -> int:
    """The command with its arguments."""
    return command.start("look", __doc__, lambda verb: main(verb, os.environ), arguments, list(VERBS))


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
