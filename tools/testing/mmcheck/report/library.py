# SPDX-License-Identifier: GPL-2.0
"""Provides jinja2, the template library: the one that Python has, or the one of requirements.txt, below O=."""

import importlib.util
import os
import subprocess
import sys
import venv
from pathlib import Path

from ..core import dry, ours, progress
from ..core.errors import UserError
from ..kernel import toolchain

WANTED = Path(__file__).parent / "requirements.txt"


def provide(out: Path) -> None:
    """Make sure that jinja2 can be imported. If Python lacks it, it is installed below `out` on first use."""
    if importlib.util.find_spec("jinja2"):
        return
    folder = out / "report" / "venv"
    stamp = folder / WANTED.name
    if not stamp.exists() or stamp.read_bytes() != WANTED.read_bytes():
        line = f"python3 -m pip install -r {WANTED}"
        if os.environ.get("INSTALL") == "no":
            raise UserError(f"make report needs jinja2, and INSTALL=no forbids installing it; install with: {line}")
        toolchain.provide([toolchain.ENSUREPIP])
        if dry.instead("install", f"jinja2 into {folder}"):
            return
        progress.say(f"installing jinja2, the library for the page's template, into {folder}")
        ours.empty(folder)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin/pip"), "install", "-q", "--disable-pip-version-check", "-r", str(WANTED)]
        if subprocess.run(pip, stdin=subprocess.DEVNULL).returncode:
            raise UserError(f"pip could not install {WANTED}; check the network and the package index that pip uses")
        stamp.write_bytes(WANTED.read_bytes())
    (folder / ours.MARKER).touch()
    sys.path[:0] = map(str, folder.glob("lib/python3*/site-packages"))
    importlib.invalidate_caches()
