# SPDX-License-Identifier: GPL-2.0
"""The KUnit suites of the overlay, as their sources define them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.settings import PROJECT
from . import graft


@dataclass(frozen=True)
class Suite:
    """A suite: its name, the file in the overlay that has it, and the text of this file."""

    name: str
    file: str
    text: str

    @property
    def cases(self) -> list[str]:
        """Its cases, each once, in order."""
        return list(dict.fromkeys(re.findall(r"KUNIT_CASE\w*\(\s*(\w+)", self.text)))


def name(text: str) -> str:
    """The name of the suite in a source; "" if there is none."""
    match = re.search(r'^\t\.name = "(\w+)"', text, re.MULTILINE)
    return match[1] if match else ""


def elsewhere(files: Sequence[str], arch: str) -> bool:
    """Whether all of `files` belong to other architectures."""
    folder = {"x86_64": "x86"}.get(arch, arch)
    return all(file.startswith("arch/") and not file.startswith(f"arch/{folder}/") for file in files)


def suites(arch: str = "") -> Iterator[Suite]:
    """The suites of the overlay; only those for the architecture `arch`, if it is given."""
    for file in graft.overlay_files():
        if file.endswith("_kunit.c") and not (arch and elsewhere([file], arch)):
            text = (PROJECT / file).read_text()
            yield Suite(name(text), file, text)
