# SPDX-License-Identifier: GPL-2.0
"""make mutants MATRIX=1: finds every case that notices a mutant, not only the first case.

The result is in mutants/matrix/KERNEL-ARCH.json, with one line for each mutant. A run with ONLY=, or a run after an
interrupt, changes only the lines of its own mutants. A mutant that changes a macro or data cannot be enabled at boot.
It gets its own kernel, in which all cases run.
"""

import concurrent.futures
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ..boot import boot
from ..core import progress
from ..core.lock import held
from . import catalogue, suite_matrix
from .catalogue import Mutant
from .judge import Session
from .killmatrix import Matrix, Row, ending, file_of, findings, reasons, summary
from .mutated import Kernel, own_kernel
from .suite_matrix import Cases


class Rule(Protocol):
    """Finds the rows of the mutants in a kernel that is already built."""

    def row(self, mutant: Mutant) -> Row:
        """The row of one mutant."""
        ...

    def finish(self, rows: Mapping[str, Row], every: Sequence[Mutant]) -> None:
        """After all rows, run the cases that row() left out and that have noticed no mutant yet."""
        ...


MakeRule = Callable[[Session, Kernel], Rule]


KIND = "kill-matrix"
"""The kind of the records."""


class Kept:
    """The rows of one kernel, stored in the record of the run. A later run on the same kernel reuses them."""

    def __init__(self, session: Session, kernel: Kernel, name: str = "all") -> None:
        """`name`: the only mutant of this kernel, or "all"."""
        limits = [suite_matrix.SLOW, suite_matrix.ENOUGH, suite_matrix.FLOOD, suite_matrix.SILENCE, suite_matrix.BOOTS]
        self.session, self.name = session, name
        self.mark = " ".join(map(str, [session.fingerprint(kernel), *limits]))

    def load(self) -> dict[str, Row]:
        """Read the rows that save() wrote, if they are for the same kernel."""
        whole = self.session.last(KIND).get(self.name, {})
        return {name: Row(**row) for name, row in whole["rows"].items()} if whole.get("mark") == self.mark else {}

    def save(self, rows: Mapping[str, Row]) -> None:
        """Write the rows."""
        content = {"mark": self.mark, "rows": {name: dataclasses.asdict(row) for name, row in rows.items()}}
        if recorder := self.session.recorder:
            recorder.put({**(recorder.record.data or self.session.last(KIND)), self.name: content})


def run(session: Session, every: Sequence[Mutant], kernel: Kernel, rule: MakeRule = Cases) -> dict[str, Row]:
    """Find the rows of `every`, with several boots at a time. Keep rows that were found before an interrupt."""
    kept = Kept(session, kernel)
    rows = {name: row for name, row in kept.load().items() if name in kernel.number}
    todo = [mutant for mutant in every if mutant.name in kernel.number and mutant.name not in rows]
    if rows:
        progress.say(f"resuming: {len(rows)}/{len(rows) + len(todo)} mutants done")
    finder = rule(session, kernel)
    with (
        progress.Progress(f"kill matrix of linux {session.label}", len(todo)) as shown,
        concurrent.futures.ThreadPoolExecutor(session.jobs) as pool,
    ):
        waiting = {pool.submit(finder.row, mutant): mutant for mutant in todo}
        try:
            for count, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                name = waiting[future].name
                rows[name] = future.result()
                shown.advance(count, f"{name}: {len(rows[name].cases)} of {rows[name].reached} cases notice")
                kept.save(rows)
        except BaseException:
            boot.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    finder.finish(rows, every)
    kept.save(rows)
    return rows


def run_alone(session: Session, mutants: Sequence[tuple[Mutant, Mapping[str, str]]], usual: Kernel) -> dict[str, Row]:
    """Find the rows of mutants that change more than function bodies. Each gets its own kernel, and all cases run.

    Mutants of the same file come one after the other, so that fewer objects change from one kernel to the next.
    """
    rows: dict[str, Row] = {}
    for mutant, files in sorted(mutants, key=lambda found: found[0].paths, reverse=True):
        kernel = own_kernel(mutant, files, usual)
        kept = Kept(session, kernel, mutant.name)
        if found := kept.load():
            rows |= found
            continue
        progress.say(f"{mutant.name} changes code outside of function bodies, so mmcheck builds a separate kernel")
        if not session.attempt(kernel):
            progress.say(f"{mutant.name} does not build and is left out")
            continue
        row = Cases(session, kernel).row(mutant)
        progress.say(f"{mutant.name}: {len(row.cases)} of {row.reached} cases notice")
        rows[mutant.name] = row
        kept.save({mutant.name: row})
    return rows


def whole(session: Session, every: Sequence[Mutant], environ: Mapping[str, str], rule: MakeRule = Cases) -> str:
    """Find every case that notices each mutant. Returns the findings and the last paragraph of the run's output."""
    mutants, _ = catalogue.fitting(every, session.read, session.settings.arch)
    session.folder.mkdir(parents=True, exist_ok=True)
    kernel, broken = session.make(mutants)
    session.check_unchanged(kernel)
    rows = run(session, [mutant for mutant, _ in mutants], kernel, rule)
    path = merge(session, rows)
    if rule is Cases:
        alone = [(mutant, files) for mutant, files in mutants if mutant.name not in {*kernel.number, *broken}]
        rows |= run_alone(session, alone, kernel)
        merge(session, rows)
    took = sum(row.seconds for row in rows.values()) / (len(rows) or 1)
    progress.say(f"{took:.1f} s per mutant")
    matrix = Matrix.load(path)
    return "\n".join([summary(matrix, every), *ending(findings(matrix, every, reasons()), matrix, path, environ)])


def merge(session: Session, rows: Mapping[str, Row]) -> Path:
    """Write the rows to the file of the kill matrix. Returns its path. The rows of all other mutants stay."""
    settings = session.settings
    path = file_of(session.source.label, settings.arch, settings.pages)
    # Suites and selftests have different kernels and locks, but the same file.
    with held(settings.out / "lock" / f"{path.stem}.killmatrix", f"it writes {path}"):
        old = Matrix.load(path)
        own = {case.partition(".")[0] for case in session.reach.cases}
        kept = {case for case in old.cases if case.partition(".")[0] not in own and session.foreign(case)}
        merged = dict(old.rows)
        for name, row in rows.items():
            before = old.rows.get(name, Row())
            others = {case: how for case, how in before.cases.items() if case in kept}
            merged[name] = dataclasses.replace(row, cases={**others, **row.cases})
        Matrix(session.source.label, sorted({*session.reach.ran, *kept}), merged).save(path)
    return path
