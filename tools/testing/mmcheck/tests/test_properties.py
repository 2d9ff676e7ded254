# SPDX-License-Identifier: GPL-2.0
"""COVERAGE.md, properties.toml and the comments of the tests agree. A contradiction between them is reported."""

from collections.abc import Sequence
from typing import Any

import pytest

from mmcheck.dev import overlay, properties
from mmcheck.dev.properties import Row, Section
from mmcheck.mutants import catalogue
from mmcheck.mutants.catalogue import Mutant

CITED = {1: {"suite.case"}, 2: {"suite.case"}}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the cases by one case that cites two rows of a catalogue."""
    monkeypatch.setattr(overlay, "cases", lambda: {"suite.case"})
    monkeypatch.setattr(overlay, "citations", lambda _: CITED)
    unseen = Mutant("unseen", "", (), lambda _: None, survives="why")
    monkeypatch.setattr(catalogue, "load", lambda _: [unseen])


def section(*rows: Row, last: int = 2) -> Sequence[Section]:
    """One catalogue with one subject."""
    return [Section("Things", "thing", last, "", {"Subject": rows})]


def row(numbers: str, tests: Sequence[str] = (), **said: Any) -> Row:
    """A row of this catalogue."""
    return Row("thing", numbers, tuple(tests), "something", **said)


def test_coverage_md_is_up_to_date() -> None:
    assert properties.DOCUMENT.read_text() == properties.document(properties.load())


def test_rows_cases_and_mutants_are_in_step() -> None:
    assert properties.faults(properties.load()) == []


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
        ([row("1", ["suite.case"])], 1, "thing 2: no such row"),
        ([row("1", ["suite.case"])], 2, "thing 2 is in the table 0 times"),
        ([row("1, 2", ["suite.case"]), row("2", ["suite.case"])], 2, "thing 2 is in the table 2 times"),
        ([row("1, 2", ["suite.case"]), row("3")], 3, 'thing 3: no case cites it, but the table says "tested"'),
        ([row("1-3", ["suite.case"])], 3, "thing 1-3: no case cites row 3"),
        (
            [row("1", ["suite.case"], none="why"), row("2", ["suite.case"])],
            2,
            'thing 1: suite.case cites it, but the table says "not testable"',
        ),
        (
            [row("1, 2", ["suite.case"]), row("3", gap="how", measured=True)],
            3,
            'thing 3: no case cites it, but the table says "measured"',
        ),
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


def test_citations_are_read_over_the_ends_of_lines() -> None:
    comment = "/*\n * One [linear\n * map 1-3,\n * 5], then [7], and [other 9].\n */"
    assert overlay.cited(comment, "linear map") == {1, 2, 3, 5, 7}
    assert overlay.cited(comment, "other") == {9}


def test_the_comment_is_that_of_the_case() -> None:
    text = "/* [a 1] */\nstatic void __init one(struct kunit *test)\n{}\n/* [a 2] */\nint f(a[3]);\n"
    text += "static void two(struct kunit *test)\n{}\n"
    assert overlay.comment_above(text, "one") == "/* [a 1] "
    assert overlay.cited(overlay.comment_above(text, "two"), "a") == {2}
