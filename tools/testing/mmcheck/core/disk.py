# SPDX-License-Identifier: GPL-2.0
"""Writes files in one step, and compares their content."""

import glob
import os
import threading
from hashlib import sha256
from pathlib import Path

SUFFIX = ".mmcheck-new"


def digest(content: bytes) -> str:
    """The SHA-256 of `content`, in hexadecimal."""
    return sha256(content).hexdigest()


def same(path: Path, content: bytes) -> bool:
    """Whether `path` has exactly this content."""
    return path.exists() and path.read_bytes() == content


def replace(path: Path, content: bytes) -> None:
    """Write `path` in one step, and keep its mode: the file has either its whole old content or its whole new content.

    Several processes and threads may write the same path.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}{SUFFIX}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def tidy(path: Path) -> None:
    """Remove the file that replace() left next to `path` if its process was killed."""
    for temporary in path.parent.glob(f"{glob.escape(path.name)}.*{SUFFIX}"):
        temporary.unlink(missing_ok=True)
