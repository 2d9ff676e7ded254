# SPDX-License-Identifier: GPL-2.0
"""The data of the page: the verdict, failures, skips, known issues that were hit, and cells."""

import re
import subprocess
from pathlib import Path

import pytest

from mmcheck.boot import results
from mmcheck.core import progress
from mmcheck.kernel import identity, known_issues
from mmcheck.kernel.source import Source
from mmcheck.report import failures, heat, history, model, verdict
from mmcheck.report.records import Input

from . import seeded
from .seeded import recorded

GOOD = results.Case("s", "a", "passed")
BAD = results.Case("s", "a", "failed", text=["a: EXPECTATION FAILED at x.c:1", "it is 3"])


def read(out: Path, runs: dict[str, list[results.Case]], none: dict[str, str] | None = None) -> Input:
    seeded.write(out, runs, none or {})
    return Input(out)


def judged(data: Input, past: history.History) -> verdict.Verdict:
    """The verdict on these records, compared with the reports in `past`."""
    now = model.states(data.runs)
    failed = failures.failures(data, past)
    fixed, same = verdict.changed(data, past, now)
    return verdict.verdict(data, failed, model.issues(data.runs), model.Tests.of(now), past, len(fixed), same)


def after(data: Input, earlier: Input, path: Path) -> history.History:
    """A history in which `earlier` is the last report before the report of `data`."""
    then, now = model.states(earlier.runs), model.states(data.runs)
    history.write(path, history.read(path, then, {"when": "1", "what": history.digest(then)}).lines)
    return history.read(path, now, {"when": "2", "what": history.digest(now)})


def test_the_verdict_says_what_is_new(tmp_path: Path) -> None:
    everywhere = {str(cell): [GOOD] for cell in seeded.cells()}
    number = len(everywhere)
    good = read(tmp_path, everywhere)
    first = judged(good, history.History())
    assert first.kind == "good" and first.words.endswith("more: nothing failed, 1 of 1 test passed.")
    known = results.Case("contpte", "young", "skipped", text=["known issue 1: young is lost"])
    stale = results.Case("set_ptes", "pages", "passed", text=["pages: known issue 2 is stale: it holds"])
    bad = read(tmp_path, {**everywhere, "7.3 arm64 4K": [BAD, known, stale], "7.3 um": [BAD]})
    now = judged(bad, after(bad, good, tmp_path / "h"))
    assert now.kind == "bad"
    assert now.words == f"7.3.4 um and 1 more: 1 new failure, 1 known issue hit, {number - 2} cells as before."


def test_the_verdict_says_what_failed_before_what_is_fixed_and_what_was_not_run(tmp_path: Path) -> None:
    earlier = read(tmp_path / "a", {"7.3 um": [BAD], "6.12 um": [BAD]})
    later = read(tmp_path / "b", {"7.3 um": [BAD], "6.12 um": [GOOD]})
    words = judged(later, after(later, earlier, tmp_path / "h")).words
    missing = len(seeded.cells()) - 2
    assert words.startswith("7.3.4 um: 1 failure as before, 1 fixed, 1 cell as before, ")
    assert words.endswith(f", {missing} of {missing + 2} cells not run.")


def test_a_cell_without_a_verdict_is_not_a_success(tmp_path: Path) -> None:
    data = read(tmp_path, {"6.12 um": [GOOD]}, {"7.3 um": "does not build"})
    found = judged(data, history.History())
    assert found.kind == "none"
    missing = len(seeded.cells()) - 2
    words = f"1 cell without a verdict, {missing} of {missing + 2} cells not run."
    assert found.words == f"7.3 um: nothing failed, 1 of 1 test passed, {words}"


def test_new_failures_come_first_then_cells_without_a_verdict_then_old_ones(tmp_path: Path) -> None:
    old, new = (results.Case("s", name, "failed", text=["it is 3"]) for name in ("old", "new"))
    earlier = read(tmp_path / "a", {"6.12 um": [old, results.Case("s", "new", "passed")]})
    data = read(tmp_path / "b", {"6.12 um": [old, new]}, {"7.3 um": "does not build"})
    found = failures.failures(data, after(data, earlier, tmp_path / "h"))
    assert [one.name for one in found] == ["s.new", "No verdict on 7.3 um", "s.old"]
    assert [one.new for one in found] == [["6.12 um"], None, []]
    first = failures.failures(data, history.History())
    assert [one.name for one in first] == ["s.old", "s.new", "No verdict on 7.3 um"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (["x: speed: slow", "x: EXPECTATION FAILED at a.c:1", "entry 3 is wrong", "more"], "entry 3 is wrong"),
        (["EXPECTATION FAILED at a.c:1", "Expected n > 0UL, but", "n == 0 (0x0)", "no folds"], "no folds"),
        (["ASSERTION FAILED at a.c:1", "Expected n == 3, but", "n == 0 (0x0)"], "Expected n == 3, but n == 0 (0x0)"),
        (["", "the kernel ended"], "the kernel ended"),
        ([], "no reason given"),
    ],
)
def test_the_reason_is_what_the_test_says_after_its_first_failed_check(said: list[str], reason: str) -> None:
    assert results.reason(said) == reason


def test_a_failure_of_a_known_issues_test_names_the_issue(tmp_path: Path) -> None:
    issue = next(issue for issue in known_issues.load() if issue.number == 1)
    suite, _, name = issue.tests[0].partition(".")
    cases = [results.Case(suite, f"{name}: 4", "failed", text=["it is 3"]), BAD]
    found = failures.failures(read(tmp_path, {"7.3 arm64 4K": cases}), history.History())
    assert [[one.number for one in failure.issues] for failure in found] == [[1], []]


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    case = results.Case("s", "a", "failed", text=["x" * 900] * 100)
    (failure,) = failures.failures(read(tmp_path, {"7.3 um": [case]}), history.History())
    assert re.fullmatch(r"and 20 more lines in runs/\S+-matrix-7\.3-um/7\.3-um\.log", failure.said[-1])
    assert len(failure.said) == 81 and len(failure.said[0]) == failures.LINE


def test_the_line_that_repeats_a_case_is_the_cells_own(tmp_path: Path) -> None:
    both = {"6.12 arm64 16K": [BAD], "7.3 arm64 4K selftests": [results.Case("folio_move", "f.c", "failed")]}
    found = {one.name: one.again for one in failures.failures(read(tmp_path, both), history.History())}
    assert found["s.a"] == "KERNEL=6.12 PAGES=16K ./tools/testing/kunit/kunit.py run --arch=arm64 's.a'"
    assert found["folio_move.f.c"].endswith("kselftest TARGETS=mm ARCH=arm64 TESTS='folio_move.f.c'")


def test_skips_are_sorted_by_the_tests_that_nothing_ran(tmp_path: Path) -> None:
    race = [results.Case("contpte_race", f"r{n}", "skipped", text=["needs two CPUs"]) for n in range(3)]
    here = results.Case("s", "here", "skipped", text=["needs luck"])
    lost = [results.Case("s", f"lost{n}", "skipped", text=["needs more"]) for n in range(2)]
    issue = results.Case("contpte", "young", "skipped", text=["known issue 1: young is lost"])
    data = read(
        tmp_path,
        {
            "7.3 arm64 4K": [*race, here, *lost, issue],
            "7.3 arm64 4K smp2": [results.Case("contpte_race", "r0", "passed")],
            "7.3 um": [results.Case("s", "here", "passed"), lost[0]],
        },
    )
    found = model.reasons(data, model.Tests.of(model.states(data.runs)))
    assert [(one.why, len(one.lost), len(one.some)) for one in found] == [
        ("Races need two CPUs; all other cases run faster on one.", 2, 1),
        ("Needs more", 2, 0),
        ("Needs luck", 0, 1),
    ]
    assert found[0].unskip == (
        "KERNEL=7.3 ./tools/testing/kunit/kunit.py run --arch=arm64 --qemu_args '-smp 2' '*_race*'"
    )
    assert [one.unskip for one in found[1:]] == ["", ""]


def test_known_issues_are_those_that_were_hit(tmp_path: Path) -> None:
    cases = [
        results.Case("contpte", "young", "skipped", text=["known issue 1: young is lost"]),
        results.Case("set_ptes", "pages", "passed", text=["pages: known issue 2 is stale: it holds"]),
        results.Case("set_ptes", "other", "skipped", text=["needs known issue 3"]),
    ]
    found = model.issues(read(tmp_path, {"7.3 um": cases}).runs)
    assert [(one.issue.number, one.met, one.stale) for one in found] == [
        (1, ["7.3 um: contpte.young"], []),
        (2, [], ["7.3 um: set_ptes.pages"]),
    ]


def test_a_test_counts_once_however_many_cells_have_it(tmp_path: Path) -> None:
    skip = results.Case("s", "b", "skipped", text=["x"])
    data = read(tmp_path, {"7.3 um": [GOOD, skip], "6.12 um": [BAD, skip], "7.3 x86_64": [GOOD]})
    tests = model.Tests.of(model.states(data.runs))
    assert (tests.passed, tests.failed, tests.skipped) == (set(), {"s.a"}, {"s.b"})
    assert tests.number == 2
    twice = read(tmp_path, {"7.3 um": [BAD, GOOD, skip, results.Case("s", "b", "passed")]})
    assert model.states(twice.runs) == {"7.3 um": {"s.a": "f", "s.b": "p"}}


def test_cells_that_were_not_run_are_squares_of_their_own(tmp_path: Path) -> None:
    columns, rows = heat.squares(read(tmp_path, {"7.3 arm64 4K": [BAD]}, {"7.3 um": "does not build"}))
    table = {(row, column): square for row, own in rows for column, square in zip(columns, own, strict=True)}
    assert table["7.3 arm64 4K", "plain"].kind == "failed" and table["7.3 arm64 4K", "plain"].mark == "✗ 1"
    assert table["7.3 um", "plain"].words == "no verdict: does not build"
    assert table["7.3 arm64 4K", "smp2"].kind == "missing" and table["7.3 um", "smp2"].kind == ""
    assert rows[0][0] in ("7.3 um", "7.3 arm64 4K"), "rows with a result come first"


def test_the_page_says_what_was_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "revision", lambda: "abc")
    data = read(tmp_path, {"7.3 arm64 4K": [GOOD], "6.12 um": [GOOD]})
    found = dict(verdict.identity(data))
    assert found == {
        "Kernel": "6.12.117, 7.3.4",
        "Source": "package 6.12.117-1~deb12u1, package 7.3.4-1~bpo13+1",
        "Compiler": "aarch64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0",
        "Emulator": "QEMU 7.2.22, User Mode Linux",
        "Time": progress.duration(sum(run.seconds for run in data.runs)),
        "mmcheck": "abc",
    }


def test_a_run_outside_of_the_cells_is_shown_as_recorded(tmp_path: Path) -> None:
    one = recorded(tmp_path, "7.3.4-arm64-4K", [GOOD], version="7.3.4", source="package 7.3.4-1", command="x")
    (run,) = Input(tmp_path).runs
    assert (run.name, run.version, run.source, run.command) == (one.name, one.version, one.source, one.command)
    assert (run.cases, run.state, run.spec) == ([GOOD], "passed", None)


def test_a_tree_has_its_commit_and_is_not_written_to(tmp_path: Path, tree: Path) -> None:
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-Af"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    (tree / "mm/memory.c").touch()
    before = (tree / ".git/index").stat().st_mtime_ns, (tree / ".git/index").read_bytes()
    assert identity.origin(Source(tree, "linux", False)) == f"tree linux, commit {commit[:7]}"
    assert before == ((tree / ".git/index").stat().st_mtime_ns, (tree / ".git/index").read_bytes())
    (tree / "mm/memory.c").write_text("int other;\n")
    assert identity.origin(Source(tree, "linux", False)).endswith("-dirty")
    assert identity.origin(Source(tmp_path / "linux-7.3.4-1~x", "7.3.4", True)) == "package 7.3.4-1~x"


def test_the_emulator_tells_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "qemu-system-aarch64"
    program.write_text("#!/bin/sh\necho 'QEMU emulator version 7.2.22 (Debian 1:7.2)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    identity.emulator.cache_clear()
    assert identity.emulator("arm64") == "QEMU 7.2.22"
    program.write_text("#!/bin/sh\nexit 1\n")
    identity.emulator.cache_clear()
    assert identity.emulator("arm64") == "qemu-system-aarch64"
    assert identity.emulator("um") == "User Mode Linux"
    identity.emulator.cache_clear()


def test_the_cells_of_make_check_are_cells_too(tmp_path: Path) -> None:
    recorded(tmp_path, "7.3.4-arm64-16K", [GOOD, BAD], cell="7.3 arm64 16K", name="7.3 arm64 16K")
    (run,) = Input(tmp_path).runs
    assert (run.name, run.state, run.cases) == ("7.3 arm64 16K", "failed", [GOOD, BAD])
    assert run.spec and run.command == run.spec.line({})
