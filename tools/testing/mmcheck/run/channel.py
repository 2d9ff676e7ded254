# SPDX-License-Identifier: GPL-2.0
"""The channel through which our `make` reports its progress to the launcher."""

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core import progress
from ..kernel.make import PACE, Message


@contextlib.contextmanager
def listening(label: str, failed: Callable[[], None]) -> Iterator[Path]:
    """A FIFO through which our `make` reports its progress. This progress is shown during the block.

    label:  the name of the kernel that is built
    failed: called if make fails
    """
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        path = Path(folder) / "channel"
        os.mkfifo(path)
        # Open for writing too, so that the end of one make is not the end of the stream.
        descriptor = os.open(path, os.O_RDWR)
        thread = threading.Thread(target=_show, args=(descriptor, label, failed), daemon=True)
        thread.start()
        try:
            yield path
        finally:
            os.write(descriptor, b"\n")
            thread.join()
            os.close(descriptor)


def _show(descriptor: int, label: str, failed: Callable[[], None]) -> None:
    shown: progress.Progress | None = None
    with os.fdopen(os.dup(descriptor)) as lines:
        for line in lines:
            if not line.strip():
                break
            message = Message(**json.loads(line))
            if message.failed:
                failed()
                continue
            if shown is None:
                title = f"building linux {label}"
                shown = progress.Progress(title, message.total, exact=False, pace=PACE)
            shown.advance(message.done, message.detail)
            if message.detail.startswith(("LD      vmlinux", "LINK linux", "LINK    linux")):
                shown.clear()
    if shown:
        shown.clear()
