# SPDX-License-Identifier: GPL-2.0
"""make series: the overlay as patches for `git am`, one for each suite, without the features of the overlay.

The files of a suite follow from its includes and from the Makefile that lists its objects. The Makefiles also give the
order of the patches. After each patch, Makefiles and Kconfig files name only files that are there by then, so that
every step builds. After the last patch the tree is as grafted with FEATURES=, and has an entry in MAINTAINERS.
"""

import fnmatch
import json
import re
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..boot import results
from ..core import command, git, ours
from ..core.errors import UserError
from ..core.settings import PROJECT, from_environment
from ..kernel import graft, source

OLDEST = (6, 12)
"""The first kernel that the suites are for."""

WIDTH = 75
"""Columns of a commit message."""

SUBJECTS = {
    "lib/pgtable_kunit": "lib/pgtable_kunit",
    "arch/arm64/mm/tests": "arm64: mm",
    "arch/riscv/mm/tests": "riscv: mm",
    "mm/tests": "mm/tests",
    "lib/rmap_id": "lib/rmap_id",
    "lib/rmap_id/tests": "lib/rmap_id",
    f"{graft.SELFTESTS}/mm": "selftests/mm",
}
"""The folders with sources, in the order of the series, and the prefix of the subjects of their patches.

arm64 comes before mm/tests, since vma_split calls the recorder of invalidations. The library builds it for contpte."""

FIRST = ("Kconfig.kunit", "mm/tests/.kunitconfig")
"""Files of the library's patch. They are about the suites of all folders."""

MAINTAINERS = "MAINTAINERS"
TITLE = "MEMORY MANAGEMENT - PAGE TABLE TESTS"
LISTS = ("linux-mm@kvack.org",)

COVER = """\
mm: KUnit suites and selftests for batches of page-table entries

fork, munmap, mprotect, madvise and reclaim change page-table entries by the dozen with one call: set_ptes(), \
wrprotect_ptes(), get_and_clear_full_ptes() and their like, on batches that folio_pte_batch() and swap_pte_batch() \
find. On arm64 these functions also fold and unfold contiguous blocks. A function that changes one entry too many \
changes another mapping. A lost dirty bit means data that is never written back. A TLB that has two translations of \
one address may use either.

This series tests what these functions promise. KUnit suites call them on synthetic page tables with real folios, and \
through system calls on real address spaces. The suites compare every entry with a model, also the entries outside of \
the range. They check TLB invalidations, mapcounts and references. Random walks print the shortest sequence of calls \
that fails. \
Selftests check what user space can observe: contents, page sizes as perf sees them, numbers of page faults.

Nothing in the tree does that. No KUnit suite and no selftest calls one of these functions. mm/debug_vm_pgtable.c \
checks only helpers for single entries. User space cannot see an entry that is wrong for a moment, a lost accessed bit \
or a needless invalidation. Most of the functions are inline, private to mm/ or not exported, so a test has to be \
built in, with page tables, folios and address spaces of its own. The first patch adds these as lib/pgtable_kunit, a \
library without tests.

So far only its own suites use the library lib/rmap_id.
"""

RUN = """\
  ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests
  ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests \\
        --arch=arm64 --cross_compile=aarch64-linux-gnu-
  make kselftest TARGETS=mm
"""

_INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)
_CHUNK = re.compile(r"(?:#.*\n)*[^\n\t#](?:.*\\\n)*.*\n(?:\t.*\n)*|(?:#.*\n)+|\n")
_ASSIGNMENT = re.compile(r"(\s*([^\s:=]+?)\s*(?:\+=|:=|=)\s*)(.*)", re.DOTALL)
_CONDITION = re.compile(r"\$\(CONFIG_(\w+)\)")
_PROGRAMS = "TEST_GEN_PROGS"


@dataclass
class Chunk:
    """A statement of a Makefile with the comment above and the recipe below; or the text between two statements.

    text:  the whole text
    about: the sources that it is about, if any; without them the statement means nothing
    items: the words of a list of objects, each with the sources that it stands for
    names: the names that it defines for other statements
    symbols: the CONFIG symbols that it depends on
    """

    text: str
    about: set[str] = field(default_factory=set)
    items: dict[str, set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    symbols: set[str] = field(default_factory=set)

    @property
    def statement(self) -> str:
        """The text without the comment above."""
        return re.sub(r"\A(#.*\n)+", "", self.text)

    def thinned(self, present: Set[str]) -> str:
        """The text with only the items that have a source in `present`."""
        if all(sources & present for sources in self.items.values()):
            return self.text
        match = _ASSIGNMENT.fullmatch(self.statement)
        assert match
        rows = [row.split() for row in match[3].replace("\\\n", "\n").splitlines()]
        kept = [[word for word in row if self.items.get(word, present) & present] for row in rows]
        lines = [" ".join(row) for row in kept if row]
        return self.text.removesuffix(match[0]) + match[1] + " \\\n\t".join(lines) + "\n"


class Makefile:
    """A Makefile of the overlay (or a *.mk of the selftests). cut() reduces it to some of the sources."""

    def __init__(self, name: str, text: str, files: Set[str]) -> None:
        self.folder = str(Path(name).parent)
        self.chunks = [Chunk(text) for text in _CHUNK.findall(text)]
        self._files = files
        self._parts: dict[str, set[str]] = {}
        # Composite objects first, since other lists name them.
        for whole in (False, True):
            for chunk in self.chunks:
                if match := _ASSIGNMENT.fullmatch(chunk.statement):
                    self._assignment(chunk, match[2], match[3].replace("\\\n", " ").split(), whole)
                elif match := re.match(r"([^\s:]+):\s", chunk.statement):
                    chunk.names = {Path(match[1]).name}
                    chunk.about = self._sources(Path(match[1]).name)

    def _assignment(self, chunk: Chunk, name: str, words: list[str], whole: bool) -> None:
        listing = re.fullmatch(r"(\w+)-(y|\$\(CONFIG_\w+\))", name)
        if listing and (listing[1] == "obj") != whole:
            return
        chunk.names = set(words) if name == "targets" else {re.sub("^(quiet_)?cmd_", "", name)}
        if name.startswith("CFLAGS_"):
            chunk.about = self._sources(name.removeprefix("CFLAGS_"))
        elif listing or name == _PROGRAMS:
            program = ".o" if name == _PROGRAMS else ""
            chunk.items = {word: found for word in words if (found := self._sources(word + program))}
            chunk.about = set().union(*chunk.items.values())
            chunk.symbols = set(_CONDITION.findall(name))
            if listing:
                self._parts.setdefault(f"{listing[1]}.o", set()).update(chunk.about)

    def _sources(self, word: str) -> set[str]:
        """The sources of an object, or of a folder, which ends in a slash."""
        if word.endswith("/"):
            return {name for name in self._files if name.startswith(f"{self.folder}/{word}")}
        own = f"{self.folder}/{word.removesuffix('.o')}.c"
        return {own} if word.endswith(".o") and own in self._files else self._parts.get(word, set())

    def listed(self) -> dict[str, set[str]]:
        """The sources in their order, each with the symbols that it is built for."""
        found: dict[str, set[str]] = {}
        for chunk in self.chunks:
            for word, sources in chunk.items.items():
                for name in sorted(sources) if not word.endswith("/") else ():
                    found.setdefault(name, set()).update(chunk.symbols)
        return found

    def cut(self, present: Set[str]) -> str:
        """The text for a tree that has only the sources in `present`."""
        every = [chunk for chunk in self.chunks if chunk.about]
        some = [chunk for chunk in every if chunk.about & present]
        needed = self._needed(some)
        unneeded = [chunk for chunk in self._needed(every) if chunk not in needed]
        kept: list[str] = []
        opened: list[int] = []
        for chunk in self.chunks:
            if re.match("if(n?def|n?eq) ", chunk.statement):
                opened.append(len(kept))
            elif chunk.statement == "endif\n":
                start = opened.pop()
                if not any(text.strip() and not text.startswith("#") for text in kept[start + 1 :]):
                    del kept[start:]
                    continue
            elif chunk in unneeded:
                continue
            kept.append(chunk.thinned(present))
        return re.sub(r"\n{3,}", "\n\n", "".join(kept)).rstrip("\n") + "\n"

    def _needed(self, roots: Sequence[Chunk]) -> list[Chunk]:
        """`roots`, and the statements that define what they use."""
        found = list(roots)
        for chunk in found:
            words = set(re.findall(r"[\w.]+", chunk.statement))
            found += [c for c in self.chunks if c.names & words and not c.about and c not in found]
        return found


@dataclass(frozen=True)
class Step:
    """One patch.

    subject: its subject
    heads:   the sources whose head comments are its message
    sources: the C files that it adds
    name:    the suite or program, if it is one
    """

    subject: str
    heads: tuple[str, ...]
    sources: tuple[str, ...]
    name: str = ""


class Overlay:
    """The files of the overlay, and how they depend on one another."""

    def __init__(self, project: Path = PROJECT) -> None:
        self.texts = {name: (project / name).read_text() for name in graft.overlay_files(project)}
        self.makefiles = {
            name: Makefile(name, text, self.texts.keys())
            for name, text in self.texts.items()
            if Path(name).name == "Makefile" or name.endswith(".mk")
        }
        self._entries = [block for name in self.kconfigs for block in kconfig_blocks(self.texts[name])]

    @property
    def kconfigs(self) -> list[str]:
        """The Kconfig files of the overlay."""
        return [name for name in self.texts if Path(name).name.startswith("Kconfig")]

    @cached_property
    def symbols(self) -> dict[str, set[str]]:
        """The CONFIG symbols of the overlay, each with the symbols that it selects."""
        found = (re.match(r"config (\w+)\n", block) for block in self._entries)
        return {m[1]: set(re.findall(r"^\s+select (\w+)", m.string, re.MULTILINE)) for m in found if m}

    @cached_property
    def listed(self) -> dict[str, set[str]]:
        """The sources in the order of the series, each with the symbols of the overlay that it is built for."""
        merged: dict[str, set[str]] = {}
        if strange := [name for name, makefile in self.makefiles.items() if makefile.folder not in SUBJECTS]:
            raise UserError(f"{strange[0]}: say in SUBJECTS of series.py where its folder comes in the series")
        for makefile in sorted(self.makefiles.values(), key=lambda makefile: list(SUBJECTS).index(makefile.folder)):
            for name, symbols in makefile.listed().items():
                merged.setdefault(name, set()).update(symbols & self.symbols.keys())
        unlisted = [name for name in self.texts if name.endswith(".c") and name not in merged]
        if unlisted:
            raise UserError(f"{unlisted[0]}: the Makefile in its folder does not list it")
        return merged

    @cached_property
    def includes(self) -> dict[str, list[str]]:
        """By file of the overlay, the files of the overlay that it includes directly."""
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
        """`names`, and all that they include."""
        found = list(names)
        for name in found:
            found += [other for other in self.includes[name] if other not in found]
        return set(found)

    @cached_property
    def left_out(self) -> set[str]:
        """The features, and sources that need one: they include it, name its symbol, or share a symbol with a user."""
        hooks = " ".join(edit.line for hooked in graft.FEATURES.values() for edit in hooked)
        feature = self.closure(name for name in self.texts if Path(name).name in re.split(r"[^\w.]", hooks))
        entries = " ".join(self.texts[name] for name in feature & set(self.kconfigs))
        options = re.findall(r"^config (\w+)", entries, re.MULTILINE)
        named = re.compile(rf"\bCONFIG_({'|'.join(options) or '-'})\b")
        out = {name for name in self.listed if self.closure([name]) & feature or named.search(self.texts[name])}
        gone = {symbol for name in out if is_suite(name) for symbol in self.listed[name]}
        return feature | out | {name for name, symbols in self.listed.items() if symbols & gone}

    @cached_property
    def steps(self) -> list[Step]:
        """The patches in their order."""
        steps: list[Step] = []
        taken = set(self.left_out)

        def add(subject: str, sources: Iterable[str], name: str = "") -> None:
            new = sorted(self.closure(sources) - taken)
            taken.update(new)
            own = [source for source in new if is_suite(source)]
            headers = [source for source in new if source.endswith(".h")]
            rest = [source for source in new if not set(self.includes[source]) & set(headers) and source not in headers]
            heads = own or sorted([*headers, *rest], key=lambda head: Path(head).stem != Path(head).parent.name)
            subject = subject or f"add {clause(self.texts[heads[0]])}"
            prefix = SUBJECTS[str(Path(new[0]).parent)]
            if len(f"{prefix}: {subject}") > WIDTH:
                subject = f"add {', '.join(Path(head).stem for head in heads)}"
            steps.append(Step(f"{prefix}: {subject}", tuple(heads), tuple(new), name))

        for folder in SUBJECTS:
            here = [name for name in self.listed if str(Path(name).parent) == folder and name not in taken]
            suites = [name for name in here if is_suite(name)]
            if not suites and (core := [name for name in here if name not in self._parts]):
                add("", core)
            for suite in suites:
                wanted = self.listed[suite].union(*(self.symbols[symbol] for symbol in self.listed[suite]))
                for part in self._missing(wanted, taken):
                    add("", part)
                what = suite_name(self.texts[suite]) or Path(suite).stem
                kind = "KUnit suite " if suite.endswith("_kunit.c") else ""
                add(f"add {kind}{what}", [suite, *self._helpers(suite, here, taken)], what)
        return steps

    @cached_property
    def _parts(self) -> dict[str, set[str]]:
        """Sources of libraries that only some suites need, each with the symbols of those suites."""
        tested = {str(Path(name).parent) for name in self.listed if is_suite(name)}
        found: dict[str, set[str]] = {}
        for makefile in self.makefiles.values():
            if makefile.folder not in tested:
                whole = set().union(*(c.symbols for c in makefile.chunks if c.statement.startswith("obj-")))
                found |= {name: rest for name in makefile.listed() if (rest := self.listed[name] - whole)}
        return found

    def _missing(self, wanted: Set[str], taken: Set[str]) -> list[list[str]]:
        """The library sources to add before the suites of the symbols `wanted`: one list for each patch."""
        parts: dict[str, list[str]] = {}
        for name, symbols in self._parts.items():
            if name not in taken and symbols & wanted:
                new = [header for header in self.includes[name] if header not in taken]
                parts.setdefault(min(new, default=name), []).append(name)
        return list(parts.values())

    def _helpers(self, suite: str, here: Iterable[str], taken: Set[str]) -> Iterator[str]:
        """Other sources in the suite's folder that the suite's symbol builds and whose header the suite includes."""
        headers = self.closure([suite])
        for name in here:
            if not is_suite(name) and name not in taken and self.listed[name] & self.listed[suite]:
                own = [header for header in self.includes[name] if Path(header).parent == Path(name).parent]
                if not own or set(own) & headers:
                    yield name

    def message(self, step: Step) -> str:
        """The message of a patch, without Signed-off-by."""
        first, *others = step.heads
        said = [prose(self.texts[first]), *(prose(self.texts[name], f"{Path(name).name}: ") for name in others)]
        return "\n\n".join([step.subject, *said])

    def tree(self, base: Mapping[str, str], sources: Set[str]) -> dict[str, str]:
        """The files that the series has added or edited when `sources` are there, without MAINTAINERS.

        base: the files of the kernel tree that get a line
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
                blocks = kconfig_blocks(self.texts[name])
                kept = "".join(block for block in blocks if self._entry_fits(block, sources, present))
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

    def _entry_fits(self, block: str, sources: Set[str], present: Set[str]) -> bool:
        """Whether an entry of a Kconfig file is about sources or files that are there."""
        if match := re.match(r'source "(.*)"\n', block):
            return match[1] in present
        match = re.match(r"config (\w+)\n", block)
        built = [name for name, symbols in self.listed.items() if match and match[1] in symbols]
        return not built or not sources.isdisjoint([name for name in built if is_suite(name)] or built)


def is_c(name: str) -> bool:
    """Whether a file is C. The first patch that uses a C file adds it; other files are added with their folder."""
    return name.endswith((".c", ".h"))


def is_suite(name: str) -> bool:
    """Whether a source is a KUnit suite, a module that has only to link, or a selftest."""
    return name.endswith(("_kunit.c", "_link.c")) or (name.startswith(graft.SELFTESTS) and name.endswith(".c"))


def suite_name(text: str) -> str:
    """The name of the KUnit suite in a source; "" if there is none."""
    match = re.search(r'^\t\.name = "(\w+)"', text, re.MULTILINE)
    return match[1] if match else ""


def kconfig_blocks(text: str) -> list[str]:
    """A Kconfig file, cut where a line is not indented."""
    return [block for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if block]


def head(text: str) -> list[list[str]]:
    """The paragraphs of the comment at the head of a source, each a list of lines, without references to catalogues."""
    comment = re.search(r"^/\*\n(.*?)^ \*/", text, re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"^ \* ?", "", line.expandtabs()) for line in comment[1].splitlines()] if comment else []
    plain = re.sub(r"\s*\[[a-z ]+ \d[\d, -]*\]", "", "\n".join(lines))
    return [paragraph.split("\n") for paragraph in re.split(r"\n{2,}", plain.strip("\n")) if paragraph]


def clause(text: str) -> str:
    """The beginning of a head comment, up to its first stop, in a form that can continue a sentence."""
    first = re.split(r"[,.:;](?:\s|$)|\s(?:that|through)\s", " ".join(head(text)[0]))[0]
    return first[0].lower() + first[1:] if first[1].islower() else first


def prose(text: str, name: str = "") -> str:
    """A head comment, after `name`, as text of a commit message; commands and drawings stay as they are."""
    paragraphs: list[str] = []
    for lines in head(text):
        lines[0] = lines[0] if paragraphs else name + lines[0]
        if lines[0].startswith("  ./tools/") and paragraphs and not paragraphs[-1].endswith(":"):
            paragraphs.append("To run it:")
        paragraphs.append(paragraph(lines))
    return "\n\n".join(paragraphs)


def paragraph(lines: Sequence[str]) -> str:
    """Lines of a comment at the width of a commit message. Text and list items are wrapped; other lines stay."""
    pieces: list[tuple[str, list[str]]] = []
    for line in lines:
        if re.match(r"\s*- ", line):
            pieces.append(("item", [line.strip().removeprefix("- ")]))
        elif pieces and pieces[-1][0] == "item" and line[:1].isspace():
            pieces[-1][1].append(line.strip())
        else:
            kind = "fixed" if line[:1].isspace() else "text"
            if not pieces or pieces[-1][0] != kind:
                pieces.append((kind, []))
            pieces[-1][1].append(line)
    return "\n".join(shown(kind, block) for kind, block in pieces)


def shown(kind: str, lines: Sequence[str]) -> str:
    """One piece of a paragraph."""
    if kind == "fixed":
        block = textwrap.dedent("\n".join(lines))
        room = WIDTH - max(len(line) for line in block.split("\n"))
        return textwrap.indent(block, " " * max(0, min(2, room)))
    return wrapped(" ".join(lines), "- " if kind == "item" else "")


def wrapped(text: str, mark: str = "") -> str:
    """`text` at the width of a commit message, after a mark if it is an item of a list."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


def patterns(files: Iterable[str], others: Iterable[str]) -> list[str]:
    """The patterns for MAINTAINERS that match all of `files` and none of `others`."""
    found: list[str] = []
    rest = list(others)
    for name in sorted(files, key=len):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in found):
            glob = re.sub(r"(_kunit)?\.[ch]$", "*", name)
            found.append(name if fnmatch.filter(rest, glob) else glob)
    return found


def with_entry(text: str, person: str, listed: Iterable[str]) -> str:
    """MAINTAINERS with our entry at its place in the alphabet. Raises UserError if the file has no list of entries."""
    entry = [TITLE, f"M:\t{person}", *(f"L:\t{name}" for name in LISTS), "S:\tMaintained"]
    entry += [f"F:\t{name}" for name in sorted(listed)]
    for match in re.finditer(r"^\n(\S.*)\n[A-Z]:\t", text, re.MULTILINE):
        if match[1].upper() > TITLE or match[1] == "THE REST":
            return text[: match.start(1)] + "\n".join(entry) + "\n\n" + text[match.start(1) :]
    raise UserError(f"{MAINTAINERS}: no place for the section {TITLE}; is the file complete?")


def version(tree: Path) -> str:
    """The version that a kernel tree gives itself. Raises UserError if the tree is too old for the suites."""
    text = (tree / "Makefile").read_text()
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) = *(\S*)$", text, re.MULTILINE))
    numbers = [found.get(name) or "0" for name in ("VERSION", "PATCHLEVEL")]
    whole = ".".join(numbers) + (f".{found['SUBLEVEL']}" if found.get("SUBLEVEL", "0") != "0" else "")
    if not all(number.isdecimal() for number in numbers) or tuple(map(int, numbers)) < OLDEST:
        raise UserError(f"{tree}: Linux {whole} is too old; use {'.'.join(map(str, OLDEST))} and newer")
    return f"{whole}{found.get('EXTRAVERSION', '')}"


def base_files(tree: Path, overlay: Overlay) -> dict[str, str]:
    """The files of a kernel tree that get a line of ours. Raises UserError if the series would not apply."""
    if graft.Journal.load(tree):
        raise UserError(f"{tree} is grafted; take the overlay off with make ungraft KDIR={tree}, or give another tree")
    for name in overlay.texts:
        if (tree / name).exists():
            raise UserError(f"{tree / name} exists already; use a tree without the overlay")
    names = [*graft.edited(tree), MAINTAINERS]
    if git.commit_of(tree) and (changed := git.asked(tree, "diff", "--name-only", "HEAD", "--", *names)):
        raise UserError(
            f"{tree / changed.split()[0]} has uncommitted changes, which git am refuses; commit or stash them"
        )
    try:
        return {name: (tree / name).read_bytes().decode() for name in names}
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}; mmcheck must add lines to it") from None


def figures(out: Path, names: Set[str]) -> str:
    """The counts of `make results` for the suites and programs in `names`, as a table; "" if there are none."""
    path = out / "results" / "results.json"
    try:
        cases = [results.Case(**case) for case in json.loads(path.read_text())["cases"]]
    except FileNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged; run make results again, or delete it") from None
    runs: dict[str, list[results.Case]] = {}
    for case in cases:
        run, _, suite = case.suite.rpartition(" ")
        if suite in names:
            runs.setdefault(run, []).append(case)
    width = max((len(run) for run in runs), default=0)
    rows = [("", results.STATES), *((run, results.counts(own).values()) for run, own in runs.items())]
    table = [f"  {run:{width}}" + "".join(f"{cell:>9}" for cell in cells) for run, cells in rows]
    return "\n".join(table) if runs else ""


def cover(overlay: Overlay, base: str, commit: str, table: str) -> str:
    """The text of the cover letter, its subject first."""
    subject, *paragraphs = COVER.rstrip().split("\n\n")
    blocks = [subject, *(wrapped(text) for text in paragraphs)]
    for title, kind in (("KUnit suites:", "_kunit.c"), ("Selftests:", f"{graft.SELFTESTS}/")):
        suites = [(step.name, step.heads[0]) for step in overlay.steps if step.name and kind in step.heads[0]]
        about = [wrapped(f"{name}: {' '.join(head(overlay.texts[path])[0])}", "- ") for name, path in suites]
        blocks += [title, "\n".join(about)]
    if gone := [suite_name(overlay.texts[n]) or Path(n).stem for n in sorted(overlay.left_out) if is_suite(n)]:
        features = ", ".join(graft.FEATURES)
        blocks.append(
            wrapped(
                f"These are left out: {', '.join(gone)}. Each uses a feature that is not part of the "
                f"kernel ({features}), or has the same Kconfig symbol as a suite that uses such a feature."
            )
        )
    blocks += ["To run them:", RUN.rstrip()]
    if table:
        blocks += ["Cases by their verdicts:", table]
    blocks.append(f"Made for Linux {base}.")
    if commit:
        blocks.append(f"base-commit: {commit}")
    return "\n\n".join(blocks) + "\n"


def make(tree: Path, target: Path, person: tuple[str, str], date: str, table: Callable[[Set[str]], str]) -> list[Path]:
    """Write the patches for `tree` into the new folder `target`; returns them in their order, the cover letter first.

    table: gives the figures of the cover letter for names of suites and programs
    """
    base = version(tree)
    overlay = Overlay()
    files = base_files(tree, overlay)
    signed = f"{person[0]} <{person[1]}>"
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        repository = git.Repository(Path(folder), person, date)
        repository.commit(files, "base")
        repository.git("tag", "base")
        for state, step in states(tree, files, overlay, signed):
            repository.commit(state, f"{overlay.message(step)}\n\nSigned-off-by: {signed}\n")
        names = {step.name for step in overlay.steps if step.name}
        repository.git("config", "branch.series.description", cover(overlay, base, git.commit_of(tree), table(names)))
        letter = ("--cover-letter", "--cover-from-description=subject")
        plain = ("--zero-commit", "--no-signature", "--no-renames", "--abbrev=12", "--quiet")
        repository.git("format-patch", *letter, *plain, "-o", str(target), "base..series")
    return sorted(target.iterdir())


def states(tree: Path, base: Mapping[str, str], overlay: Overlay, signed: str) -> Iterator[tuple[dict[str, str], Step]]:
    """For each patch, the content after it of all files that are ours or have a line of ours."""
    sources: set[str] = set()
    before: Set[str] = set()
    maintained: list[str] = []
    for step in overlay.steps:
        sources.update(step.sources)
        state = overlay.tree(base, sources)
        new = state.keys() - before - base.keys()
        theirs = {f"{Path(name).parent}/{file.name}" for name in new for file in (tree / name).parent.glob("*")}
        maintained += patterns(new, theirs | (overlay.texts.keys() - new))
        before = state.keys()
        yield {**state, MAINTAINERS: with_entry(base[MAINTAINERS], signed, maintained)}, step


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    settings = from_environment({**environ, "PAGES": "", "PATCH": ""})
    if not shutil.which("git"):
        raise UserError("git is needed to make patches; install git")
    person = git.author()
    date = git.asked(PROJECT, "log", "-1", "--format=%cI")
    if not date:
        raise UserError(f"{PROJECT} has no git history, but patches get their date from it; use a clone")
    tree = source.obtain(settings).path
    try:
        target = settings.out / "series"
        ours.claim(target)
        with tempfile.TemporaryDirectory(prefix=".series-", dir=settings.out) as folder:
            made = make(tree, Path(folder) / "new", person, date, lambda names: figures(settings.out, names))
            (Path(folder) / "new" / ours.MARKER).touch()
            if target.exists():
                target.rename(Path(folder) / "old")
            (Path(folder) / "new").rename(target)
    except OSError as error:
        raise UserError(f"cannot write {settings.out}: {error.strerror}; choose another O=") from None
    print(f"{len(made) - 1} patches and a cover letter; to apply them: git am --empty=drop {target}/*.patch")
    return 0


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("series", run, environ)
