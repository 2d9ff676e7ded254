// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over contiguous PTEs: steps on the real table.
 *
 * Entries of the model are turned into bits here, by masks and not by the
 * functions that the kernel uses for it, and the table, the value returned and
 * the TLB invalidations are compared after each step.
 */

#include <linux/slab.h>

#include "contpte_walk.h"

/* The bits of one entry. */
static pteval_t walk_encode(const struct walk *w, const struct walk_entry *e)
{
	unsigned long pfn;
	pteval_t val;

	if (e->kind == WALK_NONE)
		return 0;
	/* Offsets are small: bit 52 does not always survive, see issue 1. */
	if (e->kind == WALK_SWAP)
		return (e->page + 1UL) << __SWP_OFFSET_SHIFT;

	if (e->page < WALK_FOLIO_PAGES)
		pfn = w->pfn + e->page;
	else
		pfn = w->pair_pfn + e->page - WALK_FOLIO_PAGES;

	val = (pfn << PAGE_SHIFT) | PTE_MAYBE_SHARED | PTE_PXN | PTE_NG;
	val |= PTE_TYPE_PAGE & ~PTE_VALID;
	val |= PTE_ATTRINDX(e->nc ? MT_NORMAL_NC : MT_NORMAL);
	if (e->kind == WALK_VALID)
		val |= PTE_VALID | PTE_USER;
	else
		val |= PTE_PRESENT_INVALID;
	if (e->kind != WALK_VALID || !e->exec)
		val |= PTE_UXN;
	if (e->cont)
		val |= PTE_CONT;
	if (e->young)
		val |= PTE_AF;
	if (e->write)
		val |= PTE_WRITE;
	if (!e->hw_dirty)
		val |= PTE_RDONLY;
	if (e->sw_dirty)
		val |= PTE_DIRTY;
	if (e->uffd)
		val |= PGTABLE_KUNIT_PTE_UFFD;
	if (e->special)
		val |= PTE_SPECIAL;
	return val;
}

/* There are two ways to be dirty; make them one. */
static pteval_t walk_one_dirty(pteval_t val)
{
	bool dirty = val & PTE_DIRTY ||
		     (val & PTE_WRITE && !(val & PTE_RDONLY));

	if (!(val & (PTE_VALID | PTE_PRESENT_INVALID)))
		return val;
	val = (val & ~PTE_DIRTY) | PTE_RDONLY;
	return dirty ? val | PTE_DIRTY : val;
}

/* What an access, or a walk of the tables by another unit, does. */
static void walk_hardware(pte_t *ptep, unsigned int flags)
{
	pteval_t val = pte_val(READ_ONCE(*ptep));

	if (flags & WALK_YOUNG)
		val |= PTE_AF;
	if (flags & WALK_DIRTY)
		val &= ~PTE_RDONLY;
	WRITE_ONCE(*ptep, __pte(val));
}

/* Make the call. What it returns, if anything, is put where there is room. */
static void walk_call(struct walk *w, const struct walk_step *step,
		      pteval_t entry, pteval_t changed, pteval_t *got,
		      unsigned int *number)
{
	unsigned long addr = contpte_addr(w->f, w->base + step->idx);
	pte_t *ptep = contpte_ptep(w->f, w->base + step->idx);
	struct mm_struct *mm = w->f->table->mm;
	struct vm_area_struct *vma = &w->f->vma;
	int full = !!(step->flags & WALK_FULL);
	unsigned int nr = step->nr;
	cydp_t cydp = 0;
	pte_t pte = __pte(0);

	if (step->flags & WALK_LEAK)
		entry |= PTE_CONT;

	switch (step->op) {
	case WALK_SET:
		set_ptes(mm, addr, ptep, __pte(entry), nr);
		break;
	case WALK_PTE_CLEAR:
		pte = pgtable_kunit_raw_get(ptep);
		pte_clear(mm, addr, ptep);
		pgtable_kunit_uncount(mm, addr, ptep, pte);
		pte = __pte(0);
		break;
	case WALK_GET_AND_CLEAR:
		pte = ptep_get_and_clear(mm, addr, ptep);
		break;
	case WALK_GET_AND_CLEAR_FULL:
		pte = get_and_clear_full_ptes(mm, addr, ptep, nr, full);
		break;
	case WALK_CLEAR_FULL:
		clear_full_ptes(mm, addr, ptep, nr, full);
		break;
	case WALK_GET_AND_CLEAR_PTES:
		pte = pgtable_kunit_get_and_clear_ptes(mm, addr, ptep, nr);
		break;
	case WALK_CLEAR_PTES:
		pgtable_kunit_clear_ptes(mm, addr, ptep, nr);
		break;
	case WALK_MODIFY_PROT:
		if (step->flags & WALK_LEAK)
			changed |= PTE_CONT;
		pte = pgtable_kunit_modify_prot_start(vma, addr, ptep, nr);
		pgtable_kunit_modify_prot_commit(vma, addr, ptep, pte,
						 __pte(changed), nr);
		break;
	case WALK_WRPROTECT:
		wrprotect_ptes(mm, addr, ptep, nr);
		break;
	case WALK_SET_WRPROTECT:
		ptep_set_wrprotect(mm, addr, ptep);
		break;
	case WALK_TEST_YOUNG:
		*number = !!ptep_test_and_clear_young(vma, addr, ptep);
		break;
	case WALK_FLUSH_YOUNG:
		*number = !!ptep_clear_flush_young(vma, addr, ptep);
		break;
	case WALK_TEST_YOUNG_PTES:
		*number = pgtable_kunit_test_and_clear_young(vma, addr, ptep, nr);
		break;
	case WALK_FLUSH_YOUNG_PTES:
		*number = pgtable_kunit_clear_flush_young(vma, addr, ptep, nr);
		break;
	case WALK_CLEAR_YOUNG_DIRTY:
		if (step->flags & WALK_YOUNG)
			cydp |= CYDP_CLEAR_YOUNG;
		if (step->flags & WALK_DIRTY)
			cydp |= CYDP_CLEAR_DIRTY;
		clear_young_dirty_ptes(vma, addr, ptep, nr, cydp);
		break;
	case WALK_ACCESS_FLAGS:
		*number = !!ptep_set_access_flags(vma, addr, ptep, __pte(entry),
						  !!(step->flags & WALK_FLUSH));
		break;
	case WALK_GET:
		pte = ptep_get(ptep);
		break;
	case WALK_GET_LOCKLESS:
		pte = ptep_get_lockless(ptep);
		break;
	case WALK_HINT:
		*number = pte_batch_hint(ptep, READ_ONCE(*ptep));
		break;
	case WALK_HARDWARE:
		walk_hardware(ptep, step->flags);
		break;
	}
	*got = pte_val(pte);
}

static bool walk_flushes_ok(struct walk *w)
{
	const struct walk_model *m = &w->model;
	struct pgtable_kunit_tlb *tlb = w->f->tlb;
	unsigned int i;

	if (tlb->nr != m->flushes)
		return false;
	for (i = 0; i < min(tlb->nr, PGTABLE_KUNIT_FLUSHES); i++) {
		if (tlb->range[i].start !=
		    contpte_addr(w->f, w->base + m->flush[i].start) ||
		    tlb->range[i].end !=
		    contpte_addr(w->f, w->base + m->flush[i].end))
			return false;
	}
	return true;
}

static bool walk_image_ok(struct walk *w, bool report, const char *desc)
{
	struct pgtable_kunit_table *table = w->f->table;
	unsigned int i;

	for (i = 0; i < CONTPTE_WINDOW; i++)
		table->want[w->base + i] =
			__pte(walk_encode(w, &w->model.entry[i]));
	return report ? pgtable_kunit_table_check(table, "%s", desc) :
			pgtable_kunit_table_same(table);
}

static bool walk_returned_ok(struct walk *w, pteval_t got, unsigned int number,
			     const struct walk_step *step, const char *desc,
			     bool report)
{
	struct walk_model *m = &w->model;
	pteval_t want;

	if (m->returns == WALK_RETURNS_NOTHING)
		return true;
	if (m->returns == WALK_RETURNS_NUMBER) {
		if (report)
			KUNIT_EXPECT_EQ_MSG(w->f->test, number, m->number,
					    "%s", desc);
		return number == m->number;
	}

	want = walk_one_dirty(walk_encode(w, &m->ret));
	got = walk_one_dirty(got);
	/* Readers show the bit, what is left of a block may. */
	if (step->op != WALK_GET && step->op != WALK_GET_LOCKLESS) {
		want &= ~PTE_CONT;
		got &= ~PTE_CONT;
	}
	if (report && got != want)
		KUNIT_FAIL(w->f->test, "%s returns %016llx, expected %016llx",
			   desc, got, want);
	return got == want;
}

/**
 * walk_step_ok() - make a step, in the model and for real
 * @w: the walk
 * @step: the step; it is legal
 * @report: fail the test if they disagree
 *
 * Return: whether table, value returned and TLB invalidations agree.
 */
bool walk_step_ok(struct walk *w, const struct walk_step *step, bool report)
{
	pteval_t entry = walk_encode(w, &step->entry), changed, got = 0;
	struct walk_model *m = &w->model;
	unsigned int number = 0;
	struct walk_entry want;
	char desc[128] = "";
	bool ok;

	if (step->op == WALK_ACCESS_FLAGS) {
		want = walk_model_access(m, step);
		entry = walk_encode(w, &want);
	}
	walk_model_step(m, step);
	changed = walk_encode(w, &m->changed) & ~PTE_CONT;
	if (report)
		walk_describe(step, desc, sizeof(desc));

	w->f->tlb->nr = 0;
	walk_call(w, step, entry, changed, &got, &number);

	ok = walk_image_ok(w, report, desc);
	ok &= walk_returned_ok(w, got, number, step, desc, report);
	if (!walk_flushes_ok(w)) {
		struct pgtable_kunit_tlb *tlb = w->f->tlb;

		ok = false;
		if (report)
			KUNIT_FAIL(w->f->test,
				   "%s: %u TLB invalidations, the first of %lx-%lx, expected %u, the first of entries [%u, %u) from %lx on",
				   desc, tlb->nr, tlb->range[0].start,
				   tlb->range[0].end, m->flushes,
				   m->flush[0].start, m->flush[0].end,
				   contpte_addr(w->f, w->base));
	}

	/* A fault on purpose, and no other: see walk_shortens_sequence. */
	if (w->plant) {
		ok = !w->planted || step->id != w->plant[1].id;
		w->planted |= step->id == w->plant[0].id;
	}
	return ok;
}

/**
 * walk_reset() - start over, with the same seed and an empty table
 * @w: the walk
 */
void walk_reset(struct walk *w)
{
	contpte_reset(w->f);
	memset(w->model.entry, 0, sizeof(w->model.entry));
	w->planted = false;
}

/**
 * walk_replay_fails() - make given steps on an empty table
 * @w: the walk
 * @step: the steps. Those that are not legal where they stand are left out
 * @nr: their number
 * @report: fail the test with what is seen
 *
 * Return: whether model and table disagreed at some step.
 */
bool walk_replay_fails(struct walk *w, const struct walk_step *step,
		       unsigned int nr, bool report)
{
	unsigned int i;

	walk_reset(w);
	for (i = 0; i < nr; i++) {
		if (walk_step_legal(&w->model, &step[i]) &&
		    !walk_step_ok(w, &step[i], report))
			return true;
	}
	return false;
}

/**
 * walk_alloc() - make a walk
 * @test: the test that is to own it
 *
 * Return: the walk; it has no seed yet.
 */
struct walk *walk_alloc(struct kunit *test)
{
	struct walk *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct folio *pair[2];

	KUNIT_ASSERT_NOT_NULL(test, w);

	w->f = contpte_fixture_alloc(test);
	pgtable_kunit_folio_alloc_pair(test, CONTPTE_ORDER - 1, pair);
	w->pfn = folio_pfn(w->f->folio);
	w->pair_pfn = folio_pfn(pair[0]);

	/* Beyond, addresses are not stored as they are. */
	KUNIT_ASSERT_LT(test, PFN_PHYS(w->pfn), BIT_ULL(48));
	KUNIT_ASSERT_LT(test, PFN_PHYS(w->pair_pfn), BIT_ULL(48));
	return w;
}
