# SPDX-License-Identifier: GPL-2.0
"""Boots the suites of one run in several machines at a time, and merges their consoles into one.

Each machine gets a glob of suites. When a suite has ended, it is printed with a new number. So kunit.py reads one KTAP
document with one plan.
"""

import json
import queue
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from .console import Console, End, Plan, stamp
from .results import Case

VARIABLE = "MMCHECK_SPREAD"
"""This environment variable is a JSON list with one glob for each machine. The glob selects the machine's suites."""

_NUMBER = re.compile(r"((?:not )?ok )\d+( )")


def weights(cases: Iterable[Case]) -> dict[str, float]:
    """How long each suite took in a run with these cases. Without times, the number of its cases replaces the time."""
    found: dict[str, float] = {}
    own = list(cases)
    timed = any(case.seconds for case in own)
    for case in own:
        found[case.suite] = found.get(case.suite, 0.0) + (case.seconds if timed else 1.0)
    return found


def globs(seconds: Mapping[str, float], parts: int) -> list[str]:
    """Globs that divide suites into at most `parts` parts that take about equally long; [] if there is only one part.

    seconds: how long each suite took the last time
    Each glob is a class of first letters, so a suite that is not in `seconds` also matches exactly one glob.
    """
    letters: dict[str, float] = {}
    for suite, time in seconds.items():
        letters[suite[0]] = letters.get(suite[0], 0.0) + time
    bins: list[tuple[float, str]] = [(0.0, "")] * min(parts, len(letters))
    for letter in sorted(letters, key=lambda letter: (-letters[letter], letter)):
        least = min(range(len(bins)), key=lambda index: bins[index][0])
        bins[least] = (bins[least][0] + letters[letter], bins[least][1] + letter)
    if len(bins) < 2 or not all(own for _, own in bins):
        return []
    named = ["".join(sorted(own)) for _, own in bins[1:]]
    return [f"[!{''.join(named)}]*", *(f"[{own}]*" for own in named)]


def wanted(environ: Mapping[str, str]) -> list[str]:
    """The globs that the launcher has chosen."""
    return list(json.loads(environ.get(VARIABLE) or "[]"))


def command(arguments: Sequence[str], glob: str) -> list[str]:
    """The command of an emulator, with the suites of `glob` on the kernel's command line."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [f"{one} kunit.filter_glob={glob}" if before == "-append" else one for before, one in pairs]


class Part:
    """The console of one machine, as blocks.

    head:    the lines before its plan
    plan:    the number of suites that it runs; None until it has printed its plan
    stamp:   the time stamp of its plan, or ""
    blocks:  the lines of each suite that ended, in order
    rest:    the lines after the last block
    """

    def __init__(self) -> None:
        self.console = Console()
        self.head: list[str] = []
        self.plan: int | None = None
        self.stamp = ""
        self.blocks: list[list[str]] = []
        self.rest: list[str] = []

    def feed(self, raw: str) -> None:
        """Read one line."""
        event = self.console.feed(raw)
        if self.plan is None:
            if isinstance(event, Plan):
                self.plan, self.stamp = event.suites, stamp(raw)
            else:
                self.head.append(raw)
            return
        self.rest.append(raw)
        if isinstance(event, End):
            self.blocks.append(self.rest)
            self.rest = []


def merged(lines: Iterable[tuple[int, str | None]], parts: int) -> Iterator[str]:
    """The consoles of `parts` machines, merged into one.

    lines: the number of a machine and a line of its console, in order of arrival; None at the end of the console
    A machine that ends before it prints its plan counts as one suite of the merged plan. So the reader of the console
    notices that suites are missing.
    """
    every = [Part() for _ in range(parts)]
    open_parts = set(range(parts))
    began, number = False, 0
    for index, raw in lines:
        if raw is None:
            open_parts.discard(index)
        else:
            every[index].feed(raw)
        if not began and all(part.plan is not None or i not in open_parts for i, part in enumerate(every)):
            began = True
            yield from every[0].head
            for part in every[1:]:
                if part.plan is None:
                    yield from part.head
            # kunit_parser cuts the length of the first stamp off every line.
            prefix = next(filter(None, (part.stamp for part in every)), "")
            yield f"{prefix}1..{sum(1 if part.plan is None else part.plan for part in every)}\n"
        if began:
            for part in every:
                for block in part.blocks:
                    number += 1
                    yield from block[:-1]
                    yield _NUMBER.sub(rf"\g<1>{number}\g<2>", block[-1], count=1)
                part.blocks.clear()
    for part in [*every[1:], every[0]]:
        yield from part.rest


def run(commands: Sequence[Sequence[str]], out: TextIO) -> int:
    """Run the emulators of `commands`, and print one console; returns the exit status of the first emulator."""
    lines: queue.Queue[tuple[int, str | None]] = queue.Queue()
    children = [
        subprocess.Popen(one, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        for one in commands
    ]

    def end(*_: object) -> None:
        """Kill the emulators. Their consoles end too, and the output so far is still printed."""
        for child in children:
            child.kill()

    for signum in (signal.SIGTERM, signal.SIGINT):  # kunit.py ends its emulator with SIGTERM
        signal.signal(signum, end)

    def listen(index: int, child: subprocess.Popen[str]) -> None:
        assert child.stdout
        for line in child.stdout:
            lines.put((index, line))
        lines.put((index, None))

    def arriving() -> Iterator[tuple[int, str | None]]:
        ended = 0
        while ended < len(children):
            index, line = lines.get()
            ended += line is None
            yield index, line

    for index, child in enumerate(children):
        threading.Thread(target=listen, args=(index, child), daemon=True).start()
    try:
        for line in merged(arriving(), len(children)):
            out.write(line)
            out.flush()
        return children[0].wait()
    finally:
        end()


def encoded(chosen: Sequence[str]) -> dict[str, str]:
    """The variable for an emulator that runs these globs; empty if there is one machine."""
    return {VARIABLE: json.dumps(list(chosen))} if len(chosen) > 1 else {}
