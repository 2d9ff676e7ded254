# SPDX-License-Identifier: GPL-2.0
"""Folders below O= that mmcheck has made. mmcheck removes nothing outside of these."""

import shutil
from pathlib import Path

from .errors import UserError
from .settings import PROJECT

MARKER = ".mmcheck"
"""This file marks a folder that mmcheck made."""


def claim(folder: Path, known: bool = False) -> Path:
    """Make sure that `folder` exists and is ours: it is new, or empty, or mmcheck made it earlier.

    known: whether another sign shows that the folder is ours; folders of older versions have no mark
    Raises UserError if the folder is not ours.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder} is not a folder that mmcheck has made: move it away, or choose another O=")
    mark = folder / MARKER
    if mark.exists():
        return folder
    known = known or folder.is_relative_to(PROJECT / "out")
    if folder.exists() and not known and any(folder.iterdir()):
        why = f"mmcheck did not create this folder (it contains no {MARKER}) and removes nothing there"
        raise UserError(f"{folder} is not empty, and {why}: move it away, or choose another O=")
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return folder


def empty(folder: Path) -> Path:
    """Replace `folder` with a new folder that has only our mark. Raises UserError if the folder is not ours."""
    claim(folder)
    shutil.rmtree(folder)
    return claim(folder)
