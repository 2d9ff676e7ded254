# SPDX-License-Identifier: GPL-2.0
"""Kernels and programs that Debian has built for arm64. They are unpacked below the cache, and not installed."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..core import dry
from ..core.errors import UserError
from ..core.lock import held
from . import source
from .archive import IMAGE, Archive

PARTS = ("linux-binary-", "linux-modules-")
"""From 7.3 on, the image package is empty and depends on a package with the image, and one with the drivers."""

IMAGE_FILE, DRIVER, MAP = "vmlinuz", "brd.ko", "System.map"
"""The files in the folder of a kernel: its image, its driver of RAM disks, and later its symbols.

The packages have no real System.map. It is only in the package with debug symbols, which is ten times as large.
"""

UNPACK = {".ko": ["cat"], ".xz": ["xz", "-dc"], ".zst": ["zstd", "-dc"]}
"""The commands that unpack a driver, by the end of its name."""


def kernel(wanted: str, cache: Path) -> Path:
    """The folder with the packaged kernel `wanted`. The kernel is fetched if the cache lacks it."""
    kept = cache / "images"
    if found := source.unpacked(wanted, kept):
        return found.path
    if dry.instead("fetch", f"Debian's linux {wanted} for arm64 into {kept}"):
        return kept / f"linux-{wanted}"
    kept.mkdir(parents=True, exist_ok=True)
    with held(cache / "lock", "it fetches a kernel for arm64"):
        if found := source.unpacked(wanted, kept):
            return found.path
        archive = Archive(cache / "apt-arm64", "arm64")
        package = archive.find(wanted, IMAGE)
        target = kept / f"linux-{package.version}"
        if target.exists():
            return target
        with tempfile.TemporaryDirectory(dir=kept, prefix=".unpacking-") as temporary:
            parts = [name for name in archive.depends(package.name) if name.startswith(PARTS)]
            archive.fetch([package.name, *parts], Path(temporary))
            _keep(Path(temporary), target)
    return target


def _keep(unpacked: Path, target: Path) -> None:
    """Make the folder `target` with the files of the kernel that is `unpacked`."""
    new = unpacked / "new"
    new.mkdir()
    for pattern in (f"{IMAGE_FILE}*", f"{DRIVER}*"):
        files = [file for file in sorted(unpacked.rglob(pattern)) if file.is_file()]
        if not files:
            raise UserError(f"the package of {target.name} has no {pattern}; choose another kernel with KERNEL=")
        with (new / pattern.rstrip("*")).open("wb") as file:
            subprocess.run([*UNPACK.get(files[0].suffix, ["cat"]), files[0]], stdout=file, check=True)
    new.rename(target)


def program(package: str, file: str, cache: Path) -> Path:
    """A folder with a program for arm64 and all libraries that it loads. `file` is its path in the `package`."""
    target = cache / "guest/arm64" / f"{package}.whole"
    if target.exists() or dry.instead("fetch", f"{package} and its libraries into {target}"):
        return target
    with held(cache / "lock", "it fetches programs for the virtual machine"):
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as temporary:
            archive, place = Archive(cache / "apt-arm64", "arm64"), Path(temporary)
            archive.fetch([package], place)
            new = place / "new"
            new.mkdir()
            shutil.copy(place / package / file, new)
            for name, library in _libraries(archive, place, package, file).items():
                shutil.copy(library, new / name)
            new.rename(target)
    return target


def _libraries(archive: Archive, place: Path, package: str, file: str) -> dict[str, Path]:
    """The libraries of a program, by name. Packages are fetched into `place` until each library is found."""
    found: dict[str, Path] = {}
    todo = [(place / package / file, package)]
    while todo:
        user, owner = todo.pop()
        for name in _needed(user):
            if name in found:
                continue
            library = _search(place, name)
            if not library:
                missing = [one for one in archive.depends(owner) if not (place / one).exists()]
                archive.fetch(missing, place)
                library = _search(place, name)
            if not library:
                raise UserError(f"no package that {owner} depends on has {name}, which {user.name} needs")
            found[name] = library
            todo.append((library, library.relative_to(place).parts[0]))
    return found


def _needed(file: Path) -> list[str]:
    """The names of the libraries that a program or a library loads itself."""
    shown = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", shown)


def _search(place: Path, name: str) -> Path | None:
    return next((file for file in sorted(place.rglob(name)) if file.exists()), None)
