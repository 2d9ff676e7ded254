# SPDX-License-Identifier: GPL-2.0
"""Finds the functions with mutants that each case runs, and selects the cases of a boot.

A kernel with mutants has two hooks in KUnit (see mutants/mmcheck_mutant.c). One hook leaves out cases that the command
line does not select. The other hook prints, before each verdict, the functions that ran since the last verdict. A case
cannot notice a mutant in a function that it does not run.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..boot import console
from ..core import disk
from ..core.errors import UserError
from . import catalogue, schemata

KUNIT = "lib/kunit/test.c"

_HOOKS = {
    "kunit_print_suite_start": "\textern void mmcheck_report(void);\n\n\tmmcheck_report();\n",
    "kunit_print_ok_not_ok": "\textern void mmcheck_report(void);\n\n\tmmcheck_report();\n",
}
_TAINT = "add_taint(TAINT_TEST, LOCKDEP_STILL_OK);\n"
_WANTED = """\
	{
		extern bool mmcheck_wanted(struct kunit_suite *suite);

		if (!mmcheck_wanted(suite))
			return 0;
	}
"""
REACHED = re.compile(r"^# mmcheck_reached: *((?: ?\d+)+)")


def hooked(text: str) -> str:
    """KUnit's test.c with the two hooks."""
    found = {function.name[0]: function for function in schemata.functions(text)}
    missing = [name for name in [*_HOOKS, "kunit_run_tests"] if name not in found]
    if missing or _TAINT not in text:
        absent = ", ".join(missing) or _TAINT.strip()
        raise UserError(f"{KUNIT} has no {absent}, so mmcheck cannot add its hooks there: see reach.py")
    for name in sorted(_HOOKS, key=lambda name: -found[name].start):
        place = found[name].start + 2
        text = f"{text[:place]}{_HOOKS[name]}{text[place:]}"
    return text.replace(_TAINT, _TAINT + _WANTED, 1)


@dataclass
class Reach:
    """The record of one boot with all cases.

    cases:   `suite.case`, in the order in which the cases run
    seconds: the time of each case
    runs:    the numbers of the functions that each case or the init of its suite ran
    start:   the time until the first case
    skipped: cases that this kernel or machine cannot run
    """

    cases: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    runs: list[list[int]] = field(default_factory=list)
    start: float = 0.0
    skipped: list[str] = field(default_factory=list)

    def save(self, path: Path, mark: str) -> None:
        """Write the record. `mark` identifies its kernel."""
        disk.replace(path, json.dumps({"mark": mark, **asdict(self)}).encode())

    @classmethod
    def load(cls, path: Path, mark: str) -> "Reach | None":
        """Read the record that save() wrote, if it is for the kernel `mark`."""
        try:
            fields = json.loads(path.read_text())
            return cls(**fields) if fields.pop("mark") == mark else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def ran(self) -> list[str]:
        """The cases that were not skipped."""
        return [case for case in self.cases if case not in set(self.skipped)]

    @property
    def known(self) -> bool:
        """Whether the kernel printed any function."""
        return any(self.runs)

    def reaching(self, functions: Iterable[int]) -> list[int]:
        """The positions in `cases` of the cases that run one of `functions`."""
        wanted = set(functions)
        return [place for place, runs in enumerate(self.runs) if wanted & set(runs)]

    def cost(self, places: Iterable[int]) -> float:
        """The seconds that a boot with these cases takes."""
        return self.start + sum(self.seconds[place] for place in places)


def read(lines: Iterable[str]) -> Reach:
    """Read the console of a boot with mmcheck_reach, printk.time=1 and all cases."""
    result, said = Reach(), console.Console()
    pending, shared, first, last = set[int](), set[int](), 0, 0.0
    for raw in lines:
        running = said.suite
        match event := said.feed(raw):
            case console.Begin(_, ""):
                # Functions that ran before the name of a suite belong to its init, and count for all its cases.
                # Functions that ran before the first suite belong to the boot, and count for no case.
                first = len(result.cases)
                result.start = result.start or said.now
                last = said.now
                shared, pending = (pending if first else set()), set()
            case console.Result(suite, name, state, parameter=False):
                result.cases.append(f"{suite}.{name}")
                if state == "skipped":
                    result.skipped.append(result.cases[-1])
                result.seconds.append(round(said.now - last, 3))
                result.runs.append(sorted(pending | shared))
                pending, last = set(), said.now
            case console.End() if running:
                for place in range(first, len(result.cases)):
                    result.runs[place] = sorted({*result.runs[place], *pending})
                pending = set()
            case console.Said():
                pending |= reached(event.text)
    return result


def reached(line: str) -> set[int]:
    """The numbers of functions in a line of the console."""
    match = REACHED.match(line)
    return set(map(int, match[1].split())) if match else set()


@dataclass
class Programs:
    """The record of boots with selftests: the numbers of the functions that each program ran, and its time."""

    runs: dict[str, set[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, log: Path) -> None:
        """Add the console of one more boot."""
        found = read_programs(console.lines(log.read_bytes()))
        self.runs |= found.runs
        self.seconds |= found.seconds

    def reaching(self, functions: Iterable[int], first: Sequence[str] = ()) -> list[str]:
        """The programs that run one of `functions`: first those in `first`, in its order, then the other programs.

        The quickest of the other programs comes first.
        """
        wanted = set(functions)
        found = [name for name, runs in self.runs.items() if wanted & runs]
        place = {name: number for number, name in enumerate(first)}
        return sorted(found, key=lambda name: (place.get(name, len(place)), self.seconds.get(name, 0.0)))


def read_programs(lines: Iterable[str]) -> Programs:
    """Read the console of a boot with selftests."""
    result, said, began = Programs(), console.Console(), 0.0
    for raw in lines:
        running = said.suite
        match said.feed(raw):
            case console.Begin(_, ""):
                began = said.now
            case console.End(program) if program == running:
                result.seconds[program] = round(said.now - began, 1)
            case console.Said(text) if running:
                result.runs.setdefault(running, set()).update(reached(text))
    return result


def selection(places: Iterable[int]) -> str:
    """The kernel argument that makes only the cases at these positions run."""
    wanted = set(places)
    digits = [
        sum(1 << bit for bit in range(4) if digit * 4 + bit in wanted)
        for digit in range(max(wanted, default=0) // 4 + 1)
    ]
    return "mmcheck_cases=" + "".join(f"{digit:x}" for digit in digits)


def numbers(functions: Mapping[str, Sequence[catalogue.Function]]) -> dict[catalogue.Function, int]:
    """A number for each function that a mutant changes, in a fixed order."""
    every = sorted({function for found in functions.values() for function in found})
    return {function: place for place, function in enumerate(every)}
