# SPDX-License-Identifier: GPL-2.0
"""Ends programs that mmcheck has started."""

import contextlib
import os
import signal
import subprocess


def end(child: subprocess.Popen[bytes]) -> None:
    """End a child that leads a process group, and all processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
