# SPDX-License-Identifier: GPL-2.0
"""The private working copy: a grafted kernel tree that consists mostly of symbolic links.

If a folder of the source needs no change, the working copy has one link to it. If a folder has a
grafted file in it, or results of a build in the user's tree, the working copy has a real folder
with links in it. So the working copy is quick to make, needs almost no disk, and shows an edit of
the source at once. The source does not change, not even in its link counts and time stamps.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from ..core import disk, ours
from ..core.errors import UserError
from ..core.settings import PROJECT
from . import graft
from .patch import inside
from .source import Source, generated

COPIED = "tools/testing/kunit"
"""kunit.py resolves the links in its own path to find its tree, so the working copy needs a copy of kunit.py."""

LOCAL_CONFIG = ("local_config.mk", "local_config.h", "local_config.h_gen")
"""Files in which the mm selftests record the libraries of this machine. In the working copy they are empty, since the
programs are static and run on another machine."""


def make(
    source: Source,
    target: Path,
    project: Path = PROJECT,
    features: Sequence[str] = (),
    others: Mapping[str, bytes | None] | None = None,
) -> None:
    """Make `target` a working copy of `source` with the overlay and `features` grafted, or bring it up to date.

    others: the content of files that differ from the source, by name in the tree; None for a file that is left out
    A folder whose name begins with the name of `target` and "-" is a build folder, and stays. Files with the right
    content are not touched, so that make sees no change in their time stamps.
    """
    files: dict[str, Path | bytes] = {name: project / name for name in graft.overlay_files(project)}
    files |= {name: text.encode() for name, text in graft.edited(source.path, features).items()}
    for path in sorted((source.path / COPIED).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[str(path.relative_to(source.path))] = path.read_bytes()
    files |= {f"{graft.SELFTESTS}/mm/{name}": b"" for name in LOCAL_CONFIG}
    for name, content in (others or {}).items():
        if not inside(name):
            raise UserError(f"{name!r} is not a path of a file in a kernel tree")
        if content is not None:
            files[name] = content
    left_out = set() if source.fixed else set(generated(source.path))
    removed = {name for name, content in (others or {}).items() if content is None}
    left_out |= removed
    files = {name: content for name, content in files.items() if name not in removed}
    files[ours.MARKER] = b""
    try:
        ours.claim(target, known=(target / "Kconfig.kunit").is_symlink())
        _fill(source.path, target, "", files, left_out, _folders([*files, *left_out]))
    except OSError as error:
        raise UserError(f"cannot make the working copy {target}: {error.strerror}; choose another O=") from None


def reader(tree: Path, features: Sequence[str]) -> Callable[[str], str]:
    """Returns a function that reads files as the usual working copy has them."""
    overlay = set(graft.overlay_files())
    edited = graft.edited(tree, features)

    def read(name: str) -> str:
        if name in edited:
            return edited[name]
        return ((PROJECT if name in overlay else tree) / name).read_text()

    return read


def _folders(names: Iterable[str]) -> set[str]:
    """All parent folders of `names`."""
    return {str(parent) for name in names for parent in Path(name).parents}


def _fill(
    source: Path, target: Path, prefix: str, files: dict[str, Path | bytes], left_out: set[str], real: set[str]
) -> None:
    """Fill the real folder `target`; `prefix` is its place in the tree, "" or ending in a slash."""
    wanted: dict[str, Path | bytes | None] = {}
    if source.is_dir():
        for entry in os.scandir(source):
            name = prefix + entry.name
            if name not in left_out and entry.name not in (".git", graft.JOURNAL):
                wanted[entry.name] = None if name in real else Path(entry.path)
    depth = prefix.count("/")
    for name, file in files.items():
        if name.startswith(prefix):
            parts = name.split("/")
            wanted[parts[depth]] = file if len(parts) == depth + 1 else None

    for entry in os.scandir(target):
        build = prefix == "" and entry.name.startswith(f"{target.name}-")
        if entry.name not in wanted and not build:
            _remove(Path(entry.path))
    for name, content in wanted.items():
        path = target / name
        if content is None:
            if path.is_symlink() or path.is_file():
                path.unlink()
            path.mkdir(exist_ok=True)
            _fill(source / name, path, f"{prefix}{name}/", files, left_out, real)
            if not any(path.iterdir()):
                path.rmdir()  # the folder had only build results; an empty include/config would stop the next build
        elif isinstance(content, Path) and content.is_dir() and path.is_dir() and not path.is_symlink():
            _fill(content, path, f"{prefix}{name}/", files, left_out, real)
        elif isinstance(content, Path) and content.is_file() and path.is_file() and not path.is_symlink():
            # The file had another content before. A link would look older than the objects built from that content.
            if not disk.same(path, content.read_bytes()):
                path.write_bytes(content.read_bytes())
        elif isinstance(content, Path):
            if not path.is_symlink() or path.readlink() != content:
                _remove(path)
                path.symlink_to(content)
        elif path.is_symlink() or not disk.same(path, content):
            _remove(path)
            path.write_bytes(content)
            if name.endswith(".py"):
                path.chmod(0o755)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def fingerprint(source: Source, project: Path = PROJECT, features: Sequence[str] = ()) -> str:
    """A digest of the features and of all files of the source and the overlay.

    It covers names, sizes and time stamps, not contents. Selftests do not count, since no kernel is built from them.
    For an unpacked package the path, which includes the version, is enough.
    """
    digest = sha256(f"{source.path} {features}\n".encode())
    if not source.fixed:
        for line in _stats(str(source.path)):
            digest.update(line)
    for name in graft.overlay_files(project):
        if name.startswith(graft.SELFTESTS):
            continue
        state = (project / name).stat()
        digest.update(f"{name} {state.st_size} {state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _stats(folder: str) -> Iterator[bytes]:
    """One line for each file below `folder`."""
    stack = [folder]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                try:
                    state = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if stat.S_ISDIR(state.st_mode):
                    if entry.name != ".git":
                        stack.append(entry.path)
                else:
                    yield f"{entry.path} {state.st_size} {state.st_mtime_ns}\n".encode(errors="surrogateescape")
