# SPDX-License-Identifier: GPL-2.0
"""An unpacked kernel source: a package from the archive, in the cache; or the user's own tree."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..core import dry, progress
from ..core.errors import UserError
from ..core.lock import held
from ..core.settings import Settings, is_place
from . import patch, seal, tarball, toolchain
from .archive import Archive, newest

NEEDED = 1_900_000_000
"""While a packaged source is fetched and unpacked, it needs at most this many bytes on the disk."""

BUNZIP2 = [
    sys.executable,
    "-c",
    "import bz2, shutil, sys; shutil.copyfileobj(bz2.open(sys.stdin.buffer), sys.stdout.buffer)",
]
"""A command that unpacks bzip2 data with Python. Not every machine has the program bzip2."""

MARKS = ("Makefile", "Kconfig", "mm/Makefile", "tools/testing/kunit/kunit.py")
"""Files that every kernel tree with KUnit has."""

OLDEST = (6, 12)
"""The oldest kernel that the suites are built for."""

BATCHES = ("mm/internal.h", "folio_pte_batch"), ("mm/util.c", "folio_pte_batch")
"""Files that may define the function that nearly all suites need. A tree without this function is too old."""


@dataclass(frozen=True)
class Source:
    """A kernel tree that is read and never written.

    path:  its root
    label: short, unique and fit for a file name; build folders are named after it
    fixed: its content never changes (an unpacked package)
    """

    path: Path
    label: str
    fixed: bool


def judge(settings: Settings, own_machine: bool = False) -> None:
    """Raise UserError if the user asked for something that is not a kernel, or that cannot be booted. Nothing is
    fetched.

    own_machine: the user says how to boot the kernel (--qemu_config), so any architecture is accepted
    """
    if settings.kdir is not None:
        from_folder(settings.kdir)
    elif is_place(settings.kernel):
        tarball.judge(settings.kernel)
    elif settings.kernel != "latest":
        version = re.fullmatch(r"(\d+)\.(\d+)[\w.+~-]*", settings.kernel)
        if not version:
            raise UserError(
                f"KERNEL={settings.kernel}: give a version such as 6.12 or 7.3, the word latest, a tarball, or a URL"
            )
        if (int(version[1]), int(version[2])) < OLDEST:
            raise UserError(f"KERNEL={settings.kernel} is too old: the suites need Linux 6.12 or later")
    if settings.patch:
        patch.read(settings.patch)
    source = here(settings)
    if source:
        fit(source)
    known = (bootable(source.path) if source else []) or [*toolchain.ARCHITECTURES]
    if settings.arch not in known and not own_machine:
        raise UserError(f"--arch={settings.arch}: no such architecture; choose from {', '.join(known)}")


def fit(source: Source) -> None:
    """Raise UserError if the kernel is too old for the suites. A backported folio_pte_batch() is enough."""
    texts = [(source.path / name, word) for name, word in BATCHES]
    if all(file.exists() and word not in file.read_text(errors="replace") for file, word in texts):
        raise UserError(f"linux {source.label} is too old: it has no folio_pte_batch(), which Linux has had since 6.9")


def bootable(tree: Path) -> list[str]:
    """The architectures that a kernel's own kunit.py can boot."""
    found = sorted(path.stem for path in tree.glob("tools/testing/kunit/qemu_configs/*.py"))
    return ["um", *found] if found else []


def here(settings: Settings) -> Source | None:
    """The source that the user asked for, or None if it is not on this machine; nothing is fetched."""
    if settings.kdir is not None:
        return from_folder(settings.kdir)
    if is_place(settings.kernel):
        return None
    return unpacked(settings.kernel, settings.cache / "src")


def obtain(settings: Settings) -> Source:
    """The source that the user asked for; downloads and unpacks it the first time."""
    judge(settings)
    found = here(settings) or _fetched(settings)
    if found.fixed:
        seal.verify(found.path, settings.cache)
    return found


def _fetched(settings: Settings) -> Source:
    """A source that is not on this machine yet, or that is in a tarball."""
    if dry.instead("fetch", f"linux {settings.kernel} into {settings.cache / 'src'}"):
        name = Path(settings.kernel).name.removeprefix("linux-")
        return Source(settings.cache / "src" / f"linux-{name}", name, fixed=True)
    if is_place(settings.kernel):
        with locked(settings.cache):
            found = package_source(tarball.obtain(settings.kernel, settings.cache / "src"))
    else:
        found = from_archive(settings.kernel, settings.cache)
    fit(found)
    return found


@contextlib.contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Hold the cache for one process that adds a source. Raises UserError if the cache cannot be written."""
    sources = cache / "src"
    try:
        sources.mkdir(parents=True, exist_ok=True)
        with held(cache / "lock", "it prepares a kernel source in this cache"):
            for stale in sources.glob(".unpacking-*"):
                shutil.rmtree(stale)
            if shutil.disk_usage(sources).free < NEEDED:
                raise no_space(sources)
            yield
    except OSError as error:
        why = error.strerror
        raise UserError(f"cannot write the cache {cache}: {why}; choose another cache with XDG_CACHE_HOME") from None


def from_folder(path: Path) -> Source:
    """The user's own tree at `path`. Raises UserError if this is no kernel tree."""
    if not path.is_dir():
        raise UserError(f"KDIR={path}: no such folder")
    for mark in MARKS:
        if not (path / mark).is_file():
            raise UserError(f"KDIR={path}: not a kernel tree with KUnit (it has no {mark})")
    # A tree that is moved to the path of an older tree gets another label. With the same label, the
    # objects of the older tree would look newer than the sources of the new tree.
    identity = f"{path.resolve()} {path.stat().st_ino}"
    name = re.sub(r"[^A-Za-z0-9._-]", "_", path.name) or "linux"
    return Source(path, f"{name}-{sha256(identity.encode()).hexdigest()[:8]}", fixed=False)


def from_archive(kernel: str, cache: Path) -> Source:
    """The packaged kernel `kernel`. It is fetched if the cache lacks it."""
    sources = cache / "src"
    if found := unpacked(kernel, sources):
        return found
    with locked(cache):
        if found := unpacked(kernel, sources):
            return found
        archive = Archive(cache / "apt")
        package = archive.find(kernel)
        target = sources / f"linux-{package.version}"
        if not target.exists():
            deb = archive.download(package)
            unpack(deb, target)
            deb.unlink()
    return package_source(target)


def unpacked(kernel: str, sources: Path) -> Source | None:
    """The newest unpacked version of `kernel` below `sources`, if any ("latest" always asks the archive)."""
    if kernel == "latest":
        return None
    names = [p.name.removeprefix("linux-") for p in sources.glob("linux-*")]
    fitting = [n for n in names if n == kernel or re.match(re.escape(kernel) + r"[.-]", n)]
    version = newest(fitting)
    return package_source(sources / f"linux-{version}") if version else None


def package_source(path: Path) -> Source:
    """The Source of an unpacked package in folder `path`, named linux-VERSION."""
    return Source(path, re.sub(r"[^\w.-]", "_", path.name.removeprefix("linux-")), fixed=True)


def unpack(deb: Path, target: Path) -> None:
    """Unpack the kernel tree in the source package `deb` as the folder `target`, all of it or nothing."""
    listing = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True)
    member = re.search(r"\s(\d+) \S+ \S+ (\./usr/src/linux-source-\S+\.tar\.(?:xz|bz2))$", listing.stdout, re.MULTILINE)
    if listing.returncode or not member:
        deb.unlink()
        raise UserError(f"{deb.name} is damaged and was removed; run again to fetch it anew")
    with tarball.unpacking(target) as temporary:
        pump(deb, member.group(2), int(member.group(1)), temporary)


def no_space(folder: Path) -> UserError:
    """The error for a full disk."""
    return UserError(
        f"no space left in {folder}: a kernel source needs 2 GB; "
        "free some space, or choose another folder with XDG_CACHE_HOME"
    )


def pump(deb: Path, member: str, size: int, target: Path) -> None:
    """Unpack `member` (`size` bytes) of `deb` with xz or bzip2, and tar, into `target`, and show the progress."""
    unpacker = ["xz", "-dc", "-T0"] if member.endswith(".xz") else BUNZIP2
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as package,
        subprocess.Popen(["tar", "-xO", member], stdin=package.stdout, stdout=subprocess.PIPE) as inner,
        subprocess.Popen(
            unpacker,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as plain,
        subprocess.Popen(
            ["tar", "-x", "--strip-components=1", "--no-same-owner", "-C", target],
            stdin=plain.stdout,
            stderr=subprocess.PIPE,
        ) as writer,
        progress.Progress(f"unpacking {deb.name} (percent)", total=100) as shown,
    ):
        assert inner.stdout and plain.stdin and plain.stdout and package.stdout and writer.stderr
        package.stdout.close()
        plain.stdout.close()
        complaints: list[str] = []

        def watch() -> None:
            # After an error tar would go on with the next file, and fill its error pipe with messages.
            for line in writer.stderr or ():
                complaints.append(line.decode(errors="replace"))
                writer.kill()

        watcher = threading.Thread(target=watch)
        watcher.start()
        passed = 0
        try:
            while block := inner.stdout.read(1 << 20):
                plain.stdin.write(block)
                passed += len(block)
                shown.advance(100 * passed // size)
            plain.stdin.close()
        except BrokenPipeError:
            pass  # the later commands of the pipe report the reason
        except BaseException:
            for process in (package, inner, plain, writer):
                process.kill()
            watcher.join()
            raise
        failed = bool(writer.wait()) | bool(plain.wait()) | (passed != size)
        watcher.join()
        if failed:
            inner.kill()
            package.kill()
            free = shutil.disk_usage(target).free
            if any("No space left" in line for line in complaints) or free < (1 << 20):
                raise no_space(target.parent)
            deb.unlink(missing_ok=True)
            raise UserError(f"{deb.name} is damaged and was removed; run again to fetch it anew")


def generated(path: Path) -> list[str]:
    """The build results in the tree at `path`: relative names of files that match its .gitignore files.

    The list is empty if nothing was built in the tree. git does the matching. If the tree is no repository, git gets
    an empty index in a temporary folder. git writes nothing into the tree.
    """
    signs = (".config", "include/config", "include/generated", "scripts/basic/fixdep", "vmlinux")
    if not any((path / sign).exists() for sign in signs):
        return []
    if not shutil.which("git"):
        raise UserError(f"KDIR={path} contains build results, and mmcheck needs git to find them; install git")
    # The .gitignore of a distribution may match the whole tree. The files below are still sources.
    sources = ("/*/", "/Kbuild", "/Kconfig", "/Makefile", "/COPYING", "/MAINTAINERS", ".gitignore", ".kunitconfig")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--others", "--ignored"]
    command += [f"--exclude=!{name}" for name in sources]
    command += ["--exclude-per-directory=.gitignore"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    with tempfile.TemporaryDirectory() as folder:
        if not (path / ".git").exists():
            subprocess.run(["git", "init", "-q", "--bare", folder], check=True, stdin=subprocess.DEVNULL)
            environment |= {"GIT_DIR": folder, "GIT_WORK_TREE": str(path)}
        listed = subprocess.run(command, env=environment, cwd=path, capture_output=True)
    if listed.returncode:
        raise UserError(f"KDIR={path}: git ls-files failed: {listed.stderr.decode(errors='replace').strip()}")
    return [name for name in listed.stdout.decode(errors="surrogateescape").split("\0") if name]
