# SPDX-License-Identifier: GPL-2.0
"""The `make` that kunit.py finds first in PATH.

kunit.py runs make, and shows its output only when make has ended. This program runs the real make with
the same arguments, and reports its progress to the launcher. It uses ccache if that is installed. It
returns at once if kernel, overlay, configuration and arguments are the same as in the last build.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from ..core.disk import digest

RECORD = ".mmcheck-built"
LOG = "build.log"
IMAGES = ("vmlinux", "linux")
STEPS_OF_ANY = 700
STEPS_PER_SYMBOL = 0.75
"""A first build has about STEPS_OF_ANY steps, plus STEPS_PER_SYMBOL steps for each symbol that .config sets."""

PACE = (
    (0.00, 0.00),
    (0.10, 0.02),
    (0.15, 0.03),
    (0.20, 0.09),
    (0.25, 0.15),
    (0.30, 0.22),
    (0.40, 0.38),
    (0.50, 0.53),
    (0.60, 0.68),
    (0.70, 0.77),
    (0.80, 0.84),
    (0.90, 0.89),
    (1.00, 0.93),
    (1.10, 0.96),
    (1.20, 0.98),
    (1.40, 1.00),
)
"""The pace of a first build: a share of the estimated steps, and the share of the time that has passed by then.

The first steps make headers and tables, and are short. The steps of core kernel, mm and fs are long. Small libraries,
drivers, and links follow. The figures are medians of 32 builds on arm64, riscv and UML; tests/builds.json has some of
these builds.
"""


@dataclass(frozen=True)
class Message:
    """A message to the launcher, as one line of JSON: finished steps, all steps, the current step."""

    done: int = 0
    total: int | None = None
    detail: str = ""
    failed: bool = False

    def line(self) -> str:
        """The line that carries this message."""
        return json.dumps(asdict(self)) + "\n"


class Channel:
    """Carries messages to the launcher, through the FIFO `path`; without a path messages are dropped."""

    def __init__(self, path: str | None) -> None:
        self._file = None
        # Without O_NONBLOCK the call would wait for a launcher that was killed.
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK) if path else -1
            if descriptor >= 0:
                os.set_blocking(descriptor, True)
                self._file = os.fdopen(descriptor, "w", buffering=1)

    def send(self, message: Message) -> None:
        """Send a message. If the launcher has ended, the build goes on without messages."""
        try:
            if self._file:
                self._file.write(message.line())
        except OSError:
            self._file = None


def output_folder(arguments: Sequence[str]) -> Path | None:
    """The O= of a kernel's make."""
    return next((Path(a[2:]) for a in arguments if a.startswith("O=")), None)


def with_ccache(arguments: Sequence[str]) -> list[str]:
    """`arguments` with compilers that run through ccache, if it is installed and `arguments` name no compiler."""
    given = {a.split("=", 1)[0] for a in arguments}
    prefix = next((a.split("=", 1)[1] for a in arguments if a.startswith("CROSS_COMPILE=")), "")
    if not shutil.which("ccache") or given & {"CC", "HOSTCC", "LLVM"}:
        return list(arguments)
    return [*arguments, f"CC=ccache {prefix}gcc", "HOSTCC=ccache gcc"]


def identity(stamp: str, arguments: Sequence[str], build: Path) -> dict[str, object]:
    """Everything that the result of a build depends on, and the time stamps of the result."""
    options = sorted(a for a in arguments if "=" in a and not a.startswith("--jobs"))
    config = build / ".config"
    images = [build / name for name in IMAGES if (build / name).exists()]
    return {
        "stamp": stamp,
        "options": options,
        "config": digest(config.read_bytes()) if config.exists() else "",
        "images": [[i.name, i.stat().st_size, i.stat().st_mtime_ns] for i in images],
    }


def up_to_date(present: dict[str, object], build: Path) -> bool:
    """Whether the last build that succeeded has the identity `present`."""
    try:
        return bool(present["images"]) and json.loads((build / RECORD).read_text()) == present
    except (OSError, ValueError):
        return False


def expected_steps(build: Path) -> tuple[int, int | None]:
    """The steps that an earlier, interrupted build has done, and an estimate of the steps of a whole build."""
    if any((build / name).exists() for name in IMAGES):
        return 0, None  # only make knows how many steps an edit needs
    done = sum(f.endswith(".cmd") for _, _, files in os.walk(build) for f in files)
    config = build / ".config"
    if not config.exists():
        return done, None
    symbols = sum(line.endswith("=y") for line in config.read_text().splitlines())
    return done, STEPS_OF_ANY + round(symbols * STEPS_PER_SYMBOL)


def run(command: list[str], build: Path, channel: Channel) -> int:
    """Run make. Its output goes to the log, its steps go to the launcher, its errors go to our standard error."""
    done, total = expected_steps(build)
    with (
        (build / LOG).open("wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as make,
    ):
        assert make.stdout and make.stderr
        errors = threading.Thread(target=_copy, args=(make.stderr, log, sys.stderr.buffer))
        errors.start()
        for line in make.stdout:
            log.write(line)
            if line.startswith(b"  "):
                done += 1
                channel.send(Message(done, total, line.decode(errors="replace").strip()))
        errors.join()
    return make.returncode


def _copy(stream: BinaryIO, *targets: BinaryIO) -> None:
    with contextlib.suppress(ValueError):  # an interrupt closes the stream
        for line in stream:
            for target in targets:
                target.write(line)
                target.flush()


def main(arguments: list[str]) -> int:
    """Do what `make` with these arguments does; returns its exit status."""
    real = os.environ["MMCHECK_MAKE"]
    build = output_folder(arguments)
    if build is None or not build.is_dir():
        return subprocess.call([real, *arguments])
    stamp = os.environ.get("MMCHECK_STAMP", "")
    if stamp and up_to_date(identity(stamp, arguments, build), build):
        return 0
    full = with_ccache(arguments)
    if "all" not in arguments:
        return subprocess.call([real, *full])
    channel = Channel(os.environ.get("MMCHECK_CHANNEL"))
    (build / RECORD).unlink(missing_ok=True)
    try:
        status = run([real, *full], build, channel)
    except KeyboardInterrupt:
        return 130
    if status == 0:
        (build / RECORD).write_text(json.dumps(identity(stamp, arguments, build)))
    else:
        channel.send(Message(failed=True))
    return status
