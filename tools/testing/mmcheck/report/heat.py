# SPDX-License-Identifier: GPL-2.0
"""The table of cells, and the data of the heat map. These data have every case in every cell, and fit into the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..boot import results
from ..core import progress
from ..mutants.killmatrix import ranges
from .failures import LINE
from .history import History
from .model import LETTER, RANK, plural, scope
from .records import Input, Run

ABSENT = "."


@dataclass(frozen=True)
class Square:
    """A cell in the table of cells.

    kind:  "passed", "failed", "none" (no verdict), "missing" (not run) or "" (not in the table)
    mark:  the short text in the square
    words: the meaning of the mark
    """

    name: str = ""
    kind: str = ""
    mark: str = ""
    words: str = ""


def _square(name: str, run: Run | None) -> Square:
    if run is None:
        return Square(name, "missing", "", "not run")
    if run.state == "none":
        return Square(name, "none", "?", f"no verdict: {run.why}")
    count = results.counts(run.cases)
    said = [f"{number} {state}" for state, number in count.items() if number]
    words = ", ".join([*said, *([progress.duration(run.seconds)] if run.seconds else [])])
    mark = f"✗ {count['failed']}" if count["failed"] else f"✓ {count['passed']}"
    return Square(name, "failed" if count["failed"] else "passed", mark, words)


def squares(data: Input) -> tuple[list[str], list[tuple[str, list[Square]]]]:
    """The table of cells: the titles of its columns, and its rows."""
    runs = {run.name: run for run in data.runs}
    columns = list(dict.fromkeys(data.places[name][1] for name in data.planned))
    rows: dict[str, dict[str, Square]] = {}
    for name in data.planned:
        row, column = data.places[name]
        rows.setdefault(row, {})[column] = _square(name, runs.get(name))
    ordered = sorted(rows.items(), key=lambda item: not any(s.kind not in ("missing", "") for s in item[1].values()))
    table = [(row, [cells.get(column, Square()) for column in columns]) for row, cells in ordered]
    for run in data.runs:
        if run.name not in data.planned:
            table.append((run.name, [_square(run.name, run), *(Square() for _ in columns[1:])]))
    return [column or "plain" for column in columns] or ["result"], table


def cells(data: Input) -> list[tuple[str, Run | None]]:
    """The columns of the heat map: cells with a failure come first, cells that were not run come last."""
    runs = {run.name: run for run in data.runs}
    names = list(dict.fromkeys([*data.planned, *runs]))
    rank = {"failed": 0, "none": 1, "passed": 2}
    return sorted(
        ((name, runs.get(name)) for name in names), key=lambda item: rank[item[1].state] if item[1] else len(rank)
    )


def embedded(data: Input, history: History) -> dict[str, Any]:
    """The data of all cases for the heat map and the search. Numbers stand for cells, cases, texts and reports.

    cells:  name (n), state (k), counts (w), the command that runs it (a), its log (l), kernel and tools (i)
    suites: name (n), "selftest" or "" (k), its cases (c), and for each number of a cell: a letter for the state of each
            case (s), the texts of cases (t), the histories of cases (h). t and h map each text or history to the
            numbers of its cases. A history lists the number of a report and the letter of the new state, in order.
    texts:  each text once
    times:  the time of each report
    """
    columns = cells(data)
    texts: dict[str, int] = {}
    # A KUnit suite and a selftest may have the same name.
    suites: dict[tuple[str, str], dict[int, list[results.Case]]] = {}
    for column, (_, run) in enumerate(columns):
        for case in run.cases if run else []:
            suite = (case.suite, "selftest" if run and run.selftests else "")
            suites.setdefault(suite, {}).setdefault(column, []).append(case)
    names = [name for name, _ in columns]
    changed = tracks(history)
    found = [_suite(name, own, names, texts, changed) for name, own in suites.items()]
    found.sort(key=lambda suite: (-_worst(suite), str(suite["n"]), str(suite["k"])))
    return {
        "cells": [_cell(name, run) for name, run in columns],
        "suites": found,
        "texts": list(texts),
        "times": history.times,
    }


def _suite(
    suite: tuple[str, str],
    columns: Mapping[int, Sequence[results.Case]],
    cells_by_column: Sequence[str],
    texts: dict[str, int],
    changed: Mapping[str, Mapping[str, Sequence[tuple[int, str]]]],
) -> dict[str, Any]:
    """One suite in the data of embedded(). `columns` has its cases by number of a cell. Adds new texts to `texts`."""
    every = dict.fromkeys(case.name for own in columns.values() for case in own)
    names = {case: number for number, case in enumerate(every)}
    letters: dict[str, str] = {}
    said: dict[str, dict[str, str]] = {}
    tracked: dict[str, dict[str, str]] = {}
    for column, own in columns.items():
        states = [ABSENT] * len(names)
        by_text: dict[int, set[int]] = {}
        by_track: dict[str, set[int]] = {}
        for case in own:
            number = names[case.name]
            letter, before = LETTER[case.state], states[number]
            states[number] = letter if before == ABSENT else min(before, letter, key=RANK.index)
            if words := _said(case):
                by_text.setdefault(texts.setdefault(words, len(texts)), set()).add(number)
            if track := changed.get(cells_by_column[column], {}).get(case.full):
                by_track.setdefault(" ".join(f"{when}{state}" for when, state in track), set()).add(number)
        letters[str(column)] = "".join(states)
        if by_text:
            said[str(column)] = {str(text): ranges(numbers) for text, numbers in by_text.items()}
        if by_track:
            tracked[str(column)] = {track: ranges(numbers) for track, numbers in by_track.items()}
    return {"n": suite[0], "k": suite[1], "c": list(names), "s": letters, "t": said, "h": tracked}


def _worst(suite: Mapping[str, Any]) -> int:
    return sum("f" in letters for letters in suite["s"].values())


def _said(case: results.Case) -> str:
    """The text of a case in a list of cases. The card of a failure has the whole text."""
    if case.state == "failed":
        return results.reason(case.text)[:LINE]
    if case.state == results.KNOWN:
        return case.text[0][:LINE]
    return " ".join(case.text).strip()


def _cell(name: str, run: Run | None) -> dict[str, str]:
    if run is None:
        return {"n": name, "k": "missing", "w": "not run", "a": "", "l": "", "i": ""}
    square = _square(name, run)
    made = "; ".join(filter(None, (run.version, run.source, run.compiler, run.emulator)))
    return {"n": name, "k": square.kind, "w": square.words, "a": run.command, "l": run.log, "i": made}


def tracks(history: History) -> dict[str, dict[str, list[tuple[int, str]]]]:
    """For each run, the histories of cases that changed, and of cases that failed and are new in this report."""
    last = len(history.times) - 1
    found: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for run, own in history.tracks.items():
        for case, track in own.items():
            if len(track) > 1 or (last and track == [(last, "f")]):
                found.setdefault(run, {})[case] = track
    return found


@dataclass(frozen=True)
class Event:
    """The changes of a report: its time, and the tests that newly failed or passed again, each as `test: runs`."""

    when: str
    first: bool
    failed: tuple[str, ...]
    fixed: tuple[str, ...]
    runs: str


def events(history: History, shown: int = 20) -> list[Event]:
    """The changes of the last reports; the latest report comes first."""
    found: list[Event] = []
    seen: dict[tuple[str, str], str] = {}
    for line in history.lines:
        failed: dict[str, list[str]] = {}
        fixed: dict[str, list[str]] = {}
        for run, by_state in line["changes"].items():
            for state, names in by_state.items():
                for name in names:
                    before = seen.get((run, name), "")
                    if state == "f":
                        failed.setdefault(name, []).append(run)
                    elif before == "f" and state == "p":
                        fixed.setdefault(name, []).append(run)
                    seen[run, name] = state
        where = plural(len(line["changes"]), "run") + " with a change" if line["changes"] else "no change"
        found.append(Event(line["when"], not found, _where(failed), _where(fixed), where))
    return found[::-1][:shown]


def _where(tests: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"{name}: {scope(runs)}" for name, runs in tests.items())


def suites_of(runs: Sequence[Run]) -> int:
    """The number of suites that have a case in a run."""
    return len({(case.suite, run.selftests) for run in runs for case in run.cases})
