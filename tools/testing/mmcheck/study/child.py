# SPDX-License-Identifier: GPL-2.0
"""Runs one command of this repository as a child process. The child ends after an interrupt, and if its parent dies."""

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from ..boot import boot
from ..core import process
from ..core.settings import PROJECT


def follow(
    command: Sequence[str], environ: Mapping[str, str], log: int, heard: Callable[[str], None]
) -> tuple[int, str, int]:
    """Run a command, write its output to the file `log`, and pass each line to `heard`.

    Returns the exit status, the last line, and the process ID of the command.
    """
    last = ""
    with subprocess.Popen(
        process.mortal(command),
        cwd=PROJECT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    ) as child:
        assert child.stdout
        ended = threading.Event()
        threading.Thread(target=_guard, args=(child, ended), daemon=True).start()
        for line in child.stdout:
            os.write(log, line)
            text = line.decode(errors="replace").strip()
            last = text or last
            heard(text)
        ended.set()
        return child.wait(), last, child.pid


def _guard(child: subprocess.Popen[bytes], ended: threading.Event) -> None:
    """End the child after an interrupt. Send SIGTERM first, so that the child can end its own children."""
    while not ended.wait(0.2):
        if boot.stop.is_set():
            child.terminate()
            if not ended.wait(15):
                process.end(child)
            return
