# SPDX-License-Identifier: GPL-2.0
"""A baseline accepts the failures that it lists, and no other failures. All commands that show results show this."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import pytest

from mmcheck import verbs
from mmcheck.boot import results
from mmcheck.boot.results import Case
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.report import collect, kcidb
from mmcheck.run import baseline, compare, record
from mmcheck.run.baseline import Baseline, Entry

from . import seeded
from .conftest import User
from .seeded import recorded

FILE = Path("known.toml")


def bad(name: str, suite: str = "s", splat: bool = False) -> Case:
    return Case(suite, name, "failed", text=["entry 0 is 1"], splat=splat)


def good(name: str, suite: str = "s") -> Case:
    return Case(suite, name, "passed")


def judged(entries: list[Entry], cases: list[Case], arch: str = "arm64", pages: str = "4K") -> list[Case]:
    return Baseline(FILE, tuple(entries)).judge(cases, arch, pages)


def states(cases: list[Case]) -> str:
    return " ".join(case.state for case in cases)


def test_a_listed_failure_is_known_and_keeps_its_text() -> None:
    (case,) = judged([Entry("s.a", "old")], [bad("a")])
    assert (case.state, case.text) == ("known", ["known to this tree: old", "entry 0 is 1"])
    assert results.status([case]) == 0 and record.state([case]) == "passed"
    assert baseline.status(1, [case]) == 0


def test_any_other_failure_is_red() -> None:
    cases = judged([Entry("s.a", "old")], [bad("a"), bad("b"), bad("a", "other"), good("c")])
    assert states(cases) == "known failed failed passed"
    assert baseline.status(1, cases) == 1 and results.status(cases) == 1
    assert cases[2].text == ["entry 0 is 1"], "a suite that the baseline does not name gets no remark"
    assert baseline.notes(cases) == ["baseline: 2 cases of s fail, but known.toml lists only 1"]
    cases = judged([Entry("s.a", "old"), Entry("s.c", "old")], [good("a"), bad("b"), bad("c")])
    assert baseline.notes(cases) == ["baseline: known.toml does not list s.b"]


def test_a_status_without_a_known_failure_stays() -> None:
    # kunit.py may fail for a reason that no case shows.
    assert baseline.status(1, [good("a")]) == 1 and baseline.status(1, []) == 1
    assert baseline.status(125, judged([Entry("s.a", "old")], [bad("a")])) == 125


def test_a_listed_test_that_passes_is_to_be_removed() -> None:
    cases = judged([Entry("s.a", "old"), Entry("s.b", "old")], [good("a"), Case("s", "b", "skipped"), good("c")])
    assert [case.remarks for case in cases] == [["fixed: remove s.a from known.toml"], [], []]
    assert states(cases) == "passed skipped passed"


def test_a_glob_says_how_many_may_fail() -> None:
    entry = Entry("s.race*", "old", fails=2)
    names = ["race: 1", "race: 2", "race: 3"]
    assert states(judged([entry], [bad(names[0]), bad(names[1]), good(names[2])])) == "known known passed"
    cases = judged([entry], [*map(bad, names)])
    assert states(cases) == "failed failed failed", "it is not known which failure is new"
    assert baseline.notes(cases) == ["baseline: 3 failures match s.race*, but known.toml accepts only 2"]
    cases = judged([entry], [bad(names[0]), good(names[1]), good(names[2])])
    assert states(cases) == "known passed passed"
    assert [case.remarks for case in cases[1:]] == [
        ["fixed: only 1 of 2 failures of s.race* still occur; set `fails = 1` in known.toml"],
        [],
    ]


def test_two_failures_of_one_name_are_more_than_one() -> None:
    assert states(judged([Entry("s.a", "old")], [bad("a"), bad("a")])) == "failed failed"


def test_without_fails_a_name_is_no_glob() -> None:
    assert states(judged([Entry("s.a: order [1]", "old")], [bad("a: order [1]"), bad("a: order 1")])) == "known failed"


def test_a_kernel_that_warns_is_another_failure() -> None:
    cases = judged([Entry("s.a", "old"), Entry("s.b", "old", splat=True)], [bad("a", splat=True), bad("b", splat=True)])
    assert states(cases) == "failed known"
    said = "baseline: the kernel warned or crashed in s.a, but its entry in known.toml has no splat = true"
    assert baseline.notes(cases) == [said]


def test_an_entry_may_be_for_some_machines() -> None:
    entry = Entry("s.a", "old", arches=("arm64",), pages=("16K",))
    assert states(judged([entry], [bad("a")], "arm64", "16K")) == "known"
    assert states(judged([entry], [bad("a")], "arm64", "4K")) == "failed"
    assert states(judged([entry], [bad("a")], "x86_64")) == "failed"
    assert judged([entry], [good("a")], "um")[0].remarks == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("known = 3", "'int' object is not iterable"),
        ("[[unknown]]", "there is no key unknown; begin each entry with the line [[known]]"),
        ("known = [3]", "entry 1: begin each entry with the line [[known]]"),
        ("[[known]]\ncase = 's.a'", "entry 1: needs the keys `case` and `why`, and a value for each"),
        ("[[known]]\ncase = 's.a'\nwhy = ' '", "entry 1: needs the keys `case` and `why`, and a value for each"),
        ("[[known]]\ncase = 's.a'\nwhy = 'x'\nfail = 1", "entry 1: there is no key fail; use case, why, fails, splat"),
        ("[[known]]\ncase = 's.a'\nwhy = 'x'\nfails = true", "entry 1: fails = True: the value has the wrong type"),
        ("[[known]]\ncase = 's.a'\nwhy = 'x'\npages = [4]", "entry 1: pages = [4]: the value has the wrong type"),
        ("[[known]]\ncase = 's.a'\nwhy = 'x'\nfails = 0", "entry 1: fails = 0: use a number above 0"),
        ("[[known]]\ncase = 's.*'\nwhy = 'x'", "entry 1: s.*: a glob needs the key `fails`, the number of"),
        ("[[known]]\ncase = 's.a'\nwhy = 'x'\n" * 2, "entry 2: s.a is listed twice; remove one of them"),
        ("[[known", "Expected ']]' at the end of an array declaration"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    if text == "known = 3":
        why = "begin each entry with the line [[known]]"
    with pytest.raises(UserError) as error:
        baseline.load(file)
    assert why in str(error.value) and str(error.value).startswith(f"BASELINE={file}: ")


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No such file or directory; ./mmcheck baseline --baseline .* creates it"):
        baseline.load(tmp_path / "no.toml")


def run_baseline(out: Path, file: Path, **more: str) -> int:
    return verbs.run("baseline", {"O": str(out), "BASELINE": str(file), **more})


def test_what_the_command_writes_makes_the_same_run_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = 'x: a "b" [c] \x7f'
    cases = [bad("a"), bad(name), bad(name), bad("dies", splat=True), good("c"), bad("", "lost")]
    recorded(tmp_path, "linux-arm64-16K", cases)
    file = tmp_path / "sub/known.toml"
    assert run_baseline(tmp_path, file) == 0
    one = baseline.load(file)
    assert states(one.judge(cases, "arm64", "16K")) == "known known known known passed known"
    assert states(one.judge(cases[:1], "arm64", "4K")) == "failed"
    assert "4 failures added to" in capsys.readouterr().err


def test_the_command_only_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "known.toml"
    mine = "# mine\n[[known]]\ncase = 's.a'\nwhy = 'my reason'  # keep\n"
    file.write_text(mine)
    known = baseline.load(file)
    recorded(tmp_path, "linux-um", known.judge([bad("b"), bad("a")], "um", "4K"))
    assert run_baseline(tmp_path, file) == 0
    assert file.read_text().startswith(mine)
    assert [entry.case for entry in baseline.load(file).entries] == ["s.a", "s.b"]
    before = file.read_text()
    assert run_baseline(tmp_path, file) == 0
    assert file.read_text() == before and "already lists all failures" in capsys.readouterr().err
    recorded(tmp_path, "linux-um", baseline.load(file).judge([good("b"), bad("a")], "um", "4K"))
    assert run_baseline(tmp_path, file) == 0 and file.read_text() == before
    assert "fixed: remove s.b from known.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("worse", "why"),
    [([bad("a"), bad("a")], "s.a needs fails = 2\n"), ([bad("a", splat=True)], "s.a needs splat = true\n")],
)
def test_a_listed_test_that_fails_worse_is_named(
    tmp_path: Path, worse: list[Case], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Do not add a second entry for the same case: it would not count, or the file would be invalid."""
    file = tmp_path / "known.toml"
    recorded(tmp_path, "linux-um", [bad("a")])
    assert run_baseline(tmp_path, file) == 0
    recorded(tmp_path, "linux-um", [*worse, bad("b")])
    assert run_baseline(tmp_path, file) == 125
    assert capsys.readouterr().err.endswith(why)
    assert [entry.case for entry in baseline.load(file).entries] == ["s.a", "s.b"]


def test_the_command_keeps_links_line_ends_and_what_it_cannot_extend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "known.toml"
    file.symlink_to("shared.toml")
    recorded(tmp_path, "linux-um", [bad("a")])
    for text, status in ((b"# mine\r\n", 0), (b"known = []\n", 125)):
        (tmp_path / "shared.toml").write_bytes(text)
        assert run_baseline(tmp_path, file) == status
        assert file.is_symlink() and file.read_bytes().startswith(text)
        assert len(baseline.load(file).entries) == (status == 0)
    assert "nothing was added: begin each entry with the line [[known]]" in capsys.readouterr().err


def test_the_command_needs_a_file_and_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "known.toml"
    assert verbs.run("baseline", {"O": str(tmp_path)}) == 125
    assert run_baseline(tmp_path, file) == 125
    recorded(tmp_path, "linux-um", [], built=False, why="does not build")
    assert run_baseline(tmp_path, file) == 125
    assert "kunit linux-um is left out: it has no verdict (does not build)" in capsys.readouterr().err
    assert run_baseline(tmp_path, file, A="no such run") == 125
    assert not file.exists()
    recorded(tmp_path, "other-um", [good("a")])
    assert run_baseline(tmp_path, file) == 0 and baseline.load(file).entries == ()


def test_readers_of_results_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = judged([Entry("s.a", "old"), Entry("s.b", "old")], [bad("a"), good("b"), good("c")])
    recorded(tmp_path, "linux-um", cases)
    content = json.loads(next(tmp_path.glob("runs/*/run.json")).read_text())
    jsonschema.validate(content, json.loads((PROJECT / "tools/testing/mmcheck/run/run.schema.json").read_text()))
    assert collect.run({"O": str(tmp_path)}) == 0
    said = capsys.readouterr()
    assert "1 known\n" in said.out and "    KNOWN s.a: known to this tree: old\n" in said.out
    assert "    FIXED s.b: fixed: remove s.b from known.toml\n" in said.out
    assert "2 passed, 0 failed, 0 skipped, 1 known; " in said.err
    root = ElementTree.parse(tmp_path / "results/results.xml").getroot()
    assert (root.get("failures"), root.get("skipped"), root.get("tests")) == ("0", "1", "3")
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == "known to this tree: old"
    assert [out.text for out in root.iter("system-out")] == ["known to this tree: old\nentry 0 is 1"]


def test_kcidb_gets_a_failure_and_an_issue(tmp_path: Path) -> None:
    recorded(tmp_path, "linux-um", judged([Entry("s.a", "old")], [bad("a"), good("c")]))
    whole = kcidb.Submission(tmp_path).whole()
    assert [test["status"] for test in whole["tests"]] == ["FAIL", "PASS"]
    (issue,), (incident,) = whole["issues"], whole["incidents"]
    assert issue["comment"] == "s.a: known to this tree: old"
    assert (incident["issue_id"], incident["test_id"]) == (issue["id"], whole["tests"][0]["id"])
    assert incident["present"] is True


def test_a_comparison_of_two_runs_takes_it_for_a_failure() -> None:
    known = judged([Entry("s.a", "old")], [bad("a")])
    assert compare.difference([good("a")], known).new == ("s.a",)
    assert compare.difference([bad("a")], known).still == ("s.a",)
    assert compare.difference(known, [good("a")]).fixed == ("s.a",)


def test_the_page_shows_it(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    seeded.recorded(tmp_path, "linux-um", judged([Entry("s.a", "old")], [bad("a"), good("c")]))
    from mmcheck import report

    assert report.run({"O": str(tmp_path)}) == 0
    page = (tmp_path / "report/index.html").read_text()
    assert "nothing failed, 1 of 2 tests passed, 1 test known to fail" in page
    assert "1 known to fail in this tree" in page and '"s":{"0":"kp"}' in page


FAILS = """\
KTAP version 1
1..1
    # Subtest: one
    1..2
    # a: EXPECTATION FAILED at mm/tests/a.c:3
    not ok 1 a
    ok 2 b
not ok 1 one
"""


def kunit(user: User, *words: str, console: str = FAILS, **more: str) -> Any:
    variables = {"FAKE_STATUS": "1", "FAKE_CONSOLES": json.dumps({"all": console})}
    return user.kunit("run", "--arch=arm64", *words, **{**variables, **more})


def test_kunit_py_passes_with_a_baseline(user: User, tmp_path: Path) -> None:
    (user.home / "known.toml").write_text('[[known]]\ncase = "one.a"\nwhy = "old"\n')
    assert kunit(user).returncode == 1
    done = kunit(user, "--baseline", "known.toml")
    assert done.returncode == 0, done.stderr
    assert "mmcheck: passed: 0 failed, 1 passed, 0 skipped, 1 known to this tree\n" in done.stderr
    assert "mmcheck: known to this tree: one.a\n" in done.stderr
    assert "--baseline" not in str(user.calls()[-1]), "the kernel's kunit.py does not know this argument"
    done = kunit(user, BASELINE="known.toml", console=FAILS.replace("    ok 2 b", "    not ok 2 b"))
    assert done.returncode == 1
    assert "mmcheck: new failures (not known issues): one.b\n" in done.stderr
    assert "mmcheck: baseline: 2 cases of one fail, but known.toml lists only 1\n" in done.stderr
    assert "mmcheck: known to this tree: one.a\n" in done.stderr
    assert "BASELINE=" in done.stderr.partition("next: ")[2]
    done = kunit(user, BASELINE="known.toml", console=FAILS.replace("not ok", "ok"), FAKE_STATUS="0")
    assert done.returncode == 0 and "mmcheck: one.a: fixed: remove one.a from known.toml\n" in done.stderr
    last = record.latest(Path(user.environment["O"]))[0]
    assert last.baseline.endswith("known.toml")


@pytest.mark.parametrize("words", [["--base", "unpatched"], ["--run_isolated", "suite"]])
def test_what_does_not_go_together_is_refused(user: User, words: list[str]) -> None:
    (user.home / "known.toml").write_text("")
    done = kunit(user, *words, BASELINE="known.toml")
    assert done.returncode == 125 and user.calls() == []
    assert f"does not work with {words[0]}" in done.stderr


def test_a_missing_baseline_starts_nothing(user: User) -> None:
    done = kunit(user, "--baseline", "no.toml")
    assert done.returncode == 125 and user.calls() == [] and done.stderr.count("\n") == 1
