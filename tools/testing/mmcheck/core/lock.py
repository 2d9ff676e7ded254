# SPDX-License-Identifier: GPL-2.0
"""Allows one run at a time in one folder. A second run waits, and says so."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import progress


@contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path` for the length of the block; a process that waits prints `what`.

    The kernel drops the lock when its holder ends in any way, so a stale file does no harm.
    """
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
        yield
