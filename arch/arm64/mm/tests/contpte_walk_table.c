// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over contiguous PTEs: the table.
 *
 * This file turns entries of the model into bits by masks of its own, not by
 * functions of the kernel. The table, the value returned and the TLB
 * invalidations are compared bit by bit.
 */

#include "contpte_walk.h"

/* The bits of one entry. */
static pte_t walk_encode(const struct walk *w, const struct walk_entry *e)
{
	pteval_t val;

	if (e->kind == WALK_NONE)
		return __pte(0);
	/*
	 * Offsets are small: bit 52 does not always survive, see known issue 1.
	 */
	if (e->kind == WALK_SWAP)
		return __pte((e->page + 1UL) << __SWP_OFFSET_SHIFT);

	val = PFN_PHYS(walk_page_pfn(w, e->page));
	val |= PTE_MAYBE_SHARED | PTE_PXN | PTE_NG;
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
	return __pte(val);
}

/* An entry may be dirty in two ways: turn them into one. */
static pteval_t walk_one_dirty(pteval_t val)
{
	bool dirty = val & PTE_DIRTY ||
		     (val & PTE_WRITE && !(val & PTE_RDONLY));

	if (!(val & (PTE_VALID | PTE_PRESENT_INVALID)))
		return val;
	val = (val & ~PTE_DIRTY) | PTE_RDONLY;
	return dirty ? val | PTE_DIRTY : val;
}

/*
 * Change an entry as an access does, or as a table walk by another unit does.
 */
static void walk_hardware(pte_t *ptep, unsigned int flags)
{
	pteval_t val = pte_val(READ_ONCE(*ptep));

	if (flags & WALK_YOUNG)
		val |= PTE_AF;
	if (flags & WALK_DIRTY)
		val &= ~PTE_RDONLY;
	WRITE_ONCE(*ptep, __pte(val));
}

static bool walk_flushes_ok(struct walk *w, bool report, const char *desc)
{
	const struct walk_model *m = &w->model;
	struct contpte_fixture *f = w->data;
	struct pgtable_kunit_tlb *tlb = f->tlb;
	unsigned int i, nr = tlb->nr;
	bool ok = nr == m->flushes;

	tlb->nr = 0;
	for (i = 0; ok && i < min(nr, PGTABLE_KUNIT_FLUSHES); i++) {
		ok = tlb->range[i].start ==
		     contpte_addr(f, w->base + m->flush[i].start) &&
		     tlb->range[i].end ==
		     contpte_addr(f, w->base + m->flush[i].end);
	}
	if (report && !ok)
		KUNIT_FAIL(w->test,
			   "%s: %u TLB invalidations, the first of %lx-%lx, expected %u, the first of entries [%u, %u) from %lx on",
			   desc, nr, tlb->range[0].start, tlb->range[0].end,
			   m->flushes, m->flush[0].start, m->flush[0].end,
			   contpte_addr(f, w->base));
	return ok;
}

static bool walk_image_ok(struct walk *w, bool report, const char *desc)
{
	struct pgtable_kunit_table *table = w->table;
	unsigned int i;

	for (i = 0; i < WALK_WINDOW; i++)
		table->want[w->base + i] = walk_encode(w, &w->model.entry[i]);
	return report ? pgtable_kunit_table_check(table, "%s", desc) :
			pgtable_kunit_table_same(table);
}

static bool walk_same(struct walk *w, const struct walk_step *step, pte_t got,
		      pte_t want)
{
	pteval_t differ = walk_one_dirty(pte_val(got)) ^
			  walk_one_dirty(pte_val(want));

	/*
	 * Readers must return the contiguous bit. Other functions may return it
	 * or not, so ignore it.
	 */
	if (step->op != WALK_GET && step->op != WALK_GET_LOCKLESS)
		differ &= ~PTE_CONT;
	return !differ;
}

static const struct walk_ops contpte_walk_ops = {
	.encode = walk_encode,
	.image_ok = walk_image_ok,
	.same = walk_same,
	.flushes_ok = walk_flushes_ok,
	.hardware = walk_hardware,
	.leak = contpte_mkcont,
};

/**
 * contpte_walk_alloc() - make a walk over contiguous PTEs
 * @test: the test that is to own it
 *
 * Return: the walk; it has no seed yet.
 */
struct walk *contpte_walk_alloc(struct kunit *test)
{
	struct contpte_fixture *f = contpte_fixture_alloc(test);
	struct walk *w;

	w = walk_alloc(test, "contpte_walk", &contpte_walk_ops, f->table,
		       f->folio);
	w->data = f;
	w->model.has = WALK_HAS_NC | WALK_HAS_SPECIAL | WALK_HAS_MERGE;
	if (PGTABLE_KUNIT_PTE_UFFD)
		w->model.has |= WALK_HAS_UFFD;
	if (CONTPTE_FOLDS)
		w->model.has |= WALK_HAS_LEAK;

	/* Higher addresses are not stored as they are. */
	KUNIT_ASSERT_LT(test, PFN_PHYS(w->pfn), BIT_ULL(48));
	KUNIT_ASSERT_LT(test, PFN_PHYS(w->pair_pfn), BIT_ULL(48));
	walk_avoid_known(w);
	return w;
}
