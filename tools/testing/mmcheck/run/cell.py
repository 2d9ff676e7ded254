# SPDX-License-Identifier: GPL-2.0
"""One kernel to run tests on: a cell of the matrix, or a run of `make check`."""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UserError

TABLE = Path(__file__).parent / "matrix.toml"
"""The file with the flavours of kernels, and with the cells of `make matrix`."""


NAME = "MMCHECK_CELL"
"""The environment variable that holds the name of the run's cell. `make matrix` sets it."""


def slug(name: str) -> str:
    """The name of a cell, changed so that it can name a file."""
    return re.sub(r"[^\w.-]+", "-", name)


@dataclass(frozen=True)
class Cell:
    """What is built and booted.

    kernel:    as in KERNEL=, or "" for the tree that KDIR= names
    arch:      as in --arch=
    pages:     as in PAGES=
    flavour:   a name for `arguments`, "" if there are none
    arguments: more arguments of kunit.py
    features:  as in FEATURES=, or None for the default
    selftests: whether to run the selftests instead of the KUnit suites
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
        """The cell's name, changed so that it can name a file."""
        return slug(str(self))

    @property
    def variables(self) -> dict[str, str]:
        """The variables that choose the kernel."""
        values = {"KERNEL": self.kernel, "PAGES": self.pages if self.pages != "4K" else ""}
        if self.features is not None:
            values["FEATURES"] = self.features
        return values

    @property
    def configuration(self) -> list[str]:
        """The configuration lines among its arguments."""
        lines = (word.removeprefix("--kconfig_add=") for word in self.arguments)
        return [line for line in lines if line.startswith("CONFIG_")]

    def command(self, *more: str) -> list[str]:
        """The command that runs the cell, in the root of this repository; `more` are further arguments of kunit.py."""
        if self.selftests:
            configuration = [f"KCONFIG_ADD={' '.join(self.configuration)}"] if self.configuration else []
            # Not `make kselftest`: make turns every exit status except 0 into 2.
            return ["./mmcheck", "kselftest", "TARGETS=mm", f"ARCH={self.arch}", *configuration]
        return ["./tools/testing/kunit/kunit.py", "run", f"--arch={self.arch}", *self.arguments, *more]

    def line(self, environ: Mapping[str, str]) -> str:
        """The command line that runs this cell alone; `environ` may have KDIR, PATCH, BASELINE and O."""
        given = {**self.variables, **{name: environ.get(name, "") for name in ("KDIR", "PATCH", "BASELINE", "O")}}
        words = [f"{name}={shlex.quote(value)}" for name, value in given.items() if value or name == "FEATURES"]
        return " ".join([*words, shlex.join(self.command())])


def flavours(path: Path = TABLE) -> dict[str, list[str]]:
    """The flavours in the table `path`, each with its words."""
    try:
        named = tomllib.loads(path.read_text()).get("flavours", {})
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"MATRIX={path}: {error}") from None
    return {"plain": [], **named}


def make(kernel: str, arch: str, pages: str, flavour: str, words: Sequence[str], selftests: bool = False) -> Cell:
    """The cell with this flavour. `words` may be configuration lines, arguments of kunit.py, and FEATURES=."""
    features = next((word.partition("=")[2] for word in words if word.startswith("FEATURES=")), None)
    arguments = [
        f"--kconfig_add={word}" if word.startswith("CONFIG_") else word
        for word in words
        if not word.startswith("FEATURES=")
    ]
    short = "" if flavour == "plain" else flavour
    return Cell(kernel, arch, pages, short, tuple(arguments), features, selftests)
