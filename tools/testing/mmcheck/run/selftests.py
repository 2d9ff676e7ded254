# SPDX-License-Identifier: GPL-2.0
"""The selftests of this project: programs, their cases, and the machine that each needs."""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..boot import guest, results
from ..core import variables
from ..core.errors import UserError
from ..core.settings import PROJECT
from ..kernel import graft, toolchain
from .request import Request, parse

FOLDER = f"{graft.SELFTESTS}/mm"


SECONDS = 300
"""Time limit of a program in seconds. The kselftest harness also limits the time of each case."""


@dataclass(frozen=True)
class Program:
    """A selftest.

    name:    its file
    cases:   the cases in its source, in the order in which they run; empty if they cannot be chosen
    seconds: its time limit
    """

    name: str
    cases: tuple[str, ...] = ()
    seconds: int = SECONDS


@dataclass(frozen=True, order=True)
class Machine:
    """The virtual machine that a program needs.

    cpus:   number of CPUs; with more than one, QEMU shows only one of the two faults of an atomic instruction
    words:  for the kernel's command line
    tags:   whether memory has tags, on arm64
    memory: MiB; some programs need more, for a hugetlb page of 1 GiB; others need less, so that the boot clears less
    cpu:    the CPU of arm64; "" for the newest CPU of the emulator
    """

    cpus: int = 1
    words: tuple[str, ...] = ()
    tags: bool = False
    memory: int = guest.MEMORY
    cpu: str = ""


USUAL = Machine()


LARGE = Machine(cpus=2, words=("cma=32M@0-2G", "hugepagesz=1G", "hugepages=1", "nokaslr"), tags=True, memory=5120)


GIGANTIC = Machine(words=("hugepagesz=1G", "hugepages=2", "nokaslr"), memory=5120)
"""A machine with one hugetlb page of 1 GiB on each of its two nodes."""


MACHINES = {
    # The newest CPU sets the access flag itself. This old CPU does not, and it supports pages of 16K.
    "contpte_old": Machine(cpu="cortex-a35"),
    "core_memory": Machine(cpus=2),
    "file_store": Machine(cpus=3),
    "folio_clear": LARGE,
    "folio_clear_freed": Machine(words=("init_on_alloc=1", "init_on_free=1"), memory=1024),
    "folio_clear_pool": LARGE,
    "folio_clear_race": LARGE,
    "folio_clear_tags": LARGE,
    "folio_race": Machine(cpus=2),
    "folio_reuse_race": Machine(cpus=2),
    "folio_split_tags": LARGE,
    "hugetlb_address": Machine(cpus=2),
    "hugetlb_cut": Machine(cpus=2),
    "hugetlb_fork": LARGE,
    "hugetlb_leak": Machine(cpus=3),
    "hugetlb_read": GIGANTIC,
    "hugetlb_sizes": GIGANTIC,
    "hugetlb_sparse": LARGE,
    "known-issue-12": LARGE,
    "known-issue-60": LARGE,
    "known-issue-61": LARGE,
    "known-issue-62": LARGE,
    "known-issue-63": Machine(cpus=2),
    "known-issue-81": LARGE,
    "known-issue-85": Machine(words=("cgroup_disable=memory",)),
    "known-issue-87": Machine(cpus=3),
    "known-issue-88": Machine(cpus=3),
    "known-issue-89": Machine(cpus=3),
    "known-issue-91": Machine(cpus=3),
    "known-issue-97": Machine(cpus=2),
    "known-issue-102": GIGANTIC,
    "known-issue-103": GIGANTIC,
    "mte_core": LARGE,
    "mte_ptrace": LARGE,
    "reclaim_stale": Machine(cpus=3),
    "swapin_empty": Machine(words=("cgroup_disable=memory",)),
    "tlb_stale": Machine(cpus=2),
    "uffd_unregister": Machine(cpus=2),
}
"""Programs and reproducers that need a machine other than the default. Programs with the same machine share a boot."""


def machine_of(name: str) -> Machine:
    """The machine that the program `name` needs."""
    return MACHINES.get(name, USUAL)


def programs(folder: Path = PROJECT / FOLDER) -> list[Program]:
    """The selftests of this project."""
    names = re.findall(r"^TEST_GEN_PROGS \+= (\S+)$", (folder / "folio_tests.mk").read_text(), re.MULTILINE)
    return [Program(name, tuple(cases((folder / f"{name}.c").read_text()))) for name in names]


def cases(text: str) -> Iterator[str]:
    """`fixture.variant.test` of each case in the source of a selftest."""
    fixtures = re.findall(r"^FIXTURE\((\w+)\)", text, re.MULTILINE)
    for fixture in fixtures:
        variants = re.findall(rf"^FIXTURE_VARIANT_ADD\({fixture}, (\w+)\)", text, re.MULTILINE)
        tests = re.findall(rf"^TEST_F(?:_TIMEOUT|_SIGNAL)?\({fixture}, (\w+)", text, re.MULTILINE)
        for variant in variants or [""]:
            yield from (".".join(part for part in (fixture, variant, test) if part) for test in tests)


def chosen(every: Sequence[Program], globs: str) -> list[Program]:
    """The programs of `every`, or single cases of them, that match one of the list `globs`.

    A glob names programs or cases. Raises UserError if a glob matches neither.
    """
    wanted = variables.name_list(globs)
    for glob in wanted:
        names = [name for program in every for name in (program.name, *program.cases)]
        if not fnmatch.filter(names, glob):
            raise UserError(f"TESTS={glob}: no such test; choose from {', '.join(program.name for program in every)}")
    if not wanted:
        return list(every)
    found = []
    for program in every:
        whole = any(fnmatch.fnmatchcase(program.name, glob) for glob in wanted)
        part = tuple(case for case in program.cases if any(fnmatch.fnmatchcase(case, glob) for glob in wanted))
        if whole or part:
            found.append(program if whole else Program(program.name, part))
    return found


def line(program: Program, every: Mapping[str, Program]) -> str:
    """The line for the machine's list of programs. It runs only the cases that `program` has."""
    part = () if program == every[program.name] else program.cases
    return " ".join([str(program.seconds), program.name, *(word for case in part for word in ("-r", case))])


def rest(program: Program, done: Sequence[results.Case]) -> Program:
    """`program` without the cases that have a verdict."""
    names = {case.name for case in done if case.suite == program.name}
    left = tuple(case for case in program.cases if case.removeprefix(f"{program.name}.") not in names)
    return Program(program.name, left)


def remaining(todo: Sequence[Program], done: Sequence[results.Case], finished: Sequence[str]) -> list[Program]:
    """The programs of `todo` that need another boot, each with the cases that have no verdict yet.

    done:     the verdicts so far
    finished: names of the programs that have ended
    If the kernel ended in a program before any of its cases had a verdict, the program is not started again.
    """
    begun = {case.suite for case in done}
    left: list[Program] = []
    for program in todo:
        if program.name in finished:
            continue
        if program.name not in begun:
            left.append(program)
            continue
        less = rest(program, done)
        if less.cases and less.cases != program.cases:
            left.append(less)
    return left


CONFIG = guest.HERE


def provide(arch: str) -> None:
    """Make sure that this machine can build and run selftests for `arch`."""
    if arch not in guest.DEBIAN:
        raise UserError(f"ARCH={arch}: selftests run on {', '.join(guest.DEBIAN)}")
    toolchain.provide([*toolchain.requirements(arch, own_compiler=False), toolchain.libc(arch), guest.MKFS])


def request(arch: str, suite: str = "", configuration: Sequence[str] = ()) -> Request:
    """What to ask kunit.py for: a kernel with the options that the selftests need, and with `configuration`.

    suite: "upstream", or "" for the selftests of this repository
    """
    for line in configuration:
        if not re.fullmatch(r"CONFIG_\w+=\S+", line):
            raise UserError(f"KCONFIG_ADD={line}: give lines like CONFIG_KASAN=y, with spaces between them")
    configs = [CONFIG / f"{name}.config" for name in ("kernel", arch, *([suite] if suite else []))]
    more = [f"--kconfig_add={line}" for line in configuration]
    return parse(["build", f"--arch={arch}", *(f"--kunitconfig={config}" for config in configs), *more])
