# SPDX-License-Identifier: GPL-2.0
"""The variables that commands read, from variables.toml, and the meanings of the exit statuses."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from .errors import UserError

NAMES: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
"""Each variable that a verb reads, and its meaning."""

CONTAINER = "--container"
"""If this word precedes a verb, the verb runs in a container."""

SWITCHES = frozenset(name for name, about in NAMES.items() if about.startswith("1:"))
"""The variables whose options need no value."""


FOREIGN = frozenset(("CORES", "CPU", "FILE", "HOSTS", "JOB", "PATH", "SED", "SITE", "TARGET"))
"""Variables of other programs. Each of them looks like a misspelt variable of ours."""

SHORT, LONG = 4, 6
"""Shorter names than SHORT have no misspellings. In names of at least LONG letters, one letter may be wrong."""


def misspelt(name: str, right: str) -> bool:
    """Whether `name` is `right` with one mistake after its first letter: it lacks, adds, swaps or replaces a letter."""
    if len(right) < SHORT or name[:1] != right[0]:
        return False
    if len(name) == len(right):
        wrong = [place for place, letter in enumerate(right) if name[place] != letter]
        first = wrong[0] if wrong else 0
        swapped = wrong == [first, first + 1] and name[first : first + 2] == right[first + 1] + right[first]
        return swapped or (len(wrong) == 1 and len(right) >= LONG)
    less, more = sorted((name, right), key=len)
    return len(more) - len(less) == 1 and any(more[:place] + more[place + 1 :] == less for place in range(len(more)))


def check_environment(environ: Mapping[str, str], reads: Iterable[str]) -> None:
    """Raise UserError for a variable that looks like a misspelt one of `reads`, unless the right one is set too."""
    own = [name for name in reads if not environ.get(name)]
    for name in sorted(environ.keys() - NAMES.keys() - FOREIGN):
        near = [right for right in own if environ[name] and misspelt(name, right)]
        if near:
            raise UserError(
                f"{name} is in the environment, but there is no such variable; use {near[0]}=, or unset {name}"
            )


def check_switches(given: Mapping[str, str]) -> None:
    """Raise UserError for a switch with an unclear value, such as `STRICT=yes`."""
    for name in sorted(SWITCHES & given.keys()):
        if given[name] not in ("", "0", "1", "no"):
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


def name_list(given: str, blanks: bool = True) -> list[str]:
    """The names of a list: separated by commas, and with `blanks` also by blanks."""
    parts = given.replace(",", " ").split() if blanks else given.split(",")
    return [part.strip() for part in parts if part.strip()]


def one_glob(environ: Mapping[str, str]) -> str:
    """The glob of suites and cases in ONLY=, or "". Raises UserError for a list: KUnit takes only one glob."""
    given = environ.get("ONLY", "").strip()
    if len(name_list(given)) > 1 or "," in given:
        raise UserError(f"ONLY={given}: give one glob of suites, such as 'contpte*'; KUnit takes no list")
    return given


def listed(reads: Iterable[str], meanings: Mapping[str, str]) -> str:
    """Variables and their meanings, one per line."""
    return "\n".join(f"  {name:9} {meanings[name]}" for name in reads)


def option(name: str) -> str:
    """The option that sets a variable."""
    return "--" + name.lower().replace("_", "-")
