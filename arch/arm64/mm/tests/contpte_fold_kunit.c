// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: folding and unfolding by single entries.
 *
 * When set_pte_at() sets the last entry of a block, arm64 checks whether it can
 * fold the block. All entries must be valid and map one folio. The PFNs must be
 * consecutive and aligned like the addresses. All bits except accessed and
 * dirty must be the same. If a block is folded although one condition does not
 * hold, a process gets access to pages that are not its own.
 *
 * Each case writes real entries with set_pte_at() and compares table and TLB
 * invalidations with a model after each call. Not covered: ranges (contpte).
 *
 * Begin with this suite. The next suite to read is contpte.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"
#include "contpte_odd.h"

static void fold_set(struct pte_ctx *f, int idx, pte_t pte)
{
	set_pte_at(f->table->mm, contpte_addr(f, idx), contpte_ptep(f, idx),
		   pte);
	f->table->want[idx] = pte;
}

/*
 * Entries are set in ascending order. The last entry of each block folds the
 * block, with one invalidation, and no earlier entry does. If one entry has the
 * accessed or the dirty bit, all entries get this bit. Otherwise no entry gets
 * it. The function gets the last entry, but every entry keeps its page, even
 * the first. The blocks are the first, an inner and the last block of a table
 * and of a folio. Nothing else of the folio is mapped.
 */
static void set_pte_at_ascending(struct kunit *test)
{
	const int last = CONTPTE_TABLE_BLOCKS - 1;
	const struct {
		int block;		/* of the table */
		int folio_block;
	} places[] = {
		{ 0, 0 }, { 1, 2 }, { last, 0 },
		{ last, 2 * CONTPTE_BLOCKS - 1 },
	};
	const unsigned int at[] = {
		0, 1, CONT_PTES / 2, CONT_PTES - 1, CONTPTE_NOWHERE,
	};
	struct pte_ctx *f = test->priv;
	unsigned int p, y, d, i;

	for (p = 0; p < ARRAY_SIZE(places); p++) {
		int base = min(places[p].block, last + 1 - CONTPTE_BLOCKS);
		int idx = (places[p].block - base) * CONT_PTES;

		f->base = base * CONT_PTES;
		for (y = 0; y < ARRAY_SIZE(at); y++) {
			for (d = 0; d < ARRAY_SIZE(at); d++) {
				pte_ctx_reset(f);
				for (i = 0; i < CONT_PTES; i++) {
					struct pte_model_entry e;

					e = contpte_entry(i + places[p].folio_block *
							  CONT_PTES);
					e.young = i == at[y];
					e.hw_dirty = i == at[d];
					if (contpte_set(f, idx + i, 1, e, 0))
						continue;
					kunit_err(test, "block %d, young %u, dirty %u\n",
						  places[p].block, at[y], at[d]);
					return;
				}
			}
		}
	}
}

/*
 * Entries are set in descending order, so the last call does not set the last
 * entry. The block stays unfolded, which is correct but not optimal. If the
 * last entry is set again, the block is folded. If it is set once more, the
 * block is unfolded and folded.
 */
static void set_pte_at_descending(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	int i;

	for (i = CONT_PTES - 1; i >= 0; i--)
		contpte_set(f, i, 1, contpte_entry(i), 0);
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, 0);
	contpte_set(f, CONT_PTES - 1, 1, contpte_entry(CONT_PTES - 1), 0);
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, CONTPTE_FOLDS);
	contpte_set(f, CONT_PTES - 1, 1, contpte_entry(CONT_PTES - 1), 0);
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, 2 * CONTPTE_FOLDS);
	KUNIT_EXPECT_EQ(test, f->model.nr_unfolds, CONTPTE_FOLDS);
}

/*
 * If addresses and PFNs are not both aligned to a block, the block is never
 * folded, even if its last entry is set many times. The case sets two blocks of
 * entries, so that a whole block of aligned PFNs lies across a block of
 * addresses:
 *
 *	entries	|0 1 2 3|4 5 6 7|	PFN off by 1
 *	PFNs	|1 2 3|4 5 6 7|8|
 */
static void set_pte_at_misaligned(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int off, i;

	for (off = 1; off < CONT_PTES; off++) {
		pte_ctx_reset(f);
		for (i = 0; i < 2 * CONT_PTES; i++) {
			if (!contpte_set(f, i, 1, contpte_entry(i + off), 0))
				return;
		}
	}
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, 0);
}

KUNIT_ARRAY_PARAM_DESC(contpte_odd, contpte_odds, desc);

/*
 * An entry that differs from the others prevents folding, at each place, and
 * nothing in the block changes. The odd entry is in the table before the last
 * entry is set, or is the last entry itself.
 */
static void set_pte_at_one_entry_odd(struct kunit *test)
{
	const struct contpte_odd *odd = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int at, i;

	for (at = 0; at < CONT_PTES; at++) {
		pte_ctx_reset(f);
		for (i = 0; i < CONT_PTES; i++) {
			pte_t pte = contpte_odd_pte(f, odd, i, i == at);

			if (i < CONT_PTES - 1)
				pgtable_kunit_table_set(f->table, i, pte);
			else
				fold_set(f, i, pte);
		}
		if (!contpte_check(f, "%s at %u", odd->desc, at))
			return;
	}
}

/*
 * All entries have the same unusual bits. If they are valid and not special,
 * they are folded and keep the bits. PROT_NONE entries are present, but not
 * valid, so they are never folded. In special mappings the kernel does not look
 * up a folio, so it does not fold their entries either.
 */
static void set_pte_at_all_odd(struct kunit *test)
{
	const struct contpte_odd *odd = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int i;

	for (i = 0; i < CONT_PTES; i++)
		fold_set(f, i, contpte_odd_pte(f, odd, i, true));
	if (odd->folds)
		contpte_want_folded(f, 0);
	contpte_check(f, "all %s", odd->desc);
}

/*
 * The caller passes entries with a contiguous bit, which leaked from a getter.
 * This bit is not written, and the last entry folds the block as usual.
 */
static void set_pte_at_leaked_bit(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i;

	contpte_skip_unless_folds(test);
	for (i = 0; i < CONT_PTES; i++) {
		if (!contpte_set(f, i, 1, contpte_entry(i), PTE_STEP_LEAK))
			return;
	}
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, 1);
}

/*
 * A block at a low address maps a later part of a folio, so the folio would
 * begin below address 0, and the kernel's subtraction wraps. The kernel may
 * fold such a block, or leave it, but must never fold only a part of it.
 */
static void set_pte_at_low_address(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i;

	f->table->addr = 0;
	for (i = 0; i < CONT_PTES; i++)
		fold_set(f, i, contpte_pte(f, CONTPTE_WINDOW + i));
	if (pte_cont(pgtable_kunit_raw_get(contpte_ptep(f, 0))))
		contpte_want_folded(f, 0);
	contpte_check(f, "block %d of a folio at address 0", CONTPTE_BLOCKS);
}

static void fold_free_pages(void *page)
{
	unsigned int i;

	for (i = 0; i < CONT_PTES; i++)
		__free_page((struct page *)page + i);
}

/*
 * Single pages that happen to be consecutive are not folded: each has its own
 * accessed and dirty bits. They fill one aligned block. The only reason not to
 * fold this block is that the pages are not one folio.
 */
static void set_pte_at_single_pages(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_KERNEL, CONTPTE_ORDER);
	struct pte_ctx *f = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	split_page(page, CONTPTE_ORDER);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, fold_free_pages, page));
	f->folio = page_folio(page);
	KUNIT_ASSERT_FALSE(test, folio_test_large(f->folio));
	for (i = 0; i < CONT_PTES; i++)
		fold_set(f, i, contpte_pte(f, i));
	contpte_check(f, "single pages");
	pgtable_kunit_table_reset(f->table);
}

/*
 * Consecutive pages of two folios are not folded, because the kernel tracks
 * accessed and dirty per folio. Folios of half a block are the largest folios
 * that cannot be folded.
 */
static void set_pte_at_two_folios(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i;

	for (i = 0; i < CONT_PTES; i++)
		contpte_set(f, i, 1, contpte_entry(MODEL_FOLIO_PAGES + i), 0);
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, 0);
}

/*
 * A new entry is set in a folded block. The block is unfolded, with one
 * invalidation. The new entry is as given, and the other entries keep their
 * pages and get the block's accessed and dirty bits. The neighbouring blocks do
 * not change. The new entry maps another page, so the block is not folded
 * again.
 */
static void set_pte_at_into_folded(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i, mid = CONT_PTES;

	for (i = 0; i < CONT_PTES; i++) {
		pte_ctx_reset(f);
		contpte_fill(f, mid - CONT_PTES, 0, true, 0, CONTPTE_NOWHERE);
		contpte_fill(f, mid, CONT_PTES, true, CONT_PTES / 2,
			     CONT_PTES - 1);
		contpte_fill(f, mid + CONT_PTES, 2 * CONT_PTES, true, 0, 0);

		if (!contpte_set(f, mid + i, 1, contpte_entry(CONTPTE_WINDOW + i), 0))
			return;
	}
	KUNIT_EXPECT_EQ(test, f->model.nr_unfolds, CONT_PTES * CONTPTE_FOLDS);
}

/*
 * After a block is folded and unfolded a thousand times, it is as before: each
 * entry has its PFN, and no bit was added.
 */
static void set_pte_at_again_and_again(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i, last = CONT_PTES - 1;

	contpte_fill(f, 0, 0, true, CONTPTE_NOWHERE, CONTPTE_NOWHERE);
	for (i = 0; i < 1000; i++) {
		if (!contpte_set(f, 0, 1, contpte_entry(0), 0) ||
		    !contpte_set(f, last, 1, contpte_entry(last), 0))
			return;
	}
	KUNIT_EXPECT_EQ(test, f->model.nr_folds, 1000 * CONTPTE_FOLDS);
}

static struct kunit_case contpte_fold_cases[] = {
	KUNIT_CASE(set_pte_at_ascending),
	KUNIT_CASE(set_pte_at_descending),
	KUNIT_CASE(set_pte_at_misaligned),
	KUNIT_CASE_PARAM(set_pte_at_one_entry_odd, contpte_odd_gen_params),
	KUNIT_CASE_PARAM(set_pte_at_all_odd, contpte_odd_gen_params),
	KUNIT_CASE(set_pte_at_leaked_bit),
	KUNIT_CASE(set_pte_at_low_address),
	KUNIT_CASE(set_pte_at_single_pages),
	KUNIT_CASE(set_pte_at_two_folios),
	KUNIT_CASE(set_pte_at_into_folded),
	KUNIT_CASE(set_pte_at_again_and_again),
	{}
};

static struct kunit_suite contpte_fold_suite = {
	.name = "contpte_fold",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_fold_cases,
};

kunit_test_suite(contpte_fold_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: folding and unfolding");
MODULE_LICENSE("GPL");
