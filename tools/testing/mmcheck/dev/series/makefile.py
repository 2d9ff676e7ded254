# SPDX-License-Identifier: GPL-2.0
"""Makefiles of the overlay: the sources that they list, and their texts for only some of the sources."""

import fnmatch
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

_CHUNK = re.compile(r"(?:#.*\n)*[^\n\t#](?:.*\\\n)*.*\n(?:\t.*\n)*|(?:#.*\n)+|\n")
_ASSIGNMENT = re.compile(r"(\s*([^\s:=]+?)\s*(?:\+=|:=|=)\s*)(.*)", re.DOTALL)
_CONDITION = re.compile(r"\$\(CONFIG_(\w+)\)")
_PROGRAMS = "TEST_GEN_PROGS"


@dataclass
class Chunk:
    """A statement of a Makefile with the comment above and the recipe below; or the text between two statements.

    text:  the whole text
    about: the sources that the statement names, if any; without these sources it has no effect
    items: the words of a list of objects, each with its sources
    names: the names that the statement defines for other statements
    symbols: the CONFIG symbols that the statement depends on
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
        # Handle composite objects first, because other lists name them.
        for whole in (False, True):
            for chunk in self.chunks:
                if match := _ASSIGNMENT.fullmatch(chunk.statement):
                    self._assignment(chunk, match[2], match[3].replace("\\\n", " ").split(), whole)
                elif match := re.match(r"([^\s:]+):\s(.*)", chunk.statement):
                    target = Path(match[1]).name
                    globs = [f"{self.folder}/{glob}" for glob in re.findall(r"\$\(wildcard (\S+)\)", match[2])]
                    more = {name for glob in globs for name in fnmatch.filter(files, glob)}
                    if more:  # a program with several sources
                        self._parts[f"{target}.o"] = more
                    chunk.names = {target}
                    chunk.about = self._sources(target) | more

    def _assignment(self, chunk: Chunk, name: str, words: list[str], whole: bool) -> None:
        listing = re.fullmatch(r"(\w+)-(y|\$\(CONFIG_\w+\))", name)
        if listing and (listing[1] == "obj") != whole:
            return
        chunk.names = set(words) if name == "targets" else {re.sub("^((quiet_)?cmd_|[a-z]+-(?=.*[.]h$))", "", name)}
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
        """The sources of an object or of a folder. The name of a folder ends in a slash."""
        if word.endswith("/"):
            return {name for name in self._files if name.startswith(f"{self.folder}/{word}")}
        own = f"{self.folder}/{word.removesuffix('.o')}.c"
        parts = self._parts.get(word, set())
        return {own, *parts} if word.endswith(".o") and own in self._files else parts

    def listed(self) -> dict[str, set[str]]:
        """The sources in the order of the Makefile, each with the CONFIG symbols that build it."""
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
        """`roots`, and the statements that define the names that the roots use, directly or indirectly."""
        found = list(roots)
        for chunk in found:
            words = set(re.findall(r"[\w.]+", chunk.statement))
            found += [c for c in self.chunks if c.names & words and not c.about and c not in found]
        return found
