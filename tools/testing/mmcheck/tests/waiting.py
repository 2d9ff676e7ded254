# SPDX-License-Identifier: GPL-2.0
"""Waits for an effect of a child process, with a time limit."""

import subprocess
import time
from collections.abc import Callable

import pytest


def until(happened: Callable[[], object], child: subprocess.Popen[str], seconds: float = 30) -> None:
    """Wait until `happened()` is true. The test fails after `seconds`, or if the child ends before that."""
    limit = time.monotonic() + seconds
    while not happened():
        ended, late = child.poll() is not None, time.monotonic() > limit
        if (ended or late) and not happened():
            child.terminate()
            try:
                said = child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
            pytest.fail(f"the child ended: {said}" if ended else f"nothing happened in {seconds} s: {said}")
        time.sleep(0.01)
