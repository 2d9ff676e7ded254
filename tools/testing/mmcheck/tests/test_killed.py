# SPDX-License-Identifier: GPL-2.0
"""kill -9 of a command at any moment: the next call gives the right verdicts, and the user's tree is untouched."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.run import record

from . import stand_ins
from .conftest import fake_tree, state

MOMENTS = int(os.environ.get("MOMENTS", "5"))
"""At how many moments each command is killed."""

SETUP = """\
from mmcheck.boot import guest
from mmcheck.kernel import toolchain
from mmcheck.mutants import killmatrix
from pathlib import Path
import os
toolchain.missing = lambda _: []
guest.MKFS, guest.DISK = "mkfs", 1
killmatrix.FOLDER = Path(os.environ["O"], "matrix")
"""
"""What is missing on this machine is not looked for."""

COMMANDS = {
    "run": ["tools/testing/kunit/kunit.py", "run", "--arch=arm64", "contpte*"],
    "kselftest": ["tools/testing/mmcheck", "kselftest", "--arch", "arm64", "--tests", "contpte_fold folio_mlock"],
    "mutants": ["tools/testing/mmcheck", "mutants", "--arch", "arm64", "--jobs", "2"],
    "matrix": ["tools/testing/mmcheck", "matrix"],
}
STATUS = {"run": 0, "kselftest": 1, "mutants": 1, "matrix": 0}
"""What each command returns: in the selftests the first case fails, and one of two mutants survives."""

ENTRY = """\
[[mutant]]
name = "one_{value}"
file = "mm/mincore.c"
in = "mincore"
old = "return 1;"
new = "return {value};"
harm = "all"
suite = "contpte"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of somebody with a kernel tree, a compiler and an emulator."""
    tree = fake_tree(tmp_path / "linux")
    (tree / "Makefile").write_text(stand_ins.MAKEFILE)
    (tree / "mm/mincore.c").write_text(stand_ins.MINCORE)
    with (tree / "tools/testing/selftests/mm/Makefile").open("a") as makefile:
        makefile.write(stand_ins.SELFTESTS)
    package = PROJECT / "tools/testing"
    stand_ins.program(tree / "tools/testing/kunit/kunit.py", "kunit", package)
    stand_ins.program(tmp_path / "bin/qemu-system-aarch64", "emulator", package)
    stand_ins.install(tmp_path / "bin/mkfs", "#!/bin/sh\n")
    for name in stand_ins.GUEST:
        (tmp_path / ".cache/mmcheck/guest/arm64" / name).mkdir(parents=True)
    (tmp_path / "sitecustomize.py").write_text(SETUP)
    (tmp_path / "table.toml").write_text('[[cells]]\narches = ["arm64"]\n[[cells]]\narches = ["x86_64"]\n')
    (tmp_path / "mutants").mkdir()
    (tmp_path / "mutants/a.toml").write_text("".join(ENTRY.format(value=value) for value in (0, 2)))
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{tmp_path}:{package}",
        "HOME": str(tmp_path),
        "KDIR": str(tree),
        "O": str(tmp_path / "out"),
        "MUTANTS": str(tmp_path / "mutants"),
        "SELFTESTS": "no",
        "SLOW": "0.1",
        "NOTICE": "mm/mincore.c:return 0;",
    }


def start(verb: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Begin a command."""
    own = {
        "run": {},
        "kselftest": {"FAILS": "1"},
        "mutants": {},
        "matrix": {"MATRIX": f"{environment['HOME']}/table.toml"},
    }
    return subprocess.Popen(
        [sys.executable, *COMMANDS[verb]],
        env={**environment, **own[verb]},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def verdicts(verb: str, environment: dict[str, str]) -> tuple[int, str, list[tuple[str, str, dict[str, str]]]]:
    """The exit status of a command, its last verdict, and what the last records say; no run is without a verdict."""
    with start(verb, environment) as child:
        said, errors = child.communicate(timeout=60)
    ending = re.findall(r"^(?:mmcheck: )?((?:passed|FAILED|NO VERDICT): .*)$", said + errors, re.MULTILINE)
    assert ending, said + errors
    found = [
        (one.name, one.state, {f"{case.suite}.{case.name}": case.state for case in one.cases})
        for one in record.latest(Path(environment["O"]))
    ]
    return child.returncode, re.sub(r"\d+(\.\d+)? s\b", "", ending[-1]), found


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_killed_command_does_no_harm(verb: str, environment: dict[str, str], tmp_path: Path) -> None:
    tree = Path(environment["KDIR"])
    before = state(tree)
    began = time.monotonic()
    want = verdicts(verb, environment)
    took = time.monotonic() - began
    assert want[0] == STATUS[verb], want
    rng = random.Random(verb)
    for number in range(MOMENTS):
        moment = took * (number + rng.random()) / MOMENTS
        if number % 2:  # a first run builds, a later one does not
            environment = {**environment, "O": str(tmp_path / f"out-{number}")}
        with start(verb, environment) as child:
            time.sleep(moment)
            child.send_signal(signal.SIGKILL)
        assert verdicts(verb, environment) == want, f"killed after {moment:.2f} s of {took:.2f} s"
    assert state(tree) == before


def test_a_killed_run_is_seen_by_the_next(environment: dict[str, str]) -> None:
    out = Path(environment["O"])
    with start("kselftest", {**environment, "SLOW": "20"}) as child:
        while not list(out.glob("runs/*/run.json")):
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
    (one,) = record.every(out)
    assert (one.state, one.why) == ("none", f"its process {child.pid} was killed")
    # Another process with this number began later.
    one.process, one.state = os.getpid(), "running"
    one.began = "2020-01-01T00:00:00+00:00"
    assert not record.alive(one)
