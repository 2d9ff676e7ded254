# SPDX-License-Identifier: GPL-2.0
"""`make results`: one summary of all results below O=, of KUnit and selftests, on all kernels.

The command reads the last record of each run. It writes all cases to results.json and results.xml, and prints the
failed cases.
"""

from collections.abc import Mapping
from pathlib import Path

from ..boot import results
from ..core import output, progress
from ..core.errors import FAILED, NO_VERDICT, UserError
from ..core.settings import out_of
from ..run import baseline, record

FOLDER = "results"
"""The folder below O= with the summary."""


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    out = out_of(environ)
    with output.as_json(environ, (out / FOLDER / "results.json").read_text):
        return summary(out)


def summary(out: Path) -> int:
    """Print and write the summary of the results below `out`. Returns the exit status."""
    found = record.latest(out)
    if not found:
        raise UserError(f"no results in {out}: run kunit.py or make kselftest first, or set O=")
    width = max(len(one.name) for one in found)
    every: list[results.Case] = []
    for one in found:
        number = results.counts(one.cases)
        print(f"{one.name:{width}}  {'  '.join(f'{count:5} {state}' for state, count in number.items())}")
        if one.state == "none":
            print(f"    NO VERDICT: {one.why or 'no test ran'}")
        for case in one.cases:
            if case.state == "failed":
                print(f"    FAILED {case.suite}.{case.name}: {results.reason(case.text)}")
            elif case.state == results.KNOWN:
                print(f"    KNOWN {case.suite}.{case.name}: {case.text[0]}")
            for line in case.remarks:
                print(f"    {'FIXED' if line.startswith(baseline.FIXED) else 'STALE'} {case.suite}.{case.name}: {line}")
            every.append(results.Case(f"{one.name} {case.suite}", *list(vars(case).values())[1:]))
    folder = out / FOLDER
    folder.mkdir(exist_ok=True)
    results.save(every, "mmcheck", folder)
    progress.say(f"{results.summary(every)}; results.json and results.xml in {folder}")
    status = results.status(every)
    return NO_VERDICT if status != FAILED and any(one.state == "none" for one in found) else status
