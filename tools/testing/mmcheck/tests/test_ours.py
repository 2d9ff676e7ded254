# SPDX-License-Identifier: GPL-2.0
"""The commands change no files of other owners: in O=, in a kernel tree, or files that a guest or a mutant names."""

import io
import subprocess
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from mmcheck.core import disk, ours
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT, from_environment
from mmcheck.dev import bench_launcher, check
from mmcheck.dev.series import main as series
from mmcheck.kernel import shadow
from mmcheck.kernel.source import Source
from mmcheck.mutants import catalogue
from mmcheck.run import bundle, upstream
from mmcheck.run.session import SelftestRun
from mmcheck.study import coverage

from .conftest import User, fake_tree, state

MINE = "an hour's work\n"


@pytest.mark.parametrize("name", ["venv", "bundle", "series", "bench-launcher"])
def test_no_folder_of_others_below_o_is_emptied(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, tree: Path
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text(MINE)
    settings = from_environment({"ARCH": "arm64", "O": str(tmp_path), "HOME": str(tmp_path), "KDIR": str(tree)}, None)
    monkeypatch.setattr("mmcheck.kernel.source.from_archive", lambda *_: Source(tree, "x", fixed=True))
    monkeypatch.setattr("mmcheck.kernel.toolchain.provide", lambda *_: None)
    monkeypatch.setattr("mmcheck.core.git.author", lambda: "x")
    session = SimpleNamespace(
        settings=settings, launch=SimpleNamespace(build=tmp_path), build=lambda _: {}, broken=set()
    )
    environ = {"O": str(tmp_path), "HOME": str(tmp_path), "KDIR": str(tree)}
    does: dict[str, Callable[[], object]] = {
        "venv": lambda: check.tools(tmp_path),
        "bundle": lambda: bundle.pack(cast(SelftestRun, session), "", tmp_path / name),
        "series": lambda: series.run(environ),
        "bench-launcher": lambda: bench_launcher.Bench(environ),
    }
    with pytest.raises(UserError, match=r"is not empty, and mmcheck did not create this folder .* choose another O="):
        does[name]()
    assert (tmp_path / name / "mine").read_text() == MINE


def test_our_own_folders_are_emptied(tmp_path: Path) -> None:
    for _ in range(2):
        ours.empty(tmp_path / "x")
        assert [path.name for path in (tmp_path / "x").iterdir()] == [ours.MARKER]
        (tmp_path / "x/old").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    with pytest.raises(UserError, match="is not a folder that mmcheck has made"):
        ours.empty(tmp_path / "link")


def test_a_working_copy_does_not_replace_a_folder_of_others(tree: Path, tmp_path: Path, project: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "mine").write_text(MINE)
    with pytest.raises(UserError, match="is not empty"):
        shadow.make(Source(tree, "x", fixed=False), copy, project)
    assert (copy / "mine").read_text() == MINE


@pytest.mark.parametrize("name", ["../x.c", "/etc/x.c", "mm/../../x.c"])
def test_names_in_a_catalogue_stay_in_the_tree(tmp_path: Path, tree: Path, project: Path, name: str) -> None:
    folder = tmp_path / "mutants"
    folder.mkdir()
    entry = f'[[mutant]]\nname = "a"\nfile = "{name}"\nold = "x"\nnew = "y"\nharm = "z"\n'
    (folder / "a.toml").write_text(entry)
    with pytest.raises(UserError, match=r"a\.toml: .* is not a path of a file in a kernel tree"):
        catalogue.load(folder)
    (folder / "a.toml").unlink()
    (folder / "a.patch").write_text(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-x\n+y\n")
    with pytest.raises(UserError, match=r"a\.patch: .* is not a path of a file in a kernel tree"):
        catalogue.load(folder)
    with pytest.raises(UserError, match="is not a path of a file in a kernel tree"):
        shadow.make(Source(tree, "x", fixed=False), tmp_path / "copy", project, others={name: b""})


def test_what_a_guest_wrote_stays_in_the_build_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, outside = tmp_path / "build", tmp_path / "outside"
    for folder in (build / "mm", outside):
        folder.mkdir(parents=True)
    (build / "link").symlink_to(outside)
    names = ["mm/a.gcda", "../outside/b.gcda", "link/c.gcda", "mm/Makefile"]
    disk = tmp_path / "disk"
    with tarfile.open(disk, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(f"{str(build).lstrip('/')}/{name}")
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
    session = coverage.Session.__new__(coverage.Session)
    monkeypatch.setattr(session, "lcov", lambda *_: None)
    session.trace(build, disk, tmp_path / "info")
    assert (build / "mm/a.gcda").read_bytes() == b"x"
    assert list(outside.iterdir()) == []
    assert not (build / "mm/Makefile").exists()


LIB_MK = """\
all: $(TEST_GEN_FILES) $(if $(TEST_GEN_MODS_DIR),gen_mods_dir)
gen_mods_dir:
	$(MAKE) -C $(TEST_GEN_MODS_DIR)
.PHONY: gen_mods_dir
"""
PAGE_FRAG = """\
HERE := $(realpath $(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
all:
	touch $(HERE)/page_frag_test.ko $(realpath ../../../../..)/built
"""


def test_upstreams_modules_are_not_built_in_the_users_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = fake_tree(tmp_path / "linux")
    folder = tree / "tools/testing/selftests/mm"
    (folder / "Makefile").write_text(f"TEST_GEN_MODS_DIR := page_frag\n{(folder / 'Makefile').read_text()}")
    with (folder / "Makefile").open("a") as file:
        file.write("include ../lib.mk\n$(OUTPUT)/cow cow droppable:\n\ttouch $(OUTPUT)/cow\n")
    (folder.parent / "lib.mk").write_text(LIB_MK)
    (folder / "page_frag").mkdir()
    (folder / "page_frag/Makefile").write_text(PAGE_FRAG)
    copy = tmp_path / "copy"
    shadow.make(Source(tree, "x", fixed=False), copy)
    (copy / "tools/testing/selftests/mm/folio_tests.mk").unlink()
    (copy / "tools/testing/selftests/mm/folio_tests.mk").write_text("")
    before = state(tree)
    session = SelftestRun.__new__(SelftestRun)
    session.settings = from_environment({"ARCH": "x86_64", "O": str(tmp_path / "out"), "HOME": str(tmp_path)})
    session.folder = tmp_path / "results"
    (session.folder / "upstream").mkdir(parents=True)
    launch = SimpleNamespace(tree=copy, build=tmp_path / "build", label="x")
    monkeypatch.setattr(session, "launch", launch, raising=False)
    monkeypatch.setattr(session, "kernel", lambda: None)
    monkeypatch.setattr("mmcheck.boot.guest.packages", lambda *_: tmp_path / "libraries")
    upstream.build(session)
    assert (session.folder / "upstream/cow").exists()
    assert state(tree) == before


def test_results_inside_the_kernel_tree_are_refused(user: User, tree: Path) -> None:
    done = user.kunit("run", "--arch=arm64", O=str(tree / "out"))
    assert done.returncode == 125
    assert f"O={tree / 'out'} is inside KDIR={tree}" in done.stderr
    assert not (tree / "out").exists()


def test_two_at_once_make_one_disk(tmp_path: Path) -> None:
    # The second process starts while the first process still makes the disk.
    mkfs = tmp_path / "mkfs"
    mkfs.write_text('#!/bin/sh\nfor file; do :; done\nsleep 0.5\necho made >> "$file"\necho x >> "$0.calls"\n')
    mkfs.chmod(0o755)
    script = f"from mmcheck.boot import guest; from pathlib import Path; guest.MKFS = {str(mkfs)!r}; guest.DISK = 0; "
    script += f"guest.disk(Path({str(tmp_path / 'xfs.img')!r}))"
    environment = {"PYTHONPATH": str(PROJECT / "tools/testing"), "PATH": "/usr/bin:/bin"}
    children = [subprocess.Popen(["python3", "-c", script], env=environment) for _ in range(2)]
    assert [child.wait(timeout=30) for child in children] == [0, 0]
    assert (tmp_path / "mkfs.calls").read_text() == "x\n"
    assert (tmp_path / "xfs.img").read_text() == "made\n"


def test_two_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    file = tmp_path / "a[1].json"

    def write(content: bytes) -> None:
        for _ in range(200):
            disk.replace(file, content)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, content) for content in (b"one", b"other")]:
            done.result()
    assert file.read_bytes() in (b"one", b"other") and list(tmp_path.iterdir()) == [file]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "a[1].json"
    file.write_text("mine")
    (tmp_path / f"{file.name}.7-7{disk.SUFFIX}").write_text("half")
    disk.tidy(file)
    assert list(tmp_path.iterdir()) == [file]
