# SPDX-License-Identifier: GPL-2.0
"""Counts instructions through GDB's remote protocol."""

import socket
import threading
from pathlib import Path

import pytest

from mmcheck.boot import debugger, linear_map
from mmcheck.core.errors import UserError
from mmcheck.tests.stand_ins import RETURN, Stub

ENTRY = 0xFFFF800080001000


def test_a_call_is_counted_from_its_begin_to_its_return() -> None:
    near, far = socket.socketpair()
    stub = Stub(far)
    threading.Thread(target=stub.run, daemon=True).start()
    remote = debugger.Remote(near)
    remote.run_to(ENTRY)
    before = remote.instructions()
    remote.run_to(remote.register(30))
    assert remote.instructions() - before == 1234
    assert stub.stops == [ENTRY, RETURN]


def test_a_machine_that_does_not_count_says_what_it_said() -> None:
    near, far = socket.socketpair()
    threading.Thread(target=Stub(far, counts=False).run, daemon=True).start()
    with pytest.raises(EOFError, match="unknown"):
        debugger.Remote(near).instructions()


def test_an_emulator_that_ends_is_one_line(tmp_path: Path) -> None:
    emulator = tmp_path / "emulator"
    emulator.write_text("#!/bin/sh\necho 'no such machine' >&2\nexit 1\n")
    emulator.chmod(0o755)
    with pytest.raises(UserError, match="cannot count its instructions: no such machine"):
        debugger.instructions_of_call([str(emulator)], ENTRY)


def test_a_kernel_without_the_function_is_named(tmp_path: Path) -> None:
    (tmp_path / "System.map").write_text("ffff T __set_fixmap\n")
    with pytest.raises(UserError, match="has no paging_init"):
        linear_map.instructions(tmp_path, 1)
