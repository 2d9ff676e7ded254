# SPDX-License-Identifier: GPL-2.0
"""Words and turns of phrase that a reader has to read twice, and that documents and messages do without."""

import re
from pathlib import Path

import pytest

from mmcheck.settings import PROJECT

REFUSED = {
    r"\bcures?d?\b": "fix",
    r"\b[Ww]ho (is to|has|writes|reads|takes|knows)\b": "name the one who does it",
    r"\bthat of\b": "name it again",
    r"\bthose that took\b": "say which",
    r"\b(is|are|was|were) to be had\b": "is available",
    r"\bwhoever\b": "name the caller",
    r"\bnobody (is told|listens)\b": "name what is not notified",
    r"\b(Posted|Saved|Left|Missing) (are|is)\b": "subject first",
    r"\bfell into\b": "was running",
    r"\ba line a \w+\b": "one line per ...",
    r"\bin a (tree|CI) of yours\b": "in your ...",
    r"\bsay O=": "set O=",
    r"\bgoing on: ": "resuming: ",
    r"\bsuites behind it\b": "remaining suites",
}
"""What is refused, and what to write."""

DOCUMENTS = [
    *(PROJECT / name for name in ("README.md", "CHANGELOG.md", "MAINTAINERS", "KNOWN_ISSUES.md", "ci/README.md")),
    *PROJECT.glob("Documentation/**/*.rst"),
]


def plain(text: str) -> str:
    """The text without code and tables' literals, in one line per paragraph."""
    text = re.sub(r"(?ms)^```.*?^```|`[^`]*`|``[^`]*``", "", text)
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text)


def refused(text: str) -> list[str]:
    """What of REFUSED is in a text, with what to write."""
    return [f"{match[0]!r}: {better}" for word, better in REFUSED.items() for match in re.finditer(word, plain(text))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_documents_are_plain_english(path: Path) -> None:
    assert refused(path.read_text()) == []


def test_messages_are_plain_english() -> None:
    for path in (PROJECT / "tools/testing/mmcheck").glob("*.py"):
        texts = re.findall(r'(?:progress\.say|UserError|print)\(\s*f?"((?:[^"\\]|\\.)*)"', path.read_text())
        assert [(text, refused(text)) for text in texts if refused(text)] == [], path


def test_help_is_plain_english() -> None:
    assert refused((PROJECT / "Kconfig.kunit").read_text()) == []
    assert refused((PROJECT / "Makefile").read_text()) == []


@pytest.mark.parametrize(
    "bad",
    [
        "Posted are times on hardware.",
        "It fails the case that it fell\ninto.",
        "so that who knows one knows the other",
        "cures for some of them",
        "a line a run",
    ],
)
def test_the_list_finds_them(bad: str) -> None:
    assert refused(bad)


def test_the_list_leaves_plain_sentences_alone() -> None:
    assert refused("Batching saves reads of entries. `that of` is quoted; a procured part is not a cur.") == []
