// SPDX-License-Identifier: GPL-2.0
/*
 * folio_pte_batch(): how many consecutive entries map consecutive pages of a
 * folio.
 *
 * fork, zap, madvise and others handle all these entries with one call. If a
 * batch is too long, its caller frees or copies pages of another owner. Each
 * case writes real entries for real folios into a synthetic page table. It asks
 * for a batch with every combination of flags, and checks the length of the
 * batch against the entries. Each condition that ends a batch occurs at each
 * position in folios of each order. Nothing in the table may change.
 *
 * compat.h hides the two generations of the interface.
 * folio_pte_batch_bits_kunit.c tests bits that differ, and the report on them.
 * Not covered: the callers.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests folio_pte_batch
 */

#include "folio_pte_batch.h"

/* Write entries with the public function, which folds blocks where it can. */
static void batch_map_folded(struct pgtable_kunit_table *table, int idx,
			     unsigned long pfn, int nr)
{
	int i;

	for (i = idx; i < idx + nr; i++) {
		if (i >= PTRS_PER_PTE) {
			table->guard_used = true;
			table->pte[i] = pgtable_kunit_none();
		}
		set_pte_at(table->mm, pgtable_kunit_table_addr(table, i),
			   table->pte + i, batch_pte(pfn + i - idx, true));
	}
	memcpy(table->want + idx, table->pte + idx, nr * sizeof(pte_t));
}

/* Are both entries part of contiguous blocks, or neither? */
static bool batch_alike(struct pgtable_kunit_table *table, int a, int b)
{
	return pgtable_kunit_folded(ptep_get(table->pte + a)) ==
	       pgtable_kunit_folded(ptep_get(table->pte + b));
}

/*
 * Expect a batch of @want entries from entry @idx on, with any flags. A long
 * batch is tried with no flag and with all flags, since nothing else depends on
 * the length.
 */
static bool batch_expect(struct kunit *test, struct folio *folio, int idx,
			 unsigned int max_nr, unsigned int want,
			 const char *what)
{
	unsigned int step = want > BATCH_LONG ? PGTABLE_KUNIT_BATCH_FLAGS - 1 : 1;
	struct pgtable_kunit_table *table = test->priv;
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	unsigned int nr, flags;

	nr = pgtable_kunit_folio_pte_batch_nr(folio, addr, table->pte + idx,
					      max_nr);
	KUNIT_EXPECT_EQ_MSG(test, nr, want,
			    "%s: order %u, from entry %d, at most %u",
			    what, folio_order(folio), idx, max_nr);
	pgtable_kunit_tried++;
	for (flags = 0; flags < PGTABLE_KUNIT_BATCH_FLAGS && nr == want;
	     flags += step) {
		nr = pgtable_kunit_folio_pte_batch(folio, addr,
						   table->pte + idx, max_nr,
						   flags).nr;
		KUNIT_EXPECT_EQ_MSG(test, nr, want,
				    "%s: order %u, from entry %d, at most %u, flags %#x",
				    what, folio_order(folio), idx, max_nr,
				    flags);
		pgtable_kunit_tried++;
	}
	return nr == want;
}

/*
 * A whole folio is mapped, at the start and at the end of the table. From each
 * of its pages there is one batch, to its last page or to the caller's limit.
 * On arm64 the folio consists of contiguous blocks, and the hint of a block is
 * the number of its entries. folio_pte_batch() has to cut the hint at the end
 * of the batch, to count from the middle of a block, and to add up the hints of
 * several blocks.
 */
static void folio_pte_batch_whole_folio(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, i, j;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;
	const unsigned int first[] = { 0, PTRS_PER_PTE - n };

	for (j = 0; j < ARRAY_SIZE(first); j++) {
		pgtable_kunit_table_reset(table);
		batch_map_folded(table, first[j], folio_pfn(folio), n);

		for (i = 0; i < n; i = batch_next(order, i)) {
			const unsigned int max_nr[] = {
				1, 2, 3, n / 2, n - 1, n, n + 1,
				n - i - 1, n - i, n - i + 1,
				PTRS_PER_PTE - first[j] - i,
			};
			unsigned int k;

			for (k = 0; k < ARRAY_SIZE(max_nr); k++) {
				if (!max_nr[k])
					continue;
				if (!batch_expect(test, folio, first[j] + i,
						  max_nr[k],
						  min(max_nr[k], n - i),
						  "whole folio"))
					return;
			}
		}
		pgtable_kunit_table_check(table, "whole folio");
	}
}

/*
 * The caller's limit ends a batch before each page of the folio. The batch
 * begins at the first page, halfway, and at the last page before the limit. The
 * folio is mapped by single entries, or by contiguous blocks. Then the limit
 * cuts off any number of entries of a block.
 */
static void folio_pte_batch_limit(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, folded, end, i;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;

	for (folded = 0; folded <= 1; folded++) {
		pgtable_kunit_table_reset(table);
		if (folded)
			batch_map_folded(table, 0, folio_pfn(folio), n);
		else
			batch_map(table, 0, folio_pfn(folio), n);

		for (end = 1; end <= n; end = batch_next(order, end)) {
			const unsigned int from[] = { 0, end / 2, end - 1 };

			for (i = 0; i < ARRAY_SIZE(from); i++) {
				if (!batch_expect(test, folio, from[i],
						  end - from[i], end - from[i],
						  "limit"))
					return;
			}
		}
		pgtable_kunit_table_check(table, "limit");
	}
}

/*
 * One half of a folio is folded and the other half is not. The contiguous bit
 * counts like any other bit, so a batch ends where it changes. Such a batch is
 * shorter than necessary, but correct. In a kernel that never folds, the hint
 * is 1, and the batch is the whole folio.
 */
static void folio_pte_batch_half_folded(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, i, last;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;

	for (last = 0; last <= 1; last++) {
		unsigned int folded = last ? n / 2 : 0, plain = n / 2 - folded;
		bool ends;

		pgtable_kunit_table_reset(table);
		batch_map(table, plain, folio_pfn(folio) + plain, n / 2);
		batch_map_folded(table, folded, folio_pfn(folio) + folded,
				 n / 2);
		memcpy(table->want, table->pte, n * sizeof(pte_t));

		/*
		 * The kernel can only fold all of a small folio, or no part of
		 * it.
		 */
		ends = !batch_alike(table, 0, n / 2);
		for (i = 0; i < n; i = batch_next(order, i)) {
			unsigned int end = ends && i < n / 2 ? n / 2 : n;

			if (!batch_expect(test, folio, i, n, end - i,
					  last ? "last half folded" :
						 "first half folded"))
				return;
		}
		pgtable_kunit_table_check(table, "half folded");
	}
}

/*
 * A hole in a folded folio makes its block lose the contiguous bit. A batch
 * from an earlier block ends where this block begins. A batch that begins in
 * this block ends at the hole: the hint of a block never counts beyond the end
 * of the block. In a kernel that never folds, every batch ends at the hole.
 *
 *	entries	|c c c c|. . _ .|c c c c|	c: contiguous, _: hole
 *	from 1	   3
 *	from 4		 2
 */
static void folio_pte_batch_hole_in_folded(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, hole, end, i;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;

	for (hole = 1; hole < n; hole = batch_next(order, hole)) {
		const unsigned int from[] = { 0, hole / 2, hole - 1 };

		pgtable_kunit_table_reset(table);
		batch_map_folded(table, 0, folio_pfn(folio), n);
		ptep_get_and_clear(table->mm,
				   pgtable_kunit_table_addr(table, hole),
				   table->pte + hole);
		memcpy(table->want, table->pte, n * sizeof(pte_t));

		for (i = 0; i < ARRAY_SIZE(from); i++) {
			end = from[i] + 1;
			while (end < hole && batch_alike(table, from[i], end))
				end++;
			if (!batch_expect(test, folio, from[i], n - from[i],
					  end - from[i], "hole in folded"))
				return;
		}
		if (!pgtable_kunit_table_check(table, "hole in folded"))
			return;
	}
}

/*
 * The batch ends with the folio, even if the next entry maps the physically
 * next page with the same bits. Earlier kernels found this end one entry too
 * late, because they compared PFNs. In another kernel a batch never ended if
 * the entry after the folio could not be computed. On arm64 the last entries of
 * the folio and the first entries after it are in contiguous blocks too.
 *
 *	entries |0 1 2 3|4 5 6 7|
 *	PFNs	|p . . .|p+4 . .|
 *	folios	|   A	|   B	|	from 1: 3, not 7
 */
static void folio_pte_batch_next_folio(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, folded, i;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *pair[2];

	pgtable_kunit_folio_alloc_pair(test, order, pair);

	for (folded = 0; folded <= 1; folded++) {
		pgtable_kunit_table_reset(table);
		if (folded)
			batch_map_folded(table, 0, folio_pfn(pair[0]), 2 * n);
		else
			batch_map(table, 0, folio_pfn(pair[0]), 2 * n);

		for (i = 0; i < 2 * n; i = batch_next(order, i)) {
			const char *what = folded ? "next folio, folded" :
						    "next folio";

			if (!batch_expect(test, pair[i / n], i, 2 * n - i,
					  n - i % n, what) ||
			    !batch_expect(test, pair[i / n], i, n - i % n + 1,
					  n - i % n, what))
				return;
		}
		pgtable_kunit_table_check(table, "next folio");
	}
}

/*
 * Entries that do not continue a batch. @next is an entry that would continue
 * the batch. @behind is the first PFN after the folio.
 */
static pte_t gap_none(pte_t next, unsigned long behind)
{
	return pgtable_kunit_none();
}

static pte_t gap_swap(pte_t next, unsigned long behind)
{
	return swp_entry_to_pte(swp_entry(0, pte_pfn(next)));
}

static pte_t gap_marker(pte_t next, unsigned long behind)
{
	return make_pte_marker(PTE_MARKER_POISONED);
}

static pte_t gap_skipped_page(pte_t next, unsigned long behind)
{
	return batch_pte(pte_pfn(next) + 1, true);
}

static pte_t gap_same_page_twice(pte_t next, unsigned long behind)
{
	return batch_pte(pte_pfn(next) - 1, true);
}

static pte_t gap_next_folio(pte_t next, unsigned long behind)
{
	return batch_pte(behind, true);
}

#ifdef CONFIG_MIGRATION
static pte_t gap_migration(pte_t next, unsigned long behind)
{
	return swp_entry_to_pte(make_readable_migration_entry(pte_pfn(next)));
}
#endif

static const struct batch_gap {
	const char *desc;
	pte_t (*make)(pte_t next, unsigned long behind);
} batch_gaps[] = {
	{ "none", gap_none },
	{ "swap entry", gap_swap },
	{ "marker", gap_marker },
	{ "page skipped", gap_skipped_page },
	{ "same page twice", gap_same_page_twice },
	{ "page after the folio", gap_next_folio },
#ifdef CONFIG_MIGRATION
	{ "migration entry", gap_migration },
#endif
};

/*
 * A batch ends before an entry that is not present or maps a wrong page. After
 * this gap, normal entries follow for the rest of the folio and for the next
 * folio. The gap is at each index in turn, also right after the folio, where
 * the batch ends anyway. The batch begins at the first entry, halfway, and at
 * the last entry before the gap.
 */
static void folio_pte_batch_gap(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, g, gap, i;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *pair[2];

	pgtable_kunit_folio_alloc_pair(test, order, pair);
	batch_map(table, 0, folio_pfn(pair[0]), 2 * n);

	for (g = 0; g < ARRAY_SIZE(batch_gaps); g++) {
		for (gap = 1; gap <= n; gap = batch_next(order, gap)) {
			const unsigned int from[] = { 0, gap / 2, gap - 1 };
			pte_t next = table->pte[gap];

			batch_replace(table, gap,
				      batch_gaps[g].make(next, folio_pfn(pair[1])));
			for (i = 0; i < ARRAY_SIZE(from); i++) {
				if (!batch_expect(test, pair[0], from[i],
						  2 * n - from[i],
						  gap - from[i],
						  batch_gaps[g].desc))
					return;
			}
			if (!pgtable_kunit_table_check(table, "%s at %u",
						       batch_gaps[g].desc, gap))
				return;
			batch_replace(table, gap, next);
		}
	}
}

/*
 * A batch does not go past the end of the page table, which is the caller's
 * limit. The entry after the last one is a trap: it maps the next page of the
 * folio.
 */
static void folio_pte_batch_table_end(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, i;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;

	batch_map(table, PTRS_PER_PTE - n / 2, folio_pfn(folio), n);

	for (i = 0; i < n / 2; i = batch_next(order, i)) {
		if (!batch_expect(test, folio, PTRS_PER_PTE - n / 2 + i,
				  n / 2 - i, n / 2 - i, "end of the table"))
			return;
	}
	pgtable_kunit_table_check(table, "end of the table");
}

/* Skip the calls if the kernel cannot count warnings. */
static void batch_misused(struct folio *folio, pte_t *ptep, pte_t pte,
			  unsigned int max_nr)
{
#ifdef FPB_RESPECT_DIRTY
	folio_pte_batch(folio, ptep, pte, max_nr);
#endif
}

/* A call that breaks the contract in one way. */
struct batch_call {
	struct pgtable_kunit_table *table;
	struct folio *pair[2];
	struct folio *small;
};

static void misuse_none(void *data)
{
	struct batch_call *call = data;

	batch_misused(call->pair[0], call->table->pte,
		      batch_pte(folio_pfn(call->pair[0]), true), 1);
}

static void misuse_no_entries(void *data)
{
	struct batch_call *call = data;

	batch_misused(call->pair[0], call->table->pte,
		      batch_pte(folio_pfn(call->pair[0]), true), 0);
}

static void misuse_small_folio(void *data)
{
	struct batch_call *call = data;

	batch_misused(call->small, call->table->pte,
		      batch_pte(folio_pfn(call->small), true), 1);
}

static void misuse_other_folio(void *data)
{
	struct batch_call *call = data;

	batch_misused(call->pair[1], call->table->pte,
		      batch_pte(folio_pfn(call->pair[0]), true), 1);
}

#ifdef CONFIG_ARM64
/*
 * Only on arm64: other architectures cannot compute the page of an entry that
 * is not present.
 */
static void misuse_not_present(void *data)
{
	struct batch_call *call = data;
	pte_t pte = batch_pte(folio_pfn(call->pair[0]), true);

	/*
	 * With only the first bit cleared, it would be a PROT_NONE entry.
	 */
	pte = clear_pte_bit(pte, __pgprot(PTE_VALID | PTE_PRESENT_INVALID));
	batch_misused(call->pair[0], call->table->pte, pte, 1);
}
#endif

#ifdef FPB_RESPECT_DIRTY
/* Pass the first entry itself instead of a copy. */
static void misuse_no_copy(void *data)
{
	struct batch_call *call = data;
	struct mm_struct *mm = call->table->mm;
	pte_t *pte = pte_alloc_one_kernel(mm);

	if (!pte)
		return;
	*pte = batch_pte(folio_pfn(call->pair[0]), true);
	folio_pte_batch_flags(call->pair[0], NULL, pte, pte, 1, 0);
	*pte = __pte(0);
	pte_free_kernel(mm, pte);
}
#endif

static const struct batch_misuse {
	const char *desc;
	void (*call)(void *data);
	int warnings;
} batch_misuses[] = {
	{ "none", misuse_none, 0 },
	{ "at most 0 entries", misuse_no_entries, 1 },
	{ "small folio", misuse_small_folio, 1 },
	{ "entry of another folio", misuse_other_folio, 1 },
#ifdef CONFIG_ARM64
	{ "entry not present", misuse_not_present, 1 },
#endif
#ifdef FPB_RESPECT_DIRTY
	{ "no copy of the entry", misuse_no_copy, 1 },
#endif
};

KUNIT_ARRAY_PARAM_DESC(batch_misuse, batch_misuses, desc);

/*
 * A call that breaks a rule of the contract gives one warning, and a correct
 * call gives none. The table does not change. The rules are: the entry is
 * present and maps this folio; the folio is large; the limit is at least one
 * entry; the caller passes a copy of the entry, not a pointer into the table.
 * The inline function checks the last rule. The function in mm/util.c checks
 * all others.
 */
static void folio_pte_batch_misuse(struct kunit *test)
{
	const struct batch_misuse *misuse = test->param_value;
	struct batch_call call = { .table = test->priv };
	int warnings;

	if (!IS_ENABLED(CONFIG_DEBUG_VM))
		kunit_skip(test, "no CONFIG_DEBUG_VM: nothing is checked");
	pgtable_kunit_folio_alloc_pair(test, 2, call.pair);
	call.small = pgtable_kunit_folio_alloc(test, 0);
	batch_map(call.table, 0, folio_pfn(call.pair[0]), 4);
	warnings = pgtable_kunit_count_warnings(test, misuse->call, &call);
	if (warnings < 0)
		kunit_skip(test, "no kunit_warning_suppress()");
	pgtable_kunit_tried++;
	KUNIT_EXPECT_EQ(test, warnings, misuse->warnings);
	pgtable_kunit_table_check(call.table, "%s", misuse->desc);
}

static struct kunit_case folio_pte_batch_cases[] = {
	KUNIT_CASE_PARAM(folio_pte_batch_whole_folio, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_limit, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_half_folded, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_hole_in_folded, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_next_folio, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_gap, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_table_end, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_misuse, batch_misuse_gen_params),
	{}
};

static struct kunit_suite folio_pte_batch_suite = {
	.name = "folio_pte_batch",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_table_init,
	.exit = pgtable_kunit_exit,
	.test_cases = folio_pte_batch_cases,
};

kunit_test_suite(folio_pte_batch_suite);

MODULE_DESCRIPTION("KUnit tests for the length of folio_pte_batch()");
MODULE_LICENSE("GPL");
