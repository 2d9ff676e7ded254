# SPDX-License-Identifier: GPL-2.0
"""The head of the page: the verdict in one sentence, and the kernels, tools and time of the runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core import progress
from ..kernel import identity as origin
from .failures import Failure
from .history import History
from .model import Met, Tests, plural, scope
from .records import Input, Run


@dataclass
class Verdict:
    """The sentence at the head of the page, and its kind, which gives the colour.

    kind:  "bad", "good" or "none" (nothing failed, but something has no verdict)
    words: the sentence
    """

    kind: str
    words: str


def changed(data: Input, history: History, now: Mapping[str, Mapping[str, str]]) -> tuple[list[str], int]:
    """The tests that failed in the last report and pass now, and the number of runs without a change."""
    fixed, same = [], 0
    for run in data.runs:
        own = now[run.name]
        fixed += [name for name, state in own.items() if state == "p" and history.was(run.name, name) in ("f", "k")]
        before = history.before.get(run.name, {})
        same += bool(before) and all(before.get(name) == state for name, state in own.items())
    return list(dict.fromkeys(fixed)), same


def verdict(
    data: Input, failed: Sequence[Failure], met: Sequence[Met], tests: Tests, history: History, fixed: int, same: int
) -> Verdict:
    """The results in one sentence."""
    if not data.runs:
        return Verdict("none", "This page has no test results, only the measurements below.")
    cells = "cell" if data.planned else "run"
    bad = [one for one in failed if one.verdict]
    none = [one for one in failed if not one.verdict]
    new = [one for one in bad if one.new]
    old = len(bad) - len(new)
    parts = []
    if new:
        parts.append(plural(len(new), "new failure"))
    if old and history.compares:
        parts.append(f"{plural(old, 'failure')} as before")
    elif old:
        parts.append(plural(old, "failure"))
    if not bad:
        parts.append(f"nothing failed, {len(tests.passed)} of {plural(tests.number, 'test')} passed")
    if tests.known:
        parts.append(f"{plural(len(tests.known), 'test')} known to fail")
    if fixed:
        parts.append(f"{fixed} fixed")
    if none:
        parts.append(f"{plural(len(none), cells)} without a verdict")
    hit = sum(bool(one.met) for one in met)
    if hit:
        parts.append(f"{plural(hit, 'known issue')} hit")
    if same:
        parts.append(f"{plural(same, cells)} as before")
    missing = len(data.planned) - sum(run.name in data.planned for run in data.runs)
    if missing > 0:
        parts.append(f"{missing} of {plural(len(data.planned), 'cell')} not run")
    where = list(dict.fromkeys(name for one in failed for name in one.runs)) or [run.name for run in data.runs]
    where = [full_name(next(run for run in data.runs if run.name == where[0])), *where[1:]]
    kind = "bad" if bad else "none" if none else "good"
    return Verdict(kind, f"{scope(where)}: {', '.join(parts)}.")


def full_name(run: Run) -> str:
    """The name of a run with the whole version of its kernel: `7.3.4 arm64 4K`."""
    short = run.spec.kernel if run.spec else ""
    return run.version + run.name.removeprefix(short) if short and run.version.startswith(f"{short}.") else run.name


def identity(data: Input) -> list[tuple[str, str]]:
    """The kernels, their sources, compilers and emulators, and the time of the runs."""
    seconds = sum(run.seconds for run in data.runs)
    named = {"Kernel": "version", "Source": "source", "Compiler": "compiler", "Emulator": "emulator"}
    found = []
    for title, name in named.items():
        every = dict.fromkeys(str(getattr(run, name)) for run in data.runs)
        found.append((title, ", ".join(sorted(filter(None, every)))))
    found += [("Time", progress.duration(seconds) if seconds else ""), ("mmcheck", origin.revision())]
    return [(name, words) for name, words in found if words]
