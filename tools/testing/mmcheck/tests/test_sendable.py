# SPDX-License-Identifier: GPL-2.0
"""make patches: patches of known issues as mails."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mmcheck.core import git
from mmcheck.core.errors import UserError
from mmcheck.core.settings import from_environment
from mmcheck.kernel import source, toolchain
from mmcheck.kernel.known_issues import Issue
from mmcheck.kernel.source import Source
from mmcheck.run import record
from mmcheck.study import patched, sendable
from mmcheck.study.proof import Proof

from .conftest import fake_tree

PERSON = ("A Developer", "a@example.org")
AUTHOR = "A Developer <a@example.org>"
PATCH = """\
Subject: [PATCH] mm: count from one

The count begins at zero.

Fixes: 0123456789ab ("mm: count")

---
--- a/mm/count.c
+++ b/mm/count.c
@@ -1,2 +1,2 @@
 /* The count. */
-int count = 0;
+int count = 1;
"""
CHECKPATCH = """\
my $text = do { local $/; open(my $f, "<", $ARGV[-1]); <$f> };
my ($root) = map { /^--root=(.*)/ } @ARGV;
print "$ARGV[-1]:7: WARNING: a bad word\\n" if $text =~ /zero/ and -e "$root/strict";
open(my $cache, ">", ".checkpatch-camelcase.date.0");
"""
MAINTAINER = """\
print grep(/nol/, @ARGV) ? "M. Maintainer <m\\@example.org>\\n" : "list\\@example.org\\n";
"""


ISSUE = Issue(1, "", "", "", (), "", (), "", "", "mm/count.c", "", ())


def tree(folder: Path) -> Path:
    for name, text in {
        "mm/count.c": "/* The count. */\nint count = 0;\n",
        "scripts/checkpatch.pl": CHECKPATCH,
        "scripts/get_maintainer.pl": MAINTAINER,
        "issue.patch": PATCH,
        "Makefile": "VERSION = 7\nPATCHLEVEL = 3\n",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def mailed(folder: Path) -> sendable.Mail:
    where = tree(folder)
    return sendable.mail(
        ISSUE, where / "issue.patch", lambda name: (where / name).read_text(), where, PERSON, where / "mail"
    )


def test_a_patch_becomes_a_mail(tmp_path: Path) -> None:
    assert not mailed(tmp_path).faults
    assert not list(tmp_path.rglob(".checkpatch-*")), "the tree is only read"
    text = (tmp_path / "mail").read_text()
    assert text.startswith("From 0000000") and f"\nFrom: {AUTHOR}\n" in text
    assert "\nSubject: [PATCH] mm: count from one\nTo: M. Maintainer <m@example.org>\nCc: list@example.org\n" in text
    # The trailers form one paragraph.
    assert f'\n\nFixes: 0123456789ab ("mm: count")\nSigned-off-by: {AUTHOR}\n---\n' in text
    assert "-int count = 0;\n+int count = 1;\n" in text


def test_what_checkpatch_says_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "strict").touch()
    assert mailed(tmp_path).faults == ("7: WARNING: a bad word",)


def test_what_git_am_refuses_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = git.Repository.git

    def spoiled(repository: git.Repository, *words: str, stdin: str = "") -> None:
        if "am" in words:
            Path(words[-1]).write_text(Path(words[-1]).read_text().replace("-int count", "-long count"))
        plain(repository, *words, stdin=stdin)

    monkeypatch.setattr(git.Repository, "git", spoiled)
    assert mailed(tmp_path).faults == ("git am refuses the patch",)


def proof(before: str, after: str) -> Proof:
    issue = dataclasses.replace(ISSUE, title="The count is wrong", tests=("s.c",))
    return Proof(issue, "arm64 4K", {"s.c": before, "known-issue-1": before}, {"s.c": after, "known-issue-1": "passed"})


def test_each_patch_has_one_line_and_an_entry_in_the_record(tmp_path: Path) -> None:
    good, bad = proof("failed", "stale"), proof("passed", "stale")
    mail = sendable.Mail(good.issue, tmp_path / "known-issue-1.patch")
    title = "The count is wrong"
    assert sendable.line(mail, good) == (
        f"  1 passes  {title} (git am, checkpatch; 1 of 1 tests on arm64 4K; reproducer)"
    )
    assert sendable.line(mail, None) == f"  1 passes  {title} (git am, checkpatch)"
    assert sendable.line(mail, bad).startswith("  1 FAILS ")
    faulty = dataclasses.replace(mail, faults=("git am refuses it",))
    assert sendable.line(faulty, good).startswith("  1 FAILS ")
    table = sendable.Table([faulty], lambda _: None, {1: bad}, ["x.y: failed with the patches"])
    entry = table.data()
    assert entry["other tests"] == ["x.y: failed with the patches"]
    assert entry["patches"][0]["wrong"] == ["git am refuses it", "no test fails without the patch"]
    assert entry["patches"][0]["seen"]["with"] == {"s.c": "stale", "known-issue-1": "passed"}


def kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment whose kernel is in `folder`, and has the issue."""
    where = tree(fake_tree(folder / "linux"))
    issue = dataclasses.replace(ISSUE, patch=("issue.patch",), tests=("s.c",), faulty=("count = 0;",), name="count")
    monkeypatch.setattr(sendable, "PROJECT", where)
    monkeypatch.setattr(patched, "PROJECT", where)
    monkeypatch.setattr(toolchain, "provide", lambda needs: None)
    monkeypatch.setattr(source, "obtain", lambda settings: Source(where, "linux-x", fixed=False))
    monkeypatch.setattr(patched, "known", lambda *_: [issue])
    return {"FROM": AUTHOR, "O": str(folder / "out"), "HOME": str(folder), "FEATURES": ""}


@pytest.mark.parametrize(
    ("before", "after", "others", "status"),
    [
        ("failed", "stale", [], 0),
        ("failed", "failed", [], 1),
        ("failed", "stale", ["arm64 4K: a.b: failed with the patches"], 1),
    ],
)
def test_a_patch_must_also_fix_its_issue_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, others: list[str], status: int
) -> None:
    environ = kernel(tmp_path, monkeypatch)
    monkeypatch.setattr(patched, "prove", lambda *_, whole: [([proof(before, after)], others if whole else [])])
    assert sendable.run(environ) == status
    (one,) = record.latest(tmp_path / "out", ("patches",))
    assert (one.data["other tests"], one.state) == (others, "failed" if status else "passed")
    assert one.command.startswith("make patches") and not record.latest(tmp_path / "out")


def test_other_tests_do_not_run_if_other_issues_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {**kernel(tmp_path, monkeypatch), "ONLY": "1"}
    others = ["arm64 4K: a.b: failed with the patches"]
    monkeypatch.setattr(patched, "prove", lambda *_, whole: [([proof("failed", "stale")], others if whole else [])])
    assert sendable.run(environ) == 0


def test_an_interrupt_keeps_the_lines_of_the_machines_that_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = kernel(tmp_path, monkeypatch)

    def kept() -> dict[str, Any]:
        (found,) = record.data(tmp_path / "out", "patches").values()
        return found

    first = dataclasses.replace(
        patched.known(Source(tmp_path, "x", fixed=False), from_environment(environ), environ)[0], title="The count"
    )
    second = dataclasses.replace(first, number=2, where="um")
    monkeypatch.setattr(patched, "known", lambda *_: [second, first])

    def proofs(*_: object, whole: bool) -> Iterator[tuple[list[Proof], list[str]]]:
        assert kept()["patches"][1]["seen"] is None
        yield [proof("passed", "stale")], ["arm64 4K: a.b: failed with the patches"]
        # Before the next machine, the results of the first machine are printed and saved.
        assert capsys.readouterr().out.splitlines() == [
            "  1 FAILS   The count (git am, checkpatch; 1 of 1 tests on arm64 4K; reproducer)",
            "    no test fails without the patch",
        ]
        raise KeyboardInterrupt

    monkeypatch.setattr(patched, "prove", proofs)
    with pytest.raises(KeyboardInterrupt):
        sendable.run(environ)
    assert [entry["seen"] and entry["seen"]["machine"] for entry in kept()["patches"]] == [None, "arm64 4K"]
    assert kept()["other tests"] == ["arm64 4K: a.b: failed with the patches"]
    # A complete run prints a line for each patch.
    every = [proof("failed", "stale"), dataclasses.replace(proof("failed", "stale"), issue=second, machine="um")]
    monkeypatch.setattr(patched, "prove", lambda *_, whole: [([one], []) for one in every])
    assert sendable.run(environ) == 0
    assert all(entry["seen"] for entry in kept()["patches"])
    assert [line[:10] for line in capsys.readouterr().out.splitlines()[:2]] == ["  1 passes", "  2 passes"]


def test_the_mails_alone_boot_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = kernel(tmp_path, monkeypatch)
    monkeypatch.delattr(patched, "prove")
    assert sendable.run({**environ, "BOOT": "no"}) == 0
    assert "nothing was booted: BOOT=no" in capsys.readouterr().out.splitlines()
    with pytest.raises(UserError, match="BOOT=maybe: use BOOT=no"):
        sendable.run({**environ, "BOOT": "maybe"})


def test_the_author_is_given_or_known_to_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert sendable.author(AUTHOR) == PERSON
    with pytest.raises(UserError, match="FROM=nobody: give it like"):
        sendable.author("nobody")
    config = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.chdir(tmp_path)
    config.write_text("[user]\nname = B\n")
    with pytest.raises(UserError, match=r"set git config user\.name"):
        sendable.author("")
    config.write_text("[user]\nname = B\nemail = b@example.org\n")
    assert sendable.author("") == ("B", "b@example.org")
