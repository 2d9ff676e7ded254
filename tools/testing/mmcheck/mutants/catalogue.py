# SPDX-License-Identifier: GPL-2.0
"""Mutants: small mistakes that are put into a kernel, from the project's catalogue or a folder of patches.

The catalogue is the TOML files in mutants/. An entry replaces a piece of text in one function, so it fits
several kernels:

    [[mutant]]
    name = "fixmap_per_block"              # of several entries with the same name, the first that fits is used
    file = "arch/arm64/mm/mmu.c"
    in = "alloc_init_cont_pte"             # the function; the whole file if left out
    old = "init_pte("
    new = "pte_clear_fixmap(); init_pte("
    harm = "the effect for a user"
    suite = "linear_map"                   # a glob: the suites that should notice the mutant
    program = "folio_uffd"                 # instead of a suite: the selftest that should notice it
    machine = "-smp 2"                     # options of the emulator that the suite needs
    kernel_args = "rodata=off"             # words of the kernel's command line that the suite needs
    arch = "x86_64"                        # the architectures with this code; all architectures if left out
    early = true                           # enabled at the beginning of the boot, not just before the tests
    equivalent = "why no test can notice"  # or: survives = "why no test notices it"
"""

import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UserError
from ..kernel.patch import inside, names
from . import schemata

FOLDER = Path(__file__).parent

MISFITS = Path(__file__).parent / "misfits.toml"
"""For each kernel, the mutants that do not fit it, because the code that they change is missing or different."""

Function = tuple[str, tuple[str, int]]
"""A function of the tree. The first item is its file, the second is its name in the form of schemata.Function."""

Read = Callable[[str], str]
"""Returns the text of the file with this name in the tree. Raises OSError if it cannot read the file."""


@dataclass(frozen=True)
class Mutant:
    """One mistake in the files `paths`. `files` returns their new texts, or None if the mutant does not fit a tree."""

    name: str
    harm: str
    paths: tuple[str, ...]
    files: Callable[[Read], Mapping[str, str] | None]
    suite: str = ""
    program: str = ""
    machine: str = ""
    kernel_args: str = ""
    arch: str = ""
    early: bool = False
    equivalent: str = ""
    survives: str = ""


_TEXT = ("suite", "program", "machine", "kernel_args", "arch", "equivalent", "survives")
_FIELDS = {"name", "file", "in", "old", "new", "harm", "early", *_TEXT}


def load(folder: Path) -> list[Mutant]:
    """All mutants of a folder: the entries of its *.toml files, and one mutant for each *.patch file."""
    if not folder.is_dir():
        raise UserError(f"MUTANTS={folder}: no such folder")
    result: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            entries = tomllib.loads(path.read_text()).get("mutant", [])
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{path}: {error}") from None
        result += [_entry(path, entry) for entry in entries]
    result += [patch(path) for path in sorted(folder.glob("*.patch"))]
    if not result:
        raise UserError(f"{folder} contains no *.patch, and no *.toml with a [[mutant]]")
    return result


def misfits(tree: Path, table: Path = MISFITS) -> list[str]:
    """The names of the mutants that do not fit the version of the kernel in `tree`, according to `table`."""
    return list(tomllib.loads(table.read_text()).get(version(tree), []))


def version(tree: Path) -> str:
    """The first two numbers of the version of a kernel tree."""
    head = (tree / "Makefile").read_text()
    numbers = [re.search(rf"^{name} = (\d+)$", head, re.MULTILINE) for name in ("VERSION", "PATCHLEVEL")]
    return ".".join(match[1] for match in numbers if match)


def hints(folder: Path) -> list[tuple[tuple[str, str], str, str]]:
    """For each entry in the *.toml files of a folder: (file, function), name, and its suite or selftest."""
    every = [
        entry for path in sorted(folder.glob("*.toml")) for entry in tomllib.loads(path.read_text()).get("mutant", [])
    ]
    return [((e["file"], e.get("in", "")), e["name"], e.get("suite") or e.get("program", "")) for e in every]


def _entry(path: Path, entry: dict[str, object]) -> Mutant:
    name = entry.get("name", "?")
    missing = {"name", "file", "old", "new", "harm"} - entry.keys()
    if missing or entry.keys() - _FIELDS:
        wrong = f"needs {', '.join(sorted(missing))}" if missing else "has a field that mmcheck does not know"
        raise UserError(f"{path}: mutant {name} {wrong}")
    text = {key: str(value) for key, value in entry.items()}
    if not inside(text["file"]):
        raise UserError(f"{path}: mutant {name}: {text['file']!r} is not a path of a file in a kernel tree")

    def files(read: Read) -> Mapping[str, str] | None:
        try:
            before = read(text["file"])
        except OSError:
            return None
        after = _replaced(before, text.get("in", ""), text["old"], text["new"])
        return None if after is None else {text["file"]: after}

    return Mutant(
        name=text["name"],
        harm=text["harm"],
        paths=(text["file"],),
        files=files,
        early=bool(entry.get("early")),
        **{name: text[name] for name in _TEXT if name in text},
    )


def _replaced(text: str, function: str, old: str, new: str) -> str | None:
    """`text`, in which `new` replaces the first `old` in the body of `function`; None if `old` is missing there."""
    spans = [(f.start, f.end) for f in schemata.functions(text) if f.name[0] == function]
    for start, end in spans if function else [(0, len(text))]:
        position = text.find(old, start, end)
        if position >= 0:
            return text[:position] + new + text[position + len(old) :]
    return None


def patch(path: Path) -> Mutant:
    """The mutant of a patch file. Its default name is the name of the file.

    Lines before the first file may set fields: "Name: ", "Suite: ", "Program: ", "Machine: ".
    """
    text = path.read_text()
    lines = text.splitlines()
    files_changed = names(text)
    for name in files_changed:
        if not inside(name):
            raise UserError(f"{path}: {name!r} is not a path of a file in a kernel tree")
    harm = next((line.removeprefix("Subject: ") for line in lines if line.strip() and not line.startswith("---")), "")
    given = {
        name.lower(): rest for name, rest in re.findall(r"^([A-Z][a-z_]+): (.+)$", text.partition("\n--- ")[0], re.M)
    }

    def files(read: Read) -> Mapping[str, str] | None:
        if not lines:
            return {}
        with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
            for name in files_changed:
                target = Path(folder) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    target.write_text(read(name))
                except OSError:
                    return None
            command = [shutil.which("patch") or "patch", "-p1", "-s", "-f", "-d", folder, "-i", str(path.absolute())]
            if subprocess.run(command, capture_output=True).returncode:
                return None
            if not all((Path(folder) / name).exists() for name in files_changed):
                return None  # a mutant removes no file
            return {name: (Path(folder) / name).read_text() for name in files_changed}

    more = {name: given[name] for name in _TEXT if name in given}
    return Mutant(given.get("name", path.stem), harm, tuple(files_changed), files, **more)


def fitting(
    mutants: Iterable[Mutant], read: Read, arch: str
) -> tuple[list[tuple[Mutant, Mapping[str, str]]], list[str]]:
    """The mutants that fit a tree and `arch`, with the files that they change, and the names of all other mutants."""
    found: dict[str, tuple[Mutant, Mapping[str, str]]] = {}
    known: list[str] = []
    for mutant in mutants:
        known.append(mutant.name)
        if mutant.arch and arch not in mutant.arch.split():
            continue
        if mutant.name not in found and (files := mutant.files(read)) is not None:
            found[mutant.name] = (mutant, files)
    return list(found.values()), [name for name in dict.fromkeys(known) if name not in found]
