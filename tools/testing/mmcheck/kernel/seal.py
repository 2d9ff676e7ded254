# SPDX-License-Identifier: GPL-2.0
"""Notices a change of an unpacked source in the cache.

Working copies have links into the cache. So an edit of a file in one working copy may change all others. The files of
an unpacked source are read-only, but root can still write to them. So a seal next to the sources has a digest of each
file. Each run lists with find(1) the files that are newer than the seal, and reads only these.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from ..core import disk, dry, progress
from ..core.errors import UserError
from ..core.lock import held

LEFT_OUT = ("__pycache__", ".git")
"""The check of a source ignores these folders. Python and git write there, and no kernel is built from them."""

NAMED = 3
"""A message names at most this many files."""

_good: set[Path] = set()
"""The sources that this process has checked and found unchanged."""


def verify(source: Path, cache: Path) -> None:
    """Raise UserError if the unpacked `source` was changed. A source without a seal gets one."""
    if source in _good or dry.on():
        return
    seal = cache / "sealed" / f"{source.name}.json"
    if not seal.exists():
        try:
            with held(cache / "lock", f"it seals {source}"):
                close(source, seal)
        except PermissionError:
            return  # it is the cache of another user, and this user cannot change it
    if changed := touched(source, seal):
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        named = ", ".join(changed[:NAMED])
        raise UserError(
            f"{source} was changed since it was unpacked: {named}{more}; remove it with rm -r {source}, "
            "and the next run fetches it again"
        )
    _good.add(source)


def close(source: Path, seal: Path) -> None:
    """Make all files of `source` read-only, and write their digests into `seal`."""
    seal.parent.mkdir(parents=True, exist_ok=True)
    found = {}
    with progress.Progress(f"sealing {source.name}"):
        for name in _names(source):
            path = source / name
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & 0o7555)
            found[name] = _state(path)
    disk.replace(seal, json.dumps(found, indent=0).encode())


def touched(source: Path, seal: Path) -> list[str]:
    """The files that differ from the seal, that are missing, or that are new."""
    began = time.time()
    prune = [word for name in LEFT_OUT for word in ("-name", name, "-prune", "-o")]
    command = ["find", str(source), *prune, "-cnewer", str(seal), "-printf", r"%P\0"]
    names = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="surrogateescape")
    if not names:
        return []
    known: dict[str, str] = json.loads(seal.read_text())
    folders = [name for name in names.split("\0")[:-1] if (source / name).is_dir()]
    changed = {name for name in names.split("\0")[:-1] if name not in folders}
    changed = {name for name in changed if known.get(name) != _state(source / name)}
    if folders:
        changed |= {name for name in known if not os.path.lexists(source / name)}
    if not changed:
        with contextlib.suppress(PermissionError):
            os.utime(seal, (began, began))  # the next run does not have to read these files
    return sorted(changed)


def _names(source: Path) -> Iterator[str]:
    for place, folders, files in os.walk(source):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = [name for name in folders if name not in (*LEFT_OUT, *links)]
        for name in [*files, *links]:
            yield os.path.relpath(f"{place}/{name}", source)


def _state(path: Path) -> str:
    """A short form of a file's content: its digest, or the target of a link."""
    if path.is_symlink():
        return f"link to {path.readlink()}"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
