# SPDX-License-Identifier: GPL-2.0
"""What all commands have in common: variables, errors of the user, interrupts."""

import signal
import sys
from collections.abc import Callable, Mapping

from .errors import UserError


def run(name: str, body: Callable[[dict[str, str]], int], environ: Mapping[str, str], kept: str = "") -> int:
    """Run the command `name`: `body` with the variables that have a value. Returns the exit status.

    Bad input is one line and status 2, an interrupt status 130; `kept` tells the user what is left after one.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What ^C is, unless they are ignored, as nohup wants it.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupted)
    try:
        # FEATURES= means none.
        return body({key: value for key, value in environ.items() if value or key == "FEATURES"})
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted{'; ' if kept else ''}{kept}", file=sys.stderr)
        return 130


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
