# SPDX-License-Identifier: GPL-2.0
"""The page with all results."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mmcheck import known_issues, report, results
from mmcheck.errors import UserError

VOID = {"meta", "rect", "br", "li", "th", "td", "tr"}


class Reader(HTMLParser):
    """Sees that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


def fill(out: Path) -> None:
    """What the other commands leave."""
    good = results.Case("s", "a", "passed")
    bad = results.Case("s", "b: <p>", "failed", text=["it is 3 < 4"])
    skip = results.Case("s", "c", "skipped", text=["needs SMP"])
    cells = {
        "7.3 arm64 4K": {"state": "failed", "counts": {"passed": 1, "failed": 1, "skipped": 1}},
        "7.3 um": {"state": "none", "why": "kunit.py: does not build"},
    }
    commands = {"7.3 arm64 4K": "kunit.py run --arch=arm64", "7.3 um": "kunit.py run --arch=um"}
    places = {"7.3 arm64 4K": ["7.3 arm64 4K", ""], "7.3 um": ["7.3 um", ""]}
    whole = {"complete": True, "cells": cells, "commands": commands, "places": places}
    (out / "matrix/7.3-arm64-4K").mkdir(parents=True)
    (out / "matrix/matrix.json").write_text(json.dumps(whole))
    results.save([good, bad, skip], "x", out / "matrix/7.3-arm64-4K")
    names = {"killed": "failed", "left": "survived", "same": "equivalent"}
    mutants = [
        {"name": name, "state": state, "argument": "because" * (name == "left")} for name, state in names.items()
    ]
    (out / "mutants/k").mkdir(parents=True)
    content = {"kernel": "linux-7.3", "arch": "arm64", "pages": "4K", "mutants": mutants}
    (out / "mutants/k/mutants.json").write_text(json.dumps(content))
    function = {"file": "mm/a.c", "name": "f", "lines": [3, 4], "branches": [0, 0]}
    (out / "coverage/k").mkdir(parents=True)
    content = {"kernel": "linux-7.3", "arch": "arm64", "functions": [function]}
    (out / "coverage/k/coverage.json").write_text(json.dumps(content))
    (out / "bench").mkdir()
    table = {"title": "faults", "head": ["what", "#faults"], "rows": [["64K", 1]], "svg": "<svg></svg>"}
    (out / "bench/a.json").write_text(json.dumps({"tables": [table]}))


def test_the_page_has_everything_failures_first(tmp_path: Path) -> None:
    fill(tmp_path)
    report.run(tmp_path)
    report.run(tmp_path)
    page = (tmp_path / "report/index.html").read_text()
    reader = Reader()
    reader.feed(page)
    assert not reader.open
    titles = ["Failures", "Matrix", "Skips", "Known issues", "Mutants", "Coverage", "Benchmarks", "History"]
    places = [page.index(f">{title}", page.index("</nav>")) for title in titles]
    assert places == sorted(places)
    assert "kunit.py run --arch=arm64 &#x27;s.b&#x27;" in page
    assert "it is 3 &lt; 4" in page and "b: &lt;p&gt;" in page
    assert "7.3 um: no verdict" in page and "does not build" in page
    assert "needs SMP" in page and "because" in page
    assert "50.0%" in page and "75.0% of 4" in page
    assert len((tmp_path / "report/history.jsonl").read_text().splitlines()) == 2


def test_cells_stand_as_in_their_table_whichever_ended_first(tmp_path: Path) -> None:
    fill(tmp_path)
    file = tmp_path / "matrix/matrix.json"
    whole = json.loads(file.read_text())
    whole["commands"] = {"7.3 um": "make", "7.3 arm64 4K": "make"}
    file.write_text(json.dumps(whole))
    assert list(report.Input(tmp_path).matrix) == ["7.3 um", "7.3 arm64 4K"]


def test_rare_reasons_for_skips_are_folded() -> None:
    cases = [results.Case("s", f"c{n}", "skipped", text=[f"because {n}"]) for n in range(report.OFTEN + 2)]
    page = report.skips([("r", cases)])
    assert "2 more reasons" in page and page.count("<details>") == report.OFTEN + 3
    assert "more reasons" not in report.skips([("r", cases[: report.OFTEN])])


def test_markdown_of_known_issues_is_html() -> None:
    assert report.marked("`a<b>()` loses *young*") == "<code>a&lt;b&gt;()</code> loses <em>young</em>"


def test_nothing_to_report_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results in"):
        report.run(tmp_path)


def test_known_issues_are_listed_with_who_met_them() -> None:
    cases = [
        results.Case("contpte", "young", "skipped", text=["known issue 1: young is lost"]),
        results.Case("set_ptes", "pages", "passed", text=["pages: known issue 2 is stale: it holds"]),
    ]
    page = report.issues([("r", cases)])
    assert page.count("met it") == page.count("stale") == 1
    assert page.index("r: contpte.young") < page.index("r: set_ptes.pages")
    assert all(report.marked(issue.title) in page for issue in known_issues.load())
