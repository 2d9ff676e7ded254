# SPDX-License-Identifier: GPL-2.0
"""The virtual machine that runs selftests: its files, and the command that boots it.

Its root file system is an initramfs: BusyBox and bash from the package archive, the test programs, and init, which runs
the programs. Its only disk has a file system with large folios. When the machine ends, the content written to the disk
is lost.
"""

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core import dry
from ..core.errors import UserError
from ..core.lock import held
from ..kernel import toolchain
from ..kernel.archive import Archive
from . import sandbox
from .boot import IMAGES

HERE = Path(__file__).parent / "vm"
DEBIAN = {"arm64": "arm64", "x86_64": "amd64"}
"""The architectures on which selftests run. The values are Debian's names for these architectures."""

SHELLS = {"busybox": ("busybox-static", "bin/busybox"), "bash": ("bash-static", "bin/bash-static")}
"""The programs in /bin of the virtual machine: the Debian package of each, and its path in this package. From Debian 13
on, the path begins with usr/."""

MEMORY = 2048
"""The memory of the machine, in MiB. The machine's swap device is a RAM disk. Its size is an eighth of this memory."""

LEAST = {"64K": 4096}
"""The memory in MiB that a kernel with this page size needs to group free pages by mobility (six huge pages). With less
memory a free page may be on a list of another migrate type than its pageblock's. CONFIG_DEBUG_VM then warns."""

DISK = 320
"""Size of the disk in MiB; mkfs.xfs accepts no less than 300."""

MKFS = "/usr/sbin/mkfs.xfs"
KVM = Path("/dev/kvm")
KVM_SILENCE = 20
"""If the first boot under KVM prints nothing for this many seconds, mmcheck treats KVM as broken."""


def packages(arch: str, names: Sequence[str], cache: Path) -> Path:
    """The folder with the unpacked Debian packages `names` for `arch`. Packages that are missing there are fetched."""
    target = cache / "guest" / arch
    missing = [name for name in names if not (target / name).exists()]
    if missing and not dry.instead("fetch", f"{', '.join(missing)} into {target}"):
        with held(cache / "lock", "it fetches programs for the virtual machine"):
            archive = Archive(cache / f"apt-{arch}", DEBIAN[arch])
            archive.fetch([name for name in missing if not (target / name).exists()], target)
    return target


def specification(arch: str, cache: Path, files: Mapping[str, Path], run: Path, init: Path = HERE / "init") -> str:
    """The machine's file system, as a list for the kernel's gen_init_cpio.

    files: the files in /tests, by name
    run:   the list of programs to run
    init:  the first program
    """
    shells = packages(arch, [package for package, _ in SHELLS.values()], cache)
    folders = ("bin", "dev", "proc", "sys", "tmp", "mnt", "tests", "etc")
    lines = [f"dir /{name} 0755 0 0" for name in folders]
    lines += ["nod /dev/console 0600 0 0 c 5 1"]
    for name, (package, file) in SHELLS.items():
        merged = shells / package / "usr" / file
        lines.append(f"file /bin/{name} {merged if merged.exists() else shells / package / file} 0755 0 0")
    lines += [f"file /init {init} 0755 0 0", f"file /tests/list {run} 0644 0 0"]
    lines += [f"file /tests/{name} {path} 0755 0 0" for name, path in files.items()]
    return "\n".join(lines) + "\n"


def pack(specified: str, build: Path, target: Path) -> None:
    """Write the file system that `specified` describes, with gen_init_cpio of the kernel in `build`."""
    listing = target.with_suffix(".list")
    listing.write_text(specified)
    with target.open("wb") as file:
        subprocess.run([build / "usr/gen_init_cpio", listing], stdout=file, check=True)


def disk(path: Path) -> Path:
    """The disk image at `path`: an empty XFS. It is made if it is missing."""
    if path.exists():
        return path
    with held(path.with_suffix(".lock"), f"it makes {path}"):
        if path.exists():
            return path
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with new.open("wb") as file:
            file.truncate(DISK << 20)
        done = subprocess.run([MKFS, "-q", "-f", new], capture_output=True, text=True)
        if done.returncode:
            raise UserError(f"{MKFS} failed: {done.stderr.strip()}")
        new.rename(path)
    return path


def has_kvm(arch: str) -> bool:
    """Whether this machine can run kernels for `arch` under KVM."""
    return toolchain.ARCHITECTURES[arch].machine == platform.machine() and os.access(KVM, os.R_OK | os.W_OK)


def drive(arch: str, image: Path, *more: str) -> list[str]:
    """The emulator's options for a disk; `more` are options of the drive."""
    bus = {"arm64": "device", "x86_64": "pci"}[arch]
    options = ",".join([f"file={image}", "if=none", "id=disk", "format=raw", *more])
    return ["-drive", options, "-device", f"virtio-blk-{bus},drive=disk"]


def command(
    arch: str,
    build: Path,
    initrd: Path,
    image: Path,
    cpus: int,
    accelerated: bool,
    words: Sequence[str] = (),
    memory: int = MEMORY,
    tags: bool = False,
    cpu: str = "",
) -> list[str]:
    """The command that boots the kernel in `build`. `words` go to the kernel's command line, and to init.

    tags: whether memory has tags (arm64, not under KVM)
    cpu:  the CPU of an emulated arm64 machine; "" for the usual one
    """
    console = {"arm64": "ttyAMA0", "x86_64": "ttyS0"}[arch]
    model = ["-cpu", "host" if accelerated else "max" if arch == "x86_64" else cpu or toolchain.ARM64_CPU]
    if arch == "arm64":
        model += ["-machine", "virt,mte=on" if tags and not accelerated else "virt"]
    own = [
        f"console={console}",
        "loglevel=8",
        "printk.devkmsg=on",
        "printk.time=1",
        "panic=-1",
        "oops=panic",
        # Panic if a CPU is stuck for a minute. Otherwise the repeated warnings would count as progress.
        "softlockup_panic=1",
        "watchdog_thresh=30",
        "numa=fake=2",
        "numa_balancing=disable",
    ]
    if arch == "x86_64" and cpus > 1 and not accelerated:
        # When the clock source changes, the kernel puts int3 into its code for a moment. A CPU that QEMU emulates may
        # execute this int3 later, and die. With this word the clock source does not change.
        own.append("tsc=unstable")
    emulator = toolchain.ARCHITECTURES[arch].emulator
    return [
        emulator,
        *sandbox.options(emulator),
        *("-nodefaults", "-nographic", "-no-reboot", "-m", str(memory), "-smp", str(cpus)),
        *model,
        *(["-accel", "kvm"] if accelerated else []),
        *drive(arch, image, "snapshot=on"),
        *("-serial", "stdio", "-kernel", str(build / IMAGES[arch]), "-initrd", str(initrd)),
        *("-append", " ".join([*own, *words])),
    ]
