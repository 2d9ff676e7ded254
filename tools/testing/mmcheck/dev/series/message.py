# SPDX-License-Identifier: GPL-2.0
"""Commit messages: the head comments of sources, wrapped to the width of a mail."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

WIDTH = 75
"""The maximum line length of a commit message."""


def compose(subject: str, heads: Mapping[str, str]) -> str:
    """The message of a patch, without Signed-off-by. `heads` has the sources whose head comments describe the patch."""
    first, *others = heads
    said = [prose(heads[first]), *(prose(heads[name], f"{Path(name).name}: ") for name in others)]
    return "\n\n".join([subject, *said])


def head(text: str) -> list[list[str]]:
    """The paragraphs of the head comment of a source. Each is a list of lines."""
    comment = re.search(r"^/\*\n(.*?)^ \*/", text, re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"^ \* ?", "", line.expandtabs()) for line in comment[1].splitlines()] if comment else []
    text = "\n".join(lines).strip("\n")
    return [paragraph.split("\n") for paragraph in re.split(r"\n{2,}", text) if paragraph]


def clause(text: str) -> str:
    """The first clause of a head comment, in a form that can continue a sentence."""
    first = re.split(r"[,.:;](?:\s|$)|\s(?:that|through)\s", " ".join(head(text)[0]))[0]
    return first[0].lower() + first[1:] if first[1].islower() else first


def prose(text: str, name: str = "") -> str:
    """`name` and a head comment as text of a commit message. Commands and drawings do not change."""
    paragraphs: list[str] = []
    for lines in head(text):
        lines[0] = lines[0] if paragraphs else name + lines[0]
        if lines[0].startswith("  ./tools/") and paragraphs and not paragraphs[-1].endswith(":"):
            paragraphs.append("To run it:")
        paragraphs.append(paragraph(lines))
    return "\n\n".join(paragraphs)


def paragraph(lines: Sequence[str]) -> str:
    """Lines of a comment at the width of a commit message. Only text and list items are wrapped."""
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
