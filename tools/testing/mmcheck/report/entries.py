# SPDX-License-Identifier: GPL-2.0
"""Finds page-table entries in the output of a test, and names their bits, so that the page can draw them."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PAIR = re.compile(r"^(.*?)(?: is|,)? ([0-9a-f]{16}), expected ([0-9a-f]{16})(?: \((\d+) differ\))?")
_INDEX = re.compile(r"\bentry (-?\d+)(?:, outside of the table)?$")

TABLE = Path(__file__).with_suffix(".toml")
LAYOUTS: Mapping[str, Mapping[str, str]] = tomllib.loads(TABLE.read_text())
"""For each architecture, the bits and the name of each field of an entry; the highest field comes first."""


@dataclass(frozen=True)
class Field:
    """Some bits of an entry: their name, their positions, their value, and the expected value."""

    name: str
    bits: str
    got: str
    want: str

    @property
    def differs(self) -> bool:
        """Whether the value differs from the expected value."""
        return self.got != self.want


@dataclass(frozen=True)
class Entry:
    """An entry that differs from what the test expects.

    what:   the step of the test after which the entry is wrong
    index:  its place in the table, or None for a value that a function returned
    got:    its value
    want:   the expected value
    differ: how many entries of the table differ; 0 if the test does not count them
    fields: all its bits, the highest first
    """

    what: str
    index: int | None
    got: str
    want: str
    differ: int
    fields: tuple[Field, ...]

    @property
    def title(self) -> str:
        """A title that says which entry it is."""
        where = "The value that the function returns" if self.index is None else f"Entry {self.index} of the table"
        if self.differ > 1:
            return f"{where} (the first of {self.differ} entries that differ)"
        return where

    @property
    def sentence(self) -> str:
        """The difference in words."""
        wrong = [f"{f.name} is {f.got}, expected {f.want}" for f in self.fields if f.differs]
        return "; ".join(wrong)


def value(word: int, high: int, low: int) -> str:
    """Some bits of a word as text: one bit as 0 or 1, several bits as a hexadecimal number."""
    bits = word >> low & (1 << (high - low + 1)) - 1
    return str(bits) if high == low else f"{bits:#x}"


def fields(got: int, want: int, arch: str) -> tuple[Field, ...]:
    """The fields of two words, with their names on `arch`. Leaves out a bit without a name that is 0 in both words."""
    swap = arch == "arm64" and not ((got | want) & 1 or want & 1 << 11)
    layout = LAYOUTS.get(f"{arch}-swap" if swap else arch, {})
    found = []
    high = 63
    for bits, name in {**layout, "-1": ""}.items():
        top, low = (int(bits.split(":")[at]) for at in (0, -1))
        for bit in range(high, top, -1):
            if (got | want) >> bit & 1:
                found.append(Field(f"bit {bit}", str(bit), value(got, bit, bit), value(want, bit, bit)))
        if name:
            found.append(Field(name, bits, value(got, top, low), value(want, top, low)))
        high = low - 1
    return tuple(found)


def find(said: Iterable[str], arch: str) -> Entry | None:
    """The first wrong entry of a table in the output of a test.

    If there is none, the first wrong value that a function returned.
    """
    returned = None
    for line in said:
        match = _PAIR.search(line)
        if not match:
            continue
        what, index = match[1].removesuffix(" returns"), _INDEX.search(match[1])
        if index:
            what = what[: index.start()].rstrip(": ")
        parts = fields(int(match[2], 16), int(match[3], 16), arch)
        entry = Entry(what, int(index[1]) if index else None, match[2], match[3], int(match[4] or 0), parts)
        if index:
            return entry
        returned = returned or entry
    return returned


@dataclass(frozen=True)
class Walk:
    """A random walk that went wrong: the arguments that repeat it, and the shortest sequence of steps."""

    arguments: tuple[str, ...]
    steps: tuple[str, ...]


_WALK = re.compile(r"(\w+\.seed=\d+)(?: (\w+\.steps=\d+) goes wrong in step)?")
_STEP = re.compile(r"^(?:\w+: +)?(\d+): (.+)")


def walk(said: Iterable[str]) -> Walk | None:
    """The seed that a test prints, and the steps if the test prints them."""
    arguments: tuple[str, ...] = ()
    steps: list[str] = []
    listing = False
    for line in said:
        if match := _WALK.search(line):
            listing = match[2] is not None
            if listing or not arguments:
                arguments = tuple(filter(None, match.groups()))
        elif listing and (match := _STEP.match(line)):
            steps.append(match[2])
        elif steps:
            break
    return Walk(arguments, tuple(steps)) if arguments else None
