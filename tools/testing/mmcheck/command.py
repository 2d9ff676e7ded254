# SPDX-License-Identifier: GPL-2.0
"""What all commands have in common: variables, errors, interrupts, exit statuses."""

import difflib
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .errors import INTERRUPTED, NO_VERDICT, UserError
from .verbs import NAMES

LOG = "mmcheck-error.log"
"""Has the traceback of an error that nobody expected; below O=, or among temporary files."""

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The first of these ends a command."""


def run(name: str, body: Callable[[dict[str, str]], int], environ: Mapping[str, str], kept: str = "") -> int:
    """Run the command `name`: `body` with the variables that have a value. Returns the exit status.

    Bad input is one line and NO_VERDICT, and so is an error of ours; `kept` tells the user what is left after an
    interrupt.
    """
    for number in INTERRUPTS:
        # Each acts like ^C, unless it is ignored, as nohup asks.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)
    try:
        check_names(given_to_make(environ.get("MAKEFLAGS", "")))
        # FEATURES= means none.
        return body({key: value for key, value in environ.items() if value or key == "FEATURES"})
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return NO_VERDICT
    except BrokenPipeError:
        # The reader has gone, as after `| head`. Without this Python prints one more error when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_VERDICT
    except KeyboardInterrupt:
        print(f"{name}: interrupted{'; ' if kept else ''}{kept}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"{name}: no verdict, an unexpected error: {what}; see {_log(environ)}", file=sys.stderr)
        return NO_VERDICT


def given_to_make(flags: str) -> list[str]:
    """The names in `make NAME=VALUE`, as make passes them on in $MAKEFLAGS."""
    _, _, given = f" {flags}".partition(" -- ")
    return re.findall(r"(?:^|(?<!\\)\s)([A-Za-z_]\w*)=", given)


def check_names(names: Sequence[str]) -> None:
    """Raise UserError for a name that is almost a variable's name: `TEST=folio_fork` would run all tests."""
    for name in names:
        near = [] if name in NAMES else difflib.get_close_matches(name.upper(), sorted(NAMES), 1, 0.8)
        if near:
            raise UserError(f"{name}=: there is no such variable; did you mean {near[0]}=?")


def _log(environ: Mapping[str, str]) -> Path:
    """Write the traceback of the present error to a file."""
    text = traceback.format_exc()
    if environ.get("O"):
        file = Path(environ["O"]).absolute() / LOG
        try:
            file.write_text(text)
            return file
        except OSError:
            pass  # perhaps that is the error
    with tempfile.NamedTemporaryFile("w", prefix="mmcheck-", suffix=f"-{LOG}", delete=False) as temporary:
        temporary.write(text)
    return Path(temporary.name)


def _interrupted(*_: object) -> None:
    # A second signal would interrupt the clean-up and leave builds or machines running.
    for number in INTERRUPTS:
        if signal.getsignal(number) == _interrupted:
            signal.signal(number, _nothing)
    raise KeyboardInterrupt


def _nothing(*_: object) -> None:
    """Unlike SIG_IGN this does not extend to programs that are started from now on."""
