# SPDX-License-Identifier: GPL-2.0
"""The private working copy of a kernel tree."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from mmcheck.kernel import shadow
from mmcheck.kernel.source import Source, generated

from .conftest import state


@pytest.fixture
def source(tree: Path) -> Source:
    return Source(tree, "fake", fixed=False)


def built_in(tree: Path) -> None:
    """Write the files that a build in `tree` would write."""
    for name in (".config", "vmlinux", "mm/memory.o", "mm/.memory.o.cmd", "include/config/auto.conf"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("built\n")


def test_links_reach_the_source_and_our_files(source: Source, tmp_path: Path, project: Path) -> None:
    copy = tmp_path / "copy"
    shadow.make(source, copy, project)
    assert (copy / "drivers").is_symlink()
    assert (copy / "mm/memory.c").samefile(source.path / "mm/memory.c")
    assert (copy / "mm/tests/Makefile").samefile(project / "mm/tests/Makefile")
    assert "tests/" in (copy / "mm/Makefile").read_text()
    assert not (copy / "tools/testing/kunit/kunit.py").is_symlink()
    assert os.access(copy / "tools/testing/kunit/kunit.py", os.X_OK)


def test_the_source_is_not_touched(source: Source, tmp_path: Path, project: Path) -> None:
    before = state(source.path)
    shadow.make(source, tmp_path / "copy", project)
    assert state(source.path) == before


def test_made_twice_nothing_changes(source: Source, tmp_path: Path, project: Path) -> None:
    copy = tmp_path / "copy"
    shadow.make(source, copy, project)
    before = state(copy)
    shadow.make(source, copy, project)
    assert state(copy) == before


def test_build_folders_stay(source: Source, tmp_path: Path, project: Path) -> None:
    copy = tmp_path / "copy"
    shadow.make(source, copy, project)
    for name in ("copy-arm64-4K/mm", "other-arm64-4K/mm", "mm/copy-um"):
        (copy / name).mkdir(parents=True)
        (copy / name / "memory.o").touch()
    shadow.make(source, copy, project)
    assert (copy / "copy-arm64-4K/mm/memory.o").exists()
    assert not (copy / "other-arm64-4K").exists()
    assert not (copy / "mm/copy-um").exists()


def test_files_that_come_and_go(source: Source, tmp_path: Path, project: Path) -> None:
    copy = tmp_path / "copy"
    shadow.make(source, copy, project)
    (source.path / "mm/new.c").write_text("")
    (source.path / "mm/memory.c").unlink()
    (project / "mm/tests/Makefile").unlink()
    (project / "mm/tests").rmdir()
    shadow.make(source, copy, project)
    assert (copy / "mm/new.c").exists()
    assert not os.path.lexists(copy / "mm/memory.c")
    assert not os.path.lexists(copy / "mm/tests")


@pytest.mark.parametrize("git", [False, True])
@pytest.mark.parametrize("ignore_all", [False, True])
def test_results_of_a_build_in_the_tree_are_left_out(
    source: Source, tmp_path: Path, project: Path, git: bool, ignore_all: bool
) -> None:
    """This also holds if .gitignore ignores everything in the top folder, as in Debian's source package."""
    tree = source.path
    if ignore_all:
        (tree / ".gitignore").write_text((tree / ".gitignore").read_text() + "/*\n")
    if git:
        for command in (["init", "-q"], ["add", "-f", "."]):
            subprocess.run(["git", *command], cwd=tree, check=True)
    assert generated(tree) == []
    built_in(tree)
    before = state(tree)
    copy = tmp_path / "copy"
    shadow.make(source, copy, project)
    assert state(tree) == before
    for name in (".config", "vmlinux", "mm/memory.o", "mm/.memory.o.cmd", "include/config"):
        assert not os.path.lexists(copy / name), name
    for name in ("Makefile", "Kconfig", "mm/memory.c", "drivers/net/dummy.c"):
        assert (copy / name).exists(), name


def test_fingerprint_follows_every_file(source: Source, project: Path) -> None:
    seen = {shadow.fingerprint(source, project)}
    (source.path / "drivers/net/dummy.c").write_text("int changed;\n")
    seen.add(shadow.fingerprint(source, project))
    (source.path / "drivers/net/another.c").write_text("")
    seen.add(shadow.fingerprint(source, project))
    (project / "Kconfig.kunit").write_text("# longer than before\n")
    seen.add(shadow.fingerprint(source, project))
    assert len(seen) == 4
    assert shadow.fingerprint(source, project) in seen


def test_what_had_another_content_does_not_look_old(source: Source, tmp_path: Path, project: Path) -> None:
    copy = tmp_path / "copy"
    names = ("mm/memory.c", "drivers/net/dummy.c")
    before = {name: (source.path / name).read_bytes() for name in names}
    shadow.make(source, copy, project, others=dict.fromkeys(names, b"broken\n"))
    built = {name: (copy / name).stat().st_mtime_ns for name in names}
    time.sleep(0.01)
    shadow.make(source, copy, project)
    assert {name: (copy / name).read_bytes() for name in names} == before
    # make compares time stamps, so the files must be newer than objects that were built from the other content.
    times = {name: (copy / name).stat().st_mtime_ns for name in names}
    assert all(times[name] > built[name] for name in names)
    shadow.make(source, copy, project)
    assert {name: (copy / name).stat().st_mtime_ns for name in names} == times
    (source.path / "mm/memory.c").write_text("edited\n")
    shadow.make(source, copy, project)
    assert (copy / "mm/memory.c").read_text() == "edited\n"
