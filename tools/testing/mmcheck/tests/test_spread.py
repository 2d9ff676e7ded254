# SPDX-License-Identifier: GPL-2.0
"""Several machines share the suites of one run, and kunit.py reads one console."""

import fnmatch
import io
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmcheck.boot import console as consoles
from mmcheck.boot import results, spread
from mmcheck.core.settings import PROJECT

from .conftest import User
from .seeded import recorded
from .test_consoles import PARSER, PARSERS

SECONDS = {"contpte": 9.0, "contpte_walk": 4.0, "folio": 3.0, "pte": 5.0, "pgtable": 2.0, "unmap": 6.0}


def console(suites: list[str], plan: int | None = None, ends: bool = True) -> list[str]:
    """The console of a kernel with these suites. With `ends` the last suite ends too."""
    said = [
        "[    0.1] Booting\n",
        "[    0.2] KTAP version 1\n",
        f"[    0.3] 1..{len(suites) if plan is None else plan}\n",
    ]
    for number, suite in enumerate(suites, 1):
        said += ["[    0.4]     KTAP version 1\n", f"[    0.5]     # Subtest: {suite}\n"]
        said += ["[    0.5]     1..1\n", "[    0.6]     ok 1 case\n"]
        if ends or number < len(suites):
            said.append(f"[    0.7] ok {number} {suite}\n")
    return [*said, "[    0.9] reboot: Power down\n"] if ends else said


def merged(*consoles: list[str], seed: int = 0) -> list[str]:
    """The merged console if the lines of the consoles arrive in a random order."""
    left = [[*console, None] for console in consoles]
    lines: list[tuple[int, str | None]] = []
    rng = random.Random(seed)
    while busy := [index for index, console in enumerate(left) if console]:
        index = rng.choice(busy)
        lines.append((index, left[index].pop(0)))
    return list(spread.merged(lines, len(consoles)))


@pytest.mark.parametrize("parts", [2, 3, 4, 9])
def test_each_suite_is_in_one_part(parts: int) -> None:
    globs = spread.globs(SECONDS, parts)
    assert len(globs) == min(parts, len({suite[0] for suite in SECONDS}))
    for suite in [*SECONDS, "new_suite", "zap"]:
        assert sum(fnmatch.fnmatchcase(suite, glob) for glob in globs) == 1


def test_parts_take_about_equally_long() -> None:
    globs = spread.globs(SECONDS, 2)
    times = [sum(time for suite, time in SECONDS.items() if fnmatch.fnmatchcase(suite, glob)) for glob in globs]
    assert max(times) - min(times) <= 5 and sum(times) == sum(SECONDS.values())
    assert spread.globs(dict.fromkeys(SECONDS, 0.0), 2) == []
    assert spread.globs(SECONDS, 1) == spread.globs({}, 2) == spread.globs({"a": 1.0, "ab": 2.0}, 2) == []


@pytest.mark.parametrize("seed", range(20))
def test_consoles_become_one(seed: int) -> None:
    said = merged(console(["a", "b", "c"]), console(["x", "y"]), seed=seed)
    found = consoles.read(said)
    assert found.planned == 5 and sorted(found.finished) == ["a", "b", "c", "x", "y"] and found.complete
    ended = [line.split()[-2:] for line in said if "] ok" in line]
    assert ended == [[str(number), suite] for number, suite in enumerate(found.finished, 1)]
    assert len(results.kunit(said)) == 5
    assert said[-1].endswith("Power down\n")
    assert sum(consoles.plain(line) == "KTAP version 1" for line in said) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_machine_that_dies_loses_no_suite(seed: int) -> None:
    # The machine dies in a suite: its lines are there, and the suite has no verdict.
    said = merged(console(["a", "b"]), console(["x", "y"], plan=3, ends=False), seed=seed)
    found = consoles.read(said)
    assert found.planned == 5 and sorted(found.finished) == ["a", "b", "x"] and not found.complete
    assert any("Subtest: y" in line for line in said)
    # The machine dies before its plan: the reader sees that suites are missing.
    said = merged(console(["a", "b"]), ["[    0.1] Kernel panic - not syncing: oh\n"], seed=seed)
    found = consoles.read(said)
    assert found.finished == ["a", "b"] and not found.complete and found.reason == "oh"


@pytest.mark.skipif(not PARSERS, reason="no kernel source is in ~/.cache/mmcheck/src: run kunit.py once")
def test_the_kernels_own_parser_reads_stamps(tmp_path: Path) -> None:
    """The parser cuts the length of the first stamp off every line, so the plan that we add needs a stamp too."""
    for number, said in enumerate([console(["a", "b"]), merged(console(["a", "b"]), console(["x", "y", "z"]))]):
        (tmp_path / f"{number}.log").write_text("".join(said))
    for folder in PARSERS:
        command = [sys.executable, "-c", PARSER, *map(str, sorted(tmp_path.glob("*.log")))]
        done = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True)
        found = [[len(cases), plan, errors] for _, cases, plan, errors in json.loads(done.stdout.split("RESULT ")[1])]
        assert found == [[2, 2, 0], [5, 5, 0]]


def test_the_emulators_get_their_globs(tmp_path: Path) -> None:
    fake = tmp_path / "qemu"
    fake.write_text('#!/bin/sh\necho KTAP version 1\necho 1..1\nfor last; do :; done\necho "ok 1 $last"\n')
    fake.chmod(0o755)
    commands = [[str(fake), *spread.command(["-m", "1G", "-append", "quiet"], glob)] for glob in ("[a]*", "[!a]*")]
    out = io.StringIO()
    assert spread.run(commands, out) == 0
    said = [line.partition(" quiet ")[2] for line in out.getvalue().splitlines()[2:]]
    assert sorted(said) == ["kunit.filter_glob=[!a]*", "kunit.filter_glob=[a]*"]


def test_what_was_said_before_the_time_limit_is_printed(tmp_path: Path) -> None:
    script = (
        "import sys; from mmcheck.boot import spread\n"
        "hangs = ['sh', '-c', 'echo KTAP version 1; echo 1..1; echo begun; exec sleep 60']\n"
        "spread.run([hangs, hangs], sys.stdout)\n"
    )
    command = [sys.executable, "-c", script]
    environment = {"PYTHONPATH": str(PROJECT / "tools/testing"), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout and [child.stdout.readline() for _ in range(2)] == ["KTAP version 1\n", "1..2\n"]
        time.sleep(0.3)
        child.terminate()
        assert child.stdout.read() == "begun\nbegun\n"


def spread_over(user: User, *words: str, **variables: str) -> list[str]:
    """The globs of suites that the emulator gets in a run after a run of all suites with the times SECONDS."""
    out = Path(user.environment["O"])
    build = next((out / "tree").glob("*/*-arm64-4K")).name
    recorded(out, build, [results.Case(suite, "a", "passed", time) for suite, time in SECONDS.items()])
    user.kunit("run", "--arch=arm64", *words, **variables)
    found: list[str] = json.loads(str(user.calls()[-1].get("spread") or "[]"))
    return found


def patch(user: User) -> str:
    """A patch of the user's tree."""
    file = user.home / "fix.patch"
    file.write_text("--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1 +1 @@\n-int memory;\n+long memory;\n")
    return str(file)


def test_a_run_of_all_suites_is_spread_by_the_last_times(user: User) -> None:
    user.kunit("run", "--arch=arm64", JOBS="2")
    assert not user.calls()[-1].get("spread"), "the first run measures the times"
    assert spread_over(user, JOBS="2") == spread.globs(SECONDS, 2) != []
    assert spread_over(user, JOBS="1") == []
    assert spread_over(user) == spread.globs(SECONDS, os.cpu_count() or 1), "one boot for each CPU"
    for words in (["one.a"], ["--qemu_args", "-smp 2"], ["--filter", "speed>slow"], ["--kernel_args=kunit.x=1"]):
        assert spread_over(user, *words) == []
    assert spread_over(user, "--base=unpatched", PATCH=patch(user)) == [], "both runs have the same conditions"
    assert len(user.calls()) == 10, "each run called the kernel's kunit.py, --base did it twice"
    assert user.kunit("run", "--arch=arm64", JOBS="x").returncode == 125


def test_times_decide_and_numbers_of_cases_replace_them() -> None:
    timed = [results.Case("a", "1", "passed", 2.5), results.Case("a", "2", "passed"), results.Case("b", "1", "passed")]
    assert spread.weights(timed) == {"a": 2.5, "b": 0.0}
    assert spread.weights([results.Case(case.suite, case.name, "passed") for case in timed]) == {"a": 2.0, "b": 1.0}
