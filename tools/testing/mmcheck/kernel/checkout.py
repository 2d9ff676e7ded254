# SPDX-License-Identifier: GPL-2.0
"""Commits of the user's git tree, in a private folder below O=. The user's repository is only read."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from ..core import git, ours, progress
from ..core.errors import UserError
from ..core.lock import held
from . import toolchain


def commit(kdir: Path, name: str) -> str:
    """The full name of the commit `name` in the repository of `kdir`. Raises UserError if there is none."""
    toolchain.provide(["git"])
    if not git.commit_of(kdir):
        raise UserError(f"KDIR={kdir}: this is not a git tree, so it has no commit {name}")
    if found := git.asked(kdir, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"):
        return found
    raise UserError(f"{name}: there is no such commit in KDIR={kdir}; git log lists the commits")


def mails(kdir: Path, span: str) -> bytes:
    """The commits `A..B` of the repository of `kdir`, as mails. Raises UserError if there are none."""
    first, _, last = span.partition("..")
    ends = f"{commit(kdir, first)}..{commit(kdir, last)}"
    text = git.asked(kdir, "format-patch", "--stdout", "--no-signature", "--binary", ends)
    if not text:
        raise UserError(f"{span}: there is no commit in this range of KDIR={kdir}")
    return f"{text}\n".encode(errors="surrogateescape")


class Checkout:
    """A work tree that shares the objects of the user's repository.

    folder: the work tree; its path stays the same for all commits, so builds of it are incremental
    """

    def __init__(self, kdir: Path, out: Path, name: str) -> None:
        """A checkout of the repository of `kdir`, below the folder `out`, for the purpose `name`."""
        where = git.asked(kdir, "rev-parse", "--path-format=absolute", "--git-path", "objects", "--git-path", "shallow")
        objects, _, shallow = where.partition("\n")
        if not objects:
            raise UserError(f"KDIR={kdir}: git cannot read this repository")
        label = f"{re.sub(r'[^A-Za-z0-9._-]', '_', kdir.name)}-{sha256(str(kdir.resolve()).encode()).hexdigest()[:8]}"
        self.folder = ours.claim(out / "checkout" / f"{name}-{label}")
        self.lock, self.objects, self.shallow = out / "lock" / f"{self.folder.name}.checkout", objects, Path(shallow)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other runs away from the work tree during the block. First clean up after a killed run."""
        with held(self.lock, f"it uses {self.folder}"):
            information = self.folder / ".git"
            for stale in information.rglob("*.lock"):
                stale.unlink()
            self.git("init", "-q")
            (information / "objects/info/alternates").write_text(f"{self.objects}\n")
            (information / "info/exclude").write_text(f"{ours.MARKER}\n")
            if self.shallow.is_file():
                (information / "shallow").write_bytes(self.shallow.read_bytes())
            # If there is no commit yet, git reset ends with status 128.
            self.git("reset", "-q", "--hard", accept=(0, 128))
            self.git("clean", "-ffdxq", "-e", ours.MARKER)
            yield

    def git(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> str:
        """The output of git in the work tree. Raises UserError for an exit status that is not in `accept`."""
        command = ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=git.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode not in accept:
            said = " ".join((done.stderr or done.stdout).split())
            raise UserError(f"git {arguments[0]} failed in {self.folder}: {said}")
        return done.stdout

    def go(self, name: str) -> None:
        """Check out the commit `name`."""
        progress.say(f"checking out {name[:12]} into {self.folder}")
        self.git("checkout", "-q", "--force", "--detach", name)
