# SPDX-License-Identifier: GPL-2.0
"""Allows one run at a time in one folder. A second run waits, and says so."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import progress

_own = threading.local()


@contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` for the length of the block; a process that waits prints `what`.

    One thread may nest such blocks for the same lock. The kernel drops the lock when its holder ends in any way, so a
    stale file does no harm.
    """
    mine: dict[Path, int] = _own.__dict__.setdefault("files", {})
    if path in mine:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            progress.say(f"waiting for another run{f' (process {holder})' if holder else ''}: {what}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        mine[path] = file.fileno()
        try:
            yield
        finally:
            del mine[path]


def files() -> list[int]:
    """The files of the locks that this thread holds.

    A program that inherits these files keeps the locks until it ends, even if mmcheck is killed. A program that writes
    into a folder must keep the folder's lock: otherwise the next run could use the folder at the same time.
    """
    return list(_own.__dict__.get("files", {}).values())
