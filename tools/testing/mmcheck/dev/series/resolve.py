# SPDX-License-Identifier: GPL-2.0
"""Sources that fit only one kernel tree: without branches for other kernels, and without the wrappers of compat.h."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...kernel import probes

WRAPPERS = "lib/pgtable_kunit/compat.h"
"""The header that hides the differences between kernels."""

GUARDS = {"_LINUX_LEAFOPS_H": "LEAFOPS"}
"""Macros that stand for a probe, though the probe searches for another word.

Other such macros also depend on the architecture."""

Ask = Callable[[str], bool | None]
"""Takes the condition of an #if. Returns whether it is true in the tree, or None if only the compiler can tell."""

_NAMED = re.compile(
    r"^#define (\w+)|^(?:struct|enum) (\w+) \{|^(?:static inline )?[^#\n(]*?(pgtable_kunit_\w+)\(", re.MULTILINE
)
_DIRECTIVE = re.compile(r"#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)")


def asker(tree: Path) -> Ask:
    """A function that decides conditions about probes and headers for a tree."""
    found = probes.answers(tree)
    known = {f"PGTABLE_KUNIT_HAS_{row[1]}": found[row[1]] for row in probes.table() if row[0] == "build"}
    known |= {row[2]: found[row[1]] for row in probes.table() if row[0] == "cpp"}
    known |= {guard: found[name] for guard, name in GUARDS.items()}

    def ask(condition: str) -> bool | None:
        if header := re.fullmatch(r'__has_include\("(\S+)"\)', condition):
            return (tree / "include" / header[1]).exists()
        word = re.sub(r"^defined\((\w+)\)$", r"\1", condition)
        return {"yes": True, "no": False}.get(known.get(word, ""))

    return ask


@dataclass
class _Level:
    """An #if that is open. kept: the directives stay; done: a branch was chosen; shown: the current branch stays."""

    kept: bool
    done: bool
    shown: bool


def chosen(text: str, ask: Ask) -> str:
    """`text` without the branches that the tree does not take, and without the conditions that the tree decides."""
    lines: list[str] = []
    open_: list[_Level] = []
    for line in text.split("\n"):
        match = _DIRECTIVE.match(line)
        outside = all(level.shown for level in open_[:-1])
        if not match:
            if all(level.shown for level in open_):
                lines.append(line)
            continue
        word, condition = match[1], re.sub(r"/\*.*", "", match[2]).strip()
        if word in ("if", "ifdef", "ifndef"):
            answer = ask(condition) if not line.endswith("\\") else None
            if word == "ifndef" and answer is not None:
                answer = not answer
            if answer is None and all(level.shown for level in open_):
                lines.append(line)
            open_.append(_Level(answer is None, bool(answer), answer is not False))
            continue
        level = open_[-1]
        if word == "endif":
            open_.pop()
            if level.kept and outside:
                lines.append(line)
        elif level.kept:
            if outside:
                lines.append(line)
        else:
            level.shown = not level.done and (word == "else" or bool(ask(condition)))
            level.done |= level.shown
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def aliases(text: str) -> dict[str, str]:
    """The macros that only give another name to a function, with the same arguments."""
    plain = re.findall(r"^#define (pgtable_kunit_\w+)\t+(\w+)$", text, re.MULTILINE)
    calls = re.findall(r"^#define (pgtable_kunit_\w+)(\([^)]*\))[\s\\]+(\w+)(\([^)]*\))$", text, re.MULTILINE)
    return {**dict(plain), **{name: real for name, given, real, passed in calls if given == passed}}


@dataclass(frozen=True)
class Definition:
    """A piece of a header between two empty lines: its text, and the names that it defines."""

    text: str
    names: tuple[str, ...]

    def used_in(self, text: str) -> bool:
        """Whether `text` has one of the names. The preprocessor may compose the name."""
        parts = [n.removeprefix("PGTABLE_KUNIT_") for n in self.names] if "PGTABLE_KUNIT_##" in text else []
        return any(re.search(rf"\b{name}\b", text) for name in (*self.names, *parts))


def definitions(text: str) -> list[Definition]:
    """The definitions of compat.h without aliases, each with the comment above it."""
    gone = "|".join(aliases(text))
    text = re.sub(rf"^#define (?:{gone})\b(?:.*\\\n)*.*\n", "", text, flags=re.MULTILINE)
    body = text[text.index("#include") : text.rindex("#endif")]
    pieces: list[str] = []
    depth = 0
    for piece in re.split(r"\n\n+", re.sub(r"^#include .*\n", "", body, flags=re.MULTILINE).strip("\n")):
        if depth or (pieces and _unfinished(pieces[-1])):
            pieces[-1] += f"\n\n{piece}"
        else:
            pieces.append(piece)
        depth += len(re.findall(r"^#if", piece, re.MULTILINE)) - len(re.findall(r"^#endif", piece, re.MULTILINE))
    found = []
    for piece in pieces:
        named = _NAMED.findall(piece)
        found.append(Definition(piece, tuple(name for names in named for name in names if name)))
    return found


def _unfinished(piece: str) -> bool:
    """Whether a piece ends inside of a function, or is only a comment."""
    ends_open = piece.count("{") > piece.count("}")
    return ends_open or re.fullmatch(r"/\*(?:(?!\*/).)*\*/", piece, re.DOTALL) is not None


def renamed(text: str, names: Mapping[str, str]) -> str:
    """`text` with other names, also after a prefix. Lines that continue a call stay aligned with its parenthesis."""
    if not names:
        return text
    word = re.compile(rf"(?:\b|(?<=_))({'|'.join(names)})\b")
    return "\n".join(_aligned(text.split("\n"), lambda line: word.sub(lambda match: names[match[1]], line)))


def _aligned(lines: list[str], change: Callable[[str], str]) -> Iterator[str]:
    columns: dict[int, int] = {}
    depth = 0
    for old in lines:
        width = len(old.expandtabs(8)) - len(old.expandtabs(8).lstrip())
        line = old
        if depth and width in columns:
            line = indented(old.lstrip(), columns[width])
        elif not depth:
            columns = {}
        new = change(line)
        columns |= dict(zip(_opened(old), _opened(new), strict=False))
        depth = max(0, depth + old.count("(") - old.count(")"))
        yield new


def indented(line: str, width: int) -> str:
    """`line` after `width` columns of white space, as the kernel writes it."""
    return "\t" * (width // 8) + " " * (width % 8) + line


def _opened(line: str) -> list[int]:
    """The columns after the parentheses that a line opens."""
    return [len(line[: match.end()].expandtabs(8)) for match in re.finditer(r"\(", line)]
