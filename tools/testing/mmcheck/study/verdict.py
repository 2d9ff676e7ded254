# SPDX-License-Identifier: GPL-2.0
"""What became of a cell of the matrix."""

from dataclasses import dataclass, field

from ..core.errors import FAILED, NO_VERDICT, PASSED

STATES = {"passed": PASSED, "failed": FAILED, "none": NO_VERDICT}
"""Verdicts on a cell, and the exit status of each. "none" means that no test has run."""


@dataclass
class Record:
    """What became of a cell.

    state:       one of STATES
    counts:      of its cases, by their states
    seconds:     build and boot together
    fingerprint: of the kernel, the tests and the command; if it differs, the record is out of date
    why:         the last line of output, if there is no verdict
    failures:    names of the first cases that failed
    identity:    kernel, compiler, source and emulator, in words
    """

    state: str
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    fingerprint: str = ""
    why: str = ""
    failures: list[str] = field(default_factory=list)
    identity: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.state == "none":
            return f"no verdict: {self.why}"
        text = ", ".join(f"{number} {state}" for state, number in self.counts.items())
        return text if self.state != "failed" else f"FAILED: {text}"
