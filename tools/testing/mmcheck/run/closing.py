# SPDX-License-Identifier: GPL-2.0
"""The paragraph that ends a run: the verdict, the new failures, the place of the log, and the next command."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..boot.results import KNOWN, Case
from ..core.settings import VARIABLES
from ..kernel import known_issues
from ..kernel.toolchain import BOX, BOXED
from . import baseline

NAMED = 5
"""At most this many failures are named. The log lists all failures."""

REASONS = 5
"""At most this many reasons for skips are given. The log lists all reasons."""

NEW = "new failures (not known issues)"

KUNIT_PY = "./tools/testing/kunit/kunit.py"

_AS_KNOWN = re.compile(r"(?:^|:)known issue (\d+): (?!.*the source does not show it)")
_SEED = re.compile(r"(\w+\.seed=\d+)(?: (\w+\.steps=\d+))?")
_FAILURE = re.compile(r"(?:EXPECTATION|ASSERTION) FAILED|:Expected ")


def lines(verdict: str, details: Iterable[str], log: Path | str, then: str = "") -> list[str]:
    """The paragraph as lines. Empty details are left out.

    then: the command to type next, or "" if there is none
    """
    return [verdict, *filter(None, details), f"log: {log}", *([f"next: {then}"] if then else [])]


def named(what: str, names: Iterable[str]) -> str:
    """`what: a, b`: each name once, and at most NAMED of them; "" if there are no names."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return f"{what}: {', '.join(every[:NAMED])}{more}" if every else ""


def make(verb: str, environ: Mapping[str, str], *names: str, **variables: str) -> str:
    """The line `make verb` with `variables`, and with the variables of `environ` that choose kernel and output.

    names: further variables of `environ`
    """
    given = {**{name: environ[name] for name in (*VARIABLES, *names) if environ.get(name)}, **variables}
    words = (f"{name}={shlex.quote(value)}" for name, value in given.items() if not _implied(name, value))
    return " ".join([f"{BOX if BOXED in os.environ else 'make'} {verb}", *words])


def _implied(name: str, value: str) -> bool:
    """Whether the container sets this variable by itself."""
    return name == "O" and value == os.environ.get(BOXED)


def command(arguments: Sequence[str], glob: str, environ: Mapping[str, str]) -> str:
    """The line that runs only the cases `glob`, with the `arguments` (including the verb) and `environ` of the run."""
    return again([*arguments, glob], environ)


def again(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """The line that runs kunit.py with `arguments` and with the variables of `environ` that matter."""
    given = [name for name in VARIABLES if environ.get(name) or (name == "FEATURES" and name in environ)]
    given = [name for name in given if not _implied(name, environ[name])]
    variables = [f"{name}={shlex.quote(environ[name]) if environ[name] else ''}" for name in given]
    return " ".join([*variables, BOX if BOXED in os.environ else KUNIT_PY, *map(shlex.quote, arguments)])


def name(case: Case) -> str:
    """`suite.case` without a parameter, in the form that kunit.py takes."""
    own = case.name.partition(": ")[0]
    return f"{case.suite}.{own}" if own else case.suite


def met(cases: Sequence[Case]) -> list[int]:
    """The numbers of the known issues that cases met."""
    texts = (line for case in cases if case.state == "skipped" for line in case.text)
    return sorted({int(match[1]) for match in map(known_issues.MET.search, texts) if match})


def reasons(cases: Sequence[Case]) -> str:
    """Why cases were skipped, in one line, the most frequent reason first; "" if no case was skipped."""
    skipped = [case for case in cases if case.state == "skipped"]
    if not skipped:
        return ""
    found = Counter(_reason(" ".join(case.text).strip()) for case in skipped).most_common()
    parts = [f"{number} {reason}" for reason, number in found[:REASONS]]
    if rest := sum(number for _, number in found[REASONS:]):
        parts.append(f"{rest} for {len(found) - REASONS} other reason{'s' * (len(found) > REASONS + 1)}")
    return f"{len(skipped)} skipped: {', '.join(parts)}"


def _reason(text: str) -> str:
    """A short form of a reason: `known issue N`, or the reason without a size (`64K: `) at its beginning."""
    if match := known_issues.MET.match(text):
        return f"known issue {match[1]}"
    return re.sub(r"^\d+[KMG]: ", "", text) or "no reason given"


def predicted(case: Case) -> int:
    """The number of the known issue that explains all failed checks of a case (with STRICT=1); otherwise 0."""
    numbers = [int(match[1]) for match in map(_AS_KNOWN.search, case.text) if match]
    failures = sum(_FAILURE.search(line) is not None for line in case.text)
    return numbers[0] if numbers and failures <= len(numbers) else 0


def failures(cases: Iterable[Case], why: Mapping[str, str]) -> list[str]:
    """One line for the new failures, one for each known issue, and one for each reason in `why` (by case)."""
    groups: dict[str, list[str]] = {NEW: []}
    for case in cases:
        if case.state == "failed":
            number, reason = predicted(case), why.get(name(case))
            group = (
                f"failures of known issue {number}" if number else f"expected failures ({reason})" if reason else NEW
            )
            groups.setdefault(group, []).append(name(case))
    return [named(group, names) for group, names in groups.items()]


def seed(case: Case) -> list[str]:
    """The parameters that repeat a random walk that failed; empty for other cases."""
    match = next((match for match in map(_SEED.search, case.text) if match), None)
    return [value for value in match.groups() if value] if match else []


def compare(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """The line that runs the same tests on another kernel, to see whether they fail there too."""
    own = {name: value for name, value in environ.items() if name not in ("KDIR", "PATCH", "KERNEL", "BASELINE")}
    if not (environ.get("KDIR") or environ.get("PATCH")):
        own["KERNEL"] = "6.12" if environ.get("KERNEL", "").startswith("7") else "7.3"
    return f"{again(arguments, own)}  # do these tests also fail on this kernel?"


def paragraph(
    cases: Sequence[Case], log: Path | str, again: Mapping[str, str], why: Mapping[str, str] | None = None
) -> list[str]:
    """The paragraph about all cases of a run; empty if there are no cases.

    again: by name of a case, the line that runs it alone
    why:   by name of a case, the reason of a failure that is expected
    """
    if not cases:
        return []
    count = {state: sum(case.state == state for case in cases) for state in ("passed", "failed", "skipped")}
    issues = met(cases)
    numbers = f", known issue {', '.join(map(str, issues))} among them" if issues else ""
    known = [name(case) for case in cases if case.state == KNOWN]
    verdict = "FAILED" if count["failed"] else "passed" if count["passed"] or known else "nothing was tested"
    old = f", {len(known)} known to this tree" if known else ""
    failed = [case for case in cases if case.state == "failed"]
    # A random walk prints the shortest sequence of calls that fails, so it is the best case to repeat.
    failed.sort(key=lambda case: (bool(predicted(case)), not seed(case)))
    return lines(
        f"{verdict}: {count['failed']} failed, {count['passed']} passed, {count['skipped']} skipped{numbers}{old}",
        [*failures(cases, why or {}), *baseline.notes(cases), named("known to this tree", known), reasons(cases)],
        log,
        again[name(failed[0])] if failed else "",
    )
