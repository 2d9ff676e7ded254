# SPDX-License-Identifier: GPL-2.0
"""Reads the results of the other commands below O=. It does not judge them, and runs nothing."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..boot import results
from ..core.errors import UserError
from ..kernel import identity, known_issues, source, toolchain
from ..run import skips
from ..run.cell import TABLE, Cell, flavours, make, slug
from ..study import matrix
from . import collect
from .kcidb import Build

JSON = dict[str, Any]

_SLUG = re.compile(r"(?:(\d+\.\d+)-)?([a-z]\w*?)(?:-(4K|16K|64K))?(-selftests)?(?:-(\w+))?")
_STATES = {"PASS": "passed", "SKIP": "skipped"}


@dataclass
class Run:
    """One cell, or one run outside of the matrix.

    name:    what the page calls it
    cases:   each with its verdict
    cell:    its cell, if the name says which
    command: the line that runs it again, or ""
    arch:    as in --arch=, or ""
    state:   "passed", "failed" or "none" (no verdict)
    why:     the reason, if there is no verdict
    seconds: how long it took, or 0
    log:     the file with its console, below O=
    kernel:  the version that the console names
    compiler: as the console names it
    source:  the package or the tree that the kernel was built from
    emulator: what booted the kernel
    """

    name: str
    cases: list[results.Case] = field(default_factory=list)
    cell: Cell | None = None
    command: str = ""
    arch: str = ""
    state: str = "passed"
    why: str = ""
    seconds: float = 0.0
    log: str = ""
    kernel: str = ""
    compiler: str = ""
    source: str = ""
    emulator: str = ""

    def again(self, case: results.Case) -> str:
        """The line that runs one case again, or ""."""
        if not self.command:
            return ""
        if "kselftest" in self.command:
            only = f"TESTS='{case.suite}.{case.name}'" if case.name else f"TESTS={case.suite}"
            return f"{self.command} {only}"
        own = case.name.partition(":")[0]
        # Replace the glob of a flavour, since kunit.py takes only one.
        words = self.command.split(" ")
        if "*" in words[-1] and not words[-1].startswith("-"):
            words.pop()
        return " ".join([*words, f"'{case.suite}.{own}'" if own else f"'{case.suite}'"])


def cell_named(name: str) -> Cell | None:
    """The cell whose files have this name."""
    match = _SLUG.fullmatch(name)
    if not match or match[2] not in toolchain.ARCHITECTURES:
        return None
    flavour = match[5] or "plain"
    known = flavours()
    if flavour not in known:
        return None
    return make(match[1] or "", match[2], match[3] or "4K", flavour, known[flavour], bool(match[4]))


def load(path: Path) -> JSON | None:
    """The content of a JSON file; None if it cannot be read."""
    try:
        content: JSON = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content


class Input:
    """All that was found below one O=.

    runs:     cells and other runs, in the order of the table of cells
    planned:  names of the cells of the table, whether they ran or not
    places:   row and column of each cell by name
    mutants, coverage, bench: the files of these commands
    """

    def __init__(self, out: Path, kdir: Path | None = None) -> None:
        self.out, self.kdir = out, kdir
        self.mutants = [content for file in sorted(out.glob("mutants/*/mutants.json")) if (content := load(file))]
        self.coverage = [content for file in sorted(out.glob("coverage/*/coverage.json")) if (content := load(file))]
        self.bench = [content for file in sorted(out.glob("bench/*.json")) if (content := load(file))]
        self.places: dict[str, tuple[str, str]] = {}
        self.newest = 0.0
        found = {run.name: run for run in (*self._checked(), *self._matrix(load(out / "matrix/matrix.json") or {}))}
        for run in found.values():
            if run.cell:
                self.places[run.name] = run.cell.place
        self.planned = self._planned() if self.places else []
        order = {name: place for place, name in enumerate(self.planned)}
        self.runs = sorted(found.values(), key=lambda run: order.get(run.name, len(order)))
        self.runs += self._others()
        if not (self.runs or self.mutants or self.coverage or self.bench):
            raise UserError(f"no results in {out}: run make matrix, mutants, coverage or bench first, or set O=")

    def _planned(self) -> list[str]:
        """The cells of the table, and cells that ran but are not in the table."""
        own = all(not name[0].isdigit() for name in self.places)
        cells = matrix.table(TABLE, own)
        for cell in cells:
            self.places.setdefault(str(cell), cell.place)
        table = [str(cell) for cell in cells]
        return [*table, *(name for name in self.places if name not in table)]

    def _matrix(self, whole: JSON) -> list[Run]:
        commands, found = whole.get("commands", {}), []
        for name, place in whole.get("places", {}).items():
            self.places[name] = (place[0], place[1])
        for name, record in whole.get("cells", {}).items():
            file = self.out / "matrix" / slug(name) / "results.json"
            content = load(file) if record["state"] != "none" else None
            cell = cell_named(slug(name))
            run = Run(name, [results.Case(**case) for case in (content or {"cases": []})["cases"]], cell)
            run.command = commands.get(name) or (cell.line({}) if cell else "")
            run.arch = cell.arch if cell else _arch(name)
            run.state, run.why = str(record["state"]), str(record.get("why", ""))
            run.seconds = float(record.get("seconds", 0))
            run.log = f"matrix/{slug(name)}.log"
            for name_of, words in record.get("identity", {}).items():
                setattr(run, name_of, str(words))
            self._identify(run, run.source, self.out / run.log)
            self._note(file)
            found.append(run)
        return found

    def _checked(self) -> list[Run]:
        """The cells of make check. Their records have no texts, so the reasons of skips are from skips.toml."""
        found = []
        lines = skips.load()
        for file in sorted((self.out / "check").glob("*.json")):
            cell, content = cell_named(file.stem), load(file)
            if not cell or not content:
                continue
            run = Run(str(cell), _verdicts(content, cell, lines), cell, cell.line({}), cell.arch)
            run.state = "failed" if any(case.state == "failed" for case in run.cases) else "passed"
            folder = Path(str(content.get("build_environment") or "none")).name
            self._identify(run, self._origin(Build.named(folder)), self.out / "build" / folder / "test.log")
            self._note(file)
            found.append(run)
        return found

    def _others(self) -> list[Run]:
        """The runs that are newer than all cells; all runs if there is no cell."""
        found = []
        for name, cases in collect.runs(self.out):
            kind, _, folder = name.partition(" ")
            place = self.out / ("build" if kind == "kunit" else "kselftest") / folder
            log = place / ("test.log" if kind == "kunit" else "results.json")
            if self.places and log.stat().st_mtime <= self.newest:
                continue
            build = Build.named(folder)
            run = Run(name, cases, None, _line(kind, build), build.arch)
            run.state = "failed" if any(case.state == "failed" for case in cases) else "passed"
            run.log = str(log.relative_to(self.out)) if kind == "kunit" else f"kselftest/{folder}/console-1.log"
            self._identify(run, self._origin(build), self.out / run.log)
            found.append(run)
        return found

    def _note(self, file: Path) -> None:
        if file.exists():
            self.newest = max(self.newest, file.stat().st_mtime)

    def _origin(self, build: Build) -> str:
        """The source that a build folder was built from; with its commit if KDIR= names this tree."""
        if build.label == "none":
            return ""
        if self.kdir and source.from_folder(self.kdir).label == build.label.partition("+")[0]:
            return identity.origin(source.from_folder(self.kdir))
        return identity.labelled(build.label)

    def _identify(self, run: Run, origin: str, console: Path) -> None:
        """Fill in kernel, compiler, source and emulator. Only the console has the kernel and the compiler."""
        if not run.kernel:
            run.kernel, run.compiler = identity.banner([console])
        run.source = run.source or origin
        run.emulator = run.emulator or identity.program(run.arch)


def _verdicts(group: JSON, cell: Cell, lines: list[skips.Line], above: tuple[str, ...] = ()) -> list[results.Case]:
    """The cases in the JSON of kunit.py; `above` names the suite and the case with parameters around them."""
    found = []
    for case in group.get("test_cases", []):
        suite, name = (above[0], ": ".join([*above[1:], case["name"]])) if above else (case["name"], "")
        made = results.Case(suite, name, _STATES.get(case["status"], "failed"))
        if made.state == "skipped":
            made.text = _reason(made, cell, lines)
        found.append(made)
    for sub in group.get("sub_groups", []):
        found += _verdicts(sub, cell, lines, (*above, sub["name"]))
    return found


def _reason(case: results.Case, cell: Cell, lines: list[skips.Line]) -> list[str]:
    """The reason of a skip, from skips.toml or from the table of known issues. All other skips fail make check."""
    line = next((line for line in lines if line.holds(cell) and line.allows(case)), None)
    if line:
        return [line.why if re.search(r"[*?\[]", line.says) else line.says]
    whole = f"{case.suite}.{case.name.partition(': ')[0]}"
    met = (issue for issue in known_issues.load() if whole in issue.tests and cell.kernel in issue.kernels)
    return next(([f"known issue {issue.number}: {issue.title}"] for issue in met), [])


def _arch(name: str) -> str:
    return next((word for word in name.split(" ") if word in toolchain.ARCHITECTURES), "")


def _line(kind: str, build: Build) -> str:
    """The command of a run outside of the table; "" if the name of its folder does not say enough."""
    version = re.match(r"(\d+\.\d+)[.\d]*-\d", build.label)
    pages, _, digest = build.config.partition("-")
    if not build.arch or (digest and kind == "kunit"):
        return ""
    words = [f"KERNEL={version[1]}" if version else "KDIR=TREE"]
    words += [f"PAGES={pages}"] if pages in ("16K", "64K") else []
    if kind == "kunit":
        words.append(f"./tools/testing/kunit/kunit.py run --arch={build.arch}")
    else:
        words.append(f"./mmcheck kselftest TARGETS=mm ARCH={build.arch}")
    return " ".join(words)
