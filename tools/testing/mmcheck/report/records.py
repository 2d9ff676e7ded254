# SPDX-License-Identifier: GPL-2.0
"""Reads the results that other commands wrote below O=. It does not judge the results, and runs no command."""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..boot import results
from ..core.errors import UserError
from ..kernel import toolchain
from ..run import record
from ..run.cell import TABLE, Cell, flavours, make, slug
from ..study import selection

JSON = dict[str, Any]

CELLS = "matrix"
"""The kind of the records that `make matrix` writes for its cells."""

_SLUG = re.compile(r"(?:(\d+\.\d+)-)?([a-z]\w*?)(?:-(4K|16K|64K))?(-selftests)?(?:-(\w+))?")


@dataclass
class Run(record.Record):
    """The record of a cell, or of a run outside of the matrix. The name is the one on the page.

    spec: the cell, if the name is the name of a cell
    """

    spec: Cell | None = None

    @property
    def log(self) -> str:
        """The path of its console log below O=; "" if it has no log."""
        return f"runs/{self.id}/{self.logs[0]}" if self.logs else ""

    @property
    def selftests(self) -> bool:
        """Whether it ran selftests, not KUnit suites."""
        return self.spec.selftests if self.spec else "kselftest" in self.command

    def again(self, case: results.Case) -> str:
        """The command that runs one case again, or ""."""
        if not self.command:
            return ""
        if "kselftest" in self.command:
            only = f"TESTS='{case.suite}.{case.name}'" if case.name else f"TESTS={case.suite}"
            return f"{self.command} {only}"
        own = case.name.partition(":")[0]
        # The command may end with the glob of a flavour. Replace it, because kunit.py takes only one glob.
        words = self.command.split(" ")
        if "*" in words[-1] and not words[-1].startswith("-"):
            words.pop()
        return " ".join([*words, f"'{case.suite}.{own}'" if own else f"'{case.suite}'"])


def cell_named(name: str) -> Cell | None:
    """The cell with this name in file names; None if there is no such cell."""
    match = _SLUG.fullmatch(name)
    if not match or match[2] not in toolchain.ARCHITECTURES:
        return None
    flavour = match[5] or "plain"
    known = flavours()
    if flavour not in known:
        return None
    return make(match[1] or "", match[2], match[3] or "4K", flavour, known[flavour], bool(match[4]))


class Input:
    """All results below one O=.

    runs:     cells and other runs, in the order of the table of cells
    planned:  names of all cells of the table, including cells that did not run
    places:   row and column of each cell, by its name
    mutants, coverage, bench: the last results of these commands on each kernel
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.mutants, self.coverage, self.bench = (
            [content for _, content in sorted(record.data(out, kind).items())]
            for kind in ("mutants", "coverage", "bench")
        )
        self.places: dict[str, tuple[str, str]] = {}
        self.newest = 0.0
        cells = self._cells()
        for run in cells:
            if run.spec:
                self.places[run.name] = run.spec.place
        self.planned = self._planned() if self.places else []
        order = {name: place for place, name in enumerate(self.planned)}
        self.runs = sorted(cells, key=lambda run: order.get(run.name, len(order)))
        self.runs += self._others()
        if not (self.runs or self.mutants or self.coverage or self.bench):
            raise UserError(f"no results in {out}: run kunit.py, make kselftest or make matrix first, or set O=")

    def _planned(self) -> list[str]:
        """The names of the cells of the table, and of cells that ran but are not in the table."""
        own = all(not name[0].isdigit() for name in self.places)
        cells = selection.table(TABLE, own)
        for cell in cells:
            self.places.setdefault(str(cell), cell.place)
        table = [str(cell) for cell in cells]
        return [*table, *(name for name in self.places if name not in table)]

    def _cells(self) -> list[Run]:
        """The last run of each cell by make matrix or make check."""
        found: dict[str, record.Record] = {}
        every = [one for one in record.every(self.out) if one.cell and one.kind in (*record.TESTS, CELLS)]
        parts = {part for one in every for part in one.data.get("runs", ())}
        for one in sorted(every, key=when):
            if one.state != "running" and one.id not in parts:
                found[one.cell] = one
        for name, one in found.items():
            if "place" in one.data:
                row, column = one.data["place"]
                self.places[name] = (row, column)
        return [self._recorded(one, name, cell_named(slug(name))) for name, one in found.items()]

    def _others(self) -> list[Run]:
        """Runs that belong to no cell. If cells ran, only the runs that ended later than all cells."""
        return [
            self._recorded(one, one.name)
            for one in record.latest(self.out)
            if not one.cell and (not self.places or when(one) > self.newest)
        ]

    def _recorded(self, one: record.Record, name: str, spec: Cell | None = None) -> Run:
        """The run of a record, with the name `name`."""
        self.newest = max(self.newest, when(one) if one.cell else 0.0)
        command = one.command if one.kind == CELLS or not spec else spec.line({})
        state = "passed" if one.state == "skipped" else one.state
        return Run(**{**vars(one), "name": name, "command": command, "state": state}, spec=spec)


def when(one: record.Record) -> float:
    """The time at which a run ended, in seconds since the epoch."""
    return datetime.fromisoformat(one.began).timestamp() + one.seconds
