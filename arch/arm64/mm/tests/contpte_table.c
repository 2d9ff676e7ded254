// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: functions that write and compare entries of the model.
 *
 * This file turns entries of the model into bits by its own masks, not by
 * functions of the kernel. The table, the value returned and the TLB
 * invalidations are compared bit by bit.
 */

#include "contpte.h"

/* The bits of one entry. */
static pte_t contpte_encode(const struct pte_ctx *c, const struct pte_model_entry *e)
{
	pteval_t val;

	if (e->kind == MODEL_NONE)
		return __pte(0);
	/*
	 * Offsets are small, because bit 52 does not always survive (known
	 * issue 1). The type has all its bits set. One of these bits is the
	 * accessed bit in present entries.
	 */
	if (e->kind == MODEL_SWAP)
		return __pte((BIT(MAX_SWAPFILES_SHIFT) - 1) << __SWP_TYPE_SHIFT |
			     (e->page + 1UL) << __SWP_OFFSET_SHIFT);

	val = PFN_PHYS(pte_ctx_pfn(c, e->page));
	val |= PTE_MAYBE_SHARED | PTE_PXN | PTE_NG;
	val |= PTE_TYPE_PAGE & ~PTE_VALID;
	val |= PTE_ATTRINDX(e->nc ? MT_NORMAL_NC : MT_NORMAL);
	if (e->kind == MODEL_VALID)
		val |= PTE_VALID | PTE_USER;
	else
		val |= PTE_PRESENT_INVALID;
	if (e->kind != MODEL_VALID || !e->exec)
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

/* An entry may be dirty in two forms: turn them into one form. */
static pteval_t contpte_one_dirty(pteval_t val)
{
	bool dirty = val & PTE_DIRTY ||
		     (val & PTE_WRITE && !(val & PTE_RDONLY));

	if (!(val & (PTE_VALID | PTE_PRESENT_INVALID)))
		return val;
	val = (val & ~PTE_DIRTY) | PTE_RDONLY;
	return dirty ? val | PTE_DIRTY : val;
}

/*
 * Change an entry like an access, or like a table walk of another unit.
 */
static void contpte_hardware(pte_t *ptep, unsigned int flags)
{
	pteval_t val = pte_val(READ_ONCE(*ptep));

	if (flags & PTE_STEP_YOUNG)
		val |= PTE_AF;
	if (flags & PTE_STEP_DIRTY)
		val &= ~PTE_RDONLY;
	WRITE_ONCE(*ptep, __pte(val));
}

static bool contpte_image_ok(struct pte_ctx *c, bool report, const char *desc)
{
	struct pgtable_kunit_table *table = c->table;
	const struct pte_model *m = &c->model;
	unsigned int i;

	/* A step changes only the blocks of its range. */
	for (i = ALIGN_DOWN(m->start, MODEL_BLOCK); i < ALIGN(m->end, MODEL_BLOCK); i++)
		table->want[c->base + i] = contpte_encode(c, &m->entry[i]);
	return report ? pgtable_kunit_table_check(table, "%s", desc) :
			pgtable_kunit_table_same(table);
}

static bool contpte_same(struct pte_ctx *c, const struct pte_step *step,
			 pte_t got, pte_t want)
{
	pteval_t differ = contpte_one_dirty(pte_val(got)) ^
			  contpte_one_dirty(pte_val(want));

	/*
	 * Readers must return the contiguous bit. Other functions may return it
	 * or not, so ignore it.
	 */
	if (step->op != PTE_OP_GET && step->op != PTE_OP_GET_LOCKLESS)
		differ &= ~PTE_CONT;
	return !differ;
}

static const struct pte_format contpte_format = {
	.encode = contpte_encode,
	.image_ok = contpte_image_ok,
	.same = contpte_same,
	.hardware = contpte_hardware,
	.leak = contpte_mkcont,
};

/**
 * contpte_ctx_init() - prepare a table for contiguous PTEs
 * @c: the context; zeroed
 * @test: the test that owns it
 */
void contpte_ctx_init(struct pte_ctx *c, struct kunit *test)
{
	pte_ctx_init(c, test, &contpte_format, ilog2(MODEL_FOLIO_PAGES));
	c->tlb = pgtable_kunit_tlb_record(test, c->table->mm);
	c->model.has = MODEL_HAS_NC | MODEL_HAS_SPECIAL | MODEL_HAS_MERGE;
	if (PGTABLE_KUNIT_PTE_UFFD)
		c->model.has |= MODEL_HAS_UFFD;
	if (CONTPTE_FOLDS)
		c->model.has |= MODEL_HAS_LEAK;

	/* Higher addresses are not stored unchanged. */
	KUNIT_ASSERT_LT(test, PFN_PHYS(c->pfn), BIT_ULL(48));
	KUNIT_ASSERT_LT(test, PFN_PHYS(c->pair_pfn), BIT_ULL(48));
}
