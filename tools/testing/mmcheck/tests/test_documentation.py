# SPDX-License-Identifier: GPL-2.0
"""The cases and files that Documentation/ names exist, and each contract names a case that proves it."""

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.dev import htmldocs
from mmcheck.dev.overlay import cases, selftests
from mmcheck.kernel import graft, suites
from mmcheck.mutants import catalogue

FOLDER = PROJECT / "Documentation"
INDEX = FOLDER / "mmcheck/index.rst"
DOCUMENTS = sorted(path for path in FOLDER.rglob("*.rst") if path != INDEX)
"""All documents except the index. Only Sphinx can read the index."""

CONTRACTS = FOLDER / "mm/pgtable_batch_helpers.rst"

ELSEWHERE = {
    "atomic_rmw_bench": "measures, and fails for no number",
    "atomic_rmw_fault": "page faults of single instructions",
    "atomic_rmw_insn": "a decoder of instructions",
    "atomic_rmw_large": "page faults of single instructions",
    "atomic_rmw_uffd": "page faults of single instructions",
    "atomic_seqcount": "a library of this project, which no kernel calls",
    "atomic_seqcount_race": "a library of this project, which no kernel calls",
    "folio_bench": "measures, and fails for no number",
    "huge_insert": "single entries of huge pages",
    "hugetlb_entry": "entries of hugetlb, which is no batch of a folio",
    "hugetlb_pte": "entries of hugetlb, which is no batch of a folio",
    "hugetlb_take": "entries of hugetlb, which is no batch of a folio",
    "hugetlb_walk": "entries of hugetlb, which is no batch of a folio",
    "kernel_attr": "mappings of the kernel, which is no batch of a folio",
    "linear_map_efi": "page tables of firmware",
    "mm_audit": "the auditor of this project, which no kernel calls",
    "napot_pte": "entries of hugetlb, which is no batch of a folio",
    "pgtable_probe": "whether the suites know what the kernel has",
    "pmd_leaf": "single entries of huge pages",
    "pmdp_op": "single entries of huge pages",
    "pte_walker": "the hardware's part in single entries",
    "pud_leaf": "single entries of huge pages",
    "rmap_id": "a library of this project, which no kernel calls",
    "rmap_id_collision": "a library of this project, which no kernel calls",
    "softleaf": "single entries that are not present",
    "vmap_area": "mappings of the kernel, which is no batch of a folio",
    "vmap_block": "mappings of the kernel, which is no batch of a folio",
}
"""Suites whose cases need not appear in the contracts of batches, with the reasons."""

OF_THE_KERNEL = {"arch_pgtable_helpers.rst", "include/linux/pgtable.h"}
"""Files of the kernel, not of this repository."""

PLACEHOLDERS = {"suite.case", "fixture.case"}
SUFFIXES = (".c", ".config", ".h", ".md", ".mk", ".probe", ".py", ".rst", ".toml")


@cache
def parsed(path: Path) -> ElementTree.Element:
    """The document as docutils parses it. docutils must print no warning."""
    options = ["--writer=xml", "--no-doctype", "--no-file-insertion", "--no-raw", "--report=warning", "--halt=warning"]
    done = subprocess.run([sys.executable, "-m", "docutils", *options, path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return ElementTree.fromstring(done.stdout)


def texts(element: ElementTree.Element, tag: str) -> list[str]:
    """The texts of all elements with a tag. The text of an element is one line, except for blocks."""
    found = ("".join(part.itertext()) for part in element.iter(tag))
    return [text if tag == "literal_block" else " ".join(text.split()) for text in found]


def is_path(literal: str) -> bool:
    return not re.search(r"[ <=*]", literal) and ("/" in literal or literal.endswith(SUFFIXES))


def cited(element: ElementTree.Element) -> set[str]:
    """The cases that a part of a document names."""
    names = {text for text in texts(element, "literal") if re.fullmatch(r"[a-z]\w*\.\w+", text) and not is_path(text)}
    return names - PLACEHOLDERS


def test_there_are_documents() -> None:
    assert CONTRACTS in DOCUMENTS
    assert len(DOCUMENTS) >= 3


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_is_well_formed(path: Path) -> None:
    text = path.read_text()
    assert text.startswith(".. SPDX-License-Identifier: GPL-2.0\n\n")
    assert parsed(path).findtext("title")
    assert "\t" not in re.sub(r"(?m)^\t.*$|\t/\* .* \*/$", "", text), "tabs outside of code"
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_cited_cases_exist(path: Path) -> None:
    assert cited(parsed(path)) - cases() == set()


def test_each_contract_names_a_case() -> None:
    items = parsed(CONTRACTS).findall(".//section/bullet_list/list_item")
    assert len(items) > 100
    for item in items:
        assert cited(item), "".join(item.itertext())


def test_each_suite_proves_a_contract() -> None:
    named = {name.partition(".")[0] for name in cited(parsed(CONTRACTS)) - selftests()}
    assert {one.name for one in suites.suites()} - named - ELSEWHERE.keys() == set()
    assert named & ELSEWHERE.keys() == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_named_paths_exist(path: Path) -> None:
    named = {text for text in texts(parsed(path), "literal") if is_path(text)}
    assert {name for name in named if not (PROJECT / name).exists()} - OF_THE_KERNEL == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_named_symbols_exist(path: Path) -> None:
    sources = [*PROJECT.glob("lib/pgtable_kunit/*"), PROJECT / "Kconfig.kunit"]
    known = "".join(source.read_text() for source in sources)
    for name in re.findall(r"\b(?:pgtable_kunit|PGTABLE_KUNIT)\w*", path.read_text()):
        assert name in known, name


def test_the_mutant_of_the_example_is_in_the_catalogue() -> None:
    blocks = texts(parsed(FOLDER / "mmcheck/adding.rst"), "literal_block")
    examples = [tomllib.loads(block)["mutant"][0] for block in blocks if block.startswith("[[mutant]]")]
    known = [e for path in catalogue.FOLDER.glob("*.toml") for e in tomllib.loads(path.read_text()).get("mutant", [])]
    assert examples and all(example in known for example in examples)


def test_sphinx_makes_all_pages(tmp_path: Path) -> None:
    """Sphinx prints no warning, so no internal link is broken, and the index has every page."""
    assert htmldocs.build(FOLDER, tmp_path, Path(sys.executable).parent) == 0
    pages = {path.relative_to(tmp_path).with_suffix(".rst") for path in tmp_path.glob("*/*.html")}
    assert {path.relative_to(FOLDER) for path in [*DOCUMENTS, INDEX]} <= pages


def test_documents_are_not_grafted() -> None:
    assert not [name for name in graft.overlay_files() if name.startswith("Documentation")]
