# SPDX-License-Identifier: GPL-2.0
"""./mmcheck radar: how a patch series changes the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT

from .conftest import User, state
from .test_bisect import KUNIT_PY

ZAP = "static void zap_present_folio_ptes(void)\n{\n\tfolio_mark_accessed(folio);\n}\n"
"""The code that some mutants of mm/memory.c change."""

PRESENT = "#define pte_present(pte) (pte_valid(pte) || pte_present_invalid(pte))\n"
"""The faulty code of known issue 3."""


def radar(user: User, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ./mmcheck radar."""
    return subprocess.run(
        [sys.executable, PROJECT / "tools/testing/mmcheck", "radar", *arguments],
        cwd=user.home,
        env={**user.environment, "PYTHONPATH": str(PROJECT / "tools/testing"), **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def kernel(tree: Path) -> Path:
    """A kernel with the code that some mutants, a probe and a known issue need."""
    (tree / "tools/testing/kunit/kunit.py").write_text(KUNIT_PY)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\n")
    (tree / "mm/memory.c").write_text(f"/* fine */\n{ZAP}")
    for name, text in (
        ("include/linux/pgtable.h", "int get_and_clear_full_ptes;\n"),
        ("arch/arm64/include/asm/pgtable.h", PRESENT),
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


def series(user: User, kernel: Path, **files: str) -> str:
    """A patch that gives files of the kernel new contents. `mm__memory_c` stands for mm/memory.c."""
    parts = ["Subject: [PATCH] x\n\n---\n"]
    for key, new in files.items():
        name = key.replace("__", "/")
        name = f"{name[: name.rindex('_')]}.{name[name.rindex('_') + 1 :]}"
        old = (kernel / name).read_text().splitlines()
        text = new.splitlines()
        parts.append(f"--- a/{name}\n+++ b/{name}\n@@ -1,{len(old)} +1,{len(text)} @@\n")
        parts += [*(f"-{line}\n" for line in old), *(f"+{line}\n" for line in text)]
    (user.home / "fix.mbox").write_text("".join(parts))
    return "fix.mbox"


def test_what_a_series_does_to_the_tests(user: User, kernel: Path) -> None:
    before = state(kernel)
    given = series(
        user,
        kernel,
        mm__memory_c="/* fine */\nstatic void zap_present_folio_ptes(void)\n{\n\tnew_name(folio);\n}\n",
        include__linux__pgtable_h="int get_and_clear_full_ptes;\nint get_and_clear_ptes;\n",
        arch__arm64__include__asm__pgtable_h="static inline int pte_present(pte_t pte)\n",
    )
    done = radar(user, given, "--boot", "no")
    assert done.returncode == 0, done.stderr
    assert "probe CLEAR_PTES: no before, yes now (get_and_clear_ptes in include/linux/pgtable.h)\n" in done.stdout
    gone = next(line for line in done.stdout.splitlines() if line.startswith("mutants that no longer fit: "))
    assert "zap_" in gone
    assert "known issues whose faulty code is gone: 3\n" in done.stdout
    assert not list(Path(user.environment["O"]).glob("tree/*/*-arm64-4K"))
    assert state(kernel) == before


def test_a_series_without_effect_on_the_tests(user: User, kernel: Path) -> None:
    done = radar(user, series(user, kernel, mm__memory_c=f"/* other words */\n{ZAP}"), "--boot", "no")
    assert done.returncode == 0, done.stderr
    assert "the series changes no probe, no mutant and no known issue\n" in done.stdout
    still = next(line for line in done.stdout.splitlines() if line.startswith("mutants of these files that still"))
    assert int(still.rpartition(" ")[2]) > 0


def test_the_verdict_is_the_difference(user: User, kernel: Path) -> None:
    bad = radar(user, series(user, kernel, mm__memory_c=f"/* fails-a */\n{ZAP}"))
    assert bad.returncode == 1, bad.stderr
    assert "FAILED: 1 new failure, 0 fixed, 0 still failing, 2 as before\nnew failures: one.a\n" in bad.stdout
    assert "next: make radar KDIR=" in bad.stdout and "SERIES=fix.mbox" in bad.stdout
    assert "Tested-by" not in bad.stdout
    (kernel / "mm/memory.c").write_text(f"/* fails-b */\n{ZAP}")
    good = radar(user, series(user, kernel, mm__memory_c=f"/* fine */\n{ZAP}"), GIT_DIR="/nonexistent")
    assert good.returncode == 0, good.stderr
    assert "passed: 0 new failures, 1 fixed, 0 still failing, 2 as before\nfixed: one.b\n" in good.stdout
    assert "  3 cases ran with the series. passed: 0 new failures, 1 fixed" in good.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give a series"),
        (["none.mbox"], "neither a file nor a range A..B of commits"),
        (["a", "b"], "give SERIES; see"),
        (["fix.mbox", "--only", "a b"], "give one glob"),
        (["fix.mbox", "--kdir", "/no/such"], "no such folder"),
    ],
)
def test_bad_series(user: User, kernel: Path, arguments: list[str], says: str) -> None:
    series(user, kernel, mm__memory_c="/* x */\n")
    done = radar(user, *arguments)
    assert done.returncode == 125 and done.stderr.count("\n") == 1 and says in done.stderr


def test_a_series_that_does_not_apply_names_the_place(user: User, kernel: Path) -> None:
    given = series(user, kernel, mm__memory_c="/* x */\n")
    (kernel / "mm/memory.c").write_text("int other;\n")
    done = radar(user, given)
    assert done.returncode == 125 and "does not apply: patch failed: mm/memory.c:1" in done.stderr
