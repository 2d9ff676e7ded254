# SPDX-License-Identifier: GPL-2.0
"""Unpacked sources in the cache are read-only. A run notices a changed file."""

import os
import shutil
import time
from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.kernel import seal

from .conftest import User, fake_tree

NAME = "linux-6.12.1-1"


@pytest.fixture
def source(user: User) -> Path:
    """A kernel source in the cache of a user without KDIR=."""
    user.environment |= {"KDIR": "", "KERNEL": "6.12"}
    return fake_tree(user.home / ".cache/mmcheck/src" / NAME)


@pytest.fixture
def sealed(source: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The source, and the file with its seal."""
    monkeypatch.setattr(seal, "_good", set())
    file = source.parents[1] / "sealed" / f"{NAME}.json"
    (source / "mm/link").symlink_to("memory.c")
    seal.verify(source, source.parents[1])
    seal._good.clear()
    time.sleep(0.02)  # time stamps of the file system are coarse
    return source, file


def test_an_edit_through_a_working_copy_ends_the_next_run(user: User, source: Path, tmp_path: Path) -> None:
    assert user.kunit("run", "--arch=arm64").returncode == 0
    link = tmp_path / "out/tree/6.12.1-1/drivers"
    assert link.is_symlink() and not (link / "net/dummy.c").stat().st_mode & 0o222
    assert user.kunit("run", "--arch=arm64").returncode == 0
    if os.geteuid():
        with pytest.raises(PermissionError):
            (link / "net/dummy.c").write_text("int mistake;\n")
        (link / "net/dummy.c").chmod(0o644)
    (link / "net/dummy.c").write_text("int mistake;\n")
    calls = len(user.calls())
    done = user.kunit("run", "--arch=arm64")
    assert (done.returncode, len(user.calls())) == (125, calls)
    assert done.stderr == (
        f"kunit.py: {source} was changed since it was unpacked: drivers/net/dummy.c; remove it with rm -r {source}, "
        "and the next run fetches it again\n"
    )


def test_a_source_that_is_fetched_again_is_good(user: User, source: Path) -> None:
    assert user.kunit("run", "--arch=arm64").returncode == 0
    shutil.rmtree(source)
    fake_tree(source)
    assert user.kunit("run", "--arch=arm64").returncode == 0


def change(source: Path, what: str) -> None:
    match what:
        case "file":
            (source / "mm/memory.c").write_text("int mistake;\n")
        case "same size and time":
            state = (source / "mm/memory.c").stat()
            (source / "mm/memory.c").write_text("int memorx;\n")
            os.utime(source / "mm/memory.c", ns=(state.st_atime_ns, state.st_mtime_ns))
        case "link":
            (source / "mm/link").unlink()
            (source / "mm/link").symlink_to("Makefile")
        case "new":
            (source / "mm/new.c").touch()
        case "new folder":
            (source / "new").mkdir()
            (source / "new/file.c").touch()
        case "file is gone":
            (source / "mm/memory.c").unlink()
        case "folder is gone":
            shutil.rmtree(source / "drivers")


@pytest.mark.parametrize(
    ("what", "file"),
    [
        ("file", "mm/memory.c"),
        ("same size and time", "mm/memory.c"),
        ("link", "mm/link"),
        ("new", "mm/new.c"),
        ("new folder", "new/file.c"),
        ("file is gone", "mm/memory.c"),
        ("folder is gone", "drivers/net/dummy.c"),
    ],
)
def test_each_change_is_noticed(sealed: tuple[Path, Path], what: str, file: str) -> None:
    source, _ = sealed
    change(source, what)
    for _ in range(2):
        with pytest.raises(UserError, match=rf"was changed since it was unpacked: {file}; remove it"):
            seal.verify(source, source.parents[1])


def test_what_changes_no_content_is_no_change(sealed: tuple[Path, Path]) -> None:
    source, file = sealed
    before = file.stat().st_mtime_ns
    content = (source / "mm/memory.c").read_bytes()
    (source / "mm/memory.c").unlink()
    (source / "mm/memory.c").write_bytes(content)
    (source / "lib/ctype.c").chmod(0o644)
    for name in seal.LEFT_OUT:
        (source / "tools/testing/kunit" / name).mkdir()
        (source / "tools/testing/kunit" / name / "x.pyc").touch()
    seal.verify(source, source.parents[1])
    assert file.stat().st_mtime_ns > before, "the next run reads these files again"
    seal._good.clear()
    change(source, "file")
    with pytest.raises(UserError, match=r"mm/memory\.c"):
        seal.verify(source, source.parents[1])


def test_a_message_names_few_files(sealed: tuple[Path, Path]) -> None:
    source, _ = sealed
    for number in range(seal.NAMED + 2):
        (source / f"mm/new{number}.c").touch()
    with pytest.raises(UserError, match=r"mm/new0.c, mm/new1.c, mm/new2.c and 2 more; remove"):
        seal.verify(source, source.parents[1])
