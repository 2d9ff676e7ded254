# SPDX-License-Identifier: GPL-2.0
"""Writes COVERAGE.md: the properties of the APIs, and the tests of each property.

The cases that test a property cite it in their comments: [contpte 67]. properties.toml has the rest. It is divided into
sections, subjects and rows. A row is a title, or a table with these keys:

    title      the property
    note       more about the tests: what they need, and what they leave out
    elsewhere  other tests of the property, in addition to cases: a build, or a test of mmcheck's Python code
    measured   true if the cases only print a figure, which cannot make them fail
    none       why no test is possible or necessary here
    gap        the part of the property that no test covers yet, and how a test could cover it
    mutants    mutants of the catalogue that break the property

A section without a catalogue has entries instead of rows, and each entry names its tests. `python3 -m
mmcheck.dev.properties` in tools/testing writes COVERAGE.md.
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

<!-- Written by tools/testing/mmcheck/dev/properties.py from properties.toml and the tests' comments: change those. -->

These tables list properties of the APIs, and the cases that test each property. A section with numbered rows is one
catalogue of properties. The comment of a case cites the rows that the case tests: `[contpte 67]`, `[linear map 18]`. A
case of a KUnit suite is named `suite.case`, and a case of a selftest is named `fixture.case`.

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
    tests: tuple[str, ...]
    title: str
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

    def faults(self, cited: Mapping[int, set[str]]) -> list[str]:
        """The faults of the row. For each row of its catalogue, `cited` has the cases that cite the row."""
        name = f"{self.catalogue} {self.numbers}"
        found = []
        if not self.tests and not (self.elsewhere or self.none or self.gap):
            found.append(f'{name}: no case cites it, but the table says "tested"')
        if self.tests and self.none:
            found.append(f'{name}: {self.tests[0]} cites it, but the table says "not testable"')
        if self.measured and not self.tests:
            found.append(f'{name}: no case cites it, but the table says "measured"')
        if self.tests and not self.elsewhere:
            found += [f"{name}: no case cites row {n}" for n in sorted(overlay.numbers(self.numbers) - cited.keys())]
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


def _row(name: str, numbers: str, said: Any, cited: Mapping[int, set[str]]) -> Row:
    entry = {"title": said} if isinstance(said, str) else dict(said)
    tests = entry.pop("tests", None)
    if tests is None:
        tests = sorted({case for number in overlay.numbers(numbers) for case in cited.get(number, ())})
    unknown = entry.keys() - {field.name for field in fields(Row)}
    assert not unknown, f"{name} {numbers}: unknown keys: {', '.join(unknown)}"
    return Row(name, numbers, tuple(tests), mutants=tuple(entry.pop("mutants", ())), **entry)


def load() -> list[Section]:
    """All sections, in order."""
    found = []
    for entry in tomllib.loads(TABLE.read_text())["section"]:
        name = entry.get("name", "")
        cited = overlay.citations(name) if name else {}
        subjects = {
            subject: [_row(name, numbers, said, cited) for numbers, said in rows.items()]
            for subject, rows in entry.get("subject", {}).items()
        }
        entries = [_row("", "", said, {}) for said in entry.get("entry", ())]
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
    found += [f"{case}: no row names it" for case in sorted(cases - named)]
    for section in sections:
        cited = overlay.citations(section.name) if section.name else {}
        seen: list[int] = []
        for row in section.rows():
            seen += sorted(overlay.numbers(row.numbers))
            found += row.faults(cited)
            said = {*row.tests, *re.findall(r"`(\w+\.\w+)`", row.where())}
            found += [f"{row.title}: no such case: {test}" for test in sorted(said - cases)]
            found += [f"{row.title}: no such mutant: {name}" for name in row.mutants if name not in mutants]
            if not (row.gap or row.none):
                missed = [name for name in row.mutants if mutants.get(name)]
                advice = "add a test, or list the mutant as a gap in properties.toml"
                found += [f"{row.title}: no test notices mutant {name}; {advice}" for name in missed]
        wanted = range(1, section.last + 1)
        found += [f"{section.name} {n} is in the table {seen.count(n)} times" for n in wanted if seen.count(n) != 1]
        found += [f"{section.name} {n}: no such row" for n in sorted({*seen, *cited} - set(wanted))]
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
            count[row.state()] += len(overlay.numbers(row.numbers))
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
