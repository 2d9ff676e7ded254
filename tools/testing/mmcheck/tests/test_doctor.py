# SPDX-License-Identifier: GPL-2.0
"""make doctor: the programs that the machine lacks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.core.settings import PROJECT, from_environment
from mmcheck.kernel import toolchain
from mmcheck.run import doctor

from .conftest import User


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a user with an empty home and no programs."""
    monkeypatch.setattr(toolchain, "missing", list)
    monkeypatch.setattr("shutil.which", lambda name: None)
    return {"HOME": str(tmp_path), "O": str(tmp_path / "out")}


def test_an_empty_machine_can_run_nothing(home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("doctor", {**home, "JSON": "1"}) == 125
    found = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert found["suites on arm64"]["state"] == "lacks"
    assert "qemu-system-aarch64" in found["suites on arm64"]["says"]
    assert found["kernels"]["says"].startswith("no kernel source was downloaded")
    assert found["ccache"]["state"] == "lacks"
    assert not Path(home["O"]).exists()


def test_what_is_there(
    home: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toolchain, "missing", lambda needs: [need for need in needs if "riscv" in need])
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (Path(home["HOME"]) / ".cache/mmcheck/src/linux-7.3.1").mkdir(parents=True)
    assert verbs.run("doctor", home) == 0
    lines = {line.partition("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "has    ready" in lines["suites on arm64"]
    assert "sudo apt-get install --no-install-recommends gcc-riscv64-linux-gnu" in lines["suites on riscv"]
    assert "linux-7.3.1" in lines["kernels"]


def test_what_of_a_tree_can_be_tested(home: dict[str, str], tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (
        ("Makefile", "VERSION = 6\nPATCHLEVEL = 12\n"),
        ("include/linux/pgtable.h", "get_and_clear_full_ptes get_and_clear_ptes"),
        ("arch/arm64/include/asm/pgtable.h", "#define pte_present(pte) (pte_valid(pte) || pte_present_invalid(pte))"),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    verbs.run("doctor", {**home, "KDIR": str(tree), "JSON": "1"})
    found = json.loads(capsys.readouterr().out)
    probes = {entry["state"]: entry["says"] for entry in found if entry["what"] == "probes"}
    assert "get_and_clear_ptes" in probes["has"] and "clear_nonpresent_ptes" in probes["lacks"]
    assert "contpte_is_consistent" in probes["unknown"]
    issues = {entry["state"]: entry["says"] for entry in found if entry["what"] == "known issues"}
    assert len(issues["unknown"].partition(":")[0].split(", ")) > 5
    assert ("kernel", "has") in {(entry["what"], entry["state"]) for entry in found}


def test_a_kernel_that_is_not_here_is_not_fetched(home: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("doctor", {**home, "KERNEL": "7.3"}) == 125
    assert capsys.readouterr().err == "doctor: KERNEL=7.3 is not on this machine yet: the first run fetches it\n"
    assert not (Path(home["HOME"]) / ".cache/mmcheck/src").exists()


def test_a_full_disk_is_a_lack(home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "free", lambda folder: 1)
    settings = from_environment(home)
    assert [finding.state for finding in doctor.findings(settings) if finding.what.startswith("disk")] == ["lacks"] * 2


WITHOUT_CCACHE = """\
import shutil
which = shutil.which
shutil.which = lambda name, *more, **options: None if name == "ccache" else which(name, *more, **options)
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["matrix", "--matrix", "{home}/table.toml"], 1),
        (["mutants", "--arch", "arm64", "--only", "zap_*"], 1),
        (["kselftest", "--arch", "arm64", "--tests", "folio_fork"], 0),
    ],
    ids=("matrix", "mutants", "kselftest"),
)
def test_commands_that_build_many_kernels_recommend_ccache(
    user: User, tmp_path: Path, words: list[str], said: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_CCACHE)
    (tmp_path / "table.toml").write_text('[[cells]]\narches = ["arm64"]\n')
    done = subprocess.run(
        [sys.executable, "tools/testing/mmcheck", *(word.format(home=tmp_path) for word in words)],
        env={**user.environment, "PYTHONPATH": str(tmp_path), "INSTALL": "no"},
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr.count(toolchain.NO_CCACHE) == said, done.stderr
