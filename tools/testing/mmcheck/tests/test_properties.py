# SPDX-License-Identifier: GPL-2.0
"""COVERAGE.md, properties.toml, the cases and the mutants agree. A contradiction between them is reported."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.dev import overlay, properties
from mmcheck.dev.properties import Row, Section
from mmcheck.kernel import graft
from mmcheck.mutants import catalogue
from mmcheck.mutants.catalogue import Mutant


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the cases by one case, and the mutants by one that no test notices."""
    monkeypatch.setattr(overlay, "cases", lambda: {"suite.case"})
    unseen = Mutant("unseen", "", (), lambda _: None, survives="why")
    monkeypatch.setattr(catalogue, "load", lambda _: [unseen])


def section(*rows: Row, last: int = 2) -> Sequence[Section]:
    """One catalogue with one subject."""
    return [Section("Things", "thing", last, "", {"Subject": rows})]


def row(numbers: str, tests: Sequence[str] = (), **said: Any) -> Row:
    """A row of this catalogue."""
    return Row("thing", numbers, "something", tuple(tests), **said)


def test_coverage_md_is_up_to_date() -> None:
    assert properties.DOCUMENT.read_text() == properties.document(properties.load())


def test_rows_cases_and_mutants_are_in_step() -> None:
    assert properties.faults(properties.load()) == []


def test_comments_of_c_files_have_no_tags() -> None:
    """The numbers of rows are in the table alone, because the readers of a series of patches do not have the table."""
    names = "|".join(section.name for section in properties.load() if section.name)
    tag = re.compile(rf"\[(?:{names}) \d|\w \[\d[\d, -]*\][,.]")
    files = [name for name in graft.overlay_files() if name.endswith((".c", ".h"))]
    texts = {name: " ".join(re.sub(r"\n\s*\*", " ", (PROJECT / name).read_text()).split()) for name in files}
    assert {name: found[0] for name, text in texts.items() if (found := tag.search(text))} == {}


@pytest.mark.usefixtures("small")
def test_what_is_in_step_has_no_faults() -> None:
    assert properties.faults(section(row("1, 2", ["suite.case"]))) == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("rows", "last", "fault"),
    [
        ([row("1, 2", ["suite.case", "suite.renamed"])], 2, "something: no such case: suite.renamed"),
        ([row("1, 2", ["suite.case"], note="see `suite.old`")], 2, "something: no such case: suite.old"),
        ([row("1, 2", none="why")], 2, "suite.case: no row names it"),
        ([row("1, 2", ["suite.case", "suite.case"])], 2, "thing 1, 2 names suite.case twice"),
        ([row("1, 2", ["suite.case"])], 1, "thing 2: no such row"),
        ([row("1", ["suite.case"])], 2, "thing 2 is in the table 0 times"),
        ([row("1, 2", ["suite.case"]), row("2", ["suite.case"])], 2, "thing 2 is in the table 2 times"),
        ([row("1, 2", ["suite.case"]), row("3")], 3, "thing 3 has no tests; add tests, elsewhere, none or gap"),
        ([row("1, 2", ["suite.case"], none="why")], 2, 'thing 1, 2 says "not testable", but names suite.case'),
        ([row("1, 2", gap="how", measured=True)], 2, 'thing 1, 2 says "measured", but has no tests'),
        ([row("1, 2", ["suite.case"], mutants=("no_such",))], 2, "something: no such mutant: no_such"),
        (
            [row("1, 2", ["suite.case"], mutants=("unseen",))],
            2,
            "something: no test notices mutant unseen; add a test, or list the mutant as a gap in properties.toml",
        ),
    ],
)
def test_what_is_out_of_step_is_said(rows: Sequence[Row], last: int, fault: str) -> None:
    assert any(said.startswith(fault) for said in properties.faults(section(*rows, last=last)))


def test_a_row_says_what_it_lacks() -> None:
    rows = [row("1", ["suite.case"], gap="how"), row("2", gap="how"), row("3", none="why"), row("4", elsewhere="boot")]
    assert [one.state() for one in rows] == ["with a gap", "open", "not testable here", "tested"]
    assert rows[0].where() == "`suite.case`; **gap**: how"
    assert rows[2].where() == "not testable here: why"
    text = properties.document(section(*rows, last=4))
    assert "| Things | 4 | 1 | 1 | 0 | 1 | 1 |" in text
    assert "- **thing 2** (something): how" in text
    assert "### Subject\n\n| row | property | tested by |" in text


def test_the_table_names_the_cases_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = '"1" = "one"\n"2, 4-5" = { title = "two", tests = ["b.c", "a.b"], mutants = ["wrong"] }\n'
    table = tmp_path / "properties.toml"
    table.write_text(f'[[section]]\ntitle = "Things"\nname = "thing"\nlast = 5\n[section.subject."Subject"]\n{rows}')
    monkeypatch.setattr(properties, "TABLE", table)
    [found] = properties.load()
    one, two = found.rows()
    assert (one.title, one.tests) == ("one", ())
    assert (two.title, two.tests, two.mutants) == ("two", ("b.c", "a.b"), ("wrong",))
    assert properties.numbers(two.numbers) == {2, 4, 5}
    assert two.where() == "`b.c`, `a.b`; mutants: `wrong`"
