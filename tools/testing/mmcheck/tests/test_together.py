# SPDX-License-Identifier: GPL-2.0
"""Commands that run at the same time with the same O= give the same verdicts as commands that run one by one."""

import html
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.run import record

from . import stand_ins
from .conftest import fake_tree
from .waiting import until

COUNT = 4
"""The number of mutants of each run. A test notices every second mutant."""

ENTRY = """\
[[mutant]]
name = "{name}"
file = "mm/mincore.c"
in = "mincore"
old = "return 1;"
new = "return {value};"
harm = "all"
suite = "contpte"
"""
SCRIPT = """\
import os, sys
from pathlib import Path
from mmcheck import verbs
from mmcheck.kernel import toolchain
from mmcheck.mutants import killmatrix
from mmcheck.study import coverage
from mmcheck.tlb import binary, qemu, reports

toolchain.missing = lambda _: []
qemu.provide = lambda _: Path("qemu-system-aarch64")
reports.read = lambda *_: ([], {"table_stores": 1, "tlbi": 0, "dsb": 0, "dropped": 0})
binary.load = lambda: [binary.Mistake("one", (), "drop every TLBI", "contpte")]
killmatrix.FOLDER = Path(os.environ["O"], "matrix")
coverage.DISK = 1
sys.exit(verbs.run(sys.argv[1], os.environ))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with a kernel tree, a compiler and an emulator."""
    tree = fake_tree(tmp_path / "linux")
    (tree / "Makefile").write_text(stand_ins.MAKEFILE)
    (tree / "mm/mincore.c").write_text(stand_ins.MINCORE)
    stand_ins.program(tree / "tools/testing/kunit/kunit.py", "kunit", PROJECT / "tools/testing")
    stand_ins.program(tmp_path / "bin/qemu-system-aarch64", "emulator", PROJECT / "tools/testing")
    for name, noticed in (("one", 0), ("two", 1)):
        (tmp_path / name).mkdir()
        entries = [
            ENTRY.format(name=f"{name}_{number}", value=0 if number % 2 == noticed else 2) for number in range(COUNT)
        ]
        (tmp_path / name / "a.toml").write_text("".join(entries))
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT / "tools/testing"),
        "HOME": str(tmp_path),
        "KDIR": str(tree),
        "O": str(tmp_path / "out"),
        "JOBS": "1",
        "SELFTESTS": "no",
        "SLOW": "0.2",
        "NOTICE": "mm/mincore.c:return 0;",
    }


def start(environment: dict[str, str], verb: str, **variables: str) -> subprocess.Popen[str]:
    """Start a run of a command."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, verb],
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def packages(tmp_path: Path) -> None:
    """Make the folders of the packages that the virtual machine needs from the archive."""
    for name in stand_ins.GUEST:
        (tmp_path / ".cache/mmcheck/guest/arm64" / name).mkdir(parents=True)


def test_two_runs_with_other_mutants_do_not_mix(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, "mutants", MUTANTS=str(tmp_path / "one")) as one:
        until(lambda: list((tmp_path / "out").glob("mutants/*/one_0.log")), one)
        with start(environment, "mutants", MUTANTS=str(tmp_path / "two")) as two:
            said = [child.communicate(timeout=60) for child in (one, two)]
    (found,) = record.data(tmp_path / "out", "mutants").values()
    states = {result["name"]: result["state"] for result in found["mutants"]}
    want = {f"one_{number}": ("failed", "survived")[number % 2] for number in range(COUNT)}
    want |= {f"two_{number}": ("survived", "failed")[number % 2] for number in range(COUNT)}
    assert states == want, said
    assert (one.returncode, two.returncode) == (1, 1), said
    assert "waiting for another run" in said[1][1]


def test_json_has_the_record_of_the_mutants(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, "mutants", MUTANTS=str(tmp_path / "one"), JSON="1") as one:
        said, table = one.communicate(timeout=60)
    assert one.returncode == 1 and f"FAILED: {COUNT // 2} of {COUNT} mutants noticed" in table
    (found,) = json.loads(said)
    assert found["kind"] == "mutants" and found["state"] == "failed"
    assert {result["name"] for result in found["data"]["mutants"]} == {f"one_{number}" for number in range(COUNT)}


def test_a_kill_matrix_waits_for_a_run_with_other_mutants(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, "mutants", MUTANTS=str(tmp_path / "one")) as one:
        until(lambda: list((tmp_path / "out").glob("mutants/*/one_0.log")), one)
        with start(environment, "mutants", MUTANTS=str(tmp_path / "two"), MATRIX="1") as two:
            said = [child.communicate(timeout=60) for child in (one, two)]
    (found,) = record.data(tmp_path / "out", "mutants").values()
    states = {result["name"]: result["state"] for result in found["mutants"]}
    assert states == {f"one_{number}": ("failed", "survived")[number % 2] for number in range(COUNT)}, said
    assert two.returncode == 0 and "waiting for another run" in said[1][1], said
    assert list((tmp_path / "out/matrix").glob("*-arm64.json"))


def test_two_runs_of_coverage_do_not_share_a_disk(environment: dict[str, str], tmp_path: Path) -> None:
    packages(tmp_path)
    calls = tmp_path / "calls"
    for name in ("lcov", "genhtml"):
        stand_ins.install(tmp_path / "bin" / name, stand_ins.LCOV.replace("\n", f"\necho $PPID >>{calls}\n", 1))
    with start(environment, "coverage") as one, start(environment, "coverage") as two:
        said = [child.communicate(timeout=60) for child in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), said
    assert [one.state for one in record.latest(tmp_path / "out", ("coverage",))] == ["passed"]
    runs = [number for number, _ in itertools.groupby(calls.read_text().split())]
    assert sorted(runs) == sorted([str(one.pid), str(two.pid)])


def test_a_cell_of_selftests_shows_what_failed(environment: dict[str, str], tmp_path: Path) -> None:
    """The matrix starts the command of a cell as a process of its own, without make."""
    tree = tmp_path / "linux"
    with (tree / "tools/testing/selftests/mm/Makefile").open("a") as makefile:
        makefile.write(stand_ins.SELFTESTS)
    packages(tmp_path)
    (tmp_path / "table.toml").write_text('[[cells]]\narches = ["arm64"]\nselftests = true\n')
    stand_ins.install(tmp_path / "bin/mkfs", "#!/bin/sh\n")
    # The command of the cell does not look for missing programs either.
    (tmp_path / "sitecustomize.py").write_text(
        "from mmcheck.boot import guest\nfrom mmcheck.kernel import toolchain\n"
        "toolchain.missing = lambda _: []\nguest.MKFS, guest.DISK = 'mkfs', 1\n"
    )
    variables = {"MATRIX": str(tmp_path / "table.toml"), "PYTHONPATH": f"{tmp_path}:{PROJECT / 'tools/testing'}"}
    environment = {**environment, **variables, "SLOW": "0", "FAILS": "1"}
    done = subprocess.run(
        [sys.executable, "tools/testing/mmcheck", "matrix"],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    log = "".join(path.read_text() for path in (tmp_path / "out/matrix").glob("*.log"))
    assert done.returncode == 1, done.stdout + done.stderr + log[-2000:]
    assert "no verdict" not in done.stdout
    assert re.search(r"FAILED: \d+ passed, [1-9]\d* failed", done.stdout), done.stdout
    assert re.search(r"^ +FAILED \w+\.\S+$", done.stdout, re.MULTILINE), done.stdout
    (cell,) = [one for one in record.latest(tmp_path / "out", ("matrix",)) if one.cell]
    failed = [case for case in cell.cases if case.state == "failed"]
    assert cell.state == "failed" and failed and all(case.text for case in failed)
    shown = shown_by(tmp_path / "out", {**environment, "FAILS": ""})
    for case in failed:
        for view, names in shown.items():
            assert case.full in names, f"{view} does not show this case: {names}"


def shown_by(out: Path, environment: dict[str, str]) -> dict[str, set[str]]:
    """The failed cases that each command shows which reads the results below `out`."""
    said = {}
    for verb, status in (("results", 1), ("report", 0), ("kcidb", 0), ("results --json", 1)):
        command = [sys.executable, "tools/testing/mmcheck", *verb.split()]
        done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        said[verb] = done.stdout
    root = ElementTree.parse(out / "results/results.xml").getroot()
    suites = {one: str(one.get("name")).rpartition(" ")[2] for one in root.iter("testsuite")}
    junit = {
        f"{suite}.{one.get('name')}" for own, suite in suites.items() for one in own if one.find("failure") is not None
    }
    page = html.unescape((out / "report/index.html").read_text())
    cases = json.loads(said["results --json"])["cases"]
    tests = json.loads((out / "kcidb.json").read_text())["tests"]
    return {
        "results": set(re.findall(r"^    FAILED (\w+\.\S+): ", said["results"], re.MULTILINE)),
        "report": set(re.findall("<h3>(.*?)</h3>", page)),
        "kcidb": {one["path"].removeprefix("kselftest.mm.") for one in tests if one["status"] == "FAIL"},
        "JUnit": junit,
        "JSON": {f"{one['suite'].split()[-1]}.{one['name']}" for one in cases if one["state"] == "failed"},
    }


@pytest.mark.parametrize("verb", ["tlb", "tlb-mutants"])
def test_two_boots_of_one_image_have_a_console_each(verb: str, environment: dict[str, str], tmp_path: Path) -> None:
    """With IMAGE= no kernel is built, so only the lock of these commands separates them."""
    image = tmp_path / "Image"
    image.write_text(f"{PROJECT}\n")
    (tmp_path / "System.map").write_text("ffff800080000000 T _text\n")
    out = tmp_path / "out"

    def boot(suite: str, seconds: str) -> subprocess.Popen[str]:
        words = f"kunit.enable=1 kunit.filter_glob={suite}"
        return start(environment, verb, KDIR="", IMAGE=str(image), APPEND=words, SLOW=seconds)

    with boot("contpte", "5") as one:
        until(lambda: list(out.glob("tlb/**/console")), one)
        with boot("set_ptes", "0") as two:
            said = [child.communicate(timeout=60) for child in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), said
    if verb == "tlb":  # tlb-mutants keeps no console
        consoles = {run.process: (out / "runs" / run.id / "console").read_text() for run in record.every(out)}
        ran = [re.findall("# Subtest: (.*)", consoles[child.pid]) for child in (one, two)]
        assert ran == [["contpte"], ["set_ptes"]]
    assert "waiting for another run" in said[1][1], said
