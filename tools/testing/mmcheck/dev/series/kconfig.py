# SPDX-License-Identifier: GPL-2.0
"""Kconfig files of the overlay, entry by entry."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A piece of a Kconfig file: a line that is not indented, and the indented lines after it."""

    text: str

    @property
    def symbol(self) -> str:
        """The CONFIG symbol that the entry defines, or ""."""
        return self._after("config")

    @property
    def source(self) -> str:
        """The file that the entry reads, or ""."""
        return self._after("source").strip('"')

    @property
    def selects(self) -> set[str]:
        """The symbols that the entry selects."""
        return set(re.findall(r"^\s+select (\w+)", self.text, re.MULTILINE))

    def _after(self, word: str) -> str:
        match = re.match(rf"{word} (\S+)\n", self.text)
        return match[1] if match else ""


def entries(text: str) -> list[Entry]:
    """The entries of a Kconfig file. Each line that is not indented begins an entry."""
    return [Entry(block) for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if block]
