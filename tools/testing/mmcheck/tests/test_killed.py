# SPDX-License-Identifier: GPL-2.0
"""Commands that are killed at any moment, or that run at the same time in one O=, and what they say then.

After kill -9 the next call gives the right verdicts. The user's tree is untouched.
"""

import itertools
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
from mmcheck.study import coverage
from pathlib import Path
import os
toolchain.missing = lambda _: []
guest.MKFS, guest.DISK = "mkfs", 1
coverage.DISK = 1
killmatrix.FOLDER = Path(os.environ["O"], "killmatrix")
"""
"""What is missing on this machine is not looked for."""

COMMANDS = {
    "run": ["tools/testing/kunit/kunit.py", "run", "--arch=arm64", "contpte*"],
    "kselftest": ["tools/testing/mmcheck", "kselftest", "--arch", "arm64", "--tests", "contpte_fold folio_mlock"],
    "mutants": ["tools/testing/mmcheck", "mutants", "--arch", "arm64", "--jobs", "2"],
    "matrix": ["tools/testing/mmcheck", "matrix"],
    "coverage": ["tools/testing/mmcheck", "coverage"],
}
KILLED = ("run", "kselftest", "mutants", "matrix")
SHARED = ("run", "mutants", "coverage", "matrix")
"""Commands that share kernels with each other, or with another run of the same command."""

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
    for name in ("lcov", "genhtml"):
        stand_ins.install(tmp_path / "bin" / name, stand_ins.LCOV)
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
        "coverage": {},
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


def ended(child: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status of a command, and its last verdict."""
    said, errors = child.communicate(timeout=120)
    ending = re.findall(r"^(?:mmcheck: )?((?:passed|FAILED|NO VERDICT|HTML).*)$", said + errors, re.MULTILINE)
    assert ending, said + errors
    return child.returncode, ending[-1]


def verdicts(verb: str, environment: dict[str, str]) -> tuple[tuple[int, str], list[tuple[str, str, dict[str, str]]]]:
    """Run a command; returns how it ended, and what the last records say."""
    with start(verb, environment) as child:
        how = ended(child)
    found = [
        (one.name, one.state, {f"{case.suite}.{case.name}": case.state for case in one.cases})
        for one in record.latest(Path(environment["O"]))
    ]
    return how, found


@pytest.mark.parametrize("verb", KILLED)
def test_a_killed_command_does_no_harm(verb: str, environment: dict[str, str], tmp_path: Path) -> None:
    tree = Path(environment["KDIR"])
    before = state(tree)
    began = time.monotonic()
    want = verdicts(verb, environment)
    took = time.monotonic() - began
    assert want[0][0] == STATUS[verb], want
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


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(SHARED, 2)), ids="-".join)
def test_two_commands_say_what_they_say_alone(pair: tuple[str, str], environment: dict[str, str]) -> None:
    want = [verdicts(verb, environment)[0] for verb in pair]
    with start(pair[0], environment) as one, start(pair[1], environment) as two:
        assert [ended(one), ended(two)] == want
