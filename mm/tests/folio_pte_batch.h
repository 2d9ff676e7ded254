/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the suites of folio_pte_batch(): the orders of folios, the
 * pages to try, and the entries that map them.
 */
#ifndef _MM_TESTS_FOLIO_PTE_BATCH_H
#define _MM_TESTS_FOLIO_PTE_BATCH_H

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <asm/pgalloc.h>

#include "../internal.h"
#include "pgtable_kunit.h"

/*
 * Orders from the smallest large folio to a folio that fills a table of 512
 * entries. If a folio fills the table, the guard after the table maps the next
 * folio. On arm64 with 4K pages order 4 is one contiguous block. Some tables
 * are smaller.
 */
#define BATCH_ORDER_MAX		9
#define BATCH_PAGES_MAX		BIT(BATCH_ORDER_MAX)

static const struct batch_order {
	unsigned int order;
	const char *desc;
} batch_orders[] = {
	{ 1, "order 1" },
	{ 2, "order 2" },
	{ 3, "order 3" },
	{ 4, "order 4" },
	{ 5, "order 5" },
	{ 6, "order 6" },
	{ 7, "order 7" },
	{ 8, "order 8" },
	{ BATCH_ORDER_MAX, "order 9" },
};

KUNIT_ARRAY_PARAM_DESC(batch_order, batch_orders, desc);

/* Longer batches are tried with only a few combinations of flags. */
#define BATCH_LONG		32U

/* Two folios must fit into a block, and one folio into the table. */
static inline bool batch_order_fits(unsigned int order)
{
	return order < MAX_PAGE_ORDER && BIT(order) <= PTRS_PER_PTE;
}

/*
 * The order in the parameter. Skips the test if folios of this order do not
 * fit.
 */
static inline unsigned int batch_order(struct kunit *test)
{
	const struct batch_order *param = test->param_value;

	if (!batch_order_fits(param->order))
		kunit_skip(test, "no two neighbours of order %u in one table",
			   param->order);
	return param->order;
}

/*
 * The next position to try after @pos. In a small folio this is every position.
 * In other folios it is both ends, and each eighth, where contiguous blocks
 * end.
 */
static inline unsigned int batch_next(unsigned int order, unsigned int pos)
{
	unsigned int eighth = order > 6 ? BIT(order - 3) : 1;

	do {
		pos++;
	} while ((pos + 1) % eighth > 2 % eighth);
	return pos;
}

/* Old and clean. */
static inline pte_t batch_pte_prot(unsigned long pfn, unsigned long vm_flags)
{
	pte_t pte = pfn_pte(pfn, vm_get_page_prot(vm_flags | VM_SHARED));

	return pte_mkold(pte_mkclean(pte_clear_soft_dirty(pte)));
}

static inline pte_t batch_pte(unsigned long pfn, bool write)
{
	return batch_pte_prot(pfn, write ? VM_READ | VM_WRITE : VM_READ);
}

/* Write entries for @nr pages from @pfn on, exactly as given. */
static inline void batch_map(struct pgtable_kunit_table *table, int idx,
			     unsigned long pfn, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		pgtable_kunit_table_set(table, idx + i, batch_pte(pfn + i, true));
}

/* Replace an entry. */
static inline void batch_replace(struct pgtable_kunit_table *table, int idx,
				 pte_t pte)
{
	pgtable_kunit_raw_clear(table->mm, pgtable_kunit_table_addr(table, idx),
				table->pte + idx);
	pgtable_kunit_table_set(table, idx, pte);
}

#endif /* _MM_TESTS_FOLIO_PTE_BATCH_H */
