# SPDX-License-Identifier: GPL-2.0
"""The estimate of the time that a build or run still needs."""

import json
from pathlib import Path
from typing import Any

import pytest

from mmcheck.core.progress import FIRST_ESTIMATE, Progress, share_of_time
from mmcheck.kernel import make

BUILDS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "builds.json").read_text())
"""First builds on two CPUs: the number of finished steps at several times, and the estimate of the number of all steps.

During each build, the load of the machine by other programs was constant. A build may lose half of its CPU time
halfway, or find half of its objects in ccache. No estimate can foresee this, so such builds are left out.
"""


def building(estimate: int, first: int = 1) -> Progress:
    shown = Progress("building", estimate, exact=False, pace=make.PACE)
    shown.advance(first)
    return shown


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build["build"])
def test_the_end_of_a_first_build_is_foreseen_within_a_third(build: dict[str, Any]) -> None:
    shown = building(build["estimate"])
    said = []
    for seconds, done in build["steps"]:
        shown.done = done
        left = shown.left(seconds)
        assert seconds < FIRST_ESTIMATE or left is not None or done >= 1.4 * build["estimate"]
        if left is not None:
            said.append((seconds + left) / build["seconds"])
    assert len(said) >= 8
    assert min(said) > 2 / 3
    assert max(said) < 4 / 3


def test_equal_steps_would_miss_it() -> None:
    """The estimate needs the durations of steps. With equal steps, the estimates of most builds are sometimes wrong."""
    missed = 0
    for build in BUILDS:
        ends = [s * max(1, build["estimate"] / done) for s, done in build["steps"] if s >= FIRST_ESTIMATE]
        missed += any(not 2 / 3 < end / build["seconds"] < 4 / 3 for end in ends)
    assert missed > len(BUILDS) / 2


def test_nothing_is_foreseen_in_the_first_minute() -> None:
    shown = building(1000)
    shown.done = 200
    assert shown.line(59.0, "CC") == "building [200/~1000] 59s CC"
    assert shown.line(60.0, "CC") == "building [200/~1000] 1m00s, about 10m07s left CC"


def test_a_build_that_goes_on_counts_only_its_own_steps() -> None:
    shown = building(1000, first=500)
    shown.done = 600
    assert shown.left(60.0) == pytest.approx(60 * (1 - 0.68) / (0.68 - 0.53))
    shown.done = 1400
    assert shown.left(90.0) is None


def test_the_pace_rises() -> None:
    assert list(make.PACE) == sorted(make.PACE)
    assert all(steps > 0 and time > 0 for steps, time in make.PACE[1:])
    assert share_of_time(make.PACE, 0) == 0
    assert share_of_time(make.PACE, 0.45) == pytest.approx(0.455)
    assert share_of_time(make.PACE, 2) == 1
