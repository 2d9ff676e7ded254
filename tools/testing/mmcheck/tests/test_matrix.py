# SPDX-License-Identifier: GPL-2.0
"""make matrix: the list of cells, the runs of cells, and their records."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from mmcheck.core import progress
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.kernel import suites
from mmcheck.mutants import catalogue
from mmcheck.run import record
from mmcheck.run.cell import NAME, Cell
from mmcheck.run.cell import TABLE as CELLS
from mmcheck.run.record import Record
from mmcheck.study import matrix, selection

from .conftest import User
from .test_record import files
from .waiting import until

TABLE = """\
[flavours]
kasan = ["CONFIG_KASAN=y", "one*"]
[[cells]]
arches = ["arm64"]
pages = ["4K", "64K"]
[[cells]]
arches = ["arm64"]
flavours = ["kasan"]
"""
GOOD = "KTAP version 1\n1..1\n    # Subtest: one\n    ok 1 a\n    ok 2 b # SKIP no\nok 1 one\n"
BAD = GOOD.replace("ok 1 a", "# a: it is wrong\n    not ok 1 a").replace("ok 1 one", "not ok 1 one")


def run(user: User, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "table.toml").write_text(TABLE)
    return subprocess.run(
        [sys.executable, "tools/testing/mmcheck", "matrix"],
        env={**user.environment, "MATRIX": str(tmp_path / "table.toml"), "PYTHONPATH": "tools/testing", **variables},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def last(user: User) -> dict[str, Record]:
    """The last record of each cell by its name, and the last record of the whole run under ""."""
    found = record.latest(Path(user.environment["O"]), ("matrix",))
    return {one.data.get("cell", ""): one for one in found}


def test_a_cell_says_what_to_type() -> None:
    cell = Cell("7.3", "arm64", "64K", "kasan", ("--kconfig_add=CONFIG_KASAN=y",), features="")
    assert str(cell) == "7.3 arm64 64K kasan"
    assert cell.line({}) == (
        "KERNEL=7.3 PAGES=64K FEATURES='' ./tools/testing/kunit/kunit.py run --arch=arm64 --kconfig_add=CONFIG_KASAN=y"
    )
    assert Cell("", "um").line({"KDIR": "/a b"}) == "KDIR='/a b' ./tools/testing/kunit/kunit.py run --arch=um"
    assert Cell("6.12", "x86_64", selftests=True).line({}) == ("KERNEL=6.12 ./mmcheck kselftest TARGETS=mm ARCH=x86_64")


def test_the_table_of_the_project_has_what_is_shipped() -> None:
    names = {str(cell) for cell in selection.table(CELLS, own_tree=False)}
    assert {f"{kernel} arm64 {pages}" for kernel in ("6.12", "7.3") for pages in ("4K", "16K", "64K")} < names
    assert {f"{kernel} {arch}" for kernel in ("6.12", "7.3") for arch in ("um", "x86_64", "riscv")} < names
    assert all(cell.kernel == "" for cell in selection.table(CELLS, own_tree=True))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("[[cells]\n", "MATRIX="), ("", "has no"), ('[[cells]]\nflavours = ["x"]\n', "no flavour x")],
)
def test_a_bad_table_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(UserError, match=complaint):
        selection.table(tmp_path / "t.toml", own_tree=False)


def test_cells_are_run_and_counted(user: User, tmp_path: Path) -> None:
    done = run(user, tmp_path, FAKE_CONSOLES=json.dumps({"all": GOOD, "one*": GOOD}))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-4:-2] == [
        "passed: 3 of 3 cells passed: 3 passed, 0 failed, 3 skipped",
        "3 skipped: 3 no",
    ]
    assert re.match(r"log: .*/matrix \(one file for each cell\)", lines[-2])
    assert re.match(r"next: make report O=/", lines[-1])
    assert len(user.calls()) == 3
    assert {one.state for one in last(user).values()} == {"passed"} and len(last(user)) == 4
    whole, cell = last(user)[""], last(user)["arm64 64K"]
    assert sorted(whole.data["done"]) == sorted(one.id for name, one in last(user).items() if name)
    assert len(cell.cases) == 2 and len(cell.data["runs"]) == 1 and cell.cell == "arm64 64K" and cell.logs
    files(Path(user.environment["O"]))


def test_json_has_the_records_of_all_cells(user: User, tmp_path: Path) -> None:
    consoles = json.dumps({"all": BAD, "one*": GOOD})
    done = run(user, tmp_path, JSON="1", FAKE_STATUS="1", FAKE_CONSOLES=consoles)
    assert done.returncode == 1 and "FAILED: 1 of 3 cells passed" in done.stderr
    found = {one["data"].get("cell", ""): one for one in json.loads(done.stdout)}
    assert found.keys() == {"", "arm64 4K", "arm64 64K", "arm64 4K kasan"}
    for one in found.values():
        folder = Path(user.environment["O"], "runs", one["id"])
        assert one == json.loads((folder / record.FILE).read_text()) and one["state"] in ("passed", "failed")
    assert [case["text"] for case in found["arm64 64K"]["cases"] if case["state"] == "failed"] == [["a: it is wrong"]]


def test_a_cell_boots_one_machine_at_a_time(user: User, tmp_path: Path) -> None:
    two = f"{GOOD}    # Subtest: two\n    ok 1 a\nok 2 two\n".replace("1..1", "1..2")
    variables = {"FAKE_CONSOLES": json.dumps({"all": two, "one*": GOOD})}
    for _ in range(2):
        assert run(user, tmp_path, **variables).returncode == 0
    assert len(user.calls()) == 6 and not any(call.get("spread") for call in user.calls())
    own = {"PAGES": "64K", NAME: "arm64 64K", "JOBS": "2", **variables}
    assert user.kunit("run", "--arch=arm64", **own).returncode == 0
    assert user.calls()[-1]["spread"], "a run without the matrix is spread"


def test_a_failure_says_how_to_see_it_again(user: User, tmp_path: Path) -> None:
    done = run(user, tmp_path, FAKE_CONSOLES=json.dumps({"all": BAD, "one*": GOOD}), FAKE_STATUS="1", ONLY="arm64 64K")
    assert done.returncode == 1
    assert "FAILED: 0 passed, 1 failed, 1 skipped" in done.stdout
    assert f"again: PAGES=64K KDIR={user.environment['KDIR']} O=" in done.stdout
    lines = done.stdout.splitlines()
    assert "FAILED: 0 of 1 cells passed: 0 passed, 1 failed, 1 skipped" in lines
    assert "cells with new failures (not known issues): arm64 64K" in lines
    assert lines[-1].startswith(f"next: PAGES=64K KDIR={user.environment['KDIR']} O=")


def test_several_cells_are_chosen_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(TABLE)
    environ = {"MATRIX": str(tmp_path / "table.toml"), "ONLY": "*64K, * kasan,6.12 arm64 64K"}
    cells, _ = selection.chosen(environ)
    assert [str(cell) for cell in cells] == ["6.12 arm64 64K", "6.12 arm64 4K kasan"]
    with pytest.raises(UserError, match=r"ONLY=x: no such cell; choose from 6.12 arm64 4K, "):
        selection.chosen({**environ, "ONLY": "*64K,x"})


def test_a_kernel_that_does_not_build_is_no_verdict(user: User, tmp_path: Path) -> None:
    done = run(user, tmp_path, FAKE_MAKE_FAILS="1")
    assert done.returncode == 125
    assert "no verdict: kunit.py: linux" in done.stdout
    assert "does not build" in done.stdout
    found = last(user)
    assert {one.state for one in found.values()} == {"none"} and found[""].data["complete"]
    assert "does not build" in found["arm64 64K"].why and not found["arm64 64K"].built


def test_the_moving_line_says_what_each_cell_does(user: User) -> None:
    cells = [Cell("", "arm64"), Cell("", "arm64", "64K")]
    runner = matrix.Runner(cells, user.environment, None)
    runner.step(cells[0], "mmcheck: building linux x [12/~900] 3s CC      mm/memory.o")
    runner.step(cells[1], "[20:38:00] ============== contpte_table (9 subtests) ===============")
    with progress.Progress("matrix", 2) as runner.shown:
        shown: list[str] = []
        runner.shown.advance = lambda done, detail="": shown.append(detail)  # type: ignore[method-assign]
        runner.show()
    assert shown == ["arm64 4K building 12/~900; arm64 64K running contpte_table"]


def test_after_an_interrupt_the_rest_is_run(user: User, tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(TABLE)
    environment = {**user.environment, "MATRIX": str(tmp_path / "table.toml"), "PYTHONPATH": "tools/testing"}
    assert run(user, tmp_path, ONLY="arm64 64K").returncode == 0
    child = subprocess.Popen(
        [sys.executable, "tools/testing/mmcheck", "matrix"],
        env={**environment, "FAKE_MAKE_HANGS": "1", "JOBS": "1"},
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pid = Path(user.environment["FAKE_CALLS"] + ".pid")
    until(lambda: pid.exists() and pid.read_text().strip(), child)
    os.kill(child.pid, signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    whole = last(user)[""]
    assert (whole.state, whole.why, whole.data["complete"]) == ("none", "interrupted", False)
    # Two cells have verdicts from before the interrupt. One of the verdicts is about another tree.
    out = Path(user.environment["O"])
    old = last(user)["arm64 64K"]
    other = record.Recorder(out, record.facts("matrix", "x", label="x", arch="arm64", pages="4K"))
    other.record.data = old.data | {"cell": "arm64 4K", "fingerprint": "of another tree"}
    other.end("passed")
    whole.data["done"] = [old.id, other.record.id]
    (out / "runs" / whole.id / record.FILE).write_text(json.dumps(asdict(whole)))
    before = len(user.calls())
    done = run(user, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "resuming: 1/3 done" in done.stderr
    assert len(user.calls()) == before + 2
    assert last(user)[""].data["complete"]


def test_a_change_picks_its_suites(tmp_path: Path) -> None:
    patch = tmp_path / "x.patch"
    patch.write_text("--- a/arch/arm64/mm/contpte.c\n+++ b/arch/arm64/mm/contpte.c\n@@ -1 +1 @@\n-a\n+b\n")
    files = selection.touched({"PATCH": str(patch)})
    assert files == ["arch/arm64/mm/contpte.c"]
    names = selection.suites(files, catalogue.load(catalogue.FOLDER))
    assert names and "linear_map" not in names
    assert suites.elsewhere(files, "um") and not suites.elsewhere(files, "arm64")
    assert selection.suites(["mm/no_such_file.c"], []) is None
    with pytest.raises(UserError, match="no suite tests drivers"):
        selection.suites(["drivers/net/dummy.c"], [])
    with pytest.raises(UserError, match="give a unified diff"):
        selection.touched({"PATCH": os.devnull})
    assert selection.touched({}) is None


def test_only_the_suites_that_a_cell_has_are_run() -> None:
    plain, races = Cell("6.12", "arm64"), Cell("6.12", "arm64", "4K", "smp2", ("--qemu_args=-smp 2", "*_race*"))
    names = ["contpte", "contpte_race", "folio_fork"]
    assert selection.wanted(plain, names) == ["contpte", "contpte_race"]
    assert selection.wanted(races, names) == ["*_race*"]
    assert selection.wanted(races, ["contpte"]) == []
    assert selection.wanted(Cell("6.12", "arm64", selftests=True), names) == ["folio_fork"]
    # One suite is for another architecture, and one name belongs to both a suite and a program.
    assert selection.wanted(Cell("6.12", "um"), ["contpte", "set_ptes", "contpte_fold"]) == ["set_ptes"]
    assert selection.wanted(plain, ["contpte_fold"]) == ["contpte_fold"]
    assert selection.wanted(Cell("6.12", "arm64", selftests=True), ["contpte_fold"]) == ["contpte_fold"]


def test_a_suite_that_the_kernel_does_not_have_is_a_skip(user: User, tmp_path: Path) -> None:
    consoles = json.dumps({"vma_split": "KTAP version 1\n1..0\n"})
    variables = {"FAKE_CONSOLES": consoles, "FAKE_STATUS": "1", "FILES": "mm/mremap.c", "ONLY": "arm64 64K"}
    done = run(user, tmp_path, **variables)
    assert done.returncode == 0, done.stdout
    assert "1 of 1 cells passed: 1 passed, 0 failed, 1 skipped" in done.stdout
