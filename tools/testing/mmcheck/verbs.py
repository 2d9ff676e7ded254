# SPDX-License-Identifier: GPL-2.0
"""The commands of this repository and their variables: `./mmcheck VERB`, `make VERB`, and the help of both.

A module is imported only when its verb runs, so help is quick. What a verb does is the docstring of its module.
"""

import argparse
import importlib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import NoReturn

from .core.errors import PASSED, UserError
from .core.variables import NAMES, SWITCHES, option, statuses
from .verb import Verb

KERNEL = "KERNEL KDIR PATCH ARCH PAGES FEATURES"

GROUPS: Mapping[str, Mapping[str, Verb]] = {
    "Test a kernel": {
        "run": Verb(
            "the KUnit suites; takes what kunit.py run takes",
            "run.launcher",
            f"{KERNEL} BASELINE JOBS",
            "--arch=arm64 'contpte*'",
            fails="a test failed",
        ),
        "kselftest": Verb(
            "the selftests, in a virtual machine",
            "run.kselftest",
            f"{KERNEL} BASELINE TARGETS TESTS SUITE HOST AUDIT STRICT KERNEL_ARGS KCONFIG_ADD",
            "--arch arm64 --tests folio_fork",
            fails="a test failed",
            skips=True,
            kept="the results so far are kept",
        ),
        "audit": Verb(
            "a program in a virtual machine, and an audit of page tables and folios after it",
            "run.audit",
            f"{KERNEL} COMMAND KERNEL_ARGS KCONFIG_ADD",
            "--arch arm64 -- ./program -n 3",
            fails="the program or the audit failed",
            kept="the results so far are kept",
        ),
        "walk": Verb(
            "random lives of address spaces, each step compared with a model",
            "run.walk",
            f"{KERNEL} SEED SECONDS JOBS ALL STRICT KERNEL_ARGS KCONFIG_ADD",
            "--arch arm64 --kernel 7.3 --seconds 600 --jobs 2",
            {
                "ALL": "1: go on after a failure; each rule is reported once",
                "JOBS": "how many machines at a time, each with seeds of its own (1)",
            },
            fails="the kernel broke a rule, or died",
            kept="the consoles so far are kept",
        ),
        "matrix": Verb(
            "kernels x architectures x page sizes x flavours, one table",
            "study.matrix",
            "ONLY FILES KDIR PATCH BASELINE JOBS MATRIX",
            "--only '7.3 arm64 *'",
            {"ONLY": "globs of cells, separated by commas: what to run"},
            fails="a test failed, or skips.toml does not allow a skip",
            kept="run it again to continue from here",
        ),
        "bisect": Verb(
            "the first commit of a git tree that makes a test fail",
            "study.bisect",
            "GOOD BAD KDIR PATCH ARCH PAGES FEATURES ONLY",
            "v6.12 HEAD --kdir ~/linux --only 'contpte*'",
            {"ONLY": "a glob of suites and cases, as kunit.py takes it"},
            words="GOOD BAD",
            kept="run it again to continue from here",
        ),
        "radar": Verb(
            "what a series does to the tests, and what the tests say of it",
            "study.radar",
            "SERIES KERNEL KDIR ARCH PAGES FEATURES ONLY BOOT",
            "fix.mbox --kernel 7.3",
            {"ONLY": "a glob of suites and cases, as kunit.py takes it", "BOOT": "no: only read the source"},
            words="SERIES",
            fails="a test fails that did not fail without the series, or no longer runs",
        ),
        "debug": Verb(
            "boots a kernel that stops where a KUnit case begins, with gdb attached",
            "run.debug",
            f"{KERNEL} CASE GDB GDB_ARGS KERNEL_ARGS",
            "contpte.set_ptes_to_table_end --arch arm64",
            {"ARCH": "arm64 or x86_64 (this machine's)"},
            words="CASE",
        ),
        "bundle": Verb(
            "kernel and selftests for a lab: image, initramfs, disk", "run.bundle", f"{KERNEL} TESTS", "--arch arm64"
        ),
    },
    "Observe a kernel": {
        "tlb": Verb(
            "missing, short, late or misdirected TLB invalidations of an arm64 kernel",
            "tlb.main",
            f"{KERNEL} ONLY TESTS IMAGE INITRD APPEND CPUS COMPARE",
            "--only 'contpte*'",
            {"ONLY": "a glob of suites to run", "ARCH": "arm64, the only value"},
            fails="the kernel makes a mistake that suppressions.toml does not expect",
        ),
        "tlb-mutants": Verb(
            "does the plugin report mistakes that are put into the kernel?",
            "tlb.judge",
            f"{KERNEL} ONLY IMAGE",
            "--only 'bug_*'",
            {"ONLY": "globs of names of mutants, separated by blanks", "ARCH": "arm64, the only value"},
            fails="a mutant survived without a known reason",
        ),
    },
    "This machine": {
        "doctor": Verb(
            "what this machine has, what it lacks, and what that costs; what of a kernel can be tested",
            "run.doctor",
            "JSON KDIR KERNEL",
            "--kdir ~/linux",
        ),
        "completion": Verb('completion of verbs and options for bash: eval "$(./mmcheck completion)"', "completion"),
    },
    "Read the results": {
        "results": Verb(
            "one summary of the last runs, as JSON and JUnit XML too",
            "report.collect",
            fails="a test failed",
            skips=True,
        ),
        "compare": Verb(
            "two runs: which cases have another verdict",
            "report.compare",
            "A B JSON",
            "--a 'kunit 6.12.117-1_deb12u1-arm64-4K' --b 'kunit 7.3.4-1_bpo13+1-arm64-4K'",
            {"A": "a run: its folder below O/runs/, or its name in make results", "B": "another run"},
            fails="a case fails in B and not in A, or ran in A and not in B",
        ),
        "baseline": Verb(
            "adds the failures of the last runs to a file; a run with this file fails only for other failures",
            "report.baseline",
            "BASELINE A",
            "--baseline baseline.toml",
            {"A": "one run: its folder below O/runs/, or its name in make results", "BASELINE": "the file"},
        ),
        "report": Verb("one HTML page of all results, failures first", "report"),
        "kcidb": Verb("the results as a submission to KCIDB, in a file", "report.kcidb", "ORIGIN KDIR"),
    },
    "Judge the tests": {
        "mutants": Verb(
            "does any test notice if the kernel is wrong?",
            "mutants.main",
            f"{KERNEL} ONLY MUTANTS GENERATED MATRIX ALL BUDGET SELFTESTS JOBS",
            "--kernel 7.3 --only 'zap_*'",
            {
                "ONLY": "globs of names of mutants, separated by blanks",
                "MATRIX": "1: find every case that notices, not only the first; selftests: the same for the selftests",
            },
            fails="a mutant survived without a known reason, or a test failed for an equivalent mutant",
            kept="run it again to continue from here",
        ),
        "known-issues": Verb(
            "do the tests of each known issue fail without its patch, and pass with it?",
            "study.patched",
            f"{KERNEL} ONLY BEFORE",
            "--kernel 7.3 --only 13",
            {"ONLY": "numbers of known issues, separated by blanks"},
            fails="a patch does not fix its issue, or no test shows that it does",
        ),
        "patches": Verb(
            "the patches of known issues as mails, each applied, checked, built, and shown to fix its issue",
            "study.sendable",
            "KERNEL KDIR ARCH PAGES FEATURES FROM ONLY BEFORE BOOT",
            "--kernel 7.3 --from 'Name <name@example.org>'",
            {"ONLY": "numbers of known issues, separated by blanks"},
            fails="a patch fails a check, or changes the verdict of another test",
        ),
        "patterns": Verb(
            "places that look like an earlier bug, each with its verdict",
            "patterns",
            f"{KERNEL} ONLY OTHER",
            "--kernel 7.3 --other 6.12",
            {"ONLY": "print only the candidates with this verdict: shown, open, refuted or new"},
        ),
        "functions": Verb(
            "the functions for ranges of entries and large folios: which of them do the tests prove?",
            "study.functions",
            f"{KERNEL} ONLY",
            "--kernel 7.3",
            {"ONLY": "a glob of the verdicts to list: tested, named or not (not)"},
        ),
        "coverage": Verb(
            "lines and branches of the code under test that the suites run", "study.coverage", KERNEL, "--arch arm64"
        ),
    },
    "Measure": {
        "bench": Verb(
            "counts and ratios: batches, owners, clearing, write faults",
            "study.bench",
            f"{KERNEL} ONLY MIB REPEATS JOBS",
            "--only folio_bench",
            {"ONLY": "one benchmark: folio_bench, atomic_rmw_bench, folio_zero_order, clear_pages or linear_map"},
        ),
        "bench-compare": Verb(
            "two results of bench side by side", "study.bench_compare", "A B", "--a out --b other/out"
        ),
        "bench-launcher": Verb(
            "times of the launcher, compared with plain kunit.py",
            "dev.bench_launcher",
            "REPEATS",
            "--repeats 3",
            {"REPEATS": "how often to measure everything (1)"},
            fails="a time is over its limit",
        ),
    },
    "Put the suites into a tree": {
        "graft": Verb(
            "copy the overlay into a tree",
            "kernel.graft",
            "KDIR FEATURES",
            "--kdir ~/linux",
            {"KDIR": "the kernel tree that gets the overlay"},
            kept="run ungraft to restore the tree",
        ),
        "ungraft": Verb(
            "remove the overlay again, byte for byte",
            "kernel.graft:run_ungraft",
            "KDIR",
            "--kdir ~/linux",
            {"KDIR": "the kernel tree that has the overlay"},
            kept="run it again to restore the tree",
        ),
        "series": Verb(
            "the overlay as patches for git am, in out/series or, with CORE=1, out/series-core",
            "dev.series.main",
            "KERNEL KDIR CORE",
            "--kdir ~/linux",
        ),
    },
    "This repository": {
        "check": Verb("all tests of this repository, as CI runs them", "dev.check", fails="a test failed"),
        "check-host": Verb("the tests that need no kernel", "dev.check:run_host", fails="a test failed"),
        "check-report": Verb(
            "tests of the report's page in Chromium: looks, keyboard, accessibility", "dev.look", fails="a test failed"
        ),
        "report-pictures": Verb(
            "the pictures of the report's page in Documentation/", "dev.look:run_pictures", fails="Chromium failed"
        ),
        "release": Verb(
            "checks this commit, tags it as a version, and packs sources and selftests",
            "dev.release",
            "VERSION ARCH KERNEL",
            "--version 1.2.0 --dry-run",
        ),
        "htmldocs": Verb("Documentation/ as HTML", "dev.htmldocs"),
    },
}
"""The verbs, grouped by their purpose."""

VERBS: Mapping[str, Verb] = {name: verb for group in GROUPS.values() for name, verb in group.items()}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def overview() -> str:
    """All verbs, one line each, for the help without a verb."""
    lines = ["usage: ./mmcheck VERB [--option VALUE ...] [NAME=VALUE ...], or make VERB [NAME=VALUE ...]", ""]
    for title, verbs in GROUPS.items():
        lines += [title, *(f"  {name:16} {verb.says}" for name, verb in verbs.items())]
    hint = "./mmcheck VERB --help has the variables and exit statuses of a verb, and an example."
    return "\n".join([*lines, "", hint])


def parser(name: str) -> argparse.ArgumentParser:
    """The parser for the arguments of a verb."""
    verb = VERBS[name]
    example = [f"example: ./mmcheck {name} {verb.example}"] if verb.example else []
    made = _Parser(
        prog=f"./mmcheck {name}",
        description=verb.about,
        epilog="\n".join([*example, "", statuses(verb.fails, verb.skips)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for variable, about in verb.variables.items():
        value = {"nargs": "?", "const": "1"} if variable in SWITCHES else {}
        if variable == "DRY_RUN":  # the word after it is never its value
            value = {"action": "store_const", "const": "1"}
        made.add_argument(
            option(variable),
            dest=variable,
            metavar=variable,
            help=about.replace("%", "%%"),
            **value,  # type: ignore[arg-type]
        )
    made.add_argument("--no-install", dest="INSTALL", action="store_const", const="no", help="the same as INSTALL=no")
    given = f"{verb.words} NAME=VALUE".strip()
    made.add_argument("given", metavar=given, nargs="*", help="a variable, as make takes it")
    return made


def chosen(name: str, arguments: Sequence[str]) -> dict[str, str]:
    """The variables that the arguments of a verb set. Raises UserError, or exits after --help."""
    read = vars(parser(name).parse_args(arguments))
    given = read.pop("given")
    found = {variable: value for variable, value in read.items() if value is not None}
    words = VERBS[name].words.split()
    plain = [argument for argument in given if not re.match(r"[A-Z]\w*=", argument)]
    if words and plain:
        if len(plain) != len(words):
            raise UserError(f"{' '.join(plain)}: give {' and '.join(words)}; see ./mmcheck {name} --help")
        found |= zip(words, plain, strict=True)
        given = [argument for argument in given if argument not in plain]
    for argument in given:
        match = re.fullmatch(r"([A-Z]\w*)=(.*)", argument, re.DOTALL)
        if not match or match[1] not in NAMES:
            raise UserError(f"{argument}: no such argument; see ./mmcheck {name} --help")
        found[match[1]] = match[2]
    return found


def run(name: str, environ: Mapping[str, str]) -> int:
    """Import the module of a verb, and run the command; returns the exit status."""
    module, _, function = VERBS[name].module.partition(":")
    body = getattr(importlib.import_module(f"{__package__}.{module}"), function or "run")
    from .core import command

    return command.run(name, body, environ, VERBS[name].kept)


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
        from .run import launcher

        return launcher.main(arguments)
    if "--" in rest and "COMMAND" in VERBS[name].variables:
        place = rest.index("--")
        rest, given = rest[:place], rest[place + 1 :]
        # One word is a line for the shell, as it is.
        os.environ["COMMAND"] = given[0] if len(given) == 1 else shlex.join(given)
    os.environ.update(chosen(name, rest))
    return run(name, os.environ)
