# SPDX-License-Identifier: GPL-2.0
"""Documents say what is there: every case stands in COVERAGE.md, and nothing else does."""

import re
from pathlib import Path

from mmcheck.settings import PROJECT


def cases() -> set[str]:
    """`suite.case` of every suite in the tree."""
    found = set()
    for path in [*PROJECT.glob("mm/tests/*_kunit.c"), *PROJECT.glob("arch/*/mm/tests/*_kunit.c")]:
        text = path.read_text()
        suite = re.search(r'^\t\.name = "(\w+)"', text, re.MULTILINE)
        assert suite, path
        found |= {f"{suite.group(1)}.{case}" for case in re.findall(r"KUNIT_CASE\w*\((\w+)", text)}
    return found


def test_the_coverage_table_names_each_case_and_no_other() -> None:
    table = set(re.findall(r"`(\w+\.\w+)`", (PROJECT / "COVERAGE.md").read_text()))
    assert table == cases()


def test_suites_stay_readable() -> None:
    for path in [*PROJECT.glob("mm/tests/*.c"), *PROJECT.glob("arch/*/mm/tests/*.c")]:
        assert len(path.read_text().splitlines()) < 600, path


def test_paths_in_the_readme_exist() -> None:
    readme = (PROJECT / "README.md").read_text()
    named = set(re.findall(r"^\| `([\w./]+)` \|", readme, re.MULTILINE))
    assert len(named) > 5
    for name in named:
        assert Path(PROJECT / name).exists(), name


def test_known_issues_are_those_that_tests_name() -> None:
    listed = set(re.findall(r"^## (\d+)\.", (PROJECT / "KNOWN_ISSUES.md").read_text(), re.MULTILINE))
    sources = [*PROJECT.glob("mm/tests/*.c"), *PROJECT.glob("arch/*/mm/tests/*.c")]
    named = {n for p in sources for n in re.findall(r"(?:known|stale)_issue\(test,\s*(\d+)", p.read_text())}
    assert named == listed
