# SPDX-License-Identifier: GPL-2.0
"""The states of each case in earlier reports: O/report/history.jsonl, one line per report.

A line has only the states that changed since the line before, so the file stays small. If the results are the same as
in the last report, this report replaces the last line. So the failures that were new in that report are still new.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import disk

States = Mapping[str, Mapping[str, str]]
"""`states[run][case]` is the first letter of the state of this case in this run."""


@dataclass
class History:
    """All reports; the oldest report comes first.

    lines:  the lines of the file
    before: the states in the report before this one
    times:  the time of each report
    tracks: the history of each case, by run and case: each new state as (number of the report, state)
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    before: dict[str, dict[str, str]] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    tracks: dict[str, dict[str, list[tuple[int, str]]]] = field(default_factory=dict)

    @property
    def compares(self) -> bool:
        """Whether there is an earlier report."""
        return bool(self.before)

    def was(self, run: str, case: str) -> str:
        """The state of a case in the report before this one, or ""."""
        return self.before.get(run, {}).get(case, "")


def digest(states: States) -> str:
    """A digest that identifies these states."""
    return hashlib.sha256(json.dumps(states, sort_keys=True).encode()).hexdigest()[:16]


def changes(before: States, now: States) -> dict[str, dict[str, list[str]]]:
    """The cases that have another state now, by run and new state."""
    found: dict[str, dict[str, list[str]]] = {}
    for run, cases in now.items():
        old = before.get(run, {})
        for case, state in cases.items():
            if old.get(case) != state:
                found.setdefault(run, {}).setdefault(state, []).append(case)
    return found


def read(path: Path, now: States, stamp: Mapping[str, str]) -> History:
    """The reports in `path`, and this report as the last line.

    stamp: `when` has the time of this report, `what` has the digest of its states
    """
    try:
        old = [line for line in map(json.loads, path.read_text().splitlines()) if "changes" in line]
    except (OSError, ValueError):
        old = []
    if old and old[-1].get("what") == stamp["what"]:
        old.pop()
    result = History(old)
    for line in old:
        _apply(result, line)
    result.before = {run: {case: track[-1][1] for case, track in own.items()} for run, own in result.tracks.items()}
    line = {**stamp, "changes": changes(result.before, now)}
    result.lines = [*old, line]
    _apply(result, line)
    return result


def _apply(history: History, line: dict[str, Any]) -> None:
    number = len(history.times)
    history.times.append(line["when"])
    for run, by_state in line["changes"].items():
        tracks = history.tracks.setdefault(run, {})
        for state, cases in by_state.items():
            for case in cases:
                tracks.setdefault(case, []).append((number, state))


def write(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the reports."""
    disk.replace(path, "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode())
