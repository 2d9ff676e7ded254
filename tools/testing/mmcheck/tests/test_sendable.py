# SPDX-License-Identifier: GPL-2.0
"""Patches of known issues as mails."""

from pathlib import Path

import pytest

from mmcheck import sendable, series
from mmcheck.errors import UserError
from mmcheck.known_issues import Issue

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
print "$ARGV[-1]:7: WARNING: a bad word\\n" if $text =~ /zero/ and -e "strict";
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
    text = (tmp_path / "mail").read_text()
    assert text.startswith("From 0000000") and f"\nFrom: {AUTHOR}\n" in text
    assert "\nSubject: [PATCH] mm: count from one\nTo: M. Maintainer <m@example.org>\nCc: list@example.org\n" in text
    # Trailers are one paragraph.
    assert f'\n\nFixes: 0123456789ab ("mm: count")\nSigned-off-by: {AUTHOR}\n---\n' in text
    assert "-int count = 0;\n+int count = 1;\n" in text


def test_what_checkpatch_says_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "strict").touch()
    assert mailed(tmp_path).faults == ("7: WARNING: a bad word",)


def test_what_git_am_refuses_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = series.Repository.git

    def spoiled(repository: series.Repository, *words: str, stdin: str = "") -> None:
        if "am" in words:
            Path(words[-1]).write_text(Path(words[-1]).read_text().replace("-int count", "-long count"))
        plain(repository, *words, stdin=stdin)

    monkeypatch.setattr(series.Repository, "git", spoiled)
    assert mailed(tmp_path).faults == ("git am refuses the patch",)


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
