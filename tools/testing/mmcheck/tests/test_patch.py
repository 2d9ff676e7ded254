# SPDX-License-Identifier: GPL-2.0
"""PATCH=: the patch changes only the private copy of the kernel."""

from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.kernel import patch

from .conftest import User, state
from .test_matrix import run

CHANGE = "--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1 +1,2 @@\n int memory;\n+int added;\n"
NEW = "--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+int new;\n"
GONE = "--- a/lib/ctype.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-int ctype;\n"
MAKEFILE = "--- a/mm/Makefile\n+++ b/mm/Makefile\n@@ -3 +3,2 @@\n obj-y += last.o\n+obj-y += new.o\n"


def test_the_copy_has_the_patch_and_the_tree_has_not(user: User, tree: Path) -> None:
    (user.home / "fix.patch").write_text(f"Subject: a series\n\n{CHANGE}{NEW}{GONE}{MAKEFILE}")
    before = state(tree)
    done = user.kunit("run", "--arch=arm64", PATCH="fix.patch")
    assert done.returncode == 0, done.stderr
    assert "fix.patch is applied to a private copy of linux" in done.stderr
    root = Path(str(user.calls()[-1]["root"]))
    assert (root / "mm/memory.c").read_text() == "int memory;\nint added;\n"
    assert (root / "mm/new.c").read_text() == "int new;\n"
    assert not (root / "lib/ctype.c").exists()
    makefile = (root / "mm/Makefile").read_text()
    assert "tests/" in makefile and "new.o" in makefile
    assert state(tree) == before
    # Without the patch, or with another patch, the kernel is another one.
    assert user.kunit("run", "--arch=arm64").returncode == 0
    plain = Path(str(user.calls()[-1]["root"]))
    assert plain != root and (plain / "mm/memory.c").read_text() == "int memory;\n"
    assert user.makes() == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHANGE.replace("int memory", "int other"), "does not apply: patch failed: mm/memory.c:1"),
        ("words\n", "the patch changes no file; give a unified diff"),
        (CHANGE.replace("mm/memory.c", "../../memory.c"), "is not a path of a file in a kernel tree"),
    ],
)
def test_a_patch_that_does_not_apply_runs_nothing(user: User, tree: Path, text: str, said: str) -> None:
    (user.home / "fix.patch").write_text(text)
    before = state(tree.parent / "linux")
    done = user.kunit("run", "--arch=arm64", PATCH="fix.patch")
    assert done.returncode == 125
    assert said in done.stderr and "Traceback" not in done.stderr
    assert user.calls() == []
    assert state(tree) == before


def test_the_cells_of_the_matrix_have_the_patch(user: User, tmp_path: Path) -> None:
    (tmp_path / "fix.patch").write_text(CHANGE)
    done = run(user, tmp_path, PATCH=str(tmp_path / "fix.patch"), ONLY="arm64 64K")
    roots = {Path(str(call["root"])) for call in user.calls()}
    assert roots, done.stderr
    assert {(root / "mm/memory.c").read_text() for root in roots} == {"int memory;\nint added;\n"}


def test_lines_that_look_like_a_head_are_none() -> None:
    text = "--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n--- a/removed\n+++ b/added\n same\n"
    text += "diff --git a/old.c b/new.c\nrename from old.c\nrename to new.c\n"
    assert patch.names(text) == ["x.c", "old.c", "new.c"]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a/..", ""])
def test_names_that_leave_the_tree(name: str, tmp_path: Path) -> None:
    assert not patch.inside(name)
    assert patch.inside("a/..b/c..d")
    (tmp_path / "x.patch").write_text(CHANGE.replace("a/mm/memory.c", f"a/{name}") if name else "")
    with pytest.raises(UserError):
        patch.read(tmp_path / "x.patch")
