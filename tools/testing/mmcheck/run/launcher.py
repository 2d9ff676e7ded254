# SPDX-License-Identifier: GPL-2.0
"""kunit.py: gets a kernel, grafts the overlay, and runs that kernel's own kunit.py."""

import os
from collections.abc import Mapping, Sequence

from ..core import command, progress, variables
from ..core.errors import NO_VERDICT, UserError
from ..core.settings import from_environment
from ..kernel import source
from . import closing
from .cell import NAME
from .prepare import prepare
from .request import VERBS, parse

HELP = f"""\
usage: kunit.py run|config|build|exec|parse [--arch=ARCH] [argument of the kernel's kunit.py ...]

Builds and boots a kernel with the mmcheck suites and prints their verdicts.
All verbs and arguments are those of the kernel's own kunit.py: see kunit.py run --help.
Relative paths start in the current folder.

from the environment:
{variables.listed("KERNEL", "KDIR", "PATCH", "PAGES", "FEATURES", "JOBS", "O", "INSTALL")}
--no-install is the same as INSTALL=no.

{variables.statuses()}
"""


NO_INSTALL = "--no-install"
"""Our own argument; it means the same as the variable INSTALL=no."""


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what the command line says; returns the exit status."""
    if NO_INSTALL in arguments:
        os.environ["INSTALL"] = "no"
        arguments = [argument for argument in arguments if argument != NO_INSTALL]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0 if arguments else NO_VERDICT
    if arguments[0] not in VERBS:
        raise UserError(f"{arguments[0]}: no such verb; use {', '.join(VERBS)}, or --help")
    request = parse(arguments)
    if request.known.help:
        settings = from_environment(environ, "um")
        source.judge(settings)
        print(HELP, flush=True)
        if not source.here(settings):
            print(f"The arguments of the kernel's own kunit.py are shown once linux {settings.kernel} is downloaded.")
            return 0
    launch = prepare(request, environ)
    launch.cell = environ.get(NAME, "")
    launch.repeat = closing.again(arguments, environ)
    status = launch.run()
    for line in [*launch.skipped(environ), *launch.closing(environ)]:
        progress.say(line)
    return status


def main(arguments: Sequence[str]) -> int:
    """The command."""
    kept = "run it again to continue from here"
    return command.run("kunit.py", lambda environ: run(arguments, environ), os.environ, kept)
