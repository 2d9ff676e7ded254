# SPDX-License-Identifier: GPL-2.0
"""Progress on standard error: one moving line on a terminal, plain lines elsewhere."""

import os
import shutil
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from types import TracebackType
from typing import TextIO

PLAIN_SECONDS = 15.0
"""If the output does not go to a terminal, at least this many seconds pass between two lines about the same work."""


def say(message: str, who: str = "mmcheck") -> None:
    """Print one line to the user. If this fails, the command continues, and its exit status stays the same."""
    try:
        print(f"{who}: {message}", file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Discard all further output to a stream that cannot be written. Otherwise Python would exit with status 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def duration(seconds: float) -> str:
    """Whole seconds or minutes as text: `42s`, `3m10s`."""
    whole = round(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60:02}s"


FIRST_ESTIMATE = 60.0
"""After this many seconds of work with a known `pace`, the lines also show the remaining time."""

EVEN = ((0.0, 0.0), (1.0, 1.0))
"""The `pace` of work in which all steps take the same time."""


def share_of_time(pace: Sequence[tuple[float, float]], steps: float) -> float:
    """The share of the whole time, from 0 to 1, that has passed when the share `steps` of all steps is done.

    pace: pairs (share of steps, share of time), both rising from 0; between two pairs the rate is constant
    """
    for (steps0, time0), (steps1, time1) in pairwise(pace):
        if steps <= steps1:
            return time0 + (time1 - time0) * (steps - steps0) / (steps1 - steps0)
    return 1.0


class Progress:
    """Progress of one piece of work, as a context manager.

    title: the name of the work
    total: the number of all steps, or None while unknown
    exact: False if `total` is an estimate; an estimate is shown with a tilde
    pace: see share_of_time(), with shares of `total`; they may exceed 1 if `total` is an estimate
    """

    def __init__(
        self, title: str, total: int | None = None, exact: bool = True, pace: Sequence[tuple[float, float]] = EVEN
    ) -> None:
        self.title, self.total, self.exact, self.pace = title, total, exact, pace
        self.done = 0
        self._first: int | None = None
        self._started = self._said = time.monotonic()
        self._drawn = False
        self._live = bool(sys.stderr and sys.stderr.isatty()) and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> "Progress":
        if not self._live:
            say(f"{self.title} ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
        if kind is None:
            say(f"{self.title}: done in {duration(time.monotonic() - self._started)}")

    def clear(self) -> None:
        """Remove the moving line from the terminal before other output."""
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._drawn = False

    def advance(self, done: int, detail: str = "") -> None:
        """Show that `done` steps are complete; `detail` names the current step."""
        self.done = done
        if self._first is None:
            # Several steps in the first call: an earlier, interrupted run did them. They took no time in this run.
            self._first = done if done > 1 else 0
        now = time.monotonic()
        if now - self._said < (0.1 if self._live else PLAIN_SECONDS):
            return
        self._said = now
        line = self.line(now - self._started, detail)
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r{line[:width]}\033[K")
            sys.stderr.flush()
            self._drawn = True
        else:
            say(line)

    def line(self, elapsed: float, detail: str) -> str:
        """The text of the progress line after `elapsed` seconds."""
        if not self.total:
            return f"{self.title} [{self.done}] {duration(elapsed)} {detail}".rstrip()
        total = max(self.total, self.done)
        left = self.left(elapsed)
        remaining = "" if left is None else f", {'' if self.exact else 'about '}{duration(left)} left"
        about = "" if self.exact else "~"
        return f"{self.title} [{self.done}/{about}{total}] {duration(elapsed)}{remaining} {detail}".rstrip()

    def left(self, elapsed: float) -> float | None:
        """An estimate of the remaining seconds after `elapsed` seconds; None if it is too early for an estimate."""
        assert self.total
        if self.pace is EVEN:
            total = max(self.total, self.done)
            return elapsed * (total - self.done) / self.done if self.done * 20 >= total else None
        passed = share_of_time(self.pace, self.done / self.total)
        since = passed - share_of_time(self.pace, (self._first or 0) / self.total)
        if elapsed < FIRST_ESTIMATE or since <= 0 or passed >= 1:
            return None
        return elapsed * (1 - passed) / since
