# SPDX-License-Identifier: GPL-2.0
"""make bench-compare: prints the numbers in which two results of make bench differ, side by side.

A= and B= each name a folder O=, or the run.json of a run. Counts must be the same. Times may differ by the spread
between runs, or by a few per cent.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from ..core.errors import UserError
from ..run import record
from . import bench_numbers

NOT_COMPARED = ("spread", "ns_min", "ns_max", "runs", "mib")
TOLERANCE = {"ns_median": 0.05, "ns": 0.02}
"""Fields that vary between runs, and the fraction by which they may vary. All other fields are exact.

A time derived from instructions depends on the moments of the timer interrupts: three runs differed by up to 1 %.
"""


def load(path: str) -> dict[tuple[str, str, str], dict[str, int]]:
    """The numbers of one result, by part, operation and kernel."""
    file = Path(path)
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    try:
        runs = record.data(file, "bench").values() if file.is_dir() else [json.loads(file.read_text())["data"]]
        for one in runs:
            for name, own in one["numbers"].items():
                found |= {(name, number["what"], number["run"]): number["fields"] for number in own}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        found = {}
    if not found:
        raise UserError(f"{path}: no result of make bench; name an O= folder, or a run.json in its runs/")
    return found


def verdict(name: str, a: Mapping[str, int], b: Mapping[str, int]) -> str:
    """The difference of two values of a field; "" if they are equal, or if they differ within spread or tolerance."""
    if name not in TOLERANCE:
        return "" if a[name] == b[name] else "differs"
    apart, spread = abs(a[name] - b[name]), max(a.get("spread", 0), b.get("spread", 0))
    if apart <= 3 * spread or apart < TOLERANCE[name] * max(a[name], b[name]):
        return ""
    return "faster" if b[name] < a[name] else "slower"


def compare(a: str, b: str) -> str:
    """A table of the numbers in which two results differ."""
    one, two = load(a), load(b)
    both = [key for key in one if key in two]
    if not both:
        raise UserError(f"{a} and {b} have no measurement in common; run make bench with the same ONLY= for both")
    table = bench_numbers.Table("", ["what", "kernel", "of", "#A", "#B", "#B/A", "verdict"])
    same = 0
    for key in both:
        for name in one[key]:
            if name not in two[key] or name in NOT_COMPARED or key[1] == "clock_step":
                continue
            said = verdict(name, one[key], two[key])
            same += not said
            if said:
                x, y = one[key][name], two[key][name]
                table.rows.append([key[1], key[2], name, str(x), str(y), f"{y / x:.3f}" if x else "-", said])
    lines = bench_numbers.text(table).splitlines()[1:] if table.rows else []
    return "\n".join([*lines, f"{len(table.rows)} of {len(table.rows) + same} numbers differ"])


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    if not (environ.get("A") and environ.get("B")):
        raise UserError("no results to compare; name two folders, as in A=out B=other/out")
    print(compare(environ["A"], environ["B"]))
    return 0
