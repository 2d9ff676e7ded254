# SPDX-License-Identifier: GPL-2.0
"""make report: one HTML page of all results: verdict, failures, cells, skips, known issues, mutants, benchmarks.

Reads the results of the other commands below O=, and runs no kernel. The page needs no server and no other file. A
report of new results adds a line to O/report/history.jsonl. The next report is compared with this line.
"""

import datetime
from collections.abc import Mapping

from ..core import disk, progress
from ..core.settings import out_of
from . import history, model
from .records import Input


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    out = out_of(environ)
    data = Input(out)
    # Import page.py late: the template library that it imports may have to be installed first.
    from .library import provide

    provide(out)
    from .page import render

    folder = out / "report"
    folder.mkdir(parents=True, exist_ok=True)
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    now = model.states(data.runs)
    file = folder / "history.jsonl"
    past = history.read(file, now, {"when": when, "what": history.digest(now)})
    disk.replace(folder / "index.html", render(data, past, now, when).encode())
    history.write(file, past.lines)
    progress.say(f"{folder / 'index.html'}")
    return 0
