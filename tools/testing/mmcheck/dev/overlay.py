# SPDX-License-Identifier: GPL-2.0
"""Finds the suites and cases of the overlay, and the rows of catalogues that their comments cite."""

import re

from ..core.settings import PROJECT
from ..kernel import suites


def cases() -> set[str]:
    """All cases: `suite.case` of every KUnit suite in the overlay, and `fixture.case` of every selftest."""
    return {f"{one.name}.{case}" for one in suites.suites() for case in one.cases} | set(selftests())


def selftests() -> dict[str, str]:
    """The comment above each selftest, by `fixture.case`."""
    found = {}
    for path in PROJECT.glob("tools/testing/selftests/mm/*.c"):
        text = path.read_text()
        for match in re.finditer(r"^TEST_F\w*\((\w+), (\w+)", text, re.MULTILINE):
            before = text[: match.start()].rstrip()
            assert before.endswith("*/"), f"{match[2]} has no comment"
            found[f"{match[1]}.{match[2]}"] = before[before.rindex("/*") :]
    return found


def numbers(text: str) -> set[int]:
    """The numbers in a text such as "1, 3-5"."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def cited(comment: str, catalogue: str) -> set[int]:
    """The rows of a catalogue that a comment cites: [contpte 1, 3-5]. After that, [6] cites the same catalogue."""
    found: set[int] = set()
    last = "contpte"
    for name, rows in re.findall(r"\[([a-z\s*]*)((?:\d+[-,\s*]*)+)\]", comment):
        last = " ".join(name.replace("*", " ").split()) or last
        if last == catalogue:
            found |= numbers(rows)
    return found


def comment_above(text: str, case: str) -> str:
    """The last comment above a KUnit case."""
    found = re.search(rf"^static void (?:__init )?{case}\(struct kunit ", text, re.MULTILINE)
    assert found, f"{case} is no function"
    before = text[: found.start()]
    return before[before.rindex("/*") :].partition("*/")[0]


def citations(catalogue: str) -> dict[int, set[str]]:
    """For each row of a catalogue, the cases that cite it in their comment."""
    comments = selftests()
    for one in suites.suites():
        for case in one.cases:
            comments[f"{one.name}.{case}"] = comment_above(one.text, case)
    found: dict[int, set[str]] = {}
    for case, comment in comments.items():
        for row in cited(comment, catalogue):
            found.setdefault(row, set()).add(case)
    return found
