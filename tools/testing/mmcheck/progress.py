# SPDX-License-Identifier: GPL-2.0
"""Lines and bars on standard error: one line that moves on a terminal, plain lines elsewhere."""

import os
import shutil
import sys
import time
from types import TracebackType

PLAIN_SECONDS = 15.0
"""Where there is no terminal: seconds between two lines about the same thing."""


def say(message: str) -> None:
    """Print one line to the user."""
    print(f"mmcheck: {message}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Seconds as a person says them: `42s`, `3m10s`."""
    whole = round(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m{whole % 60:02}s"


class Progress:
    """Progress of one piece of work, as a context manager.

    title: what is done
    total: steps in all, or None while unknown
    exact: False where `total` is a guess, which is then shown with a tilde
    """

    def __init__(self, title: str, total: int | None = None, exact: bool = True) -> None:
        self.title, self.total, self.exact = title, total, exact
        self.done = 0
        self._started = self._said = time.monotonic()
        self._drawn = False
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

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
        """Take the moving line off the terminal, before somebody else prints."""
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._drawn = False

    def advance(self, done: int, detail: str = "") -> None:
        """Show that `done` steps are complete; `detail` names the present one."""
        self.done = done
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
        left = ""
        if self.done * 20 >= total:  # before 5 % an estimate says nothing
            left = f", {duration(elapsed * (total - self.done) / self.done)} left"
        about = "" if self.exact else "~"
        return f"{self.title} [{self.done}/{about}{total}] {duration(elapsed)}{left} {detail}".rstrip()
