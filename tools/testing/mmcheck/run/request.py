# SPDX-License-Identifier: GPL-2.0
"""The command line of kunit.py."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import variables
from ..core.errors import UserError
from .usage import READS

PATH_OPTIONS = ("--build_dir", "--json", "--junit", "--qemu_config", "--kunitconfig")
"""Options of kunit.py that take a path. kunit.py changes its working folder before it uses the path."""


VALUE_OPTIONS = (
    *("--build_dir", "--kunitconfig", "--qemu_config", "--make_options", "--kconfig_add", "--arch"),
    *("--cross_compile", "--qemu_args", "--jobs", "--timeout", "--filter", "--filter_action"),
    *("--kernel_args", "--run_isolated"),
)


VERBS = ("run", "config", "build", "exec", "parse")


OWN_OPTIONS = ("--apply", "--base")
"""Options that only mmcheck has."""


LIST_OPTIONS = ("--list_tests", "--list_tests_attr", "--list_suites")


@dataclass(frozen=True)
class Request:
    """The parts of the command line that matter to mmcheck.

    verb:      run, config, build, exec or parse
    arguments: all arguments after the verb, with absolute paths
    known:     the options that matter to mmcheck, as argparse returns them
    """

    verb: str
    arguments: list[str]
    known: argparse.Namespace

    @property
    def boots(self) -> bool:
        """Whether tests are run and their verdicts printed."""
        lists = any(vars(self.known)[option[2:]] for option in LIST_OPTIONS)
        return self.verb in ("run", "exec") and not lists


def split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The variables that the arguments set, as `--kernel 7.3` or `KERNEL=7.3`, and all other arguments.

    --jobs stays an argument, because the kernel's kunit.py has an option with this name. Raises UserError.
    """
    options = {variables.option(name): name for name in READS if name != "JOBS"}
    found: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        variable = options.get(name, name)
        if word == "--no-install":
            found["INSTALL"] = "no"
        elif word in options and variable in variables.SWITCHES:
            found[variable] = "1"
        elif name in options or (equals and name in READS):
            if not equals and (value := next(words, "")) == "":
                raise UserError(f"{word}: give a value, as in {word} VALUE")
            found[variable] = value
        elif equals and name == "ARCH":
            rest.append(f"--arch={value}")
        elif re.match(r"[A-Z]\w*=", word):
            raise UserError(f"{word}: this command does not read {name}; see --help")
        else:
            rest.append(word)
            if word in (*VALUE_OPTIONS, *OWN_OPTIONS):
                rest += [value for value in [next(words, None)] if value is not None]
    return found, rest


def parse(arguments: Sequence[str]) -> Request:
    """Read the command line. The kernel's kunit.py checks it later."""
    verb, *rest = arguments
    rest = absolute(rest)
    if verb == "parse":
        rest = [str(Path(a).absolute()) if Path(a).is_file() else a for a in rest]
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    for option in VALUE_OPTIONS:
        parser.add_argument(option, action="append")
    parser.add_argument("-h", "--help", action="store_true")
    for option in LIST_OPTIONS:
        parser.add_argument(option, action="store_true")
    for option in ("--raw_output", "--json", "--junit"):
        parser.add_argument(option, nargs="?")
    parser.add_argument("glob", nargs="?")
    # As in kunit.py, a bare --json takes no value, and the word after it is the glob.
    bare = {"--raw_output": "kunit", "--json": "stdout", "--junit": "stdout"}
    try:
        known, _ = parser.parse_known_args([f"{a}={bare[a]}" if a in bare else a for a in rest])
    except argparse.ArgumentError as error:
        raise UserError(str(error)) from None
    return Request(verb, rest, known)


def absolute(arguments: Sequence[str]) -> list[str]:
    """`arguments` with relative paths made absolute.

    A --kunitconfig that does not exist in the current folder stays as it is: it may be relative to the kernel's root.
    """
    result: list[str] = []
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        before = arguments[position - 1] if position else ""
        if equals and option in PATH_OPTIONS and value and value != "stdout":
            argument = f"{option}={_from_here(option, value)}"
        elif before in PATH_OPTIONS and before not in ("--json", "--junit"):
            argument = _from_here(before, argument)
        result.append(argument)
    return result


def _from_here(option: str, value: str) -> str:
    path = Path(value).expanduser()
    return value if option == "--kunitconfig" and not path.exists() else str(path.absolute())
