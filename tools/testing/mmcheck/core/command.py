# SPDX-License-Identifier: GPL-2.0
"""What all commands have in common: variables, errors, interrupts, exit statuses."""

import contextlib
import difflib
import errno
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from . import dry, progress
from .errors import INTERRUPTED, NO_VERDICT, UserError
from .settings import PROJECT, out_of
from .variables import NAMES, check_environment, check_switches

LOG = "mmcheck-error.log"
"""The file with the traceback of an unexpected error. It is below O=, or in the folder for temporary files."""

ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
"""Errors that mean that the disk is full, or that this user may not write to it."""

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A command ends at the first of these signals that it receives."""


def run(
    name: str,
    body: Callable[[dict[str, str]], int],
    environ: Mapping[str, str],
    kept: str = "",
    reads: Iterable[str] = (),
) -> int:
    """Run the command `name`: call `body` with the variables that have a value. Returns the exit status.

    Bad input and unexpected errors print one line, and return NO_VERDICT.
    kept:  a note about the remaining files, printed after an interrupt
    reads: the variables that the command reads
    """
    for number in INTERRUPTS:
        # Each signal acts like ^C, unless it is ignored, for example under nohup.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)
    status = _ended(name, body, environ, kept, reads)
    try:
        print(end="", flush=True)
    except OSError as error:
        return unwritten(error, name)
    return status


def unwritten(error: OSError, name: str = "mmcheck") -> int:
    """The exit status of the command `name` if its output cannot be written. Prints the reason."""
    progress.silence(sys.stdout)
    if not isinstance(error, BrokenPipeError):  # not if the reader, for example `head`, has ended
        progress.say(f"the output cannot be written: {error.strerror}", name)
    return NO_VERDICT


def _ended(
    name: str, body: Callable[[dict[str, str]], int], environ: Mapping[str, str], kept: str, reads: Iterable[str]
) -> int:
    """Run `body`; returns the exit status."""
    try:
        names = given_to_make(environ.get("MAKEFLAGS", ""))
        check_names(names)
        check_environment(environ, reads)
        # A shell may export variables such as HOST with another meaning.
        check_switches({name: environ.get(name, "") for name in names})
        # An empty FEATURES= means no features.
        given = {key: _home(key, value) for key, value in environ.items() if value or key == "FEATURES"}
        return dry.listed(lambda: body(given), out_of(given)) if dry.wanted(given) else body(given)
    except UserError as error:
        progress.say(str(error), name)
        return NO_VERDICT
    except BrokenPipeError:
        return NO_VERDICT  # the reader of the pipe has ended, for example `head`
    except KeyboardInterrupt:
        progress.say(f"interrupted{'; ' if kept else ''}{kept}", name)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in ROOM:
            where = error.filename or environ.get("O") or PROJECT / "out"
            what = f"{where}: {os.strerror(error.errno)}"
            progress.say(f"{what}; free some space or allow access there, or choose another O=", name)
            return NO_VERDICT
        what = " ".join(f"{type(error).__name__}: {error}".split())
        progress.say(f"no verdict, an unexpected error: {what}; see {_log(environ)}", name)
        return NO_VERDICT


def _home(name: str, value: str) -> str:
    """The value with ~ replaced by the user's home, because a shell keeps ~ in `make O=~/out`.

    COMMAND does not change, because its own shell replaces ~.
    """
    ours = name in NAMES and name != "COMMAND" and value.startswith("~/")
    return f"{Path.home()}{value[1:]}" if ours else value


def given_to_make(flags: str) -> list[str]:
    """The names in `make NAME=VALUE`, as make passes them on in $MAKEFLAGS."""
    _, _, given = f" {flags}".partition(" -- ")
    return re.findall(r"(?:^|(?<!\\)\s)([A-Za-z_]\w*)=", given)


def check_names(names: Sequence[str]) -> None:
    """Raise UserError for a misspelt variable. Otherwise all tests would run with `TEST=folio_fork`, for example."""
    for name in names:
        near = [] if name in NAMES else difflib.get_close_matches(name.upper(), sorted(NAMES), 1, 0.75)
        if near:
            raise UserError(f"{name}=: there is no such variable; did you mean {near[0]}=?")


def _log(environ: Mapping[str, str]) -> str:
    """Write the traceback of the current error to a file; returns its name, or the traceback if no disk has space."""
    text = traceback.format_exc()
    if environ.get("O"):
        file = Path(environ["O"]).absolute() / LOG
        # Perhaps the error is that O= cannot be written.
        with contextlib.suppress(OSError):
            file.write_text(text)
            return str(file)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="mmcheck-", suffix=f"-{LOG}", delete=False) as temporary:
            temporary.write(text)
    except OSError:
        return f"the lines below\n{text}"
    return temporary.name


def _interrupted(*_: object) -> None:
    # Ignore further signals. A second one would interrupt the clean-up, and leave builds or machines running.
    for number in INTERRUPTS:
        if signal.getsignal(number) == _interrupted:
            signal.signal(number, _nothing)
    raise KeyboardInterrupt


def _nothing(*_: object) -> None:
    """Do nothing. Programs that are started later inherit SIG_IGN, but not this handler."""
