// SPDX-License-Identifier: GPL-2.0
/*
 * The queue of huge pages that the kernel may split to free memory.
 *
 * The first fault on a huge page of anonymous memory puts it on this queue.
 * Under memory pressure a shrinker takes huge pages from the queue. It splits
 * those that contain pages of zeros, and frees the pages of zeros. A huge page
 * must stay on the queue until the shrinker has looked at it.
 *
 * Not covered: folios that are mapped in part (folio_split), memory cgroups.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	deferred_split
 */

#include <kunit/test.h>
#include <linux/khugepaged.h>
#include <linux/kprobes.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

#include "../internal.h"
#include "user_mm.h"

static void deferred_restore(void *data)
{
	khugepaged_max_ptes_none = (unsigned long)data;
}

static unsigned int __user *deferred_word(unsigned int page)
{
	return (unsigned int __user *)(ALIGN(USER_ADDR, PMD_SIZE) +
				       page * PAGE_SIZE);
}

/* The folio at the start of the memory. The caller gets a reference. */
static struct folio *deferred_get(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, 1,
			get_user_pages_fast((unsigned long)deferred_word(0), 1,
					    0, &page));
	return page_folio(page);
}

static bool deferred_is_queued(struct folio *folio)
{
	/*
	 * Nothing else changes the queue here. The kernel reads it with
	 * data_race() too.
	 */
	return !data_race(list_empty(&folio->_deferred_list));
}

/*
 * Map a huge page. Only its first page has content. Configure the shrinker to
 * split each huge page that has a page of zeros.
 */
static struct folio *deferred_fixture(struct kunit *test)
{
	unsigned long addr = ALIGN(USER_ADDR, PMD_SIZE);
	unsigned long none = khugepaged_max_ptes_none;
	struct folio *folio;

	if (2 * HPAGE_PMD_SIZE > totalram_pages() * PAGE_SIZE / 2)
		kunit_skip(test, "no memory for a huge page");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
							   deferred_restore,
							   (void *)none));
	khugepaged_max_ptes_none = 0;
	pgtable_kunit_thp_set(test, BIT(HPAGE_PMD_ORDER), false);
	KUNIT_ASSERT_EQ(test, addr,
			vm_mmap(NULL, addr, PMD_SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0));
	KUNIT_ASSERT_EQ(test, 0, put_user(4711, deferred_word(0)));
	folio = deferred_get(test);
	KUNIT_ASSERT_EQ(test, folio_order(folio), HPAGE_PMD_ORDER);
	KUNIT_ASSERT_TRUE(test, deferred_is_queued(folio));
	KUNIT_ASSERT_FALSE(test, folio_test_partially_mapped(folio));
	lru_add_drain_all();
	return folio;
}

static void deferred_end(struct kunit *test)
{
	unsigned int data;

	KUNIT_EXPECT_EQ(test, 0, get_user(data, deferred_word(0)));
	KUNIT_EXPECT_EQ(test, data, 4711);
	KUNIT_EXPECT_EQ(test, 0, get_user(data, deferred_word(1)));
	KUNIT_EXPECT_EQ(test, data, 0);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap((unsigned long)deferred_word(0),
					   PMD_SIZE));
}

/*
 * The shrinker finds a huge page that is locked, for instance because it is
 * being migrated. It cannot split the page, and leaves it on the queue. The
 * next call splits the page. Known issue 24: the shrinker takes the page off
 * the queue, so it never splits this page.
 */
static void shrink_meets_locked_folio(struct kunit *test)
{
	struct folio *folio = deferred_fixture(test);
	bool queued;

	folio_lock(folio);
	drop_slab();
	queued = deferred_is_queued(folio);
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, folio_order(folio), HPAGE_PMD_ORDER);
	/* It cannot be split while the test holds a reference. */
	folio_put(folio);

	drop_slab();
	folio = deferred_get(test);
	if (!queued && folio_order(folio) == HPAGE_PMD_ORDER) {
		pgtable_kunit_known_issue(test, 24,
					  "a huge page that is locked leaves the queue");
	} else {
		KUNIT_EXPECT_TRUE(test, queued);
		KUNIT_EXPECT_EQ(test, folio_order(folio), 0);
		pgtable_kunit_stale_issue(test, 24);
	}
	folio_put(folio);
	deferred_end(test);
}

/*
 * The shrinker splits a huge page that nobody has locked. A page without zeros
 * leaves the queue, and stays a huge page.
 */
static void shrink_splits_zeros(struct kunit *test)
{
	struct folio *folio = deferred_fixture(test);
	unsigned int i;

	folio_put(folio);
	drop_slab();
	folio = deferred_get(test);
	KUNIT_EXPECT_EQ(test, folio_order(folio), 0);
	folio_put(folio);
	deferred_end(test);

	folio = deferred_fixture(test);
	for (i = 0; i < HPAGE_PMD_NR; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(i ? 0 : 4711,
						  deferred_word(i)));
	for (i = 1; i < HPAGE_PMD_NR; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(1, deferred_word(i) + 1));
	folio_put(folio);
	drop_slab();
	folio = deferred_get(test);
	KUNIT_EXPECT_EQ(test, folio_order(folio), HPAGE_PMD_ORDER);
	KUNIT_EXPECT_FALSE(test, deferred_is_queued(folio));
	folio_put(folio);
	deferred_end(test);
}

#if defined(CONFIG_KPROBES) && defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API) && \
	defined(CONFIG_MIGRATION)
/* The arguments of the call of deferred_split_folio(). */
static struct {
	struct folio *folio;
	unsigned int calls;
	unsigned int mapped;
} deferred_seen;

static int deferred_call(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct folio *folio = (void *)regs_get_kernel_argument(regs, 0);

	deferred_seen.folio = folio;
	deferred_seen.calls++;
	deferred_seen.mapped += folio_mapped(folio);
	return 0;
}

/* With a post handler, kprobes does not replace the probe by a jump. */
static void deferred_call_post(struct kprobe *kprobe, struct pt_regs *regs,
			       unsigned long flags)
{
}

static struct folio *deferred_target(struct folio *src, unsigned long private)
{
	return folio_alloc(GFP_HIGHUSER_MOVABLE | __GFP_COMP, folio_order(src));
}

/* Migrate the folio. Only its mappings have references to it. */
static int deferred_migrate(struct kunit *test, struct folio *folio)
{
	LIST_HEAD(list);
	int err;

	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	folio_put(folio);
	node_stat_mod_folio(folio, NR_ISOLATED_ANON, folio_nr_pages(folio));
	list_add(&folio->lru, &list);
	err = migrate_pages(&list, deferred_target, NULL, 0, MIGRATE_SYNC,
			    MR_SYSCALL, NULL);
	if (err)
		putback_movable_pages(&list);
	return err;
}

/*
 * Migration replaces a huge page that is on the queue. It must put the new page
 * on the queue before it maps this page. As soon as the page is mapped, another
 * thread can unmap a part of it, which puts it on the queue as a partially
 * mapped page. Known issue 24: the kernel maps the page first. If another
 * thread is fast enough, a kernel with CONFIG_DEBUG_VM warns.
 */
static void migrate_queues_before_mapping(struct kunit *test)
{
	struct kprobe kprobe = {
		.symbol_name = "deferred_split_folio",
		.pre_handler = deferred_call,
		.post_handler = deferred_call_post,
	};
	struct folio *folio = deferred_fixture(test);
	int err;

	memset(&deferred_seen, 0, sizeof(deferred_seen));
	KUNIT_ASSERT_EQ(test, 0, register_kprobe(&kprobe));
	err = deferred_migrate(test, folio);
	unregister_kprobe(&kprobe);
	KUNIT_ASSERT_EQ(test, err, 0);
	PGTABLE_KUNIT_DID(test, deferred_seen.calls, "pages queued");

	folio = deferred_get(test);
	KUNIT_EXPECT_EQ(test, folio_order(folio), HPAGE_PMD_ORDER);
	KUNIT_EXPECT_PTR_EQ(test, folio, deferred_seen.folio);
	KUNIT_EXPECT_TRUE(test, deferred_is_queued(folio));
	KUNIT_EXPECT_FALSE(test, folio_test_partially_mapped(folio));
	if (deferred_seen.mapped && deferred_seen.calls == 1) {
		pgtable_kunit_known_issue(test, 24,
					  "migration maps a huge page before it queues it");
	} else {
		KUNIT_EXPECT_EQ(test, deferred_seen.mapped, 0);
		pgtable_kunit_stale_issue(test, 24);
	}
	folio_put(folio);
	deferred_end(test);
}
#else
static void migrate_queues_before_mapping(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_KPROBES and CONFIG_MIGRATION");
}
#endif

static struct kunit_case deferred_split_cases[] = {
	KUNIT_CASE(shrink_meets_locked_folio),
	KUNIT_CASE(shrink_splits_zeros),
	KUNIT_CASE(migrate_queues_before_mapping),
	{}
};

static struct kunit_suite deferred_split_suite = {
	.name = "deferred_split",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = deferred_split_cases,
};

kunit_test_suite(deferred_split_suite);

MODULE_DESCRIPTION("KUnit tests for the queue of huge pages that may be split");
MODULE_LICENSE("GPL");
