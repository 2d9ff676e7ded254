# SPDX-License-Identifier: GPL-2.0
"""The files of the overlay: how they depend on one another, and their texts for only some of the sources."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path

from ...core.errors import UserError
from ...core.settings import PROJECT
from ...kernel import graft
from . import kconfig
from .makefile import Makefile

SUBJECTS = {
    "lib/pgtable_kunit": "lib/pgtable_kunit",
    "lib/mm_audit": "lib/mm_audit",
    "arch/arm64/mm/tests": "arm64: mm",
    "arch/riscv/mm/tests": "riscv: mm",
    "mm/tests": "mm/tests",
    "lib/rmap_id": "lib/rmap_id",
    "lib/rmap_id/tests": "lib/rmap_id",
    f"{graft.SELFTESTS}/mm": "selftests/mm",
}
"""The folders with sources, in the order of the series. Each has the prefix for the subjects of its patches."""

FIRST = ("Kconfig.kunit", "mm/tests/.kunitconfig", "arch/x86/mm/tests/.kunitconfig")
"""Files that the library's patch adds. They are for the suites of all folders."""

TEXT = """\
mm: KUnit suites and selftests for batches of page-table entries

fork, munmap, mprotect, madvise and reclaim change many page-table entries with one call of set_ptes(), \
wrprotect_ptes(), get_and_clear_full_ptes() or a similar function. folio_pte_batch() and swap_pte_batch() find the \
batches of entries for these calls. On arm64 these functions also fold and unfold contiguous blocks. A function that \
changes one entry too many changes another mapping. If a function loses a dirty bit, the data is never written back. \
A TLB that has two translations of one address may use either.

This series tests the contracts of these functions. KUnit suites call the functions on synthetic page tables with real \
folios, and through system calls on real address spaces. The suites compare every entry with a model, also the \
entries outside of the range. They check TLB invalidations, mapcounts and references. Random walks print the shortest \
sequence of calls that fails. \
Selftests check what user space can observe: contents, page sizes as perf sees them, numbers of page faults.

The tree has no such tests. No KUnit suite and no selftest calls any of these functions. mm/debug_vm_pgtable.c \
checks only helpers for single entries. User space cannot see an entry that is wrong for a moment, a lost accessed bit \
or a needless invalidation. Most of the functions are inline, private to mm/ or not exported, so a test has to be \
built in, with its own page tables, folios and address spaces. The first patch adds these as lib/pgtable_kunit, a \
library without tests.

So far, the library lib/rmap_id is used only by its own suites.
"""

_INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)


class Overlay:
    """The files of the overlay, and how they depend on one another."""

    def __init__(self, project: Path = PROJECT, texts: Mapping[str, str] | None = None) -> None:
        """texts: the files; the default is the files of the project."""
        self.texts = dict(texts or {name: (project / name).read_text() for name in graft.overlay_files(project)})
        self.makefiles = {
            name: Makefile(name, text, self.texts.keys())
            for name, text in self.texts.items()
            if Path(name).name == "Makefile" or name.endswith(".mk")
        }
        self.kconfigs = {
            name: kconfig.entries(text) for name, text in self.texts.items() if Path(name).name.startswith("Kconfig")
        }

    @cached_property
    def symbols(self) -> dict[str, set[str]]:
        """The CONFIG symbols of the overlay, each with the symbols that it selects."""
        return {entry.symbol: entry.selects for own in self.kconfigs.values() for entry in own if entry.symbol}

    @cached_property
    def listed(self) -> dict[str, set[str]]:
        """The sources in the order of the series, each with the symbols of the overlay that build it."""
        merged: dict[str, set[str]] = {}
        if strange := [name for name, makefile in self.makefiles.items() if makefile.folder not in SUBJECTS]:
            raise UserError(
                f"{strange[0]}: SUBJECTS of dev/series/overlay.py lacks the folder of this file; "
                "add the folder in the order of the series"
            )
        for makefile in sorted(self.makefiles.values(), key=lambda makefile: list(SUBJECTS).index(makefile.folder)):
            for name, symbols in makefile.listed().items():
                merged.setdefault(name, set()).update(symbols & self.symbols.keys())
        unlisted = [name for name in self.texts if name.endswith(".c") and name not in merged]
        if unlisted:
            raise UserError(f"{unlisted[0]}: the Makefile in its folder does not list it")
        return merged

    @cached_property
    def parts(self) -> Sequence[Set[str]]:
        """The suites and programs of each series, in the order of the series. Here, one series has all of them."""
        return [{name for name in self.listed if is_suite(name)}]

    @property
    def letters(self) -> Sequence[str]:
        """The beginning of the cover letter of each series."""
        return [TEXT]

    @cached_property
    def includes(self) -> dict[str, list[str]]:
        """For each file of the overlay, the files of the overlay that it includes directly."""
        named: dict[str, list[str]] = {}
        for name in self.texts:
            named.setdefault(Path(name).name, []).append(name)
        return {
            name: [
                other
                for path in _INCLUDE.findall(text)
                for other in named.get(Path(path).name, ())
                if other.endswith(f"/{path}")
            ]
            for name, text in self.texts.items()
        }

    def closure(self, names: Iterable[str]) -> set[str]:
        """`names`, and all files that they include, directly or indirectly."""
        found = list(names)
        for name in found:
            found += [other for other in self.includes[name] if other not in found]
        return set(found)

    @cached_property
    def left_out(self) -> set[str]:
        """Features, sources that include one or name its symbol, and all sources with a symbol of such a suite."""
        hooks = " ".join(edit.line for hooked in graft.FEATURES.values() for edit in hooked)
        feature = self.closure(name for name in self.texts if Path(name).name in re.split(r"[^\w.]", hooks))
        own = (self.kconfigs.get(name, ()) for name in feature)
        options = [entry.symbol for entries in own for entry in entries if entry.symbol]
        named = re.compile(rf"\bCONFIG_({'|'.join(options) or '-'})\b")
        out = {name for name in self.listed if self.closure([name]) & feature or named.search(self.texts[name])}
        gone = {symbol for name in out if is_suite(name) for symbol in self.listed[name]}
        return feature | out | {name for name, symbols in self.listed.items() if symbols & gone}

    def tree(self, base: Mapping[str, str], sources: Set[str]) -> dict[str, str]:
        """The files that the series adds or edits up to the patch that completes `sources`, without MAINTAINERS.

        base: the files of the kernel tree to which the series adds lines
        """
        folders = {str(Path(name).parent) for name in sources}
        present = {
            name
            for name in self.texts
            if name in sources or name in FIRST or (not is_c(name) and str(Path(name).parent) in folders)
        }
        found: dict[str, str] = {}
        for name in sorted(present):
            if name in self.makefiles:
                found[name] = self.makefiles[name].cut(sources)
            elif name in self.kconfigs:
                kept = "".join(entry.text for entry in self.kconfigs[name] if self._fits(entry, sources, present))
                found[name] = kept.rstrip("\n") + "\n"
            else:
                found[name] = self.texts[name]
        for edit in graft.EDITS:
            word = edit.line.split()[-1].strip('"')
            target = word if edit.line.startswith("source ") else str(Path(edit.path).parent / word)
            if target in present or f"{target}/Makefile" in present:
                text = edit.apply(found.get(edit.path, base[edit.path]))
                assert text is not None
                found[edit.path] = text
        return found

    def _fits(self, entry: kconfig.Entry, sources: Set[str], present: Set[str]) -> bool:
        """Whether the sources or the file of an entry of a Kconfig file are present."""
        if entry.source:
            return entry.source in present
        built = [name for name, symbols in self.listed.items() if entry.symbol in symbols]
        return not built or not sources.isdisjoint([name for name in built if is_suite(name)] or built)


def is_c(name: str) -> bool:
    """Whether a file is C. The first patch that uses a C file adds it. Other files come with their folder."""
    return name.endswith((".c", ".h"))


def is_suite(name: str) -> bool:
    """Whether a source is a KUnit suite, a module that only has to link, or a selftest."""
    return name.endswith(("_kunit.c", "_link.c")) or (name.startswith(graft.SELFTESTS) and name.endswith(".c"))
