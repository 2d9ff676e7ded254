# SPDX-License-Identifier: GPL-2.0
"""`make kselftest TARGETS=mm`: builds a kernel and the selftests, boots it, runs them in it, and prints the verdicts.

KTAP goes to standard output. Consoles, results.json and results.xml are below O=. If the kernel dies, the case that was
running fails, and the remaining cases run in another boot.
"""

import fnmatch
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import boot, closing, command, graft, guest, launcher, machine, progress, results, source
from .errors import UserError
from .lock import held
from .settings import PROJECT, VARIABLES, from_environment

FOLDER = f"{graft.SELFTESTS}/mm"
CONFIG = Path(__file__).parent / "vm"
SECONDS = 300
"""Time limit of a program in seconds. The kselftest harness also gives each case a limit."""

NO_MODULES = "TEST_GEN_MODS_DIR="
"""Build no modules: their build would follow our symbolic links, and write into the user's tree."""

SILENCE = 90
"""The kernel counts as hung if it prints no line for this many seconds. It reports a hung task after 20 to 40 s."""


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
    """What a program needs of the virtual machine.

    cpus:   number of CPUs; with more than one, QEMU hides the double fault of atomics
    words:  for the kernel's command line
    tags:   whether memory has tags, on arm64
    memory: MiB; a hugetlb page of 1 GiB needs contiguous memory, and clearing all memory at boot takes time
    cpu:    the CPU of arm64, if it is not the newest that the emulator has
    """

    cpus: int = 1
    words: tuple[str, ...] = ()
    tags: bool = False
    memory: int = guest.MEMORY
    cpu: str = ""


USUAL = Machine()
LARGE = Machine(cpus=2, words=("cma=32M@0-2G", "hugepagesz=1G", "hugepages=1", "nokaslr"), tags=True, memory=5120)
MACHINES = {
    # The newest CPU sets the access flag itself. This old one does not, and it supports pages of 16K.
    "contpte_old": Machine(cpu="cortex-a35"),
    "folio_clear": LARGE,
    "folio_clear_freed": Machine(words=("init_on_alloc=1", "init_on_free=1"), memory=1024),
    "folio_clear_pool": LARGE,
    "folio_clear_race": LARGE,
    "folio_clear_tags": LARGE,
    "folio_race": Machine(cpus=2),
    "folio_reuse_race": Machine(cpus=2),
    "hugetlb_fork": LARGE,
    "hugetlb_sparse": LARGE,
    "known-issue-12": LARGE,
}
"""Programs and reproducers that need another machine than the usual one. Programs with equal machines share a boot."""


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
    """The programs of `every`, or those of their cases, that one of `globs` (separated by spaces) matches.

    A glob names programs or cases. Raises UserError if a glob matches neither.
    """
    wanted = globs.split()
    for glob in wanted:
        names = [name for program in every for name in (program.name, *program.cases)]
        if not fnmatch.filter(names, glob):
            raise UserError(f"TESTS={glob}: no such test; there are {', '.join(program.name for program in every)}")
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
    finished: names of the programs that came to their end
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


class Printer:
    """KTAP on standard output, one suite inside the other."""

    def __init__(self) -> None:
        self._suites = 0
        self._number = 0
        self._bad = False
        self._suite = ""

    def case(self, case: results.Case) -> None:
        """Print the verdict on a case."""
        if case.suite != self._suite:
            self.end()
            self._suite, self._number, self._bad = case.suite, 0, False
            print(f"    KTAP version 1\n    # Subtest: {case.suite}")
        self._number += 1
        self._bad |= case.state == "failed"
        if case.state == "failed":
            for text in case.text:
                print(f"    # {text}")
        good = "not ok" if case.state == "failed" else "ok"
        skip = f" # SKIP {' '.join(case.text)}" if case.state == "skipped" else ""
        print(f"    {good} {self._number} {case.name or case.suite}{skip}", flush=True)

    def end(self) -> None:
        """Print the verdict on the suite that has begun."""
        if self._suite:
            self._suites += 1
            print(f"    1..{self._number}")
            print(f"{'not ok' if self._bad else 'ok'} {self._suites} {self._suite}", flush=True)
            self._suite = ""

    def plan(self) -> None:
        """Print how many suites there were. This is known only at the end."""
        self.end()
        print(f"1..{self._suites}")


class Boot:
    """One boot that runs programs.

    reader:  reads its console
    console: the file with the console
    memory:  MiB of the machine; 0 for what the programs need
    """

    memory = 0

    def __init__(
        self,
        launch: launcher.Launch,
        console: Path,
        needs: Machine = USUAL,
        words: Sequence[str] = (),
        kvm: bool = False,
    ) -> None:
        """`words` are added to the command line of the kernel that `launch` has built; `kvm`: use KVM."""
        self.launch, self.console, self.needs, self.kvm = launch, console, needs, kvm
        self.words = [*needs.words, *words]
        self.reader = results.Reader()

    def run(self, lines: Sequence[str], files: Mapping[str, Path], silence: float = SILENCE) -> Iterator[results.Case]:
        """Run the programs of `lines` (see line()); yields each case with its verdict.

        files:   the files in the machine's /tests, by name
        silence: after this many seconds without a line the kernel counts as hung
        """
        settings, build = self.launch.settings, self.launch.build
        listing, initrd = self.console.with_suffix(".programs"), self.console.with_suffix(".cpio")
        listing.write_text("".join(f"{line}\n" for line in lines))
        guest.pack(guest.specification(settings.arch, settings.cache, files, listing), build, initrd)
        image = guest.disk(settings.out / "kselftest" / "xfs.img")
        memory = max(self.memory or self.needs.memory, guest.LEAST.get(settings.pages, 0))
        command = guest.command(
            *(settings.arch, build, initrd, image, self.needs.cpus, self.kvm, self.words, memory),
            tags=self.needs.tags,
            cpu=self.needs.cpu,
        )
        try:
            timeout = SECONDS + sum(int(line.split()[0]) for line in lines)
            for text in boot.lines(command, self.console, timeout, silence):
                yield from self.reader.feed(text)
            yield from self.reader.close("the kernel ended or hung")
        finally:
            for file in (listing, initrd, initrd.with_suffix(".list")):
                file.unlink(missing_ok=True)


class Session:
    """One run of the command on one kernel."""

    def __init__(self, launch: launcher.Launch, words: Sequence[str] = ()) -> None:
        """`launch` builds the kernel; `words` go to its command line."""
        self.launch, self.settings, self.words = launch, launch.settings, words
        self.folder = self.settings.out / "kselftest" / launch.build.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.title = f"{launch.label}-{self.settings.arch}"
        self.kvm = guest.has_kvm(self.settings.arch)
        self.memory = 0

    def build(self, names: Sequence[str]) -> dict[str, Path]:
        """Build the kernel and the programs `names`; returns the programs."""
        self.kernel()
        target = self.folder / "programs"
        target.mkdir(exist_ok=True)
        self.programs(target, ["USERLDFLAGS=-static", *(str(target / name) for name in names)])
        return {name: target / name for name in names}

    def kernel(self) -> None:
        """Build the kernel, and the kernel headers that programs need."""
        self.launch.aside = True
        if self.launch.run():
            raise UserError(f"linux {self.launch.label} does not build for {self.settings.arch}: see the lines above")
        self.make("headers", self.launch.tree, "headers", f"O={self.launch.build}")

    def programs(self, target: Path, arguments: Sequence[str]) -> None:
        """Build selftests into the folder `target`, with these arguments of make."""
        headers = f"KHDR_INCLUDES=-isystem {self.launch.build / 'usr/include'}"
        self.make("selftests", self.launch.tree / FOLDER, f"OUTPUT={target}", headers, NO_MODULES, *arguments)

    def make(self, what: str, folder: Path, *arguments: str) -> None:
        """Run make for the kernel's architecture. `what` says in messages what is built."""
        prefix = machine.cross_prefix(self.settings.arch)
        command = ["make", "-s", "-C", str(folder), f"ARCH={self.settings.arch}", f"-j{os.cpu_count() or 1}"]
        command += [f"CROSS_COMPILE={prefix}", *arguments]
        drop = {*VARIABLES, "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TARGETS", "INSTALL"}
        environment = {name: value for name, value in os.environ.items() if name not in drop}
        log = self.folder / f"{what}.log"
        with log.open("w") as file:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=environment
            )
        if done.returncode:
            print(log.read_text(), end="", file=sys.stderr)
            raise UserError(f"the {what} of linux {self.launch.label} do not build: see {log}")

    def run(
        self, wanted: Sequence[Program], every: Sequence[Program], files: Mapping[str, Path], silence: float = SILENCE
    ) -> list[results.Case]:
        """Run the programs `wanted` of `every`, in as many boots as it takes; prints and returns the verdicts."""
        with held(self.settings.out / "lock" / f"{self.folder.name}.selftests", f"it uses {self.folder}"):
            return self._run(wanted, every, files, silence)

    def _run(
        self, wanted: Sequence[Program], every: Sequence[Program], files: Mapping[str, Path], silence: float
    ) -> list[results.Case]:
        by_name = {program.name: program for program in every}
        printer = Printer()
        found: list[results.Case] = []
        boots = 0
        print("KTAP version 1", flush=True)
        for needs in sorted({machine_of(program.name) for program in wanted}):
            todo = [program for program in wanted if machine_of(program.name) == needs]
            while todo:
                before, boots = len(found), boots + 1
                one = Boot(self.launch, self.folder / f"console-{boots}.log", needs, self.words, self.kvm)
                one.memory = self.memory
                patience = guest.KVM_SILENCE if self.kvm and not found else silence
                for case in one.run([line(program, by_name) for program in todo], files, patience):
                    if case.splat:
                        self.decode(case)
                    found.append(case)
                    printer.case(case)
                    results.save(found, self.title, self.folder)
                if len(found) == before and self.kvm:
                    progress.say(f"linux {self.launch.label} does not come up under KVM: emulating the machine")
                    self.kvm = False
                    continue
                if len(found) == before:
                    raise UserError(f"linux {self.launch.label} ended before the first test: see {one.console}")
                todo = remaining(todo, found, one.reader.finished)
        printer.plan()
        return found

    def run_here(self, wanted: Sequence[Program], every: Sequence[Program]) -> list[results.Case]:
        """Run the programs on the running kernel, as plain kselftest does."""
        target = self.folder / "here"
        target.mkdir(exist_ok=True)
        self.make("headers", self.launch.tree, "headers", f"O={target}")
        headers = f"KHDR_INCLUDES=-isystem {target / 'usr/include'}"
        names = [str(target / program.name) for program in wanted]
        self.make("selftests", self.launch.tree / FOLDER, f"OUTPUT={target}", headers, *names)
        by_name = {program.name: program for program in every}
        printer, reader = Printer(), results.Reader()
        print("KTAP version 1", flush=True)
        for program in wanted:
            _, name, *arguments = line(program, by_name).split()
            command = ["timeout", "-s", "INT", str(program.seconds), str(target / name), *arguments]
            for _ in reader.feed(f"# selftests: mm: {name}"):
                pass
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
                assert child.stdout
                try:
                    for text in child.stdout:
                        for case in reader.feed(f"[{time.monotonic():.6f}] {text}"):
                            printer.case(case)
                except BaseException:
                    child.send_signal(signal.SIGINT)  # the program then restores the settings of the machine
                    child.wait()
                    raise
                status = child.wait()
            good = "ok" if status in (0, 4) else "not ok"
            for case in reader.feed(f"{good} 1 selftests: mm: {name} # {'SKIP' if status == 4 else f'exit={status}'}"):
                printer.case(case)
            results.save(reader.cases, self.title, self.folder)
        printer.plan()
        return reader.cases

    def decode(self, case: results.Case) -> None:
        """Put file and line after the addresses in a splat, with the kernel's own script."""
        tree, build = self.launch.tree, self.launch.build
        done = subprocess.run(
            ["bash", tree / "scripts/decode_stacktrace.sh", build / "vmlinux", build],
            input="\n".join(case.text),
            capture_output=True,
            text=True,
            env={**os.environ, "CROSS_COMPILE": machine.cross_prefix(self.settings.arch)},
        )
        if done.returncode == 0 and done.stdout.strip():
            case.text = done.stdout.splitlines()


def provide(arch: str) -> None:
    """Make sure that this machine can build and run selftests for `arch`."""
    if arch not in guest.DEBIAN:
        raise UserError(f"ARCH={arch}: selftests run on {', '.join(guest.DEBIAN)}")
    machine.provide([*machine.requirements(arch, own_compiler=False), machine.libc(arch), guest.MKFS])


def request(arch: str, suite: str = "", configuration: Sequence[str] = ()) -> launcher.Request:
    """What to ask kunit.py for: a kernel with the options that the selftests need, and with `configuration`.

    suite: "upstream", or "" for the selftests of this repository
    """
    for line in configuration:
        if not re.fullmatch(r"CONFIG_\w+=\S+", line):
            raise UserError(f"KCONFIG_ADD={line}: give lines like CONFIG_KASAN=y, with spaces between them")
    configs = [CONFIG / f"{name}.config" for name in ("kernel", arch, *([suite] if suite else []))]
    more = [f"--kconfig_add={line}" for line in configuration]
    return launcher.parse(["build", f"--arch={arch}", *(f"--kunitconfig={config}" for config in configs), *more])


def again(case: results.Case, every: Sequence[Program], environ: Mapping[str, str]) -> str:
    """The command that runs only this case again."""
    names = [name for program in every if program.name == case.suite for name in program.cases]
    given = [
        f"{name}={shlex.quote(environ[name])}"
        for name in ("ARCH", "SUITE", "HOST", "KERNEL_ARGS", "KCONFIG_ADD", *VARIABLES)
        if name != "O" and environ.get(name)
    ]
    test = next((name for name in names if case.name and name.removeprefix(f"{case.suite}.") == case.name), case.suite)
    return " ".join(["make kselftest TARGETS=mm", *dict.fromkeys(given), f"TESTS={test}"])


def configuration(environ: Mapping[str, str]) -> list[str]:
    """The configuration lines that KCONFIG_ADD= has."""
    return (environ.get("KCONFIG_ADD") or "").split()


def cases_of(environ: Mapping[str, str]) -> list[results.Case]:
    """Run all programs of this repository on the kernel that `environ` names."""
    every = programs()
    provide(environ["ARCH"])
    session = Session(launcher.prepare(request(environ["ARCH"], "", configuration(environ)), environ))
    return session.run(every, every, session.build([program.name for program in every]))


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    targets = environ.get("TARGETS") or "mm"
    if targets != "mm":
        raise UserError(f"TARGETS={targets}: use TARGETS=mm; this repository has no other selftests")
    environ = {**environ, "ARCH": environ.get("ARCH") or machine.own_arch()}
    suite = environ.get("SUITE") or ""
    if suite not in ("", "upstream"):
        raise UserError(f"SUITE={suite}: use SUITE=upstream, or no SUITE= for the tests of this repository")
    every = programs()
    wanted = [] if suite else chosen(every, environ.get("TESTS") or "")
    source.judge(from_environment(environ))
    provide(environ["ARCH"])
    words = ["STRICT=1"] if environ.get("STRICT") == "1" else []
    words += (environ.get("KERNEL_ARGS") or "").split()
    session = Session(launcher.prepare(request(environ["ARCH"], suite, configuration(environ)), environ), words)
    if environ.get("HOST") == "1":
        return report(session.run_here(wanted, every), session, every, environ)
    if suite:
        from . import upstream

        return upstream.run(session, environ.get("TESTS") or "", environ)
    found = session.run(wanted, every, session.build([program.name for program in every]))
    return report(found, session, every, environ)


def report(
    found: Sequence[results.Case],
    session: Session,
    every: Sequence[Program],
    environ: Mapping[str, str],
    known: Mapping[str, str] | None = None,
) -> int:
    """Print the paragraph that ends the run; returns the exit status.

    known: the reasons of expected failures, by globs of cases
    """
    why: dict[str, str] = {}
    for case in found:
        name = f"{case.suite}.{case.name}"
        if case.state == "failed":
            reasons = (text for glob, text in (known or {}).items() if fnmatch.fnmatch(name, glob))
            why |= {closing.name(case): reason for reason in itertools.islice(reasons, 1)}
        elif case.state == "passed" and case.text:
            progress.say(f"{name}: {case.text[0]}")
    rerun = {closing.name(case): again(case, every, environ) for case in found if case.state == "failed"}
    log = f"{session.folder} (consoles, results.json, results.xml)"
    for text in closing.paragraph(found, log, rerun, why):
        progress.say(text)
    return results.status(found)


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    status = command.run("kselftest", run, environ, "the results so far are kept")
    if status == 130:
        boot.stop.set()
    return status
