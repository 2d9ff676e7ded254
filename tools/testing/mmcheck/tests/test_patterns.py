# SPDX-License-Identifier: GPL-2.0
"""The searches find the patterns in a small source, and do not report correct code. The table of verdicts is valid."""

from pathlib import Path

import pytest

from mmcheck import patterns, verbs
from mmcheck.core.errors import UserError
from mmcheck.patterns.searches import Function, functions, gaps, guards, search, tree

WRONG = """\
#if defined(CONFIG_SMALL)
static int old_one(struct vm_area_struct *vma, pte_t *ptep)
{
	/* if (pte_present(pte)) */
	pte_t pte = ptep_get(ptep);

	return pte_young(pte);
}
#endif

static int step(pmd_t *pmd, unsigned long addr, unsigned long end)
{
	for (; addr < end; addr += nr * PAGE_SIZE) {
		pte_t pte = ptep_get(ptep);

		if (!pte_present(pte))
			continue;
		nr = folio_nr_pages(folio) - idx;
	}
	return 0;
}

unsigned long hugetlb_mask(struct hstate *h)
{
	return PGDIR_SIZE - PUD_SIZE;
}

static void first(unsigned long addr, int nr)
{
	unsigned long start = addr - (nr << PAGE_SHIFT);
}

static void replace(struct vm_area_struct *vma, pte_t old)
{
	pte_t new = mk_pte(page, READ_ONCE(vma->vm_page_prot));

	if (pte_soft_dirty(old))
		new = pte_mksoft_dirty(new);
	set_pte_at(mm, addr, ptep, new);
}
"""

RIGHT = """\
static int old_one(struct vm_area_struct *vma, pte_t *ptep)
{
	pte_t pte = ptep_get(ptep);

	if (!pte_present(pte))
		return 0;
	return pte_young(pte);
}

static void replace(struct vm_area_struct *vma, pte_t old)
{
	pte_t new = mk_pte(page, vma->vm_page_prot);

	if (pte_soft_dirty(old))
		new = pte_mksoft_dirty(new);
	if (pte_uffd(old))
		new = pte_mkuffd(new);
	set_pte_at(mm, addr, ptep, new);
}
"""


def parsed(text: str) -> list[Function]:
    return list(functions(text, "mm/x.c"))


def test_each_pattern_is_found_in_its_line() -> None:
    found = [(c.pattern, c.function, WRONG.splitlines()[c.line - 1].strip()) for c in search(parsed(WRONG))]
    assert found == [
        ("present", "old_one", "return pte_young(pte);"),
        ("batch", "step", "nr = folio_nr_pages(folio) - idx;"),
        ("level", "hugetlb_mask", "return PGDIR_SIZE - PUD_SIZE;"),
        ("wrap", "first", "unsigned long start = addr - (nr << PAGE_SHIFT);"),
        ("fresh", "replace", "pte_t new = mk_pte(page, READ_ONCE(vma->vm_page_prot));"),
    ]


def test_a_function_that_asks_first_is_no_candidate() -> None:
    assert search(parsed(RIGHT)) == []


def test_a_question_that_one_tree_lacks_is_a_gap() -> None:
    (gap,) = gaps(parsed(WRONG), parsed(RIGHT))
    assert (gap.function, gap.line, gap.what) == ("old_one", 2, "pte_present 1 more")
    assert gaps(parsed(RIGHT), parsed(WRONG)) == []


FOLDS = """\
static bool usual(pte_t pte)
{
	return pte_none(pte);
}

void set_many(struct mm_struct *mm, pte_t pte)
{
	if (!mm_is_user(mm) || !pte_valid(pte))
		return;
	if (usual(pte))
		return;
}
"""

FOLDS_ALL = """\
static bool usual(pte_t pte)
{
	return pte_none(pte);
}

void set_many(struct mm_struct *mm, pte_t pte)
{
	if (!mm_is_user(mm))
		return;
	if (usual(pte))
		return;
}
"""

MOVED = """\
static bool usual(pte_t pte)
{
	return pte_none(pte) || !pte_valid(pte);
}

void set_many(struct mm_struct *mm, pte_t pte)
{
	if (!mm_is_user(mm) || usual(pte))
		return;
}
"""


def folding(text: str, file: str = "arch/arm64/mm/contpte.c") -> list[Function]:
    return list(functions(text, file))


def test_a_question_about_entries_that_one_tree_lacks_is_a_guard() -> None:
    (guard,) = guards(folding(FOLDS_ALL), folding(FOLDS))
    assert (guard.pattern, guard.function, guard.what) == ("guard", "set_many", "pte_valid 1 more")
    assert guards(folding(FOLDS), folding(FOLDS_ALL)) == []


def test_a_question_that_another_function_of_the_file_asks_is_no_guard() -> None:
    assert guards(folding(MOVED), folding(FOLDS)) == []


def test_a_guard_is_searched_where_ranges_are_changed() -> None:
    assert guards(folding(FOLDS_ALL, "mm/x.c"), folding(FOLDS, "mm/x.c")) == []


def test_a_tree_is_read_where_page_tables_are(tmp_path: Path) -> None:
    for name in ("mm/x.c", "drivers/x.c", "arch/riscv/mm/x.c"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(RIGHT)
    assert {f.file for f in tree(tmp_path)} == {"arch/riscv/mm/x.c", "mm/x.c"}


def test_the_first_verdict_counts() -> None:
    first = patterns.Verdict("present", ("old*",), "shown", "issue", "mm/*")
    second = patterns.Verdict("present", ("*",), "refuted", "reason")
    (one,) = [c for c in search(parsed(WRONG)) if c.pattern == "present"]
    assert patterns.judged([one], [first, second]) == [(one, "shown", "issue")]
    assert patterns.judged([one], []) == [(one, "new", "")]


def test_the_table_can_be_read() -> None:
    verdicts = patterns.load()
    assert {v.verdict for v in verdicts} == set(patterns.VERDICTS)


def test_a_verdict_that_means_nothing_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "v.toml"
    table.write_text('[[verdict]]\npattern = "wrap"\nfunctions = ["x"]\nverdict = "maybe"\nwhy = "y"\n')
    with pytest.raises(UserError, match="wrap, x"):
        patterns.load(table)


def test_only_takes_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.run("patterns", {"ONLY": "some"}) == 125
    assert "ONLY=some: use one of shown, open, refuted, new" in capsys.readouterr().err
