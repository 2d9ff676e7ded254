# SPDX-License-Identifier: GPL-2.0
"""The `qemu-system-...` that kunit.py finds first in PATH.

Since 7.3 kunit.py prefers KVM to emulation. On some machines a kernel under KVM prints nothing. This program then
boots the kernel without KVM. It takes the arguments of the real emulator, and prints the output of the kernel.

For arm64 kunit.py names the compressed kernel. QEMU's own loader decompresses this kernel, but firmware does not. So
this program gives firmware the uncompressed kernel.
"""

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..kernel import toolchain
from . import guest, sandbox, spread

BIN = Path(__file__).resolve().parents[1] / "bin"
PLAN = b"KTAP version"
"""The kernel's first line about tests contains this text."""


def real(name: str) -> str:
    """The path of the real emulator `name`."""
    folders = [folder for folder in os.get_exec_path() if Path(folder).resolve() != BIN]
    path = shutil.which(name, path=os.pathsep.join(folders))
    if not path:
        # Do not use the name alone: it would start this program again.
        sys.exit(f"mmcheck: {name} is not installed")
    return path


def without_kvm(arguments: Sequence[str]) -> list[str]:
    """`arguments` without "-accel kvm", at any position."""
    kept: list[str] = []
    for argument in arguments:
        if argument == "kvm" and kept and kept[-1] == "-accel":
            kept.pop()
        else:
            kept.append(argument)
    return kept


def with_kvm(arguments: Sequence[str]) -> list[str]:
    """`arguments` without pauth-impdef, a CPU property that KVM refuses."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [re.sub(r",pauth-impdef=\w+", "", one) if before == "-cpu" else one for before, one in pairs]


def unpacked(arguments: Sequence[str]) -> list[str]:
    """`arguments` with the uncompressed kernel, if firmware (-bios) starts the kernel."""
    if "-bios" not in arguments:
        return list(arguments)
    pairs = zip(["", *arguments], arguments, strict=False)
    return [one.removesuffix(".gz") if before == "-kernel" else one for before, one in pairs]


def try_kvm(command: Sequence[str], silence: float) -> int | None:
    """Boot under KVM, and pass on the output of the kernel; returns the exit status.

    Returns None and passes on nothing if the kernel ends, or is silent for `silence` seconds, before a test begins.
    """
    held = b""
    begun = False
    # kunit.py ends its emulator with SIGTERM.
    # The signal may come while the child starts: an exception would then leave the child running.
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ended.append(number))
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as child,
        selectors.DefaultSelector() as selector,
    ):
        assert child.stdout
        selector.register(child.stdout, selectors.EVENT_READ)
        deadline = time.monotonic() + silence
        try:
            while begun or time.monotonic() < deadline:
                if ended:
                    sys.exit(128 + ended[0])
                if not selector.select(0.5):
                    continue
                held += (chunk := os.read(child.stdout.fileno(), 65536))
                deadline = time.monotonic() + silence
                begun = begun or PLAN in held
                if begun:
                    sys.stdout.buffer.write(held)
                    sys.stdout.buffer.flush()
                    held = b""
                if not chunk:
                    return child.wait() if begun else None
            return None
        finally:
            child.kill()


def main(name: str, arguments: Sequence[str]) -> int:
    """The command."""
    arguments = unpacked(arguments)
    arguments = [*arguments, *sandbox.options(real(name), arguments)]
    emulated = without_kvm(arguments)
    chosen = spread.wanted(os.environ)
    native = any(known.emulator == name and guest.has_kvm(arch) for arch, known in toolchain.ARCHITECTURES.items())
    if native and emulated != list(arguments):
        status = try_kvm([real(name), *with_kvm(arguments)], guest.KVM_SILENCE)
        if status is not None:
            return status
        print("mmcheck: the kernel does not boot under KVM, so QEMU emulates the machine", file=sys.stderr)
    if chosen:
        return spread.run([[real(name), *spread.command(emulated, glob)] for glob in chosen], sys.stdout)
    os.execvp(real(name), [name, *emulated])
