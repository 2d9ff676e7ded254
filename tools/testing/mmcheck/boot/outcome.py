# SPDX-License-Identifier: GPL-2.0
"""What the console of a boot says about its suites: which finished, which was running at the end, which never began."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_STAMP = re.compile(r"^(<\d>)?\[ *\d+\.\d+\](\[[^]]*\])? ?")
PLAN = re.compile(r"^1\.\.(\d+)")
SUITE = re.compile(r"^    # Subtest: (\S+)")
CASE = re.compile(r"^        # Subtest: (\S+)")
_SKIP = re.compile(r"^ +ok \d+ (.+?) # SKIP (.*)")
SUITE_RESULT = re.compile(r"^(?:not )?ok \d+ (\S+)")
_CASE_RESULT = re.compile(r"^    (?:not )?ok \d+ (\S+)")
_DEATH = re.compile(r"Kernel panic - not syncing: (.*)|(# \S+: \S+: hang: .*)")


@dataclass
class Outcome:
    """One boot, as far as its console tells.

    planned:  how many suites were to run; None if the console does not say
    finished: the suites with a verdict, in order
    running:  the suite that had begun and not ended, or None
    last:     the last case of `running` with a verdict, or None
    reason:   what the kernel said when it stopped, or None
    skipped:  suite, case and reason of each skip
    """

    planned: int | None = None
    finished: list[str] = field(default_factory=list)
    running: str | None = None
    last: str | None = None
    reason: str | None = None
    skipped: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every suite has its verdict."""
        return self.planned is not None and len(self.finished) >= self.planned


def plain(line: str) -> str:
    """A line of the console without its time stamp and line end."""
    return _STAMP.sub("", line.rstrip("\r\n"))


def read(console: Iterable[str]) -> Outcome:
    """Read the console of one boot."""
    result = Outcome()
    for raw in console:
        line = plain(raw)
        if match := _SKIP.match(line):
            result.skipped.append((result.running or "", match.group(1), match.group(2)))
        if match := PLAN.match(line):
            result.planned = int(match.group(1))
        elif match := SUITE.match(line):
            result.running, result.last = match.group(1), None
        elif match := _CASE_RESULT.match(line):
            result.last = match.group(1)
        elif match := SUITE_RESULT.match(line):
            result.finished.append(match.group(1))
            result.running = None
        elif (match := _DEATH.search(line)) and result.reason is None:
            result.reason = (match.group(1) or match.group(2)).strip()
    return result
