# SPDX-License-Identifier: GPL-2.0
"""The probes of lib/pgtable_kunit/probes: their answers for a kernel tree, and for packaged kernels."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..core.settings import PROJECT

FOLDER = PROJECT / "lib/pgtable_kunit"
SHOWN = 5
"""A warning names at most this many probes."""


def table() -> list[list[str]]:
    """The rows of the table, with these columns: how, name, word, file, anchor, and a value for each known kernel."""
    lines = (FOLDER / "probes").read_text().splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def kernels() -> list[str]:
    """The known kernels, as in KERNEL=."""
    head = next(line for line in (FOLDER / "probes").read_text().splitlines() if line.startswith("# how\tname"))
    return head.split()[6:]


def answers(tree: Path) -> dict[str, str]:
    """The answer of each probe for a tree: yes, no, or unknown."""
    command: list[str | Path] = ["sh", FOLDER / "probe.sh", tree]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(line.split() for line in said.splitlines())


def flips(tree: Path, kernel: str) -> dict[str, str]:
    """For each probe, how its answer for a known kernel differs from the recorded answer; "" if they agree."""
    if kernel not in kernels():
        return {}
    column = 5 + kernels().index(kernel)
    found = answers(tree)
    return {
        row[1]: ""
        if found[row[1]] == row[column]
        else f"was {row[column]}, is {found[row[1]]}: {row[2]} in {row[3]}; see lib/pgtable_kunit/probes"
        for row in table()
    }


def warning(unknown: Sequence[str]) -> str:
    """The warning about probes with unknown answers."""
    named = ", ".join(unknown[:SHOWN]) + (", ..." if len(unknown) > SHOWN else "")
    return (
        f"cannot tell whether this kernel has {named}. lib/pgtable_kunit/probes names the code to look "
        "for. If this code has moved, cases may expect code that this kernel lacks"
    )
