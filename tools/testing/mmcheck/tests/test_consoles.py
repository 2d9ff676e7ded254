# SPDX-License-Identifier: GPL-2.0
"""Consoles of real boots, for each known way to end. Each reader must report the right results."""

import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmcheck.boot import boot, console, results

FOLDER = Path(__file__).parent / "consoles"
TABLE: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "consoles.toml").read_text())
KUNIT = [name for name, entry in TABLE.items() if entry["judged"] != "selftests"]
GOOD = [name for name, entry in TABLE.items() if entry["ends"] and not entry["failed"] and entry["passed"]]


def content(name: str) -> bytes:
    return (FOLDER / f"{name}.log").read_bytes()


def cases(recorded: bytes) -> list[results.Case]:
    return results.kunit(console.lines(recorded))


def test_the_table_is_complete() -> None:
    assert {file.stem for file in FOLDER.glob("*.log")} == set(TABLE)
    assert sum(not name.startswith("by-hand-") for name in TABLE) >= 30


@pytest.mark.parametrize("name", TABLE)
def test_a_console_has_its_verdicts(name: str) -> None:
    entry, found = TABLE[name], cases(content(name))
    failed = {f"{case.suite}.{case.name}": case.splat for case in found if case.state == "failed"}
    assert failed == entry["failed"]
    number = results.counts(found)
    assert (number["passed"], number["skipped"]) == (entry["passed"], entry["skipped"])
    said = console.read(FOLDER / f"{name}.log")
    assert (said.off, said.hung, said.reason) == (entry["ends"], entry["hung"], entry["reason"])
    assert bool(said.splats and found) == any(failed.values()), "a splat belongs to a case or to a suite"


@pytest.mark.parametrize("name", KUNIT)
def test_a_mutant_with_this_console_is_judged(name: str, tmp_path: Path) -> None:
    verdict = boot.follow(["cat", str(FOLDER / f"{name}.log")], tmp_path / "log", 10)
    assert verdict.state == TABLE[name]["judged"]


HANGS = [name for name, entry in TABLE.items() if not entry["ends"]]
SILENCE, LIMIT = 0.5, 20.0
"""Seconds without a line after which a kernel counts as hung, and seconds after which the test fails."""


@pytest.mark.parametrize("name", HANGS)
def test_a_kernel_that_says_nothing_more_ends_with_these_verdicts(name: str, tmp_path: Path) -> None:
    machine = ["sh", "-c", f"cat {FOLDER / name}.log; exec sleep 60"]
    began = time.monotonic()
    said = list(boot.lines(machine, tmp_path / "log", LIMIT, SILENCE))
    assert time.monotonic() - began < LIMIT
    failed = {f"{case.suite}.{case.name}": case.splat for case in results.kunit(said) if case.state == "failed"}
    # The last line of a console may be cut.
    whole = content(name).endswith(b"\n") or not content(name)
    assert failed == TABLE[name]["failed"] or not whole


def test_a_kernel_that_never_stops_talking_ends_at_its_limit(tmp_path: Path) -> None:
    talks = ["sh", "-c", f"cat {FOLDER}/killed-in-case.log; for i in $(seq 400); do echo x; sleep 0.1; done"]
    began = time.monotonic()
    verdict = boot.follow(talks, tmp_path / "log", 3, silence=60)
    assert verdict.state == "hang" and 3 <= time.monotonic() - began < LIMIT


def signs(line: bytes) -> bool:
    """Whether a line reports a failure."""
    return b"not ok" in line or bool(console.read([line.decode(errors="replace")]).splats)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.sampled_from(sorted(name for name in KUNIT if TABLE[name]["passed"])), st.data())
def test_a_console_that_is_cut_never_passes(name: str, data: st.DataObject) -> None:
    """Cut the console at any place before its last verdict, also in the middle of a line."""
    whole = content(name)
    last = max(place for place in range(len(whole)) if whole.startswith((b"ok ", b"not ok "), place))
    cut = whole[: data.draw(st.integers(0, last))]
    found = cases(cut)
    assert any(case.state == "failed" for case in found) or not console.read(console.lines(cut)).finished


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.sampled_from(sorted(name for name in TABLE if TABLE[name]["failed"])), st.data())
def test_a_failure_stays_a_failure_if_a_line_is_lost(name: str, data: st.DataObject) -> None:
    lines = content(name).split(b"\n")
    one_sign = sum(map(signs, lines)) == 1
    places = [place for place, line in enumerate(lines) if not (one_sign and signs(line))]
    place = data.draw(st.sampled_from(places))
    lines[place] = data.draw(st.binary(max_size=20).filter(lambda text: b"\n" not in text))
    whole = b"\n".join(lines)
    said = console.read(console.lines(whole))
    assert any(case.state == "failed" for case in cases(whole)) or not said.complete


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.binary(max_size=300), st.sampled_from(sorted(TABLE)), st.integers(0, 20000))
def test_no_bytes_crash_a_reader(noise: bytes, name: str, place: int) -> None:
    whole = content(name)
    found = cases(whole[:place] + noise + whole[place:])
    assert results.junit(found, "x") and all(case.seconds >= 0 and case.suite for case in found)


@pytest.mark.parametrize(
    "line", ["1.." + "9" * 5000, "[" + "9" * 400 + ".0] ok 1 a", "ok 1  ", "ok 1 - # SKIP", "1..\u0663"]
)
def test_odd_lines_crash_no_reader(line: str) -> None:
    results.kunit(["KTAP version 1", line, "    # Subtest: s", line, "    ok 1 a", line])


PARSER = r"""
import io, json, sys
import kunit_parser, kunit_printer
printer = kunit_printer.Printer(io.StringIO()) if hasattr(kunit_printer, "Printer") else None
kunit_parser.stdout = printer
arguments = [printer] if kunit_parser.parse_run_tests.__code__.co_argcount > 1 else []
def leaves(test, path):
    if not test.subtests:
        return {".".join(path): test.status.name}
    return {name: state for one in test.subtests for name, state in leaves(one, (*path, one.name)).items()}
found = []
for file in sys.argv[1:]:
    with open(file, errors="replace") as lines:
        whole = kunit_parser.parse_run_tests(lines.read().splitlines(), *arguments)
    found.append([whole.status.name, leaves(whole, ()), whole.expected_count, whole.counts.errors])
print("\nRESULT", json.dumps(found))
"""
"""Runs the kernel's own parser on each file.

It gives the state of the whole, the state of each case and parameter, the number of suites, and the number of errors.
"""

TWICE = "twice-the-console"
"""In this console each line is twice. The parser reads the copies as suites inside of suites."""

PARSERS = sorted((Path.home() / ".cache/mmcheck/src").glob("linux-*/tools/testing/kunit"))


@pytest.mark.skipif(not PARSERS, reason="no kernel source is in ~/.cache/mmcheck/src: run kunit.py once")
def test_the_kernels_own_parser_agrees() -> None:
    """The parser agrees on each case with a verdict. If the parser finds a failure, we find a failure too."""
    states = {"SUCCESS": "passed", "SKIPPED": "skipped", "FAILURE": "failed"}
    files = [str(FOLDER / f"{name}.log") for name in KUNIT if name != TWICE]
    for folder in PARSERS:
        command = [sys.executable, "-c", PARSER, *files]
        done = subprocess.run(command, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True)
        compared = 0
        for file, (whole, theirs, _, _) in zip(files, json.loads(done.stdout.rpartition("RESULT ")[2]), strict=True):
            found = cases(Path(file).read_bytes())
            for case in found:
                state = states.get(theirs.get(f"{case.suite}.{case.name}".replace(": ", ".")), "")
                # The parser ignores splats, and has no verdict on a case that was still running.
                if state and not case.splat:
                    assert case.state == state, (folder, file, case)
                    compared += 1
            if whole in ("FAILURE", "TEST_CRASHED") and found:
                assert any(case.state == "failed" for case in found), (folder, file)
        assert compared > 500
