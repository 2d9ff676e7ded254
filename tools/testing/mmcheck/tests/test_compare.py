# SPDX-License-Identifier: GPL-2.0
"""make compare: the differences of two runs."""

import json
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.boot.results import Case
from mmcheck.report import compare

from .seeded import recorded


def both(tmp_path: Path, new: str) -> dict[str, str]:
    """Two runs below a folder, and the variables that name them. The state of one case differs."""
    same = [Case("contpte", "same", "failed"), Case("contpte", "param: 1", "passed")]
    recorded(tmp_path, "6.12-um", [*same, Case("contpte", "a", "passed"), Case("one", "gone", "skipped")])
    recorded(tmp_path, "7.3-um", [*same, Case("contpte", "a", new)])
    return {"O": str(tmp_path), "A": "kunit 6.12-um", "B": "kunit 7.3-um"}


def test_what_differs_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("compare", both(tmp_path, "failed")) == 1
    first, second, *ends = capsys.readouterr().out.splitlines()
    assert first.split() == ["contpte.a", "passed", "failed"]
    assert second.split(maxsplit=2) == ["one.gone", "skipped", compare.ABSENT]
    assert [line[:10] for line in ends] == ["A: failed:", "B: failed:"]


def test_no_new_failure_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("compare", {**both(tmp_path, "passed"), "JSON": "1"}) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == [["one.gone", "skipped", compare.ABSENT]]


def test_runs_without_a_verdict_are_not_equal(tmp_path: Path) -> None:
    for build in ("6.12-um", "7.3-um"):
        recorded(tmp_path, build, [], built=False, why="does not build")
    assert verbs.run("compare", {"O": str(tmp_path), "A": "kunit 6.12-um", "B": "kunit 7.3-um"}) == 125


def test_an_unknown_run_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("compare", {**both(tmp_path, "passed"), "B": "x"}) == 125
    assert "B=x: no run below" in capsys.readouterr().err
    assert verbs.run("compare", {"O": str(tmp_path), "A": "x"}) == 125
