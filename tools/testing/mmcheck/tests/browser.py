# SPDX-License-Identifier: GPL-2.0
"""Runs Debian's Chromium for tests of the report, and makes the pictures of the report for the documents.

`make report-pictures` makes the pictures from the results of seeded.py.
"""

import contextlib
import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from mmcheck.core.settings import PROJECT
from mmcheck.tests import seeded

CHROMIUM = "chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
WIDTHS = (390, 900, 1600)
PICTURES = PROJECT / "Documentation/mmcheck"
HEIGHT = 1100
RELEASE = "v2026.11"
"""The name of this repository in the pictures. A name with the commit would change the pictures with each commit."""


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    program = shutil.which(CHROMIUM)
    assert program, "Chromium is missing: sudo apt-get install chromium"
    # Import playwright without an import statement, because it is not installed for mypy.
    with importlib.import_module("playwright.sync_api").sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield chromium
        finally:
            chromium.close()


def show(chromium: Any, page: Path, width: int, dark: bool = False) -> Any:
    """Open the page in a window of this width."""
    scheme = "dark" if dark else "light"
    shown = chromium.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce")
    shown.goto(page.as_uri())
    return shown


def pictures(chromium: Any, target: Path, widths: tuple[int, ...] = WIDTHS) -> list[Path]:
    """Make the pictures report-390.png, report-900.png, report-1600.png and report-dark.png. Returns their paths."""
    made = []
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as name:
        with mock.patch("mmcheck.kernel.identity.revision", lambda: RELEASE):
            page = seeded.page(Path(name), failing=True, missing=True)
        for width in widths:
            made.append(target / f"report-{width}.png")
            show(chromium, page, width).screenshot(path=made[-1])
        made.append(target / "report-dark.png")
        show(chromium, page, 900, dark=True).screenshot(path=made[-1])
    return made


if __name__ == "__main__":
    with browser() as driver:
        for picture in pictures(driver, PICTURES):
            print(picture)
    sys.exit(0)
