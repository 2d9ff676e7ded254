# SPDX-License-Identifier: GPL-2.0
"""The rules that generate mutants, and the functions under test to which they are applied.

The rules do not depend on the tests. Each rule is applied at every place where it fits.
"""

import hashlib
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..boot import linear_map
from . import schemata
from .catalogue import Mutant, Read

TABLE = Path(__file__).with_name("under_test.toml")
UNDER_TEST: Mapping[str, str] = {
    file: re.sub(r"\s", "", names) for file, names in tomllib.loads(TABLE.read_text()).items()
}
"""For each file, a regular expression for the names of the functions that mutants change."""

_LEVELS = {
    "CONT_PTES": "(CONT_PTES / 2)",
    "CONT_PTE_SIZE": "PAGE_SIZE",
    "CONT_PTE_MASK": "PAGE_MASK",
    "CONT_PMD_SIZE": "PMD_SIZE",
    "CONT_PMD_MASK": "PMD_MASK",
    "PMD_SIZE": "PAGE_SIZE",
    "PMD_MASK": "PAGE_MASK",
    "PUD_SIZE": "PMD_SIZE",
    "PUD_MASK": "PMD_MASK",
    "PAGE_SIZE": "(2 * PAGE_SIZE)",
}
_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_HIDDEN = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#(?:\\\n|[^\n])*""", re.MULTILINE | re.DOTALL
)
_ASSERTION = re.compile(
    r"\b(?:VM_(?:WARN|BUG)_ON\w*|WARN_ON\w*|BUG_ON|BUILD_BUG\w*|might_sleep\w*|lockdep_assert\w*|static_assert"
    r"|page_table_check\w*|\w+_sanity_checks|cond_resched|pr_\w+)\("
)
_NO_CALLS = {"if", "for", "while", "switch", "return", "sizeof", "typeof", "do"}


@dataclass(frozen=True)
class Change:
    """A change of the text of a file: `new` replaces the text from `start` to `end`."""

    operator: str
    start: int
    end: int
    new: str


def hidden(text: str) -> str:
    """`text` with spaces in place of comments, strings, directives and assertions, so that offsets stay the same."""
    result = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in _ASSERTION.finditer(result):
        end = _closing(result, match.end() - 1)
        blank = re.sub(r"[^\n]", " ", result[match.start() : end])
        result = f"{result[: match.start()]}{blank}{result[end:]}" if end > 0 else result
    return result


def _closing(text: str, place: int) -> int:
    """The place of the parenthesis that closes the parenthesis at `place`; -1 if there is none."""
    depth = 0
    for position in range(place, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if not depth:
            return position
    return -1


def _arguments(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The places of the arguments between two parentheses."""
    found, depth, begin = [], 0, start + 1
    for position in range(start + 1, end + 1):
        c = text[position]
        if (c == "," and depth == 0) or position == end:
            found.append((begin, position))
            begin = position + 1
        depth += {"(": 1, ")": -1}.get(c, 0)
    return found


def _types(declared: str) -> dict[str, str]:
    """The types of the parameters and variables that a text declares. Only the plain types listed here count."""
    types = r"unsigned long|unsigned int|unsigned|long|int|pte_t|bool|u64|phys_addr_t|pgprot_t|pgoff_t"
    found = {}
    name = rf"(?!(?:{types}|struct|enum|const)\b)\*?\w+(?:\s*=[^,;()]+)?"
    for match in re.finditer(rf"\b({types})\s+({name}(?:\s*,\s*{name})*)", declared):
        for part in match[2].split(","):
            found[part.split("=")[0].strip(" *\t\n")] = match[1] + ("*" if "*" in part else "")
    return found


def changes(text: str, function: schemata.Function) -> Iterator[Change]:
    """All changes of the body of a function of the file `text`."""
    whole = hidden(text)
    start, end = function.start, function.end
    head = whole.rfind("\n\n", 0, start)
    types = _types(whole[max(head, 0) : end])
    for match in re.finditer(r"(?<= )(<=|>=|<|>)(?= )", whole[start:end]):
        yield Change("boundary", start + match.start(), start + match.end(), _BOUNDARY[match[1]])
    for match in re.finditer(r"\bif (\()", whole[start:end]):
        first = start + match.start(1)
        last = _closing(whole, first)
        if 0 < last < end:
            yield Change("negate", first, last + 1, f"(!({text[first + 1 : last]}))")
    for match in re.finditer(r"^[ \t]+(\w+)(\()", whole[start:end], re.MULTILINE):
        first = start + match.start(2)
        last = _closing(whole, first)
        if match[1] not in _NO_CALLS and 0 < last < end and whole[last + 1 : last + 2] == ";":
            yield Change("drop_call", start + match.start(1), last + 1, "do { } while (0)")
    for match in re.finditer(r"\b(\w+)(\()", whole[start:end]):
        first = start + match.start(2)
        last = _closing(whole, first)
        if match[1] in _NO_CALLS or not 0 < last < end:
            continue
        parts = _arguments(whole, first, last)
        for (a, b), (c, d) in itertools.pairwise(parts):
            one, two = text[a:b].strip(), text[c:d].strip()
            if one != two and types.get(one) and types.get(one) == types.get(two):
                new = text[a:b].replace(one, two) + "," + text[c:d].replace(two, one)
                yield Change("swap", a, d, new)
    for match in re.finditer(r"(?<![\w.])(\d+)(?:UL|U|ULL)?\b(?!\w)", whole[start:end]):
        for step in (1, -1) if int(match[1]) else (1,):
            new = match[0].replace(match[1], str(int(match[1]) + step), 1)
            yield Change("constant", start + match.start(), start + match.end(), new)
    for match in re.finditer(r"\b(" + "|".join(_LEVELS) + r")\b", whole[start:end]):
        yield Change("level", start + match.start(), start + match.end(), _LEVELS[match[1]])
    for match in re.finditer(r"^[ \t]+([\w>.\[\]*-]+) \|= [^;]+(?=;)", whole[start:end], re.MULTILINE):
        yield Change("drop_merge", start + match.start(1), start + match.end(), "do { } while (0)")
    for match in re.finditer(r" \| [\w>.-]+(?:\([^()]*\))?", whole[start:end]):
        yield Change("drop_merge", start + match.start(), start + match.end(), "")
    for match in re.finditer(
        r"^[ \t]+if \((pte_(?:dirty|young)\([^()]*\))\)\s*\n?\s*(\w+ = pte_mk\w+\([^()]*\))", whole[start:end], re.M
    ):
        yield Change("drop_merge", start + match.start(2), start + match.end(2), "do { } while (0)")


def functions(read: Read, tested: Mapping[str, str]) -> Iterator[tuple[str, schemata.Function, str]]:
    """The functions of `tested`, a table like UNDER_TEST: file, function, text of the file."""
    for file, names in sorted(tested.items()):
        try:
            text = read(file)
        except OSError:
            continue
        for function in schemata.functions(text):
            if re.fullmatch(names, function.name[0]):
                yield file, function, text


class Needs(NamedTuple):
    """The suite and the boot that a mutant of a function needs. The head of catalogue.py explains the fields."""

    suite: str = ""
    machine: str = ""
    early: bool = False
    kernel_args: str = ""


NEEDS = {
    # The kernel calls these functions only on a CPU that can split a block in use. The suite needs this CPU.
    ("arch/arm64/mm/mmu.c", r"split_(contp[tm][de]|p[mu]d|kernel_leaf_mapping.*)"): Needs(
        "linear_map_split", f"-cpu {linear_map.BLOCKS_CPU}"
    ),
    ("arch/arm64/mm/pageattr.c", r"pageattr_p[mu]d_entry"): Needs("linear_map_split", f"-cpu {linear_map.BLOCKS_CPU}"),
    # The kernel calls these functions once, at boot. map_mem() does most on a machine that maps memory by blocks.
    ("arch/arm64/mm/mmu.c", r"map_mem"): Needs(
        "linear_map_booted", f"-cpu {linear_map.BLOCKS_CPU}", True, "kfence.sample_interval=100"
    ),
    ("arch/arm64/mm/mmu.c", r"create_idmap|split_to_ptes_.*"): Needs(early=True),
}
"""Functions whose mutants need a special boot. Other mutants are enabled after boot, on the usual machine."""


def _needs(file: str, function: str) -> Needs:
    found = (needs for (path, names), needs in NEEDS.items() if path == file and re.fullmatch(names, function))
    return next(found, Needs())


def _mutant(file: str, function: schemata.Function, text: str, change: Change, seen: set[str]) -> Mutant:
    line = text.count("\n", 0, change.start)
    old = text.splitlines()[line].strip()
    base = f"{file} {function.name} {change.operator} {old} {text[change.start : change.end]} {change.new}"
    count = 0
    while (
        name := f"{change.operator}_{function.name[0]}_{hashlib.sha256(f'{base} {count}'.encode()).hexdigest()[:6]}"
    ) in seen:
        count += 1
    seen.add(name)

    def files(read: Read) -> Mapping[str, str] | None:
        before = read(file)
        return {file: before[: change.start] + change.new + before[change.end :]} if before == text else None

    harm = f"{change.operator} in {function.name[0]}()"
    return Mutant(name, harm, (file,), files, **_needs(file, function.name[0])._asdict())


def every(read: Read, tested: Mapping[str, str] = UNDER_TEST) -> list[Mutant]:
    """All mutants that the rules give for a tree, sorted by name."""
    seen: set[str] = set()
    found = []
    for file, function, text in functions(read, tested):
        found += [_mutant(file, function, text, change, seen) for change in changes(text, function)]
    return sorted(found, key=lambda mutant: mutant.name)
