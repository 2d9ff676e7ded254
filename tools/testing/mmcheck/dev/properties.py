# SPDX-License-Identifier: GPL-2.0
"""Writes COVERAGE.md: the properties of the APIs, and the tests of each property.

properties.toml names the properties and the cases. It is divided into sections, subjects and rows. The name of a row is
its number, or several numbers (1, 3-5). A row is a title, or a table with these keys:

    title      the property
    tests      the cases that test the property: suite.case of a KUnit suite, fixture.case of a selftest
    note       more about the tests: what they need, and what they leave out
    elsewhere  other tests of the property, in addition to cases: a build, or a test of mmcheck's Python code
    measured   true if the cases only print a figure, which cannot make them fail
    none       why no test is possible or necessary here
    gap        the part of the property that no test covers yet, and how a test could cover it
    mutants    mutants of the catalogue that break the property

A section without a catalogue has entries instead of rows. An entry has the same keys, but no number. Each case is in
the tests of a row or entry. `python3 -m mmcheck.dev.properties` in tools/testing writes COVERAGE.md.
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..core.settings import PROJECT
from ..mutants import catalogue
from . import overlay

TABLE = Path(__file__).parent / "properties.toml"
DOCUMENT = PROJECT / "COVERAGE.md"

HEAD = """\
# Coverage

<!-- Written by tools/testing/mmcheck/dev/properties.py from properties.toml: change that table. -->

These tables list properties of the APIs, and the cases that test each property. A section with numbered rows is one
catalogue of properties. A case of a KUnit suite is named `suite.case`, and a case of a selftest is named
`fixture.case`.

If a case is skipped on the usual kernel, its row says where the case runs. `check` and `matrix` are
`make check` and `make matrix`. The words after them name a cell: kernel, architecture, page size, flavour.
tools/testing/mmcheck/run/skips.toml lists what each cell may skip. Any other skip fails the cell.

Documentation/mmcheck/functions-7.3.tsv and functions-6.12.tsv list the kernel's functions for ranges of entries and for
large folios. The lists say for each function whether a test notices a mistake in it. `make functions` makes such a list
for any kernel.
"""

STATES = {
    "tested": "it is tested by a case, by a build, or by a test of mmcheck's Python code",
    "with a gap": "partly tested; the row says what is missing",
    "measured": "a benchmark prints a figure, but no test checks it",
    "open": "it could be tested, but no test exists yet",
    "not testable here": "the row says why",
}


@dataclass(frozen=True)
class Row:
    """A property, or several that the same cases test."""

    catalogue: str
    numbers: str
    title: str
    tests: tuple[str, ...] = ()
    note: str = ""
    elsewhere: str = ""
    measured: bool = False
    none: str = ""
    gap: str = ""
    mutants: tuple[str, ...] = ()

    def state(self) -> str:
        """One of STATES."""
        if self.none:
            return "not testable here"
        if self.measured:
            return "measured"
        if not self.tests and not self.elsewhere:
            return "open"
        return "with a gap" if self.gap else "tested"

    def where(self) -> str:
        """The text of the row in the column `tested by`."""
        tests = ", ".join(f"`{test}`" for test in self.tests)
        mutants = ", ".join(f"`{name}`" for name in self.mutants)
        said = [tests, self.elsewhere, self.note, mutants and f"mutants: {mutants}"]
        said += [self.none and f"not testable here: {self.none}", self.gap and f"**gap**: {self.gap}"]
        return ("measured: " if self.measured else "") + "; ".join(part for part in said if part)

    def faults(self) -> list[str]:
        """Where the keys of the row contradict each other."""
        name = f"{self.catalogue} {self.numbers}".strip() or self.title
        found = [f"{name} names {test} twice" for test in sorted({*self.tests}) if self.tests.count(test) > 1]
        if not self.tests and not (self.elsewhere or self.none or self.gap):
            found.append(f"{name} has no tests; add tests, elsewhere, none or gap")
        if self.tests and self.none:
            found.append(f'{name} says "not testable", but names {self.tests[0]}')
        if self.measured and not self.tests:
            found.append(f'{name} says "measured", but has no tests')
        return found


@dataclass(frozen=True)
class Section:
    """A catalogue by subject. A section without a name has entries that are in no catalogue."""

    title: str
    name: str
    last: int
    intro: str
    subjects: Mapping[str, Sequence[Row]]

    def rows(self) -> list[Row]:
        """All rows."""
        return [row for rows in self.subjects.values() for row in rows]


def numbers(text: str) -> set[int]:
    """The numbers in a text such as "1, 3-5"."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _row(name: str, key: str, said: Any) -> Row:
    entry = {"title": said} if isinstance(said, str) else dict(said)
    unknown = entry.keys() - {field.name for field in fields(Row)}
    assert not unknown, f"{name} {key}: unknown keys: {', '.join(unknown)}"
    tests, mutants = (tuple(entry.pop(names, ())) for names in ("tests", "mutants"))
    return Row(name, key, tests=tests, mutants=mutants, **entry)


def load() -> list[Section]:
    """All sections, in order."""
    found = []
    for entry in tomllib.loads(TABLE.read_text())["section"]:
        name = entry.get("name", "")
        subjects = {
            subject: [_row(name, key, said) for key, said in rows.items()]
            for subject, rows in entry.get("subject", {}).items()
        }
        entries = [_row("", "", said) for said in entry.get("entry", ())]
        if entries:
            subjects[""] = entries
        found.append(Section(entry["title"], name, entry.get("last", 0), entry.get("intro", ""), subjects))
    return found


def faults(sections: Sequence[Section]) -> list[str]:
    """Where rows, cases and mutants contradict each other."""
    found: list[str] = []
    cases = overlay.cases()
    mutants = {mutant.name: mutant.survives or mutant.equivalent for mutant in catalogue.load(catalogue.FOLDER)}
    named = {test for section in sections for row in section.rows() for test in row.tests}
    advice = "add it to the tests of a row of properties.toml"
    found += [f"{case}: no row names it; {advice}" for case in sorted(cases - named)]
    for section in sections:
        seen: list[int] = []
        for row in section.rows():
            seen += sorted(numbers(row.numbers))
            found += row.faults()
            said = {*row.tests, *re.findall(r"`(\w+\.\w+)`", row.where())}
            found += [f"{row.title}: no such case: {test}" for test in sorted(said - cases)]
            found += [f"{row.title}: no such mutant: {name}" for name in row.mutants if name not in mutants]
            if not (row.gap or row.none):
                missed = [name for name in row.mutants if mutants.get(name)]
                advice = "add a test, or list the mutant as a gap in properties.toml"
                found += [f"{row.title}: no test notices mutant {name}; {advice}" for name in missed]
        wanted = range(1, section.last + 1)
        found += [f"{section.name} {n} is in the table {seen.count(n)} times" for n in wanted if seen.count(n) != 1]
        found += [f"{section.name} {n}: no such row" for n in sorted({*seen} - {*wanted})]
    return found


def summary(sections: Sequence[Section]) -> str:
    """For each catalogue, the number of rows in each state."""
    lines = [f"| catalogue | rows | {' | '.join(STATES)} |", "|---|---|" + "---|" * len(STATES)]
    total = dict.fromkeys(STATES, 0)
    for section in sections:
        if not section.name:
            continue
        count = dict.fromkeys(STATES, 0)
        for row in section.rows():
            count[row.state()] += len(numbers(row.numbers))
        total = {state: total[state] + count[state] for state in STATES}
        cells = " | ".join(str(count[state]) for state in STATES)
        lines.append(f"| {section.title} | {section.last} | {cells} |")
    lines.append(f"| all | {sum(total.values())} | {' | '.join(str(number) for number in total.values())} |")
    return "\n".join(lines)


def gaps(sections: Sequence[Section]) -> str:
    """The rows with a gap, and how a new test could close each gap."""
    rows = [row for section in sections for row in section.rows() if row.gap]
    return "\n".join(
        f"- **{f'{row.catalogue} {row.numbers}'.strip() or 'bug'}** ({row.title}): {row.gap}" for row in rows
    )


def document(sections: Sequence[Section]) -> str:
    """The text of COVERAGE.md."""
    states = "\n".join(f"- **{state}**: {meaning}" for state, meaning in STATES.items())
    parts = [HEAD, f"## Summary\n\n{summary(sections)}\n\n{states}\n"]
    todo = (
        "No test covers these properties completely. "
        "Each line says how a test could cover the property, or why the present test does not:"
    )
    parts.append(f"## Good first gaps\n\n{todo}\n\n{gaps(sections)}\n")
    for section in sections:
        parts.append(f"## {section.title}\n" + (f"\n{section.intro.strip()}\n" if section.intro else ""))
        for subject, rows in section.subjects.items():
            numbered = "| row " if section.name else ""
            lines = [f"### {subject}\n"] if subject else []
            lines += [f"{numbered}| property | tested by |", "|---" * (2 + bool(numbered)) + "|"]
            lines += [f"{f'| {row.numbers} ' if numbered else ''}| {row.title} | {row.where()} |" for row in rows]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> int:
    """Write COVERAGE.md, and print the faults of the table."""
    sections = load()
    found = faults(sections)
    DOCUMENT.write_text(document(sections))
    print("".join(f"{fault}\n" for fault in found), end="", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
