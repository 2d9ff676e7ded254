# SPDX-License-Identifier: GPL-2.0
"""Builds the plugin of QEMU."""

import subprocess
from pathlib import Path

from ..core.errors import UserError

HERE = Path(__file__).parent
PLUGIN = ("-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")


def plugin(out: Path) -> Path:
    """Build the plugin in the folder `out` if it is missing or a source has changed. Returns its path."""
    files, to = sorted((HERE / "plugin").glob("*.[ch]")), out / "mmcheck-tlb.so"
    to.parent.mkdir(parents=True, exist_ok=True)
    if to.exists() and to.stat().st_mtime > max(file.stat().st_mtime for file in files):
        return to
    new = to.with_suffix(".new")
    sources = [str(file) for file in files if file.suffix != ".h"]
    done = subprocess.run(["gcc", *PLUGIN, "-o", str(new), *sources], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{to.name} does not build: {(done.stderr.splitlines() or ['no message'])[0]}")
    new.rename(to)
    return to
