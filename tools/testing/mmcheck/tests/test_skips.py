# SPDX-License-Identifier: GPL-2.0
"""The table of skips: the skips that it allows, the skips that it refuses, and the cases that it names."""

import dataclasses
import fnmatch
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from mmcheck.boot import results
from mmcheck.boot.results import Case
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT, from_environment
from mmcheck.dev import check
from mmcheck.kernel import suites, toolchain
from mmcheck.run import closing, request, selftests, skips
from mmcheck.run.cell import TABLE, Cell, flavours
from mmcheck.study import matrix, selection

from .conftest import User

ARM64 = Cell("6.12", "arm64")
RACE = Case("race", "two: a", "skipped", text=["needs two CPUs"])
ENTRY = """
[[skip]]
why = "One CPU."
unskip = "--qemu_args '-smp 2' '*_race*'"
says = "needs * CPUs"
cases = ["race.two: *"]
"""


def table(tmp_path: Path, text: str) -> list[skips.Line]:
    (tmp_path / "skips.toml").write_text(text)
    return skips.load(tmp_path / "skips.toml")


def test_a_skip_that_the_table_does_not_allow_fails_the_cell(tmp_path: Path) -> None:
    lines = table(tmp_path, ENTRY)
    other = Case("race", "two: a", "skipped", text=["no memory"])
    verdict = skips.judge(ARM64, [RACE, other, Case("race", "three", "passed")], lines)
    assert [case.state for case in verdict.cases] == ["skipped", "failed", "passed"]
    assert verdict.wrong[0].text == [
        "skipped: no memory",
        "skips.toml allows no such skip of race.two: a on 6.12 arm64 4K",
    ]


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        ('kernels = ["6.12"]', True),
        ('kernels = ["7.3"]', False),
        ('arches = ["!um", "!x86_64"]', True),
        ('arches = ["!arm64"]', False),
        ('pages = ["4K"]', True),
        ('flavours = ["plain"]', True),
        ('flavours = ["!plain"]', False),
        ('flavours = ["smp2"]', False),
        ("selftests = true", False),
    ],
)
def test_a_line_is_for_the_cells_that_it_names(tmp_path: Path, condition: str, held: bool) -> None:
    verdict = skips.judge(ARM64, [RACE], table(tmp_path, ENTRY + condition))
    assert not verdict.wrong if held else verdict.wrong
    assert not verdict.gone


def test_a_line_of_which_no_skip_is_left_is_reported(tmp_path: Path) -> None:
    lines = table(tmp_path, ENTRY)
    gone = skips.judge(ARM64, [Case("race", "two: a", "passed")], lines).gone
    assert gone == [
        "a line of skips.toml expects a skip of race.two: * (needs * CPUs), but the case ran: remove the line"
    ]
    assert not skips.judge(ARM64, [Case("race", "two: a", "passed")], table(tmp_path, ENTRY + "maybe = true")).gone
    other = [Case("race", "two: a", "skipped", text=["no memory"])]
    gone = skips.judge(ARM64, other, lines).gone
    assert [line.partition("but ")[2] for line in gone] == ["the case was skipped for another reason: correct the line"]
    # There is no remark if the cell runs none of these cases.
    assert not skips.judge(ARM64, [Case("other", "a", "passed")], lines).gone


def test_a_suite_that_no_boot_names_is_a_skip(tmp_path: Path) -> None:
    passed = Case("race", "three", "passed")
    verdict = skips.judge(ARM64, [passed], [], ["race", "batch"])
    assert [(case.suite, case.text[0]) for case in verdict.wrong] == [("batch", f"skipped: {skips.ABSENT}")]
    lines = table(tmp_path, f'[[skip]]\nwhy = "."\nsays = "{skips.ABSENT}"\ncases = ["batch"]\n')
    assert skips.judge(ARM64, [passed], lines, ["race", "batch"]).cases == [passed]


CONSOLE = """\
KTAP version 1
1..1
    KTAP version 1
    # Subtest: atomic_rmw_large
    1..3
    ok 1 load_cost # SKIP needs --qemu_args '-icount shift=0', which counts instructions
    ok 2 huge_page_faults
    ok 3 mthp_faults # SKIP no such size
ok 1 atomic_rmw_large
"""


def test_make_check_fails_by_a_skip_that_is_not_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = check.Tally()
    check.gate(tally, check.of("7.3", "arm64", flavour="stock"), results.kunit(CONSOLE.splitlines()))
    name = "7.3 arm64 4K stock: atomic_rmw_large.mthp_faults"
    assert tally.failures == [f"{name}: a skip that skips.toml does not allow"]
    assert [skip.partition(": needs")[0] for skip in tally.skips] == ["7.3 arm64 4K stock: atomic_rmw_large.load_cost"]
    assert "skipped: no such size; skips.toml allows no such skip" in capsys.readouterr().out


def test_the_matrix_fails_by_a_suite_that_is_not_built(user: User) -> None:
    runner = matrix.Runner([ARM64], user.environment, None)
    found = runner.gated(ARM64, [Case("contpte", "set_ptes_range", "passed")])
    wrong = {case.suite for case in found if case.state == "failed"}
    assert {"pte_bits", "folio_pte_batch"} <= wrong and "contpte" not in wrong
    # If only some suites were chosen, the expected suites are not known.
    assert len(matrix.Runner([ARM64], user.environment, ["contpte"]).gated(ARM64, [RACE])) == 1


def test_kunit_py_says_what_would_run_a_skip(user: User) -> None:
    done = user.kunit("run", "--arch=arm64", FAKE_CONSOLES=json.dumps({"all": CONSOLE}))
    assert done.returncode == 0
    assert "1 skipped: The cases need an emulator that derives time from the number of instructions" in done.stderr
    assert f"To run them: KDIR={user.environment['KDIR']} " in done.stderr
    assert "/kunit.py run --arch=arm64 --qemu_args '-icount shift=0 -machine mte=on' 'atomic_rmw_large*'" in done.stderr
    assert "mmcheck: cannot tell whether this kernel has CLEAR_PTES, " in done.stderr
    assert "skipped" not in user.kunit("build", "--arch=arm64").stderr


def test_the_users_own_tree_is_not_gated() -> None:
    assert not skips.judge(Cell("", "arm64"), [RACE], []).wrong


def test_known_issues_are_those_of_the_kernel_and_of_the_test() -> None:
    text = ["known issue 3: pte_present() reads twice"]
    issue = Case("pte_bits", "pte_present_evaluates_once", "skipped", text=text)
    assert not skips.judge(ARM64, [issue], []).wrong
    assert skips.judge(Cell("7.3", "arm64"), [issue], []).wrong
    # One issue belongs to another test, and one issue is unknown.
    assert skips.judge(ARM64, [Case("pte_bits", "b", "skipped", text=text)], []).wrong
    assert skips.judge(ARM64, [Case("a", "b", "skipped", text=["known issue 999: new"])], []).wrong
    young = Case("folio_move", "anon.migrate_keeps_referenced", "skipped", text=["known issue 1: old"])
    assert not skips.judge(Cell("7.3", "arm64", selftests=True), [young], []).wrong
    # The fixture has its own name. A case with the same name in another fixture does not count.
    text = ["known issue 45: a child gives up pages of its parent"]
    freed = Case("folio_lazyfree", "freed_by_child.pinned.parent_keeps_content", "skipped", text=text)
    assert not skips.judge(ARM64, [freed], []).wrong
    text = ["known issue 11: pagemap gives all pages of a huge page the first page's answer"]
    part = Case("folio_exclusive", "folio_exclusive_huge.child_unmaps_part", "skipped", text=text)
    assert not skips.judge(Cell("7.3", "arm64", selftests=True), [part], []).wrong
    part = Case("folio_exclusive", "child_unmaps_part", "skipped", text=text)
    assert skips.judge(Cell("7.3", "arm64", selftests=True), [part], []).wrong


def test_the_summary_says_why_and_what_to_run(tmp_path: Path) -> None:
    cases = [RACE, RACE, Case("a", "b", "skipped", text=["needs luck"]), Case("a", "c", "passed")]
    line = f"{closing.KUNIT_PY} run --arch=um --qemu_args '-smp 2' '*_race*'"
    assert skips.summary(cases, table(tmp_path, ENTRY), "um", {}) == [f"2 skipped: One CPU. To run them: {line}"]
    newer = [*table(tmp_path, ENTRY.replace("*_race*", "b")), *table(tmp_path, ENTRY.replace("two", "three"))]
    newer = [dataclasses.replace(line, unskip=skips.NEWER) for line in newer]
    both = [RACE, dataclasses.replace(RACE, name="three: b")]
    line = f"KERNEL=7.3 {closing.KUNIT_PY} run --arch=arm64"
    assert skips.summary(both, newer, "arm64", {}) == [
        f"2 skipped: These tests need functions of 7.3. To run them: {line}"
    ]


@pytest.mark.parametrize(
    ("unskip", "arch", "environ", "command"),
    [
        ("FEATURES=atomic_rmw 'a.*'", "arm64", {"KDIR": "/l"}, "FEATURES=atomic_rmw {} run --arch=arm64 'a.*'"),
        ("FEATURES=atomic_rmw a", "arm64", {"FEATURES": ""}, "FEATURES=atomic_rmw {} run --arch=arm64 a"),
        ("KERNEL=7.3 a", "arm64", {"KDIR": "/l", "PATCH": "/p"}, "KERNEL=7.3 {} run --arch=arm64 a"),
        ("KERNEL=7.3 a", "arm64", {"PAGES": "16K"}, "KERNEL=7.3 PAGES=16K {} run --arch=arm64 a"),
        ("--arch=um a", "arm64", {"PAGES": "16K", "O": "/o"}, "O=/o {} run --arch=um a"),
        ("--arch=arm64 a", "um", {"ARCH": "x86", "HOME": "/h"}, "{} run --arch=arm64 a"),
    ],
)
def test_the_command_is_for_the_kernel_that_skipped(
    tmp_path: Path, unskip: str, arch: str, environ: dict[str, str], command: str
) -> None:
    (line,) = table(tmp_path, ENTRY)
    kept = f"KDIR={environ['KDIR']} " if "KDIR" in environ and "KERNEL" not in unskip else ""
    words = skips.command(dataclasses.replace(line, unskip=unskip), arch, environ)
    assert sorted(words.split()) == sorted(f"{kept}{command}".format(closing.KUNIT_PY).split())


def test_outside_of_the_matrix_the_lines_of_the_kernel_and_the_architecture_count() -> None:
    def found(version: str, arch: str, pages: str = "4K") -> str:
        lines = skips.likely(skips.load(), version, arch, pages)
        case = Case("folio_mapped_shared", "a", "skipped", text=["no CONFIG_MM_ID: folios do not know their owners"])
        return next((line.unskip for line in lines if line.explains(case)), "none")

    assert found("6.12.117", "arm64") == found("", "arm64") == found("6.18.0-rc1", "arm64") == "KERNEL=7.3"
    assert found("7.3.4", "um") == "--arch=arm64" and found("6.12.1", "um") == "KERNEL=7.3 --arch=arm64"
    assert found("7.3.4", "arm64") == "none"


def test_kunit_py_takes_what_each_line_says_that_it_should_run() -> None:
    for line in skips.load():
        words = shlex.split(line.unskip)
        variables = dict(word.split("=", 1) for word in words if re.match(r"[A-Z]+=", word))
        asked = request.parse(["run", *words[len(variables) :]]).known
        settings = from_environment({**variables, "O": "/o"}, (asked.arch or ["arm64"])[-1])
        assert settings.kernel in ("6.12", "7.3") and settings.arch in toolchain.ARCHITECTURES
        glob = (asked.glob or "*").partition(".")[0]
        names = {name.partition(".")[0] for name in line.cases}
        assert any(fnmatch.fnmatchcase(suite, glob) for suite in names), line


@pytest.mark.parametrize("text", ["cells = 1", 'kernel = "6.12"'])
def test_an_unknown_condition_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="there is no key"):
        table(tmp_path, ENTRY + text)
    with pytest.raises(UserError, match="needs the keys `why`"):
        table(tmp_path, '[[skip]]\nwhy = "x"\n')


def test_the_table_names_cells_that_there_are() -> None:
    cells = [*selection.table(TABLE, own_tree=False), *check.RUNS, *check.SELFTESTS]
    for line in skips.load():
        assert any(line.holds(cell) for cell in cells), line
        for condition, values in line.only:
            there = {getattr(cell, condition) or "plain" for cell in cells}
            assert {value.removeprefix("!") for value in values} <= there, line


def test_the_table_names_cases_that_there_are() -> None:
    kunit = {name for one in suites.suites() for name in (one.name, *(f"{one.name}.{case}" for case in one.cases))}
    programs = {
        f"{program.name}.{case.removeprefix(f'{program.name}.')}"
        for program in selftests.programs()
        for case in program.cases
    }
    for line in skips.load():
        names = programs if line.selftests else kunit
        for glob in line.cases:
            short = glob if line.selftests else glob.partition(": ")[0]
            assert fnmatch.filter(names, short), glob


def test_each_line_says_what_unskips_it_in_words_of_kunit_py() -> None:
    for line in skips.load():
        assert line.why.endswith("."), line.why
        assert not line.unskip or re.match(r"--|'|KERNEL=|FEATURES=", line.unskip), line.unskip


def test_flavours_that_notice_one_thing_are_parts_of_the_debug_configuration() -> None:
    debug = set((PROJECT / "mm/tests/debug.config").read_text().splitlines())
    for name in ("kasan", "locks"):
        assert {word for word in flavours()[name] if word.startswith("CONFIG_")} <= debug
    assert {word for word in flavours()["options"] if word != "CONFIG_EFI=y"} <= debug
    assert "--kunitconfig=mm/tests/debug.config" in flavours()["debug"]


def test_a_flavour_may_be_about_the_features(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text('[flavours]\nstock = ["FEATURES=", "a*"]\n[[cells]]\narches = ["arm64"]\nflavours = ["stock"]\n')
    (cell,) = selection.table(file, own_tree=False)
    assert cell.features == "" and cell.arguments == ("a*",)
    assert tomllib.loads(file.read_text())


def test_configuration_of_selftests_is_given_to_make() -> None:
    cell = Cell("7.3", "x86_64", "4K", "kasan", ("--kconfig_add=CONFIG_KASAN=y", "--timeout=1"), selftests=True)
    assert cell.command()[-1] == "KCONFIG_ADD=CONFIG_KASAN=y"
    with pytest.raises(UserError, match="KCONFIG_ADD=KASAN"):
        selftests.request("x86_64", configuration=["KASAN"])
    assert "--kconfig_add=CONFIG_KASAN=y" in selftests.request("x86_64", "", ["CONFIG_KASAN=y"]).arguments
