# SPDX-License-Identifier: GPL-2.0
"""The table of probes of a kernel. A probe answers no only if the kernel has the place that it searches."""

import re
import subprocess
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.dev import check
from mmcheck.kernel import probes

from .conftest import files


def tree(root: Path, value: str) -> Path:
    """A tree for which each probe gives the answer `value`."""
    for _, _, word, file, anchor, *_ in probes.table():
        place, _, name = anchor.rpartition(":")
        for path, text in ((root / file, word.replace(".", "(")), (root / (place or file), name)):
            path.parent.mkdir(parents=True, exist_ok=True)
            old = path.read_text() if path.exists() else ""
            if value == "yes" or (value == "no" and text == name):
                path.write_text(f"{old}{text} ;\n")
    return root


@pytest.mark.parametrize("value", ["yes", "no", "unknown"])
def test_a_thing_is_missing_only_where_its_place_is_there(tmp_path: Path, value: str) -> None:
    assert set(probes.answers(tree(tmp_path, value)).values()) == {value}


def test_the_compiler_is_told_what_is_there_and_what_nobody_can_tell(tmp_path: Path) -> None:
    root = tree(tmp_path, "yes")
    (root / "mm/memory.c").write_text("moved\n")
    command: list[str | Path] = ["sh", probes.FOLDER / "probe.sh", "-D", root]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    words = done.stdout.split()
    assert "-DPGTABLE_KUNIT_HAS_CLEAR_RANGES" in words
    assert "-DPGTABLE_KUNIT_HAS_NEEDS_ZEROING" not in words
    assert "-DPGTABLE_KUNIT_UNKNOWN=REUSED_FOLIOS,ZERO_EXTENTS,NEEDS_ZEROING,P4D_ALLOC" in words
    assert f"-DPGTABLE_KUNIT_PROBES={len(probes.table()) - 4}" in words
    assert "mmcheck: probe NEEDS_ZEROING: cannot tell, mm/memory.c has no alloc_anon_folio\n" in done.stderr


def test_a_probe_that_flips_is_an_error_of_a_known_kernel(tmp_path: Path) -> None:
    root = tree(tmp_path, "no")
    wrong = {name for name, why in probes.flips(root, "6.12").items() if why}
    assert wrong == {row[1] for row in probes.table() if row[5] == "yes"}
    assert probes.flips(root, "7.3")["YOUNG_PTES"].startswith("was yes, is no: clear_flush_young_ptes in ")
    assert not probes.flips(root, "7.4")


def test_every_row_has_a_value_for_each_kernel_that_check_builds() -> None:
    assert set(probes.kernels()) == {run.kernel for run in check.RUNS}
    for row in probes.table():
        assert len(row) == 5 + len(probes.kernels()), row
        assert row[0] in ("build", "cpp", "run") and set(row[5:]) <= {"yes", "no"}, row
    names = [row[1] for row in probes.table()]
    assert len(names) == len(set(names))


def test_all_that_asks_the_tree_stands_in_the_table() -> None:
    built = {row[1] for row in probes.table() if row[0] == "build"}
    makefiles = [PROJECT / "lib/pgtable_kunit/probe.mk", *PROJECT.glob("**/mm/tests/Makefile")]
    makefiles += PROJECT.glob("lib/*/Makefile")
    text = "".join(path.read_text().replace("\\\n", " ") for path in makefiles)
    asked = {n for names in re.findall(r"\$\(call pgtable_kunit_has,([^)]*)\)", text) for n in names.split()}
    selftests = (PROJECT / "tools/testing/selftests/mm/folio_tests.mk").read_text()
    asked |= set(re.findall(r"-DPGTABLE_KUNIT_HAS_(\w+)", selftests))
    sources = [probes.FOLDER / "compat.h", *files(".c"), *files(".h"), *PROJECT.glob("lib/mm_audit/*.[ch]")]
    sources += PROJECT.glob("tools/testing/selftests/mm/*.c")
    used = {name for path in sources for name in re.findall(r"PGTABLE_KUNIT_HAS_(\w+)", path.read_text())}
    assert built == asked == used
    words = {row[2] for row in probes.table()}
    for path in PROJECT.glob("tools/testing/selftests/mm/*.[ch]"):
        for symbol in re.findall(r'kernel_has\("(\w+)"\)', path.read_text()):
            if symbol not in ("atomic_rmw_", "init_mm"):
                assert any(word.startswith(symbol) for word in words), symbol
    steps = (PROJECT / "arch/arm64/mm/tests/contpte_race_hw_kunit.c").read_text()
    symbols = re.findall(r'"(\w+)"', steps.partition("step_symbols[] = {")[2].partition("};")[0])
    assert symbols and set(symbols) <= words
