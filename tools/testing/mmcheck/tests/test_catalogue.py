# SPDX-License-Identifier: GPL-2.0
"""Each mutant of the catalogue must fit its kernels. These tests need the sources of the kernels in the cache."""

import os
import tomllib
from pathlib import Path

import pytest

from mmcheck.core.errors import UserError
from mmcheck.core.settings import FEATURES, from_environment
from mmcheck.kernel import shadow, source
from mmcheck.mutants import catalogue

KERNELS = tuple(tomllib.loads(catalogue.MISFITS.read_text()))
"""The kernels for which the catalogue has mutants."""


def fitting(kernel: str) -> set[str] | None:
    """The names of the mutants that fit a kernel; None if the source of the kernel is not in the cache."""
    settings = from_environment({**os.environ, "KERNEL": kernel, "KDIR": "", "PATCH": "", "PAGES": "", "FEATURES": ""})
    found = source.here(settings)
    if found is None:
        return None
    read = shadow.reader(found.path, FEATURES)
    return {mutant.name for mutant in catalogue.load(catalogue.FOLDER) if mutant.files(read) is not None}


def test_each_mutant_fits_a_kernel() -> None:
    fits = {kernel: fitting(kernel) for kernel in KERNELS}
    missing = [kernel for kernel, names in fits.items() if names is None]
    if missing:
        pytest.skip(f"no source of linux {', '.join(missing)} in the cache")
    names = {mutant.name for mutant in catalogue.load(catalogue.FOLDER)}
    lost = names - set().union(*(found or set() for found in fits.values()))
    assert not lost, f"no kernel has the code that {', '.join(sorted(lost))} would change: update these entries"


@pytest.mark.parametrize("kernel", KERNELS)
def test_just_what_is_not_meant_for_a_kernel_does_not_fit_it(kernel: str) -> None:
    names = {mutant.name for mutant in catalogue.load(catalogue.FOLDER)}
    listed = set(tomllib.loads(catalogue.MISFITS.read_text())[kernel])
    assert listed <= names, f"{', '.join(sorted(listed - names))}: no such mutant"
    found = fitting(kernel)
    if found is None:
        pytest.skip(f"no source of linux {kernel} in the cache")
    assert not listed & found, f"{', '.join(sorted(listed & found))} fit: remove them from {catalogue.MISFITS.name}"
    lost = names - found - listed
    assert not lost, f"{', '.join(sorted(lost))} do not fit: fix them, or list them in {catalogue.MISFITS.name}"


def test_a_mutant_that_is_meant_for_others_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("# x\nVERSION = 9\nPATCHLEVEL = 8\n")
    (tmp_path / "misfits.toml").write_text('"9.8" = ["a"]\n"9.9" = ["b"]\n')
    assert catalogue.misfits(tmp_path, tmp_path / "misfits.toml") == ["a"]


def test_a_kernel_that_is_not_there_is_said_before_it_is_asked_for() -> None:
    with pytest.raises(UserError, match="KERNEL=x: give a version"):
        source.judge(from_environment({"KERNEL": "x"}))


def test_lines_before_a_patch_set_fields(tmp_path: Path) -> None:
    text = (
        "Subject: a harm\nName: other\nProgram: tlb_stale\nMachine: -smp 2\n\nWhy: text\n\n--- a/mm/x.c\n+++ b/mm/x.c\n"
    )
    (tmp_path / "one.patch").write_text(f"{text}@@ -1 +1 @@\n-a\n+b\n")
    (one,) = catalogue.load(tmp_path)
    assert (one.name, one.harm, one.program, one.machine, one.suite) == ("other", "a harm", "tlb_stale", "-smp 2", "")
    assert one.files(lambda _: "a\n") == {"mm/x.c": "b\n"}
