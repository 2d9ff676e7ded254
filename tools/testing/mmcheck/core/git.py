# SPDX-License-Identifier: GPL-2.0
"""git: temporary repositories, and queries of the user's repositories."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import disk
from .errors import UserError


def environment(**more: str) -> dict[str, str]:
    """The environment for git: without the user's settings for git, and with the variables `more`."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**ours, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8", **more}


class Repository:
    """A temporary git repository, without any of the user's settings."""

    def __init__(self, folder: Path, person: tuple[str, str], date: str) -> None:
        self.folder = folder
        self._environment = environment()
        for role in ("AUTHOR", "COMMITTER"):
            for kind, value in (("NAME", person[0]), ("EMAIL", person[1]), ("DATE", date)):
                self._environment[f"GIT_{role}_{kind}"] = value
        self.git("init", "-q", "-b", "series")
        self.git("config", "core.fsync", "none")

    def git(self, *arguments: str, stdin: str = "") -> None:
        """Run git in the repository."""
        subprocess.run(["git", *arguments], cwd=self.folder, env=self._environment, input=stdin.encode(), check=True)

    def commit(self, files: Mapping[str, str], message: str) -> None:
        """Write `files`, and commit the whole tree."""
        for name, text in files.items():
            if not disk.same(self.folder / name, text.encode()):
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(text.encode())
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--cleanup=verbatim", "-F", "-", stdin=message)


def asked(folder: Path, *arguments: str) -> str:
    """The output of git in `folder`; "" if git fails or is missing. git writes nothing there."""
    command = ["git", "--no-optional-locks", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit_of(tree: Path) -> str:
    """The commit of a kernel tree; "" if the tree is not the root of a repository."""
    own = asked(tree, "rev-parse", "--is-inside-work-tree", "--show-cdup") == "true"
    return asked(tree, "rev-parse", "HEAD") if own else ""


def author() -> tuple[str, str]:
    """Name and address of the user."""
    here = Path.cwd()
    name, mail = asked(here, "config", "user.name"), asked(here, "config", "user.email")
    if not (name and mail):
        raise UserError("Signed-off-by needs a name and an address: set git config user.name and user.email")
    return name, mail
