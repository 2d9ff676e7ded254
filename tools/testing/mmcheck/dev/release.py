# SPDX-License-Identifier: GPL-2.0
"""`make release VERSION=x.y.z`: checks that this commit can be released, tags it, and packs it.

The command first checks that the version is new, that the work tree is clean, that `make check` has passed for this
commit, and that CHANGELOG.md lists changes. If a check fails, the command writes nothing. Then the lines below
"Unreleased" get the version as their heading, in a separate commit. If git has a signing key, the tag is signed. Two
files are written to O/release: the sources, and the selftests as static programs with run_kselftest.sh. The command
does not push the commit or the tag.
"""

import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core import disk, dry, git, ours, progress
from ..core.errors import PASSED, UserError
from ..core.settings import PROJECT, out_of
from ..run import selftest_tar
from . import checked

CHANGELOG = "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
ARCH = "arm64"
"""The architecture of the selftests if ARCH= is not set."""


@dataclass(frozen=True)
class Plan:
    """The plan of a release.

    version:   the version, for example 1.2.3
    changelog: the whole new text of CHANGELOG.md; "" if CHANGELOG.md already has a heading for the version
    notes:     the lines about this version
    sign:      whether the tag is signed
    """

    version: str
    changelog: str
    notes: str
    sign: bool

    @property
    def tag(self) -> str:
        """The name of the tag."""
        return f"v{self.version}"

    def steps(self, out: Path) -> list[str]:
        """The steps of the release, in order."""
        commit = [f"commit {CHANGELOG} with the heading {self.version}"] if self.changelog else []
        kind = "signed" if self.sign else "annotated"
        return [
            *commit,
            f"make the {kind} tag {self.tag}",
            f"write {out}/mmcheck-{self.version}.tar.gz",
            "add selftests",
        ]


def number(version: str) -> tuple[int, ...]:
    """The version as numbers. Raises UserError if it is not a version."""
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        raise UserError(f"VERSION={version}: give three numbers, for example VERSION=1.2.0")
    return tuple(map(int, version.split(".")))


def heading(text: str, version: str, day: str) -> tuple[str, str]:
    """CHANGELOG.md with the heading `version`, or "" if it has this heading already, and the notes on the version."""
    if not (old := re.search(rf"^## {re.escape(version)}\b.*\n", text, re.MULTILINE)):
        if UNRELEASED not in text:
            raise UserError(f'{CHANGELOG} has no heading "Unreleased" or "{version}": add one and describe the changes')
        text = text.replace(UNRELEASED, f"{UNRELEASED}\n## {version}, {day}\n", 1)
    found = re.search(rf"^## {re.escape(version)}\b.*\n((?:(?!## ).*\n)*)", text, re.MULTILINE)
    notes = found[1].strip() if found else ""
    if not notes:
        raise UserError(f"{CHANGELOG} has no notes on {version}: below the heading Unreleased, describe the changes")
    return ("" if old else text), notes


def plan(version: str, out: Path, project: Path) -> Plan:
    """Check all conditions of a release. Raises UserError for the first condition that does not hold."""
    wanted = number(version)
    last = git.asked(project, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if git.asked(project, "rev-parse", "-q", "--verify", f"refs/tags/v{version}"):
        raise UserError(f"VERSION={version}: the tag v{version} already exists; choose the next version")
    if re.fullmatch(r"v\d+\.\d+\.\d+", last) and wanted <= number(last[1:]):
        raise UserError(f"VERSION={version}: {last} is already released; choose a later version")
    commit = git.commit_of(project)
    if not commit:
        raise UserError(f"{project} is not a git repository: clone the project with git, and release from the clone")
    if changed := git.asked(project, "status", "--porcelain"):
        raise UserError(f"commit or remove the changes of the work tree first: {changed.splitlines()[0].strip()}")
    if why := checked.missing(out, commit):
        raise UserError(f"{why}; run make check")
    text, notes = heading((project / CHANGELOG).read_text(), version, time.strftime("%Y-%m-%d", time.gmtime()))
    return Plan(version, text, notes, bool(git.asked(project, "config", "user.signingkey")))


def run_git(project: Path, *words: str) -> None:
    """Run git in the repository. If git fails, raises UserError with the message of git."""
    done = subprocess.run(["git", "-C", str(project), *words], capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        raise UserError(f"git {words[0]} failed: {said[-1]}")


def tag(it: Plan, project: Path) -> None:
    """Commit CHANGELOG.md and make the tag. If the tag cannot be made, remove the commit."""
    before = git.commit_of(project)
    git.author()
    if it.changelog:
        disk.replace(project / CHANGELOG, it.changelog.encode())
        run_git(project, "commit", "-q", "-s", "-m", f"Release {it.version}", "--", CHANGELOG)
    try:
        kind = "-s" if it.sign else "-a"
        run_git(project, "tag", kind, it.tag, "--cleanup=verbatim", "-m", f"mmcheck {it.version}\n\n{it.notes}\n")
    except UserError:
        if it.changelog:
            run_git(project, "reset", "-q", "--hard", before)
        raise


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    version = environ.get("VERSION") or ""
    if not version:
        raise UserError("VERSION= is missing: give the new version, for example VERSION=1.2.0")
    out = out_of(environ)
    folder = out / "release"
    it = plan(version, out, PROJECT)
    for step in it.steps(folder):
        progress.say(f"release {version}: {step}")
    if dry.instead("release", f"{it.tag}, and its files into {folder}"):
        return PASSED
    ours.empty(folder)
    name = f"mmcheck-{version}"
    # Build the selftests before the tag: after the tag, no step should fail.
    arch = environ.get("ARCH") or ARCH
    programs = selftest_tar.write({**environ, "ARCH": arch}, folder / f"{name}-selftests-{arch}.tar.gz")
    tag(it, PROJECT)
    sources = folder / f"{name}.tar.gz"
    run_git(PROJECT, "archive", f"--prefix={name}/", "-o", str(sources), it.tag)
    sums = "".join(f"{disk.digest(file.read_bytes())}  {file.name}\n" for file in (sources, programs))
    (folder / "sha256sums").write_text(sums)
    progress.say(f"the tag {it.tag} was made, and the files are in {folder}; publish with: git push --follow-tags")
    return PASSED
