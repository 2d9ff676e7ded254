// SPDX-License-Identifier: GPL-2.0
/*
 * The multi-generational LRU and the entries next to the entry that reclaim
 * checks.
 *
 * lru_gen_look_around() makes up to 64 entries old, and marks the folios of
 * dirty entries as dirty. The case calls it as folio_referenced_one() does. The
 * memory was given up with MADV_FREE. So a folio is dirty only if the function
 * marked it dirty, and reclaim drops each folio that is not dirty.
 *
 * Not covered: generations, files, huge pages, the walk over page tables.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	lru_gen
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmzone.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "../internal.h"
#include "user_mm.h"

/* The function looks at this many entries. */
#define LRU_GEN_PAGES	((unsigned int)MIN_LRU_BATCH)

/* The use of a page after the memory was given up. */
enum lru_gen_page { LRU_GEN_UNUSED, LRU_GEN_READ, LRU_GEN_WRITTEN, LRU_GEN_KINDS };

/**
 * struct lru_gen_kind - folios, and which of their pages were used
 * @desc: in words
 * @order: of the folios
 * @step: page N is of kind N / step, counted modulo three
 */
static const struct lru_gen_kind {
	const char *desc;
	unsigned int order;
	unsigned int step;
} lru_gen_kinds[] = {
	{ "single pages", 0, 1 },
	{ "single pages, in runs of 5", 0, 5 },
	{ "order 2, one kind in each", 2, 4 },
	{ "order 2, mixed", 2, 3 },
};

KUNIT_ARRAY_PARAM_DESC(lru_gen_kind, lru_gen_kinds, desc);

static enum lru_gen_page lru_gen_page(const struct lru_gen_kind *kind,
				      unsigned int page)
{
	return page / kind->step % LRU_GEN_KINDS;
}

static unsigned long lru_gen_addr(unsigned int page)
{
	return ALIGN(USER_ADDR, PMD_SIZE) + page * PAGE_SIZE;
}

static unsigned int __user *lru_gen_word(unsigned int page)
{
	return (unsigned int __user *)lru_gen_addr(page);
}

static struct folio *lru_gen_folio(struct kunit *test, unsigned int page)
{
	struct user_mm *u = test->priv;
	pte_t pte = user_mm_pte(u, lru_gen_addr(page));

	KUNIT_ASSERT_TRUE_MSG(test, pte_present(pte), "page %u", page);
	return pfn_folio(pte_pfn(pte));
}

/* Map 64 pages, give them up, and then use some of them. */
static void lru_gen_fixture(struct kunit *test, const struct lru_gen_kind *kind)
{
	unsigned int i, data;

	pgtable_kunit_thp_set(test, kind->order ? BIT(kind->order) : 0, false);
	KUNIT_ASSERT_EQ(test, lru_gen_addr(0),
			vm_mmap(NULL, lru_gen_addr(0),
				LRU_GEN_PAGES * PAGE_SIZE,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0));
	for (i = 0; i < LRU_GEN_PAGES; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(i, lru_gen_word(i)));
	lru_add_drain_all();
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(madvise, lru_gen_addr(0),
					      LRU_GEN_PAGES * PAGE_SIZE,
					      MADV_FREE));
	lru_add_drain_all();
	for (i = 0; i < LRU_GEN_PAGES; i++) {
		struct folio *folio = lru_gen_folio(test, i);

		KUNIT_ASSERT_EQ(test, kind->order, folio_order(folio));
		KUNIT_ASSERT_FALSE(test, folio_test_swapbacked(folio));
		KUNIT_ASSERT_FALSE(test, folio_test_dirty(folio));
		if (lru_gen_page(kind, i) == LRU_GEN_READ)
			KUNIT_ASSERT_EQ(test, 0, get_user(data, lru_gen_word(i)));
		if (lru_gen_page(kind, i) == LRU_GEN_WRITTEN)
			KUNIT_ASSERT_EQ(test, 0, put_user(i, lru_gen_word(i)));
	}
}

/*
 * Take all folios off their lists, and put them into the oldest generation; or
 * undo both. This is necessary because the multi-generational LRU is not
 * switched on, and the function skips folios that are in no generation.
 */
static void lru_gen_isolate(struct kunit *test, const struct lru_gen_kind *kind,
			    bool isolate)
{
	unsigned int i;

	for (i = 0; i < LRU_GEN_PAGES; i += 1 << kind->order) {
		struct folio *folio = lru_gen_folio(test, i);
		unsigned long *flags = (unsigned long *)&folio->flags;

		if (isolate)
			KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
		set_mask_bits(flags, LRU_GEN_MASK,
			      isolate ? 1UL << LRU_GEN_PGOFF : 0);
		if (!isolate)
			folio_putback_lru(folio);
	}
	/* Folios in the LRU batches of CPUs cannot be taken off their lists. */
	lru_add_drain_all();
}

/* Check one page, as folio_referenced_one() does. */
static bool lru_gen_ask(struct kunit *test, const struct lru_gen_kind *kind,
			unsigned int page)
{
	struct folio *folio = lru_gen_folio(test, page);
	struct user_mm *u = test->priv;
	struct page_vma_mapped_walk pvmw = {
		.pfn = pte_pfn(user_mm_pte(u, lru_gen_addr(page))),
		.nr_pages = 1,
		.address = lru_gen_addr(page),
		.flags = PVMW_SYNC,
	};
	bool used = false, found;

	lru_gen_isolate(test, kind, true);
	folio_lock(folio);
	mmap_read_lock(u->mm);
	pvmw.vma = vma_lookup(u->mm, pvmw.address);
	pvmw.pgoff = linear_page_index(pvmw.vma, pvmw.address);
	found = page_vma_mapped_walk(&pvmw);
	if (found) {
#ifdef PGTABLE_KUNIT_HAS_LOOK_AROUND_NR
		used = lru_gen_look_around(&pvmw, 1);
#else
		used = lru_gen_look_around(&pvmw);
#endif
		page_vma_mapped_walk_done(&pvmw);
	}
	mmap_read_unlock(u->mm);
	folio_unlock(folio);
	lru_gen_isolate(test, kind, false);
	KUNIT_ASSERT_TRUE(test, found);
	return used;
}

/* Reclaim checks the first page that was read. */
static unsigned int lru_gen_asked(const struct lru_gen_kind *kind)
{
	unsigned int i = 0;

	while (lru_gen_page(kind, i) != LRU_GEN_READ)
		i++;
	return i;
}

/*
 * Reclaim checks one page. The other entries of the VMA become old. Each folio
 * with an entry that was both dirty and young becomes dirty, so that reclaim
 * keeps it. All other folios stay clean. The pages lie in runs of three kinds.
 * The first run is unused, and each kind follows each of the two other kinds.
 * The next call finds that nothing was used.
 */
static void look_around_marks_dirty_folios(struct kunit *test)
{
	const struct lru_gen_kind *kind = test->param_value;
	unsigned int i, k, old = 0, dirty = 0, asked = lru_gen_asked(kind);
	struct user_mm *u = test->priv;

	lru_gen_fixture(test, kind);
	KUNIT_ASSERT_TRUE(test, pte_young(user_mm_pte(u, lru_gen_addr(asked))));
	KUNIT_EXPECT_TRUE(test, lru_gen_ask(test, kind, asked));
	for (i = 0; i < LRU_GEN_PAGES; i++) {
		pte_t pte = user_mm_pte(u, lru_gen_addr(i));

		KUNIT_EXPECT_FALSE_MSG(test, pte_young(pte), "page %u", i);
		old += lru_gen_page(kind, i) != LRU_GEN_UNUSED;
	}
	for (i = 0; i < LRU_GEN_PAGES; i += 1 << kind->order) {
		struct folio *folio = lru_gen_folio(test, i);
		bool want = false;

		for (k = i; k < i + (1 << kind->order); k++)
			want |= lru_gen_page(kind, k) == LRU_GEN_WRITTEN;
		KUNIT_EXPECT_EQ_MSG(test, want, folio_test_dirty(folio),
				    "page %u", i);
		dirty += want;
	}
	KUNIT_EXPECT_FALSE(test, lru_gen_ask(test, kind, asked));
	PGTABLE_KUNIT_DID(test, old, "entries made old");
	PGTABLE_KUNIT_DID(test, dirty, "folios made dirty");
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(lru_gen_addr(0),
					   LRU_GEN_PAGES * PAGE_SIZE));
}

static struct kunit_case lru_gen_cases[] = {
	KUNIT_CASE_PARAM(look_around_marks_dirty_folios,
			 lru_gen_kind_gen_params),
	{}
};

static struct kunit_suite lru_gen_suite = {
	.name = "lru_gen",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = lru_gen_cases,
};

kunit_test_suite(lru_gen_suite);

MODULE_DESCRIPTION("KUnit tests for the multi-generational LRU and page tables");
MODULE_LICENSE("GPL");
