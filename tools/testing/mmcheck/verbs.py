# SPDX-License-Identifier: GPL-2.0
"""The commands of this repository and their variables: `./mmcheck VERB`, `make VERB`, and the help of both.

A module is imported only when its verb runs, so help is quick. What a verb does is the docstring of its module.
"""

import argparse
import ast
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from .errors import PASSED, UserError

NAMES: Mapping[str, str] = {
    "A": "folder with results of make bench",
    "ALL": "1: with MATRIX=selftests, judge the mutants of the KUnit suites too",
    "ARCH": "architecture: arm64, x86_64, riscv, s390, um",
    "B": "folder with other results of make bench",
    "BEFORE": "no: run only the kernel with the patches",
    "BOOT": "no: only write and check the mails; build and boot nothing",
    "BUDGET": "with MATRIX=selftests, seconds that programs may run for each mutant",
    "FEATURES": "atomic_rmw, or nothing: what the overlay adds to the kernel (all of them; none with KDIR=)",
    "FILES": "files of the kernel, separated by commas: run only what tests these files",
    "FROM": "your name and address for the patches: 'Name <name@example.org>'",
    "GENERATED": "1: mutants that rules generate, in place of the catalogue's",
    "HOST": "1: run the selftests on this machine, not in a virtual one; needs root",
    "INSTALL": "no: install nothing, and print the command instead",
    "JOBS": "how many builds or boots at a time",
    "JSON": "1: print JSON",
    "KCONFIG_ADD": "more options of the kernel: 'CONFIG_KASAN=y CONFIG_KASAN_INLINE=y'",
    "KDIR": "your own kernel tree, which is never written to",
    "KERNEL": "packaged kernel: 6.12, 7.3, another version, or latest (6.12)",
    "KERNEL_ARGS": "more words for the kernel's command line",
    "MATRIX": "a table of your own, in the form of matrix.toml",
    "MIB": "how many MiB of memory the suites work on (1024)",
    "MUTANTS": "a folder of your own, with *.toml or *.patch",
    "O": "folder for builds and results (out)",
    "ONLY": "globs, separated by blanks: what to run",
    "ORIGIN": "name of your lab at KCIDB",
    "OTHER": "a second kernel to compare with: a version, or a folder",
    "PAGES": "size of a page on arm64: 4K, 16K, 64K (4K)",
    "PATCH": "a patch for the kernel, applied to a private copy",
    "REPEATS": "how often to repeat measurements of time (25)",
    "SELFTESTS": "no: use only the KUnit suites",
    "STRICT": "1: a test that meets a known issue fails, and is not skipped",
    "SUITE": "upstream: the kernel's own mm selftests in place of these",
    "TARGETS": "mm, the only value",
    "TESTS": "selftests to run, separated by blanks: 'folio_fork contpte_fold' (all)",
}
"""Each variable that a verb reads. The option of KERNEL_ARGS is --kernel-args, for example."""

SWITCHES = frozenset(name for name, about in NAMES.items() if about.startswith("1:"))
"""The variables whose option needs no value."""

KERNEL = "KERNEL KDIR PATCH ARCH PAGES FEATURES"

STATUSES = """\
exit status: 0 all passed, 1 a test failed, 125 no verdict (git bisect run skips such a commit), 130 interrupted;
for the selftests also 4, all were skipped. make turns every status but 0 into 2."""


@dataclass(frozen=True)
class Verb:
    """A command.

    says:     what it does, as one line of a list
    module:   "name" with a function main(), or "name:function"; it takes the environment and returns the exit status
    reads:    the variables that it reads, except O and INSTALL
    example:  arguments that make sense
    other:    by variable, its meaning if that is special for this verb
    """

    says: str
    module: str
    reads: str = ""
    example: str = ""
    other: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """The variables that it reads, and what they mean."""
        return {name: self.other.get(name, NAMES[name]) for name in (*self.reads.split(), "O", "INSTALL")}

    @property
    def about(self) -> str:
        """The docstring of its module, read without an import."""
        name = self.module.partition(":")[0]
        file = (Path(__file__).parent / name).with_suffix(".py")
        file = file if file.exists() else file.with_suffix("") / "__init__.py"
        return ast.get_docstring(ast.parse(file.read_text())) or ""

    def run(self, environ: Mapping[str, str]) -> int:
        """Import the module, and run the command; returns the exit status."""
        name, _, function = self.module.partition(":")
        status: int = getattr(importlib.import_module(f"{__package__}.{name}"), function or "main")(environ)
        return status


GROUPS: Mapping[str, Mapping[str, Verb]] = {
    "Test a kernel": {
        "run": Verb("the KUnit suites; takes what kunit.py run takes", "launcher", KERNEL, "--arch=arm64 'contpte*'"),
        "kselftest": Verb(
            "the selftests, in a virtual machine",
            "kselftest",
            f"{KERNEL} TARGETS TESTS SUITE HOST STRICT KERNEL_ARGS KCONFIG_ADD",
            "--arch arm64 --tests folio_fork",
        ),
        "matrix": Verb(
            "kernels x architectures x page sizes x flavours, one table",
            "matrix",
            "ONLY FILES KDIR PATCH JOBS MATRIX",
            "--only '7.3 arm64 *'",
            {"ONLY": "globs of cells, separated by commas: what to run"},
        ),
        "bundle": Verb(
            "kernel and selftests for a lab: image, initramfs, disk", "bundle", f"{KERNEL} TESTS", "--arch arm64"
        ),
    },
    "This machine": {
        "doctor": Verb("what this machine has, what it lacks, and what that costs", "doctor", "JSON"),
    },
    "Read the results": {
        "results": Verb("one summary of all runs, as JSON and JUnit XML too", "collect"),
        "report": Verb("one HTML page of all results, failures first", "report", "KDIR"),
        "kcidb": Verb("the results as a submission to KCIDB, in a file", "kcidb", "ORIGIN KDIR"),
    },
    "Judge the tests": {
        "mutants": Verb(
            "does any test notice if the kernel is wrong?",
            "mutants",
            f"{KERNEL} ONLY MUTANTS GENERATED MATRIX ALL BUDGET SELFTESTS JOBS",
            "--kernel 7.3 --only 'zap_*'",
            {
                "ONLY": "globs of names of mutants, separated by blanks",
                "MATRIX": "1: find every case that notices, not only the first; selftests: the same for the selftests",
            },
        ),
        "known-issues": Verb(
            "do the tests of each known issue fail without its patch, and pass with it?",
            "patched",
            f"{KERNEL} ONLY BEFORE",
            "--kernel 7.3 --only 13",
            {"ONLY": "numbers of known issues, separated by blanks"},
        ),
        "patches": Verb(
            "the patches of known issues as mails, each applied, checked, built, and shown to fix its issue",
            "sendable",
            "KERNEL KDIR ARCH PAGES FEATURES FROM ONLY BEFORE BOOT",
            "--kernel 7.3 --from 'Name <name@example.org>'",
            {"ONLY": "numbers of known issues, separated by blanks"},
        ),
        "patterns": Verb(
            "places that look like an earlier bug, each with its verdict",
            "patterns",
            f"{KERNEL} ONLY OTHER",
            "--kernel 7.3 --other 6.12",
            {"ONLY": "print only the candidates with this verdict: shown, open, refuted or new"},
        ),
        "coverage": Verb(
            "lines and branches of the code under test that the suites run", "coverage", KERNEL, "--arch arm64"
        ),
    },
    "Measure": {
        "bench": Verb(
            "counts and ratios: batches, owners, clearing, write faults",
            "bench",
            f"{KERNEL} ONLY MIB REPEATS",
            "--only folio_bench",
            {"ONLY": "one benchmark: folio_bench, atomic_rmw_bench, folio_zero_order, clear_pages or linear_map"},
        ),
        "bench-compare": Verb(
            "two results of bench side by side", "bench:main_compare", "A B", "--a out --b other/out"
        ),
        "bench-launcher": Verb("times of the launcher, compared with plain kunit.py", "bench_launcher"),
    },
    "Put the suites into a tree": {
        "graft": Verb(
            "copy the overlay into a tree",
            "graft",
            "KDIR FEATURES",
            "--kdir ~/linux",
            {"KDIR": "the kernel tree that gets the overlay"},
        ),
        "ungraft": Verb(
            "remove the overlay again, byte for byte",
            "graft:main_ungraft",
            "KDIR",
            "--kdir ~/linux",
            {"KDIR": "the kernel tree that has the overlay"},
        ),
        "series": Verb("the overlay as patches for git am, in out/series", "series", "KERNEL KDIR", "--kdir ~/linux"),
    },
    "This repository": {
        "check": Verb("all tests of this repository, as CI runs them", "check"),
        "check-host": Verb("the tests that need no kernel", "check:main_host"),
        "check-report": Verb("tests of the report's page in Chromium: looks, keyboard, accessibility", "look"),
        "report-pictures": Verb("the pictures of the report's page in Documentation/", "look:main_pictures"),
        "htmldocs": Verb("Documentation/ as HTML", "htmldocs"),
    },
}
"""The verbs, grouped by their purpose."""

VERBS: Mapping[str, Verb] = {name: verb for group in GROUPS.values() for name, verb in group.items()}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def listed(*names: str) -> str:
    """Variables and what they mean, one on each line."""
    return "\n".join(f"  {name:9} {NAMES[name]}" for name in names)


def option(name: str) -> str:
    """The option that sets a variable."""
    return "--" + name.lower().replace("_", "-")


def overview() -> str:
    """All verbs, one line each, for the help without a verb."""
    lines = ["usage: ./mmcheck VERB [--option VALUE ...] [NAME=VALUE ...], or make VERB [NAME=VALUE ...]", ""]
    for title, verbs in GROUPS.items():
        lines += [title, *(f"  {name:16} {verb.says}" for name, verb in verbs.items())]
    return "\n".join([*lines, "", "./mmcheck VERB --help has the variables of a verb, and an example.", "", STATUSES])


def parser(name: str) -> argparse.ArgumentParser:
    """The parser for the arguments of a verb."""
    verb = VERBS[name]
    made = _Parser(
        prog=f"./mmcheck {name}",
        description=verb.about,
        epilog="\n".join([*([f"example: ./mmcheck {name} {verb.example}"] if verb.example else []), "", STATUSES]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for variable, about in verb.variables.items():
        switch = variable in SWITCHES
        value = {"nargs": "?", "const": "1"} if switch else {}
        made.add_argument(
            option(variable),
            dest=variable,
            metavar=variable,
            help=about.replace("%", "%%"),
            **value,  # type: ignore[arg-type]
        )
    made.add_argument("--no-install", dest="INSTALL", action="store_const", const="no", help="the same as INSTALL=no")
    made.add_argument("given", metavar="NAME=VALUE", nargs="*", help="a variable, as make takes it")
    return made


def chosen(name: str, arguments: Sequence[str]) -> dict[str, str]:
    """The variables that the arguments of a verb set. Raises UserError, or exits after --help."""
    read = vars(parser(name).parse_args(arguments))
    given = read.pop("given")
    found = {variable: value for variable, value in read.items() if value is not None}
    for argument in given:
        match = re.fullmatch(r"([A-Z]\w*)=(.*)", argument, re.DOTALL)
        if not match or match[1] not in NAMES:
            raise UserError(f"{argument}: no such argument; see ./mmcheck {name} --help")
        found[match[1]] = match[2]
    return found


def main(arguments: Sequence[str]) -> int:
    """The command; returns the exit status. Raises UserError for an unknown verb or argument."""
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help", "help"):
        print(overview())
        return PASSED
    if name not in VERBS:
        raise UserError(f"{name}: no such command; see ./mmcheck --help")
    if name == "run":
        # The kernel's own kunit.py reads these arguments, and --help too.
        from . import launcher

        return launcher.main(arguments)
    os.environ.update(chosen(name, rest))
    return VERBS[name].run(os.environ)
