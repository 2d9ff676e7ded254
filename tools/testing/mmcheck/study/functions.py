# SPDX-License-Identifier: GPL-2.0
"""make functions: for each kernel function on ranges of entries or large folios, do the tests notice mistakes in it?

functions.toml lists the files that define such functions, and patterns of their names. A new function of a kernel needs
no new entry if its name matches a pattern. Each function gets one verdict:

tested   a mutant of the catalogue, or a generated mutant, changes the function, and a test notices this mutant
named    there is no such mutant, but the source of a test names the function in code or in a comment
not      there is no such mutant, and no source of a test names the function

A mutant counts if a kill matrix has a case that notices it. If no kill matrix has the mutant, its entry in the
catalogue counts: the entry must name a suite or selftest, and must not say that no test notices the mutant. `make
mutants` checks these entries. Mutants that do not fit this version of the kernel do not count (see
mutants/misfits.toml). If no test can notice a mutant of a function, functions.toml and the table give the reason.

`make functions KERNEL=7.3` only reads source text. It prints a summary and the functions without a test, and writes the
table below O=. Documentation/mmcheck/ has these tables for some kernels. `python3 -m mmcheck.study.functions` in
tools/testing updates the verdicts in these tables. With the path of another table it updates only this other table.
"""

import fnmatch
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..core import disk
from ..core.errors import PASSED
from ..core.settings import PROJECT, from_environment
from ..kernel import source
from ..mutants import catalogue, killmatrix, sample, schemata

TABLE = Path(__file__).with_name("functions.toml")
DOCUMENTS = PROJECT / "Documentation/mmcheck"
NAME = "functions-{}.tsv"
VERDICTS = ("tested", "named", "not")
TESTS = ("lib/**/*.[ch]", "mm/tests/*.[ch]", "arch/*/mm/tests/*.[ch]", "tools/testing/selftests/mm/*.[ch]")
HEAD = "family\tfunction\tverdict\treason"

_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", re.MULTILINE)


@dataclass(frozen=True)
class Family:
    """Functions of one kind: globs of the files that define them, and regular expressions of their names."""

    name: str
    files: tuple[str, ...]
    functions: re.Pattern[str]
    exceptions: re.Pattern[str]

    def has(self, function: str) -> bool:
        """Whether the family has a function with this name, if one of its files defines the function."""
        return bool(self.functions.fullmatch(function)) and not self.exceptions.fullmatch(function)

    def defines(self, file: str) -> bool:
        """Whether this file may define functions of the family."""
        return any(fnmatch.fnmatchcase(file, glob) for glob in self.files)


@cache
def families(table: Path = TABLE) -> tuple[Family, ...]:
    """The families of a table."""
    whole = tomllib.loads(table.read_text())
    found = []
    for entry in whole["family"]:
        places = [
            glob.replace("ARCH", arch)
            for glob in entry["files"]
            for arch in (whole["architectures"] if "ARCH" in glob else ("",))
        ]
        wanted, unwanted = (re.compile(re.sub(r"\s+", "", entry.get(key, ""))) for key in ("functions", "except"))
        found.append(Family(entry["name"], tuple(places), wanted, unwanted))
    return tuple(found)


@cache
def reasons(table: Path = TABLE) -> dict[str, str]:
    """Why no test can prove a function, by the name of the function."""
    whole = tomllib.loads(table.read_text())
    return {name: entry["why"] for entry in whole.get("reason", []) for name in entry["functions"]}


def defined(tree: Path) -> list[tuple[str, str]]:
    """The functions of a kernel tree, each with its family, sorted within each family."""
    names: dict[Path, set[str]] = {}
    found = []
    for family in families():
        own = set()
        for path in {path for glob in family.files for path in tree.glob(glob)}:
            if path not in names:
                text = path.read_text(errors="replace")
                names[path] = {f.name[0] for f in schemata.functions(text)} | set(_MACRO.findall(text))
            own |= {name for name in names[path] if family.has(name)}
        found += [(family.name, name) for name in sorted(own)]
    return found


def version(label: str) -> str:
    """The first two numbers of a kernel's version. The kill matrix and misfits.toml use this form."""
    match = re.search(r"\d+\.\d+", label)
    return match[0] if match else ""


def _changed(entry: Mapping[str, str]) -> set[str]:
    """The functions or macros that an entry of the catalogue changes."""
    return {entry["in"]} if entry.get("in") else set(_MACRO.findall(entry["old"]))


def _noticed(kernel: str) -> Iterator[tuple[str, str, str]]:
    """The mutants that the tests notice in a version of the kernel: file (or ""), function, mutant."""
    unfit = set(tomllib.loads(catalogue.MISFITS.read_text()).get(kernel, []))
    matrices = [killmatrix.Matrix.load(path) for path in sorted(killmatrix.FOLDER.glob("*.json"))]
    for path in sorted(catalogue.FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text()).get("mutant", []):
            name = entry["name"]
            rows = [matrix.rows[name] for matrix in matrices if name in matrix.rows]
            seen = any(row.cases for row in rows) if rows else bool(entry.get("suite") or entry.get("program"))
            if seen and name not in unfit and not (entry.get("equivalent") or entry.get("survives")):
                yield from ((entry["file"], function, name) for function in _changed(entry))
    for path in sorted(sample.FOLDER.glob(f"{kernel}-*.json")):
        for name, (_, where) in json.loads(path.read_text())["verdicts"].items():
            if where and (match := sample.NAME.fullmatch(name)):
                yield "", match[1], name


def proofs(functions: Sequence[tuple[str, str]], kernel: str) -> dict[tuple[str, str], list[str]]:
    """For each function, the mutants in it that the tests notice."""
    found: dict[tuple[str, str], list[str]] = {one: [] for one in functions}
    known = {family.name: family for family in families()}
    by_name: dict[str, list[tuple[str, str]]] = {}
    for one in functions:
        by_name.setdefault(one[1], []).append(one)
    for file, function, mutant in _noticed(kernel):
        for one in by_name.get(function, ()):
            if not file or known[one[0]].defines(file):
                found[one].append(mutant)
    return found


@cache
def _words() -> frozenset[str]:
    """The words in the sources of the tests."""
    return frozenset(
        word
        for glob in TESTS
        for path in PROJECT.glob(glob)
        for word in re.findall(r"\w+", path.read_text(errors="replace"))
    )


def verdicts(functions: Sequence[tuple[str, str]], kernel: str) -> dict[tuple[str, str], str]:
    """The verdict on each function of a version of the kernel."""
    proved = proofs(functions, kernel)
    return {
        one: "tested" if proved[one] else "named" if one[1] in _words() else "not" for one in dict.fromkeys(functions)
    }


def table(found: Mapping[tuple[str, str], str]) -> str:
    """The table as text."""
    lines = []
    for (family, name), what in found.items():
        why = reasons().get(name, "") if what == "not" else ""
        lines.append("\t".join([family, name, what] + [why] * bool(why)))
    return "\n".join([HEAD, *lines, ""])


def listed(path: Path) -> list[tuple[str, str]]:
    """The functions that a table on disk lists."""
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    return [(row[0], row[1]) for row in rows]


def documents() -> list[Path]:
    """The tables of the documentation."""
    return sorted(DOCUMENTS.glob(NAME.format("*")))


def present(path: Path) -> str:
    """The text of a table on disk, with the current verdicts."""
    return table(verdicts(listed(path), version(path.name)))


def summary(found: Mapping[tuple[str, str], str]) -> list[str]:
    """The number of functions with each verdict, one line per family."""
    lines = [f"{'family':40}{'all':>6}" + "".join(f"{name:>8}" for name in VERDICTS)]
    names = [*dict.fromkeys(family for family, _ in found), "all"]
    for name in names:
        count = Counter(what for (family, _), what in found.items() if name in (family, "all"))
        lines.append(f"{name:40}{count.total():6}" + "".join(f"{count[one]:8}" for one in VERDICTS))
    return lines


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    settings = from_environment(environ)
    tree = source.obtain(settings).path
    kernel = catalogue.version(tree)
    found = verdicts(defined(tree), kernel)
    only = environ.get("ONLY") or "not"
    for (family, name), what in found.items():
        if fnmatch.fnmatchcase(what, only):
            why = reasons().get(name, "") if what == "not" else ""
            print(f"{what:8}{family}: {name}" + (f": {why}" if why else ""))
    print("\n".join(summary(found)))
    path = settings.out / NAME.format(kernel)
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, table(found).encode())
    print(f"table: {path}")
    return PASSED


if __name__ == "__main__":
    for document in [Path(argument) for argument in sys.argv[1:]] or documents():
        disk.replace(document, present(document).encode())
