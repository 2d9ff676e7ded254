# SPDX-License-Identifier: GPL-2.0
"""The table of known issues says which issues a tree has. The files that are derived from it are current."""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from mmcheck.boot import results
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT, Settings, from_environment
from mmcheck.kernel import known_issues
from mmcheck.kernel.known_issues import Issue
from mmcheck.kernel.source import Source
from mmcheck.study import patched, proof

from .conftest import fake_tree

ISSUES = known_issues.load()


def write(tree: Path, files: dict[str, str]) -> None:
    """Put files into a tree."""
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)


def faulty(version: str = "6.12") -> dict[str, str]:
    """The files of a tree that has all issues. Line breaks and indentation of the faulty code are unusual."""
    files: dict[str, str] = {}
    for issue in ISSUES:
        code = issue.faulty[0].replace("; ", ";\n\t").replace("{ ", "{\n\t\t")
        file = issue.file.split()[-1]
        files[file] = files.get(file, "") + f"{issue.name}\n{code}\n"
    major, minor = version.split(".")
    return files | {"Makefile": f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 4\n"}


def by_script(tree: Path, *arguments: str) -> tuple[list[int], str]:
    """The numbers of the issues that the script finds in a tree, and its error messages."""
    command = ["sh", str(PROJECT / known_issues.SCRIPT), str(tree), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.strip().split(",") if number], done.stderr


def by_table(tree: Path) -> list[int]:
    """The numbers of the issues that the table finds in a tree."""

    def read(name: str) -> str:
        return (tree / name).read_text()

    version = known_issues.version_of(read)
    return [issue.number for issue in ISSUES if issue.shown(version, read)]


def numbers(*without: int) -> list[int]:
    """The numbers of all issues except `without`."""
    return [issue.number for issue in ISSUES if issue.number not in without]


def test_what_derives_from_the_table_is_in_step() -> None:
    assert (PROJECT / known_issues.SCRIPT).read_text() == known_issues.script(ISSUES)
    text = (PROJECT / known_issues.DOCUMENT).read_text()
    assert text == known_issues.document(text, ISSUES)
    assert known_issues.summary(ISSUES) in text
    for issue in ISSUES:
        assert f"## {issue.number}. {issue.title}\n\n{known_issues.rows(issue)}\n" in text


def test_numbers_are_in_order_and_all_is_said() -> None:
    assert [issue.number for issue in ISSUES] == list(range(1, len(ISSUES) + 1))
    for issue in ISSUES:
        assert issue.tests and issue.patch and issue.faulty and issue.upstream
        assert issue.fixes or issue.fixed_in
        assert issue.harm in known_issues.HARMS
        assert all(text == " ".join(text.split()) for text in issue.faulty)


def test_a_tree_with_the_faulty_code_has_the_issue(tmp_path: Path) -> None:
    write(tmp_path, faulty())
    assert by_script(tmp_path) == (numbers(), "")
    assert by_table(tmp_path) == numbers()


@pytest.mark.parametrize(
    ("version", "without"),
    [
        ("6.15", (34, 82)),
        ("6.16", (7, 34, 82)),
        ("7.2", (7, 24, 34, 82)),
        ("7.3", (3, 7, 24, 34, 82)),
        ("10.0", (3, 7, 22, 24, 34, 82)),
    ],
)
def test_a_tree_as_new_as_the_fix_has_not_whatever_its_code(
    tmp_path: Path, version: str, without: tuple[int, ...]
) -> None:
    write(tmp_path, faulty(version))
    assert by_script(tmp_path) == (numbers(*without), "")
    assert by_table(tmp_path) == numbers(*without)


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: str(issue.number))
def test_a_tree_with_other_code_has_not(tmp_path: Path, issue: Issue) -> None:
    files = faulty()
    code = issue.faulty[0].replace("; ", ";\n\t").replace("{ ", "{\n\t\t")
    file = issue.file.split()[-1]
    write(tmp_path, files | {file: files[file].replace(code, "")})
    assert by_script(tmp_path) == (numbers(issue.number), "")
    assert by_table(tmp_path) == numbers(issue.number)


def test_the_code_may_be_in_either_of_two_files(tmp_path: Path) -> None:
    issue = next(issue for issue in ISSUES if " " in issue.file)
    old, new = issue.file.split()
    files = faulty()
    write(tmp_path, files | {new: "", old: files.get(old, "") + files[new]})
    assert by_script(tmp_path) == (numbers(), "")
    assert by_table(tmp_path) == numbers()


def test_a_tree_of_which_nobody_can_tell_has_not_and_it_is_said(tmp_path: Path) -> None:
    files = faulty()
    del files["mm/hugetlb.c"]
    files["mm/filemap.c"] = files["mm/filemap.c"].replace("filemap_map_pages(", "filemap_map(")
    write(tmp_path, files)
    found, said = by_script(tmp_path)
    assert found == numbers(9, 10, 48, 50, 66, 75, 77, 82, 83, 84, 91, 95, 104) == by_table(tmp_path)
    assert said.splitlines() == [
        "known issue 9: unknown, no filemap_map_pages( in mm/filemap.c",
        "known issue 10: unknown, no copy_hugetlb_page_range( in mm/hugetlb.c",
        "known issue 48: unknown, no __unmap_hugepage_range( in mm/hugetlb.c",
        "known issue 50: unknown, no hugetlb_mfill_atomic_pte( in mm/hugetlb.c",
        "known issue 66: unknown, no __unmap_hugepage_range( in mm/hugetlb.c",
        "known issue 75: unknown, no move_hugetlb_page_tables( in mm/hugetlb.c",
        "known issue 77: unknown, no alloc_hugetlb_folio( in mm/hugetlb.c",
        "known issue 82: unknown, no alloc_hugetlb_folio( in mm/hugetlb.c",
        "known issue 83: unknown, no __unmap_hugepage_range( in mm/hugetlb.c",
        "known issue 84: unknown, no unmap_ref_private( in mm/hugetlb.c",
        "known issue 91: unknown, no __unmap_hugepage_range( in mm/hugetlb.c",
        "known issue 95: unknown, no hugetlb_mfill_atomic_pte( in mm/hugetlb.c",
        "known issue 104: unknown, no alloc_surplus_hugetlb_folio( in mm/hugetlb.c",
    ]


def header_of(issues: list[int]) -> str:
    """The header file that the script writes."""
    return f'#define FOLIO_KNOWN_ISSUES "{",".join(map(str, issues))}"\n'


def test_the_header_of_the_selftests_is_written_when_it_changes(tmp_path: Path) -> None:
    write(tmp_path, faulty())
    header = tmp_path / "new" / "known.h"
    assert by_script(tmp_path, str(header)) == ([], "")
    assert header.read_text() == header_of(numbers())
    before = header.stat().st_mtime_ns
    by_script(tmp_path, str(header))
    assert header.stat().st_mtime_ns == before
    write(tmp_path, faulty("6.16"))
    by_script(tmp_path, str(header))
    assert header.read_text() == header_of(numbers(7, 34, 82))


def tree_of(text: str) -> Callable[[str], str]:
    """Returns a reader of a tree of version 7.3 with one source file."""
    files = {"mm/one.c": text, "Makefile": "VERSION = 7\nPATCHLEVEL = 3\n"}
    return files.__getitem__


def test_a_patch_fixes_what_the_table_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.patch").write_text(
        "Subject: [PATCH] x\n\n---\n--- a/mm/one.c\n+++ b/mm/one.c\n@@ -1 +1 @@\n-f(); bad();\n+f(); good();\n"
    )
    (tmp_path / "other.patch").write_text(
        "Subject: [PATCH] x\n\n---\n--- a/mm/one.c\n+++ b/mm/one.c\n@@ -1 +1 @@\n-f(); worse();\n+f(); good();\n"
    )
    (tmp_path / "none.patch").write_text(
        "Subject: [PATCH] x\n\n---\n--- a/mm/one.c\n+++ b/mm/one.c\n@@ -1 +1,2 @@\n f(); bad();\n+g();\n"
    )
    monkeypatch.setattr(patched, "PROJECT", tmp_path)

    def issue(*patches: str) -> Issue:
        return Issue(1, "t", "k", "n", ("a.b",), "e", patches, "u", "f", "mm/one.c", "f(", ("bad();",))

    found, files = patched.fixed([issue("other.patch", "good.patch")], tree_of("f(); bad();\n"))
    assert [one.number for one in found] == [1] and files == {"mm/one.c": b"f(); good();\n"}
    assert patched.fixed([issue("good.patch")], tree_of("f(); good();\n")) == ([], {})
    (tmp_path / "good-7.3.patch").write_text((tmp_path / "good.patch").read_text().replace("good()", "own()"))
    _, files = patched.fixed([issue("good.patch", "good-7.3.patch")], tree_of("f(); bad();\n"))
    assert files == {"mm/one.c": b"f(); own();\n"}, "the patch for the tree's version comes first"
    with pytest.raises(UserError, match=r"none of its patches applies: other.patch"):
        patched.fixed([issue("other.patch")], tree_of("f(); bad();\n"))
    with pytest.raises(UserError, match="still seems to have the faulty code"):
        patched.fixed([issue("none.patch")], tree_of("f(); bad();\n"))


def of_table(number: int) -> Issue:
    return next(issue for issue in ISSUES if issue.number == number)


def test_a_plan_has_what_the_architecture_runs() -> None:
    issues = [of_table(2), of_table(12)]
    todo = patched.plan(issues, "arm64")
    assert todo.kunit == issues[0].tests + issues[1].tests[-1:] and todo.reproducers == ("known-issue-12",)
    assert todo.selftests == issues[1].tests[:-1]
    todo = patched.plan(issues, "um")
    assert todo.kunit and not todo.selftests and not todo.reproducers


def settings(**others: str) -> Settings:
    return from_environment({"KERNEL": "7.3", "HOME": "/home/u", "ARCH": "arm64", **others})


def test_each_issue_is_tested_on_its_machine_unless_the_user_chooses_one() -> None:
    issues = [of_table(number) for number in (1, 2, 5, 8)]
    own = patched.machines(issues, settings(), chosen=False)
    found = {(place.arch, place.pages): [issue.number for issue in some] for place, some in own.items()}
    assert found == {("arm64", "4K"): [1, 8], ("um", "4K"): [2], ("arm64", "64K"): [5]}
    assert patched.machines(issues, settings(PAGES="16K"), chosen=True) == {settings(PAGES="16K"): issues}


def test_a_table_entry_that_no_test_meets_does_not_hold() -> None:
    passed = {"a.b": "passed"}
    issue = dataclasses.replace(of_table(1), where="arm64 64K")
    assert proof.Proof(issue, "arm64 64K", passed, passed).wrong == "no test meets it on arm64 64K"
    assert proof.Proof(issue, "arm64 4K", passed, passed).wrong == ""
    good = proof.Proof(issue, "arm64 64K", {"a.b": "failed"}, {"a.b": "stale"})
    assert good.met and not good.wrong


@pytest.mark.parametrize(
    ("before", "after", "bad"),
    [
        ({"a.b": "passed", "a.c": "skipped"}, {"a.b": "passed", "a.c": "skipped"}, []),
        ({"a.b": "passed"}, {"a.b": "failed"}, ["a.b: failed with the patches"]),
        ({"a.b": "passed"}, {"a.b": "skipped"}, ["a.b: passed without the patches, skipped with them"]),
        ({"a.b": "failed"}, {"a.b": "passed"}, ["a.b: failed without the patches, passed with them"]),
        ({"a.b": "passed"}, {}, ["a.b: passed without the patches, did not run with them"]),
        (None, {"a.b": "failed", "a.c": "passed"}, ["a.b: failed with the patches"]),
        ({"folio_walk.seed_1": "failed"}, {"folio_walk.seed_1": "passed"}, []),
    ],
)
def test_patches_change_no_other_verdict(before: dict[str, str] | None, after: dict[str, str], bad: list[str]) -> None:
    assert proof.changed(before, after) == bad


def test_a_session_knows_the_cases_that_no_issue_names(tmp_path: Path) -> None:
    session = patched.Session(cast(Source, None), cast(Settings, None), "", "", {})
    session.note(
        [
            results.Case("folio_numa", "folio_numa.size64.move_twice", "failed", 0, []),
            results.Case("folio_numa", "folio_numa.size64.stays", "passed", 0, []),
            results.Case("contpte", "walk: 4K", "skipped", 0, []),
        ]
    )
    assert session.states(["folio_numa.move_twice"]) == {
        "folio_numa.folio_numa.size64.stays": "passed",
        "contpte.walk: 4K": "skipped",
    }


def test_no_issue_of_another_kernel_is_tested(tmp_path: Path) -> None:
    write(fake_tree(tmp_path), {"Makefile": "VERSION = 9\nPATCHLEVEL = 0\n"})
    with pytest.raises(UserError, match="linux x has none of the known issues 1 2"):
        patched.known(Source(tmp_path, "x", fixed=False), settings(FEATURES=""), {"ONLY": "1 2"})


ALONE = "known-issue-1"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({"a.b": "failed", ALONE: "failed"}, {"a.b": "stale", ALONE: "passed"}, ""),
        ({"a.b": "failed", "a.c": "skipped: no LPA2"}, {"a.b": "stale", "a.c": "skipped: no LPA2"}, ""),
        ({"a.b": "did not run"}, {"a.b": "did not run"}, ""),
        (None, {"a.b": "stale"}, ""),
        ({"a.b": "passed"}, {"a.b": "passed"}, ""),  # the issue needs another page size or architecture
        ({"a.b": "passed"}, {"a.b": "stale"}, "no test fails without the patch"),
        ({"a.b": "failed"}, {"a.b": "failed"}, "a test fails with the patch"),
        ({"a.b": "failed", ALONE: "failed"}, {"a.b": "stale", ALONE: "failed"}, "a test fails with the patch"),
        ({"a.b": "failed"}, {"a.b": "passed"}, "no test reports that the issue is stale"),
        ({"a.b": "failed", ALONE: "passed"}, {"a.b": "stale", ALONE: "passed"}, "reproducer prints OK without"),
    ],
)
def test_an_issue_holds_if_its_patch_changes_the_verdict(
    before: dict[str, str] | None, after: dict[str, str], why: str
) -> None:
    found = proof.wrong(before, after, ALONE)
    assert why in found and bool(why) == bool(found)


def test_verdicts_of_cases_and_of_reproducers_are_found_by_name(tmp_path: Path) -> None:
    session = patched.Session(cast(Source, None), cast(Settings, None), "", "", {})
    stale = ["known issue 13 is stale: it is gone"]
    session.note(
        [
            results.Case("known-issue-13", "", "failed", 0, []),
            results.Case("hugetlb_scan", "hugetlb_scan.private.scan_written", "passed", 0, stale),
            results.Case("contpte", "case:4K", "skipped", 0, ["not here"]),
        ]
    )
    issue = of_table(13)
    assert session.verdict(issue, "known-issue-13") == "failed"
    assert session.verdict(issue, "hugetlb_scan.scan_written") == "stale"
    assert session.verdict(issue, "contpte.case") == "skipped: not here"
    assert session.verdict(issue, "no.such") == "did not run"


def test_the_summary_begins_with_the_worst() -> None:
    harmless = [dataclasses.replace(issue, harm="speed") for issue in ISSUES[:2]]
    lines = known_issues.summary([*harmless, dataclasses.replace(ISSUES[2], harm="memory")]).splitlines()[2:]
    assert [line.split(" | ")[1].partition(".")[0] for line in lines] == ["3", "1", "2"]
    assert lines[1].startswith(f"| {known_issues.HARMS['speed']} |") and lines[2].startswith("|  |")


SCRIPT = """\
import os, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from mmcheck import verbs
from mmcheck.boot.results import Case
from mmcheck.kernel import source
from mmcheck.study import patched
from mmcheck.tests.seeded import recorded

def prove(*_, **__):
    subprocess.run(["echo", "a program prints this"])
    for build, state in (("6.12-1-arm64-4K", "failed"), ("6.12-1+fixed-arm64-4K", "passed")):
        recorded(Path(os.environ["O"]), build, [Case("a", "b", state)])
    yield [], []

recorded(Path(os.environ["O"]), "7.3-1-arm64-4K", [Case("a", "b", "passed")], began="2026-01-01T00:00:00+00:00")
source.obtain = lambda _: SimpleNamespace(label="6.12-1")
patched.known = lambda *_: []
patched.prove, patched.label_of = prove, lambda *_: "6.12-1"
sys.exit(verbs.run("known-issues", os.environ))
"""


@pytest.mark.parametrize("wanted", ["", "1"])
def test_json_has_the_records_of_both_kernels(wanted: str, tmp_path: Path) -> None:
    environment = {"O": str(tmp_path), "JSON": wanted, "HOME": "/", "PATH": os.environ["PATH"]}
    environment["PYTHONPATH"] = str(PROJECT / "tools/testing")
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stderr if wanted else done.stdout
    assert "a program prints this\n" in said and "nothing was tested: 0 of 0 patches fix their issue" in said
    if wanted:
        found = {one["build"]: one["state"] for one in json.loads(done.stdout)}
        assert found == {"6.12-1-arm64-4K": "failed", "6.12-1+fixed-arm64-4K": "passed"}
