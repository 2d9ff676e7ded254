# SPDX-License-Identifier: GPL-2.0
"""A command of this repository: what it says, reads and runs."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .core.variables import NAMES


@dataclass(frozen=True)
class Verb:
    """A command.

    says:     what it does, as one line of a list
    module:   "name" with a function run(), or "name:function"; it takes the environment and returns the exit status
    reads:    the variables that it reads, except O, INSTALL and DRY_RUN
    example:  arguments that make sense
    other:    by variable, its meaning if that is special for this verb
    words:    the variables that plain arguments set, in their order
    fails:    the meaning of exit status 1, or "" if the command never returns it
    skips:    whether it returns 4 if all tests were skipped
    kept:     what to print after an interrupt about files that stay
    """

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
        """The variables that it reads, and what they mean."""
        return {name: self.other.get(name, NAMES[name]) for name in (*self.reads.split(), "O", "INSTALL", "DRY_RUN")}

    @property
    def about(self) -> str:
        """The docstring of its module, read without an import."""
        name = self.module.partition(":")[0]
        file = Path(__file__).parent.joinpath(*name.split(".")).with_suffix(".py")
        file = file if file.exists() else file.with_suffix("") / "__init__.py"
        return ast.get_docstring(ast.parse(file.read_text())) or ""
