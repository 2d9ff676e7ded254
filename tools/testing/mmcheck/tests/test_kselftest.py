# SPDX-License-Identifier: GPL-2.0
"""make kselftest: the list of selftests, the choice of selftests, and their results."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from mmcheck.boot import results
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT, from_environment
from mmcheck.run import kselftest, ktap, selftests, upstream
from mmcheck.run.selftests import Program
from mmcheck.run.session import SelftestRun

SOURCE = """
FIXTURE(folio_one)
{
};
FIXTURE_VARIANT_ADD(folio_one, anon)
FIXTURE_VARIANT_ADD(folio_one, shmem)
TEST_F(folio_one, first)
TEST_F_TIMEOUT(folio_one, second, 60)
FIXTURE(other)
{
};
TEST_F(other, third)
"""
CASES = (
    "folio_one.anon.first",
    "folio_one.anon.second",
    "folio_one.shmem.first",
    "folio_one.shmem.second",
    "other.third",
)
ONE = Program("folio_one", CASES)
TWO = Program("folio_two", ("folio_two.a", "folio_two.b"))


def test_cases_stand_in_the_order_in_which_they_run() -> None:
    assert tuple(selftests.cases(SOURCE)) == CASES


def test_the_programs_of_this_project_have_cases() -> None:
    programs = selftests.programs()
    assert len(programs) > 5
    # folio_walk has no named cases, because its cases are seeds.
    assert [program.name for program in programs if not program.cases] == ["folio_walk"]
    reproducers = {path.stem for path in (PROJECT / "patches/reproducers").glob("*.c")}
    assert set(selftests.MACHINES) <= {program.name for program in programs} | reproducers


def test_programs_and_cases_are_chosen_by_globs() -> None:
    every = [ONE, TWO]
    assert selftests.chosen(every, "") == every
    assert selftests.chosen(every, "folio_two") == [TWO]
    assert selftests.chosen(every, "folio_one.anon.*") == [Program("folio_one", CASES[:2])]
    assert selftests.chosen(every, "*.b other.third") == [
        Program("folio_one", CASES[4:]),
        Program("folio_two", TWO.cases[1:]),
    ]


def test_a_glob_that_matches_nothing_is_one_line() -> None:
    with pytest.raises(UserError, match=r"TESTS=folio_tow: no such test; choose from folio_one, folio_two"):
        selftests.chosen([ONE, TWO], "folio_tow")


def test_a_part_of_a_program_is_named_case_by_case() -> None:
    every = {"folio_one": ONE}
    assert selftests.line(ONE, every) == f"{selftests.SECONDS} folio_one"
    part = Program("folio_one", CASES[:2])
    assert selftests.line(part, every).endswith(" folio_one -r folio_one.anon.first -r folio_one.anon.second")


def test_what_has_a_verdict_is_not_run_again() -> None:
    done = [results.Case("folio_one", name, "passed") for name in ("anon.first", "anon.second", "other.third")]
    assert selftests.rest(ONE, done).cases == CASES[2:4]


def test_suites_are_printed_one_inside_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    printer = ktap.Printer()
    printer.case(results.Case("one", "a", "passed"))
    printer.case(results.Case("one", "b", "failed", text=["because"]))
    printer.case(results.Case("two", "c", "skipped", text=["no such thing"]))
    printer.plan()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "KTAP" not in line] == [
        "    # Subtest: one",
        "    ok 1 a",
        "    # because",
        "    not ok 2 b",
        "    1..2",
        "not ok 1 one",
        "    # Subtest: two",
        "    ok 1 c # SKIP no such thing",
        "    1..1",
        "ok 2 two",
        "1..2",
    ]


def test_a_failure_says_how_to_run_it_again() -> None:
    case = results.Case("folio_one", "anon.first", "failed")
    environ = {"ARCH": "arm64", "KERNEL": "7.3", "O": "/tmp/o"}
    command = "make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS="
    assert kselftest.again(case, [ONE], environ) == f"{command}folio_one.anon.first"
    case.name = "other.third"
    assert kselftest.again(case, [ONE], environ) == f"{command}other.third"
    case.name = ""
    assert kselftest.again(case, [ONE], environ) == f"{command}folio_one"
    words = {**environ, "KERNEL_ARGS": "page_poison=1 quiet"}
    assert "KERNEL_ARGS='page_poison=1 quiet' " in kselftest.again(case, [ONE], words)


def test_the_last_lines_sum_up_skips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = SelftestRun.__new__(SelftestRun)
    session.folder = tmp_path
    found = [results.Case("two", name, "skipped", text=["no such thing"]) for name in "ab"]
    assert kselftest.report([results.Case("one", "c", "passed"), *found], session, [ONE, TWO], {}, {}) == 0
    assert capsys.readouterr().err.splitlines() == [
        "mmcheck: passed: 0 failed, 1 passed, 2 skipped",
        "mmcheck: 2 skipped: 2 no such thing",
        f"mmcheck: log: {tmp_path} (consoles, results.json, results.xml)",
    ]


def test_the_last_lines_name_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = SelftestRun.__new__(SelftestRun)
    session.folder = tmp_path
    found = [results.Case("one", name, "failed", text=["wrong"]) for name in ("c", "all:file x")]
    assert kselftest.report(found, session, [ONE, TWO], {"ARCH": "arm64"}, {"one.all:file *": "no mkfs"}) == 1
    said = capsys.readouterr().err.splitlines()
    assert "mmcheck: new failures (not known issues): one.c" in said
    assert "mmcheck: expected failures (no mkfs): one.all:file x" in said
    assert said[-1] == "mmcheck: next: make kselftest TARGETS=mm ARCH=arm64 TESTS=one"


def test_programs_of_one_machine_share_a_boot() -> None:
    assert selftests.machine_of("folio_fork") == selftests.USUAL
    assert selftests.machine_of("folio_clear") == selftests.machine_of("folio_clear_pool")
    machines = sorted({selftests.machine_of(program.name) for program in selftests.programs()})
    assert machines[0] == selftests.USUAL
    assert len(machines) == 8


def test_categories_of_upstream_stand_in_the_order_in_which_they_run() -> None:
    script = (
        'CATEGORY="cow" run_test ./cow\n    CATEGORY="gup_test" run_test ./gup_test \\\nCATEGORY="cow" run_test x\n'
    )
    assert upstream.categories(script) == ["cow", "gup_test"]


class Dying:
    """Boots of a machine. The program `deadly` kills the kernel at its start, `late` kills it after its first case."""

    lists: ClassVar[list[list[str]]] = []
    deadly, late = "folio_one", "folio_two"

    def __init__(self, *_: object) -> None:
        self.reader, self.memory, self.console = results.Reader(), 0, Path()

    def run(self, lines: Sequence[str], *_: object) -> Iterator[results.Case]:
        self.lists.append([line.split()[1] for line in lines])
        assert len(self.lists) < 10, "it boots forever"
        for line in lines:
            name, *words = line.split()[1:]
            yield from self.reader.feed(f"# selftests: mm: {name}")
            if name == self.deadly:
                break
            case = next((word for word in words if word != "-r"), f"{name}.a")
            yield from self.reader.feed(f"#  RUN           {case} ...")
            yield from self.reader.feed(f"ok 1 {case}")
            if name == self.late:
                break
            yield from self.reader.feed(f"ok 1 selftests: mm: {name}")
        yield from self.reader.close("the kernel ended or hung")


def test_a_program_that_ends_the_kernel_at_once_is_begun_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mmcheck.run.session.Boot", Dying)
    monkeypatch.setattr("mmcheck.run.session.machine_of", lambda _: selftests.USUAL)
    Dying.lists.clear()
    session = SelftestRun.__new__(SelftestRun)
    session.folder, session.words, session.title = tmp_path, (), "x"
    session.kvm, session.memory, session.recorder, session.consoles, session.broken = False, 0, None, [], {}
    session.settings = from_environment({"O": str(tmp_path), "HOME": str(tmp_path)})
    monkeypatch.setattr(session, "launch", SimpleNamespace(hold=contextlib.nullcontext, known=list), raising=False)
    every = [ONE, TWO, Program("folio_three", ("folio_three.a",))]
    saved: list[int] = []
    monkeypatch.setattr(results, "save", lambda cases, *_: saved.append(len(cases)))
    found = session.run(every, every, {})
    assert saved == [1, len(found)]  # not for each case, which would take minutes for a thousand cases
    assert Dying.lists == [["folio_one", "folio_two", "folio_three"], ["folio_two", "folio_three"],
                           ["folio_two", "folio_three"], ["folio_three"]]  # fmt: skip
    failed = [(case.suite, case.name) for case in found if case.state == "failed"]
    assert failed == [("folio_one", ""), ("folio_two", ""), ("folio_two", "")]
    assert {(case.suite, case.name) for case in found if case.state == "passed"} == {
        ("folio_two", "a"), ("folio_two", "b"), ("folio_three", "a")}  # fmt: skip
    assert "not ok 1 folio_one" in capsys.readouterr().out


class Patched(Dying):
    """Boots of a machine whose first boots end before the first test."""

    lists: ClassVar[list[list[str]]] = []
    deadly = late = ""
    ends: ClassVar[list[str]] = []

    def __init__(self, _: object, console: Path, *__: object) -> None:
        super().__init__()
        self.console = console

    def run(self, lines: Sequence[str], *words: object) -> Iterator[results.Case]:
        if self.ends:
            self.console.write_text(self.ends.pop())
            return
        yield from super().run(lines, *words)


@pytest.mark.parametrize(
    ("ends", "cpus", "good"),
    [
        (["[ 1.3] Oops: int3: 0000 [#1] SMP NOPTI\n"] * 2, 2, True),
        (["[ 1.3] Oops: int3: 0000 [#1] SMP NOPTI\n"] * 3, 2, False),
        (["[ 1.3] Oops: int3: 0000 [#1]\n"], 1, False),
        (["[ 1.3] Oops: 0002 [#1] SMP NOPTI\n"], 2, False),
    ],
    ids=["two", "always", "one CPU", "another oops"],
)
def test_a_kernel_that_meets_an_old_int3_boots_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ends: list[str],
    cpus: int,
    good: bool,
) -> None:
    monkeypatch.setattr("mmcheck.run.session.Boot", Patched)
    monkeypatch.setattr("mmcheck.run.session.machine_of", lambda _: selftests.Machine(cpus=cpus))
    Patched.lists.clear()
    Patched.ends[:] = ends
    session = SelftestRun.__new__(SelftestRun)
    session.folder, session.words, session.title, session.broken = tmp_path, (), "x", {}
    session.kvm, session.memory, session.recorder, session.consoles = False, 0, None, []
    launch = SimpleNamespace(hold=contextlib.nullcontext, known=list, label="7.3")
    monkeypatch.setattr(session, "launch", launch, raising=False)
    if good:
        assert [case.state for case in session.run([ONE], [ONE], {})] == ["passed"]
        assert capsys.readouterr().err.count("so it boots again") == 2
    else:
        with pytest.raises(UserError, match="ended before the first test"):
            session.run([ONE], [ONE], {})


LOG = """\
folio_two.c: In function 'x':
folio_two.c:12:3: error: 'y' undeclared (first use in this function)
make[1]: *** [../lib.mk:222: /out/programs/folio_two] Error 1
make[1]: Target 'all' not remade because of errors.
"""


def test_a_program_that_does_not_build_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise UserError("the selftests do not build")

    run = SelftestRun.__new__(SelftestRun)
    for name, value in (("folder", tmp_path), ("kernel", lambda: None), ("programs", fails), ("broken", {})):
        monkeypatch.setattr(run, name, value, raising=False)
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs/folio_two").write_text("of an earlier build")
    (tmp_path / "selftests.log").write_text(LOG)
    assert run.build(["folio_one", "folio_two"]) == {"folio_one": tmp_path / "programs/folio_one"}
    assert not (tmp_path / "programs/folio_two").exists()
    said = run.broken["folio_two"]
    assert said[0] == "it does not build" and "folio_two.c:12:3: error: 'y' undeclared" in said[2]
    for text in (LOG.replace("folio_two]", "vm_util.o]"), LOG + LOG.replace("folio_two", "folio_one")):
        (tmp_path / "selftests.log").write_text(text)
        with pytest.raises(UserError, match="do not build"):
            run.build(["folio_one", "folio_two"])


class Living(Dying):
    """Boots of a machine in which no program kills the kernel."""

    lists: ClassVar[list[list[str]]] = []
    deadly = late = ""


def test_the_others_run_if_one_does_not_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mmcheck.run.session.Boot", Living)
    monkeypatch.setattr("mmcheck.run.session.machine_of", lambda _: selftests.USUAL)
    session = SelftestRun.__new__(SelftestRun)
    session.folder, session.words, session.title = tmp_path, (), "x"
    session.kvm, session.memory, session.recorder, session.consoles = False, 0, None, []
    session.broken = {"folio_two": ["it does not build"]}
    monkeypatch.setattr(session, "launch", SimpleNamespace(hold=contextlib.nullcontext, known=list), raising=False)
    found = session.run([ONE, TWO], [ONE, TWO], {})
    assert [(case.suite, case.state) for case in found] == [("folio_two", "failed"), ("folio_one", "passed")]
    assert Living.lists == [["folio_one"]]
    assert "not ok 1 folio_two" in capsys.readouterr().out and results.status(found) == 1


DECODER = """\
cat >/dev/null
echo "pc : f (/a/other/tree/linux/linux-arm64/../mm/memory.c:12 (discriminator 2) $2/../mm/./rmap.c:3)"
echo "lr : 0xffff/../x is no source file, and (arch/arm64/mm/contpte.c:4) is one"
"""
"""Prints the output of decode_stacktrace.sh for a kernel with objects that ccache had from another checkout."""


def test_a_splat_names_files_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/decode_stacktrace.sh").write_text(DECODER)
    session = SelftestRun.__new__(SelftestRun)
    session.launch = SimpleNamespace(tree=tmp_path, build=tmp_path / "linux-arm64")  # type: ignore[assignment]
    session.settings = from_environment({"ARCH": "arm64", "HOME": str(tmp_path)})
    case = results.Case("a", "b", "failed", text=["pc : f+0x1/0x2"], splat=True)
    session.decode(case)
    assert case.text == [
        "pc : f (mm/memory.c:12 (discriminator 2) mm/./rmap.c:3)",
        "lr : 0xffff/../x is no source file, and (arch/arm64/mm/contpte.c:4) is one",
    ]
