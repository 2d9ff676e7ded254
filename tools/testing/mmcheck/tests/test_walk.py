# SPDX-License-Identifier: GPL-2.0
"""Parts of folio_walk that can run without a kernel under test."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mmcheck.boot.results import Case
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.run import walk

FOLDER = PROJECT / "tools/testing/selftests/mm"

PRINTER = """
#define main walk_main_of_the_selftest
#include "folio_walk.c"
#undef main

int main(void)
{
	static struct walk_step steps[128];
	uint32_t i;

	walk_psize = sysconf(_SC_PAGESIZE);
	walk = calloc(1, sizeof(*walk));
	walk->unit = 512;
	for (i = 0; i < walk_nr_calls; i++)
		steps[i] = (struct walk_step){ .call = i, .at = 16, .len = 16, .to = 64, .tolen = 16 };
	walk_print_program(stdout, 1, steps, walk_nr_calls);
	return 0;
}
"""
"""Prints, as a C program, a sequence that has each call once."""


def test_a_program_with_each_call_compiles_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "printer.c").write_text(PRINTER)
    sources = sorted(path for path in FOLDER.glob("folio_walk*.c") if path.name != "folio_walk.c")
    subprocess.run(["gcc", f"-I{FOLDER}", "-o", "printer", "printer.c", *sources], cwd=tmp_path, check=True)
    made = subprocess.run(["./printer"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert len(re.findall(r"^\tcase \d+:", made, re.MULTILINE)) >= 75
    (tmp_path / "made.c").write_text(made)
    strict = ["gcc", "-Wall", "-Wextra", "-Werror", "-c", "made.c"]
    done = subprocess.run(strict, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("emulated", [True, False])
def test_a_machine_that_does_not_start_under_kvm_is_emulated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, emulated: bool
) -> None:
    tried: list[bool] = []

    class Boot:
        def __init__(self, _launch: object, log: Path, *, words: object, kvm: bool) -> None:
            self.kvm = kvm
            tried.append(kvm)
            log.write_text("# 1 lives\n")

        def run(self, *_: object) -> Iterator[Case]:
            if emulated and not self.kvm:
                yield Case("folio_walk", "seed_7", "passed")

    monkeypatch.setattr(walk, "Boot", Boot)
    session: Any = SimpleNamespace(
        folder=tmp_path, consoles=[], words=(), kvm=True, launch=SimpleNamespace(label="7.3.4")
    )
    if emulated:
        assert walk.one(session, {}, 7, 60, "").passed
    else:
        with pytest.raises(UserError, match="ended before the first call"):
            walk.one(session, {}, 7, 60, "")
    assert tried == [True, False]
