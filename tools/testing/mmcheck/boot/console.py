# SPDX-License-Identifier: GPL-2.0
"""Reads the console of a kernel line by line: KTAP of KUnit suites, output of selftests, messages of the kernel.

All commands read consoles with this state machine. So all of them recognize verdicts, splats, hangs and dead kernels
in the same way.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_STAMP = re.compile(r"^(?:<\d>)?\[ *(\d{1,9}\.\d{1,9})\](?:\[[^]]*\])? ?", re.ASCII)
_PLAN = re.compile(r"^( *)1\.\.(\d{1,9})\b", re.ASCII)
_SUBTEST = re.compile(r"^( {4}| {8})# Subtest: (\S+)")
_RESULT = re.compile(r"^( *)(not )?ok \d+ +(?:- )?(\S.*?)(?: # ?(SKIP|XFAIL)?\s*(.*))?$", re.ASCII)
_PROGRAM = re.compile(r"^# selftests: mm: (\S+)$")
_PROGRAM_END = re.compile(r"^(not )?ok \d+ selftests: mm: (\S+)(?: # (.*))?$", re.ASCII)
_RUN = re.compile(r"^#  RUN +(\S+) \.\.\.$")
_NOISE = re.compile(
    r"^ *(TAP version 13|KTAP version 1|# \S+: pass:.*|# module: .*|# Totals: .*"
    r"|# (PASSED|FAILED): .*|#  +(OK|FAIL)  .*)$"
)
_BANNER = re.compile(r"^Linux version \d")
_OFF = re.compile(r"reboot: |^Power down|halted")
_FATAL = re.compile(
    r"Kernel panic - not syncing|Internal error: |Unable to handle kernel|\bOops(:| -| \[#)|kernel BUG at "
)
_SPLAT = re.compile(
    r"^(WARNING: |BUG: |BUG [^:]+: |INFO: task .* blocked|watchdog: BUG|rcu: INFO: .* stall|UBSAN: |=+ \[ BUG"
    # A warning follows the dump for VM_WARN_ON_..., unless the test expects the warning and suppresses it.
    r"|page dumped because(?!: (?:gup_test|VM_WARN_ON))|INFO: .*possible .* detected|kmemleak: \d+ new suspected)"
    # These may follow other text on the same line.
    r"|WARNING: CPU: \d|BUG: (K[A-Z]*SAN|KFENCE|unable to|Bad |sleeping|scheduling|soft lockup)"
)
_HANG = re.compile(r"# \S+: \S+: hang: ")
_REASON = re.compile(r"Kernel panic - not syncing: (.*)|(# \S+: \S+: hang: .*)")

UNNAMED = "(unnamed)"
"""The name of a suite if the console lacks the line with its real name."""


@dataclass(frozen=True)
class Event:
    """The meaning of a line. A line without a special meaning is a plain Event."""


@dataclass(frozen=True)
class Start(Event):
    """The kernel prints its version, or the suites of a boot begin. A console may have several boots."""


@dataclass(frozen=True)
class Plan(Event):
    """The number of suites that the boot runs."""

    suites: int


@dataclass(frozen=True)
class Begin(Event):
    """A suite, a program, or a case begins; `case` is "" if the suite or the program begins."""

    suite: str
    case: str = ""


@dataclass(frozen=True)
class Result(Event):
    """The verdict on a case, or on one parameter of a case: "passed", "failed" or "skipped"."""

    suite: str
    name: str
    state: str
    reason: str
    parameter: bool = False


@dataclass(frozen=True)
class End(Event):
    """The verdict on a suite or a program.

    remark:  the words after the verdict, for example "exit=1", or ""
    program: whether a program ended
    missing: the number of cases that should have run but have no verdict
    """

    suite: str
    good: bool
    remark: str
    program: bool = False
    missing: int = 0


@dataclass(frozen=True)
class Said(Event):
    """Any other line, from a test or from the kernel."""

    text: str


@dataclass(frozen=True)
class Splat(Said):
    """The kernel warns. If `fatal`, the kernel dies, or kills a task and continues."""

    fatal: bool


@dataclass(frozen=True)
class Hang(Said):
    """Our watchdog in the kernel ends a case."""


@dataclass(frozen=True)
class Off(Said):
    """The machine is switched off, or restarts."""


class Console:
    """The state of one console.

    planned:  the number of suites that the last boot should run; None if unknown
    finished: suites and programs that have ended
    suite:    the suite or program that is running, or ""
    case:     the case that is running, or ""; before the verdict, KUnit names only cases with parameters
    last:     the last case of `suite` with a verdict, or ""
    expected: the number of cases that `suite` should run; None if unknown
    seen:     the number of cases of `suite` that have a verdict
    program:  whether `suite` is a program of the selftests
    reason:   what the kernel said when it stopped, or ""
    splats:   the number of warnings of the kernel
    hung:     whether a case hung
    off:      whether the machine was switched off
    now:      the time in seconds, by the clock of the kernel
    """

    def __init__(self) -> None:
        self.planned: int | None = None
        self.finished: list[str] = []
        self.suite = self.case = self.last = self.reason = ""
        self.expected: int | None = None
        self.seen = self.splats = 0
        self.program = self.hung = self.off = False
        self.now = 0.0

    @property
    def complete(self) -> bool:
        """Whether every suite has its verdict."""
        return self.planned is not None and len(self.finished) >= self.planned

    def feed(self, raw: str) -> Event:
        """Read one line."""
        if match := _STAMP.match(raw):
            self.now = float(match[1])
        line = plain(raw)
        return self._protocol(line) or self._message(line)

    def _protocol(self, line: str) -> Event | None:
        """The meaning of a line of KTAP, or of the selftests' init program; None for other lines."""
        if match := _PROGRAM.match(line):
            return self._begin(match[1], program=True)
        if match := _PROGRAM_END.match(line):
            return self._end(match[2], match[1] is None, match[3] or "", program=True)
        if self.program and (match := _RUN.match(line)):
            self.case = match[1]
            return Begin(self.suite, self.case)
        if not self.program and (line == "KTAP version 1" or _BANNER.match(line)):
            self.suite = self.case = ""
            return Start()
        if match := _PLAN.match(line):
            if self.program or len(match[1]) > 4:
                return Event()
            if match[1]:
                self.expected = int(match[2])
                return Event()
            self.planned = int(match[2])
            return Plan(self.planned)
        if not self.program and (match := _SUBTEST.match(line)):
            if len(match[1]) == 4:
                return self._begin(match[2])
            self.case = match[2]
            return Begin(self.suite or UNNAMED, self.case)
        if (match := _RESULT.match(line)) and not (_FATAL.search(line) or _SPLAT.search(line)):
            return self._result(len(match[1]), match)
        return Event() if _NOISE.match(line) else None

    def _begin(self, suite: str, program: bool = False) -> Event:
        self.suite, self.program, self.case, self.last, self.expected, self.seen = suite, program, "", "", None, 0
        return Begin(suite)

    def _end(self, suite: str, good: bool, remark: str, program: bool = False) -> Event:
        missing = 0 if program or self.expected is None else max(0, self.expected - self.seen)
        self.finished.append(suite)
        self.suite, self.program, self.case, self.expected, self.seen = "", False, "", None, 0
        return End(suite, good, remark, program, missing)

    def _result(self, depth: int, match: re.Match[str]) -> Event | None:
        name, good, reason = match[3], match[2] is None, match[5] or ""
        if depth == 0 and not self.program:
            return self._end(name.split()[0], good, f"{match[4] or ''} {reason}".strip())
        if depth not in ((0,) if self.program else (4, 8)):
            return None
        # A line with "not ok" is a failure; the rest of the line makes no difference.
        state = "failed" if not good else "skipped" if match[4] else "passed"
        if depth != 8:
            self.seen, self.last, self.case = self.seen + 1, name, ""
        return Result(self.suite or UNNAMED, name, state, reason, parameter=depth == 8)

    def _message(self, line: str) -> Event:
        if (match := _REASON.search(line)) and not self.reason:
            self.reason = (match[1] or match[2] or "").strip()
        fatal = _FATAL.search(line) is not None
        if fatal or _SPLAT.search(line):
            self.splats += 1
            return Splat(line, fatal)
        if _HANG.search(line):
            self.hung = True
            return Hang(line)
        if _OFF.search(line):
            self.off = True
            return Off(line)
        return Said(line)


def plain(line: str) -> str:
    """A line of a console without its time stamp and line end."""
    return _STAMP.sub("", line.rstrip("\r\n"))


def stamp(line: str) -> str:
    """The time stamp at the beginning of a line of a console, or ""."""
    match = _STAMP.match(line)
    return match[0] if match else ""


def lines(content: bytes) -> Iterator[str]:
    """The lines of a recorded console."""
    for line in content.split(b"\n"):
        yield line.decode(errors="replace")


def read(console: Iterable[str] | Path) -> Console:
    """Read the console of one boot. A file that does not exist is an empty console."""
    if isinstance(console, Path):
        console = lines(console.read_bytes() if console.exists() else b"")
    result = Console()
    for line in console:
        result.feed(line)
    return result
