# SPDX-License-Identifier: GPL-2.0
"""Builds the plugin of QEMU, and the program without Linux."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import UserError
from ..kernel import toolchain

HERE = Path(__file__).parent
PLUGIN = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")
BARE = (
    *("-O1", "-Wall", "-Wextra", "-Werror", "-Wno-parentheses", "-march=armv8.4-a", "-mgeneral-regs-only"),
    *("-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fno-omit-frame-pointer"),
    *("-fno-tree-loop-distribute-patterns", "-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments"),
)


def plugin(out: Path) -> Path:
    """Build the plugin in the folder `out`; returns its path."""
    return _make(["gcc", *PLUGIN], sorted((HERE / "plugin").glob("*.[ch]")), out / "mmcheck-tlb.so")


def bare(out: Path) -> Path:
    """Build the program without Linux in the folder `out`; returns its path."""
    compiler = f"{toolchain.cross_prefix('arm64')}gcc"
    script = HERE / "bare/bare.lds"
    return _make([compiler, *BARE, "-T", str(script)], sorted((HERE / "bare").glob("*.[chS]")), out / "bare.elf")


def _make(command: Sequence[str], files: Sequence[Path], to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.exists() and to.stat().st_mtime > max(file.stat().st_mtime for file in files):
        return to
    new = to.with_suffix(".new")
    sources = [str(file) for file in files if file.suffix != ".h"]
    done = subprocess.run([*command, "-o", str(new), *sources], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{to.name} does not build: {(done.stderr.splitlines() or ['no message'])[0]}")
    new.rename(to)
    return to
