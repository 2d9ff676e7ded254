# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel with suites, reads its console line by line, and ends the boot as soon as the verdict is clear.

The kernel's own kunit.py waits for the end of a boot. The first failure already shows that a mutant is noticed,
so this module ends the boot there.
"""

import math
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import process
from ..core.errors import UserError
from ..kernel import toolchain
from . import console, sandbox

IMAGES = {
    "um": "linux",
    "arm64": "arch/arm64/boot/Image",
    "x86_64": "arch/x86/boot/bzImage",
    "riscv": "arch/riscv/boot/Image",
}
"""For each architecture, the kernel image in the build folder. This module boots only these architectures."""

stop = threading.Event()
"""An interrupt or an error sets this event. Then all boots end within a second."""

PANIC = "Kernel panic - not syncing"

LAST_WORDS = 20
"""After an oops, a kernel has this many seconds to print a verdict. KUnit prints it even if the case's thread died."""


@dataclass(frozen=True)
class Verdict:
    """How a boot ended.

    state:   "passed", "failed" (a test says so), "splat" (the kernel warns or dies), "hang" or "none" (no test ran)
    where:   what was running: a suite, or a suite and a case
    seconds: how long it took
    """

    state: str
    where: str
    seconds: float


def command(arch: str, build: Path, arguments: Sequence[str]) -> list[str]:
    """The command that boots the kernel in `build` once with these arguments. The command ends when the kernel ends."""
    if arch not in IMAGES:
        raise UserError(f"ARCH={arch}: this command boots only {', '.join(IMAGES)}")
    image = str(build / IMAGES[arch])
    common = ["kunit.enable=1", "kunit_shutdown=reboot", *arguments]
    if arch == "um":
        return [image, "mem=1G", "console=tty", "kunit_shutdown=halt", *common[:1], *arguments]
    emulator = toolchain.ARCHITECTURES[arch].emulator
    qemu = [emulator, *sandbox.options(emulator), "-nodefaults", "-nographic", "-no-reboot", "-m", "1024"]
    cpus = {"arm64": toolchain.ARM64_CPU, "riscv": "rv64"}
    if arch in cpus:
        qemu += ["-machine", "virt", "-cpu", cpus[arch]]
    console = "ttyAMA0" if arch == "arm64" else "ttyS0"
    if arch == "x86_64":
        common.append("no_timer_check")  # otherwise the kernel may panic if the emulator is slow
    return [*qemu, "-serial", "stdio", "-kernel", image, "-append", " ".join([f"console={console}", *common])]


def follow(
    command: Sequence[str], log: Path, timeout: float, silence: float = math.inf, suites: int | None = None
) -> Verdict:
    """Boot, write the console to `log`, and stop at the first failure, when the kernel dies, or when lines() ends.

    If the thread of a case dies and KUnit then reports the case as failed, the state is "failed".

    suites: the number of suites that were chosen; None for all suites
    """
    started = time.monotonic()
    said, state, suite, case = console.Console(), "hang", "", ""
    died, patience = 0.0, [silence]
    for line in lines(command, log, timeout, lambda: patience[0]):
        over = False
        match event := said.feed(line):
            case console.Begin(suite, case):
                pass
            case console.Result(_, name, "failed"):
                state, case = "failed", case if event.parameter else name
                break
            case console.End(suite, False):
                state, case = "failed", ""
                break
            case console.Result() | console.End():
                over = True
            case console.Hang():
                break
            case console.Splat(text, True):
                died, patience[0] = died or time.monotonic(), LAST_WORDS
                over = PANIC in text
        if died and (over or time.monotonic() > died + LAST_WORDS):
            state = "splat"
            break
    else:
        if died:
            state = "splat"
        elif said.planned and len(said.finished) >= (said.planned if suites is None else suites):
            state = "splat" if said.splats else "passed"
        elif time.monotonic() < started + timeout:
            state = "splat" if said.planned else "none"
    where = f"{suite}.{case}" if case and state != "passed" else suite
    return Verdict(state, where, time.monotonic() - started)


def lines(
    command: Sequence[str], log: Path, timeout: float, silence: float | Callable[[], float] = math.inf
) -> Iterator[str]:
    """The lines of the console, which are also written to `log`.

    They end when the console ends, after `timeout` seconds, or after `silence` seconds without output.
    silence: a number, or a function that is called before each wait
    The machine is always ended, even if the caller stops early.
    """
    patience = silence if callable(silence) else lambda: silence
    deadline = time.monotonic() + timeout
    log.unlink(missing_ok=True)  # the record of an earlier run may have a hard link to this file
    with (
        log.open("wb") as file,
        subprocess.Popen(
            process.mortal(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        ) as child,
        selectors.DefaultSelector() as selector,
    ):
        assert child.stdout
        selector.register(child.stdout, selectors.EVENT_READ)
        rest = b""
        heard = time.monotonic()
        try:
            while time.monotonic() < min(deadline, heard + patience()) and not stop.is_set():
                if not selector.select(0.5):
                    continue
                chunk = child.stdout.read1(65536)  # type: ignore[attr-defined]
                if not chunk:
                    return
                file.write(chunk)
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield line.decode(errors="replace")
                heard = time.monotonic()  # the caller's work on these lines does not count as silence
        finally:
            process.end(child)
