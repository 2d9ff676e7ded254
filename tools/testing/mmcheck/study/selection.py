# SPDX-License-Identifier: GPL-2.0
"""Selects the cells, suites and programs to run: all, or those that a change of the kernel can affect."""

import fnmatch
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core import progress, variables
from ..core.errors import UserError
from ..kernel import patch
from ..kernel import suites as kernel_suites
from ..mutants import catalogue
from ..run import selftests
from ..run.cell import TABLE, Cell, flavours, make


def table(path: Path, own_tree: bool) -> list[Cell]:
    """The cells of the table `path`. With `own_tree` the cells use the user's tree instead of the packaged kernels."""
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"MATRIX={path}: {error}") from None
    known = flavours(path)
    found: list[Cell] = []
    for group in content.get("cells", []):
        for kernel in [""] if own_tree else group.get("kernels", ["6.12"]):
            for arch in group.get("arches", ["um"]):
                for pages in group.get("pages", ["4K"]) if arch == "arm64" else ["4K"]:
                    for name in group.get("flavours", ["plain"]):
                        if name not in known:
                            raise UserError(f"MATRIX={path}: there is no flavour {name}")
                        selftests = bool(group.get("selftests"))
                        found.append(make(kernel, arch, pages, name, known[name], selftests))
    if not found:
        raise UserError(f"MATRIX={path}: the table has no [[cells]]; add one")
    return list(dict.fromkeys(found))


def touched(environ: Mapping[str, str]) -> list[str] | None:
    """The files that FILES= names and the files that PATCH= changes; None without these variables."""
    names = variables.name_list(environ.get("FILES", ""))
    if environ.get("PATCH"):
        names += patch.read(Path(environ["PATCH"]))[1]
    return list(dict.fromkeys(names)) or None


OURS = re.compile(r"(mm|arch/\w+/mm|arch/\w+/include|include/linux|lib|arch/um/kernel)/")
"""In these folders a change may affect suites that the catalogue does not name."""


def suites(files: Sequence[str], mutants: Sequence[catalogue.Mutant]) -> list[str] | None:
    """The suites and programs that the catalogue of mutants names for mistakes in `files`.

    Returns None, which means all, if the catalogue has no test for a file in one of the folders OURS. Raises UserError
    if no suite tests any of the files.
    """
    found: list[str] = []
    for file in files:
        own = [m.suite or m.program for m in mutants if file in m.paths and (m.suite or m.program)]
        if not own and OURS.match(file):
            return None
        found += own
    if not found:
        raise UserError(f"no suite tests {', '.join(files)}")
    return sorted(set(found))


def expected(cell: Cell) -> list[str]:
    """The suites that a cell should have if it runs all suites; otherwise none."""
    return [] if cell.selftests or own_glob(cell) else [one.name for one in kernel_suites.suites(cell.arch)]


def wanted(cell: Cell, only: Sequence[str]) -> list[str]:
    """Those of the suites and programs `only` that a cell has."""
    every = selftests.programs() if cell.selftests else kernel_suites.suites(cell.arch)
    names = [one.name for one in every]
    own = [glob for glob in only if fnmatch.filter(names, glob)]
    if glob := own_glob(cell):
        return [glob] if any(fnmatch.fnmatch(name, glob) for name in own) else []
    return own


def own_glob(cell: Cell) -> str:
    """The glob of the suites that the flavour of a cell runs, or "" for all."""
    return next((word for word in cell.arguments if not word.startswith("-")), "")


def chosen(environ: Mapping[str, str]) -> tuple[list[Cell], list[str] | None]:
    """The cells and the suites that the variables choose. None instead of suites means all suites."""
    own_tree = bool(environ.get("KDIR"))
    cells = table(Path(environ["MATRIX"]) if environ.get("MATRIX") else TABLE, own_tree)
    only = environ.get("ONLY") or "*"
    found: list[Cell] = []
    for glob in variables.name_list(only, blanks=False) or [only]:  # the names of cells have blanks
        own = [cell for cell in cells if fnmatch.fnmatch(str(cell), glob)]
        if not own:
            raise UserError(f"ONLY={glob}: no such cell; choose from {', '.join(map(str, cells))}")
        found += [cell for cell in own if cell not in found]
    files = touched(environ)
    if files is None:
        return found, None
    names = suites(files, catalogue.load(catalogue.FOLDER))
    found = [cell for cell in found if not kernel_suites.elsewhere(files, cell.arch)]
    if names is not None:
        progress.say(f"suites selected for {', '.join(files)}: {', '.join(names)}")
        found = [cell for cell in found if wanted(cell, names)]
    if not found:
        raise UserError(f"no cell of the matrix tests {', '.join(files)}")
    return found, names
