# SPDX-License-Identifier: GPL-2.0
"""The commands of this repository, from verbs.toml: `./mmcheck VERB`, `make VERB`, and the help of both.

A module is imported only when its verb runs, so help is quick. The docstring of the module describes the verb.
"""

import argparse
import importlib
import os
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from .core.errors import PASSED, UserError
from .core.variables import CONTAINER, NAMES, SWITCHES, check_environment, check_switches, option, statuses
from .verb import Verb

GROUPS: Mapping[str, Mapping[str, Verb]] = {
    title: {name: Verb(**entry) for name, entry in verbs.items()}
    for title, verbs in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()
}
"""The verbs, grouped by their purpose."""

VERBS: Mapping[str, Verb] = {name: verb for group in GROUPS.values() for name, verb in group.items()}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def overview() -> str:
    """All verbs, one line each, for the help without a verb."""
    lines = ["usage: ./mmcheck VERB [--option VALUE ...] [NAME=VALUE ...], or make VERB [NAME=VALUE ...]", ""]
    for title, verbs in GROUPS.items():
        lines += [title, *(f"  {name:16} {verb.says}" for name, verb in verbs.items())]
    hints = [
        "./mmcheck VERB --help prints the variables and exit statuses of a verb, and an example.",
        f"./mmcheck {CONTAINER} VERB runs the verb in a container of podman or docker.",
    ]
    return "\n".join([*lines, "", *hints])


def example(name: str) -> str:
    """The line of the help that shows an example of a verb."""
    return f"example: ./mmcheck {name} {VERBS[name].example}".rstrip()


def parser(name: str) -> argparse.ArgumentParser:
    """The parser for the arguments of a verb."""
    verb = VERBS[name]
    made = _Parser(
        prog=f"./mmcheck {name}",
        description=verb.about,
        epilog="\n".join([example(name), "", statuses(verb.fails, verb.skips)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for variable, about in verb.variables.items():
        value = {"nargs": "?", "const": "1"} if variable in SWITCHES else {}
        if variable == "DRY_RUN":  # the word after --dry-run is never its value
            value = {"action": "store_const", "const": "1"}
        made.add_argument(
            option(variable),
            dest=variable,
            metavar=variable,
            help=about.replace("%", "%%"),
            **value,  # type: ignore[arg-type]
        )
    made.add_argument("--no-install", dest="INSTALL", action="store_const", const="no", help="the same as INSTALL=no")
    given = f"{verb.words} NAME=VALUE".strip()
    made.add_argument("given", metavar=given, nargs="*", help="variables, written as for make")
    return made


def chosen(name: str, arguments: Sequence[str]) -> dict[str, str]:
    """The variables that the arguments of a verb set. Raises UserError, or exits after --help."""
    read = vars(parser(name).parse_args(arguments))
    given = read.pop("given")
    found = {variable: value for variable, value in read.items() if value is not None}
    words = VERBS[name].words.split()
    plain = [argument for argument in given if not re.match(r"[A-Z]\w*=", argument)]
    if words and plain:
        if len(plain) != len(words):
            raise UserError(f"{' '.join(plain)}: give {' and '.join(words)}; see ./mmcheck {name} --help")
        found |= zip(words, plain, strict=True)
        given = [argument for argument in given if argument not in plain]
    for argument in given:
        match = re.fullmatch(r"([A-Z]\w*)=(.*)", argument, re.DOTALL)
        if not match or match[1] not in NAMES:
            raise UserError(f"{argument}: no such argument; see ./mmcheck {name} --help")
        found[match[1]] = match[2]
    check_switches(found)
    return found


def read(name: str, arguments: Sequence[str]) -> dict[str, str]:
    """The variables that the arguments of a verb set, with COMMAND from the words after `--`. Raises UserError."""
    if "--" not in arguments or "COMMAND" not in VERBS[name].variables:
        return chosen(name, arguments)
    place = arguments.index("--")
    words = arguments[place + 1 :]
    # A single word is a line for the shell, and is not quoted.
    return {"COMMAND": words[0] if len(words) == 1 else shlex.join(words), **chosen(name, arguments[:place])}


def run(name: str, environ: Mapping[str, str]) -> int:
    """Import the module of a verb, and run the command; returns the exit status."""
    module, _, function = VERBS[name].module.partition(":")
    body = getattr(importlib.import_module(f"{__package__}.{module}"), function or "run")
    from .core import command

    return command.run(name, body, environ, VERBS[name].kept, VERBS[name].variables)


def main(arguments: Sequence[str]) -> int:
    """The command; returns the exit status. Raises UserError for an unknown verb or argument."""
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help", "help"):
        print(overview(), flush=True)
        return PASSED
    box, _, engine = name.partition("=")
    if box == CONTAINER:
        name, *rest = rest or [""]
    if name not in VERBS:
        raise UserError(f"{name or box}: no such command; see ./mmcheck --help")
    if box == CONTAINER:
        from . import container

        check_environment(os.environ, VERBS[name].variables)
        found = container.of_kunit(rest) if name == "run" else read(name, rest)
        return container.main(engine, [name, *rest], os.environ | found)
    if name == "run" and {"-h", "--help"} & {*rest}:
        from .run import usage

        print(f"{usage.HELP}\n{usage.LONGER}", flush=True)
        return PASSED
    if name == "run":
        # The kernel's own kunit.py reads these arguments.
        from .run import launcher

        return launcher.main(arguments)
    os.environ.update(read(name, rest))
    return run(name, os.environ)
