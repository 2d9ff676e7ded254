# SPDX-License-Identifier: GPL-2.0
"""Reads the verdicts on test cases from consoles, and writes them as text, JSON and JUnit XML."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from ..core import disk
from ..kernel import known_issues
from . import outcome

STATES = ("passed", "failed", "skipped")
_TIME = re.compile(r"^(?:<\d>)?\[ *(\d+\.\d+)\]")
_PROGRAM = re.compile(r"^# selftests: mm: (\S+)$")
_PROGRAM_END = re.compile(r"^(not )?ok \d+ selftests: mm: (\S+)(?: # (.*))?$")
_BEGIN = re.compile(r"^#  RUN +(\S+) \.\.\.$")
_RESULT = re.compile(r"^(not )?ok \d+ (?:- )?(.+?)(?: # (SKIP|XFAIL)?\s*(.*))?$")
_NOISE = re.compile(r"^(TAP version 13|KTAP version 1|1\.\.\d+|# (PASSED|FAILED): .*|# Totals: .*|#  +(OK|FAIL)  .*)$")
SPLAT = re.compile(
    r"^(WARNING: |BUG: |BUG [^:]+: |INFO: task .* blocked|watchdog: BUG|rcu: INFO: .* stall|UBSAN: |=+ \[ BUG"
    r"|page dumped because(?!: gup_test)|Internal error: |Unable to handle kernel|kernel BUG at|Kernel panic|Oops: "
    r"|INFO: .*possible .* detected)"
)
"""The first line of a kernel's warning, or of the message with which it dies."""

SPLAT_LINES = 60
"""At most this many lines of a splat are kept."""

_FAILED = re.compile(r"(EXPECTATION|ASSERTION) FAILED at ")
_VALUE = re.compile(r"Expected |.* == .*(\(0x\w+\)|$)")


@dataclass
class Case:
    """One case of one suite.

    suite:   a KUnit suite, or a program of the selftests
    name:    the case; "" is the suite itself, if it failed outside of its cases
    state:   one of STATES
    seconds: by the clock of the kernel that ran it
    text:    the reason of a skip; the output of test and kernel for a failure; for a pass, lines on stale known issues
    splat:   whether the kernel warned or died
    """

    suite: str
    name: str
    state: str
    seconds: float = 0.0
    text: list[str] = field(default_factory=list)
    splat: bool = False


class Reader:
    """Follows the console of a kernel that runs selftests, line by line.

    cases:    the cases with a verdict
    program:  the program that is running, or ""
    finished: programs that have ended
    case:     the case that is running, or ""
    closed:   whether the console ended while a program was running
    """

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.program = self.case = ""
        self.finished: list[str] = []
        self.closed = False
        self._said: list[str] = []
        self._splat: list[str] = []
        self._now = self._since = 0.0
        self._clean = 0

    def feed(self, raw: str) -> Iterator[Case]:
        """Read one line; yields each case that it ends."""
        line = outcome.plain(raw)
        if match := _TIME.match(raw):
            self._now = float(match[1])
        if match := _PROGRAM.match(line):
            self.program, self.case, self._said, self._since = match[1], "", [], self._now
            self._clean = len(self.cases)
        elif match := _PROGRAM_END.match(line):
            yield from self._end(match[2], match[1] is None, match[3] or "")
        elif not self.program:
            self._keep(line)
        elif match := _BEGIN.match(line):
            self.case, self._said, self._since = match[1], [], self._now
        elif match := _RESULT.match(line):
            state = "failed" if match[1] else "skipped" if match[3] else "passed"
            yield self._add(match[2], state, [match[4]] if match[4] else [])
        else:
            self._keep(line)

    def _keep(self, line: str) -> None:
        begun = bool(self._splat) or SPLAT.match(line) is not None
        if begun and len(self._splat) < SPLAT_LINES and not line.startswith("# "):
            self._splat.append(line)
        elif self.program and not _NOISE.match(line):
            self._said.append(line.removeprefix("# "))

    def _add(self, name: str, state: str, text: list[str]) -> Case:
        """Note the verdict on a case; a splat in it makes it a failure."""
        name = name.removeprefix(f"{self.program}.")
        if self._splat:
            state = "failed"
        if state == "failed":
            text = [*text, *self._said, *self._splat]
        elif state == "passed":
            text = [*text, *stale(self._said)]
        case = Case(self.program, name, state, round(self._now - self._since, 3), text, bool(self._splat))
        self.cases.append(case)
        self.case, self._said, self._splat, self._since = "", [], [], self._now
        return case

    def _end(self, program: str, good: bool, remark: str) -> Iterator[Case]:
        """Note that the program ended. If no case explains its status, the program itself failed or was skipped."""
        own = self.cases[self._clean :]
        explained = any(case.state == "failed" for case in own)
        if self._splat or (not good and not explained):
            running = [f"in {self.case}"] if self.case else []
            yield self._add(self.case, "failed", [remark, *running])
        elif not own:
            yield self._add("", "skipped" if remark.startswith("SKIP") else "passed", self._said[-1:])
        self.finished.append(program)
        self.program = self.case = ""

    def close(self, why: str) -> Iterator[Case]:
        """The console ended because of `why`: the case that was running has failed."""
        if self.program:
            self.closed = True
            yield self._add(self.case, "failed", [why])
            self.program = self.case = ""


_KUNIT_RESULT = re.compile(r"^( {4}| {8})(not )?ok \d+ (.+?)(?: # (SKIP)\s*(.*))?$")
_KUNIT_NOISE = re.compile(r"^ *(KTAP version 1|1\.\.\d+|# \S+: pass:.*|# module: .*|# Totals: .*)$")


def kunit(console: Iterable[str]) -> list[Case]:
    """The cases of boots with KUnit suites. Each parameter of a case counts as a case: `case: parameter`.

    If a suite has no verdict when its boot ends, the case that was running has failed.
    """
    cases: list[Case] = []
    suite = name = ""
    said: list[str] = []
    since = now = 0.0
    parameters = splat = False

    def ended() -> None:
        if suite:
            cases.append(Case(suite, name, "failed", round(now - since, 3), [*said, "the kernel ended"], splat))

    for raw in console:
        line = outcome.plain(raw)
        if match := _TIME.match(raw):
            now = float(match[1])
        if line == "KTAP version 1":
            ended()
            suite = ""
        elif match := outcome.SUITE.match(line):
            suite, name, said, since, splat = match[1], "", [], now, False
        elif match := outcome.CASE.match(line):
            name, parameters = match[1], False
        elif suite and (match := _KUNIT_RESULT.match(line)):
            inner = len(match[1]) == 8
            if inner or not (parameters and match[3] == name):
                state = "failed" if match[2] or splat else "skipped" if match[4] else "passed"
                text = [match[5]] if state == "skipped" else said if state == "failed" else stale(said)
                full = f"{name}: {match[3]}" if inner else match[3]
                cases.append(Case(suite, full, state, round(now - since, 3), text, splat))
                since = now
            if not inner:
                name = ""
            parameters = inner
            said, splat = [], False
        elif suite and outcome.SUITE_RESULT.match(line):
            suite = ""
        elif not _KUNIT_NOISE.match(line):
            splat = splat or SPLAT.match(line) is not None
            said.append(line.strip().removeprefix("# "))
    ended()
    return cases


def stale(said: Iterable[str]) -> list[str]:
    """The lines that call a known issue stale."""
    return [line for line in said if known_issues.STALE.search(line)]


def reason(said: Sequence[str]) -> str:
    """The failure in one line: the message of the first failed check, or else its values."""
    lines = [line.strip() for line in said if line.strip()]
    at = next((place for place, line in enumerate(lines) if _FAILED.search(line)), -1)
    if at < 0:
        return lines[0] if lines else "no reason given"
    own = []
    for line in lines[at + 1 :]:
        if _FAILED.search(line):
            break
        own.append(line)
    words = [line for line in own if not _VALUE.match(line)]
    return words[0] if words else " ".join(own) or "no reason given"


def counts(cases: Iterable[Case]) -> dict[str, int]:
    """How many cases have each state."""
    states = [case.state for case in cases]
    return {state: states.count(state) for state in STATES}


def summary(cases: Sequence[Case]) -> str:
    """The counts in words: `12 passed, 0 failed, 3 skipped`."""
    return ", ".join(f"{number} {state}" for state, number in counts(cases).items())


def status(cases: Sequence[Case]) -> int:
    """The exit status of kselftest: 0, or 1 if a case failed, or 4 if all were skipped."""
    number = counts(cases)
    return 1 if number["failed"] else 0 if number["passed"] else 4


def junit(cases: Sequence[Case], title: str) -> bytes:
    """The cases as JUnit XML: one testsuite per suite, with times, classes, and the text of failures."""
    root = ElementTree.Element("testsuites", {"name": title, **_totals(cases)})
    for suite in dict.fromkeys(case.suite for case in cases):
        own = [case for case in cases if case.suite == suite]
        element = ElementTree.SubElement(root, "testsuite", {"name": suite, **_totals(own)})
        for case in own:
            name = case.name or suite
            told = {"name": name, "classname": f"{title}.{suite}", "time": f"{case.seconds:.3f}"}
            test = ElementTree.SubElement(element, "testcase", told)
            text = printable("\n".join(case.text))
            if case.state == "skipped":
                ElementTree.SubElement(test, "skipped", message=text)
            elif case.state == "failed":
                first = printable(case.text[0]) if case.text else ""
                kind = "splat" if case.splat else "failure"
                ElementTree.SubElement(test, "failure", message=first, type=kind).text = text
    ElementTree.indent(root)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root) + b"\n"


def _totals(cases: Sequence[Case]) -> dict[str, str]:
    number = counts(cases)
    seconds = sum(case.seconds for case in cases)
    return {
        "tests": str(len(cases)),
        "failures": str(number["failed"]),
        "skipped": str(number["skipped"]),
        "time": f"{seconds:.3f}",
    }


def printable(text: str) -> str:
    """`text` without the control characters that XML does not allow."""
    return re.sub(r"[^\t\n\x20-\ud7ff\ue000-\ufffd]", "?", text)


def save(cases: Sequence[Case], title: str, folder: Path) -> None:
    """Write results.json and results.xml into `folder`."""
    whole = {"title": title, **counts(cases), "cases": [asdict(case) for case in cases]}
    disk.replace(folder / "results.json", json.dumps(whole, indent=1).encode())
    disk.replace(folder / "results.xml", junit(cases, title))


def load(folder: Path) -> list[Case]:
    """The cases that save() wrote into `folder`; none if it has not."""
    try:
        return [Case(**case) for case in json.loads((folder / "results.json").read_text())["cases"]]
    except FileNotFoundError:
        return []
