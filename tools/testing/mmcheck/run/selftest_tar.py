# SPDX-License-Identifier: GPL-2.0
"""The selftests as a tarball for boards, in the form of kselftest's gen_tar: run_kselftest.sh, its helpers, programs.

The programs are static, so a board needs no library for them. No kernel is built for the tarball, only its headers.
"""

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core import progress
from ..core.settings import from_environment
from ..kernel import source
from . import selftests
from .prepare import prepare
from .selftests import Program
from .session import SelftestRun

HELPERS = ("module.sh", "runner.sh", "prefix.pl", "ktap_helpers.sh", "ksft.py")
"""Files of the kernel's selftests/kselftest that run_kselftest.sh uses. A kernel may lack some of them."""

LIST = "kselftest-list.txt"


def wanted(every: Sequence[Program]) -> list[Program]:
    """The programs that need no special machine."""
    return [one for one in every if one.name not in selftests.MACHINES]


def pack(tree: Path, programs: Mapping[str, Path], target: Path) -> None:
    """Write the tarball. `tree` is the kernel; its run_kselftest.sh and helpers go into the tarball."""
    folder = tree / "tools/testing/selftests"
    with tarfile.open(target, "w:gz") as tar:
        files = {f"kselftest/{name}": folder / "kselftest" / name for name in HELPERS}
        files |= {"run_kselftest.sh": folder / "run_kselftest.sh"}
        files |= {f"mm/{name}": path for name, path in programs.items()}
        for name, path in files.items():
            if path.exists():
                _add(tar, name, path.read_bytes(), 0o755)
        _add(tar, "mm/settings", f"timeout={selftests.SECONDS}\n".encode(), 0o644)
        _add(tar, LIST, "".join(f"mm:{name}\n" for name in programs).encode(), 0o644)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), mode
    tar.addfile(about, io.BytesIO(content))


def write(environ: Mapping[str, str], target: Path) -> Path:
    """Build the programs for $ARCH, without a kernel, and write the tarball; returns its path."""
    settings = from_environment(environ)
    source.judge(settings)
    selftests.provide(environ["ARCH"])
    session = SelftestRun(prepare(selftests.request(environ["ARCH"]), environ))
    names = [one.name for one in wanted(selftests.programs())]
    with session.launch.hold():
        programs = session.static(names)
    pack(session.launch.tree, programs, target)
    progress.say(f"{len(programs)} selftests for {settings.arch} in {target}")
    return target
