# SPDX-License-Identifier: GPL-2.0
"""The paragraph that ends a run: the verdict, what is new in it, where the log is, and the one next command."""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import known_issues
from .results import Case
from .settings import VARIABLES

NAMED = 5
"""At most so many failed cases are named; the log has all."""

REASONS = 5
"""At most so many reasons of skips are given; the log has all."""

KUNIT_PY = "./tools/testing/kunit/kunit.py"


def command(arguments: Sequence[str], glob: str, environ: Mapping[str, str]) -> str:
    """The line that runs the cases `glob` alone, as `arguments` (with their verb) ran all, in the same environment."""
    given = [name for name in VARIABLES if environ.get(name) or (name == "FEATURES" and name in environ)]
    variables = [f"{name}={shlex.quote(environ[name]) if environ[name] else ''}" for name in given]
    return " ".join([*variables, KUNIT_PY, *map(shlex.quote, [*arguments, glob])])


def name(case: Case) -> str:
    """`suite.case` without a parameter, as kunit.py takes it."""
    own = case.name.partition(":")[0]
    return f"{case.suite}.{own}" if own else case.suite


def met(cases: Sequence[Case]) -> list[int]:
    """The numbers of the known issues that cases met."""
    texts = (line for case in cases if case.state == "skipped" for line in case.text)
    return sorted({int(match[1]) for match in map(known_issues.MET.search, texts) if match})


def reasons(cases: Sequence[Case]) -> str:
    """Why cases were skipped, in one line, the most frequent reason first; "" where none was."""
    skipped = [case for case in cases if case.state == "skipped"]
    if not skipped:
        return ""
    found = Counter(_reason(" ".join(case.text).strip()) for case in skipped).most_common()
    parts = [f"{number} {reason}" for reason, number in found[:REASONS]]
    if rest := sum(number for _, number in found[REASONS:]):
        parts.append(f"{rest} for {len(found) - REASONS} other reason{'s' * (len(found) > REASONS + 1)}")
    return f"{len(skipped)} skipped: {', '.join(parts)}"


def _reason(text: str) -> str:
    """A reason without the numbers in which the cases of one reason differ."""
    if match := known_issues.MET.match(text):
        return f"known issue {match[1]}"
    return re.sub(r"^\d+[KMG]: ", "", text) or "no reason given"


def paragraph(cases: Sequence[Case], log: Path, again: Mapping[str, str]) -> list[str]:
    """What to say of all cases of a run; nothing where there was none.

    again: by name of a case, the line that runs it alone
    """
    if not cases:
        return []
    count = {state: sum(case.state == state for case in cases) for state in ("passed", "failed", "skipped")}
    issues = met(cases)
    numbers = f", known issue {', '.join(map(str, issues))} among them" if issues else ""
    verdict = "FAILED" if count["failed"] else "passed"
    lines = [f"{verdict}: {count['failed']} failed, {count['passed']} passed, {count['skipped']} skipped{numbers}"]
    failed = list(dict.fromkeys(name(case) for case in cases if case.state == "failed"))
    if failed:
        more = f" and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
        lines.append(f"failed: {', '.join(failed[:NAMED])}{more}; none of them is a known issue")
    if why := reasons(cases):
        lines.append(why)
    lines.append(f"log: {log}")
    if failed:
        lines.append(f"next: {again[failed[0]]}")
    return lines
