# SPDX-License-Identifier: GPL-2.0
"""Compares the verdicts without patches and with them: is the issue fixed, and did other tests keep their verdicts?"""

import dataclasses
from collections.abc import Mapping

from ..kernel.known_issues import Issue


def reproducer(issue: Issue) -> str:
    """The name that a reproducer of an issue has."""
    return f"known-issue-{issue.number}"


def met(before: Mapping[str, str] | None, after: Mapping[str, str]) -> bool:
    """Whether any test, or the reproducer, meets an issue on this architecture with this page size."""
    return "failed" in (before or {}).values() or "stale" in after.values()


def wrong(before: Mapping[str, str] | None, after: Mapping[str, str], alone: str) -> str:
    """The contradiction in the verdicts of an issue's tests and of its reproducer `alone`; "" if there is none."""
    tests = {test: verdict for test, verdict in after.items() if test != alone}
    if "failed" in after.values():
        return "a test fails with the patch"
    if not met(before, after):
        return ""
    if "passed" in tests.values() and "stale" not in tests.values():
        return "no test reports that the issue is stale"
    if before is None:
        return ""
    if "failed" not in [verdict for test, verdict in before.items() if test != alone]:
        return "no test fails without the patch"
    if before.get(alone) == "passed":
        return "the reproducer prints OK without the patch"
    return ""


MEETS_ANY = "folio_walk."
"""The names of the walk's cases begin with this text. With STRICT=1 the random walk does not avoid known issues, so any
known issue may make it fail.
"""


def changed(before: Mapping[str, str] | None, after: Mapping[str, str]) -> list[str]:
    """The faults of cases that no issue names: cases that fail with the patches, or whose state changes with them."""
    old = {name: state for name, state in (before or {}).items() if not name.startswith(MEETS_ANY) or state != "failed"}
    bad = [f"{name}: failed with the patches" for name, state in after.items() if state == "failed"]
    for name, state in old.items():
        new = after.get(name, "did not run")
        if new not in (state, "failed"):
            bad.append(f"{name}: {state} without the patches, {new} with them")
    return bad


@dataclasses.dataclass(frozen=True)
class Proof:
    """The verdicts of the tests of an issue.

    issue:   the entry of the table of known issues
    machine: the machine on which the tests ran: architecture, and the page size on arm64
    before:  the verdict of each test and of the reproducer without the patches; None if nothing ran without them
    after:   the verdict of each test and of the reproducer with the patches
    """

    issue: Issue
    machine: str
    before: Mapping[str, str] | None
    after: Mapping[str, str]

    @property
    def met(self) -> bool:
        """Whether a test or the reproducer met the issue on this machine."""
        return met(self.before, self.after)

    @property
    def wrong(self) -> str:
        """Why the proof fails; "" if it does not fail, or if the user chose a machine where no test meets the issue."""
        if not self.met and self.machine == self.issue.where:
            return f"no test meets it on {self.machine}"
        return wrong(self.before, self.after, reproducer(self.issue))
