// SPDX-License-Identifier: GPL-2.0
/*
 * folio_pte_batch(): how many entries in a row map pages in a row of a folio.
 *
 * fork, zap, madvise and others handle that many entries with one call. A
 * batch that is too long makes them free or copy pages of somebody else. Each
 * case writes real entries for real folios into a synthetic page table, asks
 * for a batch, and compares its length and its merged bits with what the
 * entries say. Nothing in the table may change.
 *
 * The two generations of the interface are hidden by compat.h: one is told
 * which bits to ignore, the other which to respect. Not covered: the callers,
 * swap_pte_batch(), and calls that break the contract (a small folio, an entry
 * that is not present), which VM_WARN_ON()s report.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests folio_pte_batch
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>

#include "../internal.h"
#include "pgtable_kunit.h"

/*
 * From the smallest large folio to one that fills half a table of 512 entries,
 * the smallest there is, so that a pair of them fits. On arm64 with 4K pages
 * order 4 is one contiguous block.
 */
static const struct batch_order {
	unsigned int order;
	const char *desc;
} batch_orders[] = {
	{ 1, "order 1" },
	{ 2, "order 2" },
	{ 3, "order 3" },
	{ 4, "order 4" },
	{ 6, "order 6" },
	{ 8, "order 8" },
};

KUNIT_ARRAY_PARAM_DESC(batch_order, batch_orders, desc);

static unsigned int batch_param(struct kunit *test)
{
	return ((const struct batch_order *)test->param_value)->order;
}

/* Old and clean. */
static pte_t batch_pte_prot(unsigned long pfn, unsigned long vm_flags)
{
	pte_t pte = pfn_pte(pfn, vm_get_page_prot(vm_flags | VM_SHARED));

	return pte_mkold(pte_mkclean(pte_clear_soft_dirty(pte)));
}

static pte_t batch_pte(unsigned long pfn, bool write)
{
	return batch_pte_prot(pfn, write ? VM_READ | VM_WRITE : VM_READ);
}

/* Write entries for @nr pages from @pfn on, exactly as they are. */
static void batch_map(struct kunit *test, int idx, unsigned long pfn, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		pgtable_kunit_table_set(test->priv, idx + i,
					batch_pte(pfn + i, true));
}

/* Expect a batch of @want entries from entry @idx on, whatever it is asked. */
static bool batch_expect(struct kunit *test, struct folio *folio, int idx,
			 unsigned int max_nr, unsigned int want,
			 const char *what)
{
	struct pgtable_kunit_table *table = test->priv;
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	struct pgtable_kunit_batch batch;
	unsigned int nr;

	nr = pgtable_kunit_folio_pte_batch_nr(folio, addr, table->pte + idx,
					      max_nr);
	KUNIT_EXPECT_EQ_MSG(test, nr, want,
			    "%s: order %u, from entry %d, at most %u",
			    what, folio_order(folio), idx, max_nr);
	batch = pgtable_kunit_folio_pte_batch(folio, addr, table->pte + idx,
					      max_nr, 0);
	KUNIT_EXPECT_EQ_MSG(test, batch.nr, want,
			    "%s: order %u, from entry %d, at most %u, with bits",
			    what, folio_order(folio), idx, max_nr);
	return nr == want && batch.nr == want;
}

/* A batch from the first entry of the table. */
static struct pgtable_kunit_batch
batch_of(struct pgtable_kunit_table *table, struct folio *folio,
	 unsigned int max_nr, unsigned int respect)
{
	return pgtable_kunit_folio_pte_batch(folio, table->addr, table->pte,
					     max_nr, respect);
}

/*
 * A folio that is mapped as a whole is one batch from each of its pages to its
 * last, or to what the caller allows [contpte 150, 152]. It is mapped in
 * ascending order, so that on arm64 it consists of contiguous blocks: whose
 * hint has to be cut [153], counts from the middle of a block [154], and has to
 * be added up over blocks [155]. At both ends of the table.
 */
static void folio_pte_batch_whole_folio(struct kunit *test)
{
	unsigned int order = batch_param(test), n = 1U << order, i, j;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;
	const unsigned int first[] = { 0, PTRS_PER_PTE - n };

	for (j = 0; j < ARRAY_SIZE(first); j++) {
		pgtable_kunit_table_reset(table);
		for (i = first[j]; i < first[j] + n; i++)
			set_pte_at(table->mm, pgtable_kunit_table_addr(table, i),
				   table->pte + i,
				   batch_pte(folio_pfn(folio) + i - first[j],
					     true));
		memcpy(table->want, table->pte, PAGE_SIZE);

		for (i = 0; i < n; i++) {
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
 * A folio of which one half is folded and the other is not [contpte 156]: the
 * contiguous bit counts like any other, so a batch ends where it changes. That
 * is shorter than need be, but correct. Where nothing is ever folded, the
 * hint says so [149], and the batch is the whole folio.
 */
static void folio_pte_batch_half_folded(struct kunit *test)
{
	unsigned int order = batch_param(test), n = 1U << order, i, last;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;

	for (last = 0; last <= 1; last++) {
		unsigned int folded = last ? n / 2 : 0;
		bool ends;

		pgtable_kunit_table_reset(table);
		batch_map(test, n / 2 - folded, folio_pfn(folio) + n / 2 - folded,
			  n / 2);
		for (i = folded; i < folded + n / 2; i++)
			set_pte_at(table->mm, pgtable_kunit_table_addr(table, i),
				   table->pte + i,
				   batch_pte(folio_pfn(folio) + i, true));
		memcpy(table->want, table->pte, PAGE_SIZE);

		/* A small folio may be folded as a whole, or not at all. */
		ends = (pte_batch_hint(table->pte, ptep_get(table->pte)) > 1) !=
		       (pte_batch_hint(table->pte + n / 2,
				       ptep_get(table->pte + n / 2)) > 1);
		for (i = 0; i < n; i++) {
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
 * The batch ends with the folio, even if the next entry maps the physically
 * next page with the same bits [contpte 151]. When the end was found by
 * comparing PFNs it once was off by one, and once ran on for ever where the
 * entry behind the folio could not be computed.
 *
 *	entries |0 1 2 3|4 5 6 7|
 *	PFNs	|p . . .|p+4 . .|
 *	folios	|   A	|   B	|	from 1: 3, not 7
 */
static void folio_pte_batch_next_folio(struct kunit *test)
{
	unsigned int order = batch_param(test), n = 1U << order, i;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *pair[2];

	pgtable_kunit_folio_alloc_pair(test, order, pair);
	batch_map(test, 0, folio_pfn(pair[0]), 2 * n);

	for (i = 0; i < 2 * n; i++) {
		if (!batch_expect(test, pair[i / n], i, PTRS_PER_PTE - i,
				  n - i % n, "next folio adjacent"))
			return;
	}
	pgtable_kunit_table_check(table, "next folio adjacent");
}

/* Entries that do not continue a batch; @next is the one that would. */
static pte_t gap_none(pte_t next)
{
	return __pte(0);
}

static pte_t gap_swap(pte_t next)
{
	return swp_entry_to_pte(swp_entry(0, pte_pfn(next)));
}

static pte_t gap_skipped_page(pte_t next)
{
	return batch_pte(pte_pfn(next) + 1, true);
}

static pte_t gap_same_page_twice(pte_t next)
{
	return batch_pte(pte_pfn(next) - 1, true);
}

#ifdef CONFIG_MIGRATION
static pte_t gap_migration(pte_t next)
{
	return swp_entry_to_pte(make_readable_migration_entry(pte_pfn(next)));
}
#endif

static const struct batch_gap {
	const char *desc;
	pte_t (*make)(pte_t next);
} batch_gaps[] = {
	{ "none", gap_none },
	{ "swap entry", gap_swap },
	{ "page skipped", gap_skipped_page },
	{ "same page twice", gap_same_page_twice },
#ifdef CONFIG_MIGRATION
	{ "migration entry", gap_migration },
#endif
};

/*
 * A batch ends before an entry that is not present, or maps another page
 * than the next one [contpte 157]; behind it the folio goes on as if nothing
 * were amiss. At each index, with a batch from the first entry, from halfway,
 * and from the last entry before the gap.
 */
static void folio_pte_batch_gap(struct kunit *test)
{
	unsigned int order = batch_param(test), n = 1U << order, g, gap, i;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *pair[2], *folio;

	/* The page behind the folio, which the last entry is to map, is ours. */
	pgtable_kunit_folio_alloc_pair(test, order, pair);
	folio = pair[0];
	batch_map(test, 0, folio_pfn(folio), n);

	for (g = 0; g < ARRAY_SIZE(batch_gaps); g++) {
		for (gap = 1; gap < n; gap++) {
			const unsigned int from[] = { 0, gap / 2, gap - 1 };
			pte_t next = table->pte[gap];

			pgtable_kunit_raw_clear(table->mm,
						pgtable_kunit_table_addr(table, gap),
						table->pte + gap);
			pgtable_kunit_table_set(table, gap,
						batch_gaps[g].make(next));
			for (i = 0; i < ARRAY_SIZE(from); i++) {
				if (!batch_expect(test, folio, from[i], n,
						  gap - from[i],
						  batch_gaps[g].desc))
					return;
			}
			if (!pgtable_kunit_table_check(table, "%s at %u",
						       batch_gaps[g].desc, gap))
				return;
			pgtable_kunit_raw_clear(table->mm,
						pgtable_kunit_table_addr(table, gap),
						table->pte + gap);
			pgtable_kunit_table_set(table, gap, next);
		}
	}
}

/*
 * A batch does not run over the end of the page table, which is where the
 * caller's limit points [contpte 167]. The entry behind the last one is a
 * trap: it maps the page of the folio that comes next.
 */
static void folio_pte_batch_table_end(struct kunit *test)
{
	unsigned int order = batch_param(test), n = 1U << order, i;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;

	batch_map(test, PTRS_PER_PTE - n / 2, folio_pfn(folio), n);

	for (i = PTRS_PER_PTE - n / 2; i < PTRS_PER_PTE; i++) {
		if (!batch_expect(test, folio, i, PTRS_PER_PTE - i,
				  PTRS_PER_PTE - i, "end of the table"))
			return;
	}
	pgtable_kunit_table_check(table, "end of the table");
}

static pte_t bit_read_only(pte_t pte)
{
	return pte_wrprotect(pte);
}

static pte_t bit_dirty(pte_t pte)
{
	return pte_clear_soft_dirty(pte_mkdirty(pte));
}

static pte_t bit_soft_dirty(pte_t pte)
{
	return pte_mksoft_dirty(pte);
}

static pte_t bit_young(pte_t pte)
{
	return pte_mkyoung(pte);
}

static pte_t bit_special(pte_t pte)
{
	return pte_mkspecial(pte);
}

static pte_t bit_uffd(pte_t pte)
{
	return pgtable_kunit_mkuffd(pte);
}

static pte_t bit_protnone(pte_t pte)
{
	return batch_pte_prot(pte_pfn(pte), VM_NONE);
}

static pte_t bit_exec(pte_t pte)
{
	return batch_pte_prot(pte_pfn(pte), VM_READ | VM_WRITE | VM_EXEC);
}

#define ALWAYS	(~0U)
#define NEVER	0

/* Bits that entries of a batch may differ in, or when they may not. */
static const struct batch_bit {
	const char *desc;
	pte_t (*make)(pte_t pte);
	unsigned int respected;		/* PGTABLE_KUNIT_RESPECT_*, or: */
	bool read_only;			/* entries with the bit are never writable */
} batch_bits[] = {
	{ "read-only", bit_read_only, PGTABLE_KUNIT_RESPECT_WRITE },
	{ "dirty", bit_dirty, PGTABLE_KUNIT_RESPECT_DIRTY },
	{ "soft-dirty", bit_soft_dirty, PGTABLE_KUNIT_RESPECT_SOFT_DIRTY },
	{ "young", bit_young, NEVER },
	{ "special", bit_special, ALWAYS },
	{ "uffd-wp", bit_uffd, ALWAYS, true },
	{ "PROT_NONE", bit_protnone, ALWAYS },
	{ "executable", bit_exec, ALWAYS },
};

KUNIT_ARRAY_PARAM_DESC(batch_bit, batch_bits, desc);

/*
 * Entries of a batch have the same bits, except those that the caller does not
 * care about: an entry that alone has the bit, and one that alone lacks it,
 * ends the batch or does not, for each set of bits to respect [contpte
 * 158-162]. If all have the bit, the batch is the whole folio [164, 165].
 * Order 4 is enough: what is compared does not depend on the size.
 */
static void folio_pte_batch_differing_bit(struct kunit *test)
{
	const struct batch_bit *bit = test->param_value;
	const unsigned int order = 4, n = 1U << order;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	struct pgtable_kunit_table *table = test->priv;
	unsigned int odd, respect, i, invert;
	pte_t pte = batch_pte(folio_pfn(folio), !bit->read_only);

	if (pte_same(bit->make(pte), pte))
		kunit_skip(test, "no such bit in entries: %s", bit->desc);

	/* The odd one out is in each place but the first; n is nowhere. */
	for (odd = 1; odd <= n; odd++) {
		for (invert = 0; invert <= 1; invert++) {
			pgtable_kunit_table_reset(table);
			for (i = 0; i < n; i++) {
				bool alone = i == odd;

				pte = batch_pte(folio_pfn(folio) + i,
						!bit->read_only);
				if (alone != invert)
					pte = bit->make(pte);
				pgtable_kunit_table_set(table, i, pte);
			}

			for (respect = 0; respect <= PGTABLE_KUNIT_RESPECT_ALL;
			     respect++) {
				unsigned int want = n;
				struct pgtable_kunit_batch batch;

				if (respect & ~PGTABLE_KUNIT_RESPECT_ALL)
					continue;
				if (bit->respected == ALWAYS ||
				    (bit->respected & respect))
					want = odd;
				batch = batch_of(table, folio, n, respect);
				KUNIT_EXPECT_EQ_MSG(test, batch.nr, want,
						    "%s: entry %u of %u alone %s it, respect %#x",
						    bit->desc, odd, n,
						    invert ? "lacks" : "has",
						    respect);
			}
			pgtable_kunit_table_check(table, "%s at %u", bit->desc,
						  odd);
		}
	}
}

static pte_t batch_pte_bits(unsigned long pfn, bool write, bool young,
			    bool dirty)
{
	pte_t pte = batch_pte(pfn, write);

	if (young)
		pte = pte_mkyoung(pte);
	if (dirty)
		pte = pte_mkdirty(pte);
	return pte;
}

/* With all that can be reported. */
static pte_t all_bits(unsigned long pfn)
{
	return batch_pte_bits(pfn, true, true, true);
}

/*
 * What is reported of ignored bits covers the entries of the batch, the first
 * one included, and no other [contpte 160, 163]. Only one entry of the folio
 * has the bit. Entries that do not belong to the batch have them all: those
 * behind the caller's limit, those behind the folio, and one in the folio that
 * maps another page than the next one and so ends the batch. Losing a writable
 * bit would make fork share a page for writing; one too many marks clean pages
 * dirty.
 */
static void folio_pte_batch_reported_bits(struct kunit *test)
{
	unsigned int order = batch_param(test), n = 1U << order;
	struct pgtable_kunit_table *table = test->priv;
	unsigned int at, kind, nr, how, i;
	struct folio *pair[2];

	pgtable_kunit_folio_alloc_pair(test, order, pair);

	for (at = 0; at < n; at++) {
		for (kind = 0; kind < 3; kind++) {
			const bool write = kind == 0, young = kind == 1,
				   dirty = kind == 2;
			unsigned long pfn = folio_pfn(pair[0]);

			pgtable_kunit_table_reset(table);
			for (i = 0; i < 2 * n; i++) {
				pte_t pte = all_bits(pfn + i);

				if (i < n)
					pte = batch_pte_bits(pfn + i,
							     i == at && write,
							     i == at && young,
							     i == at && dirty);
				pgtable_kunit_table_set(table, i, pte);
			}

			/* The batch ends before the entry, or behind it: */
			for (how = 0; how < 4; how++) {
				const char *const hows[] = {
					"limit before", "limit behind",
					"end of the folio", "odd entry behind",
				};
				unsigned int max_nr = how < 2 ? at + how : 2 * n;
				struct pgtable_kunit_batch batch;
				bool in;

				if (!max_nr)
					continue;
				if (how == 3)
					pgtable_kunit_table_set(table, at + 1,
								all_bits(pfn + at));
				nr = how == 3 ? at + 1 : min(max_nr, n);
				in = at < nr;
				batch = batch_of(table, pair[0], max_nr, 0);
				if (batch.nr == nr &&
				    batch.write == (in && write) &&
				    batch.young == (in && young) &&
				    batch.dirty == (in && dirty))
					continue;
				KUNIT_FAIL(test,
					   "%s entry %u of %u, %s: nr %u, expected %u, write %d young %d dirty %d",
					   write ? "writable" :
					   young ? "young" : "dirty",
					   at, n, hows[how], batch.nr, nr,
					   batch.write, batch.young,
					   batch.dirty);
			}
			if (!pgtable_kunit_table_check(table, "reported bits"))
				return;
		}
	}
}

static struct kunit_suite folio_pte_batch_suite;

static int folio_pte_batch_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &folio_pte_batch_suite);

	if (err)
		return err;
	test->priv = pgtable_kunit_table_alloc(test);
	return 0;
}

static struct kunit_case folio_pte_batch_cases[] = {
	KUNIT_CASE_PARAM(folio_pte_batch_whole_folio, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_half_folded, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_next_folio, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_gap, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_table_end, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_differing_bit, batch_bit_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_reported_bits, batch_order_gen_params),
	{}
};

static struct kunit_suite folio_pte_batch_suite = {
	.name = "folio_pte_batch",
	.init = folio_pte_batch_init,
	.test_cases = folio_pte_batch_cases,
};

kunit_test_suite(folio_pte_batch_suite);

MODULE_DESCRIPTION("KUnit tests for folio_pte_batch()");
MODULE_LICENSE("GPL");
