# SPDX-License-Identifier: GPL-2.0
"""Packages of the distribution, above all kernel sources, through apt.

apt keeps its lists and downloads in our cache, so it does not need root. It checks signatures.
The machine's own apt configuration says which archive to ask. If the configured suites lack the kernel, the archive's
backports, Debian 13 and the development suites are searched too.
"""

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import progress
from ..core.errors import UserError

NAME = re.compile(r"linux-source-(\d+\.\d+)(\.\d+)?$")
"""Debian has package names like linux-source-6.12. Ubuntu's name for 6.8 is linux-source-6.8.0."""

IMAGE = re.compile(r"linux-image-(\d+\.\d+)\.\d+[\w.+~-]*-cloud-arm64$")
"""Names of Debian's packages with a kernel for arm64 machines in a cloud, such as QEMU's."""

EXTRA_SUITES = ("trixie-backports", "stable-backports", "trixie", "testing", "unstable")
APT_SECONDS = 900
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Package:
    """One version of one package with a kernel: `linux-source-6.12`, `6.12.117-1~deb12u1`."""

    name: str
    version: str

    @property
    def kernel(self) -> str:
        """The version that the kernel gives itself: `6.12.117`."""
        return re.split(r"[-+~]", self.version.split(":")[-1])[0]

    @property
    def series(self) -> str:
        """The first two numbers of the kernel's version: `6.12`."""
        match = NAME.match(self.name) or IMAGE.match(self.name)
        return match[1] if match else ""


class Archive:
    """apt with private state below `folder`, for the machine's own architecture or for the Debian `architecture`."""

    def __init__(self, folder: Path, architecture: str = "") -> None:
        self.folder, self.architecture = folder, architecture
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._sources = folder / "extra.sources"
        self._sources.unlink(missing_ok=True)

    def find(self, wanted: str, names: re.Pattern[str] = NAME) -> Package:
        """The newest package of kernel `wanted`: "6.12", "6.12.117" or "latest". `names` are names of such packages.

        Raises UserError if the archive has no such kernel; the message lists the kernels that it has.
        """
        progress.say(f"asking the package archive for linux {wanted}")
        self._update()
        found = None if wanted == "latest" else self._match(wanted, names)
        for suite in EXTRA_SUITES:
            if found:
                break
            if not self._add_suite(suite):
                break
            self._update()
            # "latest" searches no suite after the backports: testing and unstable change from day to day.
            found = self._match(wanted, names)
        if found is None:
            known = sorted({p.series for p in self._packages(names)}, key=lambda series: [*map(int, series.split("."))])
            if not known:
                raise UserError("the package archive cannot be reached; check the network, or use KDIR=/path/to/linux")
            raise UserError(f"KERNEL={wanted}: the archive has {', '.join(known)}; choose one, or KERNEL=latest")
        return found

    def download(self, package: Package) -> Path:
        """Fetch the .deb of `package` into our folder and return its path, checked against the signed index."""
        target = self.folder / "archives"
        with progress.Progress(f"downloading {package.name} {package.version}"):
            done = self._apt("apt-get", "download", f"{package.name}={package.version}", cwd=target)
        shown = self._apt("apt-cache", "show", f"{package.name}={package.version}").stdout
        digest = re.search(r"^SHA256: (\w+)$", shown, re.MULTILINE)
        files = sorted(target.glob(f"{package.name}_*.deb"))
        for file in files:
            if digest and sha256(file) == digest.group(1):
                return file
        for file in files:
            file.unlink()
        raise UserError(
            f"downloading {package.name} failed ({first_error(done.stderr)}); "
            "nothing was kept: run again, or use KDIR=/path/to/linux"
        )

    def fetch(self, names: Sequence[str], target: Path) -> None:
        """Unpack the newest version of each package in `names` into a folder of the same name in `target`."""
        with progress.Progress(f"fetching {', '.join(names)} for {self.architecture}"):
            self._update()
            for name in names:
                done = self._apt("apt-get", "download", name, cwd=self.folder / "archives")
                files = sorted((self.folder / "archives").glob(f"{name}_*.deb"))
                if done.returncode or not files:
                    raise UserError(
                        f"fetching {name} failed ({first_error(done.stderr)}); check the network, and run again"
                    )
                (target / f"{name}.new").mkdir(parents=True, exist_ok=True)
                subprocess.run(["dpkg-deb", "-x", files[-1], target / f"{name}.new"], check=True)
                (target / f"{name}.new").rename(target / name)
                for file in files:
                    file.unlink()

    def newer(self, name: str, oldest: str) -> Path | None:
        """Fetch the newest version of the package `name` that is at least `oldest`, if necessary from EXTRA_SUITES.

        Returns its file, checked against the signed index, or None if the archive has no such version.
        """
        self._update()
        for suite in ("", *EXTRA_SUITES):
            if suite:
                if not self._add_suite(suite.replace("trixie", self._codename())):
                    return None
                self._update()
            rows = self._apt("apt-cache", "madison", name).stdout.splitlines()
            found = newest(row.split("|")[1].strip() for row in rows if row.count("|") == 2)
            if found and not _newer(oldest, found):
                return self.download(Package(name, found))
        return None

    def _codename(self) -> str:
        """The name of the Debian release that the machine uses, or "stable"."""
        text = self._apt("apt-get", "indextargets", "Created-By: Packages", "Origin: Debian").stdout
        match = re.search(r"^Codename: (\w+)$", text, re.MULTILINE)
        return match[1] if match else "stable"

    def _match(self, wanted: str, names: re.Pattern[str]) -> Package | None:
        candidates = {
            package.version: package
            for package in self._packages(names)
            if wanted in ("latest", package.series, package.kernel, package.version)
        }
        return candidates.get(newest(candidates))

    def depends(self, name: str) -> list[str]:
        """The packages that the newest version of the package `name` needs. Of alternatives, only the first counts."""
        shown = self._apt("apt-cache", "show", "--no-all-versions", name).stdout
        fields = re.findall(r"^(?:Pre-)?Depends: (.*)$", shown, re.MULTILINE)
        return [re.split(r"[\s|(:]", one.strip())[0] for field in fields for one in field.split(",")]

    def _packages(self, pattern: re.Pattern[str]) -> list[Package]:
        listed = self._apt("apt-cache", "pkgnames", pattern.pattern.partition("(")[0]).stdout.split()
        names = [name for name in listed if pattern.match(name)]
        if not names:
            return []
        rows = self._apt("apt-cache", "madison", *names).stdout.splitlines()
        fields = [[field.strip() for field in row.split("|")] for row in rows]
        return [Package(row[0], row[1]) for row in fields if len(row) == 3 and "Packages" in row[2]]

    def _add_suite(self, suite: str) -> bool:
        """Add one more suite of the Debian archive that the machine uses; False if the machine uses none."""
        text = self._apt("apt-get", "indextargets", "Created-By: Packages", "Origin: Debian").stdout
        for stanza in text.split("\n\n"):
            field = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
            # The main archive: the security archive has no backports.
            if field.get("Label") == "Debian" and "Repo-URI" in field:
                break
        else:
            return False
        signed = f"Signed-By: {KEYRING}\n" if KEYRING.exists() else ""
        with self._sources.open("a") as file:
            file.write(f"Types: deb\nURIs: {field['Repo-URI']}\nSuites: {suite}\nComponents: main\n{signed}\n")
        return True

    def _update(self) -> None:
        self._apt("apt-get", "update")

    def _apt(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run an apt program on our private state.

        apt reads its sources from one folder. Our folder has links to the machine's own sources and the extra suites.
        """
        parts = self.folder / "sources.list.d"
        parts.mkdir(exist_ok=True)
        for old in parts.iterdir():
            old.unlink()
        own = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
        for file in (*own, self._sources):
            if file.suffix in (".list", ".sources") and file.exists():
                (parts / f"{file.stem.replace('.', '_')}{file.suffix}").symlink_to(file)
        options = {
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": str(parts),
            "Dir::State": str(self.folder),
            "Dir::State::Lists": str(self.folder / "lists"),
            "Dir::State::status": "/dev/null",
            "Dir::Cache": str(self.folder),
            "Dir::Cache::Archives": str(self.folder / "archives"),
            "APT::Sandbox::User": "",
            "APT::Get::AllowUnauthenticated": "false",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::Retries": "2",
        }
        if self.architecture:
            options |= {"APT::Architecture": self.architecture, "APT::Architectures": self.architecture}
        arguments = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        try:
            return subprocess.run(
                [command[0], *arguments, *command[1:]],
                cwd=cwd,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=APT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise UserError(
                f"{command[0]} did not end within {APT_SECONDS} s; run again, or use KDIR=/path/to/linux"
            ) from None
        except FileNotFoundError:
            raise UserError(
                "this machine has no apt, which fetches packaged kernels and the programs that selftests need; "
                "use kunit.py with KDIR=/path/to/linux"
            ) from None


def newest(versions: Iterable[str]) -> str:
    """The newest of some Debian versions, as dpkg compares them; "" if there is none."""
    found = ""
    for version in dict.fromkeys(versions):
        found = version if not found or _newer(version, found) else found
    return found


def _newer(version: str, other: str) -> bool:
    try:
        command = ["dpkg", "--compare-versions", version, "gt", other]
        return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        raise UserError(
            "this machine has no dpkg, which compares versions of packaged kernels; use KDIR=/path/to/linux"
        ) from None


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def first_error(text: str) -> str:
    """apt's first error line, or a note that there is none."""
    return next((line[2:].strip() for line in text.splitlines() if line.startswith("E:")), "no reason given")
