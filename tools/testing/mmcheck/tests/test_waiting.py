# SPDX-License-Identifier: GPL-2.0
"""A test that waits for a child process fails if the child dies or does nothing."""

import subprocess
import time

import pytest

from .waiting import until


@pytest.mark.parametrize(
    ("script", "seconds", "complaint"),
    [("echo oh dear >&2", 60.0, "the child ended.*oh dear"), ("exec sleep 60", 0.1, "nothing happened in 0.1 s")],
)
def test_no_test_waits_without_end(script: str, seconds: float, complaint: str) -> None:
    started = time.monotonic()
    with (
        subprocess.Popen(["sh", "-c", script], stderr=subprocess.PIPE, text=True) as child,
        pytest.raises(pytest.fail.Exception, match=complaint),
    ):
        until(lambda: False, child, seconds)
    assert time.monotonic() - started < 10
