# SPDX-License-Identifier: GPL-2.0
"""The kill matrix of the KUnit suites: all cases that reach a mutant run with it.

A case cannot notice a mutant in code that it does not run. If the kernel dies in a case, the case has noticed the
mutant, and the next boot continues with the next case. A slow case does not run with a mutant that several quicker
cases notice. If the slow case notices no other mutant, it finally runs with these mutants too, until it notices one.
"""

import fnmatch
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..boot import boot, console
from ..boot.console import Console
from ..core import progress
from . import reach
from .catalogue import Mutant
from .judge import Session
from .killmatrix import Row
from .mutated import Kernel, switch

BOOTS = 6
"""After this many crashes or hangs with a mutant, the remaining cases do not run with it, and have no verdict."""

SILENCE = 15
"""A kernel counts as hung if it prints no line for this many seconds plus four times the usual time of the case."""

FLOOD = 3000
"""If the kernel prints this many lines without a verdict, it counts as crashed in the case that is running."""

SLOW, ENOUGH = 2.0, 2
"""A slow case takes more than SLOW seconds. If ENOUGH quick cases notice a mutant, slow cases do not run with it."""


@dataclass
class Seen:
    """Reads the output of one boot line by line: cases with a verdict, and cases that notice the mutant."""

    done: list[str] = field(default_factory=list)
    noticed: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    console: Console = field(default_factory=Console)
    _splat: bool = False
    _reported: int = 0

    @property
    def ended(self) -> bool:
        """Whether the machine has powered off."""
        return self.console.off

    @property
    def tests(self) -> bool:
        """Whether the tests have begun."""
        return self.console.planned is not None

    def feed(self, raw: str) -> None:
        """Read one line of the console."""
        running = self.console.suite
        match event := self.console.feed(raw):
            case console.Begin(_, ""):
                self._reported = len(self.done)
            case console.Result(suite, name, state, reason, parameter=False):
                if state != "skipped" or reason:  # a skip without a reason means that the case was not selected
                    self._verdict(f"{suite}.{name}", state == "failed")
            case console.End() if running:
                # If a suite fails or warns outside of its cases, its last case counts as the case that notices.
                own = self.done[self._reported :]
                if (not event.good or self._splat) and own and not set(own) & self.noticed.keys():
                    self.noticed[own[-1]] = "splat" if event.good else "failed"
                self._splat = False
            case console.Hang():
                self.hang = True
            case console.Splat():
                self._splat = True

    def _verdict(self, case: str, failed: bool) -> None:
        self.done.append(case)
        if failed or self._splat:
            self.noticed[case] = "failed" if failed else "splat"
        self._splat = False


class Cases:
    """Finds the rows of the kill matrix of the KUnit suites, for a session that has built and booted its kernel."""

    def __init__(self, session: Session, kernel: Kernel) -> None:
        self.session, self.kernel, self.reach = session, kernel, session.reach
        self.place = {case: number for number, case in enumerate(self.reach.cases)}

    def row(self, mutant: Mutant) -> Row:
        """The row of one mutant."""
        every = list(range(len(self.reach.cases)))
        noted = self.session.noted.get(mutant.name)
        # If a mutant changes more than function bodies, no function notes that it runs.
        reaching = every if mutant.early or noted is None else self.reach.reaching(noted)
        row = Row(reached=len(reaching))
        started = time.monotonic()
        slow = [place for place in reaching if self.reach.seconds[place] > SLOW]
        self._boots(mutant, [place for place in reaching if place not in slow], False, row)
        if len(row.cases) < ENOUGH:
            self._boots(mutant, slow, False, row)
        else:
            row.spared = [self.reach.cases[place] for place in slow]
        if (mutant.machine or mutant.kernel_args) and self.session.settings.arch != "um":
            suites = [
                place for place in every if fnmatch.fnmatch(self.reach.cases[place].partition(".")[0], mutant.suite)
            ]
            self._boots(mutant, suites, True, row)
        row.seconds = time.monotonic() - started
        return row

    def finish(self, rows: Mapping[str, Row], every: Sequence[Mutant]) -> None:
        """If a slow case has noticed no mutant, run it with the mutants that row() left out, until it notices one."""
        by_name = {mutant.name: mutant for mutant in every if not mutant.equivalent}
        useful = {case for name, row in rows.items() if name in by_name for case in row.cases}
        for case in sorted({case for row in rows.values() for case in row.spared} - useful):
            for name in [name for name, row in rows.items() if name in by_name and case in row.spared]:
                progress.say(f"{case} has noticed no mutant yet, so it runs with {name}")
                self._boots(by_name[name], [self.place[case]], False, rows[name])
                if boot.stop.is_set():
                    return
                rows[name].spared.remove(case)
                if case in rows[name].cases:
                    break

    def _boots(self, mutant: Mutant, todo: list[int], own: bool, row: Row) -> None:
        """Run the cases `todo` in one or more boots. With `own`, use the machine that the mutant needs."""
        boots = 0
        while todo and not boot.stop.is_set():
            if boots == BOOTS:
                row.cut = True
                return
            boots += 1
            seen = self._boot(mutant, todo, own)
            done = {self.place[case] for case in seen.done if case in self.place}
            row.cases = {**seen.noticed, **row.cases}
            if seen.ended and not seen.hang:
                return
            # The kernel died. The case after the last verdict was running. If no case is left, a suite was ending.
            left = [place for place in todo if place > max(done, default=-1)]
            culprit = left[0] if left else todo[-1]
            if not boot.stop.is_set():
                row.cases.setdefault(self.reach.cases[culprit], "hang" if seen.hang else "splat")
            if not seen.tests:
                row.cut = True
                return
            todo = [place for place in todo if place > culprit]

    def _boot(self, mutant: Mutant, todo: Sequence[int], own: bool) -> Seen:
        session = self.session
        words = switch(self.kernel.number[mutant.name], mutant.early) + (mutant.kernel_args.split() if own else [])
        command = boot.command(session.settings.arch, session.build, [*words, reach.selection(todo)])
        log = session.folder / f"{mutant.name}.log"
        limit = 60 + 6 * self.reach.cost(todo)
        seen, since, started = Seen(), 0, time.monotonic()

        def silence() -> float:
            """The number of seconds for which the running case may print nothing."""
            last = self.place.get(seen.done[-1], -1) if seen.done else -1
            now = next((place for place in todo if place > last), todo[-1])
            return SILENCE + 4 * self.reach.seconds[now] + (0 if seen.tests else self.reach.start)

        heard = started
        machine = mutant.machine.split() if own else []
        for line in boot.lines([*command, *machine], log, limit, silence):
            heard, before = time.monotonic(), len(seen.done)
            seen.feed(line)
            since = since + 1 if len(seen.done) == before else 0
            if seen.hang or "Kernel panic - not syncing" in line or since > FLOOD:
                break
        now = time.monotonic()
        seen.hang = seen.hang or (not seen.ended and (now - heard >= silence() - 1 or now - started >= limit - 1))
        return seen
