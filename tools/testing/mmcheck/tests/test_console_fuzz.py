# SPDX-License-Identifier: GPL-2.0
"""No broken console crashes a reader, hides a failure, or turns another verdict into a pass.

The tests generate well-formed consoles from verdicts. Then they disturb the consoles: they insert lines of the kernel,
and cut the console at any line. They compare the results of a reader with the verdicts.
"""

from collections.abc import Iterator, Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mmcheck.boot import console, results

settings.register_profile("console", deadline=None, derandomize=True, max_examples=300)
settings.load_profile("console")

VERDICTS = ("passed", "failed", "skipped")
NOISE = (
    "random: crng init done",
    "folio_one.c: no verdict",
    "mmcheck: ok so far",
    "  ok: 1 of 2 CPUs",
    "#",
    "",
    "\x1b[31mred\x1b[0m \x00\x07",
    "KTAP",
    "1..",
    "Subtest: none",
    "------------[ cut here ]------------",
    "not ok",
)
"""Lines that a kernel may print between the verdicts. They are neither verdicts nor splats."""

Suite = tuple[str, list[str]]
SUITES = st.lists(st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=4), min_size=1, max_size=4).map(
    lambda all_cases: [(f"suite_{number}", cases) for number, cases in enumerate(all_cases)]
)
"""Suites with the verdicts of their cases. The names of the cases are case_0, case_1, ..."""

NOISES = st.lists(st.tuples(st.integers(0, 80), st.sampled_from(NOISE)), max_size=6)
"""Lines to insert, each with the number of the line before which it is inserted."""


def of_kunit(suites: Sequence[Suite]) -> Iterator[tuple[str, str]]:
    """The lines of a boot with these suites, each with `suite.case` if the line is a verdict, otherwise with ""."""
    yield "[    0.900000] KTAP version 1", ""
    yield f"[    0.900001] 1..{len(suites)}", ""
    for place, (suite, cases) in enumerate(suites, 1):
        yield "    KTAP version 1", ""
        yield f"    # Subtest: {suite}", ""
        yield f"    1..{len(cases)}", ""
        for number, verdict in enumerate(cases):
            if verdict == "failed":
                yield f"    # case_{number}: EXPECTATION FAILED at mm/tests/{suite}_kunit.c:12", ""
            good = "not ok" if verdict == "failed" else "ok"
            skip = " # SKIP no such CPU" if verdict == "skipped" else ""
            yield f"    {good} {number + 1} case_{number}{skip}", f"{suite}.case_{number}"
        yield f"{'not ok' if 'failed' in cases else 'ok'} {place} {suite}", ""


def of_selftests(suites: Sequence[Suite]) -> Iterator[tuple[str, str]]:
    """The lines of a boot that runs selftests, in the same form."""
    for place, (suite, cases) in enumerate(suites, 1):
        yield f"[    1.0] # selftests: mm: {suite}", ""
        yield "TAP version 13", ""
        for number, verdict in enumerate(cases):
            yield f"#  RUN           {suite}.case_{number} ...", ""
            good = "not ok" if verdict == "failed" else "ok"
            skip = " # SKIP no such CPU" if verdict == "skipped" else ""
            yield f"{good} {number + 1} {suite}.case_{number}{skip}", f"{suite}.case_{number}"
        bad = "failed" in cases
        yield f"{'not ok' if bad else 'ok'} {place} selftests: mm: {suite}{' # exit=1' if bad else ''}", ""


def disturbed(lines: Sequence[tuple[str, str]], noises: Sequence[tuple[int, str]], end: int) -> list[tuple[str, str]]:
    """The first `end` lines, with the noise inserted."""
    kept = list(lines[:end])
    for place, noise in noises:
        kept.insert(min(place, len(kept)), (f"[    1.234567] {noise}", ""))
    return kept


def wanted(suites: Sequence[Suite], lines: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The verdicts in these lines."""
    verdicts = {f"{suite}.case_{number}": one for suite, cases in suites for number, one in enumerate(cases)}
    return {name: verdicts[name] for _, name in lines if name}


def check(cases: Sequence[results.Case], want: dict[str, str], cut: bool) -> None:
    """Check that the cases have each verdict. If the console was cut, they may have additional failures."""
    found = {f"{case.suite}.{case.name}": case.state for case in cases if case.name}
    assert {name: found.pop(name, "lost") for name in want} == want
    assert set(found.values()) <= {"failed"} and (cut or not found)
    unnamed = {case.state for case in cases if not case.name}
    assert unnamed <= {"failed"} and (cut or not unnamed)


@given(SUITES, NOISES, st.integers(0, 60))
@example([("suite_0", ["failed"])], [(5, "not ok")], 60)
def test_kunit_keeps_each_verdict(suites: list[Suite], noises: list[tuple[int, str]], end: int) -> None:
    whole = list(of_kunit(suites))
    lines = disturbed(whole, noises, end)
    cases = results.kunit(line for line, _ in lines)
    check(cases, wanted(suites, lines), cut=end < len(whole))
    begun = sum("# Subtest:" in line for line, _ in lines)
    ended = sum(line.startswith(("ok ", "not ok ")) for line, _ in lines)
    if begun > ended:
        assert cases[-1].state == "failed", "a suite that was cut off has not failed"
    assert len(console.read(line for line, _ in lines).finished) == ended


@given(SUITES, NOISES, st.integers(0, 60))
def test_selftests_keep_each_verdict(suites: list[Suite], noises: list[tuple[int, str]], end: int) -> None:
    whole = list(of_selftests(suites))
    lines = disturbed(whole, noises, end)
    reader = results.Reader()
    cases = [case for line, _ in lines for case in reader.feed(line)]
    running = bool(reader.suite)
    cases += reader.close("the kernel ended or hung")
    check(cases, wanted(suites, lines), cut=end < len(whole))
    assert not running or cases[-1].state == "failed", "a program that was cut off has not failed"


LINES = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from(
            [line for line, _ in [*of_kunit([("s", ["passed"])]), *of_selftests([("s", ["failed"])])]]
            + ["WARNING: CPU: 0 PID: 80 at mm/memory.c:12", "Kernel panic - not syncing: x", "    not ok 1 c # SKIP"]
        ),
    ),
    max_size=40,
)


@given(LINES)
def test_no_console_crashes_a_reader(lines: list[str]) -> None:
    for case in results.kunit(lines):
        assert case.state in results.STATES
    reader = results.Reader()
    cases = [case for line in lines for case in reader.feed(line)]
    cases += reader.close("the end")
    assert {case.state for case in cases} <= set(results.STATES)
    assert not console.read(lines).suite or any("# Subtest:" in line or "# selftests:" in line for line in lines)


def test_not_ok_is_a_failure_whatever_comes_after_it() -> None:
    cases = results.kunit(["    # Subtest: s", "    not ok 1 c # SKIP no such CPU"])
    assert [case.state for case in cases] == ["failed", "failed"]
    reader = results.Reader()
    lines = ["# selftests: mm: s", "#  RUN           s.c ...", "not ok 1 s.c # SKIP no such CPU"]
    assert [case.state for line in lines for case in reader.feed(line)] == ["failed"]


def test_a_splat_in_a_case_that_is_skipped_fails_it() -> None:
    said = ["    # Subtest: s", "WARNING: CPU: 0 PID: 80 at mm/memory.c:12", "    ok 1 c # SKIP no such CPU", "ok 1 s"]
    assert [(case.state, case.splat) for case in results.kunit(said)] == [("failed", True)]
