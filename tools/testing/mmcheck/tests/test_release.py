# SPDX-License-Identifier: GPL-2.0
"""A release needs a new version, a clean tree, a verdict and a changelog. It makes a commit, a tag and two files."""

import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mmcheck import verbs
from mmcheck.core.errors import UserError
from mmcheck.dev import checked, release
from mmcheck.run import selftest_tar

LOG = "# Changelog\n\n## Unreleased\n\n- A new thing.\n- Another.\n\n## 1.0.0, 2026-01-01\n\n- Old.\n"
DAY = "2026-11-25"


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("[user]\n\tname = Jane Doe\n\temail = jane@example.org\n")
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / release.CHANGELOG).write_text(LOG)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "base")
    git(folder, "tag", "v1.0.0")
    monkeypatch.setattr(release, "PROJECT", folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def out(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder O= of a make check that has passed for the commit."""
    commit = checked.commit(project)
    monkeypatch.setattr(checked, "commit", lambda: checked_commit(project))
    checked_commit: Callable[[Path], str] = lambda folder: git(folder, "rev-parse", "HEAD")  # noqa: E731
    checked.keep(tmp_path / "out", commit, 900, 0, True)
    return tmp_path / "out"


def refused(project: Path, out: Path, version: str = "1.1.0") -> str:
    with pytest.raises(UserError) as error:
        release.plan(version, out, project)
    return str(error.value)


@pytest.mark.parametrize("version", ["1", "1.2", "1.2.x", "v1.2.3", "01.2.3", "1.2.3.4", "", "1.2.3\n"])
def test_a_version_has_three_numbers(project: Path, out: Path, version: str) -> None:
    assert "give three numbers, for example VERSION=1.2.0" in refused(project, out, version)


def test_a_version_is_later_than_the_last(project: Path, out: Path) -> None:
    assert refused(project, out, "1.0.0") == ("VERSION=1.0.0: the tag v1.0.0 already exists; choose the next version")
    assert refused(project, out, "0.10.0") == "VERSION=0.10.0: v1.0.0 is already released; choose a later version"
    assert release.plan("1.0.10", out, project).tag == "v1.0.10"


def test_a_tree_with_changes_is_refused(project: Path, out: Path) -> None:
    (project / "new").touch()
    assert refused(project, out) == "commit or remove the changes of the work tree first: ?? new"


def test_the_verdict_is_about_this_commit(project: Path, out: Path) -> None:
    commit = git(project, "rev-parse", "HEAD")
    git(project, "commit", "-q", "--allow-empty", "-m", "later")
    assert f"the last make check tested commit {commit[:12]}, not " in refused(project, out)
    now = git(project, "rev-parse", "HEAD")
    checked.keep(out, "", 900, 0, True)
    assert "tested a work tree with changes, not" in refused(project, out)
    checked.keep(out, now, 900, 3, True)
    assert refused(project, out).endswith(": 3 failures; run make check")
    checked.keep(out, now, 900, 0, False)
    assert refused(project, out) == "the last check was make check-host, which boots no kernel; run make check"
    (out / checked.FILE).unlink()
    assert refused(project, out) == f"`make check` has left no verdict in {out}; run make check"


def test_a_verdict_counts_only_if_the_commit_stayed(out: Path, project: Path) -> None:
    checked.keep(out, "another commit", 900, 0, True)
    assert "tested a work tree with changes" in refused(project, out)


def test_the_changelog_gets_the_version_once() -> None:
    text, notes = release.heading(LOG, "1.1.0", DAY)
    assert notes == "- A new thing.\n- Another."
    assert text.startswith(f"# Changelog\n\n## Unreleased\n\n## 1.1.0, {DAY}\n\n- A new thing.\n")
    assert release.heading(text, "1.1.0", DAY) == ("", notes)
    with pytest.raises(UserError, match=r"has no notes on 1.2.0"):
        release.heading(text, "1.2.0", DAY)
    with pytest.raises(UserError, match=r'has no heading "Unreleased" or "1.2.0"'):
        release.heading("# Changelog\n", "1.2.0", DAY)


def fake_programs(environ: dict[str, str], target: Path) -> Path:
    assert environ["ARCH"] == "arm64"
    target.write_text("programs")
    return target


def test_a_release_is_a_commit_a_tag_and_files(project: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest_tar, "write", fake_programs)
    before = git(project, "rev-parse", "HEAD")
    dry = {"VERSION": "1.1.0", "O": str(out), "DRY_RUN": "1"}
    assert verbs.run("release", dry) == 0
    assert git(project, "rev-parse", "HEAD") == before and not (out / "release").exists()
    assert release.run({**dry, "DRY_RUN": ""}) == 0
    assert git(project, "rev-parse", "v1.1.0^{commit}") == git(project, "rev-parse", "HEAD")
    assert git(project, "rev-parse", "HEAD^") == before and git(project, "status", "--porcelain") == ""
    assert git(project, "cat-file", "-t", "v1.1.0") == "tag"
    assert "mmcheck 1.1.0\n\n- A new thing.\n- Another." in git(project, "cat-file", "tag", "v1.1.0")
    with tarfile.open(out / "release/mmcheck-1.1.0.tar.gz") as tar:
        file = tar.extractfile("mmcheck-1.1.0/CHANGELOG.md")
        assert file and b"## 1.1.0, " in file.read()
    sums = (out / "release/sha256sums").read_text().split()[1::2]
    assert sums == ["mmcheck-1.1.0.tar.gz", "mmcheck-1.1.0-selftests-arm64.tar.gz"]


def test_a_tag_that_fails_leaves_nothing(project: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest_tar, "write", fake_programs)
    git(project, "config", "user.signingkey", "no such key")
    before = git(project, "rev-parse", "HEAD")
    with pytest.raises(UserError, match="git tag failed: "):
        release.run({"VERSION": "1.1.0", "O": str(out)})
    assert git(project, "rev-parse", "HEAD") == before and git(project, "status", "--porcelain") == ""
    assert (project / release.CHANGELOG).read_text() == LOG and git(project, "tag") == "v1.0.0"


def test_programs_that_do_not_build_leave_nothing(project: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Path:
        raise UserError("the selftests do not build")

    monkeypatch.setattr(selftest_tar, "write", fails)
    with pytest.raises(UserError, match="do not build"):
        release.run({"VERSION": "1.1.0", "O": str(out)})
    assert git(project, "tag") == "v1.0.0" and git(project, "log", "--format=%s") == "base"


def test_the_tarball_is_what_run_kselftest_needs(tmp_path: Path) -> None:
    folder = tmp_path / "linux/tools/testing/selftests"
    (folder / "kselftest").mkdir(parents=True)
    (folder / "run_kselftest.sh").write_text("#!/bin/sh\n")
    for name in ("runner.sh", "ktap_helpers.sh"):
        (folder / "kselftest" / name).write_text("# helper\n")
    (tmp_path / "folio_fork").write_text("program")
    selftest_tar.pack(tmp_path / "linux", {"folio_fork": tmp_path / "folio_fork"}, tmp_path / "x.tar.gz")
    board = tmp_path / "board"
    board.mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "x.tar.gz", "-C", board], check=True)
    assert (board / "kselftest-list.txt").read_text() == "mm:folio_fork\n"
    assert (board / "mm/settings").read_text() == "timeout=300\n"
    for name in ("run_kselftest.sh", "kselftest/runner.sh", "kselftest/ktap_helpers.sh", "mm/folio_fork"):
        assert (board / name).stat().st_mode & 0o100
