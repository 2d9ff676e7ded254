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
"""Where the memory of QEMU's machine `virt` begins."""

SECONDS = 3600
SILENCE = 900


@dataclass(frozen=True)
class Machine:
    """What boots: the emulator, the plugin (or None to measure without it), a folder for results."""

    qemu: Path
    plugin: Path | None
    out: Path
    cpus: int = 1

    def command(self, image: Path, append: str, symbols: Symbols, more: Sequence[str] = ()) -> list[str]:
        """The command that boots an image."""
        command = [str(self.qemu), "-nodefaults", "-nographic", "-no-reboot", "-machine", "virt", "-m", str(MIB)]
        command += ["-cpu", toolchain.ARM64_CPU, "-smp", str(self.cpus), "-serial", "stdio", "-kernel", str(image)]
        if self.plugin:
            hooks = self.out / "hooks"
            hooks.write_text(symbols.hooks())
            given = [f"out={self.out / 'raw.json'}", f"ram={RAM:x}:{MIB << 20:x}", f"hooks={hooks}"]
            command += ["-plugin", ",".join([str(self.plugin), *given])]
        return [*command, *(["-append", append] if append else []), *more]

    def run(
        self, image: Path, append: str, symbols: Symbols, more: Sequence[str] = (), until: str = ""
    ) -> tuple[list[reports.Report], dict[str, int], float]:
        """Boot; returns the reports, the counts of the plugin, and the seconds. `until` is text that ends the boot."""
        self.out.mkdir(parents=True, exist_ok=True)
        raw = self.out / "raw.json"
        raw.unlink(missing_ok=True)
        started = time.monotonic()
        lines = boot.lines(self.command(image, append, symbols, more), self.out / "console", SECONDS, SILENCE)
        said = False
        for line in lines:
            if until and until in line:
                said = True
                break
        seconds = time.monotonic() - started
        if seconds > SECONDS or (until and not said):
            raise UserError(f"the boot did not end as expected; see {self.out / 'console'}")
        if not self.plugin:
            return [], {}, seconds
        found, counts = reports.read(raw, symbols, reports.suppressions())
        return found, counts, math.ceil(seconds * 10) / 10
