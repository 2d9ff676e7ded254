# SPDX-License-Identifier: GPL-2.0
"""The origin of a result: the kernel, the origin of its source, the compiler, the emulator."""

import functools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..core import git
from ..core.settings import PROJECT
from . import toolchain
from .source import Source

_BANNER = re.compile(r"Linux version (\S+) \(\S+\) \((.*?\d)(?:, GNU ld.*|, .*LLD.*)?\) #")
_VERSION = re.compile(r"QEMU emulator version (\S+)")
_PACKAGE = re.compile(r"\d+\.\d+[.\d]*-\d\S*")
HEAD = 400
"""A kernel prints its banner within the first HEAD lines of its console."""


def banner(consoles: Iterable[Path]) -> tuple[str, str]:
    """Kernel and compiler from the first console with a banner; ("", "") if no console has one."""
    for console in consoles:
        try:
            with console.open(errors="replace") as lines:
                for _, line in zip(range(HEAD), lines, strict=False):
                    if match := _BANNER.search(line):
                        return match[1], match[2]
        except OSError:
            continue
    return "", ""


def describe(tree: Path) -> str:
    """The name of a tree's commit, with "-dirty" if the tree differs from it; "" if git knows no commit."""
    # `git describe --dirty` would write the tree's index.
    name = git.asked(tree, "describe", "--always")
    return f"{name}-dirty" if name and git.asked(tree, "status", "--porcelain", "--untracked-files=no") else name


def origin(source: Source) -> str:
    """The origin of a kernel's source, in words: a package and its version, or a tree and its commit."""
    if source.fixed:
        name = source.path.name.removeprefix("linux-")
        return f"{'source' if name.startswith(('tar-', 'git-')) else 'package'} {name}"
    commit = describe(source.path)
    return f"tree {source.path.name}" + (f", commit {commit}" if commit else "")


def labelled(label: str) -> str:
    """The origin of a kernel's source from the name of its build folder, for results that have only this name."""
    label = label.partition("+")[0]
    return f"package {label}" if _PACKAGE.fullmatch(label) else f"tree {label}" if label else ""


def program(arch: str) -> str:
    """The name of the emulator that boots kernels of an architecture, without its version."""
    known = toolchain.ARCHITECTURES.get(arch)
    return "User Mode Linux" if arch == "um" else known.emulator if known else ""


@functools.cache
def emulator(arch: str) -> str:
    """The emulator that boots kernels of an architecture, with its version if it prints one."""
    name = program(arch)
    if arch == "um" or not name:
        return name
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return name
    match = _VERSION.search(done.stdout)
    return f"QEMU {match[1]}" if match else name


def revision() -> str:
    """The commit of this repository, or ""."""
    return describe(PROJECT)
