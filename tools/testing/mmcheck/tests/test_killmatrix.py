# SPDX-License-Identifier: GPL-2.0
"""The kill matrix: the cases that reach a mutant, and the cases that notice it."""

import fnmatch
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mmcheck.boot import boot
from mmcheck.core.errors import UserError
from mmcheck.core.settings import from_environment
from mmcheck.kernel.source import Source
from mmcheck.mutants import catalogue, guest_judge, judge, killmatrix, matrix_run, mutated, reach, suite_matrix
from mmcheck.mutants.killmatrix import Matrix, Row
from mmcheck.run import record

from .test_record import files

TRACE = """\
[    1.0] # mmcheck_reached: 9
[    1.5] 1..2
[    2.0]     # Subtest: one
[    2.5] # mmcheck_reached: 1 2
[    2.5]     ok 1 a
[    4.5]     ok 2 b # SKIP needs two CPUs
[    4.6] # mmcheck_reached: 3
[    4.6] ok 1 one
[    5.0] # mmcheck_reached: 4
[    5.0]     # Subtest: two
[    5.1]         # Subtest: c
[    5.2] # mmcheck_reached: 5
[    5.2]         ok 1 param
[    5.3]     ok 1 c
[    5.3] ok 2 two
"""
KUNIT = """\
static void kunit_print_suite_start(struct kunit_suite *suite)
{
	start();
}

static void kunit_print_ok_not_ok(struct kunit *test)
{
	verdict();
}

int kunit_run_tests(struct kunit_suite *suite)
{
	int x;

	add_taint(TAINT_TEST, LOCKDEP_STILL_OK);
	return 0;
}
"""


def test_what_each_case_runs() -> None:
    found = reach.read(TRACE.splitlines())
    assert found.cases == ["one.a", "one.b", "two.c"] and found.ran == ["one.a", "two.c"]
    assert found.runs == [[1, 2, 3], [3], [4, 5]]  # the init and the exit of a suite belong to all its cases
    assert found.seconds == [0.5, 2.0, 0.3]
    assert found.reaching([5, 2]) == [0, 2] and not found.reaching([9])
    assert found.cost([1]) == 4.0


def test_cases_are_chosen_by_digits() -> None:
    assert reach.selection([0, 6, 7]) == "mmcheck_cases=1c"
    assert reach.selection([4]) == "mmcheck_cases=01"


def test_kunit_is_hooked_or_the_reason_is_one_line() -> None:
    text = reach.hooked(KUNIT)
    assert text.count("mmcheck_report();") == 2 and text.index("mmcheck_wanted") > text.index("add_taint")
    with pytest.raises(UserError, match="no kunit_run_tests"):
        reach.hooked(KUNIT.replace("kunit_run_tests", "run_tests"))


def test_what_was_traced_is_for_one_kernel(tmp_path: Path) -> None:
    found = reach.read(TRACE.splitlines())
    found.save(tmp_path / "reach", "mark")
    assert reach.Reach.load(tmp_path / "reach", "mark") == found
    assert reach.Reach.load(tmp_path / "reach", "other") is None


MATRIX = Matrix(
    "7.3.4-1",
    ["a.x", "a.y", "b.z", "c.z"],
    {
        "one": Row({"a.x": "failed", "b.z": "splat"}, 3),
        "two": Row({"a.x": "hang"}, 1, cut=True),
        "four": Row({"a.x": "failed"}, 2, spared=["c.z"]),
        "three": Row({}, 0),
        "same": Row({"a.y": "failed"}, 1),
    },
)


def test_the_matrix_is_kept(tmp_path: Path) -> None:
    MATRIX.save(tmp_path / "m.json")
    assert Matrix.load(tmp_path / "m.json") == MATRIX
    assert Matrix.load(tmp_path / "none.json") == Matrix()
    assert killmatrix.ranges([1, 3, 4, 5]) == "1 3-5" and killmatrix.places("1 3-5") == [1, 3, 4, 5]


def test_what_follows_from_the_matrix() -> None:
    same = catalogue.Mutant("same", "none", (), lambda _: {}, equivalent="because")
    found = killmatrix.findings(MATRIX, [same], {"a.*": "reads only"})
    assert found.unproven == {"a.y": "reads only", "c.z": ""}
    assert found.fragile == {"two": "a.x"}
    assert found.unnoticed == ["three"]
    assert found.idle == ["b", "c"]
    MATRIX.rows["two"].spared = ["b.z"]
    again = killmatrix.findings(MATRIX, [same], {})
    assert again.idle == ["a", "b", "c"] and again.fragile == {}  # b.z did not run, so its verdict is unknown
    MATRIX.rows["two"].spared = []
    said = "2 cases (50.0 %) notice no mutant; 2 of these cases have no reason in unproven.toml:"
    assert said in killmatrix.summary(MATRIX, [same])


def test_few_cases_are_unproven_and_each_has_a_reason() -> None:
    why, open_ones = killmatrix.reasons(), set()
    for path in killmatrix.FOLDER.glob("*.json"):
        matrix = killmatrix.Matrix.load(path)
        found = killmatrix.findings(matrix, catalogue.load(catalogue.FOLDER), why)
        assert len(found.unproven) <= len(matrix.cases) / 20, path.name
        assert [case for case, reason in found.unproven.items() if not reason] == [], path.name
        open_ones |= set(found.unproven)
    assert [glob for glob in why if not fnmatch.filter(open_ones, glob)] == [], "reasons without a case"


def test_the_name_of_the_file() -> None:
    assert killmatrix.file_of("7.3.4-1_bpo13_1", "arm64", "4K").name == "7.3-arm64.json"
    assert killmatrix.file_of("6.12.117-1", "arm64", "16K").name == "6.12-arm64-16K.json"


CONSOLE = """\
1..2
    # Subtest: one
    not ok 1 a
    ok 2 b # SKIP
WARNING: CPU: 0
    ok 3 c
not ok 1 one
"""


def test_a_boot_is_read_to_its_end() -> None:
    seen = suite_matrix.Seen()
    for line in [*CONSOLE.splitlines(), "reboot: Restarting system"]:
        seen.feed(line)
    assert seen.noticed == {"one.a": "failed", "one.c": "splat"}
    assert seen.done == ["one.a", "one.c"] and seen.ended


class Booted(judge.Session):
    """A session with a kernel whose output comes from a script."""

    def __init__(self, out: Path) -> None:
        self.settings = from_environment({"ARCH": "arm64", "O": str(out), "HOME": str(out)})
        self.label, self.folder, self.jobs = "linux", out, 1
        self.build = out
        cases = ["one.a", "one.b", "one.c", "two.d"]
        self.reach = reach.Reach(cases, [0.0] * 4, [[1], [1], [1], [2]], 0.1)
        self.noted = {"m": [1], "n": [7]}
        about = record.facts(matrix_run.KIND, out.name, label="linux", arch="arm64", pages="4K")
        self.recorder = record.Recorder(out, about)

    def fingerprint(self, kernel: mutated.Kernel) -> str:
        return "mark"


def consoles(monkeypatch: pytest.MonkeyPatch, *said: str) -> list[list[str]]:
    calls: list[list[str]] = []

    def lines(command: list[str], *_: object) -> list[str]:
        calls.append(command)
        return said[len(calls) - 1].splitlines()

    monkeypatch.setattr(boot, "lines", lines)
    return calls


MUTANT = catalogue.Mutant("m", "all", (), lambda _: {})
KERNEL = mutated.Kernel({"m": 5, "n": 6}, {})


def test_after_a_death_the_next_boot_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = "1..2\n    # Subtest: one\n    ok 1 a\nKernel panic - not syncing: oh\n"
    rest = "1..2\n    # Subtest: one\n    not ok 3 c\nnot ok 1 one\nreboot: Restarting\n"
    calls = consoles(monkeypatch, dead, rest)
    rows = matrix_run.run(Booted(tmp_path), [MUTANT], KERNEL)
    assert rows["m"].cases == {"one.b": "splat", "one.c": "failed"}
    assert rows["m"].reached == 3 and not rows["m"].cut
    assert ["mmcheck_cases=7" in " ".join(calls[0]), "mmcheck_cases=4" in " ".join(calls[1])] == [True, True]
    # The rows are in the record. A later run reads only the record.
    (content,) = files(tmp_path)
    assert content["data"]["all"]["rows"].keys() == {"m"}
    again = consoles(monkeypatch)
    assert matrix_run.run(Booted(tmp_path), [MUTANT], KERNEL) == rows and not again


def test_a_mutant_has_a_machine_and_words_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = "1..1\n    # Subtest: one\n    ok 1 a\n    ok 2 b\n    ok 3 c\nok 1 one\nreboot: Restarting\n"
    own = "1..1\n    # Subtest: two\n    not ok 1 d\nnot ok 1 two\nreboot: Restarting\n"
    calls = consoles(monkeypatch, usual, own)
    mutant = catalogue.Mutant("m", "all", (), lambda _: {}, suite="two", machine="-smp 2", kernel_args="rodata=off")
    assert matrix_run.run(Booted(tmp_path), [mutant], KERNEL)["m"].cases == {"two.d": "failed"}
    assert [("rodata=off" in " ".join(call), call[-2:] == ["-smp", "2"]) for call in calls] == [
        (False, False),
        (True, True),
    ]


def test_what_no_case_reaches_is_not_booted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = consoles(monkeypatch)
    rows = matrix_run.run(Booted(tmp_path), [catalogue.Mutant("n", "all", (), lambda _: {})], KERNEL)
    assert not calls and rows["n"].cases == {}


def test_a_mutant_that_cannot_be_switched_has_a_kernel_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    class Alone(Booted):
        def attempt(self, kernel: mutated.Kernel) -> bool:
            built.extend(kernel.number)
            assert kernel.files == {"lib/Makefile": b"usual", "a.h": b"macro"}
            return "bad" not in kernel.number

    quick = "1..1\n    # Subtest: one\n    ok 1 a\n    not ok 2 b\n    not ok 3 c\nnot ok 1 one\nreboot: Restarting\n"
    calls = consoles(monkeypatch, quick)
    session = Alone(tmp_path)
    session.reach.seconds[3] = suite_matrix.SLOW + 1
    own = [(catalogue.Mutant(name, "all", ("a.h",), lambda _: {}), {"a.h": "macro"}) for name in ("macro", "bad")]
    usual = mutated.Kernel({"m": 5}, {"lib/Makefile": b"usual", "m.c": b"other mutants"})
    rows = matrix_run.run_alone(session, own, usual)
    # The mutant is always enabled, and the functions that run are not known. So all cases run.
    assert "mmcheck_cases=7" in " ".join(calls[0]) and "mmcheck_mutant" not in " ".join(calls[0])
    assert rows == {"macro": Row({"one.b": "failed", "one.c": "failed"}, 4, False, rows["macro"].seconds, ["two.d"])}
    assert built == ["macro", "bad"] and len(calls) == 1
    assert matrix_run.run_alone(session, own[:1], usual) == rows and len(built) == 2  # the rows are reused


def test_two_runs_at_once_lose_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Matrix.load

    def slow(path: Path) -> Matrix:
        found = load(path)
        time.sleep(0.2)
        return found

    monkeypatch.setattr(killmatrix, "FOLDER", tmp_path)
    monkeypatch.setattr(Matrix, "load", slow)
    session = Booted(tmp_path)
    session.source = Source(tmp_path, "7.3.4", fixed=True)
    with ThreadPoolExecutor() as pool:
        paths = list(pool.map(lambda name: matrix_run.merge(session, {name: Row({}, 1)}), ("one", "two")))
    assert load(paths[0]).rows.keys() == {"one", "two"}


GUEST = """\
[   5.0] # mmcheck_reached:  1
[   5.1] # selftests: mm: folio_fork
[   5.2] ok 1 fork.case
[   7.1] # mmcheck_reached:  2 3
[   7.1] ok 1 selftests: mm: folio_fork
[   7.2] # selftests: mm: folio_file
[   9.2] not ok 2 selftests: mm: folio_file # exit=1
"""


def test_what_each_program_runs(tmp_path: Path) -> None:
    found = reach.read_programs(GUEST.splitlines())
    assert found.reaching([3]) == ["folio_fork"] and not found.reaching([1])
    assert found.runs == {"folio_fork": {2, 3}}
    assert found.seconds == {"folio_fork": 2.0, "folio_file": 2.0}
    (tmp_path / "log").write_text(GUEST)
    both = reach.Programs({"other": {1}}, {"other": 3.0})
    both.add(tmp_path / "log")
    assert both.runs == {"other": {1}, **found.runs} and both.seconds == {"other": 3.0, **found.seconds}


def test_a_slow_case_is_spared_what_others_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noticed = "1..2\n    # Subtest: one\n    not ok 1 a\n    not ok 2 b\n    not ok 3 c\nreboot: Restarting\n"
    slow = "1..2\n    # Subtest: two\n    not ok 1 d\nreboot: Restarting\n"
    session = Booted(tmp_path)
    session.noted = {"m": [1, 2], "same": [1, 2]}
    session.reach.seconds[3] = suite_matrix.SLOW + 1
    same = catalogue.Mutant("same", "all", (), lambda _: {}, equivalent="because")
    every, kernel = [same, MUTANT], mutated.Kernel({"m": 5, "same": 6}, {})
    calls = consoles(monkeypatch, noticed, noticed, slow)
    rows = matrix_run.run(session, every, kernel)
    # After two boots with the quick cases, two.d has noticed no mutant. So it runs, but not with an equivalent mutant.
    assert len(calls) == 3 and "mmcheck_cases=8" in " ".join(calls[2])
    assert rows["m"].cases["two.d"] == "failed" and not rows["m"].spared and rows["same"].spared == ["two.d"]
    assert not consoles(monkeypatch) and matrix_run.run(session, every, kernel) == rows
    # With other limits the old rows do not count.
    monkeypatch.setattr(suite_matrix, "ENOUGH", 9)
    again = consoles(monkeypatch, noticed, slow, noticed, slow)
    assert not matrix_run.run(session, every, kernel)["same"].spared and len(again) == 4


def test_a_slow_case_runs_where_few_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = "1..2\n    # Subtest: one\n    not ok 1 a\n    ok 2 b\n    ok 3 c\nreboot: Restarting\n"
    session = Booted(tmp_path)
    session.noted = {"m": [1, 2]}
    session.reach.seconds[3] = suite_matrix.SLOW + 1
    calls = consoles(monkeypatch, one, "1..2\n    # Subtest: two\n    ok 1 d\nreboot: Restarting\n")
    rows = matrix_run.run(session, [MUTANT], KERNEL)
    assert len(calls) == 2 and not rows["m"].spared and list(rows["m"].cases) == ["one.a"]


def test_a_flood_without_a_verdict_kills_the_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flood = "1..2\n    # Subtest: one\n    ok 1 a\n" + "noise\n" * (suite_matrix.FLOOD + 1) + "    ok 2 b\n"
    rest = "1..2\n    # Subtest: one\n    ok 3 c\nreboot: Restarting\n"
    consoles(monkeypatch, flood, rest)
    assert matrix_run.run(Booted(tmp_path), [MUTANT], KERNEL)["m"].cases == {"one.b": "splat"}


def test_the_limit_of_silence_is_that_of_the_running_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[float] = []

    def lines(*arguments: object) -> Iterator[str]:
        silence = arguments[3]
        assert callable(silence)
        for line in ["", "1..2", "    # Subtest: one", "    ok 1 a", "    ok 2 b"]:
            yield line
            said.append(silence())

    monkeypatch.setattr(boot, "lines", lines)
    session = Booted(tmp_path)
    session.reach.seconds = [1.0, 1.5, 0.5, 0.0]
    matrix_run.run(session, [MUTANT], KERNEL)
    limit = suite_matrix.SILENCE
    assert said[:5] == [limit + 4.1, limit + 4, limit + 4, limit + 6, limit + 2]


class BothBooted(guest_judge.BothSession):
    """A session with programs on two machines. The programs notice no mutant."""

    def __init__(self) -> None:
        self.noted = {"m": [1], "n": [7]}
        self.trace = reach.Programs({"a": {1, 2}, "b": {2}, "c": {1}, "d": {1}}, {"a": 9.0, "d": 2.0})
        self.ran: list[list[str]] = []

    def boots(self) -> list[list[str]]:
        return [["a", "b", "d"], ["c"]]

    def programs(self, mutant: catalogue.Mutant, number: int, names: Sequence[str]) -> boot.Verdict:
        self.ran.append(list(names))
        return boot.Verdict("passed", "", 1.0)


def test_survivors_go_on_to_the_selftests_that_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def survives(_: object, mutant: catalogue.Mutant, *__: object) -> judge.Result:
        return judge.Result(mutant.name, "survived")

    monkeypatch.setattr(judge.Session, "judge", survives)
    for number, early, ran in ((5, False, [["d", "a"], ["c"]]), (5, True, [["a", "b", "d"], ["c"]])):
        session = BothBooted()
        mutant = catalogue.Mutant("m", "all", (), lambda _: {}, early=early)
        assert session.judge(mutant, number, []).state == "survived" and session.ran == ran
    session = BothBooted()  # tests that noticed mutants of the same function run first, on their machine
    session.kernel = mutated.Kernel({"m": 5}, {}, {"m": [("mm/f.c", ("f", 0))]})
    session.hints = {("mm/f.c", "f"): ["suite", "c"], ("", "f"): ["a"]}
    assert session.judge(MUTANT, 5, []).state == "survived" and session.ran == [["a", "d"], ["c"]]
    session = BothBooted()  # no program reaches this mutant
    assert session.judge(catalogue.Mutant("n", "all", (), lambda _: {}), 6, []).state == "survived" and not session.ran
    session = BothBooted()  # this mutant has its own kernel
    assert session.judge(MUTANT, 0, []).state == "survived" and session.ran == [["a", "b", "d"], ["c"]]


def test_without_a_hint_the_best_test_of_either_kind_runs_first() -> None:
    session = BothBooted()
    session.kernel = mutated.Kernel({"m": 5}, {}, {"m": [("mm/f.c", ("f", 0))]})
    for hints in (["contpte", "folio_fork"], ["folio_fork", "contpte"]):
        session.hints = {("mm/f.c", "f"): hints}
        assert session.likely(MUTANT, "") == hints[:1]
    assert session.likely(MUTANT, "pte_bits") == ["pte_bits"]
