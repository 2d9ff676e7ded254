# SPDX-License-Identifier: GPL-2.0
"""Parts of folio_walk that can run without a kernel under test."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mmcheck.boot.results import Case, Reader
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.dev import check
from mmcheck.run import walk
from mmcheck.run.cell import Cell

FOLDER = PROJECT / "tools/testing/selftests/mm"

PRINTER = """
#define main walk_main_of_the_selftest
#include "folio_walk.c"
#undef main

int main(void)
{
	static struct walk_step steps[128];
	uint32_t i;

	walk_psize = sysconf(_SC_PAGESIZE);
	walk = calloc(1, sizeof(*walk));
	walk->unit = 512;
	for (i = 0; i < walk_nr_calls; i++)
		steps[i] = (struct walk_step){ .call = i, .at = 16, .len = 16, .to = 64, .tolen = 16 };
	walk_print_program(stdout, 1, steps, walk_nr_calls);
	return 0;
}
"""
"""Prints, as a C program, a sequence that has each call once."""


def test_a_program_with_each_call_compiles_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "printer.c").write_text(PRINTER)
    sources = sorted(path for path in FOLDER.glob("folio_walk*.c") if path.name != "folio_walk.c")
    subprocess.run(["gcc", f"-I{FOLDER}", "-o", "printer", "printer.c", *sources], cwd=tmp_path, check=True)
    made = subprocess.run(["./printer"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert len(re.findall(r"^\tcase \d+:", made, re.MULTILINE)) >= 75
    (tmp_path / "made.c").write_text(made)
    strict = ["gcc", "-Wall", "-Wextra", "-Werror", "-c", "made.c"]
    done = subprocess.run(strict, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


JUDGE = """
#include <stdlib.h>
#include "folio_walk_audit.c"

struct walk *walk;
long walk_psize = 4096;
bool walk_verbose;

int main(int argc, char **argv)
{
	walk = calloc(1, sizeof(*walk));
	walk->unit = 16;
	walk->box[0].alive = walk->box[3].alive = 1;
	judge(argv[1], argc > 2);
	printf("%s %d", walk->verdict.rule, walk->known[27]);
	return 0;
}
"""
"""Judges the text of an audit of two processes, and prints the broken rule and whether known issue 27 was met."""

HEAD = "mm_audit: 5 mms, 1407 entries, 9120 folios, 1 violations\n"
HUGE = "mthp_nr_anon: large anonymous folios of this many pages: {}, expected {}, pfn {}\n"


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judge")
    (folder / "judge.c").write_text(JUDGE)
    left_out = ("folio_walk.c", "folio_walk_audit.c")
    sources = sorted(path for path in FOLDER.glob("folio_walk*.c") if path.name not in left_out)
    subprocess.run(["gcc", f"-I{FOLDER}", "-o", "judge", "judge.c", *sources], cwd=folder, check=True)
    return folder / "judge"


@pytest.mark.parametrize(
    ("issues", "text", "more", "said"),
    [
        ("27", HEAD, [], " 0"),
        ("27", HEAD + HUGE.format(9, 3, "10"), [], " 1"),
        ("27", HEAD + HUGE.format(3, 9, "10"), [], "audit-mthp_nr_anon 0"),
        ("27", HEAD + HUGE.format(9, 3, "8"), [], "audit-mthp_nr_anon 0"),
        ("8", HEAD + HUGE.format(9, 3, "10"), [], "audit-mthp_nr_anon 0"),
        ("27", HEAD + HUGE.format(9, 3, "10") + "rss: anonymous pages: 1, expected 2\n", [], "audit-rss 1"),
        ("27", HEAD.replace("5 mms", "1 mms"), [], "audit-error 0"),
        ("27", HEAD.replace("5 mms", "1 mms"), ["quiet"], " 0"),
        ("27", "", [], "audit-error 0"),
    ],
)
def test_known_issue_27_is_the_only_violation_that_the_walk_accepts(
    judge: Path, issues: str, text: str, more: list[str], said: str
) -> None:
    done = subprocess.run([judge, text, *more], env={"ISSUES": issues}, check=True, capture_output=True, text=True)
    assert done.stdout == said


@pytest.mark.parametrize("emulated", [True, False])
def test_a_machine_that_does_not_start_under_kvm_is_emulated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, emulated: bool
) -> None:
    tried: list[bool] = []

    class Boot:
        def __init__(self, _launch: object, log: Path, *, words: object, kvm: bool) -> None:
            self.kvm = kvm
            tried.append(kvm)
            log.write_text("# 1 lives\n")

        def run(self, *_: object) -> Iterator[Case]:
            if emulated and not self.kvm:
                yield Case("folio_walk", "seed_7", "passed")

    monkeypatch.setattr(walk, "Boot", Boot)
    session: Any = SimpleNamespace(
        folder=tmp_path, consoles=[], words=(), kvm=True, launch=SimpleNamespace(label="7.3.4")
    )
    if emulated:
        assert walk.one(session, {}, 7, 60, "").passed
    else:
        with pytest.raises(UserError, match="ended before the first call"):
            walk.one(session, {}, 7, 60, "")
    assert tried == [True, False]


DIES = """\
[    1.5] # selftests: mm: folio_walk
[    1.6] # 75 of 81 calls; left out: force_write (needs forced writes to /proc/self/mem)
[    1.7] # seed 7
[    1.7] # 0: process 0: write pages 1-2 value 5
[    2.7] # seed 8
[    2.8] # 0: process 0: fork process 1 9
[    2.8] # 1: process 1: write pages 3-4 value 6
[    2.9] Unable to handle kernel paging request at virtual address 8
[    2.9] Kernel panic - not syncing: Oops: Fatal exception
"""
GOES_ON = """\
[    1.5] # selftests: mm: folio_walk
[    1.6] # 75 of 81 calls; left out: force_write (needs forced writes to /proc/self/mem)
[    1.7] # seed 9
[    1.7] # 0: process 0: write pages 1-2 value 7
[    9.9] # 1 lives, 1 steps, 9 checks, 100 steps/s
[    9.9] ok 1 seed_9
[    9.9] ok 1 selftests: mm: folio_walk
"""


def session_in(folder: Path) -> Any:
    return SimpleNamespace(folder=folder, consoles=[], words=(), kvm=False, launch=SimpleNamespace(label="7.3.4"))


def boots(monkeypatch: pytest.MonkeyPatch, *consoles: str) -> list[str]:
    """Let each boot print one of `consoles`; returns the lines that the boots run."""
    given: list[str] = []
    left = list(consoles)

    class Boot:
        def __init__(self, _launch: object, log: Path, **_: object) -> None:
            self.log = log

        def run(self, lines: list[str], _files: object) -> Iterator[Case]:
            given.extend(lines)
            self.log.write_text(left.pop(0))
            reader = Reader()
            reader.due = 1
            for line in self.log.read_text().splitlines():
                yield from reader.feed(line)
            yield from reader.close("the kernel ended or hung")

    monkeypatch.setattr(walk, "Boot", Boot)
    return given


def test_if_the_kernel_dies_the_next_boot_continues_with_the_next_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = boots(monkeypatch, DIES, GOES_ON)
    clock = iter([100.0, 110.0, 110.0, 160.0])
    found = walk.whole_walk(session_in(tmp_path), {}, 7, 60, "--keep-going", lambda: next(clock))
    assert [line.split("--verbose ")[1] for line in given] == [
        "--seed 7 --seconds 60 --keep-going",
        "--seed 9 --seconds 50 --keep-going",
    ]
    assert [one.passed for one in found] == [False, True]
    assert walk.report(found, tmp_path, "./mmcheck walk") == 1
    said = capsys.readouterr()
    assert "seed 8 ended the kernel in step 1: Oops: Fatal exception\n" in said.out
    assert "# 0: process 0: fork process 1 9\n# 1: process 1: write pages 3-4 value 6\n" in said.out
    assert "value 5" not in said.out and "value 7" not in said.out
    assert said.out.count("# seed ") == 1
    assert "next: ./mmcheck walk SEED=8\n" in said.err
    assert "1 machines passed, 1 failed" in said.err


def test_a_verdict_keeps_only_the_steps_of_the_last_life(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    boots(monkeypatch, DIES)
    (case,) = walk.one(session_in(tmp_path), {}, 7, 60, "").cases
    assert case.state == "failed"
    assert (
        "1: process 1: write pages 3-4 value 6" in case.text
        and "Kernel panic - not syncing: Oops: Fatal exception" in case.text
    )
    assert "0: process 0: write pages 1-2 value 5" not in case.text


def test_deaths_end_with_the_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = boots(monkeypatch, DIES, DIES, DIES)
    clock = iter([100.0, 159.5, 159.5, 161.0])
    assert len(walk.whole_walk(session_in(tmp_path), {}, 7, 60, "", lambda: next(clock))) == 2
    assert given[1].endswith("--seed 9 --seconds 1")


def test_a_boot_without_a_life_does_not_hide_an_earlier_death(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    boots(monkeypatch, DIES, "")
    (found,) = walk.whole_walk(session_in(tmp_path), {}, 7, 60, "")
    assert found.died and "ended before the first call" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "lines"), [("", "CONFIG_MM_AUDIT=y"), ("1", "CONFIG_MM_AUDIT=y"), ("no", "")])
def test_the_kernel_of_a_walk_has_the_auditor(monkeypatch: pytest.MonkeyPatch, given: str, lines: str) -> None:
    asked: list[dict[str, str]] = []

    def session_of(environ: dict[str, str], _repeat: str) -> Any:
        asked.append(environ)
        return SimpleNamespace(words=[])

    monkeypatch.setattr(walk, "session_of", session_of)
    walk.session_for({"AUDIT": given, "ARCH": "arm64"})
    assert [(one["KCONFIG_ADD"], one["AUDIT"]) for one in asked] == [(lines, "")]


def test_make_check_names_each_seed_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def checked(environ: dict[str, str], seed: int) -> tuple[list[walk.Walk], str]:
        assert (environ["ARCH"], environ["KERNEL"], environ["AUDIT"]) == ("arm64", "6.12", "")
        bad = [f"# seed {seed} fails in step 3: signal: write of page 4", "#   0: process 0: write pages 4-4 value 1"]
        return [
            walk.Walk(1, ["# 9 lives"], [Case("folio_walk", "seed_1", "passed")]),
            walk.Walk(seed, bad, [Case("folio_walk", f"seed_{seed}", "failed")]),
        ], "./mmcheck walk"

    monkeypatch.setattr(walk, "checked", checked)
    monkeypatch.setattr("mmcheck.dev.check.secrets.randbelow", lambda _: 42)
    tally = check.Tally()
    check.walks(tally, Cell("6.12", "arm64", selftests=True), tmp_path)
    assert (tally.passed, tally.failures) == (1, ["6.12 arm64 4K walk: seed_1042"])
    said = capsys.readouterr()
    assert "random seed 1042" in said.err and "next: ./mmcheck walk SEED=1042" in said.err
    assert "#   0: process 0: write pages 4-4 value 1" in said.out and "9 lives" not in said.out


def test_a_failure_that_does_not_repeat_is_printed_and_does_not_fail_make_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = walk.Walk(5, ["# seed 5 fails in step 3: signal: x"], [Case("folio_walk", "seed_5", "failed")], once=True)
    monkeypatch.setattr(walk, "checked", lambda _environ, _seed: ([bad], "./mmcheck walk"))
    tally = check.Tally()
    check.walks(tally, Cell("6.12", "arm64", selftests=True), tmp_path)
    assert (tally.passed, tally.failures) == (0, [])
    assert tally.skips == ["6.12 arm64 4K walk: seed_5: failed, but not again with SEED=5; see its steps above"]
    said = capsys.readouterr()
    assert "seed 5 fails in step 3" in said.out and "next: ./mmcheck walk SEED=5" in said.err


@pytest.mark.parametrize("again", [True, False])
def test_a_life_that_fails_gets_a_second_boot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, again: bool) -> None:
    passed = walk.Walk(1, [], [Case("folio_walk", "seed_1", "passed")])
    failed = walk.Walk(9, [], [Case("folio_walk", "seed_9", "failed")])
    boots = [failed, failed if again else replace(failed, cases=passed.cases)]
    session = session_in(tmp_path)
    session.recorded = contextlib.nullcontext
    session.build = lambda _names: {}
    session.settings = SimpleNamespace(out=tmp_path)
    session.save = lambda _cases: None
    session.launch.repeat = "./mmcheck walk"
    monkeypatch.setattr(walk, "session_for", lambda _environ: session)
    monkeypatch.setattr("mmcheck.run.walk.guest.disk", lambda path: path)
    monkeypatch.setattr(walk, "whole_walk", lambda *_: [passed])
    monkeypatch.setattr(walk, "one", lambda *_: boots.pop(0))
    found, _ = walk.checked({}, 9)
    assert [(one.passed, one.once) for one in found] == [(True, False), (False, not again)]
    assert not boots


def test_a_walk_without_a_verdict_fails_make_check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def checked(*_: object) -> None:
        raise UserError("linux 6.12 ended before the first call")

    monkeypatch.setattr(walk, "checked", checked)
    tally = check.Tally()
    check.walks(tally, Cell("6.12", "arm64", selftests=True), tmp_path)
    assert (tally.passed, tally.failures) == (0, ["6.12 arm64 4K walk"])


def test_make_check_walks_a_minute_and_one_random_life(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    passes = GOES_ON.replace("seed 9", "seed 1").replace("seed_9", "seed_1")
    given = boots(monkeypatch, passes, GOES_ON)
    saved: list[Case] = []
    session = session_in(tmp_path)
    session.recorded = contextlib.nullcontext
    session.build = lambda _names: {}
    session.settings = SimpleNamespace(out=tmp_path)
    session.save = saved.extend
    session.launch.repeat = "./mmcheck walk"
    monkeypatch.setattr(walk, "session_for", lambda _environ: session)
    monkeypatch.setattr("mmcheck.run.walk.guest.disk", lambda path: path)
    found, _ = walk.checked({}, 9)
    assert [line.split("--verbose ")[1] for line in given] == ["--seed 1 --seconds 60", "--seed 9 --seconds 0"]
    assert [case.full for case in saved] == ["folio_walk.seed_1", "folio_walk.seed_9"]
    assert all(one.passed for one in found)


STAYS = """\
[    1.5] # selftests: mm: folio_walk
[    1.7] # seed 7
[    1.7] # seed 7 fails in step 3: audit-rss: rss: anonymous pages: 3, expected 2
[    1.8] # seed 7, 0 steps again
[    1.8] # the violation stays after the life, so the walk ends; see all steps
[    9.9] not ok 1 seed_7
[    9.9] not ok 1 selftests: mm: folio_walk # exit=1
"""


@pytest.mark.parametrize(("more", "seeds"), [("", [7]), (walk.KEEP, [7, 8])])
def test_if_a_violation_stays_another_boot_continues(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: str, seeds: list[int]
) -> None:
    boots(monkeypatch, STAYS, GOES_ON.replace("seed 9", "seed 8").replace("seed_9", "seed_8"))
    found = walk.whole_walk(session_in(tmp_path), {}, 7, 60, more)
    assert [one.seed for one in found] == seeds
    assert found[0].places == ["audit-rss:"] and not found[0].passed and not found[0].died
