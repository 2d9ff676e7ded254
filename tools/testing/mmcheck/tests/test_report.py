# SPDX-License-Identifier: GPL-2.0
"""The page with all results: its content, its order and its size."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mmcheck import report
from mmcheck.boot import results
from mmcheck.core.errors import UserError
from mmcheck.mutants import killmatrix
from mmcheck.report import extras, failures, page, records

from . import seeded

VOID = {"meta", "rect", "br", "li", "th", "td", "tr", "input"}
LIMIT = 2_000_000
"""The largest size in bytes of a page of a whole matrix."""


class Reader(HTMLParser):
    """Checks that each element is closed, and stores the ids and the links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag


def understood(path: Path) -> tuple[str, Reader]:
    """The text of the page, and a reader that has parsed it. The page must be well-formed."""
    text = path.read_text()
    reader = Reader()
    reader.feed(text)
    assert not reader.open
    return text, reader


def plain(text: str) -> str:
    """The text of HTML without tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def data(text: str) -> dict[str, Any]:
    """The data that the page contains as JSON."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    content: dict[str, Any] = json.loads(found[1])
    return content


def fill(out: Path) -> None:
    """Write results of other commands."""
    good = results.Case("s", "a", "passed")
    bad = results.Case("s", "b: <p>", "failed", text=["it is 3 < 4", "</script><b>"])
    skip = results.Case("s", "c", "skipped", text=["needs SMP</script><b>"])
    seeded.write(out, {"7.3 arm64 4K": [good, bad, skip], "6.12 um": [good]}, {"7.3 um": "kunit.py: does not build"})
    names = {"killed": "failed", "left": "survived", "same": "equivalent"}
    mutants = [
        {"name": name, "state": state, "argument": "because" * (name == "left")} for name, state in names.items()
    ]
    function = {"file": "mm/a.c", "name": "f", "lines": [3, 4], "branches": [0, 0]}
    table = {"title": "faults", "head": ["what", "#faults"], "rows": [["64K", 1]], "svg": "<svg></svg>"}
    found: dict[str, dict[str, Any]] = {
        "mutants": {"kernel": "linux-7.3", "arch": "arm64", "pages": "4K", "mutants": mutants},
        "coverage": {"kernel": "linux-7.3", "arch": "arm64", "functions": [function]},
        "bench": {"tables": [table]},
    }
    for kind, content in found.items():
        seeded.of_command(out, kind, content)


def test_the_page_has_everything_the_verdict_first(tmp_path: Path) -> None:
    fill(tmp_path)
    report.run({"O": str(tmp_path)})
    text, _ = understood(tmp_path / "report/index.html")
    titles = ["Failures", "Cells", "Tests", "Skips", "Known issues", "Mutants", "Coverage", "Benchmarks", "History"]
    places = [text.index(f">{title}", text.index("</nav>")) for title in titles]
    assert places == sorted(places)
    assert text.index("<h1") < text.index('class="identity"') < text.index("<nav")
    assert "kunit.py run --arch=arm64</span> <span>&#39;s.b&#39;" in text or "&#39;s.b&#39;</span>" in text
    assert "it is 3 &lt; 4" in text and "b: &lt;p&gt;" in text and "</script><b>" not in text
    assert "No verdict on 7.3 um" in text and "does not build" in text
    assert "Needs SMP" in text and "because" in text
    assert "50.0%" in text and "75.0% of 4" in text and "<td class=number>1</td>" in text


def test_the_page_needs_no_other_file(tmp_path: Path) -> None:
    text, reader = understood(seeded.page(tmp_path, failing=True, missing=True))
    assert len(set(reader.ids)) == len(reader.ids)
    for link in reader.links:
        assert link.startswith("#"), link
        assert "=" in link or link[1:] in reader.ids, link
    assert not re.search(r"@import|url\(|https?://", text.partition("<body>")[0])


def test_the_page_of_a_failure_shows_all_that_is_known_of_it(tmp_path: Path) -> None:
    text, _ = understood(seeded.page(tmp_path, failing=True, missing=True))
    card = text[text.index('id="failure-pte_range_walk') :].partition("</section>")[0]
    words = plain(card)
    for part in (
        "new",
        "On 7.3 arm64 4K, 7.3 arm64 4K locks",
        "This failure is not a known issue.",
        "Entry 48 of the table after get_and_clear_full_ptes idx 54 full 0",
        "00e8000041540c43 , expected 0068000041540cc3",
        "Dirty is 1, expected 0; read-only is 0, expected 1.",
        "set_ptes idx 32 nr 32 page 48 rw young",
        "Seed: pte_range_walk.seed=1567952498 pte_range_walk.steps=1000",
        "KERNEL=7.3 ./tools/testing/kunit/kunit.py run --arch=arm64 --kernel_args pte_range_walk.seed=1567952498",
        "EXPECTATION FAILED at ../../../lib/pgtable_kunit/walk_report.c:153",
        "To: linux-mm@kvack.org Cc: linux-arm-kernel@lists.infradead.org, linux-kernel@vger.kernel.org",
        "Subject: [BUG] pte_range_walk.arch_functions_match_model: steps 0 to 24999 fails on 7.3.4",
        "Source: package 7.3.4-1~bpo13+1",
        "Compiler: aarch64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0",
        "Emulator: QEMU 7.2.22",
        "-matrix-7.3-arm64-4K/7.3-arm64-4K.log",
    ):
        assert part in words, part
    assert card.count('class="field differs"') == 2 and '<span class="name">read-only</span>' in card


def test_the_data_of_the_page_are_whole(tmp_path: Path) -> None:
    fill(tmp_path)
    report.run({"O": str(tmp_path)})
    content = data((tmp_path / "report/index.html").read_text())
    names = [cell["n"] for cell in content["cells"]]
    assert names[:3] == ["7.3 arm64 4K", "7.3 um", "6.12 um"]
    assert {cell["n"]: cell["k"] for cell in content["cells"]}["7.3 x86_64"] == "missing"
    suite = content["suites"][0]
    assert suite["n"] == "s" and suite["c"] == ["a", "b: <p>", "c"] and suite["s"] == {"0": "pfs", "2": "p.."}
    assert {content["texts"][int(text)]: numbers for text, numbers in suite["t"]["0"].items()} == {
        "it is 3 < 4": "1",
        "needs SMP</script><b>": "2",
    }


def test_a_suite_and_a_selftest_of_one_name_have_two_rows(tmp_path: Path) -> None:
    seeded.recorded(tmp_path, "linux-arm64-4K", [results.Case("contpte_fold", "a", "passed")], command="./kunit.py run")
    again = "make kselftest TARGETS=mm ARCH=arm64"
    own = [results.Case("contpte_fold", "xfs.a", "failed"), results.Case("contpte_fold", "xfs.b", "skipped")]
    seeded.recorded(tmp_path, "linux-arm64-4K", own, kind="kselftest", command=again, id="another")
    report.run({"O": str(tmp_path)})
    text, _ = understood(tmp_path / "report/index.html")
    content = data(text)
    assert [(suite["n"], suite["k"], suite["c"]) for suite in content["suites"]] == [
        ("contpte_fold", "selftest", ["xfs.a", "xfs.b"]),
        ("contpte_fold", "", ["a"]),
    ]
    words = plain(text)
    assert "3 tests in 2 suites, each counted once: 1 passed, 1 failed, 1 skipped in every run." in words
    assert " 1 failed test 1 test skipped: how to run them " in words


def test_the_page_says_how_to_run_what_was_skipped(tmp_path: Path) -> None:
    race = results.Case("contpte_race", "a", "skipped", text=["needs two CPUs"])
    odd = results.Case("s", "b", "skipped", text=["needs luck"])
    again = "KDIR=/l ./tools/testing/kunit/kunit.py run --arch=arm64"
    own = [race, odd, results.Case("s", "c", "passed")]
    seeded.recorded(tmp_path, "linux-arm64-4K", own, version="6.12.117", command=again)
    report.run({"O": str(tmp_path)})
    words = plain((tmp_path / "report/index.html").read_text())
    assert "2 tests did not run. This is no failure: each of these tests needs a kernel" in words
    assert "The commands below run 1 of them. make matrix runs many configurations." in words
    assert "KDIR=/l ./tools/testing/kunit/kunit.py run --arch=arm64 --qemu_args &#39;-smp 2&#39;" in words


def test_a_page_of_a_whole_matrix_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "junit", lambda *_: b"")  # this takes long, and the page does not read the result
    long = [f"line {n} of a splat that says what is wrong with the kernel, and where it was" for n in range(300)]
    for failing in (False, True):
        state = "failed" if failing else "passed"
        cases = {}
        for number, cell in enumerate(seeded.cells()):
            own = [results.Case(f"suite_{n % 70}", f"a_case_with_a_name_{n}", state) for n in range(1300)]
            for case in own[:: 5 + number % 3]:
                case.state, case.text = "skipped", [f"needs something that cell {number % 7} does not have"]
            for case in own:
                case.text = case.text or (long if failing and number == 0 else [])
            cases[str(cell)] = own
        seeded.write(tmp_path, cases, {})
        report.run({"O": str(tmp_path)})
        size = (tmp_path / "report/index.html").stat().st_size
        assert 100_000 < size < LIMIT, (failing, size)
        print(f"{size} bytes, failing: {failing}")
    text, _ = understood(tmp_path / "report/index.html")
    assert text.count('<details class="card"') == failures.CARDS and "more failures, without a card" in text


def test_a_command_on_a_phone_keeps_its_words_and_its_text() -> None:
    line = "KERNEL=7.3 ./kunit.py run --kconfig_add=CONFIG_A_RATHER_LONG_NAME=y 'a<b>'"
    marked = page.words(line)
    assert marked.striptags() == line
    assert "<span>KERNEL=7.3</span>" in marked and "<span>--kconfig_add=</span>CONFIG" in marked


def test_markdown_of_known_issues_is_html() -> None:
    assert extras.marked("`a<b>()` loses *young*") == "<code>a&lt;b&gt;()</code> loses <em>young</em>"


def test_nothing_to_report_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results in"):
        report.run({"O": str(tmp_path)})


def test_the_kill_matrix_says_what_notices_nothing_and_what_is_fragile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (extras.kills() == "") == (not list(killmatrix.FOLDER.glob("*.json")))
    rows = {
        "alone": killmatrix.Row({"s.a": "failed"}, 2),
        "often": killmatrix.Row({"s.a": "failed", "t.b": "splat"}, 2),
        "never": killmatrix.Row({}, 1),
    }
    killmatrix.Matrix("7.3.4", ["s.a", "s.idle", "t.b", "u.why"], rows).save(tmp_path / "7.3-arm64.json")
    monkeypatch.setattr(killmatrix, "FOLDER", tmp_path)
    monkeypatch.setattr(killmatrix, "reasons", lambda: {"u.*": "it measures"})
    html = extras.kills()
    words = plain(html)
    assert words.startswith("These numbers come with mmcheck; the runs on this page did not measure them. ")
    assert "7.3-arm64 3 4 2 50.0% 1 2" in words
    assert "s.idle : no reason given" in words and "u.why : it measures" in words
    assert "fragile mutants: only one case notices each of them s.a alone: alone" in words
    assert "mutants that no case notices never" in words


def test_one_file_of_another_command_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    fill(tmp_path)
    next(tmp_path.glob("runs/*-bench-*/run.json")).write_text("{")
    assert records.Input(tmp_path).bench == []
    whole = len(records.Input(tmp_path).runs)
    next(tmp_path.glob("runs/*-matrix-*/run.json")).write_text("{")
    assert len(records.Input(tmp_path).runs) == whole - 1
