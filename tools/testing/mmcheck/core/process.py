# SPDX-License-Identifier: GPL-2.0
"""Ends programs that mmcheck has started."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence


def end(child: subprocess.Popen[bytes]) -> None:
    """End a child that leads a process group, and all processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def mortal(command: Sequence[str]) -> list[str]:
    """`command` with a prefix: if mmcheck dies, the kernel kills `command`. Without setpriv there is no prefix."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else list(command)
