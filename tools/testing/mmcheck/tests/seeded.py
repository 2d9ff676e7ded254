# SPDX-License-Identifier: GPL-2.0
"""Writes results below O= as make matrix does, from the names in this tree and from one recorded console.

In the kernel of this console, convert_prot() of contpte.c sets the dirty bit without a reason. The failures are real.
All other results are invented, so that screenshots of the page take only seconds.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mmcheck import report
from mmcheck.boot import results
from mmcheck.kernel import identity, known_issues, suites
from mmcheck.run import record, skips
from mmcheck.run.cell import TABLE, Cell
from mmcheck.study import selection

CONSOLE = Path(__file__).parent / "consoles/dirty_invented.log"
BROKEN = "7.3 arm64 4K"
VERSIONS = {"6.12": ("6.12.117", "6.12.117-1~deb12u1"), "7.3": ("7.3.4", "7.3.4-1~bpo13+1")}
"""For each kernel, the version that it prints, and the version of its package."""

NEVER = ("riscv", "debug", "kasan", "clang")
"""With `missing`, no cell with one of these words was run."""


def cases_of(cell: Cell, lines: list[skips.Line]) -> list[results.Case]:
    """The cases of a cell without a failure."""
    found = []
    own = [line for line in lines if line.holds(cell)]
    met = {test: issue for issue in known_issues.load() for test in issue.tests if cell.kernel in issue.kernels}
    for suite in suites.suites(cell.arch):
        for name in suite.cases:
            case = results.Case(suite.name, name, "passed", 0.01)
            line = next((line for line in own if line.allows(case)), None)
            issue = met.get(case.full)
            if line:
                case.state, case.text = "skipped", [line.says.replace("*", "x")]
            elif issue:
                case.state, case.text = "skipped", [f"known issue {issue.number}: {issue.title}"]
            found.append(case)
    return found


def facts_of(cell: Cell) -> dict[str, str]:
    """The facts about a kernel in a record: its version, its package, its compiler, and an emulator."""
    version, package = VERSIONS[cell.kernel]
    _, compiler = identity.banner([CONSOLE])
    emulator = "User Mode Linux" if cell.arch == "um" else "QEMU 7.2.22"
    return {"version": version, "source": f"package {package}", "compiler": compiler, "emulator": emulator}


def cells() -> list[Cell]:
    """The cells of the matrix."""
    return selection.table(TABLE, False)


def write(out: Path, runs: Mapping[str, list[results.Case]], none: Mapping[str, str]) -> None:
    """Write the results of make matrix below `out`. `runs` has the cases of cells, `none` has reasons of no verdict."""
    for old in out.glob("runs/*-matrix-*"):
        shutil.rmtree(old)
    for number, cell in enumerate(cells()):
        cases, why = runs.get(str(cell), []), none.get(str(cell), "")
        if not cases and not why:
            continue
        pages = cell.pages if cell.arch == "arm64" else ""
        one = record.facts("matrix", cell.slug, label=cell.kernel, arch=cell.arch, pages=pages, cell=str(cell))
        one.command, one.cases = cell.line({}), cases
        one.data = {"cell": str(cell), "place": cell.place, "fingerprint": "", "runs": []}
        for name, words in ({} if why else facts_of(cell)).items():
            setattr(one, name, words)
        recorder = record.Recorder(out, one)
        log = make(out / "matrix") / f"{cell.slug}.log"
        log.unlink(missing_ok=True)
        log.touch()
        recorder.keep([log])
        recorder.end("none" if why else record.state(cases), why)
        one.seconds = 9.0 if why else 61.0 + number
        (recorder.folder / record.FILE).write_text(json.dumps(asdict(one)))


def fill(out: Path, failing: bool, missing: bool) -> None:
    """Write the results of make matrix below `out`.

    failing: whether a cell has the failures of CONSOLE
    missing: whether some cells were not run
    """
    lines = skips.load()
    runs = {}
    for cell in cells():
        if cell.selftests or (missing and any(word in str(cell) for word in NEVER)):
            continue
        cases = cases_of(cell, lines)
        if failing and str(cell).startswith(BROKEN):
            console = results.kunit(CONSOLE.read_text().splitlines())
            bad = {(case.suite, case.name.partition(":")[0]) for case in console}
            cases = [*console, *(case for case in cases if (case.suite, case.name) not in bad)]
        runs[str(cell)] = cases
    none = {"7.3 um": "kunit.py: linux does not build"} if missing else {}
    write(out, {name: cases for name, cases in runs.items() if name not in none}, none)


def recorded(
    out: Path, build: str, cases: list[results.Case], kind: str = "kunit", logs: Iterable[Path] = (), **facts: object
) -> record.Record:
    """Write the record of a run that ended with these cases. `facts` are additional fields."""
    _, arch, pages = (*build.rsplit("-", 2 if build.endswith("K") else 1), "")[:3]
    one = record.Record(build, f"{kind} {build}", kind, build.partition("-")[0], arch, pages, build)
    for name, value in facts.items():
        setattr(one, name, value)
    recorder = record.Recorder(out, one)
    one.cases = cases
    recorder.keep(logs)
    recorder.end(record.state(cases) if one.built else "none", one.why)
    return one


def of_command(out: Path, kind: str, data: dict[str, Any], scope: str = "") -> record.Record:
    """Write the record of a command whose results are not cases."""
    one = record.facts(kind, "linux-um", scope, label="linux", arch="um", pages="")
    with record.kept(out, one) as recorder:
        recorder.put(data)
        one.state = "passed"
    return one


def make(folder: Path) -> Path:
    """Make the folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def page(out: Path, failing: bool, missing: bool) -> Path:
    """Make the report of these results. If tests fail, make a report without failures first."""
    if failing:
        fill(out, False, missing)
        report.run({"O": str(out)})
    fill(out, failing, missing)
    report.run({"O": str(out)})
    return out / "report/index.html"
