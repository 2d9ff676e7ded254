# SPDX-License-Identifier: GPL-2.0
"""Provides QEMU 10, because its plugins can read registers and the values of stores.

If the system's QEMU is older, a package of Debian's backports is unpacked below the cache. It is not installed.
"""

import re
import shutil
import subprocess
from pathlib import Path

from ..core import dry
from ..core.errors import UserError
from ..core.lock import held
from ..kernel.archive import Archive

NAME = "qemu-system-aarch64"
PACKAGE = "qemu-system-arm"
OLDEST = 10
BIN = Path(__file__).resolve().parents[1] / "bin"


def version(program: str | Path) -> int:
    """The first number of an emulator's version, or 0 if the emulator does not run."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    except OSError:
        return 0
    match = re.search(r"emulator version (\d+)\.", said)
    return int(match[1]) if match else 0


def provide(cache: Path) -> Path:
    """The path of a QEMU that is new enough. Raises UserError if there is no such QEMU."""
    if dry.instead("fetch", f"QEMU {OLDEST} into {cache}, unless QEMU {OLDEST} or newer is installed"):
        return Path(NAME)
    system = shutil.which(NAME)
    if system and Path(system).parent.resolve() != BIN and version(system) >= OLDEST:
        return Path(system)
    kept = cache / "qemu" / "usr/bin" / NAME
    if version(kept) >= OLDEST:
        return kept
    with held(cache / "qemu.lock", "it unpacks QEMU"):
        if version(kept) < OLDEST:
            _unpack(cache)
    if version(kept) < OLDEST:
        raise UserError(f"{kept} does not run: install {PACKAGE} to get its libraries, or install QEMU {OLDEST}")
    return kept


def _unpack(cache: Path) -> None:
    archive = Archive(cache / "qemu-apt")
    file = archive.newer(PACKAGE, f"1:{OLDEST}")
    if not file:
        raise UserError(f"the package archive has no QEMU {OLDEST}; install QEMU {OLDEST} in another way")
    new = cache / "qemu.new"
    shutil.rmtree(new, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-x", file, new], check=True)
    shutil.rmtree(cache / "qemu", ignore_errors=True)
    new.rename(cache / "qemu")
    file.unlink()
