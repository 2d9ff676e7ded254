# SPDX-License-Identifier: GPL-2.0
"""What a run says at its end."""

from pathlib import Path

from mmcheck import closing
from mmcheck.results import Case

LOG = Path("out/build/test.log")
PASSED = Case("contpte", "set_ptes_range", "passed")
FAILED = Case("contpte", "set_ptes_range: last", "failed", text=["expected 1"])
SUITE = Case("contpte", "", "failed")
KNOWN = Case("pte_bits", "pte_present", "skipped", text=["known issue 3: pte_present() reads twice"])
SKIPPED = Case("contpte_race", "a", "skipped", text=["needs two CPUs"])


def test_a_run_without_a_failure() -> None:
    assert closing.paragraph([PASSED, KNOWN, SKIPPED], LOG, {}) == [
        "passed: 0 failed, 1 passed, 2 skipped, known issue 3 among them",
        "2 skipped: 1 known issue 3, 1 needs two CPUs",
        "log: out/build/test.log",
    ]


def test_a_failure_names_the_one_next_command() -> None:
    again = {closing.name(FAILED): closing.command(["exec", "--arch=arm64"], closing.name(FAILED), {"KDIR": "/a b"})}
    assert closing.paragraph([PASSED, FAILED], LOG, again) == [
        "FAILED: 1 failed, 1 passed, 0 skipped",
        "failed: contpte.set_ptes_range; none of them is a known issue",
        "log: out/build/test.log",
        "next: KDIR='/a b' ./tools/testing/kunit/kunit.py exec --arch=arm64 contpte.set_ptes_range",
    ]


def test_many_failures_are_counted() -> None:
    many = [Case("s", f"c{number}", "failed") for number in range(7)]
    said = closing.paragraph(many, LOG, {"s.c0": "run it"})
    assert said[1] == "failed: s.c0, s.c1, s.c2, s.c3, s.c4 and 2 more; none of them is a known issue"


def test_a_suite_that_fails_as_a_whole() -> None:
    assert closing.name(SUITE) == "contpte"


def test_features_that_are_switched_off_stay_off() -> None:
    assert closing.command(["run"], "a.b", {"FEATURES": "", "KERNEL": ""}) == (
        "FEATURES= ./tools/testing/kunit/kunit.py run a.b"
    )


def test_nothing_ran() -> None:
    assert closing.paragraph([], LOG, {}) == []


def test_skips_are_summed_up_by_reason() -> None:
    said = {"needs two CPUs": 3, "64K: no such size": 1, "2048K: no such size": 1, "": 1, **dict.fromkeys("abcd", 1)}
    cases = [Case("s", "c", "skipped", text=[text]) for text, number in said.items() for _ in range(number)]
    assert closing.reasons([PASSED, *cases]) == (
        "10 skipped: 3 needs two CPUs, 2 no such size, 1 no reason given, 1 a, 1 b, 2 for 2 other reasons"
    )
    assert closing.reasons([PASSED]) == ""
    assert closing.reasons(cases[:1]) == "1 skipped: 1 needs two CPUs"
