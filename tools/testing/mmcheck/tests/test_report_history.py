# SPDX-License-Identifier: GPL-2.0
"""The history of reports: new failures, fixed tests, and tests without a change."""

from pathlib import Path

from mmcheck.report import heat, history

GOOD = {"7.3 um": {"s.a": "p", "s.b": "p"}, "6.12 um": {"s.a": "p"}}
BAD = {"7.3 um": {"s.a": "p", "s.b": "f"}, "6.12 um": {"s.a": "p"}}


def reported(path: Path, states: history.States, when: str) -> history.History:
    found = history.read(path, states, {"when": when, "what": history.digest(states)})
    history.write(path, found.lines)
    return found


def test_a_report_has_only_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    first = reported(path, GOOD, "1")
    assert not first.compares
    second = reported(path, BAD, "2")
    assert second.compares and second.was("7.3 um", "s.b") == "p" and second.was("7.3 um", "s.new") == ""
    assert second.lines[-1]["changes"] == {"7.3 um": {"f": ["s.b"]}}
    assert heat.tracks(second) == {"7.3 um": {"s.b": [(0, "p"), (1, "f")]}}
    third = reported(path, GOOD, "3")
    assert third.tracks["7.3 um"]["s.b"] == [(0, "p"), (1, "f"), (2, "p")]
    assert third.times == ["1", "2", "3"]
    assert heat.tracks(third) == {"7.3 um": {"s.b": [(0, "p"), (1, "f"), (2, "p")]}}


def test_the_same_records_twice_make_nothing_old(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    reported(path, GOOD, "1")
    reported(path, BAD, "2")
    again = reported(path, BAD, "3")
    assert again.was("7.3 um", "s.b") == "p" and len(path.read_text().splitlines()) == 2
    assert again.times == ["1", "3"]


def test_a_run_that_is_not_repeated_keeps_its_states(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    reported(path, BAD, "1")
    reported(path, {"6.12 um": {"s.a": "p"}}, "2")
    assert reported(path, GOOD, "3").was("7.3 um", "s.b") == "f"


def test_events_name_each_test_once_with_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    reported(path, GOOD, "1")
    reported(path, {run: {"s.a": "f"} for run in GOOD}, "2")
    latest, middle, first = heat.events(reported(path, GOOD, "3"))
    assert (latest.when, middle.when, first.when) == ("3", "2", "1")
    assert middle.failed == ("s.a: 7.3 um and 1 more",) and middle.fixed == ()
    assert latest.fixed == ("s.a: 7.3 um and 1 more",) and latest.failed == ()
    assert first.failed == first.fixed == () and first.runs == "2 runs with a change"


def test_a_file_that_is_damaged_or_of_another_kind_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("{not json\n")
    assert not reported(path, GOOD, "1").compares
    path.write_text('{"when": "1", "runs": {"matrix": {}}}\n')
    assert not reported(path, GOOD, "2").compares
