# SPDX-License-Identifier: GPL-2.0
"""The content of the virtual machine, and the reader of its console."""

import contextlib
import time
from pathlib import Path

import pytest

from mmcheck.boot import boot, guest


def test_the_file_system_has_shells_init_and_programs(tmp_path: Path) -> None:
    for package, _ in guest.SHELLS.values():
        (tmp_path / "guest/arm64" / package).mkdir(parents=True)
    said = guest.specification("arm64", tmp_path, {"folio_one": Path("/x/folio_one")}, Path("/x/list")).splitlines()
    assert "file /tests/folio_one /x/folio_one 0755 0 0" in said
    assert "file /tests/list /x/list 0644 0 0" in said
    assert f"file /init {guest.HERE / 'init'} 0755 0 0" in said
    assert any(line.startswith("file /bin/busybox ") for line in said)


@pytest.mark.parametrize("release", ["", "usr"], ids=["Debian 12", "Debian 13"])
def test_the_shells_are_found_where_each_debian_release_has_them(tmp_path: Path, release: str) -> None:
    for package, file in guest.SHELLS.values():
        program = tmp_path / "guest/arm64" / package / release / file
        program.parent.mkdir(parents=True)
        program.touch()
    said = guest.specification("arm64", tmp_path, {}, Path("/x/list")).splitlines()
    given = [Path(line.split()[2]) for line in said if line.startswith("file /bin/")]
    assert len(given) == len(guest.SHELLS) and all(path.exists() for path in given)


def test_the_console_is_on_the_port_of_the_architecture() -> None:
    for arch, console in (("arm64", "ttyAMA0"), ("x86_64", "ttyS0")):
        command = guest.command(arch, Path("/b"), Path("/i"), Path("/d"), 2, False, ["STRICT=1"])
        assert f"console={console} " in command[-1]
        assert command[-1].endswith(" STRICT=1")
        assert " softlockup_panic=1 " in command[-1]  # without it, warnings of a locked CPU hide that the machine hangs
        assert "file=/d,if=none,id=disk,format=raw,snapshot=on" in command
        assert "-accel" not in command
    assert "-accel" in guest.command("x86_64", Path("/b"), Path("/i"), Path("/d"), 2, True)


def test_memory_has_tags_where_the_emulator_can() -> None:
    for arch, kvm, there in (("arm64", False, True), ("arm64", True, False), ("x86_64", False, False)):
        command = guest.command(arch, Path("/b"), Path("/i"), Path("/d"), 2, kvm, tags=True)
        assert any("mte=on" in word for word in command) == there


def test_a_program_chooses_the_emulated_cpu_of_arm64() -> None:
    for arch, kvm, model in (("arm64", False, "old"), ("arm64", True, "host"), ("x86_64", False, "max")):
        command = guest.command(arch, Path("/b"), Path("/i"), Path("/d"), 2, kvm, cpu="old")
        assert command[command.index("-cpu") + 1] == model


def running(mark: str) -> list[Path]:
    """The folders in /proc of the processes with `mark` in their arguments."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "cmdline").read_text(errors="replace"):
                found.append(folder)
    return found


def ended(mark: str) -> bool:
    """Whether no process has `mark` in its arguments. Waits up to 30 seconds: a killed process ends a little later."""
    deadline = time.monotonic() + 30
    while running(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not running(mark)


def test_a_silent_console_is_given_up(tmp_path: Path) -> None:
    mark = str(tmp_path)
    began = time.monotonic()
    lines = list(boot.lines(["sh", "-c", f"echo one; sleep 60; : {mark}"], tmp_path / "log", 50, silence=1))
    assert lines == ["one"]
    assert time.monotonic() - began < 20
    assert (tmp_path / "log").read_text() == "one\n"
    assert ended(mark)


def test_a_slow_listener_is_no_silence(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo one; sleep 1; echo two; sleep 0.2; echo three"]
    heard = []
    for line in boot.lines(command, tmp_path / "log", 50, silence=2):
        heard.append(line)
        time.sleep(2.5)
    assert heard == ["one", "two", "three"]


def test_who_stops_listening_leaves_no_machine(tmp_path: Path) -> None:
    mark = str(tmp_path)
    lines = boot.lines(["sh", "-c", f"echo one; sleep 60; : {mark}"], tmp_path / "log", 50)
    assert next(lines) == "one"
    lines.close()  # type: ignore[attr-defined]
    assert ended(mark)
