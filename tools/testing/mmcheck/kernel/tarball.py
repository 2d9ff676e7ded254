# SPDX-License-Identifier: GPL-2.0
"""Kernels from outside the package archive: KERNEL= names a tarball, its URL, or the URL of a git repository with #REF.

A checksum or a signature next to the tarball is checked. A signature may be for the tarball or, as on kernel.org, for
the tar file inside it. A tarball that is damaged, or that has a wrong checksum or a bad signature, is not kept.
"""

import contextlib
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from ..core import progress
from ..core.errors import UserError
from . import archive, toolchain

SUFFIX = re.compile(r"\.(?:tar(?:\.(?:xz|gz|bz2|zst))?|tgz|txz)$")
SIGNATURES = ("sign", "sig", "asc")
CHECKSUMS = ("sha256sums.asc", "SHA256SUMS", "sha256sum.txt")
"""Names of files that list the checksums of a whole folder."""

PROGRAMS = {"xz": "xz", "txz": "xz", "gz": "gzip", "tgz": "gzip", "bz2": "bzip2", "zst": "zstd"}
"""For each suffix of a file name, the program that unpacks such files."""

SECONDS = 60
"""A download fails if no data arrives for this many seconds."""

Beside = Callable[[str], bytes | None]
"""Takes the name of a file next to the tarball. Returns the content of the file, or None if the file does not exist."""


@contextlib.contextmanager
def unpacking(target: Path) -> Iterator[Path]:
    """A new folder that becomes `target` at the end of the block; an error or an interrupt removes it."""
    temporary = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    temporary.chmod(0o755)
    try:
        yield temporary
        temporary.rename(target)
    except BaseException:
        progress.say("removing the incomplete source")
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def judge(given: str) -> None:
    """Raise UserError if `given` cannot be a kernel. Nothing is fetched."""
    if not _is_git(given) and not SUFFIX.search(given.partition("#")[0]):
        raise UserError(f"KERNEL={given}: give a tarball (.tar.xz, .tar.gz, ...), or a git URL (*.git, or with #REF)")
    if "://" not in given and not Path(given).is_file():
        raise UserError(f"KERNEL={given}: there is no such file")


def obtain(given: str, sources: Path) -> Path:
    """The folder with the kernel `given`, below the folder `sources`; it is fetched and unpacked the first time."""
    judge(given)
    if _is_git(given):
        return _from_git(given, sources)
    if "://" not in given:
        file = Path(given)
        target = sources / f"linux-tar-{_stem(file.name)}-{archive.sha256(file)[:8]}"
        if not target.exists():
            _check(given, file, lambda name: _read(file.parent / name))
            _unpack(given, file, target)
        return target
    target = sources / f"linux-tar-{_stem(given)}-{sha256(given.encode()).hexdigest()[:8]}"
    if not target.exists():
        name = given.rpartition("/")[2]
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=sources) as folder:
            file = Path(folder) / name
            with progress.Progress(f"downloading {name} (percent)", total=100) as shown:
                _download(given, file, shown)
            _check(given, file, lambda other: _get(urllib.parse.urljoin(given, other)))
            _unpack(given, file, target)
    return target


def _is_git(given: str) -> bool:
    return "://" in given and (given.endswith(".git") or "#" in given or given.startswith(("git:", "ssh:")))


def _stem(name: str) -> str:
    """A short name for folders: without path, `linux-` and suffix."""
    return re.sub(r"[^\w.-]", "_", SUFFIX.sub("", name.rpartition("/")[2]).removeprefix("linux-")) or "linux"


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


def _get(url: str) -> bytes | None:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except (OSError, ValueError):
        return None


def _download(url: str, file: Path, shown: progress.Progress) -> None:
    """Fetch `url` into `file`."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer, file.open("wb") as target:
            size = int(answer.headers.get("Content-Length") or 0)
            done = 0
            while block := answer.read(1 << 20):
                target.write(block)
                done += len(block)
                shown.advance(100 * done // size if size else 0)
    except urllib.error.HTTPError as error:
        raise UserError(f"KERNEL={url}: the server says {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise UserError(f"KERNEL={url}: {why}; nothing was kept: check the address and the network") from None
    if size and done != size:
        raise UserError(f"KERNEL={url}: the download ended after {done} of {size} bytes; nothing was kept: run again")


def _check(given: str, file: Path, beside: Beside) -> None:
    """Check the checksum and the signature next to a tarball. Raises UserError if one is wrong."""
    checked = []
    if expected := _checksum(file.name, beside):
        if archive.sha256(file) != expected:
            raise UserError(
                f"KERNEL={given}: its SHA-256 differs from the one in its checksum file; nothing was kept: try again"
            )
        checked.append("checksum")
    inner = re.sub(r"(?<=\.tar)\.\w+$", "", file.name)
    names = [*((f"{file.name}.{end}", False) for end in SIGNATURES), *((f"{inner}.{end}", True) for end in SIGNATURES)]
    for name, unpacked in names:
        if signature := beside(name):
            state, key = _signature(file, signature, unpacked and inner != file.name)
            if state == "good":
                checked.append(f"signature by {key}")
            elif state == "bad":
                raise UserError(f"KERNEL={given}: the signature {name} is bad; nothing was kept: fetch the file again")
            elif not checked:
                raise UserError(
                    f"KERNEL={given}: gpg has no key {key} to check {name}: import the key, or put {file.name}.sha256 "
                    "with the right checksum next to the tarball"
                )
            break
    what = " and ".join(checked)
    progress.say(f"{file.name}: {what} checked" if what else f"{file.name}: there is no checksum or signature for it")


def _checksum(name: str, beside: Beside) -> str:
    """The SHA-256 of the file `name`, from a checksum file next to it; "" if there is none."""
    for other in (f"{name}.sha256", *CHECKSUMS):
        text = (beside(other) or b"").decode(errors="replace")
        if other == f"{name}.sha256" and (match := re.match(r"([0-9a-f]{64})\b", text)):
            return match[1]
        if match := re.search(rf"^([0-9a-f]{{64}}) [ *]{re.escape(name)}$", text, re.MULTILINE):
            return match[1]
    return ""


def _signature(file: Path, signature: bytes, unpacked: bool) -> tuple[str, str]:
    """The verdict of gpg on a signature: "good", "bad" or "unknown"; and the key."""
    toolchain.provide(["gpg"])
    with tempfile.NamedTemporaryFile(suffix=".sign") as own:
        own.write(signature)
        own.flush()
        command = ["gpg", "--batch", "--status-fd", "1", "--verify", own.name]
        if unpacked:
            with subprocess.Popen([*_unpacker(file.name), "-dc", file], stdout=subprocess.PIPE) as plain:
                done = subprocess.run([*command, "-"], stdin=plain.stdout, capture_output=True, text=True)
        else:
            done = subprocess.run([*command, str(file)], capture_output=True, text=True)
    for word, state in (("BADSIG", "bad"), ("VALIDSIG", "good"), ("NO_PUBKEY", "unknown"), ("ERRSIG", "unknown")):
        if match := re.search(rf"^\[GNUPG:\] {word} (\w+)", done.stdout, re.MULTILINE):
            # With an expired or revoked key, gpg also prints VALIDSIG, but its status is not 0.
            return ("bad" if state == "good" and done.returncode else state), match[1]
    return "bad", ""


def _unpacker(name: str) -> list[str]:
    program = PROGRAMS[name.rpartition(".")[2]]
    toolchain.provide([program])
    return [program]


def _unpack(given: str, file: Path, target: Path) -> None:
    """Unpack a tarball as the folder `target`, all of it or nothing."""
    if file.name.rpartition(".")[2] in PROGRAMS:
        _unpacker(file.name)
    with unpacking(target) as temporary:
        with progress.Progress(f"unpacking {file.name}"):
            command = ["tar", "-x", "--strip-components=1", "--no-same-owner", "-C", str(temporary), "-f", str(file)]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            why = next(iter(done.stderr.splitlines()), "tar failed")
            raise UserError(f"KERNEL={given} cannot be unpacked: {why}; nothing was kept")
        if not (temporary / "Kconfig").is_file():
            raise UserError(f"KERNEL={given}: this is no kernel tree (it has no Kconfig at its top); nothing was kept")


def _from_git(given: str, sources: Path) -> Path:
    """The folder with a commit of a remote repository."""
    toolchain.provide(["git"])
    url, _, name = given.partition("#")
    name = name or "HEAD"
    if re.fullmatch(r"[0-9a-f]{40}", name):
        commit = name
    else:
        asked = subprocess.run(["git", "ls-remote", "--", url, name, f"{name}^{{}}"], capture_output=True, text=True)
        if asked.returncode:
            why = (asked.stderr.strip().splitlines() or ["git ls-remote failed"])[0]
            raise UserError(f"KERNEL={given}: {why}; check the address and the network")
        # For an annotated tag git prints the tag first, and its commit last.
        lines = asked.stdout.split()
        if not lines:
            raise UserError(f"KERNEL={given}: the repository has no {name}; give a branch or a tag after #")
        commit = lines[-2]
    target = sources / f"linux-git-{commit[:12]}"
    if target.exists():
        return target
    with unpacking(target) as temporary, progress.Progress(f"fetching {name} of {url}"):
        for words in (["init", "-q"], ["fetch", "-q", "--depth=1", url, commit], ["checkout", "-q", "FETCH_HEAD"]):
            done = subprocess.run(["git", "-C", temporary, *words], capture_output=True, text=True)
            if done.returncode:
                why = (done.stderr.strip().splitlines() or ["git failed"])[0]
                raise UserError(f"KERNEL={given}: {why}; nothing was kept")
    return target
