# SPDX-License-Identifier: GPL-2.0
"""The catalogue of mutants, kernels with mutants, and the verdicts from boots."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Container, Sequence
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.boot import boot
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT, from_environment
from mmcheck.kernel.source import Source
from mmcheck.mutants import catalogue, judge, mutated, reach, schemata
from mmcheck.mutants import main as mutants
from mmcheck.run import record, workspace

from .waiting import until

TEXT = "int f(int x)\n{\n\treturn x + 1;\n}\n\nint g(int x)\n{\n\treturn x + 1;\n}\n"
ENTRY = """\
[[mutant]]
name = "{name}"
file = "a.c"
in = "{function}"
old = "x + 1"
new = "x - 1"
harm = "all"
"""
PATCH = """\
Subject: f() forgets one
--- a/a.c
+++ b/a.c
@@ -1,4 +1,4 @@
 int f(int x)
 {
-\treturn x + 1;
+\treturn x;
 }
"""


def read(name: str) -> str:
    if name in ("a.c", "lib/Makefile"):
        return TEXT if name == "a.c" else "obj-y := x.o\n"
    raise FileNotFoundError(name)


def folder(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    return tmp_path


def test_an_added_line_that_looks_like_a_head_is_none(tmp_path: Path) -> None:
    text = "Subject: x\n--- a/a.c\n+++ b/a.c\n@@ -1,1 +1,2 @@\n int f(int x)\n+++ b/other.c\n"
    mutant = catalogue.patch(folder(tmp_path, x_patch=text) / "x.patch")
    assert mutant.paths == ("a.c",)
    assert (mutant.files(read) or {})["a.c"].startswith("int f(int x)\n++ b/other.c\n{\n")


def test_a_piece_of_one_function_is_replaced(tmp_path: Path) -> None:
    where = folder(tmp_path, a_toml=ENTRY.format(name="minus", function="g"))
    found, absent = catalogue.fitting(catalogue.load(where), read, "arm64")
    assert [dict(files) for _, files in found] == [{"a.c": TEXT[:45] + TEXT[45:].replace("x + 1", "x - 1")}]
    assert not absent


def test_what_is_not_in_the_tree_does_not_fit(tmp_path: Path) -> None:
    text = ENTRY.format(name="minus", function="h") + ENTRY.format(name="file", function="f").replace("a.c", "b.c")
    assert catalogue.fitting(catalogue.load(folder(tmp_path, a_toml=text)), read, "arm64") == ([], ["minus", "file"])


def test_the_first_of_a_name_that_fits_is_taken(tmp_path: Path) -> None:
    text = ENTRY.format(name="minus", function="h") + ENTRY.format(name="minus", function="f")
    found, absent = catalogue.fitting(catalogue.load(folder(tmp_path, a_toml=text)), read, "arm64")
    assert len(found) == 1 and not absent


def test_a_name_that_no_mutant_has_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("mutants", {"ONLY": "no_such_mutant"}) == 125
    assert "ONLY=no_such_mutant: no mutant in" in capsys.readouterr().err


def test_several_globs_choose_mutants() -> None:
    names = ["zap_one", "zap_two", "fold_one", "fold_two"]
    every = [catalogue.Mutant(name, "", (), lambda _: {}) for name in names]
    assert [m.name for m in every if mutants.chosen(m, "zap_*  fold_one")] == names[:3]
    assert [m.name for m in every if mutants.chosen(m, "*")] == names


def test_patches_are_mutants(tmp_path: Path) -> None:
    found, _ = catalogue.fitting(catalogue.load(folder(tmp_path, forget_patch=PATCH)), read, "arm64")
    assert found[0][0].harm == "f() forgets one"
    assert found[0][1]["a.c"].count("return x;") == 1


def test_an_empty_patch_is_a_mutant_that_changes_nothing(tmp_path: Path) -> None:
    found, absent = catalogue.fitting(catalogue.load(folder(tmp_path, empty_patch="")), read, "arm64")
    assert not absent
    assert mutated.combine(found, read).number == {"empty": 1}


def test_text_that_is_no_patch_does_not_fit(tmp_path: Path) -> None:
    _, absent = catalogue.fitting(catalogue.load(folder(tmp_path, words_patch="nothing of the kind\n")), read, "arm64")
    assert absent == ["words"]


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({}, "no \\*.patch"),
        ({"a_toml": "[[mutant]\n"}, "a.toml"),
        ({"a_toml": '[[mutant]]\nname = "x"\n'}, "mutant x needs file"),
        ({"a_toml": ENTRY.format(name="x", function="f") + 'oops = "y"\n'}, "mutant x has a field"),
    ],
)
def test_a_bad_catalogue_is_one_line(tmp_path: Path, files: dict[str, str], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        catalogue.load(folder(tmp_path, **files))


def test_entries_of_the_catalogue_say_what_they_must() -> None:
    assert all(mutant.harm for mutant in catalogue.load(catalogue.FOLDER))


def test_one_kernel_holds_them_all(tmp_path: Path) -> None:
    text = ENTRY.format(name="one", function="f") + ENTRY.format(name="two", function="g")
    found, _ = catalogue.fitting(catalogue.load(folder(tmp_path, a_toml=text)), read, "arm64")
    kernel = mutated.combine(found, read)
    merged = kernel.files["a.c"].decode()
    assert kernel.number == {"one": 1, "two": 2}
    assert merged.count(schemata.SWITCH + " ==") == 2
    line = merged.splitlines().index("\treturn x - 1;") + 1
    assert mutated.culprits(f"../../tree/a.c:{line}:9: error: no\n", kernel) == {"one"}
    assert kernel.files["lib/Makefile"].endswith(b"mmcheck_mutant.o\n")
    assert mutated.combine(found, read, ["one"]).number == {"two": 2}


def test_a_copy_that_the_build_made_leads_to_its_mutant(tmp_path: Path) -> None:
    text = ENTRY.format(name="one", function="f") + ENTRY.format(name="two", function="g")
    found, _ = catalogue.fitting(catalogue.load(folder(tmp_path, a_toml=text)), read, "arm64")
    kernel = mutated.combine(found, read)
    copy = kernel.files["a.c"].decode().replace("int g", "int generic_g").partition("int generic_g")[2]
    (tmp_path / "arch").mkdir()
    (tmp_path / "arch/copy.h").write_text(copy)
    line = copy.splitlines().index("\treturn x - 1;") + 1
    assert mutated.culprits(f"./arch/copy.h:{line}:9: error: no\n", kernel, tmp_path) == {"two"}
    inlined = f"b.c:1:2: error: assertion\n    inlined from 'h' at ./arch/copy.h:{line}:9:\n"
    assert mutated.culprits(inlined, kernel, tmp_path) == {"two"}


class Compiled(judge.Session):
    """A session with kernels that do not build with some mutants, and whose messages do not name these mutants."""

    def __init__(self, *bad: str) -> None:
        self.label, self.read, self.bad, self.build = "linux", read, bad, Path()
        self.tried = 0

    def attempt(self, kernel: mutated.Kernel) -> bool:
        self.tried += 1
        return not set(self.bad) & kernel.number.keys()

    def log(self) -> str:
        return "x.o: error: undefined reference\n"


def test_one_build_names_all_that_do_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Launch:
        def __init__(self, space: workspace.Workspace) -> None:
            asked.extend(space.spec.request.arguments)
            self.build = Path("/nonexistent")

        def run(self) -> int:
            raise UserError("linux does not build")  # the real Launch raises this error too

    monkeypatch.setattr(mutated, "Launch", Launch)
    monkeypatch.setattr(workspace.Workspace, "prepare", lambda _: None)
    session = judge.Session.__new__(judge.Session)
    session.settings, session.label = from_environment({"ARCH": "arm64"}), "linux"
    session.source = Source(Path(), "linux", True)
    assert not session.attempt(mutated.Kernel({}, {}))
    assert "--make_options=-k" in asked


@pytest.mark.parametrize("bad", [("m3",), ("m0", "m7")])
def test_a_bad_mutant_costs_itself_alone(tmp_path: Path, bad: tuple[str, ...]) -> None:
    text = "".join(ENTRY.format(name=f"m{number}", function="fg"[number % 2]) for number in range(8))
    found, _ = catalogue.fitting(catalogue.load(folder(tmp_path, a_toml=text)), read, "arm64")
    session = Compiled(*bad)
    kernel, broken = session.make(found)
    assert sorted(broken) == sorted(bad)
    assert kernel.number == {f"m{n}": n + 1 for n in range(8) if f"m{n}" not in bad}
    assert session.tried <= 1 + 6 * len(bad)


def test_a_kernel_that_does_not_build_without_mutants_is_one_line(tmp_path: Path) -> None:
    found, _ = catalogue.fitting(
        catalogue.load(folder(tmp_path, a_toml=ENTRY.format(name="m", function="f"))), read, ""
    )
    session = Compiled()
    session.attempt = lambda kernel: False  # type: ignore[method-assign]
    with pytest.raises(UserError, match="linux does not build"):
        session.make(found)


def test_what_changes_more_than_bodies_has_a_kernel_of_its_own(tmp_path: Path) -> None:
    patch = PATCH.replace(" int f(int x)\n", "-int f(int x)\n+long f(int x)\n")
    found, _ = catalogue.fitting(catalogue.load(folder(tmp_path, macro_patch=patch)), read, "arm64")
    usual = mutated.combine(found, read)
    assert not usual.number

    class Alone(Compiled):
        def judge(self, mutant: catalogue.Mutant, number: int, likely: Sequence[str]) -> judge.Result:
            return judge.Result(mutant.name, "failed", f"number {number}")

        def save(self, *_: object) -> None:
            pass

    assert Alone().judge_alone(found, usual) == [judge.Result("macro", "failed", "number 0")]
    bad = Alone()
    bad.attempt = lambda kernel: b"long f" not in kernel.files["a.c"]  # type: ignore[method-assign]
    assert [result.state for result in bad.judge_alone(found, usual)] == ["does not build"]


CONSOLE = {
    "passed": "1..1\n    # Subtest: s\n    ok 1 c\nok 1 s\n",
    "failed": "1..1\n    # Subtest: s\n    ok 1 b\n    not ok 2 c\n",
    "splat": "1..1\n    # Subtest: s\n    ok 1 b\n[    1.5] WARNING: CPU: 0\n    ok 2 c\nok 1 s\n",
    "hang": "1..1\n    # Subtest: s\n# pgtable_kunit: c: hang: 60 s\n",
    "none": "Booting\n",
}


@pytest.mark.parametrize("state", CONSOLE)
def test_a_console_is_judged(tmp_path: Path, state: str) -> None:
    (tmp_path / "console").write_text(CONSOLE[state])
    assert boot.follow(["cat", str(tmp_path / "console")], tmp_path / "log", 10).state == state


OOPS = "1..1\n    # Subtest: s\n    # c: running\nUnable to handle kernel paging request\nInternal error: Oops: 1\n"


@pytest.mark.parametrize(
    ("then", "state"),
    [
        ("    # c: try faulted\n    not ok 1 c\n", "failed"),
        ("    ok 1 c\nok 1 s\n", "splat"),
        ("Kernel panic - not syncing: Oops\n    not ok 1 c\n", "splat"),
        ("", "splat"),
    ],
)
def test_a_case_whose_thread_dies_has_failed_if_kunit_reports_it(tmp_path: Path, then: str, state: str) -> None:
    (tmp_path / "console").write_text(OOPS + then)
    verdict = boot.follow(["cat", str(tmp_path / "console")], tmp_path / "log", 10)
    assert verdict.state == state


def test_a_dead_kernel_has_some_seconds_for_its_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "LAST_WORDS", 0.5)
    (tmp_path / "console").write_text(OOPS)
    shell = ["sh", "-c", f"cat {tmp_path}/console; while sleep 0.1; do echo stall; done"]
    started = time.monotonic()
    assert boot.follow(shell, tmp_path / "log", 60).state == "splat"
    assert time.monotonic() - started < 20


def test_a_boot_ends_at_its_first_failure_or_its_time(tmp_path: Path) -> None:
    (tmp_path / "console").write_text(CONSOLE["failed"])
    started = time.monotonic()
    shell = ["sh", "-c", f"cat {tmp_path}/console; sleep 60"]
    verdict = boot.follow(shell, tmp_path / "log", 10)
    assert (verdict.state, verdict.where) == ("failed", "s.c")
    assert boot.follow(["sleep", "60"], tmp_path / "log", 0.5).state == "hang"
    assert time.monotonic() - started < 10


def test_only_survivors_without_a_reason_fail_the_command() -> None:
    known = judge.Result("a", "survived", argument="because")
    assert mutants.status([known, judge.Result("b", "failed")]) == 0
    assert mutants.status([known, judge.Result("b", "survived")]) == 1
    assert mutants.status([known, judge.Result("b", "false alarm")]) == 1
    assert "1 not noticed" in mutants.table([known])


def test_what_was_not_judged_is_no_success() -> None:
    noticed = judge.Result("a", "failed")
    for state in mutants.NOTHING:
        assert mutants.status([noticed, judge.Result("b", state)]) == 125
        assert mutants.status([judge.Result("b", state, argument="because"), noticed]) == 0
        assert mutants.status([judge.Result("b", state), judge.Result("c", "survived")]) == 1


class Judged(judge.Session):
    """A session without boots. A test notices every mutant, until the session is interrupted."""

    def __init__(self, out: Path, fails: str = "") -> None:
        self.settings = from_environment({"ARCH": "arm64", "O": str(out), "HOME": str(out)})
        self.source = Source(out, "linux", fixed=True)
        self.label, self.folder, self.jobs, self.fails = "linux", out, 1, fails
        self.recorder = None
        self.seen: list[str] = []

    def alone(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def again(self, mutants: Sequence[catalogue.Mutant], kernel: mutated.Kernel) -> list[judge.Result]:
        with self.recorded():
            return self.judge_all(mutants, kernel)

    def judge(self, mutant: catalogue.Mutant, number: int, likely: Sequence[str]) -> judge.Result:
        if mutant.name == self.fails:
            raise KeyboardInterrupt
        self.seen.append(mutant.name)
        return judge.Result(mutant.name, "failed", "s.c")


def test_the_suite_of_a_mutant_has_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def follow(command: Sequence[str], *_: object, **__: object) -> boot.Verdict:
        calls.append(" ".join(command))
        return boot.Verdict("passed", "", 0.0)

    monkeypatch.setattr(boot, "follow", follow)
    session = Judged(tmp_path)
    session.build = tmp_path
    own = catalogue.Mutant("m", "all", (), lambda _: {}, machine="-smp 2", kernel_args="rodata=off", early=True)
    for glob in ("two", ""):
        session.boot(own, 5, glob)
    assert ["rodata=off" in call and call.endswith("-smp 2") for call in calls] == [True, False]


@pytest.mark.parametrize(("early", "boots", "state"), [(False, 2, "passed"), (True, 1, "splat")])
def test_a_death_before_the_mutant_is_switched_on_says_nothing(
    early: bool, boots: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = [boot.Verdict("splat", "", 1.0), boot.Verdict("passed", "", 1.0)]
    left = iter(verdicts)
    monkeypatch.setattr(boot, "follow", lambda *_, **__: next(left))
    session = Judged(tmp_path)
    session.build = tmp_path
    assert session.boot(catalogue.Mutant("m", "", (), lambda _: {}, early=early), 5, "two").state == state
    assert len(list(left)) == len(verdicts) - boots


def test_a_kernel_that_dies_on_the_machine_of_its_suite_is_noticed(tmp_path: Path) -> None:
    session = Judged(tmp_path)
    session.boot = lambda mutant, number, glob, without=(): boot.Verdict("none" if glob else "passed", "", 1.0)  # type: ignore[method-assign]
    session.reach = reach.Reach(cases=["split.case"])
    mutant = catalogue.Mutant("m", "", (), lambda _: {}, suite="split", machine="-cpu other")
    assert judge.Session.judge(session, mutant, 1, ["split"]).state == "none"
    # If the kernel does not have the suite, the other suites decide.
    assert judge.Session.judge(session, mutant, 1, ["elsewhere"]).state == "survived"


def test_after_a_death_other_suites_may_fail(tmp_path: Path) -> None:
    session = Judged(tmp_path)
    states = {"one": "splat", "two": "passed", "three": "failed", "": "passed"}
    seen: list[str] = []

    def booted(mutant: catalogue.Mutant, number: int, glob: str, without: Container[str] = ()) -> boot.Verdict:
        seen.append(glob)
        if without:
            assert "one.case" in without
            return (
                boot.Verdict("failed", "one.other", 1.0)
                if "one.next" in without
                else boot.Verdict("hang", "one.next", 1.0)
            )
        return boot.Verdict(states[glob], f"{glob}.case", 1.0)

    session.boot = booted  # type: ignore[method-assign]
    session.reach = reach.Reach(cases=["one.c", "two.c", "three.c", "four.c"])
    session.near = lambda mutant: ["one", "two", "three", "four"]  # type: ignore[method-assign]
    mutant = catalogue.Mutant("m", "", (), lambda _: {})
    assert judge.Session.judge(session, mutant, 1, ["one"]) == judge.Result("m", "failed", "three.case", 3.0)
    assert seen == ["one", "two", "three"]
    states["three"] = "hang"
    states["four"] = "splat"
    assert judge.Session.judge(session, mutant, 1, ["one"]).state == "splat"
    # Then all cases run except the case that died. Each further death excludes one more case.
    session.reach = reach.Reach(cases=["one.c", "two.c"], runs=[[1], [1]])
    assert judge.Session.judge(session, mutant, 1, ["one"]).where == "one.other"


def test_after_an_interrupt_the_rest_is_judged(tmp_path: Path) -> None:
    own = [catalogue.Mutant(name, "all", (), lambda _: {}) for name in ("one", "two", "three")]
    kernel = mutated.Kernel({mutant.name: place for place, mutant in enumerate(own, 1)}, {"a.c": b"x"})
    with pytest.raises(KeyboardInterrupt):
        Judged(tmp_path, "two").again(own, kernel)
    boot.stop.clear()
    again = Judged(tmp_path)
    assert {result.name for result in again.again(own, kernel)} == {"one", "two", "three"}
    assert "one" not in again.seen and "two" in again.seen
    with again.recorded():
        again.end([judge.Result(mutant.name, "failed") for mutant in own], 0)
    (one,) = record.latest(tmp_path, ("mutants",))
    assert (one.state, one.data["unfinished"], len(one.data["mutants"])) == ("passed", "", 3)
    other = Judged(tmp_path)
    other.again(own, kernel)
    assert sorted(other.seen) == ["one", "three", "two"]
    changed = Judged(tmp_path, "one")
    with pytest.raises(KeyboardInterrupt):
        changed.again(own, mutated.Kernel(kernel.number, {"a.c": b"y"}))
    boot.stop.clear()
    assert len(Judged(tmp_path).again(own, kernel)) == 3


TWICE = """
import sys
from pathlib import Path

from mmcheck.boot import boot
from mmcheck.core import command
from mmcheck.mutants import catalogue, mutated
from mmcheck.tests.test_mutants import Judged


class Boots(Judged):
    def judge(self, mutant, number, likely):
        boot.follow(["sh", "-c", "echo $$ >begun; mv begun machine; exec sleep 100"], Path("log"), 100)


def body(environ):
    Boots(Path.cwd()).judge_all([catalogue.Mutant("one", "all", (), lambda _: {})], mutated.Kernel({"one": 1}, {}))
    return 0


sys.exit(command.run("mutants", body, {}))
"""


@pytest.mark.parametrize("numbers", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGHUP)])
def test_two_interrupts_in_a_row_leave_no_machine(tmp_path: Path, numbers: Sequence[signal.Signals]) -> None:
    path = os.pathsep.join([str(PROJECT / "tools/testing"), *filter(None, sys.path)])
    machine = tmp_path / "machine"
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, "-c", TWICE], cwd=tmp_path, env=environment, text=True) as child:
        try:
            until(machine.exists, child)
            for number in numbers:
                child.send_signal(number)
                time.sleep(0.2)
            assert child.wait(timeout=20) == 130
            with pytest.raises(ProcessLookupError):
                os.kill(int(machine.read_text()), 0)
        finally:
            child.kill()
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(int(machine.read_text()), signal.SIGKILL)
