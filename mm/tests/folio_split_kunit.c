// SPDX-License-Identifier: GPL-2.0
/*
 * Splits of a large folio that fail after they have begun.
 *
 * A split counts the references of the folio, replaces all its entries with
 * migration entries, and freezes the references. If another task takes a
 * reference in between, the split fails and puts the entries back. The folio
 * must then be as it was before. Each case takes such a reference in a
 * notifier, which is called right before the first entry is replaced.
 *
 * Not covered: folios of files, splits into large folios.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	folio_split
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "../internal.h"
#include "pgtable_kunit.h"

#ifdef CONFIG_MMU_NOTIFIER
/* Stands for the order of a huge page. One PMD maps the huge page. */
#define SPLIT_HUGE	UINT_MAX

/**
 * struct split_kind - a folio, and how it is mapped
 * @desc: in words
 * @order: of the folio, or %SPLIT_HUGE
 * @part: the last page is not mapped any more, so the folio is marked as
 *	partially mapped
 */
static const struct split_kind {
	const char *desc;
	unsigned int order;
	bool part;
} split_kinds[] = {
	{ "order 2", 2, false },
	{ "order 4", 4, false },
	{ "order 4, all but the last page", 4, true },
	{ "huge page", SPLIT_HUGE, false },
};

KUNIT_ARRAY_PARAM_DESC(split_kind, split_kinds, desc);

/**
 * struct split_fixture - a folio, and a notifier that makes its split fail
 * @notifier: takes a reference when the folio is about to be unmapped
 * @mm: the address space
 * @addr: where the folio is mapped
 * @folio: the folio, with a reference of the test
 * @order: its order
 * @mapped: how many of its pages are mapped
 * @armed: take a reference at the next call
 * @refs: how many references were taken
 * @marked: number of marked folios of this order, before the test makes its own
 */
struct split_fixture {
	struct mmu_notifier notifier;
	struct mm_struct *mm;
	unsigned long addr;
	struct folio *folio;
	unsigned int order;
	unsigned int mapped;
	bool armed;
	unsigned int refs;
	long marked;
};

static int split_start(struct mmu_notifier *notifier,
		       const struct mmu_notifier_range *range)
{
	struct split_fixture *f = container_of(notifier, typeof(*f), notifier);

	if (range->event == MMU_NOTIFY_CLEAR && xchg(&f->armed, false)) {
		folio_get(f->folio);
		f->refs++;
	}
	return 0;
}

static const struct mmu_notifier_ops split_ops = {
	.invalidate_range_start = split_start,
};

/*
 * The number of folios of an order that are mapped in part, as sysfs shows it.
 */
static long split_nr_marked(unsigned int order)
{
	long sum = 0;
#ifdef CONFIG_SYSFS
	const unsigned int item = MTHP_STAT_NR_ANON_PARTIALLY_MAPPED;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += (long)per_cpu(mthp_stats, cpu).stats[order][item];
#endif
	return sum;
}

static struct split_fixture *split_fixture(struct kunit *test)
{
	const struct split_kind *kind = test->param_value;
	struct split_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned int i, entries;
	unsigned long size, addr;
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->order = kind->order == SPLIT_HUGE ? HPAGE_PMD_ORDER : kind->order;
	size = PAGE_SIZE << f->order;
	if (2 * size > totalram_pages() * PAGE_SIZE / 2)
		kunit_skip(test, "no memory for a huge page");

	pgtable_kunit_compaction_off(test);
	pgtable_kunit_thp_set(test, BIT(f->order), false);
	addr = kunit_vm_mmap(test, NULL, 0, 2 * size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	f->addr = ALIGN(addr, size);
	f->mm = current->mm;
	f->mapped = BIT(f->order);
	f->marked = split_nr_marked(f->order);
	for (i = 0; i < f->mapped; i++)
		KUNIT_ASSERT_EQ(test, 0,
				put_user(1000 + i, (unsigned int __user *)
					 (f->addr + i * PAGE_SIZE)));
	if (kind->part) {
		f->mapped--;
		KUNIT_ASSERT_EQ(test, 0,
				vm_munmap(f->addr + f->mapped * PAGE_SIZE,
					  PAGE_SIZE));
	}
	KUNIT_ASSERT_EQ(test, 1, get_user_pages_fast(f->addr, 1, FOLL_WRITE,
						     &page));
	f->folio = page_folio(page);
	KUNIT_ASSERT_EQ(test, folio_order(f->folio), f->order);
	/*
	 * The LRU batches of the CPUs may hold references, which would prevent
	 * a split.
	 */
	lru_add_drain_all();
	entries = kind->order == SPLIT_HUGE ? 1 : f->mapped;
	KUNIT_ASSERT_EQ(test, folio_mapcount(f->folio), entries);
	KUNIT_ASSERT_EQ(test, folio_ref_count(f->folio), 1 + entries);
	return f;
}

/* Split the folio. The test keeps its reference. */
static int split_now(struct split_fixture *f)
{
	int err;

	folio_lock(f->folio);
	err = split_folio(f->folio);
	folio_unlock(f->folio);
	return err;
}

/*
 * All pages are still accessible, and have the content that was written to
 * them.
 */
static void split_check_contents(struct kunit *test, struct split_fixture *f)
{
	unsigned int i, data, wrong = 0;

	for (i = 0; i < f->mapped; i++)
		wrong += get_user(data, (unsigned int __user *)
				  (f->addr + i * PAGE_SIZE)) ||
			 data != 1000 + i;
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "pages with other contents");
}

/*
 * The notifier takes a reference of a folio while the kernel splits it. The
 * split fails, and the folio is mapped as before. It is marked as partially
 * mapped only if it was marked before. The next split succeeds and clears the
 * mark. Known issue 8: a folio gets the mark although all its pages are mapped,
 * by one entry each. A huge page that one PMD maps does not get the mark,
 * because its mapping is removed in one step.
 */
static void split_fails_late(struct kunit *test)
{
	const struct split_kind *kind = test->param_value;
	struct split_fixture *f = split_fixture(test);
	bool marked, huge = kind->order == SPLIT_HUGE;
	long counted;
	int err;

	KUNIT_EXPECT_EQ(test, folio_test_partially_mapped(f->folio), kind->part);
	f->notifier.ops = &split_ops;
	KUNIT_ASSERT_EQ(test, 0, mmu_notifier_register(&f->notifier, f->mm));
	WRITE_ONCE(f->armed, true);
	err = split_now(f);
	WRITE_ONCE(f->armed, false);
	mmu_notifier_unregister(&f->notifier, f->mm);
	if (f->refs)
		folio_put(f->folio);

	PGTABLE_KUNIT_DID(test, f->refs, "references taken in a split");
	KUNIT_EXPECT_EQ(test, err, -EAGAIN);
	KUNIT_ASSERT_EQ(test, folio_order(f->folio), f->order);
	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), f->mapped);
	KUNIT_EXPECT_EQ(test, folio_ref_count(f->folio), 1 + f->mapped);
	split_check_contents(test, f);

	marked = folio_test_partially_mapped(f->folio);
	counted = split_nr_marked(f->order) - f->marked;
	if (IS_ENABLED(CONFIG_SYSFS))
		KUNIT_EXPECT_EQ(test, counted, marked);
	if (kind->part || huge || !marked)
		KUNIT_EXPECT_EQ(test, marked, kind->part);
	else
		pgtable_kunit_known_issue(test, 8,
					  "all %u pages are mapped, and the folio is marked as mapped in part",
					  f->mapped);
	if (!kind->part && !huge && !marked)
		pgtable_kunit_stale_issue(test, 8);

	KUNIT_EXPECT_EQ(test, 0, split_now(f));
	KUNIT_EXPECT_EQ(test, folio_order(f->folio), 0);
	KUNIT_EXPECT_EQ(test, split_nr_marked(f->order), f->marked);
	split_check_contents(test, f);
	folio_put(f->folio);
}

#ifdef PGTABLE_KUNIT_HAS_SPLIT_UNMAPPED
/*
 * A driver splits a folio that it has isolated and that no process maps any
 * more. With one more reference the split fails, and the folio stays unchanged.
 * Without this reference, each page becomes a separate folio: locked, with one
 * reference, not on any list, and with the content that it had.
 */
static void folio_split_unmapped_pages(struct kunit *test)
{
	const struct split_kind *kind = test->param_value;
	struct split_fixture *f = split_fixture(test);
	unsigned int i, nr = BIT(f->order), wrong = 0;
	struct page *first = &f->folio->page;

	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(f->folio));
	KUNIT_ASSERT_EQ(test, 0, vm_munmap(f->addr, PAGE_SIZE << f->order));
	folio_lock(f->folio);
	KUNIT_EXPECT_EQ(test, folio_ref_count(f->folio), 2);
	KUNIT_EXPECT_EQ(test, folio_split_unmapped(f->folio, 0), -EAGAIN);
	KUNIT_EXPECT_EQ(test, folio_order(f->folio), f->order);
	folio_put(f->folio);
	if (kind->part)
		KUNIT_EXPECT_TRUE(test, folio_test_partially_mapped(f->folio));
	KUNIT_ASSERT_EQ(test, folio_split_unmapped(f->folio, 0), 0);
	for (i = 0; i < nr; i++) {
		struct page *page = first + i;
		struct folio *folio = page_folio(page);

		wrong += folio_page(folio, 0) != page || folio_order(folio) ||
			 !folio_test_locked(folio) || folio_test_lru(folio) ||
			 folio_ref_count(folio) != 1 || folio_mapped(folio) ||
			 *(unsigned int *)page_address(page) != 1000 + i;
		folio_unlock(folio);
		folio_put(folio);
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "pages that are not as expected");
	KUNIT_EXPECT_EQ(test, split_nr_marked(f->order), f->marked);
	PGTABLE_KUNIT_DID(test, nr, "pages of their own");
}
#endif
#else
static void split_fails_late(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MMU_NOTIFIER");
}
#endif

static struct kunit_case folio_split_cases[] = {
#ifdef CONFIG_MMU_NOTIFIER
	KUNIT_CASE_PARAM(split_fails_late, split_kind_gen_params),
#ifdef PGTABLE_KUNIT_HAS_SPLIT_UNMAPPED
	KUNIT_CASE_PARAM(folio_split_unmapped_pages, split_kind_gen_params),
#endif
#else
	KUNIT_CASE(split_fails_late),
#endif
	{}
};

static struct kunit_suite folio_split_suite = {
	.name = "folio_split",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = folio_split_cases,
};

kunit_test_suite(folio_split_suite);

MODULE_DESCRIPTION("KUnit tests for splits of large folios that fail");
MODULE_LICENSE("GPL");
