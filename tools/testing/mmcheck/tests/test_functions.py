# SPDX-License-Identifier: GPL-2.0
"""The tables of functions are current. The verdict `tested` needs a mutant that a test notices."""

import re
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.kernel.source import Source
from mmcheck.mutants import catalogue, sample
from mmcheck.study import functions

SOURCES = sorted((Path.home() / ".cache/mmcheck/src").glob("linux-*"))
NEW = """\
#define pte_next_pfn(pte) pte_advance_pfn(pte, 1)

static inline void wrprotect_ptes(struct mm_struct *mm, pte_t *ptep)
{
}

static inline void modify_prot_new_ptes(struct mm_struct *mm, pte_t *ptep)
{
}

static inline int other(void)
{
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "include/linux").mkdir(parents=True)
    (tmp_path / "include/linux/pgtable.h").write_text(NEW)
    (tmp_path / "arch/arm64/mm").mkdir(parents=True)
    (tmp_path / "arch/arm64/mm/contpte.c").write_text("void contpte_set_ptes(void)\n{\n}\n")
    (tmp_path / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 3\n")
    return tmp_path


def test_functions_and_macros_of_a_tree_are_found_by_family(tree: Path) -> None:
    assert functions.defined(tree) == [
        ("entries", "modify_prot_new_ptes"),
        ("entries", "pte_next_pfn"),
        ("entries", "wrprotect_ptes"),
        ("contpte", "contpte_set_ptes"),
    ]


def test_a_new_function_is_not_tested(tree: Path) -> None:
    assert catalogue.version(tree) == "7.3"
    found = functions.verdicts(functions.defined(tree), "7.3")
    assert found["entries", "modify_prot_new_ptes"] == "not"
    assert found["entries", "wrprotect_ptes"] == "tested"
    assert found["contpte", "contpte_set_ptes"] == "tested"


@pytest.mark.parametrize(
    ("fields", "tested"),
    [
        ('suite = "x"', True),
        ('program = "x"', True),
        ('suite = "x"\nsurvives = "why"', False),
        ('suite = "x"\nequivalent = "why"', False),
        ('suite = "x"\nname = "unfit"', False),
        ("", False),
    ],
)
def test_a_mutant_counts_only_if_a_test_notices_it(
    fields: str, tested: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "" if "name" in fields else 'name = "fit"\n'
    change = 'file = "mm/util.c"\nin = "folio_pte_batch"\nold = "a"\nnew = "b"\nharm = "c"'
    (tmp_path / "x.toml").write_text(f"[[mutant]]\n{name}{change}\n{fields}\n")
    (tmp_path / "misfits").write_text('"7.3" = ["unfit"]\n')
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    monkeypatch.setattr(catalogue, "MISFITS", tmp_path / "misfits")
    monkeypatch.setattr(sample, "FOLDER", tmp_path)
    one, other = ("batches", "folio_pte_batch"), ("contpte", "folio_pte_batch")
    proved = functions.proofs([one, other], "7.3")
    assert bool(proved[one]) == tested
    assert not proved[other]  # its family has other files


@pytest.mark.parametrize("path", functions.documents(), ids=lambda path: path.name)
def test_tables_have_the_verdicts_of_now(path: Path) -> None:
    command = "python3 -m mmcheck.study.functions"
    assert path.read_text() == functions.present(path), f"run {command} in tools/testing"


@pytest.mark.skipif(not SOURCES, reason="no kernel source is in ~/.cache/mmcheck/src: run kunit.py once")
@pytest.mark.parametrize("path", functions.documents(), ids=lambda path: path.name)
def test_tables_have_the_functions_of_the_kernel(path: Path) -> None:
    kernel = functions.version(path.name)
    trees = [tree for tree in SOURCES if re.search(rf"^linux-{re.escape(kernel)}\.", tree.name)]
    if not trees:
        pytest.skip(f"no source of {kernel} is in ~/.cache/mmcheck/src")
    assert functions.listed(path) == functions.defined(trees[-1])


def test_there_are_tables_and_every_family_has_functions() -> None:
    names = {path.name for path in functions.documents()}
    assert names == {"functions-6.12.tsv", "functions-7.3.tsv"}
    for name in names:
        listed = {family for family, _ in functions.listed(PROJECT / "Documentation/mmcheck" / name)}
        assert listed == {family.name for family in functions.families()}


def test_each_function_of_the_newest_kernel_without_a_test_has_a_reason() -> None:
    path = PROJECT / "Documentation/mmcheck/functions-7.3.tsv"
    found = functions.verdicts(functions.listed(path), "7.3")
    untested = {name for (_, name), what in found.items() if what == "not"}
    assert untested == functions.reasons().keys()
    assert len(untested) < 30


def test_a_table_gives_the_reason_of_a_function_without_a_test() -> None:
    name = "vmap_try_huge_p4d"
    rows = functions.table({("vmalloc", name): "not", ("vmalloc", "vunmap_pte_range"): "tested"}).splitlines()
    assert rows[1:] == [f"vmalloc\t{name}\tnot\t{functions.reasons()[name]}", "vmalloc\tvunmap_pte_range\ttested"]


def test_the_folder_for_results_need_not_exist(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "Makefile").write_text("# x\nVERSION = 7\nPATCHLEVEL = 3\n")
    monkeypatch.setattr("mmcheck.kernel.source.obtain", lambda _: Source(tree, "linux", fixed=False))
    assert functions.run({"O": str(tmp_path / "new/out"), "HOME": str(tmp_path)}) == 0
    assert list((tmp_path / "new/out").glob("functions-*.tsv"))
