# SPDX-License-Identifier: GPL-2.0
"""make patches: writes the patches of known issues as mails, and checks each with the kernel that it is for.

For each issue that the kernel has, it writes a file for `git send-email` into out/patches/KERNEL/, with author,
Signed-off-by, maintainers and lists. FROM='Name <address>' sets the author; the default is git's user.name and
user.email. A patch holds if `git am` applies it to the kernel's files and checkpatch.pl --strict reports nothing. ONLY=
chooses issues by number. `make known-issues` shows whether a patch fixes its issue.
"""

import email.utils
import fnmatch
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import catalogue, command, judge, known_issues, machine, ours, series, source
from .errors import FAILED, PASSED, UserError
from .known_issues import Issue
from .settings import PROJECT, from_environment

_AUTHOR = re.compile(r"([^<>\n]+) <([^<>\s@]+@[^<>\s@]+)>")


@dataclass(frozen=True)
class Mail:
    """A patch as a mail: its file, and a list of what is wrong with it."""

    issue: Issue
    path: Path
    faults: tuple[str, ...] = ()


def author(given: str) -> tuple[str, str]:
    """Name and address from FROM=, or from git's configuration; raises UserError if both are missing."""
    if not given:
        return series.author()
    if not (match := _AUTHOR.fullmatch(given)):
        raise UserError(f"FROM={given}: give it like 'Name <name@example.org>'")
    return match[1], match[2]


def message(text: str) -> tuple[str, str]:
    """Subject and body of a patch of patches/: all above the line `---`."""
    head = text.partition("\n---\n")[0]
    first, _, body = head.partition("\n")
    return re.sub(r"^Subject: \[PATCH\] ", "", first), body.strip() + "\n"


def recipients(tree: Path, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Maintainers and lists for a change of `files`, as the tree's get_maintainer.pl gives them."""
    script = ["scripts/get_maintainer.pl", "--nogit", "--nogit-fallback", "--norolestats"]
    found = []
    for kind in ("--nol", "--nom"):
        found.append([line.strip() for line in _perl(tree, *script, kind, "-f", *files) if "@" in line])
    return found[0], [line for line in found[1] if line not in found[0]]


def mail(
    issue: Issue, patch: Path, read: Callable[[str], str], tree: Path, person: tuple[str, str], target: Path
) -> Mail:
    """Write a patch that applies as a mail to `target`, and check the mail."""
    subject, body = message(patch.read_text())
    new = catalogue.patch(patch).files(read) or {}
    gap = "" if re.match(r"[A-Z][a-z-]+: ", body.splitlines()[-1]) else "\n"
    to, cc = recipients(tree, list(new))
    addresses = [*(f"--to={one}" for one in to), *(f"--cc={one}" for one in cc)]
    faults = []
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as name:
        folder = Path(name) / "tree"
        folder.mkdir()
        repository = series.Repository(folder, person, email.utils.formatdate())
        repository.commit({file: read(file) for file in new}, "the kernel\n")
        repository.commit(new, f"{subject}\n\n{body}{gap}Signed-off-by: {person[0]} <{person[1]}>\n")
        repository.git("format-patch", "-q", "-1", "--no-signature", "--zero-commit", *addresses, "-o", name)
        target.write_bytes(next(Path(name).glob("*.patch")).read_bytes())
        repository.git("checkout", "-q", "HEAD~")
        try:
            repository.git("am", "-q", str(target))
        except subprocess.CalledProcessError:
            faults.append("git am refuses the patch")
    # The tree has no history in which checkpatch.pl could look up a commit.
    options = ["--strict", "--terse", "--no-summary", "--ignore", "UNKNOWN_COMMIT_ID"]
    said = _perl(tree, "scripts/checkpatch.pl", *options, str(target))
    faults += [line.removeprefix(f"{target}:") for line in said if re.search("(ERROR|WARNING|CHECK):", line)]
    return Mail(issue, target, tuple(faults))


def _perl(tree: Path, *words: str) -> list[str]:
    """The lines that a script of a kernel tree prints."""
    return subprocess.run(["perl", *words], cwd=tree, capture_output=True, text=True).stdout.splitlines()


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status: 1 if a patch does not hold."""
    settings = from_environment({"ARCH": "arm64", **environ})
    person = author(environ.get("FROM") or "")
    only = (environ.get("ONLY") or "*").split()
    machine.provide(["perl", "git", "patch"])
    kernel = source.obtain(settings)
    read = judge.reader(kernel.path, ())
    version = known_issues.version_of(read)
    issues = [i for i in known_issues.load() if any(fnmatch.fnmatch(str(i.number), glob) for glob in only)]
    found = [issue for issue in issues if issue.shown(version, read)]
    if not found:
        raise UserError(f"linux {kernel.label} has none of the known issues {' '.join(only)}")
    folder = settings.out / "patches" / kernel.label
    ours.empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mails = []
    for issue in found:
        target = folder / f"known-issue-{issue.number}.patch"
        fitting = next((name for name in issue.patch if catalogue.patch(PROJECT / name).files(read)), "")
        one = Mail(issue, target, ("no patch applies",))
        if fitting:
            one = mail(issue, PROJECT / fitting, read, kernel.path, person, target)
        mails.append(one)
        print(f"{issue.number:3} {'DOES NOT HOLD' if one.faults else 'holds':13} {issue.title}")
        for fault in one.faults:
            print(f"    {fault}")
    print(f"{sum(not one.faults for one in mails)} of {len(mails)} patches for linux {kernel.label} hold: {folder}")
    return FAILED if any(one.faults for one in mails) else PASSED


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("patches", run, environ)
