# SPDX-License-Identifier: GPL-2.0
"""The failures on the page: the output of each test, the command that repeats it, the text of a mail."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..boot import results
from ..kernel import known_issues
from ..run import closing
from . import entries
from .history import History
from .model import plural
from .records import Input, Run

TEXT_LINES = 80
"""The page shows at most this many lines of the output of a failed case. The log has all lines."""
LINE = 400
"""The page shows at most this many characters of each line."""
MAIL_LINES = 20
LISTS = {
    "arm64": "linux-arm-kernel@lists.infradead.org",
    "riscv": "linux-riscv@lists.infradead.org",
    "s390": "linux-s390@vger.kernel.org",
    "um": "linux-um@lists.infradead.org",
}
"""The mailing list of each architecture. All mails also go to linux-mm."""
CARDS = 40
"""At most this many failures have a card. Each other failure has one line, so that the page stays small."""


@dataclass
class Failure:
    """One test that failed, or a cell without a verdict.

    name:   the name of the test
    runs:   the runs in which it failed
    new:    the runs in which it did not fail in the last report; None if there is no earlier report
    entry:  the first wrong entry
    walk:   the seed of a random walk, and the shortest sequence that fails
    again:  the command that repeats the test
    said:   what the test printed, cut to TEXT_LINES
    splat:  whether the kernel warned or died
    issues: known issues that name this test, but that do not explain the failure
    seen:   the run that printed most lines about the failure
    verdict: True if a test failed, False if a cell has no verdict
    """

    name: str
    runs: list[str]
    new: list[str] | None
    seen: Run
    entry: entries.Entry | None = None
    walk: entries.Walk | None = None
    again: str = ""
    said: list[str] = field(default_factory=list)
    splat: bool = False
    issues: list[known_issues.Issue] = field(default_factory=list)
    verdict: bool = True

    @property
    def anchor(self) -> str:
        """The id of its card on the page."""
        return "failure-" + re.sub(r"\W+", "-", self.name).strip("-")

    @property
    def first(self) -> str:
        """What is wrong, in one line."""
        if self.walk and self.walk.steps:
            return f"goes wrong after {plural(len(self.walk.steps), 'step')}"
        if self.entry and self.entry.sentence:
            return self.entry.sentence
        return results.reason(self.said)

    @property
    def mail(self) -> str:
        """Text for a mail to the list."""
        lists = ", ".join(filter(None, (LISTS.get(self.seen.arch), "linux-kernel@vger.kernel.org")))
        lines = ["To: linux-mm@kvack.org", f"Cc: {lists}"]
        lines += [f"Subject: [BUG] {self.name} fails on {self.seen.version or self.runs[0]}", "", "Hi,", ""]
        lines += [f"mmcheck reports a failure of {self.name} on:", ""]
        lines += [f"  {name}" for name in self.runs]
        it = self.seen
        known = {"Kernel": it.version, "Source": it.source, "Compiler": it.compiler, "Emulator": it.emulator}
        lines += ["", *(f"{name}: {words}" for name, words in known.items() if words)]
        if self.entry:
            lines += ["", f"  {self.entry.title} is {self.entry.got}, expected {self.entry.want}"]
            lines += [f"  ({self.entry.sentence})"]
        if self.walk and self.walk.steps:
            lines += ["", "Shortest sequence of calls:"] + [f"  {n}: {s}" for n, s in enumerate(self.walk.steps)]
        lines += ["", "To repeat it:", "", f"  {self.again or 'the command that ran it'}", ""]
        lines += ["What the test says:", "", *(f"  {line}" for line in self.said[:MAIL_LINES]), ""]
        lines += ["Reported-by: YOUR NAME <you@example.org>"]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def failures(data: Input, history: History) -> list[Failure]:
    """All failures, each test once: new failures, then cells without a verdict, then older failures."""
    table = known_issues.load()
    found: dict[str, Failure] = {}
    for run in data.runs:
        if run.state == "none":
            name = f"No verdict on {run.name}"
            found[name] = Failure(name, [run.name], None, run, again=run.command, said=[run.why], verdict=False)
        for case in run.cases:
            if case.state == "failed":
                name = case.full
                failure = found.setdefault(name, Failure(name, [], [] if history.compares else None, run))
                if run.name not in failure.runs:
                    failure.runs.append(run.name)
                if failure.new is not None and history.was(run.name, name) != "f" and run.name not in failure.new:
                    failure.new.append(run.name)
                if len(case.text) > len(failure.said):
                    _describe(failure, run, case, table)
                elif not failure.again:
                    failure.seen, failure.again = run, run.again(case)
    fresh = [one for one in found.values() if one.verdict and (one.new or one.new is None)]
    none = [one for one in found.values() if not one.verdict]
    rest = [one for one in found.values() if one.verdict and one not in fresh]
    return [one for part in (fresh, none, rest) for one in sorted(part, key=lambda one: -len(one.runs))]


def _describe(failure: Failure, run: Run, case: results.Case, table: Sequence[known_issues.Issue]) -> None:
    """Describe a failure by the output of one run."""
    failure.entry, failure.walk = entries.find(case.text, run.arch), entries.walk(case.text)
    more = len(case.text) - TEXT_LINES
    lines = [line[:LINE] for line in case.text[:TEXT_LINES]]
    failure.said = [*lines, *([f"and {more} more lines in {run.log}"] if more > 0 else [])]
    failure.splat = case.splat
    failure.seen, failure.again = run, run.again(case)
    seed = [word for value in closing.seed(case) for word in ("--kernel_args", value)]
    if failure.again and seed and "kunit.py" in failure.again:
        head, _, glob = failure.again.rpartition(" ")
        failure.again = " ".join([head, *seed, glob])
    own = case.name.partition(":")[0]
    failure.issues = [issue for issue in table if f"{case.suite}.{own}" in issue.tests]
