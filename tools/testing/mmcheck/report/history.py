# SPDX-License-Identifier: GPL-2.0
"""What earlier reports said of each case: O/report/history.jsonl, one line per report.

A line has only the states that changed since the line before, so the file stays small. A report of the same results as
the last report adds no line, so its failures stay new.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import disk

States = Mapping[str, Mapping[str, str]]
"""By name of a run and of a case, the first letter of its state."""


@dataclass
class History:
    """All reports, the oldest first.

    lines:  as the file has them
    before: the states in the report before this one
    times:  when each report was made
    tracks: by run and case, the states in turn: (number of the report, state)
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
    """For each run and state, the cases that have another state now."""
    found: dict[str, dict[str, list[str]]] = {}
    for run, cases in now.items():
        old = before.get(run, {})
        for case, state in cases.items():
            if old.get(case) != state:
                found.setdefault(run, {}).setdefault(state, []).append(case)
    return found


def read(path: Path, now: States, stamp: Mapping[str, str]) -> History:
    """The reports in `path`, and this report as the last line.

    stamp: `when` this report is made, and in `what` the digest of its states
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
