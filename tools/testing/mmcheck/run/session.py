# SPDX-License-Identifier: GPL-2.0
"""Builds a kernel and selftests, and runs them in virtual machines or on this machine."""

import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..boot import boot, guest, results
from ..core import dry, lock, progress
from ..core.errors import UserError
from ..core.settings import VARIABLES
from ..kernel import toolchain
from ..kernel.make import LOG
from . import record
from .ktap import Printer
from .launch import Launch
from .selftests import FOLDER, SECONDS, USUAL, Machine, Program, line, machine_of, remaining

ERROR_LINES = 20
"""At most this many lines of compiler output are kept for a program that does not build."""

_BROKEN = re.compile(r"^make[^:]*: \*\*\* \[(?:[^\]]*: )?(\S+)\] Error", re.MULTILINE)
"""The target that make could not build."""

_ABOVE = re.compile(r"/\S*/\.\./(?=[\w./-]+:\d)")
"""The build folder at the beginning of a source path. With ccache, this folder may belong to another checkout."""

NO_MODULES = "TEST_GEN_MODS_DIR="
"""This make variable prevents a build of modules, which would write into the user's tree through our symbolic links."""


SILENCE = 90
"""The kernel counts as hung if it prints no line for this many seconds. It reports hung tasks after 20 to 40 s."""


PATCHED, AGAIN = "Oops: int3", 2
"""While an x86_64 kernel boots, it replaces instructions by int3 for a moment. If QEMU emulates several CPUs on a busy
host, a CPU may execute an int3 that is already gone, and the kernel dies with this message. Then the machine boots
again, at most AGAIN times.
"""


class Boot:
    """One boot that runs programs.

    reader:  reads its console
    console: the file with the console
    memory:  MiB of the machine; 0 for the memory that the programs need
    """

    memory = 0

    def __init__(
        self,
        launch: Launch,
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
        command = self.emulated(
            guest.command(
                *(settings.arch, build, initrd, image, self.needs.cpus, self.kvm, self.words, memory),
                tags=self.needs.tags,
                cpu=self.needs.cpu,
            ),
            memory,
        )
        try:
            self.reader.due = len(lines)
            timeout = SECONDS + sum(int(line.split()[0]) for line in lines)
            for text in boot.lines(command, self.console, timeout, silence):
                yield from self.reader.feed(text)
            yield from self.reader.close("the kernel ended or hung")
        finally:
            for file in (listing, initrd, initrd.with_suffix(".list")):
                file.unlink(missing_ok=True)

    def emulated(self, command: Sequence[str], memory: int) -> list[str]:
        """The command that boots; a subclass may use another emulator. `memory` is the machine's memory in MiB."""
        return list(command)


class SelftestRun:
    """One run of selftests on one kernel."""

    _saved = -math.inf
    """The value of time.monotonic() when the verdicts were last saved."""

    def __init__(self, launch: Launch, words: Sequence[str] = ()) -> None:
        """`launch` builds the kernel; `words` go to its command line."""
        self.launch, self.settings, self.words = launch, launch.settings, words
        self.folder = self.settings.out / "kselftest" / launch.build.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.title = f"{launch.label}-{self.settings.arch}"
        self.kvm = guest.has_kvm(self.settings.arch)
        self.memory = 0
        self.recorder: record.Recorder | None = None
        self.consoles: list[Path] = []
        self.broken: dict[str, list[str]] = {}
        """Programs that do not build, each with the output of the compiler."""

    @contextlib.contextmanager
    def recorded(self, host: bool = False) -> Iterator[None]:
        """Record the build and the runs of the block, and keep other runs away from the kernel until its end.

        host: the runs use this machine's own kernel
        """
        facts = self.launch.facts("kselftest")
        if host:
            facts.host, facts.emulator = True, ""
        with self.launch.hold(), record.kept(self.settings.out, facts, self.complete) as self.recorder:
            yield

    def complete(self, recorder: record.Recorder) -> None:
        """Add the consoles to a record, and the facts about the kernel that they show."""
        self.launch.identify(recorder.record, self.consoles)
        recorder.keep([*self.consoles, *([self.launch.build / LOG] if self.launch.build_failed else [])])

    def boot(self, console: Path, needs: Machine) -> Boot:
        """A boot of the kernel in the machine that programs need."""
        return Boot(self.launch, console, needs, self.words, self.kvm)

    def note(self, found: Sequence[results.Case]) -> None:
        """Save the verdicts so far, unless they were saved a moment ago."""
        if time.monotonic() - self._saved >= record.PAUSE:
            self.save(found)

    def save(self, found: Sequence[results.Case]) -> None:
        """Save the verdicts so far."""
        found = self.launch.known(found)
        results.save(found, self.title, self.folder)
        if self.recorder:
            self.recorder.note(found)
        self._saved = time.monotonic()

    def build(self, names: Sequence[str]) -> dict[str, Path]:
        """Build the kernel and the programs `names`; returns the programs. `broken` has those that do not build.

        Raises UserError if none of them builds.
        """
        self.kernel()
        target = self.folder / "programs"
        target.mkdir(exist_ok=True)
        try:
            self.programs(target, ["-k", "USERLDFLAGS=-static", *(str(target / name) for name in names)])
        except UserError:
            self.broken = broken(self.folder / "selftests.log", names)
            if not self.broken or len(self.broken) == len(names):
                raise
            progress.say(f"{', '.join(self.broken)} do not build, so they fail; the other selftests run")
        for name in self.broken:
            (target / name).unlink(missing_ok=True)
        return {name: target / name for name in names if name not in self.broken}

    def static(self, names: Sequence[str]) -> dict[str, Path]:
        """Build only the static programs `names`, without a kernel; returns them."""
        target = self.folder / "static"
        target.mkdir(exist_ok=True)
        self.make("headers", self.launch.tree, "headers", f"O={target}")
        headers = f"KHDR_INCLUDES=-isystem {target / 'usr/include'}"
        files = {name: target / name for name in names}
        words = [headers, NO_MODULES, "USERLDFLAGS=-static", *map(str, files.values())]
        self.make("selftests", self.launch.tree / FOLDER, f"OUTPUT={target}", *words)
        return files

    def kernel(self) -> None:
        """Build the kernel, and the kernel headers that programs need."""
        self.launch.aside = True
        self.launch.run()
        self.make("headers", self.launch.tree, "headers", f"O={self.launch.build}")

    def programs(self, target: Path, arguments: Sequence[str]) -> None:
        """Build selftests into the folder `target`, with these arguments of make."""
        headers = f"KHDR_INCLUDES=-isystem {self.launch.build / 'usr/include'}"
        self.make("selftests", self.launch.tree / FOLDER, f"OUTPUT={target}", headers, NO_MODULES, *arguments)

    def make(self, what: str, folder: Path, *arguments: str) -> None:
        """Run make for the kernel's architecture. `what` is the name of the result in messages."""
        prefix = toolchain.cross_prefix(self.settings.arch)
        command = ["make", "-s", "-C", str(folder), f"ARCH={self.settings.arch}", f"-j{os.cpu_count() or 1}"]
        command += [f"CROSS_COMPILE={prefix}", *arguments]
        drop = {*VARIABLES, "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TARGETS", "INSTALL"}
        environment = {name: value for name, value in os.environ.items() if name not in drop}
        log = self.folder / f"{what}.log"
        with log.open("w") as file:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=lock.files(),
            )
        if done.returncode:
            print(log.read_text(), end="", file=sys.stderr)
            raise UserError(f"the {what} of linux {self.launch.label} do not build: see {log}")

    def run(
        self, wanted: Sequence[Program], every: Sequence[Program], files: Mapping[str, Path], silence: float = SILENCE
    ) -> list[results.Case]:
        """Run the programs `wanted` of `every`, in as many boots as it takes; prints and returns the verdicts."""
        found: list[results.Case] = []
        with self.launch.hold():
            try:
                self._run(wanted, every, files, silence, found)
            finally:
                if found:
                    self.save(found)
        return found

    def _run(
        self,
        wanted: Sequence[Program],
        every: Sequence[Program],
        files: Mapping[str, Path],
        silence: float,
        found: list[results.Case],
    ) -> None:
        by_name = {program.name: program for program in every}
        printer = Printer()
        boots = patched = 0
        print("KTAP version 1", flush=True)
        for program in wanted:
            if program.name in self.broken:
                found.append(results.Case(program.name, "", "failed", text=self.broken[program.name]))
                printer.case(found[-1])
                self.note(found)
        wanted = [program for program in wanted if program.name not in self.broken]
        for needs in sorted({machine_of(program.name) for program in wanted}):
            todo = [program for program in wanted if machine_of(program.name) == needs]
            while todo:
                before, boots = len(found), boots + 1
                one = self.boot(self.folder / f"console-{boots}.log", needs)
                one.memory = self.memory
                self.consoles.append(one.console)
                patience = guest.KVM_SILENCE if self.kvm and not found else silence
                for case in one.run([line(program, by_name) for program in todo], files, patience):
                    if case.splat:
                        self.decode(case)
                    found.append(case)
                    printer.case(case)
                    self.note(found)
                if dry.on():
                    break
                if len(found) == before and self.kvm:
                    progress.say(f"linux {self.launch.label} does not boot under KVM, so QEMU emulates the machine")
                    self.kvm = False
                    continue
                if len(found) == before and patched < AGAIN and needs.cpus > 1 and mentions(one.console, PATCHED):
                    progress.say(f"linux {self.launch.label} met an int3 that was gone (QEMU), so it boots again")
                    patched += 1
                    continue
                if len(found) == before:
                    raise UserError(f"linux {self.launch.label} ended before the first test: see {one.console}")
                todo = remaining(todo, found, one.reader.finished)
        printer.plan()

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
            self.save(reader.cases)
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
            env={**os.environ, "CROSS_COMPILE": toolchain.cross_prefix(self.settings.arch)},
        )
        if done.returncode == 0 and done.stdout.strip():
            case.text = [_ABOVE.sub("", line) for line in done.stdout.splitlines()]


def mentions(console: Path, text: str) -> bool:
    """Whether a console has `text`."""
    return text.encode() in console.read_bytes()


def broken(log: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """The programs among `names` that `make -k` could not build, each with its lines of `log`."""
    said = log.read_text(errors="replace")
    failed = {Path(target).name for target in _BROKEN.findall(said)}
    found = {}
    for name in (name for name in names if name in failed):
        lines = [line for line in said.splitlines() if re.search(rf"\b{re.escape(name)}(\.c\b|\])", line)]
        found[name] = ["it does not build", *lines[:ERROR_LINES]]
    return found
