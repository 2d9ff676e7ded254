# SPDX-License-Identifier: GPL-2.0
"""make report: one HTML page of all results: verdict, failures, cells, skips, known issues, mutants, benchmarks.

The command reads the results that other commands wrote below O=, and runs no kernel. The page needs no server and no
other file. A report of new results adds a line to O/report/history.jsonl. The next report compares its results with
this line.
"""

import datetime
import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ..core import disk, progress
from ..core.errors import UserError
from ..core.settings import out_of
from ..kernel import library, toolchain
from . import history, model
from .records import Input

WANTED = Path(__file__).with_name("requirements.txt")


def provide(out: Path) -> None:
    """Make sure that Python can import jinja2. If Python lacks jinja2, install it below `out` on first use."""
    if importlib.util.find_spec("jinja2"):
        return
    folder = out / "report" / "venv"
    if os.environ.get("INSTALL") == "no" and not library.present(folder, WANTED):
        line = f"python3 -m pip install -r {WANTED}"
        raise UserError(f"make report needs jinja2, and INSTALL=no forbids installing it; install with: {line}")
    if not library.present(folder, WANTED):
        toolchain.provide([toolchain.ENSUREPIP])
    if library.installed(folder, WANTED, "jinja2, the library for the page's template,"):
        sys.path[:0] = map(str, folder.glob("lib/python3*/site-packages"))
        importlib.invalidate_caches()


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    out = out_of(environ)
    data = Input(out)
    provide(out)
    # Import page.py late: the template library that it imports may have to be installed first.
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
