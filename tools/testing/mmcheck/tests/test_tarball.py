# SPDX-License-Identifier: GPL-2.0
"""Kernels from tarballs, from a server on this machine, and from a git repository."""

import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.core.settings import features, from_environment, is_place
from mmcheck.kernel import source, tarball

from .conftest import User, fake_tree


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    """A small kernel as a tarball, in its own folder."""
    fake_tree(tmp_path / "linux-6.99")
    folder = tmp_path / "server"
    folder.mkdir()
    file = folder / "linux-6.99.tar.gz"
    subprocess.run(["tar", "-czf", file, "-C", tmp_path, "linux-6.99"], check=True)
    return file


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The folder for sources in an empty cache."""
    folder = tmp_path / "cache/src"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def server(tar: Path) -> Iterator[str]:
    """The address of a server on this machine that serves the tarball."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tar.parent))) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{one.server_address[1]}"
        one.shutdown()
        thread.join()


@pytest.fixture
def gpg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a signing key of gpg."""
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    words = ["--quick-generate-key", "Jane Doe <jane@example.org>", "ed25519", "sign", "never"]
    subprocess.run(["gpg", "--batch", "-q", "--passphrase", "", *words], check=True, capture_output=True)
    yield home
    subprocess.run(["gpgconf", "--kill", "all"], check=False)


def sign(file: Path, to: Path) -> None:
    """Sign a file."""
    subprocess.run(["gpg", "--batch", "--yes", "-q", "--detach-sign", "-o", to, file], check=True)


def nothing_kept(sources: Path) -> bool:
    """Whether the cache is still empty."""
    return os.listdir(sources) == []


def test_what_is_a_place() -> None:
    assert not any(map(is_place, ("6.12", "6.12.117-1~deb12u1", "latest")))
    assert all(map(is_place, ("linux-6.13.tar.xz", "x.tgz", "../x.tar", "https://example.org/linux.git#v6.13")))
    assert from_environment({"KERNEL": "a.tar.xz"}).kernel == str(Path("a.tar.xz").absolute())
    assert from_environment({"KERNEL": "a.tar.xz"}).features == () and features({}, own_tree=False) != ()


def test_a_tarball_is_unpacked_once(tar: Path, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tarball.obtain(str(tar), sources)
    assert (target / "mm/memory.c").read_text() == "int memory;\n"
    assert target.name.startswith("linux-tar-6.99-")
    # The tarball does not provide a version: KERNEL=6.99 still asks the archive.
    assert source.unpacked("6.99", sources) is None
    monkeypatch.setattr(tarball, "_unpack", lambda *_: pytest.fail("unpacked again"))
    assert tarball.obtain(str(tar), sources) == target


def test_a_url_is_fetched_once(tar: Path, server: str, sources: Path) -> None:
    target = tarball.obtain(f"{server}/{tar.name}", sources)
    assert (target / "Makefile").exists() and target.name.startswith("linux-tar-6.99-")
    tar.unlink()
    assert tarball.obtain(f"{server}/{tar.name}", sources) == target
    assert os.listdir(sources) == [target.name]


@pytest.mark.parametrize("form", ["{sum}", "{sum}  {name}\n"])
def test_a_checksum_is_checked(tar: Path, server: str, sources: Path, form: str) -> None:
    beside = tar.with_name("SHA256SUMS" if "name" in form else f"{tar.name}.sha256")
    beside.write_text(form.format(sum=hashlib.sha256(tar.read_bytes()).hexdigest(), name=tar.name))
    assert tarball.obtain(f"{server}/{tar.name}", sources).exists()
    shutil.rmtree(sources)
    sources.mkdir()
    beside.write_text(form.format(sum="0" * 64, name=tar.name))
    for given in (f"{server}/{tar.name}", str(tar)):
        with pytest.raises(UserError, match="its SHA-256 differs from the one in its checksum file; nothing was kept"):
            tarball.obtain(given, sources)
        assert nothing_kept(sources)


@pytest.mark.parametrize("inner", [False, True])
def test_a_signature_is_checked(tar: Path, gpg: Path, sources: Path, inner: bool) -> None:
    plain = tar.with_suffix("")
    plain.write_bytes(subprocess.run(["gzip", "-dc", tar], capture_output=True, check=True).stdout)
    signature = plain.with_name(f"{plain.name}.sign") if inner else tar.with_name(f"{tar.name}.asc")
    sign(plain if inner else tar, signature)
    assert tarball.obtain(str(tar), sources).exists()
    shutil.rmtree(sources)
    sources.mkdir()
    (tar.parent / "other").write_text("x")
    sign(tar.parent / "other", signature)
    with pytest.raises(UserError, match=rf"the signature {signature.name} is bad; nothing was kept"):
        tarball.obtain(str(tar), sources)
    assert nothing_kept(sources)


def test_a_signature_by_an_unknown_key_is_no_signature(
    tar: Path, gpg: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(tar, tar.with_name(f"{tar.name}.sign"))
    empty = gpg.with_name("empty")
    empty.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(empty))
    with pytest.raises(UserError, match=r"gpg has no key .* import the key"):
        tarball.obtain(str(tar), sources)
    assert nothing_kept(sources)
    tar.with_name(f"{tar.name}.sha256").write_text(hashlib.sha256(tar.read_bytes()).hexdigest())
    assert tarball.obtain(str(tar), sources).exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("/no/such.tar.xz", "there is no such file"),
        ("https://example.org/linux", "give a tarball"),
        ("{server}/nosuch.tar.xz", "the server says 404"),
        ("http://127.0.0.1:1/linux.tar.xz", "refused"),
        ("{folder}/damaged.tar.gz", "cannot be unpacked"),
        ("{folder}/other.tar.gz", "this is no kernel tree"),
        ("file://{folder}/none.git", "check the address"),
    ],
)
def test_bad_places(tar: Path, server: str, sources: Path, given: str, says: str) -> None:
    (tar.parent / "damaged.tar.gz").write_bytes(tar.read_bytes()[:200])
    subprocess.run(["tar", "-czf", tar.parent / "other.tar.gz", "-C", tar.parent, tar.name], check=True)
    with pytest.raises(UserError, match=says) as error:
        tarball.obtain(given.format(server=server, folder=tar.parent), sources)
    assert "\n" not in str(error.value)
    assert nothing_kept(sources)


def test_a_git_url(tar: Path, tmp_path: Path, sources: Path) -> None:
    tree = tmp_path / "linux-6.99"
    person = ["-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A", "-f"], ["commit", "-qm", "x"], ["tag", "-am", "y", "v1"]):
        subprocess.run(["git", *person, *words], cwd=tree, check=True)
    url = f"file://{tree}/.git"
    first = tarball.obtain(url, sources)
    assert (first / "mm/memory.c").exists() and first.name.startswith("linux-git-")
    assert tarball.obtain(f"{url}#v1", sources) == first == tarball.obtain(f"{url}#main", sources)
    with pytest.raises(UserError, match="has no nosuch; give a branch or a tag"):
        tarball.obtain(f"{url}#nosuch", sources)
    assert os.listdir(sources) == [first.name]


def test_a_run_takes_a_tarball(user: User, tar: Path) -> None:
    (user.home / "x.tar.gz").write_bytes(tar.read_bytes())
    done = user.kunit("run", "--arch=arm64", KDIR="", KERNEL="x.tar.gz")
    assert done.returncode == 0, done.stderr
    assert "there is no checksum or signature for it" in done.stderr
    done = user.kunit("run", "--arch=arm64", KDIR="", KERNEL="y.tar.gz")
    assert done.returncode == 125 and done.stderr.count("\n") == 1 and "there is no such file" in done.stderr
