# SPDX-License-Identifier: GPL-2.0
"""The data of the page about tests: their states, skips and known issues, as the records have them."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..boot import results
from ..core.settings import VARIABLES
from ..kernel import known_issues
from ..run import skips
from .records import Input, Run

LETTER = {"passed": "p", "failed": "f", "skipped": "s", results.KNOWN: "k"}
RANK = "fkps"
"""The letters of the states; the worst state comes first."""


def plural(number: int, what: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def scope(names: Sequence[str]) -> str:
    """`7.3 arm64 and 5 more`."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def states(runs: Iterable[Run]) -> dict[str, dict[str, str]]:
    """The first letter of the state of each case, by run. If a case ran twice, its worse state counts."""
    found: dict[str, dict[str, str]] = {}
    for run in runs:
        own = found.setdefault(run.name, {})
        for case in run.cases:
            letter = LETTER[case.state]
            old = own.get(case.full, letter)
            own[case.full] = min(old, letter, key=RANK.index)
    return found


@dataclass
class Tests:
    """The names of the tests. Each test counts once, even if many cells have it.

    passed:  tests that passed in a cell, and failed in no cell
    failed:  tests that failed in a cell
    known:   tests that failed, but the baseline lists each of their failures
    skipped: tests that were skipped in each cell that has them
    """

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, now: Mapping[str, Mapping[str, str]]) -> "Tests":
        """The tests in some runs."""
        seen: dict[str, set[str]] = {}
        for cases in now.values():
            for case, state in cases.items():
                seen.setdefault(case, set()).add(state)
        result = cls()
        kinds = dict(zip(RANK, (result.failed, result.known, result.passed, result.skipped), strict=True))
        for case, letters in seen.items():
            kinds[min(letters, key=RANK.index)].add(case)
        return result

    @property
    def number(self) -> int:
        """The number of all tests."""
        return len(self.passed) + len(self.failed) + len(self.known) + len(self.skipped)


@dataclass
class Reason:
    """A reason for skips, and the tests that it affects.

    why:    the reason
    unskip: the command that runs the skipped tests, or ""
    lost:   skipped tests that ran in no cell
    some:   skipped tests that ran in another cell
    """

    why: str
    unskip: str = ""
    lost: list[str] = field(default_factory=list)
    some: list[str] = field(default_factory=list)


def reasons(data: Input, tests: Tests) -> list[Reason]:
    """The reasons for skips. The reason with the most tests that ran in no cell comes first."""
    table = skips.load()
    found: dict[tuple[str, str], Reason] = {}
    for run in data.runs:
        variables = _variables(run)
        likely = skips.likely(table, run.version, run.arch, variables.get("PAGES") or "4K")
        own = [line for line in table if line.holds(run.spec)] if run.spec else likely
        for case in run.cases:
            if case.state != "skipped" or any(map(known_issues.MET.match, case.text)):
                continue
            line = next((line for line in own if line.explains(case)), None)
            said = " ".join(case.text).strip() or "no reason given"
            why = line.why if line else said[:1].upper() + said[1:]
            # Tests with the same reason may need different commands.
            reason = found.setdefault((why, line.unskip if line else ""), Reason(why))
            # Prefer the command for arm64: it runs most of the tests.
            better = not reason.unskip or (run.arch == "arm64" and "--arch=arm64" not in reason.unskip)
            if line and line.unskip and not line.selftests and better:
                reason.unskip = skips.command(line, run.arch, variables)
            names = reason.lost if case.full in tests.skipped else reason.some
            if case.full not in names:
                names.append(case.full)
    return sorted(found.values(), key=lambda one: (-len(one.lost), -len(one.some), one.why))


def _variables(run: Run) -> dict[str, str]:
    """Variables in the command of a run: those that choose its kernel and its output folder."""
    words = (word.partition("=") for word in shlex.split(run.command.partition(" ./")[0]))
    return {name: value for name, _, value in words if name in VARIABLES}


@dataclass
class Met:
    """A known issue, the cases that met it, and the cases that report it as stale; each case as `run: case`."""

    issue: known_issues.Issue
    met: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


def issues(runs: Iterable[Run]) -> list[Met]:
    """The known issues that cases met, or that cases report as stale."""
    table = {issue.number: Met(issue) for issue in known_issues.load()}
    for run in runs:
        for case in run.cases:
            for line in case.text if case.state not in ("failed", results.KNOWN) else []:
                for pattern, kind in ((known_issues.MET, "met"), (known_issues.STALE, "stale")):
                    match = pattern.search(line)
                    if match and int(match[1]) in table:
                        getattr(table[int(match[1])], kind).append(f"{run.name}: {case.full}")
    return [one for one in table.values() if one.met or one.stale]
