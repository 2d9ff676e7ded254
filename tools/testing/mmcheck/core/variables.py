# SPDX-License-Identifier: GPL-2.0
"""The variables that commands read, from variables.toml, and the meanings of the exit statuses."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from .errors import UserError

NAMES: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
"""Each variable that a verb reads, and its meaning."""

CONTAINER = "--container"
"""If this word precedes a verb, the verb runs in a container."""

SWITCHES = frozenset(name for name, about in NAMES.items() if about.startswith("1:"))
"""The variables whose options need no value."""


def check_switches(given: Mapping[str, str]) -> None:
    """Raise UserError for a switch with an unclear value, such as `STRICT=yes`."""
    for name in sorted(SWITCHES & given.keys()):
        if given[name] not in ("", "0", "1"):
            raise UserError(f"{name}={given[name]}: use {name}=1, or leave it out")


def statuses(fails: str = "a test failed", skips: bool = False) -> str:
    """What the exit statuses of a command mean.

    fails: the meaning of status 1, or "" if the command never returns it
    skips: whether the command returns 4 if all tests were skipped
    """
    found = {
        0: "passed" if fails else "done",
        1: fails,
        4: "all tests were skipped" if skips else "",
        125: "no verdict: git bisect run skips such a commit" if fails else "not done: the last line says why",
        130: "interrupted",
    }
    lines = [f"  {status:<4}{meaning}" for status, meaning in found.items() if meaning]
    return "\n".join(["exit status (make turns every status except 0 into 2):", *lines])


def listed(*names: str) -> str:
    """Variables and their meanings, one per line."""
    return "\n".join(f"  {name:9} {NAMES[name]}" for name in names)


def option(name: str) -> str:
    """The option that sets a variable."""
    return "--" + name.lower().replace("_", "-")
