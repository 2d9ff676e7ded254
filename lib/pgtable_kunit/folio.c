// SPDX-License-Identifier: GPL-2.0
/*
 * Real folios, to which the entries of a table can point.
 */

#include <kunit/test-bug.h>
#include <linux/gfp.h>
#include <linux/slab.h>

#include "pgtable_kunit.h"

/*
 * Limits of the number of pieces to allocate until two folios are neighbours.
 * The limit is more memory than the system is likely to have free in single
 * pieces of this order, but no more pieces than the function can compare.
 */
#define PAIR_MEMORY	SZ_128M
#define PAIR_TRIES_MIN	32UL
#define PAIR_TRIES_MAX	1024UL

static void folio_free(void *data)
{
	struct kunit *test = kunit_get_current_test();
	struct folio *folio = data;

	pgtable_kunit_tables_reset();
	KUNIT_EXPECT_EQ_MSG(test, folio_ref_count(folio), 1,
			    "leak: a folio is still in use");
	KUNIT_EXPECT_FALSE_MSG(test, folio_mapped(folio),
			       "leak: a folio is still mapped");
	folio_put(folio);
}

/**
 * pgtable_kunit_folio_alloc() - get a folio
 * @test: the test that owns it
 * @order: its order; the folio is aligned to its size
 */
struct folio *pgtable_kunit_folio_alloc(struct kunit *test, unsigned int order)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, order);

	KUNIT_ASSERT_NOT_NULL_MSG(test, folio, "no folio of order %u", order);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, folio_free, folio));
	return folio;
}

/**
 * pgtable_kunit_folio_alloc_pair() - get two folios that are adjacent
 * @test: the test that owns them
 * @order: the order of each folio
 * @pair: the folios; @pair[1] begins with the page after the last page of
 *	@pair[0]
 *
 * @pair[0] is aligned to the size of both together. The page allocator splits
 * larger blocks in halves, so a few allocations in a row contain such a pair.
 */
void pgtable_kunit_folio_alloc_pair(struct kunit *test, unsigned int order,
				    struct folio *pair[2])
{
	unsigned long tries = clamp(PAIR_MEMORY / (PAGE_SIZE << order),
				    PAIR_TRIES_MIN, PAIR_TRIES_MAX);
	struct folio **tried;
	int i, j;

	tried = kunit_kcalloc(test, tries, sizeof(*tried), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tried);

	for (i = 0; i < tries; i++) {
		tried[i] = pgtable_kunit_folio_alloc(test, order);
		for (j = 0; j < i; j++) {
			unsigned long pfn = folio_pfn(tried[i]);

			if ((pfn ^ folio_pfn(tried[j])) != 1UL << order)
				continue;
			pair[0] = tried[pfn & (1UL << order) ? j : i];
			pair[1] = tried[pfn & (1UL << order) ? i : j];
			return;
		}
	}
	KUNIT_FAIL_AND_ABORT(test, "no two of %lu folios of order %u are adjacent",
			     tries, order);
}
