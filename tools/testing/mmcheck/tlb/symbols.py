# SPDX-License-Identifier: GPL-2.0
"""Finds the names of kernel addresses in System.map, and the functions that the plugin observes."""

import bisect
from collections.abc import Sequence
from pathlib import Path

FARTHEST = 1 << 17
"""An address belongs to the last symbol before it if the distance is at most this many bytes."""

LOADED = 0x40200000
"""The physical address at which QEMU loads a kernel."""

LARGEST = 256 << 20
"""The largest size of a kernel."""

HOOKS = {
    "free": ("free_unref_page", "__free_pages_ok", "free_frozen_pages", "__free_frozen_pages"),
    "free_batch": ("free_unref_folios",),
    "learn_address": ("free_pages",),
    "learn_page": ("__free_pages", "___free_pages"),
    "exit_mmap": ("exit_mmap",),
    "exit_task": ("do_exit", "kthread_exit"),
}
"""For each hook of the plugin, the kernel functions that the hook watches. Functions of one hook have the same first
arguments.
"""


class Symbols:
    """The functions of a program, by address."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        rows = (line.split()[:3] for line in lines if len(line.split()) >= 3)
        found = sorted((int(address, 16), name) for address, kind, name in rows if kind in "tTwW" and name[0] != "$")
        self.addresses = [address for address, _ in found]
        self.names = [name for _, name in found]
        rows = (line.split() for line in lines)
        self.text = next((int(row[0], 16) for row in rows if row[2:3] == ["_text"]), 0)

    def name(self, address: int) -> str:
        """`function+0x1c`, or the address if no function has it."""
        if self.text and LOADED <= address < LOADED + LARGEST:
            address += self.text - LOADED  # code at boot runs before the kernel's own mapping exists
        at = bisect.bisect_right(self.addresses, address) - 1
        if at < 0 or address - self.addresses[at] > FARTHEST:
            return f"{address:#x}"
        return f"{self.names[at]}+{address - self.addresses[at]:#x}"

    def hooks(self) -> str:
        """The lines of the plugin's file hooks=."""
        known = dict(zip(self.names, self.addresses, strict=True))
        return "".join(f"{hook} {known[n]:x}\n" for hook, names in HOOKS.items() for n in names if n in known)


def of_kernel(image: Path) -> Symbols:
    """The symbols of the System.map next to an image, or in the build folder of the image."""
    for folder in (image.parent, *image.parents[:4]):
        for name in ("System.map", image.name.replace("vmlinuz", "System.map", 1)):
            if name.startswith("System.map") and (folder / name).exists():
                return Symbols((folder / name).read_text().splitlines())
    return Symbols()
