# SPDX-License-Identifier: GPL-2.0
"""DRY_RUN=1: prints what a command would run and write, but does neither.

The command's own code runs in a process that can neither start programs nor write files. Each program appears to
succeed and to print nothing. Written files exist only in memory, and are lost. If the next step of the command depends
on a result, the list ends, and its last line says so.
"""

import builtins
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .disk import SUFFIX
from .errors import PASSED
from .settings import VARIABLES
from .variables import check_switches

ALIKE = 20
"""A dry run prints at most this many steps that run the same program."""

NAMED = 8
"""At most this many files outside of O= are named."""

LONG = 600
"""A word of a command is cut after this many characters."""

KNOWN = ("install", "missing", "judge", "patch", "mail")
"""The next steps of the command need no result from steps of these kinds."""

QUESTION = re.compile(
    r"dpkg --compare-versions .*"
    r"|git( --no-optional-locks| -[cC] \S+)*"
    r" (rev-parse|log|describe|status|diff|symbolic-ref|ls-files|format-patch --stdout|config \S+$)( .*)?"
)
"""Commands that change nothing. A dry run executes them if their folder exists."""

SILENT = ("-version", "--version")
"""A dry run does not list programs with one of these arguments. Shell scripts are not listed either, because they only
read the source.
"""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

REFUSED = (
    *("os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "socket.connect", "os.mkdir", "os.rename"),
    *("os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.chown", "os.truncate", "os.utime"),
)
"""Actions that a dry run forbids. Before Python performs such an action, it raises an audit event with this name."""


class _Plan:
    """What one dry run found so far.

    steps:  a word for each step, and its text
    files:  the files and folders that would be written
    parted: whether there was a step with an unknown result
    """

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        self.files: dict[Path, None] = {}
        self.parted = self.ended = False

    def wrote(self, path: Path) -> None:
        """Note a file or a folder."""
        if path.suffix != SUFFIX:
            self.files[path.parent.resolve() / path.name] = None


_plan: _Plan | None = None
_question = threading.local()


def on() -> bool:
    """Whether this is a dry run."""
    return _plan is not None


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether the variables ask for a dry run. Raises UserError for an unclear value."""
    given = environ.get("DRY_RUN", "")
    check_switches({"DRY_RUN": given})
    return given == "1"


def instead(word: str, text: str) -> bool:
    """Whether this is a dry run. A dry run lists the step, and the caller must not do the step."""
    if _plan:
        _plan.steps.append((word, text))
        _plan.parted |= word not in KNOWN
    return on()


@contextlib.contextmanager
def part() -> Iterator[None]:
    """A part of a command that does not need the parts before it. In a dry run an error ends only this part."""
    try:
        yield
    except Exception:
        if not (_plan and _plan.parted):
            raise
        _plan.ended = True


def listed(body: Callable[[], int], out: Path) -> int:
    """Print what `body` would do; returns the exit status. `out` is the folder O=."""
    global _plan
    plan = _plan = _Plan()
    silent = io.TextIOWrapper(io.BytesIO(), write_through=True)
    try:
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent), _pretended(), part():
            tempfile.gettempdir()  # the first call tries to write there
            body()
    finally:
        _plan = None
    print("dry run: nothing is built, booted, fetched, installed or written", flush=True)
    for word, text in _short(plan.steps):
        print(f"{word:8}{text}")
    places = _places(plan.files, out)
    for name in places:
        print(f"write   {name}")
    if not (plan.steps or places or plan.ended):
        print("        this command only reads")
    if plan.ended:
        print("...     the next steps depend on the results")
    return PASSED


def _short(steps: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The steps without duplicates. If a program is run many times, only its first steps are listed."""
    counts: Counter[tuple[str, str]] = Counter()
    for word, text in dict.fromkeys(steps):
        kind = (word, text.partition(" ")[0] if word in ("run", "boot") else text)
        counts[kind] += 1
        if counts[kind] <= ALIKE:
            yield word, text
    for (word, name), count in counts.items():
        if count > ALIKE:
            yield word, f"{name} ... {count - ALIKE} more times"


def _places(files: Iterable[Path], out: Path) -> list[str]:
    """The places that would be written: below O= the first two parts of each path, elsewhere each whole path."""
    here, temporary = out.resolve(), Path(tempfile.gettempdir()).resolve()
    below = {file.relative_to(here).parts[:2] for file in files if file.is_relative_to(here)} - {()}
    below = {parts[:1] if parts[0] == "lock" else parts for parts in below}
    below -= {parts[:number] for parts in below for number in range(len(parts))}
    outside = (file for file in files if not file.is_relative_to(here) and file not in here.parents)
    other = sorted(str(file) for file in outside if not file.is_relative_to(temporary))
    if len(other) > NAMED:
        other = [f"{os.path.commonpath(other)}: {len(other)} files"]
    return [*(str(out.joinpath(*parts)) for parts in sorted(below)), *other]


class _Program(subprocess.Popen[Any]):
    """A program that is not run, but appears to succeed and to print nothing. Commands that match QUESTION run."""

    def __init__(self, args: Any, *more: Any, **options: Any) -> None:
        words = [os.fspath(word) for word in args] if not isinstance(args, str) else ["sh", "-c", args]
        question = QUESTION.fullmatch(" ".join(words))
        if question and Path(options.get("cwd") or ".").is_dir():
            _question.asked = True
            try:
                super().__init__(args, *more, **options)
            finally:
                _question.asked = False
            return
        self._child_created = False
        self.args, self.returncode, self.pid = args, 0, 0
        text = any(options.get(name) for name in ("text", "universal_newlines", "encoding", "errors"))
        pipes = [options.get(name) == subprocess.PIPE for name in ("stdin", "stdout", "stderr")]
        self.text_mode = text
        self.stdin = _REAL["open"](os.devnull, "w" if text else "wb") if pipes[0] else None
        self.stdout, self.stderr = (_silence(text) if pipe else None for pipe in pipes[1:])
        self._communication_started = False
        if _plan and not question and not set(SILENT) & set(words) and words[0] != "sh":
            _plan.steps.append(_step(words, options.get("env")))
            _plan.parted = True

    def wait(self, timeout: float | None = None) -> int:
        return super().wait(timeout) if self._child_created else 0

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        if self._child_created:
            return super().communicate(input, timeout)
        none = "" if self.text_mode else b""
        return (none if self.stdout else None), (none if self.stderr else None)


def _silence(text: bool) -> Any:
    """The read end of an empty pipe."""
    end, start = os.pipe()
    os.close(start)
    return _REAL["open"](end, "r" if text else "rb")


def _step(words: list[str], environ: Mapping[str, str] | None) -> tuple[str, str]:
    """A word for the kind of program, and its command line with the mmcheck variables that only this program gets."""
    if Path(words[0]).name == "setpriv":
        words = words[words.index("--") + 1 :]
    given = {**(environ or {}), **{word.partition("=")[0]: "" for word in words}}
    own = [f"{n}={shlex.quote(given[n])}" for n in VARIABLES if given.get(n) and given[n] != os.environ.get(n)]
    machine = Path(words[0]).name.startswith("qemu-system") or Path(words[0]).name == "linux"
    words = [f"{word.splitlines()[0][:LONG]}..." if "\n" in word or len(word) > LONG else word for word in words]
    return "boot" if machine else "run", " ".join([*own, shlex.join(words).replace("\n", " ")])


def _open(file: Any, mode: str = "r", *more: Any, **options: Any) -> Any:
    if isinstance(file, int) or not set(mode) & set("wax+") or file == os.devnull:
        return _REAL["open"](file, mode, *more, **options)
    _note(file)
    options.pop("opener", None)
    return _REAL["open"](os.memfd_create("mmcheck"), mode.replace("x", "w"), *more, **options)


def _os_open(path: Any, flags: int, *more: Any, **options: Any) -> int:
    if not flags & WRITES or path == os.devnull:
        descriptor: int = _REAL["os.open"](path, flags, *more, **options)
        return descriptor
    _note(path)
    return os.memfd_create("mmcheck")


def _note(*paths: Any, **_: Any) -> None:
    """Note the last path among the arguments of a function of `os`; the function is not called."""
    if _plan:
        _plan.wrote(Path([path for path in paths if isinstance(path, str | os.PathLike)][-1]))


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


_REAL: dict[str, Any] = {"open": builtins.open, "os.open": os.open}
_NOTED = ("mkdir", "unlink", "remove", "rmdir", "rename", "replace", "symlink", "link", "chmod", "utime", "mkfifo")
_REPLACED: tuple[tuple[Any, str, Any], ...] = (
    *((os, name, _note) for name in _NOTED),
    *((os, name, _nothing) for name in ("kill", "killpg")),
    (os, "open", _os_open),
    (io, "open", _open),
    (builtins, "open", _open),
    (shutil, "rmtree", _note),
    (subprocess, "Popen", _Program),
)
"""Functions that write or start something, and their replacements."""


@contextlib.contextmanager
def _pretended() -> Iterator[None]:
    """Replace the functions that write or start something. The audit hook refuses actions that bypass them."""
    if not hasattr(_refuse, "there"):
        sys.addaudithook(_refuse)
        setattr(_refuse, "there", True)  # noqa: B010 (a function has no such attribute for mypy)
    before = [(place, name, getattr(place, name)) for place, name, _ in _REPLACED]
    for place, name, new in _REPLACED:
        setattr(place, name, new)
    try:
        yield
    finally:
        for place, name, old in before:
            setattr(place, name, old)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise an error if this process is about to do something in a dry run."""
    if not _plan or getattr(_question, "asked", False):
        return
    writes = event == "open" and not isinstance(arguments[0], int) and bool(int(arguments[2] or 0) & WRITES)
    if event in REFUSED or event == "subprocess.Popen" or (writes and arguments[0] != os.devnull):
        raise RuntimeError(f"a dry run refuses {event} {arguments[:1]}")
