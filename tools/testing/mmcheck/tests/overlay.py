# SPDX-License-Identifier: GPL-2.0
"""What there is of suites and cases in the overlay, for the tests of documents."""

import re
from pathlib import Path

from mmcheck.settings import PROJECT


def files(suffix: str) -> list[Path]:
    """What there is of suites in the tree, by the end of its name."""
    return [path for folder in ("mm", "arch/*/mm", "lib/*") for path in PROJECT.glob(f"{folder}/tests/*{suffix}")]


def suites() -> dict[str, str]:
    """The text of each suite in the tree, by its name."""
    found = {}
    for path in files("_kunit.c"):
        text = path.read_text()
        suite = re.search(r'^\t\.name = "(\w+)"', text, re.MULTILINE)
        assert suite, path
        found[suite.group(1)] = text
    return found


def cases() -> set[str]:
    """`suite.case` of every suite in the tree, and `fixture.case` of every selftest."""
    ours = {f"{suite}.{case}" for suite, text in suites().items() for case in re.findall(r"KUNIT_CASE\w*\((\w+)", text)}
    return ours | set(selftests())


def selftests() -> dict[str, str]:
    """By `fixture.case`, the comment above it."""
    found = {}
    for path in PROJECT.glob("tools/testing/selftests/mm/*.c"):
        text = path.read_text()
        for match in re.finditer(r"^TEST_F\w*\((\w+), (\w+)", text, re.MULTILINE):
            before = text[: match.start()].rstrip()
            assert before.endswith("*/"), f"{match[2]} has no comment"
            found[f"{match[1]}.{match[2]}"] = before[before.rindex("/*") :]
    return found
