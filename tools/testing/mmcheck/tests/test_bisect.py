# SPDX-License-Identifier: GPL-2.0
"""Comparisons of two kernels: --apply, --base, and the search for a commit."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mmcheck.boot.results import Case
from mmcheck.core.settings import PROJECT
from mmcheck.kernel import checkout
from mmcheck.run.compare import difference
from mmcheck.study.bisect import Result, term

from .conftest import User, state

KUNIT_PY = '''#!/usr/bin/env python3
"""Stands for the kernel's kunit.py: the words in mm/memory.c say which cases fail, and whether it builds."""
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[3]
build = Path(next(word.split("=")[1] for word in sys.argv if word.startswith("--build_dir=")))
build.mkdir(parents=True, exist_ok=True)
words = (root / "mm/memory.c").read_text().split()
if "broken" in words:
    sys.exit(1)
cases = [case for case in "abc" if f"no-{case}" not in words]
said = ["KTAP version 1", "1..1", "    # Subtest: one", f"    1..{len(cases)}"]
for number, case in enumerate(cases, 1):
    said.append(f"    {'not ok' if f'fails-{case}' in words else 'ok'} {number} {case}")
bad = any(word.startswith("fails-") for word in words)
said.append(f"{'not ok' if bad else 'ok'} 1 one")
(build / "test.log").write_text("".join(f"{line}\\n" for line in said))
sys.exit(int(bad))
'''

PERSON = ["-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org"]


def git(tree: Path, *arguments: str) -> str:
    """Run git in a tree."""
    done = subprocess.run(["git", *PERSON, *arguments], cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def history(tree: Path) -> Path:
    """A git tree of 40 commits. Case `b` always fails, `a` fails from commit 27 on, and `c` fails from commit 35 on.

    Five commits do not build. One of them comes just before commit 35. Commit 23 has no case `a`.
    """
    (tree / "tools/testing/kunit/kunit.py").write_text(KUNIT_PY)
    git(tree, "init", "-q", "-b", "main")
    for number in range(40):
        words = ["fails-b", *(["fails-a"] if number >= 26 else []), *(["fails-c"] if number >= 34 else [])]
        words += ["broken"] if number in (19, 20, 24, 28, 33) else ["no-a"] if number == 22 else []
        (tree / "mm/memory.c").write_text(f"/* {' '.join(words)} , {number} */\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", f"change {number + 1}")
    return tree


def bisect(user: User, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ./mmcheck bisect."""
    environment = {**user.environment, "PYTHONPATH": str(PROJECT / "tools/testing"), **variables}
    return subprocess.run(
        [sys.executable, PROJECT / "tools/testing/mmcheck", "bisect", *arguments],
        cwd=user.home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_bisect_finds_the_commit_past_commits_that_do_not_build(user: User, history: Path) -> None:
    before = state(history)
    done = bisect(user, "main~39", "main")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "looking for the first commit that fails: one.a, one.c\n" in done.stdout
    assert done.stdout.rpartition("the first bad commit is ")[2].splitlines()[0].endswith(" change 27")
    without = len(re.findall(r"^skip ", done.stdout, re.MULTILINE))
    assert without and f", {without} of them without a verdict; " in done.stdout
    assert f"next: git -C {history} show " in done.stdout
    assert state(history) == before


def test_a_commit_on_which_a_test_does_not_run_has_no_verdict(user: User, history: Path) -> None:
    git(history, "checkout", "-q", "-b", "other", "main~39")
    for words in ("no-a", "fails-a"):
        (history / "mm/memory.c").write_text(f"/* {words} */\n")
        git(history, "commit", "-q", "-a", "-m", words)
    done = bisect(user, "main~39", "other")
    assert done.returncode == 125, done.stdout + done.stderr
    assert re.search(r"^skip .* no-a: one of these tests did not run$", done.stdout, re.MULTILINE)
    assert "one of these 2 commits is the first bad one" in done.stderr
    assert "3 commits tried in " in done.stderr and "s, 1 of them without a verdict; " in done.stderr


def test_bisect_names_all_candidates_if_it_cannot_tell(user: User, history: Path) -> None:
    done = bisect(user, "main~8", "main")
    assert done.returncode == 125, done.stdout + done.stderr
    assert "looking for the first commit that fails: one.c\n" in done.stdout
    assert "one of these 2 commits is the first bad one" in done.stderr
    assert [line.split()[-1] for line in done.stdout.splitlines()[-2:]] == ["34", "35"]


def test_bisect_continues_and_tests_no_commit_twice(user: User, history: Path) -> None:
    first = bisect(user, "main~39", "main")
    assert first.returncode == 0, first.stderr
    (memory,) = (Path(user.environment["O"]) / "bisect").glob("*.json")
    kept = json.loads(memory.read_text())
    again = bisect(user, "main~39", "main")
    assert again.stdout.splitlines()[:-3] == first.stdout.splitlines()[:-3]
    assert " 0 commits tried in " in again.stdout.replace("\n", " ")
    # After an interrupt, only the commits without a result are tested.
    gone = list(kept)[-1]
    memory.write_text(json.dumps({name: entry for name, entry in kept.items() if name != gone}))
    assert "\n1 commits tried in " in bisect(user, "main~39", "main").stdout
    memory.write_text("{")
    assert f"\n{len(kept)} commits tried in " in bisect(user, "main~39", "main").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["main"], "main: give GOOD and BAD; see ./mmcheck bisect --help"),
        (["main", "main"], "are the same commit"),
        (["nosuch", "main"], "nosuch: there is no such commit in KDIR="),
        (["main~39", "main~38"], "no test passes at GOOD="),
        (["main~39", "main~6"], "BAD="),
        (["main~39", "main", "main~3"], "give GOOD and BAD"),
        (["main~39", "main", "--only", "a b"], "give one glob"),
    ],
)
def test_bisect_says_what_is_wrong_with_a_range(user: User, history: Path, arguments: list[str], says: str) -> None:
    done = bisect(user, *arguments)
    assert done.returncode == 125
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_bisect_needs_a_git_tree(user: User, tree: Path) -> None:
    done = bisect(user, "a", "b")
    assert done.returncode == 125 and "this is not a git tree" in done.stderr
    done = bisect(user, "a", "b", KDIR="")
    assert done.returncode == 125 and "set KDIR=" in done.stderr


@pytest.mark.parametrize(
    ("states", "wanted", "word"),
    [
        ({"s.a": "failed", "s.b": "passed"}, ["s.a", "s.b"], "bad"),
        ({"s.a": "passed", "s.b": "failed"}, ["s.a"], "good"),
        ({"s.a": "skipped"}, ["s.a"], "skip"),
        ({}, ["s.a"], "skip"),
        ({"s.a": "passed"}, ["s.a", "s.b"], "skip"),
    ],
)
def test_what_git_bisect_calls_a_commit(states: Mapping[str, str], wanted: list[str], word: str) -> None:
    assert term(Result(states, "", 1.0), wanted) == word


def test_difference_of_two_runs() -> None:
    def cases(**states: str) -> list[Case]:
        return [Case("s", name, state) for name, state in states.items()]

    before = cases(a="passed", b="failed", c="failed", d="passed", e="passed", f="skipped", g="passed")
    after = cases(a="failed", b="failed", c="passed", d="skipped", f="passed", g="passed", h="failed")
    found = difference(before, after)
    assert found.new == ("s.a", "s.h") and found.still == ("s.b",) and found.fixed == ("s.c",)
    assert found.lost == ("s.d", "s.e") and found.added == ("s.f",) and found.same == 1
    assert found.status == 1
    assert found.lines()[0] == "FAILED: 2 new failures, 1 fixed, 1 still failing, 2 lost, 1 as before"
    assert difference(before, before).status == 0
    # If a case fails for one of its parameters, the case fails. The order of the parameters does not matter.
    twice = [Case("s", "a", "failed"), Case("s", "a", "passed")]
    assert difference(cases(a="passed"), twice).new == ("s.a",)
    # A case that failed before and is skipped now is not fixed.
    assert difference(cases(a="failed"), cases(a="skipped")).lost == ("s.a",)


def test_base_compares_a_commit_with_the_tree(user: User, history: Path) -> None:
    before = state(history)
    worse = user.kunit("run", "--arch=arm64", "--base", "main~21")
    assert worse.returncode == 1, worse.stderr
    assert "FAILED: 2 new failures, 0 fixed, 1 still failing, 0 as before" in worse.stderr
    assert "new failures: one.a, one.c" in worse.stderr
    assert "next: KDIR=" in worse.stderr and worse.stderr.rstrip().endswith("--base 'main~21'")
    same = user.kunit("run", "--arch=arm64", "--base=main~2")
    assert same.returncode == 0, same.stderr
    assert "passed: 0 new failures, 0 fixed, 3 still failing, 0 as before" in same.stderr
    assert state(history) == before


def test_apply_and_base_judge_a_patch(user: User, history: Path, tmp_path: Path) -> None:
    git(history, "checkout", "-q", "main~21")
    before = state(history)
    old = (history / "mm/memory.c").read_text()
    head = "--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1 +1 @@\n"
    bad, good = old.replace("fails-b", "fails-b fails-c"), old.replace("fails-b", "fine")
    for name, new, says in (
        ("bad", bad, "FAILED: 1 new failure, 0 fixed, 1 still failing, 1 as before"),
        ("good", good, "passed: 0 new failures, 1 fixed, 0 still failing, 2 as before"),
    ):
        patch = tmp_path / f"{name}.mbox"
        patch.write_text(f"From 0 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n{head}-{old}+{new}--\n2.39\n")
        done = user.kunit("run", "--arch=arm64", "--apply", str(patch), "--base", "unpatched")
        assert says in done.stderr, done.stderr
        assert done.returncode == (name == "bad")
        _, _, then = done.stderr.partition("next: ")
        assert bool(then) == (name == "bad") and "PATCH=" not in then
    assert state(history) == before


def test_apply_takes_a_range_of_commits(user: User, history: Path) -> None:
    git(history, "checkout", "-q", "main~14")
    done = user.kunit("run", "--arch=arm64", "--apply", "main~14..main~12", "--base=unpatched")
    assert done.returncode == 1, done.stderr
    assert "new failures: one.a" in done.stderr
    assert "is applied to a private copy of linux" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--base", "nosuch"], "nosuch: there is no such commit"),
        (["--base", "unpatched"], "add --apply FILE"),
        (["--base"], "expected one argument"),
        (["--apply", "/no/such.mbox"], "No such file"),
        (["--apply", "main..main"], "no commit in this range"),
        (["--base", "main~20"], "before: linux"),
    ],
)
def test_bad_comparisons_have_no_verdict(user: User, history: Path, arguments: list[str], says: str) -> None:
    done = user.kunit("run", "--arch=arm64", *arguments)
    assert done.returncode == 125, done.stderr
    assert says in done.stderr and "Traceback" not in done.stderr


def test_a_checkout_that_was_killed_half_way_is_undone(history: Path, tmp_path: Path) -> None:
    first, last = git(history, "rev-list", "--max-parents=0", "HEAD").strip(), git(history, "rev-parse", "HEAD").strip()
    tree = checkout.Checkout(history, tmp_path / "out", "bisect")
    with tree.hold():
        tree.go(first)
    text = (tree.folder / "mm/memory.c").read_text()
    # git writes the files before it changes HEAD.
    (tree.folder / "mm/memory.c").write_text((history / "mm/memory.c").read_text())
    (tree.folder / "mm/new.c").write_text("int new;\n")
    (tree.folder / "mm/ctype.o").write_text("an ignored file")
    (tree.folder / ".git/index.lock").touch()
    (tree.folder / ".git/HEAD.lock").touch()
    again = checkout.Checkout(history, tmp_path / "out", "bisect")
    with again.hold():
        assert (tree.folder / "mm/memory.c").read_text() == text
        assert not (tree.folder / "mm/new.c").exists() and not (tree.folder / "mm/ctype.o").exists()
        assert again.git("rev-parse", "HEAD").strip() == first
        again.go(last)
    assert (tree.folder / "mm/memory.c").read_text() == (history / "mm/memory.c").read_text()


def test_two_bisects_of_one_tree_do_not_change_it_under_each_other(user: User, history: Path) -> None:
    words = [sys.executable, str(PROJECT / "tools/testing/mmcheck"), "bisect", "HEAD~39", "HEAD"]
    environment = {**user.environment, "PYTHONPATH": str(PROJECT / "tools/testing")}
    children = [
        subprocess.Popen(
            [*words, "--only", only],
            cwd=user.home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for only in ("one.a", "one.c")
    ]
    said = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert sum("waiting for another run" in errors for _, errors in said) == 1
    assert all("the first bad commit is" in out for out, _ in said)
