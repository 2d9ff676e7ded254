# SPDX-License-Identifier: GPL-2.0
"""Our emulator wrapper, which kunit.py finds first in PATH."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mmcheck.boot import emulator, sandbox
from mmcheck.core.settings import PROJECT

from .waiting import until

NAME = "qemu-system-x86_64"
KVM = ["-accel", "kvm", "-accel", "hvf", "-accel", "tcg"]
PROGRAM = """
import sys
from mmcheck.boot import emulator, guest
guest.has_kvm = lambda arch: {works}
guest.KVM_SILENCE = 1
sys.exit(emulator.main("{name}", sys.argv[1:]))
"""
SAYS = "echo boot; echo KTAP version 1; sleep 2; echo end; exit 3"
"""The output of a kernel. Between its tests it may be silent for longer than before the first test."""


NO_FILTER = 'case "$*" in *-version) exit 1;; esac'
"""The answer of an emulator without -sandbox to a test of this option."""


def start(tmp_path: Path, under_kvm: str, *arguments: str, there: bool = True) -> subprocess.Popen[str]:
    """Start our emulator. The machine's own emulator runs the command `under_kvm` if its arguments ask for KVM."""
    fake = tmp_path / NAME
    fake.write_text(
        f'#!/bin/sh\n{NO_FILTER}\necho "$*" >> {tmp_path}/calls\ncase "$*" in *kvm*) {under_kvm};; esac\n{SAYS}\n'
    )
    fake.chmod(0o755)
    path = f"{PROJECT}/tools/testing/mmcheck/bin:{tmp_path}:{os.environ['PATH']}"
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(works=there, name=NAME), *arguments],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT / "tools/testing")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def calls(tmp_path: Path) -> list[str]:
    """The arguments of each call of the machine's own emulator, without `-nic none`, which each call has."""
    found = (tmp_path / "calls").read_text().splitlines()
    assert all(" -nic none" in call for call in found)
    return [call.replace(" -nic none", "") for call in found]


def test_a_kernel_that_comes_up_under_kvm_stays_there(tmp_path: Path) -> None:
    with start(tmp_path, "true", "-m", "1024", *KVM) as child:
        said, errors = child.communicate()
    assert (said.splitlines(), errors, child.returncode) == (["boot", "KTAP version 1", "end"], "", 3)
    assert calls(tmp_path) == ["-m 1024 -accel kvm -accel hvf -accel tcg"]


@pytest.mark.parametrize("under_kvm", ["exec sleep 60", "echo half a boot; exec sleep 60", "echo dead; exit 1"])
def test_without_a_test_under_kvm_the_machine_is_emulated(tmp_path: Path, under_kvm: str) -> None:
    with start(tmp_path, under_kvm, "-m", "1024", *KVM) as child:
        said, errors = child.communicate()
    assert (said.splitlines(), child.returncode) == (["boot", "KTAP version 1", "end"], 3)
    assert "QEMU emulates the machine" in errors
    assert calls(tmp_path)[1:] == ["-m 1024 -accel hvf -accel tcg"]


@pytest.mark.parametrize(
    ("there", "arguments", "given"),
    [(False, KVM, "-accel hvf -accel tcg"), (True, ["-accel", "tcg"], "-accel tcg")],
)
def test_who_has_no_kvm_or_does_not_ask_for_it_gets_the_emulator(
    tmp_path: Path, there: bool, arguments: list[str], given: str
) -> None:
    with start(tmp_path, "true", *arguments, there=there) as child:
        child.communicate()
    assert child.returncode == 3
    assert calls(tmp_path) == [given]


@pytest.mark.parametrize("there", [True, False])
def test_kunit_py_finds_ours_and_ours_finds_the_machines(tmp_path: Path, there: bool) -> None:
    (tmp_path / "python3").symlink_to(sys.executable)
    if there:
        fake = tmp_path / NAME
        fake.write_text("#!/bin/sh\necho real $*\n")
        fake.chmod(0o755)
    done = subprocess.run(
        [NAME, "-m", "1024"],
        env={"PATH": f"{PROJECT}/tools/testing/mmcheck/bin:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    words = " ".join(["real -m 1024", *sandbox.NO_NETWORK, *sandbox.FILTER])
    assert (done.stdout, done.returncode) == ((f"{words}\n", 0) if there else ("", 1))
    assert ("is not installed" in done.stderr) == (not there)


def test_kunit_py_ends_the_machine(tmp_path: Path) -> None:
    with start(tmp_path, f"exec sleep 61; : {tmp_path}", *KVM) as child:
        until((tmp_path / "calls").exists, child)
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate(timeout=30)
    assert (said, child.returncode) == ("", 128 + signal.SIGTERM)
    assert len(calls(tmp_path)) == 1


def test_only_what_asks_for_kvm_goes() -> None:
    assert emulator.without_kvm(["-accel", "kvm", "-cpu", "kvm", "-accel", "tcg"]) == ["-cpu", "kvm", "-accel", "tcg"]


def test_kvm_is_not_asked_for_what_emulation_alone_has() -> None:
    given = ["-cpu", "max", "-cpu", "max,pauth-impdef=on,sve=off", "-append", "x,pauth-impdef=on", *KVM]
    assert emulator.with_kvm(given) == ["-cpu", "max", "-cpu", "max,sve=off", "-append", "x,pauth-impdef=on", *KVM]


def test_under_kvm_the_launchers_cpu_is_accepted(tmp_path: Path) -> None:
    refuses = 'case "$*" in *pauth-impdef*) exit 1;; esac'
    with start(tmp_path, refuses, "-cpu", "max,pauth-impdef=on", *KVM) as child:
        _, errors = child.communicate()
    assert (errors, child.returncode) == ("", 3)
    assert calls(tmp_path) == ["-cpu max -accel kvm -accel hvf -accel tcg"]


def test_firmware_gets_a_kernel_that_is_not_packed() -> None:
    usual = ["-kernel", "boot/Image.gz", "-m", "1G"]
    assert emulator.unpacked(usual) == usual
    assert emulator.unpacked([*usual, "-bios", "x.gz"]) == ["-kernel", "boot/Image", "-m", "1G", "-bios", "x.gz"]


def test_the_emulator_is_kept_away_from_the_machine(tmp_path: Path) -> None:
    fake = tmp_path / "qemu"
    fake.write_text(f"#!/bin/sh\n{NO_FILTER}\n")
    fake.chmod(0o755)
    assert sandbox.options(str(fake)) == ["-nic", "none"]
    new = tmp_path / "new"
    new.write_text("#!/bin/sh\n")
    new.chmod(0o755)
    assert sandbox.options(str(new)) == ["-nic", "none", *sandbox.FILTER]
    assert sandbox.options(str(new), ["-netdev", "user", "-sandbox", "off"]) == []
    assert sandbox.options(str(tmp_path / "missing")) == ["-nic", "none"]
