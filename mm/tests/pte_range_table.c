// SPDX-License-Identifier: GPL-2.0
/*
 * Functions on ranges of entries: how to write and compare entries in terms
 * that every architecture has.
 *
 * Two present entries are the same if they agree in writable, young, dirty,
 * soft-dirty and all other bits. Entries that are not present have to be equal.
 */

#include "pte_range.h"

static pte_t range_encode(const struct pte_ctx *c, const struct pte_model_entry *e)
{
	unsigned long flags = VM_SHARED;
	pte_t pte;

	if (e->kind == MODEL_NONE)
		return pgtable_kunit_none();
	if (e->kind == MODEL_SWAP)
		return swp_entry_to_pte(swp_entry(0, e->page + 1));

	if (e->kind == MODEL_VALID)
		flags |= VM_READ | VM_WRITE;
	if (e->kind == MODEL_VALID && e->exec)
		flags |= VM_EXEC;
	pte = pfn_pte(pte_ctx_pfn(c, e->page), vm_get_page_prot(flags));
	pte = pte_mkold(pte_mkclean(pte));
	if (!e->write)
		pte = pte_wrprotect(pte);
	if (e->uffd)
		pte = pgtable_kunit_mkuffd(pte);
	if (e->special)
		pte = pte_mkspecial(pte);
	if (e->young)
		pte = pte_mkyoung(pte);
	if (e->hw_dirty || e->sw_dirty)
		pte = pte_mkdirty(pte);
	return e->soft_dirty ? pte_mksoft_dirty(pte) : pte_clear_soft_dirty(pte);
}

/* The bits of an entry except those that are compared separately. */
static pte_t range_rest(pte_t pte)
{
	pte = pgtable_kunit_plain(pte_clear_soft_dirty(pte));
	return pte_mkold(pte_mkclean(pte_wrprotect(pte)));
}

static bool range_same_entry(pte_t got, pte_t want)
{
	if (!pte_present(got) || !pte_present(want))
		return pte_val(pgtable_kunit_plain(got)) ==
		       pte_val(pgtable_kunit_plain(want));
	return !pte_write(got) == !pte_write(want) &&
	       !pte_young(got) == !pte_young(want) &&
	       !pte_dirty(got) == !pte_dirty(want) &&
	       !pte_soft_dirty(got) == !pte_soft_dirty(want) &&
	       pte_same(range_rest(got), range_rest(want));
}

static bool range_same(struct pte_ctx *c, const struct pte_step *step, pte_t got,
		       pte_t want)
{
	return range_same_entry(got, want);
}

static bool range_image_ok(struct pte_ctx *c, bool report, const char *desc)
{
	struct pgtable_kunit_table *table = c->table;
	struct pgtable_kunit_pte_diff diff;
	unsigned int i;

	for (i = 0; i < MODEL_WINDOW; i++) {
		pte_t *ptep = table->pte + c->base + i, got = ptep_get(ptep);
		struct pte_model_entry e = pte_model_get(&c->model, i);
		pte_t want = range_encode(c, &e);

		table->want[c->base + i] = READ_ONCE(*ptep);
		if (range_same_entry(got, want))
			continue;
		if (report)
			KUNIT_FAIL(c->test,
				   "%s: entry %u is %016llx, expected %016llx%s",
				   desc, i, (u64)pte_val(got),
				   (u64)pte_val(want),
				   pgtable_kunit_pte_diff(&diff, got, want));
		return false;
	}
	return report ? pgtable_kunit_table_check(table, "%s", desc) :
			pgtable_kunit_table_same(table);
}

static void range_hardware(pte_t *ptep, unsigned int flags)
{
	pte_t pte = READ_ONCE(*ptep);

	if (flags & PTE_STEP_YOUNG)
		pte = pte_mkyoung(pte);
	if (flags & PTE_STEP_DIRTY)
		pte = pte_mkdirty(pte);
	WRITE_ONCE(*ptep, pte);
}

static const struct pte_format range_format = {
	.encode = range_encode,
	.image_ok = range_image_ok,
	.same = range_same,
	.hardware = range_hardware,
};

/* The state that entries can store on this architecture and CPU. */
static unsigned int range_has(void)
{
	pte_t pte = pte_wrprotect(pfn_pte(0, vm_get_page_prot(VM_READ)));
	unsigned int has = 0;

	if (pgtable_kunit_uffd(pgtable_kunit_mkuffd(pte)))
		has |= MODEL_HAS_UFFD;
	if (pte_special(pte_mkspecial(pte)))
		has |= MODEL_HAS_SPECIAL;
	if (pte_soft_dirty(pte_mksoft_dirty(pte)))
		has |= MODEL_HAS_SOFT_DIRTY;
	return has;
}

/**
 * pte_range_ctx_init() - prepare a table for functions on ranges
 * @c: the context; zeroed
 * @test: the test that owns it
 * @backend: the functions: the architecture's or the generic ones
 *
 * For the generic functions, addresses and page frames have different
 * alignments, so no block can be folded. This is necessary because these
 * functions unfold a contiguous block in some cases where the functions of
 * arm64 leave it folded.
 */
void pte_range_ctx_init(struct pte_ctx *c, struct kunit *test,
			const struct pte_backend *backend)
{
	pte_ctx_init(c, test, &range_format, ilog2(MODEL_FOLIO_PAGES) + 1);
	c->model.has = range_has();
	if (backend == &pte_range_generic_backend) {
		c->backend = backend;
		c->model.folds = false;
		c->shift = 1;
		c->pair_pfn = c->pfn + MODEL_FOLIO_PAGES;
	}
	pte_ctx_avoid_known(c);
}
