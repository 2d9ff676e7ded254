# SPDX-License-Identifier: GPL-2.0
"""Commands that are killed at any moment, or that run at the same time with the same O=.

After kill -9 the next call must give the right verdicts. The command must not change the user's tree.
"""

import itertools
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.boot.results import Case
from mmcheck.core.settings import PROJECT
from mmcheck.run import record

from . import stand_ins
from .conftest import fake_tree, state
from .seeded import of_command, recorded
from .test_bisect import KUNIT_PY, git
from .test_sendable import CHECKPATCH, MAINTAINER
from .test_series import MAINTAINERS

MOMENTS = int(os.environ.get("MOMENTS", "2"))
"""The number of random moments at which each command is killed. `MOMENTS=20` takes an hour."""

SETUP = """\
from mmcheck.boot import guest
from mmcheck.kernel import known_issues, toolchain
from mmcheck.mutants import killmatrix
from mmcheck.study import coverage
from mmcheck.tlb import judge, qemu, reports
from pathlib import Path
import os
toolchain.missing = lambda _: []
guest.MKFS, guest.DISK = "mkfs", 1
coverage.DISK = 1
killmatrix.FOLDER = Path(os.environ["O"], "killmatrix")
qemu.provide = lambda _: Path("qemu-system-aarch64")
judge.FOLDER = Path(os.environ["MUTANTS"])
reports.read = lambda *_: ([], {"table_stores": 1, "tlbi": 0, "dsb": 0, "dropped": 0})
tests, patch = ("contpte.set_ptes_range",), (os.environ["HOME"] + "/issue.patch",)
bug = known_issues.Issue(999, "A", "6.12", "", tests, "", patch, "", "", "mm/mincore.c", "", ("return 1;",))
known_issues.load = lambda: [bug]
"""
"""Code that each command runs first: the command does not look for missing programs, and has one known issue."""

KINDS = ("kunit", "kselftest", "mutants", "coverage", "patches", "matrix", "tlb", "tlb-mutants", "kill-matrix")
FOLDER = r"/\S*/|-[0-9a-f]{8}\b"
"""Paths of folders, and the digest of a folder in the name of a tree. Both differ from test to test."""

DIFFERS = ("seconds", "done", "runs", "fingerprint", "mark", "unfinished", "names")


@dataclass(frozen=True)
class Command:
    """The words of a command, its variables, and its exit status.

    status: 1 if a case or a mutant of the stand-ins fails
    """

    words: str
    status: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)


COMMANDS = {
    "run": Command("run --arch=arm64 contpte*"),
    "kselftest": Command("kselftest --arch arm64 --tests 'contpte_fold folio_mlock'", 1, {"FAILS": "1"}),
    "audit": Command("audit --arch arm64 -- echo"),
    "walk": Command("walk --arch arm64 --seed 1 --seconds 1"),
    "matrix": Command("matrix", 0, {"MATRIX": "{home}/table.toml"}),
    "bisect": Command("bisect HEAD~3 HEAD", 0, {"KDIR": "{home}/history"}),
    "radar": Command("radar {home}/fix.patch", 1, {"KDIR": "{home}/history"}),
    "debug": Command("debug contpte.set_ptes_to_table_end --arch arm64"),
    "bundle": Command("bundle --arch arm64 --tests contpte_fold"),
    "tlb": Command("tlb --only contpte"),
    "tlb-mutants": Command("tlb-mutants", 1),
    "doctor": Command("doctor --json"),
    "completion": Command("completion"),
    "results": Command("results"),
    "compare": Command("compare --a 'kunit linux-um' --b 'kunit linux-um'"),
    "baseline": Command("baseline --baseline {out}/known.toml"),
    "report": Command("report"),
    "kcidb": Command("kcidb"),
    "mutants": Command("mutants --arch arm64 --jobs 2", 1),
    "kill-matrix": Command("mutants --arch arm64 --jobs 2 --matrix 1"),
    "known-issues": Command("known-issues", 1),
    "patches": Command("patches --only 999 --from 'A <a@example.org>'", 1),
    "patterns": Command("patterns", 0, {"ONLY": "new"}),
    "coverage": Command("coverage"),
    "functions": Command("functions"),
    "bench": Command("bench --only folio_bench", 0, {"KDIR": ""}),
    "bench-compare": Command("bench-compare --a {out} --b {out}"),
    "series": Command("series"),
}
"""The commands by name. Most names are verbs."""

WITHOUT = {
    "graft": "writes to the user's tree; test_graft.py ends it at each write",
    "ungraft": "as graft",
    "bench-launcher": "times real builds; it keeps only its own folder, which it makes anew",
    **dict.fromkeys(("check", "check-host", "check-report"), "runs these tests; the runs in it are those above"),
    "report-pictures": "needs a browser",
    "htmldocs": "runs sphinx, which makes all anew",
    "release": "needs a verdict of make check; see test_release.py",
}
"""Verbs that these tests do not kill, with the reasons."""

PAIRS = [
    *itertools.combinations_with_replacement(("run", "mutants", "coverage", "matrix"), 2),
    *itertools.combinations_with_replacement(("kselftest", "walk", "audit"), 2),
    *itertools.combinations_with_replacement(("tlb", "tlb-mutants"), 2),
    *(("tlb", "run"), ("known-issues", "known-issues"), ("known-issues", "run"), ("mutants", "kill-matrix")),
]
"""Pairs of commands that share kernels or folders."""

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
    """The environment of a user with a kernel tree, a compiler and an emulator."""
    tree = fake_tree(tmp_path / "linux")
    (tree / "Makefile").write_text(stand_ins.MAKEFILE)
    (tree / "mm/mincore.c").write_text(stand_ins.MINCORE)
    with (tree / "tools/testing/selftests/mm/Makefile").open("a") as makefile:
        makefile.write(stand_ins.SELFTESTS)
    package = PROJECT / "tools/testing"
    (tree / "MAINTAINERS").write_text(MAINTAINERS)
    for name, text in (("checkpatch.pl", CHECKPATCH), ("get_maintainer.pl", MAINTAINER)):
        stand_ins.install(tree / "scripts" / name, text)
    stand_ins.program(tree / "tools/testing/kunit/kunit.py", "kunit", package)
    for arch in ("aarch64", "x86_64"):
        stand_ins.program(tmp_path / f"bin/qemu-system-{arch}", "emulator", package)
    for name in ("mkfs", "gdb-multiarch"):
        stand_ins.install(tmp_path / "bin" / name, "#!/bin/sh\n")
    for name in ("lcov", "genhtml"):
        stand_ins.install(tmp_path / "bin" / name, stand_ins.LCOV)
    for name in stand_ins.GUEST:
        (tmp_path / ".cache/mmcheck/guest/arm64" / name).mkdir(parents=True)
    # The code that mutants/counters changes for make bench.
    shutil.copytree(package / "mmcheck/mutants/counters", tmp_path / "counted/mmcheck/mutants")
    for kernel in ("6.12.1-1", "7.3.1-1"):
        packaged = tmp_path / f".cache/mmcheck/src/linux-{kernel}"
        shutil.copytree(tree, packaged)
        for name, text in stand_ins.mutated(tmp_path / "counted").items():
            (packaged / name).parent.mkdir(parents=True, exist_ok=True)
            with (packaged / name).open("a") as code:
                code.write(text)
    past = fake_tree(tmp_path / "history")
    (past / "tools/testing/kunit/kunit.py").write_text(KUNIT_PY)
    (past / "Makefile").write_text(stand_ins.MAKEFILE)
    for number in range(4):
        words = "fails-a" if number > 1 else ""
        (past / "mm/memory.c").write_text(f"/* {words} , {number} */\n")
        git(past, "init", "-q") if not number else None
        git(past, "add", "-A")
        git(past, "commit", "-q", "-m", f"change {number}")
    (tmp_path / "fix.patch").write_text(FIX)
    (tmp_path / "issue.patch").write_text(f"Subject: [PATCH] mm: x\n\nIt is wrong.\n\n---\n{stand_ins.PATCH}")
    (tmp_path / ".gitconfig").write_text("[user]\n\tname = Jane Doe\n\temail = jane@example.org\n")
    (tmp_path / "sitecustomize.py").write_text(SETUP)
    (tmp_path / "table.toml").write_text('[[cells]]\narches = ["arm64"]\n[[cells]]\narches = ["x86_64"]\n')
    (tmp_path / "mutants").mkdir()
    (tmp_path / "mutants/a.toml").write_text("".join(ENTRY.format(value=value) for value in (0, 2)))
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{tmp_path}:{package}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(tmp_path),
        "KDIR": str(tree),
        "O": str(tmp_path / "out"),
        "MUTANTS": str(tmp_path / "mutants"),
        "SELFTESTS": "no",
        "SLOW": "0.1",
        "NOTICE": "mm/mincore.c:return 0;",
    }


FIX = """\
--- a/mm/memory.c
+++ b/mm/memory.c
@@ -1 +1 @@
-/* fails-a , 3 */
+/* fails-c , 3 */
"""


def seeded(out: Path) -> None:
    """Write the results of earlier runs."""
    recorded(out, "linux-um", [Case("a", "b", "passed")])
    numbers = {"folio_bench": [{"run": "b", "what": "c", "fields": {"ns": 1}}]}
    of_command(out, "bench", {"numbers": numbers, "tables": []})


def start(name: str, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a command."""
    command, places = COMMANDS[name], {"home": environment["HOME"], "out": environment["O"]}
    program = "tools/testing/kunit/kunit.py" if name == "run" else "tools/testing/mmcheck"
    words = [word.format(**places) for word in shlex.split(command.words)]
    return subprocess.Popen(
        [sys.executable, program, *words],
        env={**environment, **{key: value.format(**places) for key, value in command.variables.items()}},
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(child: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status of a command, and the last verdict that it prints, or ""."""
    said, errors = child.communicate(timeout=300)
    ending = re.findall(r"^(?:mmcheck: )?((?:passed|FAILED|NO VERDICT|\d+ passed).*)$", said + errors, re.MULTILINE)
    assert child.returncode in (0, 1), said + errors
    return child.returncode, re.sub(FOLDER, "", ending[-1]) if ending else ""


def verdicts(verb: str, environment: Mapping[str, str]) -> tuple[tuple[int, str], list[object]]:
    """Run a command. Returns its exit status and verdict, and the content of the last records."""
    with start(verb, environment) as child:
        how = ended(child)
    found: list[object] = []
    for one in record.latest(Path(environment["O"]), KINDS):
        states = {f"{case.suite}.{case.name}": case.state for case in one.cases}
        found.append((re.sub(FOLDER, "", one.name), one.state, states, seen(one.data)))
    return how, found


def seen(data: object) -> object:
    """The data of a record without the values that differ from run to run: times, names of records, digests."""
    if isinstance(data, dict):
        return {key: seen(value) for key, value in data.items() if key not in DIFFERS}
    if isinstance(data, list):
        return [seen(value) for value in data]
    return re.sub(FOLDER, "", data) if isinstance(data, str) else data


def test_each_verb_is_killed_or_says_why_not() -> None:
    assert {command.words.split()[0] for command in COMMANDS.values()} | WITHOUT.keys() == set(verbs.VERBS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_does_no_harm(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    trees = [Path(environment["KDIR"]), tmp_path / "history"]
    before = [state(tree) for tree in trees]
    seeded(tmp_path / "out")
    began = time.monotonic()
    want = verdicts(name, environment)
    took = time.monotonic() - began
    assert want[0][0] == COMMANDS[name].status, want
    rng = random.Random(name)
    for number in range(MOMENTS):
        moment = took * (number + rng.random()) / MOMENTS
        if number % 2 == 0:  # the first run in a folder builds, later runs do not
            environment = {**environment, "O": str(tmp_path / f"out-{number}")}
            seeded(tmp_path / f"out-{number}")
        with start(name, environment) as child:
            time.sleep(moment)
            child.send_signal(signal.SIGKILL)
        assert verdicts(name, environment) == want, f"killed after {moment:.2f} s of {took:.2f} s"
    assert [state(tree) for tree in trees] == before


def test_a_killed_run_is_seen_by_the_next(environment: dict[str, str]) -> None:
    out = Path(environment["O"])
    with start("kselftest", {**environment, "SLOW": "20"}) as child:
        while not list(out.glob("runs/*/run.json")):
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
    (one,) = record.every(out)
    assert (one.state, one.why) == ("none", f"its process {child.pid} was killed")
    # Another process with the same ID began after the record.
    one.process, one.state = os.getpid(), "running"
    one.began = "2020-01-01T00:00:00+00:00"
    assert not record.alive(one)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_two_commands_say_what_they_say_alone(pair: tuple[str, str], environment: dict[str, str]) -> None:
    for name in pair:
        if name not in ALONE:
            ALONE[name] = verdicts(name, environment)[0]
    with start(pair[0], environment) as one, start(pair[1], environment) as two:
        assert [ended(one), ended(two)] == [ALONE[name] for name in pair]


ALONE: dict[str, tuple[int, str]] = {}
"""The exit status and the verdict of each command if no other command runs. They are the same in each test."""
