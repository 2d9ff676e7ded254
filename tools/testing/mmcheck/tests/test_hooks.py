# SPDX-License-Identifier: GPL-2.0
"""The pre-commit hook refuses what the checkers refuse. Without the checkers it refuses nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT

HOOK = PROJECT / "tools/testing/mmcheck/hooks/pre-commit"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def commit(repository: Path, name: str, text: str, **environ: str) -> subprocess.CompletedProcess[str]:
    (repository / name).write_text(text)
    subprocess.run(["git", "-C", repository, "add", name], check=True)
    environment = {**os.environ, "XDG_CACHE_HOME": str(repository / "cache"), **environ}
    return subprocess.run([HOOK], cwd=repository, env=environment, capture_output=True, text=True)


def with_ruff(repository: Path) -> str:
    folder = repository / "o/venv/bin"
    folder.mkdir(parents=True)
    (folder / "ruff").symlink_to(Path(sys.executable).parent / "ruff")
    return str(repository / "o")


def test_python_that_ruff_refuses_is_not_committed(repository: Path) -> None:
    done = commit(repository, "a.py", "import os\n", O=with_ruff(repository))
    assert (done.returncode, "--no-verify" in done.stderr) == (1, True)


def test_good_python_is(repository: Path) -> None:
    assert commit(repository, "a.py", "A = 1\n", O=with_ruff(repository)).returncode == 0


def test_c_that_checkpatch_refuses_is_not_committed(repository: Path) -> None:
    checker = repository / "cache/mmcheck/src/linux/scripts/checkpatch.pl"
    checker.parent.mkdir(parents=True)
    checker.write_text('#!/bin/sh\nfor last; do :; done\n! grep -n "  " "$last"\n')
    checker.chmod(0o755)
    assert commit(repository, "a.c", "int a;\n").returncode == 0
    assert commit(repository, "b.c", "int  b;\n").returncode == 1


def test_nothing_is_checked_where_no_checker_is(repository: Path) -> None:
    done = commit(repository, "a.py", "import os\n", O=str(repository / "none"))
    assert (done.returncode, done.stderr) == (0, "")
