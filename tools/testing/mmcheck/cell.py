# SPDX-License-Identifier: GPL-2.0
"""One kernel to run tests on: a cell of the matrix, a line of `make check`."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass


def slug(name: str) -> str:
    """The name of a cell as that of a file."""
    return re.sub(r"[^\w.-]+", "-", name)


@dataclass(frozen=True)
class Cell:
    """What is built and booted.

    kernel:    as in KERNEL=, or "" for the tree that KDIR= names
    arch:      as in --arch=
    pages:     as in PAGES=
    flavour:   a name for `arguments`, "" without any
    arguments: more arguments of kunit.py
    features:  as in FEATURES=, or None for the default
    selftests: not the KUnit suites, but the selftests
    """

    kernel: str
    arch: str
    pages: str = "4K"
    flavour: str = ""
    arguments: tuple[str, ...] = ()
    features: str | None = None
    selftests: bool = False

    def __str__(self) -> str:
        row, column = self.place
        return f"{row} {column}" if column else row

    @property
    def place(self) -> tuple[str, str]:
        """Its row and its column in a table."""
        pages = self.pages if self.arch == "arm64" else ""
        kind = "selftests" if self.selftests else ""
        row, column = (self.kernel, self.arch, pages), (kind, self.flavour)
        return " ".join(filter(None, row)), " ".join(filter(None, column))

    @property
    def slug(self) -> str:
        """Its name as that of a file."""
        return slug(str(self))

    @property
    def variables(self) -> dict[str, str]:
        """The variables that say which kernel."""
        values = {"KERNEL": self.kernel, "PAGES": self.pages if self.pages != "4K" else ""}
        if self.features is not None:
            values["FEATURES"] = self.features
        return values

    def command(self, *more: str) -> list[str]:
        """The command in the root of this repository; `more` are further arguments of kunit.py."""
        if self.selftests:
            return ["make", "kselftest", "TARGETS=mm", f"ARCH={self.arch}"]
        return ["./tools/testing/kunit/kunit.py", "run", f"--arch={self.arch}", *self.arguments, *more]

    def line(self, environ: Mapping[str, str]) -> str:
        """What to type to run it alone; `environ` may have KDIR and O."""
        given = {**self.variables, **{name: environ.get(name, "") for name in ("KDIR", "O")}}
        words = [f"{name}={shlex.quote(value)}" for name, value in given.items() if value or name == "FEATURES"]
        return " ".join([*words, shlex.join(self.command())])
