# SPDX-License-Identifier: GPL-2.0
"""The plugin reports each illegal sequence of the program without Linux by its rule, and no legal sequence."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from mmcheck.boot import results
from mmcheck.core.errors import FAILED, NO_VERDICT, PASSED, UserError
from mmcheck.kernel import toolchain
from mmcheck.mutants import catalogue
from mmcheck.run import selftests, session
from mmcheck.run.selftests import Program
from mmcheck.tlb import binary, build, cost, judge, main, programs, qemu, reports, symbols
from mmcheck.tlb.boots import Machine

from .test_record import files

BARE = (
    *("-O1", "-Wall", "-Wextra", "-Werror", "-Wno-parentheses", "-march=armv8.4-a", "-mgeneral-regs-only"),
    *("-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-omit-frame-pointer"),
    *("-fno-tree-loop-distribute-patterns", "-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments"),
)
"""The options of the compiler for the program without Linux."""

CACHE = Path.home() / ".cache/mmcheck"
RULES = re.findall(r'\[RULE_\w+\] = "([a-z-]+)"', (build.HERE / "plugin/rules.c").read_text())


@pytest.fixture(scope="module")
def emulator() -> Path:
    compiler = f"{toolchain.cross_prefix('arm64')}gcc"
    for program in ("gcc", compiler):
        if not shutil.which(program):
            pytest.skip(f"no {program}")
    try:
        return qemu.provide(CACHE)
    except UserError as error:
        pytest.skip(f"no QEMU {qemu.OLDEST}: {error}")


KINDS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "4K": (["PAGE_SHIFT=12"], []),
    "16K": (["PAGE_SHIFT=14"], []),
    "64K": (["PAGE_SHIFT=16"], []),
    "4K, LPA2": (["PAGE_SHIFT=12", "LPA2"], []),
    "16K, LPA2": (["PAGE_SHIFT=14", "LPA2"], []),
    "4K, BBM level 3": (["PAGE_SHIFT=12"], ["bbm=3"]),
}
"""The boots of the program without Linux: the definitions for the compiler, and the arguments of the plugin."""


@pytest.fixture(scope="module", params=KINDS)
def verdicts(emulator: Path, tmp_path_factory: pytest.TempPathFactory, request: Any) -> dict[str, set[str]]:
    """For each case, the rules that reported it. Reports outside of cases are under ""."""
    definitions, given = KINDS[request.param]
    out = tmp_path_factory.mktemp("tlb")
    program, prefix = out / "bare.elf", toolchain.cross_prefix("arm64")
    options = [*BARE, *(f"-D{one}" for one in definitions)]
    sources = (build.HERE / "bare").glob("*.[cS]")
    subprocess.run([f"{prefix}gcc", *options, "-T", build.HERE / "bare/bare.lds", "-o", program, *sources], check=True)
    named = subprocess.run([f"{prefix}nm", program], capture_output=True, text=True, check=True)
    known = symbols.Symbols(named.stdout.splitlines())
    found: dict[str, set[str]] = {name: set() for name in known.names if name.startswith("case_")}
    machine = Machine(emulator, build.plugin(out), out, given=given)
    reported, counts, seconds = machine.run(program, "", known)
    assert counts["eret"] >= len(found) and seconds < 60
    for one in reported:
        places = [place.partition("+")[0] for place in [*one.store, *one.event]]
        case = next((place for place in places if place.startswith("case_")), "")
        found.setdefault(case, set()).add(one.rule)
    return found


def legal(bbm: bool) -> set[str]:
    """The rules that report nothing: on CPUs with BBM level 3, a translation may change its size in place."""
    return {"silent", "break-before-make-size"} if bbm else {"silent"}


def test_each_case_gets_its_verdict(verdicts: dict[str, set[str]], request: pytest.FixtureRequest) -> None:
    assert len(verdicts) > 65
    bbm = "BBM" in request.node.callspec.params["verdicts"]
    for case, rules in verdicts.items():
        assert case, f"reports outside of cases: {rules}"
        wanted = case.removeprefix("case_").partition("__")[0].replace("_", "-")
        assert rules == (set() if wanted in legal(bbm) else {wanted}), case


def test_each_rule_has_a_case_and_a_paragraph(verdicts: dict[str, set[str]], request: pytest.FixtureRequest) -> None:
    assert len(RULES) == 10
    bbm = "BBM" in request.node.callspec.params["verdicts"]
    assert set().union(*verdicts.values()) == set(RULES) - legal(bbm)
    text = (build.HERE.parents[3] / "Documentation/mmcheck/tlb.rst").read_text()
    assert [rule for rule in RULES if f"\n{rule}\n" not in text] == []


def test_a_symbol_is_found_by_its_address() -> None:
    known = symbols.Symbols(["0000000000001000 T free_pages", "0000000000001100 t exit_mmap", "0000000000001200 d x"])
    assert [known.name(at) for at in (0x1000, 0x1104, 0x900)] == ["free_pages+0x0", "exit_mmap+0x4", "0x900"]
    assert known.hooks() == "learn_address 1000\nexit_mmap 1100\n"


def test_a_suppression_needs_a_reason(tmp_path: Path) -> None:
    assert reports.suppressions()
    table = tmp_path / "table.toml"
    table.write_text('[[suppression]]\nrule = "missing-dsb"\nwhy = ""\n')
    with pytest.raises(UserError, match="needs a reason"):
        reports.suppressions(table)


def test_a_mistake_changes_only_its_functions(tmp_path: Path) -> None:
    words = {"before": 0xD5033B9F, "tlbi": 0xD50883A5, "dsb": 0xD5033B9F, "call": 0x97FFFFFE, "after": 0xD50883A5}
    image, changed = tmp_path / "Image", tmp_path / "changed"
    image.write_bytes(b"".join(word.to_bytes(4, "little") for word in words.values()))
    known = symbols.Symbols(["1000 T _text", "1004 T f", "1010 T g", "1014 T end"])
    for change, calls, place, new in (
        ("drop every TLBI", "*", 1, binary.NOP),
        ("TLBI of address 0", "*", 1, 0xD50883BF),
        ("drop the DSB after", "*", 2, binary.NOP),
        ("DSB of stores after", "*", 2, binary.DSB_ISHST),
        ("drop each call", "f*", 3, binary.NOP),
    ):
        assert binary.Mistake("x", ("f",), change, "*", calls=calls).apply(image, known, changed) == 1
        found = [int.from_bytes(changed.read_bytes()[at : at + 4], "little") for at in range(0, 20, 4)]
        assert found == [new if at == place else word for at, word in enumerate(words.values())]
    assert binary.Mistake("x", ("f",), "drop each call", "*", calls="nothing").apply(image, known, changed) == 0


def test_the_mistakes_are_many_and_have_different_names() -> None:
    names = [one.name for one in binary.load()]
    assert len(names) == len(set(names)) >= 20


def test_each_source_mistake_names_a_suite_or_a_selftest() -> None:
    mutants = catalogue.load(judge.FOLDER)
    programs = {program.name for program in selftests.programs()}
    assert len({one.name for one in mutants}) >= 30
    for one in mutants:
        assert bool(one.suite) != bool(one.program), one.name
        assert not one.program or one.program in programs, one.name


@pytest.mark.parametrize(
    ("states", "status"),
    [
        (["reported", "silent", "does not fit"], PASSED),
        (["reported", "survived"], FAILED),
        (["reported", "wrongly reported"], FAILED),
        (["reported", "unknown"], NO_VERDICT),
    ],
)
def test_the_verdicts_decide_the_status(states: list[str], status: int) -> None:
    assert judge.summary([judge.Verdict(state, state, []) for state in states]) == status


@pytest.mark.parametrize(
    ("states", "status"), [(["noticed", "survived"], PASSED), (["noticed", "unknown", "survived"], NO_VERDICT)]
)
def test_without_the_plugin_survivors_are_only_counted(
    states: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge.counted([judge.Verdict(state, state, []) for state in states]) == status
    assert "1 noticed" in capsys.readouterr().out


def test_an_image_has_no_selftest_to_run_without_the_plugin(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"PLUGIN=no: .* leave out IMAGE="):
        judge.run({"IMAGE": __file__, "PLUGIN": "no", "O": str(tmp_path)})


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        (["passed", "failed", "passed"], ("noticed", ["tlb_stale.case 1"])),
        (["passed", "skipped"], ("survived", [])),
        (["skipped"], ("unknown", [])),
        ([], ("unknown", [])),
    ],
)
def test_without_the_plugin_a_failed_case_notices(
    states: list[str], verdict: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(*_: object) -> Iterator[results.Case]:
        yield from (results.Case("tlb_stale", f"case {at}", state) for at, state in enumerate(states))

    monkeypatch.setattr(session.Boot, "__init__", lambda *_: None)
    monkeypatch.setattr(session.Boot, "run", ran)
    builder = object.__new__(judge.Observed)
    builder.machine, builder.launch = Machine(Path("qemu"), None, tmp_path), cast("Any", None)
    builder.every, builder.files = {judge.STALE: selftests.Program(judge.STALE, ())}, {}
    found = builder.judge(catalogue.load(judge.FOLDER)[0], 1)
    assert (found.state, found.rules) == verdict


def test_a_known_survivor_passes() -> None:
    assert judge.summary([judge.Verdict("x", "survived", [], why="a reason")]) == PASSED


@pytest.mark.parametrize("other", ["IMAGE", "ONLY", "CPUS", "COMPARE"])
def test_selftests_have_their_own_machine(other: str) -> None:
    value = {"IMAGE": __file__, "CPUS": "2"}.get(other, "1")
    given = {"TESTS": "tlb_stale", other: value}
    with pytest.raises(UserError, match=f"{other}= has no effect with TESTS=|with IMAGE= use APPEND="):
        main.judge_variables(given)
    main.judge_variables({"TESTS": "tlb_stale"})


def test_a_program_has_its_own_machine(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="CPUS= has no effect with COMMAND="):
        main.judge_variables({"COMMAND": "ls", "CPUS": "2"})
    with pytest.raises(UserError, match="TESTS= or COMMAND=, not both"):
        main.judge_variables({"COMMAND": "ls", "TESTS": "tlb_stale"})
    main.judge_variables({"COMMAND": "ls"})


def test_a_line_runs_in_the_machine_of_the_selftests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(
        session: programs.WatchedRun, wanted: list[Program], every: list[Program], files: dict[str, Path], _: float
    ) -> list[results.Case]:
        ran.append((wanted, files["cat"].read_text()))
        return [results.Case("cat", "", "passed")]

    monkeypatch.setattr(programs.WatchedRun, "kernel", lambda _: None)
    monkeypatch.setattr(programs.WatchedRun, "run", run)
    session = object.__new__(programs.WatchedRun)
    session.folder, session.boots = tmp_path, []
    found, counts, cases = session.watch_line("cat /proc/meminfo")
    assert (found, counts, len(cases)) == ([], {}, 1)
    assert ran == [([Program("cat")], "#!/bin/sh\ncat /proc/meminfo\n")]


def test_an_unknown_selftest_is_refused() -> None:
    with pytest.raises(UserError, match="no such test"):
        main.judge_variables({"TESTS": "no_such_program"})


def test_costs_are_printed_side_by_side() -> None:
    text = cost.text({"with": cost.Cost(30.0, 28.0, 900.0), "without": cost.Cost(20.0, 14.0, 600.0)})
    assert [line.split()[-3:] for line in text.splitlines()[1:]] == [
        ["30.0", "20.0", "1.50"],
        ["28.0", "14.0", "2.00"],
        ["900.0", "600.0", "1.50"],
    ]


def test_a_boot_without_the_plugin_has_no_option_of_it(tmp_path: Path) -> None:
    machine = Machine(Path("qemu"), None, tmp_path, more=["-cpu", "neoverse-n1"])
    assert "-plugin" not in machine.command(Path("Image"), "", symbols.Symbols())
    watched = replace(machine, plugin=Path("tlb.so")).command(Path("Image"), "", symbols.Symbols())
    assert watched[watched.index("-plugin") + 1].startswith(f"tlb.so,out={tmp_path}/raw.json,ram=40000000:40000000")
    assert watched[-4:-2] == ["-cpu", "neoverse-n1"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("[ 1.0] Kernel panic - not syncing: no init\n", "the kernel died: no init"),
        ("KTAP version 1\n1..1\n    # Subtest: a\n", "no suite ran to its end"),
        ("KTAP version 1\n1..2\n    # Subtest: a\nok 1 a\n    # Subtest: b\n", "only 1 of 2 suites ran to their end"),
    ],
)
def test_a_boot_that_shows_nothing_has_no_verdict(tmp_path: Path, said: str, why: str) -> None:
    (tmp_path / "console").write_text(said)
    with pytest.raises(UserError, match=why):
        main.judged(tmp_path / "console", ours=True)


@pytest.fixture
def stubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a user with an image. The emulator writes one report and the console of one suite."""

    def boot(
        machine: Machine, image: Path, *_: object, **__: object
    ) -> tuple[list[reports.Report], dict[str, int], float]:
        (tmp_path / "booted").write_text(f"{image.read_text()}\n")
        (machine.out / "console").write_text("KTAP version 1\n1..1\n    # Subtest: a\n    ok 1 b\nok 1 a\n")
        raw = {"rule": "missing", "asid": -1, "va": 0, "level": 3, "cpu": 0, "old": 0, "new": 0}
        counts = {"table_stores": 1, "tlbi": 0, "dsb": 0, "dropped": 0}
        return [reports.Report("missing", "no TLBI", 1, raw, ["f"], ["g"])], counts, 1.0

    (tmp_path / "Image").write_text("image")
    (tmp_path / "System.map").write_text("ffff T f\n")
    monkeypatch.setattr(Machine, "run", boot)
    monkeypatch.setattr(toolchain, "provide", lambda _: None)
    monkeypatch.setattr(qemu, "provide", lambda _: Path("qemu"))
    monkeypatch.setattr(build, "plugin", lambda out: out.mkdir(parents=True, exist_ok=True) or out / "tlb.so")
    return {"O": str(tmp_path / "out"), "IMAGE": str(tmp_path / "Image"), "HOME": str(tmp_path)}


def test_the_record_has_the_report(tmp_path: Path, stubbed: dict[str, str]) -> None:
    assert main.run(stubbed) == FAILED
    (content,) = files(tmp_path / "out")
    assert (content["kind"], content["state"], content["source"]) == ("tlb", "failed", f"file {tmp_path / 'Image'}")
    assert [one["rule"] for one in content["data"]["reports"]] == ["missing"] and content["logs"] == ["console"]
    assert content["command"].endswith(f" IMAGE={tmp_path / 'Image'}")


def test_a_boot_that_died_is_recorded_without_a_verdict(
    tmp_path: Path, stubbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(machine: Machine, *_: object, **__: object) -> cost.Outcome:
        (machine.out / "console").write_text("[ 1.0] Kernel panic - not syncing: no init\n")
        return [], {"table_stores": 1, "tlbi": 0, "dsb": 0, "dropped": 0}, 1.0

    monkeypatch.setattr(Machine, "run", dies)
    with pytest.raises(UserError, match="the kernel died: no init"):
        main.run(stubbed)
    (content,) = files(tmp_path / "out")
    assert content["state"] == "none" and content["why"].startswith("the kernel died") and content["logs"]


def test_the_verdicts_on_mistakes_are_recorded_one_by_one(
    tmp_path: Path, stubbed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def verdicts(*_: object) -> Iterator[judge.Verdict]:
        yield judge.Verdict("one", "reported", ["missing"])
        assert [one["name"] for one in files(tmp_path / "out")[0]["data"]["mutants"]] == ["one"]
        yield judge.Verdict("two", "survived", [])

    monkeypatch.setattr(judge, "binary_mistakes", verdicts)
    assert judge.run(stubbed) == FAILED
    (content,) = files(tmp_path / "out")
    assert (content["kind"], content["state"], len(content["data"]["mutants"])) == ("tlb-mutants", "failed", 2)
