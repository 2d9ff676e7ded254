# SPDX-License-Identifier: GPL-2.0
"""The last paragraph that a run prints."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mmcheck.boot.results import Case
from mmcheck.core.settings import Settings
from mmcheck.kernel import known_issues
from mmcheck.mutants import judge, killmatrix, rules, sample
from mmcheck.mutants import main as mutants
from mmcheck.mutants.catalogue import Mutant
from mmcheck.run import closing
from mmcheck.study import patched
from mmcheck.study.proof import Proof

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
        "new failures (not known issues): contpte.set_ptes_range",
        "log: out/build/test.log",
        "next: KDIR='/a b' ./tools/testing/kunit/kunit.py exec --arch=arm64 contpte.set_ptes_range",
    ]


def test_many_failures_are_counted() -> None:
    many = [Case("s", f"c{number}", "failed") for number in range(7)]
    said = closing.paragraph(many, LOG, {"s.c0": "run it"})
    assert said[1] == "new failures (not known issues): s.c0, s.c1, s.c2, s.c3, s.c4 and 2 more"


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


def test_failures_of_known_issues_are_told_apart_from_new_ones() -> None:
    failed = "# pte_present: EXPECTATION FAILED at mm/tests/a.c:3"
    known = Case("pte_bits", "pte_present", "failed", text=[failed, "known issue 3: pte_present() reads twice"])
    besides = Case("pte_bits", "both", "failed", text=[failed, "known issue 3: as known", failed, "1 == 2"])
    selftest = Case("folio_scan", "a.b", "failed", text=["a.c:9:b:Expected 0 (0) != 1 (1)", "a.c:9:b:known issue 4: x"])
    absent = "a.c:9:b:known issue 4: x, but the source does not show it"
    wrong = Case("folio_scan", "a.c", "failed", text=["a.c:9:c:Expected 0 (0) != 1 (1)", absent])
    said = closing.paragraph([known, besides, selftest, wrong], LOG, {"pte_bits.both": "again", "folio_scan.a.c": ""})
    assert said[1:] == [
        "new failures (not known issues): pte_bits.both, folio_scan.a.c",
        "failures of known issue 3: pte_bits.pte_present",
        "failures of known issue 4: folio_scan.a.b",
        "log: out/build/test.log",
        "next: again",
    ]


def test_a_failure_may_be_expected() -> None:
    said = closing.failures([FAILED], {"contpte.set_ptes_range": "no mkfs.xfs"})
    assert said == ["", "expected failures (no mkfs.xfs): contpte.set_ptes_range"]


def test_a_run_in_which_all_is_skipped_passed_nothing() -> None:
    assert closing.paragraph([SKIPPED], LOG, {})[0] == "nothing was tested: 0 failed, 0 passed, 1 skipped"


def test_a_line_for_make() -> None:
    environ = {"KERNEL": "7.3", "HOME": "/root", "KDIR": ""}
    assert closing.make("mutants", environ, ONLY="a b") == "make mutants KERNEL=7.3 ONLY='a b'"


RESULT = {"survived": judge.Result("alive", "survived"), "failed": judge.Result("dead", "failed")}


def test_mutants_end_with_a_verdict() -> None:
    said = mutants.ending(list(RESULT.values()), [Path("out/mutants")], {"ARCH": "arm64"})
    assert said == [
        "FAILED: 1 of 2 mutants noticed",
        "not noticed: alive",
        "log: out/mutants (consoles)",
        "next: make mutants ARCH=arm64 ONLY=alive",
    ]
    assert mutants.ending([RESULT["failed"]], [Path("out")], {})[0] == "passed: 1 of 1 mutants noticed"
    broken = mutants.ending([judge.Result("odd", "does not build")], [Path("out")], {})
    assert broken[:2] == ["NO VERDICT: 0 of 0 mutants noticed", "mutants without a verdict: odd"]


def test_mutants_by_rules_end_with_the_score_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ran(every: list[Mutant], only: set[str]) -> list[judge.Result]:
        assert only == {mutant.name for mutant in every}
        return [judge.Result(every[0].name, "failed", "s.c"), judge.Result(every[1].name, "survived")]

    every = [Mutant(name, "", (), lambda _: {}) for name in ("negate_f_012345", "swap_f_012345")]
    monkeypatch.setattr(rules, "every", lambda read: every)
    monkeypatch.setattr(sample, "survivors_file", lambda *_: tmp_path / "7.3-arm64.toml")
    monkeypatch.setattr(mutants, "by_hand", lambda _: (9, 10))
    judged = SimpleNamespace(
        read=lambda _: "",
        run=ran,
        end=lambda *_: None,
        folder=Path("out/mutants"),
        source=SimpleNamespace(label="7.3.4"),
        settings=SimpleNamespace(arch="arm64"),
    )
    assert mutants.by_rules(cast(judge.Session, judged), "*", {"GENERATED": "1", "KERNEL": "7.3"}) == 1
    assert capsys.readouterr().out.splitlines()[-7:] == [
        "FAILED: 1 of 2 mutants noticed",
        "not noticed: swap_f_012345",
        "the whole sample: 2 mutants tested; 1 of 2 noticed (50.0 %); of the noticed mutants, 1 made a test fail; "
        "0 of the tested mutants are equivalent and do not count",
        "the catalogue: 9 of 10 noticed (90.0 %)",
        f"mutants survived: for each of them, write into {tmp_path / '7.3-arm64.toml'} why it is harmless",
        "log: out/mutants (consoles)",
        "next: make mutants KERNEL=7.3 GENERATED=1 ONLY=swap_f_012345",
    ]


def test_without_selftests_a_verdict_of_a_selftest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [Mutant(name, "", (), lambda _: {}) for name in ("negate_f_012345", "swap_f_012345")]
    path = tmp_path / "7.3-arm64.toml"
    sample.record(path, {"swap_f_012345": ("failed", "folio_file.case")}, [mutant.name for mutant in every])
    monkeypatch.setattr(rules, "every", lambda read: every)
    monkeypatch.setattr(sample, "survivors_file", lambda *_: path)
    monkeypatch.setattr(mutants, "by_hand", lambda _: None)
    judged = SimpleNamespace(
        read=lambda _: "",
        run=lambda every, only: [judge.Result(mutant.name, "survived") for mutant in every],
        end=lambda *_: None,
        folder=Path("out/mutants"),
        source=SimpleNamespace(label="7.3.4"),
        settings=SimpleNamespace(arch="arm64"),
    )
    mutants.by_rules(cast(judge.Session, judged), "*", {"GENERATED": "1"})
    assert sample.verdicts(path) == {
        "negate_f_012345": ("survived", ""),
        "swap_f_012345": ("failed", "folio_file.case"),
    }
    assert set(sample.answers(path)) == {"negate_f_012345"}


def test_a_kill_matrix_ends_with_what_is_unproven() -> None:
    matrix = killmatrix.Matrix("7.3.4", ["s.a", "s.b"], {"m": killmatrix.Row({"s.a": "failed"}), "n": killmatrix.Row()})
    found = killmatrix.findings(matrix, [], {})
    assert killmatrix.ending(found, matrix, Path("7.3-arm64.json"), {"KERNEL": "7.3"}) == [
        "kill matrix of linux 7.3.4: 1 of 2 cases (50.0 %) notice none of 2 mutants",
        "cases that notice no mutant, and for which there is no reason in unproven.toml: s.b",
        "mutants that no case notices: n",
        "log: 7.3-arm64.json",
        "next: make report KERNEL=7.3",
    ]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("failed", "stale", ["passed: 1 of 1 patches fix their issue on linux x"]),
        (
            "passed",
            "failed",
            ["FAILED: 0 of 1 patches fix their issue on linux x", "issues without proof that the patch fixes them: 3"],
        ),
        (
            "passed",
            "passed",
            [
                "nothing was tested: 0 of 0 patches fix their issue on linux x",
                "issues that no test met in this run: 3",
            ],
        ),
    ],
)
def test_known_issues_end_with_a_verdict(
    before: str, after: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    issue = cast(known_issues.Issue, SimpleNamespace(number=3, tests=["s.c"], where="arm64 64K"))
    proof = Proof(issue, "arm64 4K", {"s.c": before}, {"s.c": after})
    settings = cast(Settings, SimpleNamespace(out=Path("out")))
    status = patched.report([proof], "x", settings, {"ARCH": "arm64"})
    lines = capsys.readouterr().out.splitlines()
    end = lines[[line.startswith(said[0]) for line in lines].index(True) :]
    assert end[: len(said)] == said
    kernels = "x+fixed is the kernel with the patches, and x is the kernel without them"
    assert end[len(said)] == f"log: out (in the paths of the console logs, {kernels})"
    assert end[len(said) + 1 :] == (["next: make known-issues ARCH=arm64 ONLY=3"] if status else [])


def test_the_line_that_repeats_a_walk_has_its_seed() -> None:
    text = ["contpte_walk.seed=7 contpte_walk.steps=1000 goes wrong in step 21; these 2 steps are enough"]
    walk, plain = Case("contpte_walk", "one", "failed", text=text), Case("contpte", "a", "failed", text=["1 == 2"])
    assert closing.seed(walk) == ["contpte_walk.seed=7", "contpte_walk.steps=1000"]
    assert closing.seed(Case("w", "x", "failed", text=["w.seed=9"])) == ["w.seed=9"] and closing.seed(plain) == []
    said = closing.paragraph([plain, walk], LOG, {"contpte.a": "plain", "contpte_walk.one": "walk"})
    assert said[-1] == "next: walk", "its output has the shortest sequence"


def test_other_kernels_to_compare_with() -> None:
    words = ["run", "--arch=arm64", "contpte.a"]
    line = "./tools/testing/kunit/kunit.py run --arch=arm64 contpte.a  # do these tests also fail on this kernel?"
    assert closing.compare(words, {"KDIR": "/linux", "KERNEL": "7.3"}) == line
    assert closing.compare(words, {"PATCH": "x.patch"}) == line
    assert closing.compare(words, {"PAGES": "16K"}) == f"KERNEL=7.3 PAGES=16K {line}"
    assert closing.compare(words, {"KERNEL": "7.3"}) == f"KERNEL=6.12 {line}"
