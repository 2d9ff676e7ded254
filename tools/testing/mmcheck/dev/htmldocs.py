# SPDX-License-Identifier: GPL-2.0
"""make htmldocs: writes Documentation/ as HTML with Sphinx.

The pages are in html/ below `O=`. Each warning of Sphinx, for example about a broken link, is an error.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..core import progress
from ..core.errors import UserError
from ..core.settings import PROJECT, out_of
from .check import tools

SOURCE = PROJECT / "Documentation"


def build(source: Path, target: Path, programs: Path) -> int:
    """Make the pages with Sphinx from the folder `programs`. Returns the exit status of Sphinx."""
    sphinx = [str(programs / "python"), "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(target / ".doctrees")]
    return subprocess.run([*sphinx, "-b", "html", str(source), str(target)]).returncode


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    out = out_of(environ)
    target = out / "html"
    if build(SOURCE, target, tools(out)):
        raise UserError("Sphinx warned: see the lines above")
    progress.say(f"the pages are in {target}: begin with {target / 'mmcheck/index.html'}")
    return 0
