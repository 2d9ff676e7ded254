# SPDX-License-Identifier: GPL-2.0
"""Counts, from outside the kernel, the operations with which a whole boot maps memory.

The linear map is built long before the first test runs. The code that builds it reaches each page
table through a slot of the fixmap. __set_fixmap() changes the slot twice: to map the table and to
unmap the table. QEMU logs each execution of this function with its arguments, and counts
instructions. The difference between a boot with more memory and a boot with less memory is the
cost of the additional memory. The measurement needs no change of the kernel.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import UserError
from ..kernel import toolchain
from . import debugger

EMULATOR = "qemu-system-aarch64"
MEMORY = (1, 3)
"""The size of the memory in the first boot and in the second boot, in GiB."""

CLEARS_PER_GIB = 512 + 1
"""A GiB of 4K pages needs 512 PTE tables and one PMD table. Each table is unmapped from the fixmap once."""

CPU = toolchain.ARM64_CPU
BLOCKS_CPU = f"{CPU},midr=0xc00fac30"
"""Newer kernels know that this CPU has break-before-make level 3. So on this CPU they map memory with block entries."""


@dataclass(frozen=True)
class Way:
    """A way to boot a kernel.

    cpu:      for the emulator
    words:    on the kernel's command line
    by_pages: whether the kernel then maps memory by pages; otherwise it maps memory by blocks
    """

    cpu: str = CPU
    words: str = ""
    by_pages: bool = True

    def __str__(self) -> str:
        return " ".join(filter(None, (f"-cpu {self.cpu}", self.words)))


def symbol(build: Path, name: str) -> int:
    """The address of a function of the arm64 kernel in `build`. With nokaslr the kernel runs at this address."""
    found = re.search(rf"^([0-9a-f]+) [Tt] {name}$", (build / "System.map").read_text(), re.MULTILINE)
    if found is None:
        raise UserError(f"{build / 'System.map'} has no {name}; use a kernel built for arm64")
    return int(found[1], 16)


def _command(build: Path, gib: int, cpu: str, words: str = "") -> list[str]:
    command = [EMULATOR, "-machine", "virt", "-cpu", cpu, "-m", f"{gib}G", "-nodefaults", "-nographic"]
    command += ["-no-reboot", "-kernel", str(build / "arch/arm64/boot/Image")]
    return [*command, "-append", f"nokaslr kunit.enable=0 panic=-1 {words}".rstrip()]


def changes(build: Path, gib: int, cpu: str = CPU, words: str = "") -> tuple[int, int]:
    """How often a boot of the arm64 kernel in `build` maps a page table in the fixmap, and how often it unmaps one.

    gib: the memory of the machine in GiB
    """
    address = symbol(build, "__set_fixmap")
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        log = Path(folder) / "log"
        command = _command(build, gib, cpu, words)
        command += ["-d", "exec,cpu,nochain", "-dfilter", f"{address:#x}+0x4", "-D", str(log)]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=True)
        except (subprocess.SubprocessError, OSError) as error:
            raise UserError(f"{EMULATOR} with {gib} GiB: {error}") from None
        return count(log.read_text(errors="replace"))


def count(log: str) -> tuple[int, int]:
    """The numbers of calls of __set_fixmap(slot, address, attributes) that set and that clear a page table's slot.

    log: a log of QEMU

    If a call clears a slot, its attributes are 0. The last five slots are for page tables. Other slots are for patching
    text, for example. If an interrupt stopped a call, QEMU logs the call again with the same registers, and may add a
    word after the registers.
    """
    calls = [said.partition("PC=")[2].partition("Stopped")[0].rstrip() for said in log.split("Trace ")[1:]]
    once = [call for call, before in zip(calls, ["", *calls], strict=False) if call != before]
    arguments = [dict(re.findall(r"\b(X0[02])=([0-9a-f]+)", call)) for call in once]
    last = max((int(call["X00"], 16) for call in arguments), default=0)
    own = [int(call["X02"], 16) == 0 for call in arguments if int(call["X00"], 16) > last - 5]
    return len(own) - sum(own), sum(own)


def instructions(build: Path, gib: int, cpu: str = CPU) -> int:
    """The number of instructions of paging_init() in a boot with `gib` GiB. Nearly all of them map memory."""
    return debugger.instructions_of_call(_command(build, gib, cpu), symbol(build, "paging_init"))


def changes_per_gib(build: Path, cpu: str = CPU, words: str = "") -> tuple[float, float]:
    """The increase of the two results of changes() for each additional GiB of memory."""
    few, many = (changes(build, gib, cpu, words) for gib in MEMORY)
    more = MEMORY[1] - MEMORY[0]
    return (many[0] - few[0]) / more, (many[1] - few[1]) / more


def instructions_per_gib(build: Path, cpu: str = CPU) -> float:
    """The increase of the result of instructions() for each additional GiB of memory."""
    few, many = (instructions(build, gib, cpu) for gib in MEMORY)
    return (many - few) / (MEMORY[1] - MEMORY[0])
