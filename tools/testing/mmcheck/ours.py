# SPDX-License-Identifier: GPL-2.0
"""Folders below O= that mmcheck has made. Only in these does it remove anything."""

import shutil
from pathlib import Path

from .errors import UserError
from .settings import PROJECT

MARKER = ".mmcheck"
"""This file marks a folder that mmcheck made."""


def claim(folder: Path, known: bool = False) -> Path:
    """See that `folder` is there and ours: made now, empty, or made by us before.

    known: another sign shows that it is ours; older folders have no mark
    Raises UserError where it is somebody else's.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder} is not a folder that mmcheck has made: move it away, or choose another O=")
    mark = folder / MARKER
    if mark.exists():
        return folder
    known = known or folder.is_relative_to(PROJECT / "out")
    if folder.exists() and not known and any(folder.iterdir()):
        why = f"mmcheck has not made it (there is no {MARKER} in it) and removes nothing there"
        raise UserError(f"{folder} is not empty, and {why}: move it away, or choose another O=")
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return folder


def empty(folder: Path) -> Path:
    """Make `folder` anew, with nothing in it but our mark. Raises UserError where it is somebody else's."""
    claim(folder)
    shutil.rmtree(folder)
    return claim(folder)
