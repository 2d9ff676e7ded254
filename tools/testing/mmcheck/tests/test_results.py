# SPDX-License-Identifier: GPL-2.0
"""The console of selftests gives verdicts. A splat belongs to the case that was running."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mmcheck.boot import results
from mmcheck.core.errors import UserError
from mmcheck.report import collect

from .seeded import recorded

CONSOLE = """\
[    0.5] Run /init as init process
[    1.0] # selftests: mm: folio_one
[    1.0] TAP version 13
[    1.0] 1..4
[    1.0] #  RUN           folio_one.anon.good ...
[    1.2] #            OK  folio_one.anon.good
[    1.2] ok 1 folio_one.anon.good
[    1.2] #  RUN           folio_one.anon.bad ...
[    1.3] # folio_one.c:12:bad:Expected 1 (1) == faults() (2)
[    1.3] # bad: Test failed
[    1.3] #          FAIL  folio_one.anon.bad
[    1.3] not ok 2 folio_one.anon.bad
[    1.3] #  RUN           folio_one.anon.missing ...
[    1.4] #      SKIP      needs two NUMA nodes
[    1.4] #            OK  folio_one.anon.missing
[    1.4] ok 3 folio_one.anon.missing # SKIP needs two NUMA nodes
[    1.4] #  RUN           folio_one.anon.warns ...
[    1.5] ------------[ cut here ]------------
[    1.5] WARNING: CPU: 0 PID: 80 at mm/memory.c:12 zap_pte_range+0x10/0x20
[    1.5] Call trace:
[    1.5]  zap_pte_range+0x10/0x20
[    1.6] ok 4 folio_one.anon.warns
[    1.6] not ok 1 selftests: mm: folio_one # exit=1
[    1.7] # selftests: mm: folio_two
[    1.7] #  RUN           folio_two.panics ...
"""


def read(console: str) -> tuple[results.Reader, list[results.Case]]:
    reader = results.Reader()
    cases = [case for line in console.splitlines() for case in reader.feed(line)]
    return reader, cases


def test_each_case_has_its_verdict_time_and_text() -> None:
    _, cases = read(CONSOLE)
    assert [(case.name, case.state) for case in cases] == [
        ("anon.good", "passed"),
        ("anon.bad", "failed"),
        ("anon.missing", "skipped"),
        ("anon.warns", "failed"),
    ]
    assert cases[0].seconds == 0.2
    assert cases[1].text[0] == "folio_one.c:12:bad:Expected 1 (1) == faults() (2)"
    assert cases[2].text == ["needs two NUMA nodes"]


def test_a_splat_fails_the_case_that_it_fell_into() -> None:
    _, cases = read(CONSOLE)
    assert [case.splat for case in cases] == [False, False, False, True]
    assert any("zap_pte_range" in line for line in cases[3].text)


def test_a_panic_fails_the_case_that_was_running() -> None:
    panic = "[    2.0] Kernel panic - not syncing: oh dear\n[    2.0] Call trace:\n"
    reader, _ = read(CONSOLE + panic)
    (case,) = reader.close("the kernel ended or hung")
    assert (case.suite, case.name, case.state, case.splat) == ("folio_two", "panics", "failed", True)
    assert any("oh dear" in line for line in case.text)
    assert reader.finished == ["folio_one"]


def test_a_program_that_dies_outside_of_its_cases_fails() -> None:
    console = "# selftests: mm: two\nok 1 two.a\nnot ok 1 selftests: mm: two # TIMEOUT 300 seconds\n"
    _, cases = read(console)
    assert [(case.name, case.state) for case in cases] == [("a", "passed"), ("", "failed")]
    assert cases[1].text[0] == "TIMEOUT 300 seconds"


def test_a_program_without_cases_is_one_case() -> None:
    _, cases = read("# selftests: mm: old\nall is well\nok 1 selftests: mm: old\n")
    assert [(case.suite, case.name, case.state) for case in cases] == [("old", "", "passed")]
    _, cases = read("# selftests: mm: old\nnot here\nok 1 selftests: mm: old # SKIP\n")
    assert [case.state for case in cases] == ["skipped"]


def test_exit_status_is_that_of_kselftest() -> None:
    def case(state: str) -> results.Case:
        return results.Case("a", "b", state)

    assert results.status([case("passed"), case("skipped")]) == 0
    assert results.status([case("passed"), case("failed")]) == 1
    assert results.status([case("skipped")]) == 4


def test_saved_as_json_and_junit(tmp_path: Path) -> None:
    _, cases = read(CONSOLE)
    cases[1].text.append("control \x1b[0m characters")
    results.save(cases, "linux", tmp_path)
    whole = json.loads((tmp_path / "results.json").read_text())
    assert (whole["passed"], whole["failed"], whole["skipped"]) == (1, 2, 1)
    root = ElementTree.parse(tmp_path / "results.xml").getroot()
    assert root.get("failures") == "2"
    tests = list(root.iter("testcase"))
    assert [test.get("name") for test in tests] == ["anon.good", "anon.bad", "anon.missing", "anon.warns"]
    assert tests[0].get("time") == "0.200"
    assert tests[0].get("classname") == "linux.folio_one"
    failures = [failure for test in tests for failure in test.iter("failure")]
    assert [failure.get("type") for failure in failures] == ["failure", "splat"]
    assert "Expected 1 (1) == faults() (2)" in (failures[0].text or "")


KUNIT = """\
[    1.0] KTAP version 1
[    1.0] 1..1
[    1.0]     KTAP version 1
[    1.0]     # Subtest: contpte
[    1.0]     1..3
[    1.1]     ok 1 plain
[    1.1]         KTAP version 1
[    1.1]         # Subtest: with_parameters
[    1.2]         ok 1 one
[    1.3]     # with_parameters: EXPECTATION FAILED at arch/arm64/mm/tests/contpte_kunit.c:12
[    1.3]     entry 0 is 1, expected 2
[    1.3]         not ok 2 two
[    1.3]     # with_parameters: pass:1 fail:1 skip:0 total:2
[    1.3]     not ok 2 with_parameters
[    1.5]     ok 3 races # SKIP needs two CPUs
[    1.5] # contpte: pass:1 fail:1 skip:1 total:3
[    1.5] not ok 1 contpte
"""


def test_cases_of_kunit_are_not_lost_where_they_have_parameters() -> None:
    cases = results.kunit(KUNIT.splitlines())
    assert [(case.name, case.state, case.seconds) for case in cases] == [
        ("plain", "passed", 0.1),
        ("with_parameters: one", "passed", 0.1),
        ("with_parameters: two", "failed", 0.1),
        ("races", "skipped", 0.2),
    ]
    assert "entry 0 is 1, expected 2" in cases[2].text


def test_what_ran_is_collected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path, "6.12-arm64", results.kunit(KUNIT.splitlines()))
    recorded(tmp_path, "6.12-arm64", [results.Case("folio_one", "a", "passed")], "kselftest")
    assert collect.run({"O": str(tmp_path)}) == 1
    said = capsys.readouterr().out
    assert "kunit 6.12-arm64" in said
    assert "FAILED contpte.with_parameters: two: entry 0 is 1, expected 2" in said
    whole = json.loads((tmp_path / "results/results.json").read_text())
    assert (whole["passed"], whole["failed"], whole["skipped"]) == (3, 1, 1)
    with pytest.raises(UserError, match="no results in"):
        collect.run({"O": str(tmp_path / "empty")})


def test_a_run_without_a_verdict_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path, "6.12-um", [results.Case("one", "a", "passed")])
    recorded(tmp_path, "7.3-um", [], built=False, why="linux 7.3 does not build")
    assert collect.run({"O": str(tmp_path)}) == 125
    assert "NO VERDICT: linux 7.3 does not build" in capsys.readouterr().out


def test_a_suite_without_a_verdict_has_failed_in_the_case_that_ran() -> None:
    dead = [
        "KTAP version 1",
        "1..2",
        "    # Subtest: one",
        "    ok 1 a",
        "        # Subtest: b",
        "# one: b: hang: 60 s",
    ]
    again = ["KTAP version 1", "1..1", "    # Subtest: two", "    ok 1 c", "ok 1 two"]
    found = results.kunit([*dead, *again])
    assert [(case.suite, case.name, case.state) for case in found] == [
        ("one", "a", "passed"),
        ("one", "b", "failed"),
        ("two", "c", "passed"),
    ]
    assert found[1].text == ["one: b: hang: 60 s", "the kernel ended"]
