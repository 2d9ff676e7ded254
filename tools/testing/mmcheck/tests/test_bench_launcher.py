# SPDX-License-Identifier: GPL-2.0
"""The bounds for the times of the launcher. `make bench-launcher` measures the times."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from mmcheck.dev import bench_launcher

GOOD = {"cold": (70.0, 100.0), "again": (51.5, 50.0), "spread": (30.0, 52.0), "edit": (80.0, 80.0)}


@pytest.mark.parametrize(
    ("bad", "status", "line"),
    [
        ({}, 0, "spread  0.58 to 0.58x in 3 runs; too slow in 0"),
        ({"cold": (76.0, 100.0)}, 1, "cold    0.70 to 0.76x in 3 runs; too slow in 1"),
        ({"again": (52.5, 50.0)}, 1, "again   1.50 to 2.50 s more in 3 runs; too slow in 1"),
        ({"spread": (32.0, 52.0)}, 1, "spread  0.58 to 0.62x in 3 runs; too slow in 1"),
        ({"edit": (90.0, 80.0)}, 1, "edit    1.00 to 1.12x in 3 runs; too slow in 1"),
    ],
)
def test_one_bound_that_is_missed_once_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bad: Mapping[str, tuple[float, float]],
    status: int,
    line: str,
) -> None:
    runs = iter([GOOD, {**GOOD, **bad}, GOOD])

    def bench(_: object) -> SimpleNamespace:
        (tmp_path / "scratch").mkdir()
        times = {name: lambda value=value: value for name, value in next(runs).items()}
        return SimpleNamespace(kernel=SimpleNamespace(label="6.12"), scratch=tmp_path / "scratch", **times)

    monkeypatch.setattr(bench_launcher, "Bench", bench)
    assert bench_launcher.run({"REPEATS": "3"}) == status
    said = capsys.readouterr().out
    assert line in said.splitlines() and said.count("MISSED") == status
