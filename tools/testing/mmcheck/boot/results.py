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
from . import console
from .console import UNNAMED, Console

STATES = ("passed", "failed", "skipped")
KNOWN = "known"
"""The state of a failed case if the user's baseline accepts the failure. Only run/baseline.py sets this state."""

NO_END = "lines of this test are missing on the console, or the kernel warned"
OUTSIDE = "it failed outside of its cases"

SPLAT_LINES = 60
"""At most this many lines of a splat are kept."""

_FAILED = re.compile(r"(EXPECTATION|ASSERTION) FAILED at ")
_VALUE = re.compile(r"Expected |.* == .*(\(0x\w+\)|$)")


@dataclass
class Case:
    """One case of one suite.

    suite:   a KUnit suite, or a program of the selftests
    name:    the case; "" is the suite itself, if it failed outside of its cases
    state:   one of STATES, or KNOWN
    seconds: by the clock of the kernel that ran it
    text:    of a skip, the reason; of a failure, the output of test and kernel; of a pass, lines on stale known issues
    splat:   whether the kernel warned or died
    """

    suite: str
    name: str
    state: str
    seconds: float = 0.0
    text: list[str] = field(default_factory=list)
    splat: bool = False

    @property
    def full(self) -> str:
        """The full name, `suite.case`; only the suite if the suite failed outside of its cases."""
        return f"{self.suite}.{self.name}" if self.name else self.suite

    @property
    def remarks(self) -> list[str]:
        """The lines to print about a case that passed: a known issue is stale, or a known failure is fixed."""
        return list(dict.fromkeys([*self.text[:1], *self.text[-1:]])) if self.state == "passed" else []


class Reader:
    """Collects the verdicts of a console, line by line. Each parameter of a KUnit case counts: `case: parameter`.

    A lost verdict is a failure. A splat is also a failure: of the case that was running, or of the suite that ran last.

    console: the state of the console
    cases:   the cases with a verdict
    suite:   the suite or program that is running, or ""
    case:    the case that is running, or ""
    closed:  whether the console ended while a suite or a program was running
    due:     the number of suites or programs of this boot that have not ended; for selftests the caller sets it
    """

    def __init__(self) -> None:
        self.console = Console()
        self.cases: list[Case] = []
        self.suite = self.case = self._before = ""
        self.closed = False
        self._said: list[str] = []
        self._splat: list[str] = []
        self._since = 0.0
        self.due = self._clean = self._inner = 0

    @property
    def finished(self) -> list[str]:
        """Suites and programs that have ended."""
        return self.console.finished

    def feed(self, raw: str) -> Iterator[Case]:
        """Read one line; yields each case that it ends."""
        match event := self.console.feed(raw):
            case console.Start():
                yield from self.close("the kernel ended")
                self._before, self._splat, self.due = "", [], 0
            case console.Plan(suites):
                self.due = suites
            case console.Begin(suite, ""):
                yield from self._lost(NO_END)
                self._open(suite)
            case console.Begin(suite, name):
                if not self.suite:
                    self._open(suite)
                self.case, self._inner = name, len(self.cases)
                if self.console.program:
                    self._said, self._since = [], self.console.now
            case console.Result():
                if not self.suite:
                    self._open(event.suite)
                yield from self._result(event)
            case console.End():
                if self.suite not in (event.suite, UNNAMED):
                    yield from self._lost(NO_END)
                yield from self._end(event)
                self.due -= 1
            case console.Said(text):
                self._keep(text.strip(), isinstance(event, console.Splat))

    def _open(self, suite: str) -> None:
        """A suite begins. A splat before the first KUnit suite is dropped: no test caused it."""
        if not self.console.program:
            self._splat = []
        self.suite, self.case, self._said, self._since = suite, "", [], self.console.now
        self._clean = self._inner = len(self.cases)

    def _keep(self, text: str, splat: bool) -> None:
        """Keep a line for the next verdict."""
        begun = bool(self._splat) or splat
        if begun and len(self._splat) < SPLAT_LINES and not text.startswith("# "):
            self._splat.append(text)
        elif self.suite:
            self._said.append(text.removeprefix("# "))

    def _result(self, event: console.Result) -> Iterator[Case]:
        """Note the verdict on a case or a parameter. The verdict on a case is dropped if its parameters explain it."""
        name = f"{self.case}: {event.name}" if event.parameter else event.name
        inner = [case.state for case in self.cases[self._inner :] if case.name.startswith(f"{event.name}: ")]
        explained = not self._splat and (event.state != "failed" or "failed" in inner)
        if not event.parameter and event.name == self.case and inner and explained:
            self._said = []
        else:
            yield self._add(name, event.state, [event.reason] if event.reason else [])
        if not event.parameter:
            self.case = ""

    def _add(self, name: str, state: str, text: list[str]) -> Case:
        """Note a verdict; a splat makes it a failure."""
        name = name.removeprefix(f"{self.suite}.")
        if self._splat:
            state = "failed"
        if state == "failed":
            text = [*text, *self._said, *self._splat]
        elif state == "passed":
            text = [*text, *stale(self._said)]
        now = self.console.now
        case = Case(self.suite, name, state, round(max(0.0, now - self._since), 3), text, bool(self._splat))
        self.cases.append(case)
        self._said, self._splat, self._since = [], [], now
        return case

    def _end(self, event: console.End) -> Iterator[Case]:
        """Note the end of a suite. If no case explains its verdict, the suite itself failed or was skipped."""
        begun, own = bool(self.suite), self.cases[self._clean :]
        if not begun:
            self._open(event.suite)
            own = []
        explained = event.good or any(case.state == "failed" for case in own)
        if self._splat or not explained or (event.program and not begun):
            running = [f"in {self.case}"] if self.case else []
            yield self._add(self.case, "failed", [event.remark or (NO_END if event.good else OUTSIDE), *running])
        elif event.missing:
            yield self._add("", "failed", [f"{event.missing} of its cases have no verdict"])
        elif event.program and not own:
            yield self._add("", "skipped" if event.remark.startswith("SKIP") else "passed", self._said[-1:])
        self.suite, self.case, self._before = "", "", event.suite

    def close(self, why: str) -> Iterator[Case]:
        """The boot has ended; `why` is the reason."""
        last = self.suite or self._before
        lost = list(self._lost(why))
        yield from lost
        if self.due > 0 and last and not lost:
            self.suite = last
            case = self._add("", "failed", [])
            case.text.append(f"{why} after this suite; number of suites or programs that did not run: {self.due}")
            self.suite = ""
            yield case

    def _lost(self, why: str) -> Iterator[Case]:
        """The current case of a suite without an end failed. A suite failed if the kernel warned after it."""
        if self.suite:
            self.closed = True
            case = self._add(self.case, "failed", [])
        elif self._splat and self._before:
            self.suite = self._before
            case = self._add("", "failed", [])
            why = "after its end"
        else:
            return
        case.text.append(why)
        self._before, self.suite, self.case = self.suite, "", ""
        yield case


def kunit(lines: Iterable[str]) -> list[Case]:
    """The cases of boots with suites. If a suite has no verdict when its boot ends, the running case failed."""
    reader = Reader()
    for line in lines:
        for _ in reader.feed(line):
            pass
    list(reader.close("the kernel ended"))
    return reader.cases


def stale(said: Iterable[str]) -> list[str]:
    """The lines that report a stale known issue."""
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
    """How many cases have each state; KNOWN is left out if no case has it."""
    states = [case.state for case in cases]
    return {state: states.count(state) for state in (*STATES, KNOWN) if state in STATES or state in states}


def summary(cases: Sequence[Case]) -> str:
    """The counts in words: `12 passed, 0 failed, 3 skipped`."""
    return ", ".join(f"{number} {state}" for state, number in counts(cases).items())


def status(cases: Sequence[Case]) -> int:
    """The exit status of kselftest: 0, or 1 if a case failed, or 4 if all were skipped."""
    number = counts(cases)
    return 1 if number["failed"] else 0 if number["passed"] or number.get(KNOWN) else 4


def junit(cases: Sequence[Case], title: str) -> bytes:
    """The cases as JUnit XML: one testsuite per suite, with times, classes, and the text of failures.

    A known failure is written as a skip: JUnit has no other state that leaves a pipeline green and shows the reason.
    """
    root = ElementTree.Element("testsuites", {"name": title, **_totals(cases)})
    for suite in dict.fromkeys(case.suite for case in cases):
        own = [case for case in cases if case.suite == suite]
        element = ElementTree.SubElement(root, "testsuite", {"name": printable(suite), **_totals(own)})
        for case in own:
            name = printable(case.name or suite)
            told = {"name": name, "classname": printable(f"{title}.{suite}"), "time": f"{case.seconds:.3f}"}
            test = ElementTree.SubElement(element, "testcase", told)
            text = printable("\n".join(case.text))
            if case.state == "skipped":
                ElementTree.SubElement(test, "skipped", message=text)
            elif case.state == KNOWN:
                ElementTree.SubElement(test, "skipped", message=printable(case.text[0]))
                ElementTree.SubElement(test, "system-out").text = text
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
        "skipped": str(number["skipped"] + number.get(KNOWN, 0)),
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
