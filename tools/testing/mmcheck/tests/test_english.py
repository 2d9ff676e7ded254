# SPDX-License-Identifier: GPL-2.0
"""Documents, comments and messages do not use words and phrases that a reader must read twice."""

import ast
import re
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT

from .conftest import files

REFUSED = {
    r"\bcures?d?\b": "fix",
    r"\b[Ww]ho (is to|has|writes|reads|takes|knows)\b": "name the one who does it",
    r"\bthat of\b": "name it again",
    r"\bthose that took\b": "say which",
    r"\b(is|are|was|were) to be had\b": "is available",
    r"\bwhoever\b": "name the caller",
    r"\bnobody (is told|listens)\b": "name what is not notified",
    r"(?-i:\b(Posted|Saved|Left|Missing) (are|is)\b)": "subject first",
    r"\bfell into\b": "was running",
    r"\ba line a \w+\b": "one line per ...",
    r"\bin a (tree|CI) of yours\b": "in your ...",
    r"\bsay O=": "set O=",
    r"\bgoing on: ": "resuming: ",
    r"\bbehind\b": "after",
    r"\bhave their (verdict|row)\b": "n/m done",
    r"\bwhat looks at\b": "suites selected for",
    r"\b(is|are|was|were) told\b": "is notified",
}
"""Refused patterns, and what to write instead."""

DOCUMENTS = [
    *(
        PROJECT / name
        for name in ("README.md", "CHANGELOG.md", "MAINTAINERS", "KNOWN_ISSUES.md", "COVERAGE.md", "ci/README.md")
    ),
    *PROJECT.glob("Documentation/**/*.rst"),
]


HELP = [
    PROJECT / "Makefile",
    *(path for place in ("", "arch/*/", "lib/*/") for path in PROJECT.glob(f"{place}Kconfig*")),
]
SOURCES = [
    *(path for end in (".c", ".h", ".S") for path in files(end)),
    *PROJECT.glob("tools/testing/selftests/mm/*.[ch]"),
    *PROJECT.glob("patches/reproducers/*.c"),
]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def comments(text: str) -> str:
    """The comments of a C source. Each comment becomes a paragraph."""
    found = re.findall(r"(?s)/\*.*?\*/|//[^\n]*", text)
    return "\n\n".join(re.sub(r"(?m)^\s*/?\*+/?|\*/$|^//", " ", re.sub(r"@\w+", "", comment)) for comment in found)


SAYING = {"UserError", "say", "print", "Progress", "append", "add_argument", "lines", "named"}
"""Functions whose arguments contain text for a user."""


def messages(source: str) -> list[str]:
    """The strings that Python source prints or raises, with X for each inserted value."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    found = []
    for call in calls:
        if ast.unparse(call.func).rpartition(".")[2] in SAYING:
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                found += strings(argument)
    return found


def strings(node: ast.AST) -> list[str]:
    """The strings of an expression. An f-string counts as one string."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "X " for part in node.values)]
    return [text for child in ast.iter_child_nodes(node) for text in strings(child)]


def plain(text: str) -> str:
    """The text without code blocks and literals, with one line per paragraph."""
    text = re.sub(r"(?ms)^```.*?^```|`[^`]*`|``[^`]*``", "", text)
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def refused(text: str) -> list[str]:
    """The refused phrases in a text, with the replacements."""
    found = ((match, better) for word, better in REFUSED.items() for match in re.finditer(word, plain(text), re.I))
    return [f"{match[0]!r}: {better}" for match, better in found]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_documents_are_plain_english(path: Path) -> None:
    assert refused(path.read_text()) == []


def test_messages_are_plain_english() -> None:
    for path in (PROJECT / "tools/testing/mmcheck").rglob("*.py"):
        if "tests" not in path.parts:
            texts = messages(path.read_text())
            assert [(text, refused(text)) for text in texts if refused(text)] == [], path


def test_messages_are_found() -> None:
    text = 'raise UserError(f"{path}: " + ("behind" if x else f"say {O}= is told"))\nsay("a " "line a run")\nx = "cure"'
    assert messages(text) == ["X : ", "behind", "say X = is told", "a line a run"]


@pytest.mark.parametrize("path", HELP, ids=lambda path: str(path.relative_to(PROJECT)))
def test_help_is_plain_english(path: Path) -> None:
    assert refused(path.read_text()) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_comments_are_plain_english(path: Path) -> None:
    assert refused(comments(path.read_text())) == []


def test_docstrings_are_plain_english() -> None:
    for path in (PROJECT / "tools/testing/mmcheck").rglob("*.py"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, DOCUMENTED)]
        texts = [ast.get_docstring(node) or "" for node in nodes]
        assert [refused(text) for text in texts if refused(text)] == [], path


def test_comments_are_found() -> None:
    text = comments("/*\n * Entries behind\n * the block.\n */\nint behind; /* after it */\n")
    assert refused(text) == ["'behind': after"]
    assert refused(comments("int order; /* above that of a block */\n")) == ["'that of': name it again"]


@pytest.mark.parametrize(
    "bad",
    [
        "Posted are times on hardware.",
        "It fails the case that it fell\ninto.",
        "so that who knows one knows the other",
        "cures for some of them",
        "a line a run",
        "1 of 3 have their verdict",
        "Behind it",
        "what looks at mm/rmap.c",
        "User space is told.",
    ],
)
def test_the_list_finds_them(bad: str) -> None:
    assert refused(bad)


def test_the_list_leaves_plain_sentences_alone() -> None:
    assert refused("Batching saves reads of entries. `that of` is quoted; a procured part is not a cur.") == []
