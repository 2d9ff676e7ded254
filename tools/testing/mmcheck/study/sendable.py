# SPDX-License-Identifier: GPL-2.0
"""make patches: writes the patches of known issues as mails, and checks each patch with its kernel.

For each issue that the kernel has, the command writes a file for `git send-email` into out/patches/KERNEL/, with
author, Signed-off-by, maintainers and lists. FROM='Name <address>' sets the author; the default is git's user.name
and user.email. ONLY= chooses issues by number. Then only the tests of these issues run, because the kernel still has
the other issues.

A patch passes if all these conditions hold: `git am` applies it to the kernel's files, checkpatch.pl --strict reports
nothing, the kernel builds with it, and `make known-issues` shows that it fixes its issue. On one machine (arm64 with 4K
pages, or the machine that ARCH= and PAGES= name) all tests run without the patches and with them. Each test that no
issue names must keep its verdict. BOOT=no leaves out all builds and boots.

The command prints the verdict on a patch when the tests on its machine have ended. The record of the run has the whole
result. After an interrupt it has the results up to the interrupt.
"""

import email.utils
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core import dry, git, ours
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import PROJECT, from_environment
from ..kernel import known_issues, shadow, source, toolchain
from ..kernel.known_issues import Issue
from ..mutants import catalogue
from ..run import closing, record
from . import patched
from .proof import Proof

_AUTHOR = re.compile(r"([^<>\n]+) <([^<>\s@]+@[^<>\s@]+)>")


@dataclass(frozen=True)
class Mail:
    """A patch as a mail: its file, and its faults."""

    issue: Issue
    path: Path
    faults: tuple[str, ...] = ()


def author(given: str) -> tuple[str, str]:
    """Name and address from FROM=, or from git's configuration. Raises UserError if both are missing."""
    if not given:
        return git.author()
    if not (match := _AUTHOR.fullmatch(given)):
        raise UserError(f"FROM={given}: give it like 'Name <name@example.org>'")
    return match[1], match[2]


def message(text: str) -> tuple[str, str]:
    """Subject and body of a file in patches/: everything above the line `---`."""
    head = text.partition("\n---\n")[0]
    first, _, body = head.partition("\n")
    return re.sub(r"^Subject: \[PATCH\] ", "", first), body.strip() + "\n"


def recipients(tree: Path, files: Sequence[str]) -> tuple[list[str], list[str]]:
    """The maintainers and the lists that the tree's get_maintainer.pl prints for `files`."""
    script = ["scripts/get_maintainer.pl", "--nogit", "--nogit-fallback", "--norolestats"]
    found = []
    for kind in ("--nol", "--nom"):
        found.append([line.strip() for line in _perl(tree, *script, kind, "-f", *files) if "@" in line])
    return found[0], [line for line in found[1] if line not in found[0]]


def mail(
    issue: Issue, patch: Path, read: Callable[[str], str], tree: Path, person: tuple[str, str], target: Path
) -> Mail:
    """Write a patch as a mail to `target`, and check the mail."""
    subject, body = message(patch.read_text())
    new = catalogue.patch(patch).files(read) or {}
    gap = "" if re.match(r"[A-Z][a-z-]+: ", body.splitlines()[-1]) else "\n"
    to, cc = recipients(tree, list(new))
    addresses = [*(f"--to={one}" for one in to), *(f"--cc={one}" for one in cc)]
    faults = []
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as name:
        folder = Path(name) / "tree"
        folder.mkdir()
        repository = git.Repository(folder, person, email.utils.formatdate())
        repository.commit({file: read(file) for file in new}, "the kernel\n")
        repository.commit(new, f"{subject}\n\n{body}{gap}Signed-off-by: {person[0]} <{person[1]}>\n")
        repository.git("format-patch", "-q", "-1", "--no-signature", "--zero-commit", *addresses, "-o", name)
        target.write_bytes(next(Path(name).glob("*.patch")).read_bytes())
        repository.git("checkout", "-q", "HEAD~")
        try:
            repository.git("am", "-q", str(target))
        except subprocess.CalledProcessError:
            faults.append("git am refuses the patch")
    # The tree has no git history, so checkpatch.pl cannot look up commits.
    options = ["--strict", "--terse", "--no-summary", "--ignore", "UNKNOWN_COMMIT_ID"]
    # checkpatch.pl writes a file into the folder in which it runs.
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as name:
        said = _perl(Path(name), str(tree / "scripts/checkpatch.pl"), f"--root={tree}", *options, str(target))
    faults += [line.removeprefix(f"{target}:") for line in said if re.search("(ERROR|WARNING|CHECK):", line)]
    return Mail(issue, target, tuple(faults))


def _perl(folder: Path, *words: str) -> list[str]:
    """Run a Perl script in `folder`. Returns the lines that it prints."""
    return subprocess.run(["perl", *words], cwd=folder, capture_output=True, text=True).stdout.splitlines()


def written(issues: Sequence[Issue], kernel: source.Source, person: tuple[str, str], folder: Path) -> list[Mail]:
    """For each issue, write the patch that fits the kernel as a mail into `folder`, and check the mail."""
    read = shadow.reader(kernel.path, ())
    version = known_issues.version_of(read)
    ours.empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mails = []
    for issue in issues:
        target = folder / f"known-issue-{issue.number}.patch"
        fitting, _ = patched.form(issue, version, read)
        if fitting:
            mails.append(mail(issue, PROJECT / fitting, read, kernel.path, person, target))
        else:
            mails.append(Mail(issue, target, ("no patch applies",)))
    return mails


def line(one: Mail, proof: Proof | None) -> str:
    """A line about a patch: whether it passes, its title, and the checks that it passed."""
    seen = ["git am, checkpatch"] if not one.faults else []
    if proof and proof.met:
        tests = [name for name in proof.issue.tests if proof.after[name] == "stale"]
        alone = [name for name in proof.after if name not in proof.issue.tests]
        seen.append(f"{len(tests)} of {len(proof.issue.tests)} tests on {proof.machine}")
        seen += ["reproducer"] if alone else []
    passes = not one.faults and not (proof and proof.wrong)
    return f"{one.issue.number:3} {'passes' if passes else 'FAILS':7} {one.issue.title} ({'; '.join(seen)})"


@dataclass
class Table:
    """The result. Each machine adds to it.

    mails:  all patches
    keep:   a function that saves the result so far
    proofs: the verdicts of the tests of each issue, by the number of the issue
    others: faults of tests that no issue names
    """

    mails: Sequence[Mail]
    keep: Callable[[dict[str, Any]], None]
    proofs: dict[int, Proof] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    def wrong(self, one: Mail) -> list[str]:
        """The faults of a patch that are known so far."""
        proof = self.proofs.get(one.issue.number)
        return [*one.faults, *([proof.wrong] if proof and proof.wrong else [])]

    def bad(self) -> list[int]:
        """The numbers of the issues whose patches fail."""
        return [one.issue.number for one in self.mails if self.wrong(one)]

    def note(self, proofs: Sequence[Proof], others: Sequence[str]) -> None:
        """Add the results of one machine: print the lines of its patches, and save the result so far."""
        self.proofs |= {proof.issue.number: proof for proof in proofs}
        self.others += others
        self.say([one for one in self.mails if one.issue.number in [proof.issue.number for proof in proofs]])
        self.keep(self.data())

    def say(self, mails: Sequence[Mail]) -> None:
        """Print the lines of some patches."""
        for one in mails:
            print(line(one, self.proofs.get(one.issue.number)), flush=True)
            for fault in self.wrong(one):
                print(f"    {fault}", flush=True)

    def data(self) -> dict[str, Any]:
        """The result for the record."""
        patches = []
        for one in self.mails:
            proof = self.proofs.get(one.issue.number)
            seen = {"machine": proof.machine, "without": proof.before, "with": proof.after} if proof else None
            patches.append({"issue": one.issue.number, "mail": one.path.name, "wrong": self.wrong(one), "seen": seen})
        return {"patches": patches, "other tests": self.others}


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns 1 if a patch fails a check or changes the verdict of another test; otherwise 0."""
    settings = from_environment({"ARCH": "arm64", **environ})
    person = author(environ.get("FROM") or "")
    boots = environ.get("BOOT") or "yes"
    if boots not in ("yes", "no"):
        raise UserError(f"BOOT={boots}: use BOOT=no to write and check the mails without a boot")
    toolchain.provide(["perl", "git", "patch"])
    kernel = source.obtain(settings)
    found = patched.known(kernel, settings, environ)
    folder = settings.out / "patches" / kernel.label
    where = {"label": kernel.label, "arch": settings.arch, "pages": settings.page_size}
    facts = record.facts("patches", "-".join(filter(None, where.values())), environ.get("ONLY", ""), **where)
    facts.command = closing.make("patches", environ)
    mails: list[Mail] = []
    with record.kept(settings.out, facts) as recorder:
        if not dry.instead("mail", f"{len(found)} patches into {folder}; `git am` and checkpatch.pl check each patch"):
            mails = written(found, kernel, person, folder)
        table = Table(mails, recorder.put)
        recorder.put(table.data())
        if boots == "yes":
            for proofs, others in patched.prove(kernel, found, settings, environ, whole=not environ.get("ONLY")):
                table.note(proofs, others)
        else:
            table.say(mails)
        recorder.put(table.data())
        bad = table.bad()
        status = FAILED if bad or table.others else PASSED
        recorder.record.state = record.outcome(status)
    for text in closing.lines(
        f"{'FAILED' if bad or table.others else 'passed'}: {len(mails) - len(bad)} of {len(mails)} patches for linux "
        f"{kernel.label} pass all checks",
        [*table.others, "" if table.proofs else "nothing was booted: BOOT=no"],
        folder,
        closing.make("patches", environ, ONLY=str(bad[0])) if bad else "",
    ):
        print(text)
    return status
