# SPDX-License-Identifier: GPL-2.0
"""Compares two runs: lists the cases with different verdicts, and the cases that ran in only one of the runs.

A= and B= each name a run: by its folder below O/runs/, or by a name that `make results` prints. If several runs have
this name, the last one counts.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from ..boot import results
from ..core.errors import FAILED, NO_VERDICT, UserError
from ..core.settings import out_of
from ..run import compare, record

ABSENT = "did not run"


def found(out: Path, variable: str, name: str) -> record.Record:
    """The record that a variable names. Raises UserError if there is none."""
    runs = [one for one in record.every(out) if one.state != "running" and one.kind in record.TESTS]
    own = [one for one in runs if name in (one.id, one.name)]
    if not own:
        names = ", ".join(sorted({one.name for one in runs})) or "none"
        raise UserError(f"{variable}={name}: no run below {out} has this name or ID; choose from {names}")
    return own[-1]


def differences(one: record.Record, two: record.Record) -> list[tuple[str, str, str]]:
    """The cases with different verdicts in the two runs: name, old verdict, new verdict; new failures first."""
    old, new = compare.states(one.cases), compare.states(two.cases)
    changed = [(name, old.get(name, ABSENT), new.get(name, ABSENT)) for name in sorted({**old, **new})]
    return sorted((one for one in changed if one[1] != one[2]), key=lambda one: one[2] != "failed")


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status, as kunit.py run --base does."""
    out = out_of(environ)
    for name in ("A", "B"):
        if not environ.get(name):
            raise UserError(f"{name}= is missing: give two runs, A= and B=")
    one, two = found(out, "A", environ["A"]), found(out, "B", environ["B"])
    changed = differences(one, two)
    if environ.get("JSON") == "1":
        print(json.dumps({"a": one.id, "b": two.id, "changed": changed}, indent=1))
    else:
        width = max((len(name) for name, _, _ in changed), default=0)
        for name, old, new in changed:
            print(f"{name:{width}}  {old:11}  {new}")
        for which, it in (("A", one), ("B", two)):
            print(f"{which}: {it.state}: {results.summary(it.cases)}: {it.source or it.label}, {it.id}")
    status = compare.difference(one.cases, two.cases).status
    return NO_VERDICT if status != FAILED and "none" in (one.state, two.state) else status
