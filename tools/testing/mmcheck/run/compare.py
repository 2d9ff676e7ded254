# SPDX-License-Identifier: GPL-2.0
"""kunit.py run --base: runs the same tests on two kernels, and judges the difference."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..boot.results import KNOWN, Case
from ..core import dry, progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import from_environment
from ..kernel import checkout, toolchain
from . import closing
from .launch import Launch

UNPATCHED = "unpatched"
"""This value of `--base` means the same tree without the patch."""

RANK = {"passed": 0, "skipped": 1, "failed": 2}


@dataclass(frozen=True)
class Difference:
    """The cases of two runs, by `suite.case`.

    new:   failed, and did not fail before
    lost:  did not run or was skipped, and did run before
    still: failed, and failed before
    fixed: passed, and failed before
    added: passed, and did not run or was skipped before
    same:  how many other cases have the same verdict
    """

    new: tuple[str, ...]
    lost: tuple[str, ...]
    still: tuple[str, ...]
    fixed: tuple[str, ...]
    added: tuple[str, ...]
    same: int

    @property
    def status(self) -> int:
        """The exit status: a test that no longer runs could hide a failure."""
        return FAILED if self.new or self.lost else PASSED

    def lines(self) -> list[str]:
        """The difference in words, the verdict first."""
        count = len(self.new)
        verdict = f"{count} new failure{'s' * (count != 1)}, {len(self.fixed)} fixed, {len(self.still)} still failing"
        lost = f", {len(self.lost)} lost" if self.lost else ""
        return [
            f"{'FAILED' if self.status else 'passed'}: {verdict}{lost}, {self.same} as before",
            *filter(
                None,
                [
                    closing.named("new failures", self.new),
                    closing.named("lost (ran before, and do not run now)", self.lost),
                    closing.named("fixed", self.fixed),
                    closing.named("still failing", self.still),
                    closing.named("run for the first time", self.added),
                ],
            ),
        ]


def states(cases: Iterable[Case]) -> dict[str, str]:
    """The state of each case by its full name; the worst, if several cases share a name.

    A known failure counts as a failure here: a run is compared with another run, not with a list of known failures.
    """
    found: dict[str, str] = {}
    for case in cases:
        state = "failed" if case.state == KNOWN else case.state
        found[case.full] = max(found.get(case.full, "passed"), state, key=lambda state: RANK[state])
    return found


def difference(before: Iterable[Case], after: Iterable[Case]) -> Difference:
    """Compare the cases of two runs."""
    old, new = states(before), states(after)
    found: dict[str, list[str]] = {"new": [], "lost": [], "still": [], "fixed": [], "added": []}
    same = 0
    for name in dict.fromkeys([*new, *old]):
        was, now = old.get(name, "absent"), new.get(name, "absent")
        if now == "failed":
            found["still" if was == "failed" else "new"].append(name)
        elif now != "passed" and was in ("passed", "failed"):
            found["lost"].append(name)
        elif now == "passed" and was != "passed":
            found["fixed" if was == "failed" else "added"].append(name)
        else:
            same += 1
    return Difference(**{key: tuple(names) for key, names in found.items()}, same=same)


@contextlib.contextmanager
def base_of(name: str, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The variables that choose the kernel `name` during a block. Raises UserError if there is no such kernel."""
    without = {key: value for key, value in environ.items() if key != "PATCH"}
    if name == UNPATCHED:
        if not environ.get("PATCH"):
            raise UserError(f"--base {UNPATCHED} needs a patch: add --apply FILE")
        yield without
        return
    settings = from_environment(without, "arm64")
    if not settings.kdir:
        raise UserError(f"--base {name}: a packaged kernel has no commits. Set KDIR=, or use --base {UNPATCHED}")
    commit = checkout.commit(settings.kdir, name)
    tree = checkout.Checkout(settings.kdir, settings.out, "base")
    with tree.hold():
        tree.go(commit)
        yield {**without, "KDIR": str(tree.folder)}


def both(
    name: str, environ: Mapping[str, str], prepared: Callable[[Mapping[str, str]], Launch]
) -> tuple[Difference, Launch]:
    """Run the tests on the kernel `name`, then on the user's kernel; returns the difference, and the second run.

    prepared: prepares the run that the user asked for, with the variables that it gets
    Raises UserError if one of the kernels has no verdict.
    """
    toolchain.advise()
    cases: list[Sequence[Case]] = []
    for word, kernel in (("before", base_of(name, environ)), ("after", contextlib.nullcontext(environ))):
        with kernel as variables, dry.part():
            try:
                launch = prepared(variables)
                progress.say(f"{word}: linux {launch.label}")
                launch.run()
            except UserError as error:
                raise UserError(f"{word}: {error}") from None
            cases.append(launch.cases)
    return difference(*cases), launch


def run(name: str, environ: Mapping[str, str], prepared: Callable[[Mapping[str, str]], Launch], repeat: str) -> int:
    """Compare the kernel `name` with the user's kernel, and print the difference; returns the exit status.

    prepared: as for both()
    repeat:   the line that repeats this comparison
    """
    found, launch = both(name, environ, prepared)
    verdict, *details = found.lines()
    for line in closing.lines(verdict, details, launch.log, repeat if found.status else ""):
        progress.say(line)
    return found.status
