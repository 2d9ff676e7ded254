# SPDX-License-Identifier: GPL-2.0
"""Finds the cases of the suites and selftests in the overlay."""

import re

from ..core.settings import PROJECT
from ..kernel import suites


def cases() -> set[str]:
    """All cases: `suite.case` of every KUnit suite in the overlay, and `fixture.case` of every selftest."""
    return {f"{one.name}.{case}" for one in suites.suites() for case in one.cases} | selftests()


def selftests() -> set[str]:
    """`fixture.case` of every selftest."""
    found = set()
    for path in PROJECT.glob("tools/testing/selftests/mm/*.c"):
        text = path.read_text()
        for match in re.finditer(r"^TEST_F\w*\((\w+), (\w+)", text, re.MULTILINE):
            assert text[: match.start()].rstrip().endswith("*/"), f"{match[2]} has no comment"
            found.add(f"{match[1]}.{match[2]}")
    return found
