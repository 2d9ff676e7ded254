# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck debug SUITE.CASE`: boots a kernel that stops where a KUnit case begins, with gdb attached.

The kernel is built with debug information and with the kernel's own scripts for gdb (lx-dmesg and others). QEMU waits
for the debugger before the first instruction. gdb puts a breakpoint on the function of the case, and runs to it.
Without gdb, or with GDB=no, the command prints how to attach a debugger, and keeps the machine waiting. GDB_ARGS= has
further arguments of gdb, for example --batch -ex bt.
"""

import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ..boot import boot
from ..core import lock, process, progress
from ..core.errors import PASSED, UserError
from ..core.settings import from_environment
from ..kernel import source, suites, toolchain
from .prepare import prepare
from .request import parse

ARCHES = {"arm64": "aarch64", "x86_64": "i386:x86-64"}
"""The architectures that this command boots in QEMU, each with its name in gdb."""

CONFIG = ("CONFIG_DEBUG_INFO_DWARF5=y", "CONFIG_GDB_SCRIPTS=y")

WORDS = ("nokaslr", "arm64.nopauth", "pgtable_kunit.timeout=86400")
"""Words of the kernel's command line. With the first word, addresses are as in vmlinux. With the second word,
arm64 signs no addresses on the stack; other architectures ignore this word. The third word allows each case a day."""

HELP = "./mmcheck debug --help"
DEBUGGERS = ("gdb-multiarch", "gdb")


def place(arch: str, case: str) -> str:
    """The place, `file:function`, where gdb must stop for `SUITE.CASE`. Suites may have functions of the same name.

    Raises UserError if there is no such case.
    """
    suite, _, function = case.partition(".")
    every = {one.name: one for one in suites.suites(arch)}
    if not re.fullmatch(r"\w+\.\w+", case):
        raise UserError(f"{case or 'CASE='}: give one case as SUITE.CASE, without a parameter; see {HELP}")
    if suite not in every:
        raise UserError(f"{case}: {arch} has no suite {suite}; choose from {', '.join(sorted(every))}")
    if function not in every[suite].cases:
        raise UserError(f"{case}: the suite {suite} has no such case; choose from {', '.join(every[suite].cases)}")
    return f"{Path(every[suite].file).name}:{function}"


def debugger(arch: str, wanted: str) -> str:
    """The program of a debugger for `arch`; "" if there is none, or if `wanted` is "no".

    Raises UserError if the debugger that the user wants is missing.
    """
    if wanted == "no":
        return ""
    for name in [wanted] if wanted else DEBUGGERS:
        if not shutil.which(name):
            continue
        # A gdb for one architecture accepts no other.
        asked = [name, "-nx", "-batch", "-ex", f"set architecture {ARCHES[arch]}"]
        done = subprocess.run(asked, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 0 and "Undefined item" not in done.stderr:
            return name
    if wanted:
        raise UserError(f"GDB={wanted}: there is no such debugger for {arch}; install gdb-multiarch, or use GDB=no")
    return ""


def free_port() -> int:
    """A port of this machine that no program uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def attach(gdb: str, build: Path, port: int, where: str, more: Sequence[str] = ()) -> list[str]:
    """The command of the debugger: it attaches, sets the breakpoint, and runs to it."""
    ours = [f"target remote 127.0.0.1:{port}", f"break {where}", "continue"]
    words = (word for line in ours for word in ("-ex", line))
    return [gdb, "-q", "-iex", f"add-auto-load-safe-path {build.parents[1]}", *words, *more, str(build / "vmlinux")]


@contextmanager
def machine(words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """QEMU, with its console in the file `log`, for the length of the block. QEMU does not get ^C."""
    log.unlink(missing_ok=True)
    with (
        log.open("wb") as file,
        subprocess.Popen(
            process.mortal(words),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            process_group=0,
            pass_fds=lock.files(),
        ) as child,
    ):
        try:
            yield child
        finally:
            process.end(child)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Leave ^C to the debugger, which then stops the kernel."""

    def nothing(_: int, __: FrameType | None) -> None:
        """Do nothing. The debugger does not inherit this handler; it would inherit SIG_IGN."""

    before: Callable[[int, FrameType | None], object] | int | None = signal.signal(signal.SIGINT, nothing)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    arch = environ.get("ARCH") or toolchain.own_arch()
    if arch not in ARCHES:
        raise UserError(f"ARCH={arch}: debug boots {' and '.join(ARCHES)}")
    case = environ.get("CASE", "")
    where = place(arch, case)
    gdb = debugger(arch, environ.get("GDB", ""))
    more = shlex.split(environ.get("GDB_ARGS", ""))
    source.judge(from_environment(environ, arch))
    configuration = [f"--kconfig_add={line}" for line in CONFIG]
    launch = prepare(parse(["build", f"--arch={arch}", *configuration]), {**environ, "PAGES": environ.get("PAGES", "")})
    with launch.hold():
        launch.run()
        build, port, log = launch.build, free_port(), launch.build / "debug.log"
        words = [f"kunit.filter_glob={case}", *WORDS, *environ.get("KERNEL_ARGS", "").split()]
        qemu = [*boot.command(arch, build, words), "-S", "-gdb", f"tcp:127.0.0.1:{port}"]
        attached = attach(gdb or DEBUGGERS[0], build, port, where, more)
        with machine(qemu, log) as child:
            progress.say(f"the machine waits for a debugger on port {port}; its console is {log}")
            if gdb:
                with without_interrupts():
                    status = subprocess.run(attached).returncode
                if status:
                    raise UserError(f"{gdb} ended with status {status}: see the lines above")
            else:
                progress.say(f"attach with: {shlex.join(attached)}")
                progress.say(
                    f"or in another debugger: target remote 127.0.0.1:{port}, then break {where}; ^C ends the machine"
                )
                child.wait()
            if child.poll():
                raise UserError(f"the emulator ended with status {child.returncode}: see {log}")
    return PASSED
