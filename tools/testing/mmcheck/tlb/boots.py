# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel or a program with the plugin."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..boot import boot
from ..core.errors import UserError
from ..kernel import toolchain
from . import reports
from .symbols import Symbols

MIB = 1024
RAM = 0x40000000
"""The address at which the memory of QEMU's machine `virt` begins."""

SECONDS = 3600
SILENCE = 900


def watched(plugin: Path, out: Path, symbols: Symbols, memory: int, more: Sequence[str] = ()) -> list[str]:
    """The options of QEMU for a boot with the plugin, which writes to the folder `out`.

    memory: in MiB
    more:   additional arguments of the plugin
    """
    hooks = out / "hooks"
    hooks.write_text(symbols.hooks())
    given = [f"out={out / 'raw.json'}", f"ram={RAM:x}:{memory << 20:x}", f"hooks={hooks}", *more]
    return ["-plugin", ",".join([str(plugin), *given])]


@dataclass(frozen=True)
class Machine:
    """A machine for boots: the emulator, the plugin (None boots without it), a folder for results.

    more:  additional options of the emulator. If an option is given twice, the option in `more` counts.
    given: additional arguments of the plugin
    """

    qemu: Path
    plugin: Path | None
    out: Path
    cpus: int = 1
    more: Sequence[str] = ()
    given: Sequence[str] = ()

    def command(self, image: Path, append: str, symbols: Symbols, more: Sequence[str] = ()) -> list[str]:
        """The command that boots an image."""
        command = [str(self.qemu), "-nodefaults", "-nographic", "-no-reboot", "-machine", "virt", "-m", str(MIB)]
        command += ["-cpu", toolchain.ARM64_CPU, "-smp", str(self.cpus), "-serial", "stdio", "-kernel", str(image)]
        command += self.more
        if self.plugin:
            command += watched(self.plugin, self.out, symbols, MIB, self.given)
        return [*command, *(["-append", append] if append else []), *more]

    def run(
        self,
        image: Path,
        append: str,
        symbols: Symbols,
        more: Sequence[str] = (),
        until: str = "",
        first: bool = False,
    ) -> tuple[list[reports.Report], dict[str, int], float]:
        """Boot an image. Returns the reports, the counts of the plugin, and the time in seconds.

        until: the boot ends when the console has this text
        first: whether the boot ends after the first unexpected report
        """
        self.out.mkdir(parents=True, exist_ok=True)
        raw = self.out / "raw.json"
        raw.unlink(missing_ok=True)
        started = time.monotonic()
        lines = boot.lines(self.command(image, append, symbols, more), self.out / "console", SECONDS, SILENCE)
        said = False
        seen = 0
        for line in lines:
            if until and until in line:
                said = True
                break
            if first and raw.exists() and raw.stat().st_mtime_ns != seen:
                seen = raw.stat().st_mtime_ns
                if reports.unexpected(raw, symbols):
                    break
        del lines  # this ends the emulator, so that it writes no more
        seconds = time.monotonic() - started
        if seconds > SECONDS or (until and not said):
            raise UserError(f"the boot did not end as expected; see {self.out / 'console'}")
        if not self.plugin:
            return [], {}, seconds
        found, counts = reports.read(raw, symbols, reports.suppressions())
        return found, counts, math.ceil(seconds * 10) / 10
