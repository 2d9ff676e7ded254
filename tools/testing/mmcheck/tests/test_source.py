# SPDX-License-Identifier: GPL-2.0
"""Kernel sources from packages: they are found, checked and unpacked. A refused source leaves no files."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.kernel import archive, source
from mmcheck.kernel.archive import Archive, Package, newest

from .conftest import User


@pytest.fixture
def deb(tmp_path: Path) -> Path:
    """A source package like Debian's, with a megabyte that does not compress."""
    top = tmp_path / "linux-source-9.9"
    (top / "mm").mkdir(parents=True)
    (top / "Makefile").write_text("VERSION = 9\n")
    (top / "mm/noise").write_bytes(os.urandom(1 << 20))
    for number in range(2000):  # the error messages of tar about so many files do not fit into a pipe
        (top / f"mm/file-{number}.c").write_text("int x;\n")
    package = tmp_path / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "usr/src").mkdir(parents=True)
    (package / "DEBIAN/control").write_text(
        "Package: linux-source-9.9\nVersion: 9.9.1-1\nArchitecture: all\n"
        "Maintainer: x <x@example.org>\nDescription: x\n"
    )
    tar = package / "usr/src/linux-source-9.9.tar.xz"
    subprocess.run(["tar", "-cJf", tar, "-C", tmp_path, top.name], check=True)
    path = tmp_path / "linux-source-9.9_9.9.1-1_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", package, path], check=True, stdout=subprocess.DEVNULL)
    return path


def test_unpack(deb: Path, tmp_path: Path) -> None:
    target = tmp_path / "src/linux-9.9.1-1"
    target.parent.mkdir()
    source.unpack(deb, target)
    assert (target / "Makefile").read_text() == "VERSION = 9\n"
    assert (target / "mm/noise").stat().st_size == 1 << 20
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("keep", [100, 200_000, 900_000])
def test_a_truncated_package_leaves_nothing(deb: Path, tmp_path: Path, keep: int) -> None:
    deb.write_bytes(deb.read_bytes()[:keep])
    target = tmp_path / "src/linux-9.9.1-1"
    target.parent.mkdir()
    with pytest.raises(UserError, match="is damaged and was removed; run again"):
        source.unpack(deb, target)
    assert os.listdir(target.parent) == []
    assert not deb.exists()


def test_a_corrupt_package_leaves_nothing(deb: Path, tmp_path: Path) -> None:
    content = bytearray(deb.read_bytes())
    content[len(content) // 2] ^= 0xFF
    deb.write_bytes(content)
    (tmp_path / "src").mkdir()
    with pytest.raises(UserError, match="is damaged"):
        source.unpack(deb, tmp_path / "src/linux-9.9.1-1")
    assert os.listdir(tmp_path / "src") == []


def test_a_full_disk_leaves_nothing(deb: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], capture_output=True, text=True)
    if mount.returncode:
        pytest.skip(f"mounting a small tmpfs: {mount.stderr.strip()}")
    try:
        with pytest.raises(UserError, match=r"no space left in .*XDG_CACHE_HOME"):
            source.unpack(deb, disk / "linux-9.9.1-1")
        assert os.listdir(disk) == []
        assert deb.exists()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_an_interrupt_leaves_nothing(deb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mmcheck.core.progress.Progress.advance", interrupt)
    (tmp_path / "src").mkdir()
    with pytest.raises(KeyboardInterrupt):
        source.unpack(deb, tmp_path / "src/linux-9.9.1-1")
    assert os.listdir(tmp_path / "src") == []
    assert deb.exists()


def test_the_cache_answers_first(tmp_path: Path) -> None:
    for name in ("linux-6.12.9-1", "linux-6.12.117-1~deb12u1", "linux-7.3.4-1"):
        (tmp_path / "src" / name).mkdir(parents=True)
    assert source.from_archive("6.12", tmp_path).path.name == "linux-6.12.117-1~deb12u1"
    assert source.from_archive("6.12.9", tmp_path).label == "6.12.9-1"
    assert source.unpacked("6.1", tmp_path / "src") is None
    assert source.unpacked("latest", tmp_path / "src") is None


def test_the_newest_version_is_that_of_dpkg() -> None:
    order = ["6.12.9-1", "6.12.117-1~bpo13+1", "6.12.117-1~deb12u1", "6.12.117-1", "6.12.117-2", "7.3.4-1", "1:0.1"]
    for number, version in enumerate(order, 1):
        assert newest(order[:number]) == newest(order[number - 1 :: -1]) == version
    assert newest([]) == ""


def test_a_version_without_a_revision_has_revision_zero() -> None:
    assert newest(["6.12-0", "6.12"]) == "6.12-0" and newest(["6.12", "6.12-0"]) == "6.12"
    assert newest(["6.12-0~rc1", "6.12"]) == newest(["6.12", "6.12-0~rc1"]) == "6.12"


def test_one_version_needs_no_dpkg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert newest(["6.12", "6.12"]) == "6.12"
    with pytest.raises(UserError, match=r"no dpkg.*KDIR="):
        newest(["6.12", "6.13"])


UBUNTU = [Package("linux-source-6.8.0", "6.8.0-31.31"), Package("linux-source-6.8.0", "6.8.0-45.45")]


def test_ubuntus_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_archive(tmp_path, monkeypatch, {"": UBUNTU})
    assert {asked.find(wanted).version for wanted in ("6.8", "6.8.0", "latest")} == {"6.8.0-45.45"}
    with pytest.raises(UserError, match=r"KERNEL=6\.12: the archive has 6\.8; choose one"):
        asked.find("6.12")
    assert archive.NAME.match("linux-source-6.8.0") and not archive.NAME.match("linux-source-6.8.0-generic")
    (tmp_path / "src/linux-6.8.0-45.45").mkdir(parents=True)
    assert source.from_archive("6.8", tmp_path).label == "6.8.0-45.45"


def test_unpack_as_ubuntu_packs(tmp_path: Path) -> None:
    """Ubuntu packs the source with bzip2 in a folder of its own, with a link next to the folder."""
    top = tmp_path / "linux-source-6.8.0"
    top.mkdir()
    (top / "Makefile").write_text("VERSION = 6\n")
    package = tmp_path / "package"
    folder = package / "usr/src/linux-source-6.8.0"
    folder.mkdir(parents=True)
    (package / "DEBIAN").mkdir()
    (package / "DEBIAN/control").write_text(
        "Package: linux-source-6.8.0\nVersion: 6.8.0-1.1\nArchitecture: all\n"
        "Maintainer: x <x@example.org>\nDescription: x\n"
    )
    with tarfile.open(folder / "linux-source-6.8.0.tar.bz2", "w:bz2") as archived:
        archived.add(top, arcname=top.name)
    (package / "usr/src/linux-source-6.8.0.tar.bz2").symlink_to("linux-source-6.8.0/linux-source-6.8.0.tar.bz2")
    deb = tmp_path / "x.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", package, deb], check=True, stdout=subprocess.DEVNULL)
    (tmp_path / "src").mkdir()
    source.unpack(deb, tmp_path / "src/linux-6.8.0-1.1")
    assert (tmp_path / "src/linux-6.8.0-1.1/Makefile").read_text() == "VERSION = 6\n"


def fake_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suites: dict[str, list[Package]]) -> Archive:
    """An archive with these packages in its suites. The suite "" stands for the machine's own sources."""
    asked = Archive(tmp_path / "apt")
    added = [""]
    monkeypatch.setattr(asked, "_update", lambda: None)

    def add(suite: str) -> bool:
        added.append(suite)
        return True

    monkeypatch.setattr(asked, "_add_suite", add)
    monkeypatch.setattr(asked, "_packages", lambda _: [p for suite in added for p in suites.get(suite, [])])
    return asked


OWN = [Package("linux-source-6.12", "6.12.115-1"), Package("linux-source-6.12", "6.12.117-1")]
BACKPORTS = [Package("linux-source-7.3", "7.3.4-1~bpo13+1")]


@pytest.mark.parametrize(
    ("wanted", "version"),
    [("6.12", "6.12.117-1"), ("6.12.115", "6.12.115-1"), ("7.3", "7.3.4-1~bpo13+1"), ("latest", "7.3.4-1~bpo13+1")],
)
def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, version: str) -> None:
    asked = fake_archive(tmp_path, monkeypatch, {"": OWN, archive.EXTRA_SUITES[0]: BACKPORTS})
    assert asked.find(wanted).version == version


def test_debian_12_gets_the_kernel_of_debian_13(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [Package("linux-source-6.1", "6.1.147-1")]
    asked = fake_archive(tmp_path, monkeypatch, {"": old, archive.EXTRA_SUITES[0]: BACKPORTS, "trixie": OWN})
    assert asked.find("6.12").version == "6.12.117-1"


def test_an_archive_that_moved_on_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_archive(tmp_path, monkeypatch, {"": OWN, "unstable": BACKPORTS})
    with pytest.raises(UserError, match=r"KERNEL=5\.4: the archive has 6\.12, 7\.3; choose one, or KERNEL=latest"):
        asked.find("5.4")


def test_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_archive(tmp_path, monkeypatch, {})
    with pytest.raises(UserError, match="cannot be reached; check the network, or use KDIR"):
        asked.find("6.12")


def test_a_download_that_is_not_what_the_index_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Archive(tmp_path / "apt")
    file = tmp_path / "apt/archives/linux-source-6.12_6.12.117-1_all.deb"
    file.write_bytes(b"not this")

    def apt(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        out = f"SHA256: {archive.sha256(Path('/dev/null'))}\n" if command[0] == "apt-cache" else ""
        return subprocess.CompletedProcess(command, 0, out, "E: Hash Sum mismatch\n")

    monkeypatch.setattr(asked, "_apt", apt)
    with pytest.raises(UserError, match="failed \\(Hash Sum mismatch\\); nothing was kept"):
        asked.download(OWN[1])
    assert not file.exists()


def test_a_kernel_that_is_too_old_is_refused_before_anything_is_fetched(user: User, tree: Path) -> None:
    for kernel in ("6.1", "6.11.3", "5.10"):
        done = user.kunit("run", "--arch=arm64", KDIR="", KERNEL=kernel)
        assert done.returncode == 125
        assert done.stderr == f"kunit.py: KERNEL={kernel} is too old: the suites need Linux 6.12 or later\n"
    for name in ("mm/internal.h", "mm/util.c"):
        (tree / name).write_text("int x;\n")
    done = user.kunit("run", "--arch=arm64")
    assert done.returncode == 125 and "it has no folio_pte_batch()" in done.stderr and done.stderr.count("\n") == 1
    (tree / "mm/util.c").write_text("int folio_pte_batch(void);\n")
    assert user.kunit("run", "--arch=arm64").returncode == 0
