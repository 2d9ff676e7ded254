# SPDX-License-Identifier: GPL-2.0
"""Prints a function that completes verbs and options in bash. To load it, type: eval "$(./mmcheck completion)"."""

from collections.abc import Mapping

from .core.errors import PASSED
from .core.variables import CONTAINER, option
from .run.request import LIST_OPTIONS, OWN_OPTIONS, VALUE_OPTIONS
from .verbs import VERBS


def words(name: str) -> list[str]:
    """The options of a verb. The verb run also takes the options of the kernel's own kunit.py."""
    theirs = (*OWN_OPTIONS, *VALUE_OPTIONS, *LIST_OPTIONS, "--json", "--junit", "--raw_output") if name == "run" else ()
    return [*dict.fromkeys([*map(option, VERBS[name].variables), *theirs]), "--no-install", "--help"]


def run(_: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    cases = [f"{name}) words='{' '.join(words(name))}';;" for name in VERBS]
    print(
        "\n".join(
            [
                "_mmcheck() {",
                "\tlocal words at=1",
                f'\t[[ "${{COMP_WORDS[1]}}" != {CONTAINER}* ]] || at=2',
                '\tcase "${COMP_WORDS[at]}" in',
                *(f"\t{case}" for case in cases),
                f"\t*) words='{' '.join(VERBS)}';;",
                "\tesac",
                f"\t[ \"$COMP_CWORD\" -eq $at ] && words='{' '.join(VERBS)}'",
                f"\t[ \"$COMP_CWORD\" -eq 1 ] && words='{' '.join([*VERBS, CONTAINER])}'",
                '\tmapfile -t COMPREPLY < <(compgen -W "$words" -- "$2")',
                "}",
                "complete -o default -F _mmcheck mmcheck ./mmcheck",
            ]
        )
    )
    return PASSED
