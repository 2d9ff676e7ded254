# SPDX-License-Identifier: GPL-2.0
"""Functions of a kernel tree, and the searches for patterns in them.

A search compares text and does not understand the code. It finds candidates, and a person must judge them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ARCHITECTURES = ("arm64", "loongarch", "mips", "parisc", "powerpc", "riscv", "s390", "sparc", "um", "x86")
PLACES = (
    "mm/*.c",
    "mm/damon/*.c",
    "fs/proc/task_mmu.c",
    "include/linux/pgtable.h",
    "include/linux/hugetlb.h",
    *(
        f"arch/{arch}/{place}"
        for arch in ARCHITECTURES
        for place in ("mm/*.c", "include/asm/pgtable*.h", "include/asm/hugetlb.h")
    ),
)
"""The files that read and write page-table entries."""

RANGES = frozenset(
    (
        *(f"arch/arm64/{name}" for name in ("include/asm/pgtable.h", "mm/contpte.c", "mm/hugetlbpage.c", "mm/mmu.c")),
        *(
            f"mm/{name}.c"
            for name in ("huge_memory", "madvise", "memory", "migrate", "mprotect", "mremap", "rmap", "util")
        ),
        "fs/proc/task_mmu.c",
        "include/linux/pgtable.h",
        "mm/internal.h",
    )
)
"""The files with functions that change a range of entries in one call."""

_COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_BODY = re.compile(r"^\{(?=[^\n;]*$)", re.MULTILINE)
_NAME = re.compile(r"\b(?!__attribute|__printf|__acquires|__releases)(\w+)\s*\(")

_ASKED = re.compile(
    r"\w*(?:_present|_valid|_none|_none_or_zero|_leaf|_trans_huge|_is_huge|softleaf_is_\w+|_protnone)\("
)
_ENTRY = re.compile(
    r"\b(?:pte|pmd|pud|ptep|pmdp|huge_ptep?)_(?:young|dirty|write|pfn|mkold|mkyoung|mkclean|mkdirty|wrprotect|mkwrite"
    r"|test_and_clear_young|clear_young_notify|cont|mknoncont|page|folio)\("
    r"|\b(?:test_and_clear_young_ptes|clear_flush_young_ptes)\w*\(|pte_val\(\w+\)\s*&\s*~"
)
_WALK = re.compile(r"\b(?:ptep_get|pmdp_get|huge_ptep_get|pvmw\.p(?:te|md)|set_huge_pte_at|set_ptes)\b|\*pmdp?\b")
_GUARDS = re.compile(r"\b(?:pte|pmd|pud)_(?:present|valid)\(")
_QUESTIONS = re.compile(
    r"\b((?:pte|pmd|pud)_(?:valid|valid_cont|cont|protnone|special|same|none|none_or_zero)"
    r"|Page(?:AnonExclusive|HWPoison)|folio_test_(?:large|ksm|hwpoison|partially_mapped|hugetlb|anon|swapcache)"
    r"|folio_maybe_\w+|folio_is_zone_device|mm_is_user|is_(?:huge_)?zero_\w+|check_stable_address_space"
    r"|contpte_(?:try_unfold|align)\w*|(?:PAGE_|PTR_)?ALIGN(?:_DOWN)?)\("
)
_FRESH = re.compile(
    r"\b(folio_mk_p(?:te|md)|mk_p(?:te|md)|pfn_p(?:te|md)|m(?:k|ake)_huge_p(?:te|md))\((?:[^;]*?\bvm_page_prot|\w*vma)"
)
_BELOW = re.compile(r"(\w*(?:addr|address|start)\w*)\s*-\s*\(?\s*\(?\w[\w().>-]*\s*(?:<<\s*PAGE_SHIFT|\*\s*PAGE_SIZE)")


@dataclass(frozen=True)
class Function:
    """A function: its file, first line, name, and text without comments."""

    file: str
    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Candidate:
    """A place that matches a pattern."""

    pattern: str
    file: str
    line: int
    function: str
    what: str


def functions(text: str, file: str) -> Iterator[Function]:
    """The functions of a C source in the kernel's style: a body begins and ends with a brace in column 0."""
    bare = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in _BODY.finditer(bare):
        before = bare[max(0, match.start() - 1000) : match.start()]
        head = re.sub(r"(?m)^#.*(?:\\\n.*)*$", "", before[max(before.rfind(c) for c in ";{}") + 1 :])
        name = _NAME.search(head)
        end = bare.find("\n}", match.end())
        if name and end > 0:
            start = match.start() - len(head) + name.start()
            yield Function(file, bare.count("\n", 0, start) + 1, name[1], bare[start:end])


def tree(root: Path) -> list[Function]:
    """The functions in the files PLACES of a kernel tree."""
    files = sorted({path for place in PLACES for path in root.glob(place)})
    return [f for path in files for f in functions(path.read_text(errors="replace"), str(path.relative_to(root)))]


def _present(function: Function) -> Iterator[tuple[int, str]]:
    """Find code that reads an entry as present before it checks whether the entry is present, or without a check."""
    if not _WALK.search(function.text) and "set_pte" not in function.name:
        return
    asked = _ASKED.search(function.text)
    for match in _ENTRY.finditer(function.text):
        if not asked or match.start() < asked.start():
            yield match.start(), match[0].rstrip("(")
            return


def _batch(function: Function) -> Iterator[tuple[int, str]]:
    """Find a loop over entries that steps by the size of a folio, or that treats one entry as several entries."""
    loops = re.search(r"\b(?:for|while)\s*\(", function.text)
    if not loops or not _WALK.search(function.text) or "folio_pte_batch" in function.text:
        return
    for match in re.finditer(r"=\s*folio_nr_pages\([^;]*;|\+\s*\(?nr\s*<<|\+=\s*folio_size\(", function.text):
        yield match.start(), " ".join(match[0].split())


def _level(function: Function) -> Iterator[tuple[int, str]]:
    """Find a size or an offset of one level where other levels are possible."""
    huge = "huge" in function.name or "hugetlb" in function.file
    if huge:
        for match in re.finditer(
            r"\bPGDIR_SIZE\b|\bHPAGE_SIZE\b|\bhugetlb_pmd_shared\(|ptdesc_pmd_is_shared\(", function.text
        ):
            yield match.start(), match[0].rstrip("(")
    if re.search(r"pmd_t", function.text) and "PAGE_SIZE" in function.text and "~PMD_MASK" not in function.text:
        for match in re.finditer(r"=\s*(?:softleaf_to_pfn|swp_offset_pfn|pmd_pfn)\([^;]*;", function.text):
            yield match.start(), " ".join(match[0].split())


def _wrap(function: Function) -> Iterator[tuple[int, str]]:
    """Find a subtraction of pages from an address. The result may be below 0."""
    for match in _BELOW.finditer(function.text):
        yield match.start(), " ".join(match[0].split())


def _fresh(function: Function) -> Iterator[tuple[int, str]]:
    """Find a new entry, made from a page and a VMA, in a function that does not name both uffd and soft-dirty bits."""
    lacks = [name for name, bit in (("uffd", "uffd"), ("soft-dirty", "soft_dirty")) if bit not in function.text]
    match = _FRESH.search(function.text)
    if match and lacks:
        yield match.start(), f"{match[1]} without {', '.join(lacks)}"


SEARCHES: dict[str, Callable[[Function], Iterator[tuple[int, str]]]] = {
    "present": _present,
    "batch": _batch,
    "level": _level,
    "wrap": _wrap,
    "fresh": _fresh,
}
"""The patterns whose search needs only one tree."""


def search(found: list[Function]) -> list[Candidate]:
    """The candidates of the patterns in SEARCHES, in the order of the sources."""
    candidates = []
    for function in found:
        for pattern, look in SEARCHES.items():
            for offset, what in look(function):
                line = function.line + function.text.count("\n", 0, offset)
                candidates.append(Candidate(pattern, function.file, line, function.name, what))
    return candidates


def gaps(found: list[Function], other: list[Function]) -> list[Candidate]:
    """The functions that check for presence more often in the other tree."""
    theirs = {(f.file, f.name): f for f in other}
    candidates = []
    for function in found:
        if not (twin := theirs.get((function.file, function.name))):
            continue
        more = _guards(twin) - _guards(function)
        if more:
            what = ", ".join(f"{name} {count} more" for name, count in sorted(more.items()))
            candidates.append(Candidate("gap", function.file, function.line, function.name, what))
    return candidates


def guards(found: list[Function], other: list[Function]) -> list[Candidate]:
    """The functions on ranges of entries that lack a check of an entry or folio, or an ALIGN(), of the other tree.

    If the whole file has the check as often as in the other tree, the function is no candidate, because another
    function has the check.
    """
    theirs = {(f.file, f.name): f for f in other}
    here, there = _by_file(found), _by_file(other)
    candidates = []
    for function in found:
        twin = theirs.get((function.file, function.name))
        if function.file not in RANGES or not twin:
            continue
        lacks = _questions(twin) - _questions(function)
        lost = sorted(name for name in lacks if there[function.file][name] > here[function.file][name])
        if lost:
            what = ", ".join(f"{name} {lacks[name]} more" for name in lost)
            candidates.append(Candidate("guard", function.file, function.line, function.name, what))
    return candidates


def _by_file(found: list[Function]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for function in found:
        if function.file in RANGES:
            counts.setdefault(function.file, Counter()).update(_questions(function))
    return counts


def _questions(function: Function) -> Counter[str]:
    return Counter(_QUESTIONS.findall(function.text))


def _guards(function: Function) -> Counter[str]:
    return Counter(match.rstrip("(") for match in _GUARDS.findall(function.text))
