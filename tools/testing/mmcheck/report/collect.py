# SPDX-License-Identifier: GPL-2.0
"""`make results`: one summary of all results below O=, of KUnit and selftests, on all kernels.

Reads the console of the last run in each build folder and the results of the selftests. Writes all of them to
results.json and results.xml, and prints what failed.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..boot import results
from ..core import command, progress
from ..core.errors import UserError
from ..core.settings import out_of


def runs(out: Path) -> Iterator[tuple[str, list[results.Case]]]:
    """Each run below `out`: its name, and its cases."""
    for console in sorted(out.glob("build/*/test.log")):
        with console.open(errors="replace") as lines:
            cases = results.kunit(lines)
        if cases:
            yield f"kunit {console.parent.name}", cases
    for file in sorted(out.glob("kselftest/*/results.json")):
        yield f"kselftest {file.parent.name}", [results.Case(**case) for case in json.loads(file.read_text())["cases"]]


def run(out: Path) -> int:
    """The command; returns the exit status."""
    found = list(runs(out))
    if not found:
        raise UserError(f"no results in {out}: run kunit.py or make kselftest first, or set O=")
    width = max(len(name) for name, _ in found)
    every: list[results.Case] = []
    for name, cases in found:
        number = results.counts(cases)
        print(f"{name:{width}}  {'  '.join(f'{number[state]:5} {state}' for state in results.STATES)}")
        for case in cases:
            if case.state == "failed":
                print(f"    FAILED {case.suite}.{case.name}: {results.reason(case.text)}")
            elif case.state == "passed" and case.text:
                print(f"    STALE {case.suite}.{case.name}: {case.text[0]}")
            every.append(results.Case(f"{name} {case.suite}", *list(vars(case).values())[1:]))
    folder = out / "results"
    folder.mkdir(exist_ok=True)
    results.save(every, "mmcheck", folder)
    progress.say(f"{results.summary(every)}; results.json and results.xml in {folder}")
    return results.status(every)


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("results", lambda given: run(out_of(given)), environ)
