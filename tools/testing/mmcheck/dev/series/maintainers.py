# SPDX-License-Identifier: GPL-2.0
"""The entry of the series in MAINTAINERS."""

import fnmatch
import re
from collections.abc import Iterable

from ...core.errors import UserError

FILE = "MAINTAINERS"
TITLE = "MEMORY MANAGEMENT - PAGE TABLE TESTS"
LISTS = ("linux-mm@kvack.org",)


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
    """MAINTAINERS with our entry, in alphabetical order. Raises UserError if the file has no list of entries."""
    entry = [TITLE, f"M:\t{person}", *(f"L:\t{name}" for name in LISTS), "S:\tMaintained"]
    entry += [f"F:\t{name}" for name in sorted(listed)]
    for match in re.finditer(r"^\n(\S.*)\n[A-Z]:\t", text, re.MULTILINE):
        if match[1].upper() > TITLE or match[1] == "THE REST":
            return text[: match.start(1)] + "\n".join(entry) + "\n\n" + text[match.start(1) :]
    raise UserError(f"{FILE}: mmcheck finds no place for the section {TITLE}; is the file complete?")
