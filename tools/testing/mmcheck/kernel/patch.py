# SPDX-License-Identifier: GPL-2.0
"""PATCH=: a patch for the kernel, applied to the private copy and never to the user's tree."""

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from ..core import git
from ..core.errors import UserError
from . import toolchain


def inside(name: str) -> bool:
    """Whether a relative file name stays within its folder."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def names(text: str) -> list[str]:
    """The files that a unified diff (or a mail with a diff) changes, makes and removes.

    Hunks are skipped by their line counts. Otherwise a removed line might look like the header of another file.
    """
    return list(dict.fromkeys(name for pair in _heads(text) for name in pair if name != "/dev/null"))


def _heads(text: str) -> Iterator[tuple[str, str]]:
    """The old and the new name of each file, without their first folder; /dev/null means no file."""
    old, left = "", [0, 0]
    for line in text.splitlines():
        if any(count > 0 for count in left):
            left[0] -= line[:1] in (" ", "-", "")
            left[1] -= line[:1] in (" ", "+", "")
        elif match := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            left = [1 if count is None else int(count) for count in match.groups()]
        elif match := re.match(r"(rename|copy) (from|to) (.+)", line):
            old = match[3] if match[2] == "from" else old
            if match[2] == "to":
                yield old, match[3]
        elif line.startswith("--- "):
            old = _short(line)
        elif line.startswith("+++ ") and old:
            yield old, _short(line)


def _short(line: str) -> str:
    name = line[4:].split("\t")[0].strip()
    return name if name == "/dev/null" else name.partition("/")[2]


def read(path: Path) -> tuple[str, list[str]]:
    """The text of the patch `path`, and the files that it changes. Raises UserError if it is no patch."""
    try:
        text = path.read_text(errors="surrogateescape")
    except OSError as error:
        raise UserError(f"PATCH={path}: {error.strerror}") from None
    files = names(text)
    if not files:
        raise UserError(f"PATCH={path}: the patch changes no file; give a unified diff")
    for name in files:
        if not inside(name):
            raise UserError(f"PATCH={path}: {name!r} is not a path of a file in a kernel tree")
    return text, files


def apply(path: Path, content: Callable[[str], bytes]) -> dict[str, bytes | None]:
    """The files that the patch `path` changes, with their new content; None for a removed file.

    content: returns the current content of a file of the kernel; raises OSError if there is no such file
    """
    _, files = read(path)
    toolchain.provide(["git"])
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        for name in files:
            target = Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.write_bytes(content(name))
            except OSError:
                continue  # a new file
        # Run git outside of any repository: in a repository, git would ignore files that are not below its root.
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", str(path.absolute())],
            cwd=folder,
            env=git.environment(GIT_CEILING_DIRECTORIES=str(Path(folder).parent)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            why = next(iter(done.stderr.splitlines()), "git apply failed").removeprefix("error: ")
            raise UserError(f"PATCH={path} does not apply: {why}")
        return {name: (Path(folder) / name).read_bytes() if (Path(folder) / name).is_file() else None for name in files}
