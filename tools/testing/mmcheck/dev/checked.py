# SPDX-License-Identifier: GPL-2.0
"""Stores the verdict of `make check` with its commit in O/check/verdict.json."""

import json
from pathlib import Path

from ..core import disk, git
from ..core.settings import PROJECT

FILE = "check/verdict.json"


def commit(project: Path = PROJECT) -> str:
    """The commit of this repository; "" if its work tree has changes."""
    return "" if git.asked(project, "status", "--porcelain") else git.commit_of(project)


def keep(out: Path, before: str, passed: int, failed: int, kernels: bool) -> None:
    """Store the verdict. The commit is stored only if the work tree was clean and stayed at the commit `before`."""
    content = {
        "commit": before if before == commit() else "",
        "passed": passed,
        "failed": failed,
        "kernels": kernels,
    }
    (out / FILE).parent.mkdir(parents=True, exist_ok=True)
    disk.replace(out / FILE, (json.dumps(content) + "\n").encode())


def missing(out: Path, wanted: str) -> str:
    """Why make check has not passed for the commit `wanted`; "" if it has passed."""
    try:
        content = json.loads((out / FILE).read_text())
        of, failed, kernels = content["commit"], content["failed"], content["kernels"]
    except (OSError, ValueError, KeyError, TypeError):
        return f"`make check` has left no verdict in {out}"
    if of != wanted:
        about = f"commit {of[:12]}" if of else "a work tree with changes"
        return f"the last make check tested {about}, not {wanted[:12]}"
    if failed:
        return f"make check failed for {wanted[:12]}: {failed} failures"
    return "" if kernels else "the last check was make check-host, which boots no kernel"
