# SPDX-License-Identifier: GPL-2.0
"""What a whole boot does to map memory, counted from outside.

The linear map is built long before the first test runs. Its builder reaches each page table through
a slot of the fixmap, which __set_fixmap() changes: once to map the table and once to take it away.
QEMU logs each execution of that function with its arguments, so two boots with different memory
tell exactly how many tables more memory costs, and nothing in the kernel has to be changed for it.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from . import machine
from .errors import UserError

EMULATOR = "qemu-system-aarch64"
MEMORY = (1, 3)
"""GiB of the two boots."""

CLEARS_PER_GIB = 512 + 1
"""For a GiB that is mapped by pages of 4K: 512 tables of pages and one of the level above, each unmapped once."""

CPU = machine.ARM64_CPU
BLOCKS_CPU = f"{CPU},midr=0xc00fac30"
"""A CPU that newer kernels know to have break-before-make level 3, and let them map memory by blocks."""


def clears(build: Path, gib: int, cpu: str = CPU) -> int:
    """How often booting the arm64 kernel in `build` with `gib` GiB of memory takes a page out of the fixmap."""
    symbol = re.search(r"^([0-9a-f]+) T __set_fixmap$", (build / "System.map").read_text(), re.MULTILINE)
    if symbol is None:
        raise UserError(f"{build / 'System.map'} has no __set_fixmap: is it an arm64 kernel?")
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        log = Path(folder) / "log"
        command = [EMULATOR, "-machine", "virt", "-cpu", cpu, "-m", f"{gib}G", "-nodefaults", "-nographic"]
        command += ["-no-reboot", "-kernel", str(build / "arch/arm64/boot/Image")]
        command += ["-append", "nokaslr kunit.enable=0 panic=-1"]
        command += ["-d", "exec,cpu,nochain", "-dfilter", f"0x{symbol[1]}+0x4", "-D", str(log)]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)
        except (subprocess.SubprocessError, OSError) as error:
            raise UserError(f"{EMULATOR} with {gib} GiB: {error}") from None
        return count(log.read_text(errors="replace"))


def count(log: str) -> int:
    """Calls of __set_fixmap(slot, address, attributes) in a log of QEMU that clear the slot of a page table.

    They have no attributes. The slots of page tables are the last five; others are for patching text, say. What an
    interrupt breaks off QEMU logs a second time, with the same registers.
    """
    calls = [registers.partition("PC=")[2] for registers in log.split("Trace ")[1:]]
    once = [call for call, before in zip(calls, ["", *calls], strict=False) if call != before]
    arguments = [dict(re.findall(r"\b(X0[02])=([0-9a-f]+)", call)) for call in once]
    last = max((int(call["X00"], 16) for call in arguments), default=0)
    return sum(int(call["X02"], 16) == 0 and int(call["X00"], 16) > last - 5 for call in arguments)


def clears_per_gib(build: Path, cpu: str = CPU) -> float:
    """How many times more the fixmap is cleared for another GiB of memory."""
    few, many = (clears(build, gib, cpu) for gib in MEMORY)
    return (many - few) / (MEMORY[1] - MEMORY[0])
