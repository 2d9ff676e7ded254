# SPDX-License-Identifier: GPL-2.0
"""make report: one HTML page of what is known: verdict, failures, cells, skips, known issues, mutants, benchmarks.

Reads what the other commands have left below O= and runs no kernel. The page needs no server and no other file. Each
report of new records adds a line to O/report/history.jsonl, with which the next one is compared.
"""

import datetime
from collections.abc import Mapping
from pathlib import Path

from .. import command, graft, progress
from ..settings import out_of
from . import history, model
from .records import Input


def run(out: Path, kdir: Path | None = None) -> int:
    """The command; returns the exit status."""
    data = Input(out, kdir)
    # Only now: the library for templates may have to be installed first.
    from .library import provide

    provide(out)
    from .page import render

    folder = out / "report"
    folder.mkdir(parents=True, exist_ok=True)
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    now = model.states(data.runs)
    file = folder / "history.jsonl"
    past = history.read(file, now, {"when": when, "what": history.digest(now)})
    graft.replace(folder / "index.html", render(data, past, now, when).encode())
    history.write(file, past.lines)
    progress.say(f"{folder / 'index.html'}")
    return 0


def main(environ: Mapping[str, str]) -> int:
    """The command."""

    def body(given: Mapping[str, str]) -> int:
        kdir = given.get("KDIR")
        return run(out_of(given), Path(kdir).expanduser().absolute() if kdir else None)

    return command.run("report", body, environ)
