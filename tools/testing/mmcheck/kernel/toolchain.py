# SPDX-License-Identifier: GPL-2.0
"""Architectures, and the programs that build and boot kernels for them."""

import functools
import os
import platform
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import dry, progress
from ..core.errors import UserError
from ..core.variables import CONTAINER


@dataclass(frozen=True)
class Architecture:
    """One value of --arch: the prefix of its compiler in Debian, and the emulator that boots its kernels."""

    name: str
    machine: str
    prefix: str = ""
    compiler: str = ""
    emulator: str = ""
    emulator_package: str = ""
    needs: tuple[str, ...] = ()


ARCHITECTURES = {
    arch.name: arch
    for arch in (
        Architecture("um", machine=""),
        Architecture(
            "arm64",
            machine="aarch64",
            prefix="aarch64-linux-gnu-",
            compiler="gcc-aarch64-linux-gnu",
            emulator="qemu-system-aarch64",
            emulator_package="qemu-system-arm",
        ),
        Architecture(
            "x86_64",
            machine="x86_64",
            prefix="x86_64-linux-gnu-",
            compiler="gcc-x86-64-linux-gnu",
            emulator="qemu-system-x86_64",
            emulator_package="qemu-system-x86",
            needs=("/usr/include/gelf.h",),  # objtool reads object files
        ),
        Architecture(
            "riscv",
            machine="riscv64",
            prefix="riscv64-linux-gnu-",
            compiler="gcc-riscv64-linux-gnu",
            emulator="qemu-system-riscv64",
            emulator_package="qemu-system-misc",
            needs=("/usr/share/qemu/opensbi-riscv64-generic-fw_dynamic.bin",),  # its boot firmware
        ),
        Architecture(
            "s390",
            machine="s390x",
            prefix="s390x-linux-gnu-",
            compiler="gcc-s390x-linux-gnu",
            emulator="qemu-system-s390x",
            emulator_package="qemu-system-misc",
        ),
    )
}
"""The architectures for which mmcheck installs a compiler and an emulator. Other architectures need --cross_compile."""

SOURCES = {"x86_64": "x86"}
"""The folder below arch/ of each architecture whose folder has another name than the architecture."""

ENSUREPIP = f"{sysconfig.get_path('stdlib')}/ensurepip/__init__.py"
"""A file of Debian's package python3-venv. Python needs it to make a virtual environment."""

ARM64_CPU = "max,pauth-impdef=on"
"""The CPU that QEMU emulates. kunit.py of 6.12 asks QEMU for this CPU, kunit.py of 7.3 does not. Its pointer
authentication is quick. The other algorithm, QARMA, takes three quarters of a run (92 s with QARMA, 21 s without)."""

PACKAGES = {
    ENSUREPIP: "python3-venv",
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "tar": "tar",
    "xz": "xz-utils",
    "gzip": "gzip",
    "bzip2": "bzip2",
    "zstd": "zstd",
    "gpg": "gpg",
    "gpg-agent": "gpg-agent",
    "/usr/include/stdio.h": "libc6-dev",
    "/usr/include/gelf.h": "libelf-dev",
    "/usr/share/qemu/opensbi-riscv64-generic-fw_dynamic.bin": "opensbi",
    "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd": "qemu-efi-aarch64",
    "git": "git",
    "patch": "patch",
    "clang": "clang",
    "ld.lld": "lld",
    "llvm-ar": "llvm",
    "shellcheck": "shellcheck",
    "chromium": "chromium",
    "lcov": "lcov",
    "gcov": "gcc",
    "aarch64-linux-gnu-gcov": "gcc-aarch64-linux-gnu",
    "x86_64-linux-gnu-gcov": "gcc-x86-64-linux-gnu",
    "/usr/sbin/mkfs.xfs": "xfsprogs",
    "/usr/aarch64-linux-gnu/include/stdio.h": "libc6-dev-arm64-cross",
    "/usr/x86_64-linux-gnu/include/stdio.h": "libc6-dev-amd64-cross",
}
"""For each program or file that a command needs, the Debian package that contains it."""

FEDORA = {
    "gcc-aarch64-linux-gnu": "gcc-aarch64-linux-gnu",
    "gcc-x86-64-linux-gnu": "gcc-x86_64-linux-gnu",
    "gcc-riscv64-linux-gnu": "gcc-riscv64-linux-gnu",
    "gcc-s390x-linux-gnu": "gcc-s390x-linux-gnu",
    "qemu-system-aarch64": "qemu-system-aarch64",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-system-riscv64": "qemu-system-riscv",
    "qemu-system-s390x": "qemu-system-s390x",
    "libc6-dev": "glibc-devel",
    "libelf-dev": "elfutils-libelf-devel",
    "python3-venv": "python3",
    "gpg": "gnupg2",
    "gpg-agent": "gnupg2",
    "xz-utils": "xz",
    "shellcheck": "ShellCheck",
}
ARCH_LINUX = {
    "gcc-aarch64-linux-gnu": "aarch64-linux-gnu-gcc",
    "gcc-riscv64-linux-gnu": "riscv64-linux-gnu-gcc",
    "qemu-system-aarch64": "qemu-system-aarch64",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-system-riscv64": "qemu-system-riscv",
    "qemu-system-s390x": "qemu-system-s390x",
    "libc6-dev": "glibc",
    "libc6-dev-arm64-cross": "aarch64-linux-gnu-glibc",
    "libelf-dev": "libelf",
    "python3-venv": "python",
    "gpg": "gnupg",
    "gpg-agent": "gnupg",
    "xz-utils": "xz",
}
"""The names that the Debian packages and the emulators have on Arch Linux. The table FEDORA has the names on Fedora."""

SAME = (
    *("make", "gcc", "flex", "bison", "bc", "perl", "tar", "gzip", "git", "patch"),
    *("shellcheck", "xfsprogs", "clang", "lld", "llvm", "lcov", "opensbi", "chromium"),
)
"""Packages that have the same name for all package managers."""

MANAGERS = {"dnf": ("dnf install", FEDORA), "pacman": ("pacman -S", ARCH_LINUX)}
"""For each package manager except apt-get: its command to install packages, and its package names."""

BUILD = ("make", "gcc", "/usr/include/stdio.h", "flex", "bison", "bc", "perl", "tar", "xz", "gzip")
"""Programs and files that every kernel build needs."""

LLVM = ("clang", "ld.lld", "llvm-ar")
"""Programs that LLVM=1 needs in addition."""


BOX = f"./mmcheck {CONTAINER}"
"""A command that begins with these words runs in a container, and needs no packages of this system."""

BOXED = "MMCHECK_CONTAINER"
"""The environment variable that is set in the container. Its value is the container's default of O=."""

NO_CCACHE = "ccache is missing, so each kernel is compiled from scratch; with ccache, similar kernels take seconds"


def cross_prefix(arch: str) -> str:
    """The prefix of the compiler for `arch` on this machine; empty if the machine's own compiler builds for `arch`."""
    known = ARCHITECTURES.get(arch)
    if known is None or known.machine in ("", platform.machine()):
        return ""
    return known.prefix


def own_arch() -> str:
    """The name of this machine's own architecture, as in --arch=."""
    own = platform.machine()
    return next((arch.name for arch in ARCHITECTURES.values() if arch.machine == own), own)


def requirements(arch: str, own_compiler: bool) -> list[str]:
    """Programs and files needed to build and boot for `arch`.

    own_compiler: the user names a compiler (--cross_compile, LLVM=1), so none is required here.
    """
    known = ARCHITECTURES.get(arch)
    needed = list(BUILD)
    if known is None:
        return needed
    if cross_prefix(arch) and not own_compiler:
        needed.append(f"{cross_prefix(arch)}gcc")
    if known.emulator:
        needed.append(known.emulator)
    return needed + list(known.needs)


def named(words: Iterable[str]) -> list[str]:
    """The files of PACKAGES, such as firmware, that are among the arguments of an emulator."""
    every = " ".join(words).split()
    return [need for need in PACKAGES if need.startswith("/") and need in every]


def libc(arch: str) -> str:
    """A header of the C library for programs on `arch`. If this header exists, the library is installed."""
    prefix = cross_prefix(arch)
    return f"/usr/{prefix.removesuffix('-')}/include/stdio.h" if prefix else "/usr/include/stdio.h"


def package(need: str) -> str:
    """The Debian package that has the program or file `need`."""
    for arch in ARCHITECTURES.values():
        if need == f"{arch.prefix}gcc" and arch.prefix:
            return arch.compiler
        if need == arch.emulator:
            return arch.emulator_package
    return PACKAGES[need]


def suites(arch: str) -> tuple[str, str]:
    """The folders with the suites for an architecture, and with their .kunitconfig files."""
    return "mm/tests", f"arch/{SOURCES.get(arch, arch)}/mm/tests"


def missing(needs: Iterable[str]) -> list[str]:
    """The programs and files among `needs` that this machine lacks."""
    return [need for need in needs if not (Path(need).exists() if need.startswith("/") else shutil.which(need))]


def provide(needs: Sequence[str]) -> None:
    """Make sure that this machine has all `needs`.

    As root, and without INSTALL=no, it installs what is missing. Otherwise it raises UserError with the command to
    install it. Call this function after all other input has been checked.
    """
    absent = missing(needs)
    if not absent:
        return
    if not shutil.which("apt-get"):
        raise UserError(f"missing {', '.join(absent)}; {elsewhere(absent)}")
    packages = sorted({package(need) for need in absent})
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    forbidden = os.environ.get("INSTALL") == "no"
    refuses = os.geteuid() != 0 or forbidden
    listed = " ".join(packages)
    if dry.instead("missing", f"{listed}: the command ends here") if refuses else dry.instead("install", listed):
        return
    # Another run may be installing something right now: wait for it.
    patient = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *command[1:]]
    names = ", ".join(absent)
    if refuses:
        why = f"missing {names}{' (INSTALL=no)' if forbidden else ''}"
        raise UserError(f"{why}; install with: {'sudo ' * (os.geteuid() != 0)}{' '.join(command)}")
    progress.say(f"missing {names}: installing {listed}")
    for step in (["apt-get", "-qq", "update"], patient):
        done = subprocess.run(
            step,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    still = missing(needs)
    if still:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.startswith("E:")]
        reason = f" ({said[0][2:].strip()})" if said else ""
        raise UserError(f"could not install {', '.join(still)}{reason}; try: {' '.join(command)}")


@functools.cache
def advise() -> None:
    """Say once that ccache is missing. This is for commands that build several kernels."""
    if not shutil.which("ccache"):
        progress.say(NO_CCACHE)


def elsewhere(absent: Sequence[str]) -> str:
    """How to install programs and files on a machine without apt-get."""
    manager = next((program for program in MANAGERS if shutil.which(program)), None)
    if not manager:
        return f"install these with the package manager of this system, or use {BOX}"
    install, names = MANAGERS[manager]
    known: set[str] = set()
    unknown: list[str] = []
    for need in absent:
        name = package(need)
        own = names.get(need) or names.get(name) or (name if name in SAME else "")
        if own:
            known.add(own)
        else:
            unknown.append(need)
    said = [f"install with: sudo {install} {' '.join(sorted(known))}"] if known else []
    if unknown:
        said.append(f"mmcheck does not know the package of {', '.join(unknown)}; {BOX} works without that package")
    return "; ".join(said)
