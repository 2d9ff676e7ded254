# SPDX-License-Identifier: GPL-2.0
"""Python packages that this repository needs and that the standard library lacks, in folders below O=."""

import subprocess
import venv
from pathlib import Path

from ..core import disk, dry, ours, progress
from ..core.errors import UserError


def present(folder: Path, wanted: Path) -> bool:
    """Whether `folder` has the packages that the file `wanted` lists."""
    return disk.same(folder / wanted.name, wanted.read_bytes())


def installed(folder: Path, wanted: Path, what: str) -> bool:
    """Make `folder` a virtual environment with the packages that the file `wanted` lists; a second call does nothing.

    what: a name for these packages
    Returns False in a dry run that would install them. Raises UserError if pip fails.
    """
    if not present(folder, wanted):
        if dry.instead("install", f"{what} into {folder}"):
            return False
        progress.say(f"installing {what} into {folder}")
        ours.empty(folder)
        venv.create(folder, with_pip=True)
        pip: list[str | Path] = [folder / "bin/pip", "install", "-q", "--disable-pip-version-check", "-r", wanted]
        if subprocess.run(pip, stdin=subprocess.DEVNULL).returncode:
            raise UserError(f"pip could not install {wanted}; check the network and the package index that pip uses")
        (folder / wanted.name).write_bytes(wanted.read_bytes())
    (folder / ours.MARKER).touch()
    return True
