# SPDX-License-Identifier: GPL-2.0
"""Documents say what is there: every case stands in COVERAGE.md, and nothing else does."""

import re
from pathlib import Path

from mmcheck import known_issues
from mmcheck.settings import PROJECT

from .overlay import cases, files, selftests, suites

CONTPTE_ROWS = 253


def numbers(text: str) -> set[int]:
    """The rows that "1, 3-5" means."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def cited(comment: str, catalogue: str) -> set[int]:
    """The rows of a catalogue that a comment cites: [contpte 1, 3-5], then [6]."""
    found: set[int] = set()
    last = "contpte"
    for name, rows in re.findall(r"\[([a-z\s*]*)((?:\d+[-,\s*]*)+)\]", comment):
        last = name.strip("* \t\n") or last
        if last == catalogue:
            found |= numbers(rows)
    return found


def citations(catalogue: str) -> dict[int, set[str]]:
    """By row of a catalogue, the cases whose comment cites it."""
    found: dict[int, set[str]] = {}
    for suite, text in suites().items():
        for case in re.findall(r"KUNIT_CASE\w*\((\w+)", text) if suite != "linear_map" else ():
            before = text.partition(f"static void {case}(struct kunit ")[0]
            for row in cited(before[before.rindex("/*") :], catalogue):
                found.setdefault(row, set()).add(f"{suite}.{case}")
    for case, comment in selftests().items():
        for row in cited(comment, catalogue):
            found.setdefault(row, set()).add(case)
    return found


def section(title: str) -> str:
    """The text of one section of COVERAGE.md."""
    return (PROJECT / "COVERAGE.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def table(title: str) -> dict[int, str]:
    """The rows of one table of COVERAGE.md, by number: the column that says where they are tested."""
    rows = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", section(title), re.MULTILINE)
    assert len(rows) == len({number for number, _ in rows})
    return {int(number): where for number, where in rows}


def test_the_coverage_table_names_each_case_and_no_other() -> None:
    named = set(re.findall(r"`(\w+\.\w+)`", (PROJECT / "COVERAGE.md").read_text()))
    assert named == cases()


def test_each_row_of_the_contpte_catalogue_stands_in_the_table_once() -> None:
    assert list(table("contpte and batches")) == list(range(1, CONTPTE_ROWS + 1))


def test_the_contpte_table_says_what_the_cases_cite() -> None:
    for row, where in table("contpte and batches").items():
        assert set(re.findall(r"`(\w+\.\w+)`", where)) == citations("contpte").get(row, set()), row
        assert where


def test_the_table_of_mapped_folios_says_what_the_cases_cite() -> None:
    text = section("Mapped shared or exclusively")
    found = citations("mapped")
    listed: set[int] = set()
    for rows, where in re.findall(r"^\| ([\d, -]+) \|.*\| (.*) \|$", text, re.MULTILINE):
        cases = {case for row in numbers(rows) for case in found.get(row, set())}
        assert set(re.findall(r"`(\w+\.\w+)`", where)) == cases, rows
        assert not listed & numbers(rows), rows
        listed |= numbers(rows)
    assert listed == set(range(1, 64))


def test_suites_stay_readable() -> None:
    for path in [*files(".c"), *PROJECT.glob("tools/testing/selftests/mm/*.c")]:
        assert len(path.read_text().splitlines()) < 600, path


def test_paths_in_the_readme_exist() -> None:
    readme = (PROJECT / "README.md").read_text()
    named = set(re.findall(r"^\| `([\w./]+)` \|", readme, re.MULTILINE))
    assert len(named) > 5
    for name in named:
        assert Path(PROJECT / name).exists(), name


def test_known_issues_are_those_that_tests_name() -> None:
    listed = set(re.findall(r"^## (\d+)\.", (PROJECT / "KNOWN_ISSUES.md").read_text(), re.MULTILINE))
    assert listed == {str(issue.number) for issue in known_issues.load()}
    for path in [*files("_kunit.c"), *PROJECT.glob("tools/testing/selftests/mm/*.c")]:
        text = path.read_text()
        met, stale = (
            set(re.findall(pattern, text))
            for pattern in (
                r"(?:_known_issue\(test,|\bKNOWN_ISSUE\()\s*(\d+)",
                r"(?:_stale_issue\(test,|\bSTALE_ISSUE\()\s*(\d+)",
            )
        )
        assert met == stale, path
        assert met <= listed
    named = {(str(issue.number), test) for issue in known_issues.load() for test in issue.tests}
    assert named == {
        (number, name) for name, body in bodies().items() for number in re.findall(r"KNOWN_ISSUE\((\d+)", body)
    }


def bodies() -> dict[str, str]:
    """The text of each case, by `suite.case`, with known issues written alike."""
    found: dict[str, str] = {}
    for suite, text in suites().items():
        for case in re.findall(r"KUNIT_CASE\w*\((\w+)", text):
            for part in text.split(f"static void {case}(struct kunit ")[1:]:
                found[f"{suite}.{case}"] = found.get(f"{suite}.{case}", "") + part.partition("\n}\n")[0]
    for path in PROJECT.glob("tools/testing/selftests/mm/*.c"):
        for match in re.finditer(r"^TEST_F\w*\((\w+), (\w+)", path.read_text(), re.MULTILINE):
            found[f"{match[1]}.{match[2]}"] = path.read_text()[match.start() :].partition("\n}\n")[0]
    return {name: re.sub(r"pgtable_kunit_known_issue\(test,\s*", "KNOWN_ISSUE(", body) for name, body in found.items()}


def test_each_patch_is_of_a_known_issue() -> None:
    listed = {name for issue in known_issues.load() for name in issue.patch}
    assert listed == {f"patches/{patch.name}" for patch in PROJECT.glob("patches/*")}
    assert all((PROJECT / name).read_text().startswith("Subject: [PATCH] ") for name in listed)
