# SPDX-License-Identifier: GPL-2.0
"""A command of this repository: its description, its variables and its module."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .core.variables import NAMES

KERNEL = ("KERNEL", "KDIR", "PATCH", "ARCH", "PAGES", "FEATURES")
"""The variables that choose a kernel."""


@dataclass(frozen=True)
class Verb:
    """A command; the head of verbs.toml explains the fields."""

    says: str
    module: str
    reads: str = ""
    example: str = ""
    other: Mapping[str, str] = field(default_factory=dict)
    words: str = ""
    fails: str = ""
    skips: bool = False
    kept: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """The variables that the command reads, and their meanings."""
        read = self.reads.replace("KERNEL...", " ".join(KERNEL)).split()
        return {name: self.other.get(name, NAMES[name]) for name in (*read, "O", "INSTALL", "DRY_RUN")}

    @property
    def about(self) -> str:
        """The docstring of the command's module, which is read without importing the module."""
        name = self.module.partition(":")[0]
        file = Path(__file__).parent.joinpath(*name.split(".")).with_suffix(".py")
        file = file if file.exists() else file.with_suffix("") / "__init__.py"
        return ast.get_docstring(ast.parse(file.read_text())) or ""
