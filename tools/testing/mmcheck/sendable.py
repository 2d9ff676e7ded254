# SPDX-License-Identifier: GPL-2.0
"""make patches: the patches of known issues as mails, each checked against the kernel that it is for.

For each issue that the kernel has, out/patches/KERNEL/ gets a file that `git send-email` takes: author, Signed-off-by,
maintainers and lists. FROM='Name <address>' is the author; without it git's user.name and user.email are. A patch holds
if `git am` applies it to the kernel's files and checkpatch.pl --strict says nothing. ONLY= chooses issues by number.
Whether a patch fixes its issue is what `make known-issues` shows.
"""

import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import catalogue, command, judge, known_issues, machine, ours, source
from .errors import FAILED, PASSED, UserError
from .known_issues import Issue
from .settings import PROJECT, from_environment

_AUTHOR = re.compile(r"[^<>\n]+ <[^<>\s@]+@[^<>\s@]+>")


@dataclass(frozen=True)
class Mail:
    """A patch as a mail: its file, and what is wrong with it, or nothing."""

    issue: Issue
    path: Path
    faults: tuple[str, ...] = ()


def author(given: str) -> str:
    """FROM=, or whom git commits as; raises UserError where neither is a name with an address."""
    if not given:
        own = [
            subprocess.run(["git", "config", f"user.{what}"], capture_output=True, text=True).stdout.strip()
            for what in ("name", "email")
        ]
        if not all(own):
            raise UserError(
                "whose patches are these? Give FROM='Name <address>', or set git's user.name and user.email"
            )
        given = f"{own[0]} <{own[1]}>"
    if not _AUTHOR.fullmatch(given):
        raise UserError(f"FROM={given}: give it like 'Name <name@example.org>'")
    return given


def message(text: str) -> tuple[str, str]:
    """Subject and body of a patch of patches/: all above the line `---`."""
    head = text.partition("\n---\n")[0]
    first, _, body = head.partition("\n")
    return re.sub(r"^Subject: \[PATCH\] ", "", first), body.strip() + "\n"


def recipients(tree: Path, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Maintainers and lists for a change of `files`, as the tree's get_maintainer.pl gives them."""
    script = ["perl", "scripts/get_maintainer.pl", "--nogit", "--nogit-fallback", "--norolestats"]
    found = []
    for kind in ("--nol", "--nom"):
        lines = _run(tree, *script, kind, "-f", *files).stdout.splitlines()
        found.append([line.strip() for line in lines if "@" in line])
    return found[0], [line for line in found[1] if line not in found[0]]


def mail(issue: Issue, patch: Path, read: Callable[[str], str], tree: Path, sender: str, target: Path) -> Mail:
    """Write one patch, which applies, as a mail to `target`, and check it."""
    subject, body = message(patch.read_text())
    new = catalogue.patch(patch).files(read) or {}
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as name:
        folder = Path(name)
        _git(folder, "init", "-q")
        _commit(folder, {file: read(file) for file in new}, "the kernel", sender)
        gap = "" if re.match(r"[A-Z][a-z-]+: ", body.splitlines()[-1]) else "\n"
        _commit(folder, new, f"{subject}\n\n{body}{gap}Signed-off-by: {sender}\n", sender)
        to, cc = recipients(tree, list(new))
        addresses = [*(f"--to={one}" for one in to), *(f"--cc={one}" for one in cc)]
        target.write_text(_git(folder, "format-patch", "-1", "--stdout", "--no-signature", "--zero-commit", *addresses))
        _git(folder, "checkout", "-q", "HEAD~")
        faults = []
        if _run(folder, "git", *_identity(sender), "am", "-q", str(target)).returncode:
            faults.append("git am refuses it")
    # The tree has no history in which checkpatch.pl could look up a commit.
    options = ["--strict", "--terse", "--no-summary", "--ignore", "UNKNOWN_COMMIT_ID"]
    said = _run(tree, "perl", "scripts/checkpatch.pl", *options, str(target)).stdout
    faults += [
        line.removeprefix(f"{target}:") for line in said.splitlines() if re.search("(ERROR|WARNING|CHECK):", line)
    ]
    return Mail(issue, target, tuple(faults))


def _identity(sender: str) -> list[str]:
    name, _, address = sender.rpartition(" <")
    return ["-c", f"user.name={name}", "-c", f"user.email={address[:-1]}", "-c", "commit.gpgsign=false"]


def _commit(folder: Path, files: Mapping[str, str], text: str, sender: str) -> None:
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(content)
    _git(folder, "add", "-A")
    _git(folder, *_identity(sender), "commit", "-q", "--no-verify", "-m", text)


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # The user's settings of git would change what a mail looks like.
    plain = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, env=plain)


def _git(folder: Path, *words: str) -> str:
    return _run(folder, "git", *words).stdout


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status: 1 if a patch does not hold."""
    settings = from_environment({"ARCH": "arm64", **environ})
    sender = author(environ.get("FROM") or "")
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
            one = mail(issue, PROJECT / fitting, read, kernel.path, sender, target)
        mails.append(one)
        print(f"{issue.number:3} {'DOES NOT HOLD' if one.faults else 'holds':13} {issue.title}")
        for fault in one.faults:
            print(f"    {fault}")
    print(f"{sum(not one.faults for one in mails)} of {len(mails)} patches for linux {kernel.label} hold: {folder}")
    return FAILED if any(one.faults for one in mails) else PASSED


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("patches", run, environ)


def start(arguments: Sequence[str]) -> int:
    """The command with its arguments."""
    return command.start("sendable", __doc__, lambda _: main(os.environ), arguments)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
