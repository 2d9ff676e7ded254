# SPDX-License-Identifier: GPL-2.0
"""The kill matrix of the selftests: the programs that reach a mutant run with it, within a budget of seconds."""

import time
from collections.abc import Mapping, Sequence

from ..boot import boot, results
from ..core.errors import UserError
from ..run import selftests
from ..run.session import Boot
from . import reach
from .catalogue import Mutant
from .guest_judge import GuestSession
from .judge import Session
from .killmatrix import Row
from .mutated import Kernel, switch
from .suite_matrix import BOOTS

BUDGET = 120.0
"""The programs for a mutant may take this many seconds. The program that the catalogue names for the mutant runs even
if this program takes longer.
"""


class GuestMatrixSession(GuestSession):
    """A session of selftests that continues after the first failure."""

    budget = BUDGET

    def check_unchanged(self, kernel: Kernel) -> None:
        """Check that all programs pass without a mutant, and note which programs reach which mutant."""
        self.kernel = kernel
        self.noted = {name: [kernel.noted[function] for function in found] for name, found in kernel.functions.items()}
        self.trace = reach.Programs()
        for number, names in enumerate(self.boots()):
            one, cases = self._boot(f"unchanged-{number}", [], names)
            if bad := [case for case in cases if case.state == "failed"]:
                raise UserError(
                    f"linux {self.label} fails a test although no mutant is enabled: "
                    f"{bad[0].suite}.{bad[0].name}; see {one.console}"
                )
            self.reach.cases += [f"{case.suite}.{case.name}" for case in cases]
            self.trace.add(one.console)

    def _boot(self, log: str, words: Sequence[str], names: Sequence[str]) -> tuple[Boot, list[results.Case]]:
        by_name = {program.name: program for program in self.every}
        needs = selftests.machine_of(names[0])
        one = Boot(self.launch, self.folder / f"{log}.log", needs, [*words, "kunit.enable=0"])
        return one, list(one.run([selftests.line(by_name[name], by_name) for name in names], self.files))

    def wanted(self, mutant: Mutant) -> list[str]:
        """The programs for a mutant: the one in the catalogue, and programs that reach the mutant, up to the budget."""
        reaching = self.trace.reaching(self.noted[mutant.name])
        result, left = [mutant.program] if mutant.program else [], self.budget
        for name in reaching:
            left -= self.trace.seconds.get(name, 0.0)
            if left >= 0 and name not in result:
                result.append(name)
        return result

    def row(self, mutant: Mutant, number: int) -> Row:
        """Run the programs for the mutant on each machine. After a death of the kernel, continue in another boot."""
        wanted = self.wanted(mutant)
        row = Row(reached=len(wanted))
        started = time.monotonic()
        for names in self.boots():
            todo = [name for name in wanted if name in names]
            boots = 0
            while todo and not boot.stop.is_set():
                if boots == BOOTS:
                    row.cut = True
                    break
                boots += 1
                one, cases = self._boot(mutant.name, switch(number, mutant.early), todo)
                for case in cases:
                    if case.state == "failed":
                        row.cases[f"{case.suite}.{case.name}"] = "splat" if case.splat else "failed"
                # If the kernel died in a program, this program has noticed. The next boot runs the programs after it.
                begun = {case.suite for case in cases}
                left = [name for name in todo if name not in one.reader.finished and name not in begun]
                todo = left if len(left) < len(todo) else todo[1:]
        row.seconds = time.monotonic() - started
        return row


class Programs:
    """Finds the rows of the kill matrix of the selftests."""

    def __init__(self, session: Session, kernel: Kernel) -> None:
        assert isinstance(session, GuestMatrixSession)
        self.session, self.kernel = session, kernel

    def row(self, mutant: Mutant) -> Row:
        """The row of one mutant."""
        return self.session.row(mutant, self.kernel.number[mutant.name])

    def finish(self, rows: Mapping[str, Row], every: Sequence[Mutant]) -> None:
        """Do nothing, because row() has already run all programs that can run."""
