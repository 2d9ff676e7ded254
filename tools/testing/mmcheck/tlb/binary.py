# SPDX-License-Identifier: GPL-2.0
"""Puts mistakes into a kernel that is already built: replaces instructions of some functions in a copy of its image.

mutants/instructions.toml has the mistakes. `functions` are globs of names in System.map. `change` is one of CHANGES.
`calls` is a glob of functions: "drop each call" drops the calls of these functions. The compiler inlines invalidations
into many functions, so a change of their instructions is enough. It needs no build, and works on any kernel with its
System.map next to it.
"""

import fnmatch
import struct
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UserError
from .symbols import Symbols

TABLE = Path(__file__).parent / "mutants/instructions.toml"
NOP = 0xD503201F
DSB_ISHST, DSB_ISH = 0xD5033A9F, 0xD5033B9F
XZR = 31
BL = 0x25
MOV_2, MOV_3 = 0x52800040, 0x52800060


def _tlbi(word: int) -> bool:
    return word & 0xFFFFE000 == 0xD5088000


def _by_range(word: int) -> bool:
    return _tlbi(word) and word >> 8 & 15 in (2, 5, 6)


def _of_address(word: int) -> bool:
    return _tlbi(word) and word >> 5 & 1 == 1


CHANGES: Mapping[str, Callable[[int], int]] = {
    "drop every TLBI": lambda word: NOP if _tlbi(word) else word,
    "drop each TLBI of a range": lambda word: NOP if _by_range(word) else word,
    "drop each TLBI of one page": lambda word: NOP if _of_address(word) and not _by_range(word) else word,
    "TLBI of address 0": lambda word: word | XZR if _of_address(word) else word,
    "TLBI of the last level": lambda word: word | 4 << 5 if _of_address(word) else word,
    "drop the DSB before": lambda word: NOP if word == DSB_ISHST else word,
    "drop the DSB after": lambda word: NOP if word == DSB_ISH else word,
    "level 2 in place of 3": lambda word: word & 31 | MOV_2 if word & ~31 == MOV_3 else word,
    "drop each call": lambda word: NOP if word >> 26 == BL else word,
    "DSB of stores after": lambda word: DSB_ISHST if word == DSB_ISH else word,
}
"""The name of each change, and a function that takes an instruction and returns the changed instruction."""


@dataclass(frozen=True)
class Mistake:
    """An entry of the table."""

    name: str
    functions: tuple[str, ...]
    change: str
    suite: str
    survives: str = ""
    calls: str = "*"

    def apply(self, image: Path, symbols: Symbols, to: Path) -> int:
        """Write a copy of the image with the mistake. Returns the number of changed instructions."""
        code = bytearray(image.read_bytes())
        changed = 0
        for at, name in enumerate(symbols.names[:-1]):
            if not any(fnmatch.fnmatchcase(name, glob) for glob in self.functions):
                continue
            for place in range(symbols.addresses[at] - symbols.text, symbols.addresses[at + 1] - symbols.text, 4):
                (word,) = struct.unpack_from("<I", code, place)
                new = CHANGES[self.change](word)
                if word >> 26 == BL and not fnmatch.fnmatchcase(
                    symbols.name(_target(word, place, symbols)), self.calls
                ):
                    new = word
                changed += new != word
                struct.pack_into("<I", code, place, new)
        to.write_bytes(code)
        return changed


def _target(word: int, place: int, symbols: Symbols) -> int:
    """The address to which a BL instruction branches."""
    offset = (word & 0x3FFFFFF) - ((word & 0x2000000) << 1)
    return symbols.text + place + 4 * offset


def load(table: Path = TABLE) -> list[Mistake]:
    """The mistakes of a table. Raises UserError for an unknown change."""
    found = []
    for entry in tomllib.loads(table.read_text())["mistake"]:
        one = Mistake(**{**entry, "functions": tuple(entry["functions"])})
        if one.change not in CHANGES:
            raise UserError(f"{table.name}: {one.name}: use one of {', '.join(CHANGES)}")
        found.append(one)
    return found
