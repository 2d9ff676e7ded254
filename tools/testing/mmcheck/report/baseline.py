# SPDX-License-Identifier: GPL-2.0
"""Adds the failures of the last runs below O= to the file BASELINE=, as known failures of this tree.

The command only adds entries, and keeps all entries of the file. A= names one run. Without A= the command reads the
last run of each name. A later run with this BASELINE= passes if nothing else fails. Edit the file to give your reasons.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..boot import results
from ..core import progress
from ..core.errors import PASSED, UserError
from ..core.settings import out_of
from ..run import baseline, record
from .compare import found

LENGTH = 200
"""The reason in an entry quotes at most this many characters of the output of the test."""

FAILING = ("failed", results.KNOWN)


def entries(runs: Sequence[record.Record]) -> list[baseline.Entry]:
    """An entry for each case that failed in one of the runs."""
    most: Counter[str] = Counter()
    where: dict[str, set[tuple[str, str]]] = {}
    said: dict[str, results.Case] = {}
    for one in runs:
        failed = [case for case in one.cases if case.state in FAILING]
        most |= Counter(case.full for case in failed)
        for case in failed:
            where.setdefault(case.full, set()).add((one.arch, one.pages))
            said[case.full] = max(case, said.get(case.full, case), key=lambda it: it.splat)
    return [
        baseline.entry(
            name,
            results.reason(case.text[case.state == results.KNOWN :])[:LENGTH],
            most[name],
            case.splat,
            {arch for arch, _ in where[name]},
            {pages for _, pages in where[name]} if all(pages for _, pages in where[name]) else (),
        )
        for name, case in said.items()
    ]


def fixed(runs: Sequence[record.Record]) -> Iterable[str]:
    """The lines about entries with failures that are fixed, each line once."""
    lines = (line for one in runs for case in one.cases for line in case.remarks)
    return dict.fromkeys(line for line in lines if line.startswith(baseline.FIXED))


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    out = out_of(environ)
    if not environ.get("BASELINE"):
        raise UserError("BASELINE= is missing: give the file that lists the known failures, for example baseline.toml")
    file = Path(environ["BASELINE"]).expanduser().absolute()
    old = baseline.load(file) if file.exists() else baseline.Baseline(file)
    runs = [found(out, "A", environ["A"])] if environ.get("A") else record.latest(out)
    if not runs:
        raise UserError(f"no results in {out}: run kunit.py or make kselftest first, or set O=")
    for one in runs:
        if one.state == "none":
            progress.say(f"{one.name} is left out: it has no verdict ({one.why or 'no test ran'})")
    runs = [one for one in runs if one.state != "none"]
    if not runs:
        raise UserError(f"no run below {out} has a verdict: run the tests again, or set O=")
    missing = old.missing(entries(runs))
    new = [one for one in missing if not old.hidden(one)]
    if new or not file.exists():
        baseline.add(file, new)
    for entry in new:
        print(f"{entry.case}: {entry.why}")
    for line in fixed(runs):
        progress.say(line)
    if hidden := [one for one in missing if one not in new]:
        needs = {one.case: [f"fails = {one.fails}"] * (one.fails > 0) + ["splat = true"] * one.splat for one in hidden}
        named = "; ".join(f"{case} needs {' and '.join(keys)}" for case, keys in needs.items())
        what = f"{len(new)} failures added; these entries of {file} do not accept all failures that match them"
        raise UserError(f"{what}: {named}")
    progress.say(f"{len(new)} failures added to {file}" if new else f"{file} already lists all failures")
    return PASSED
