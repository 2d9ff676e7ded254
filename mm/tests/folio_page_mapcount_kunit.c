// SPDX-License-Identifier: GPL-2.0
/*
 * The mappings that a large folio reports for its pages, with and without page
 * mapcounts.
 *
 * A newer kernel can do without mapcounts for the pages of large folios
 * (CONFIG_NO_PAGE_MAPCOUNT=y). Then the kernel reports an average to user
 * space. It considers a folio partly mapped if the folio has fewer mappings
 * than pages. The cases call the rmap functions with real mms and folios, but
 * without page tables. They compare both kinds of kernels with a model that
 * knows which mm maps which page.
 *
 * Not covered: the files of /proc that show the average, and the split of
 * partly mapped folios.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'folio_page_mapcount' --kconfig_add CONFIG_NO_PAGE_MAPCOUNT=y
 */

#include <kunit/test.h>
#include <linux/memcontrol.h>
#include <linux/rmap.h>

#include "../internal.h"
#include "fs/proc/internal.h"
#include "folio_mapped.h"

/* The folio has four pages, so that the case can try all ways to map them. */
#define PAGES		4

static void mapcount_add(struct mapped_mms *mms, struct folio *folio, int i)
{
	mapped_lock();
	folio_add_file_rmap_ptes(folio, folio_page(folio, i), 1, mms->vma[0]);
	mapped_unlock();
}

static void mapcount_remove(struct mapped_mms *mms, int mm, struct folio *folio,
			    int first, int nr)
{
	mapped_lock();
	folio_remove_rmap_ptes(folio, folio_page(folio, first), nr, mms->vma[mm]);
	mapped_unlock();
}

static void mapcount_add_pmd(struct mapped_mms *mms, struct folio *folio)
{
	mapped_lock();
	folio_add_file_rmap_pmd(folio, &folio->page, mms->vma[0]);
	mapped_unlock();
}

static void mapcount_remove_pmd(struct mapped_mms *mms, struct folio *folio)
{
	mapped_lock();
	folio_remove_rmap_pmd(folio, &folio->page, mms->vma[0]);
	mapped_unlock();
}

/*
 * A new anonymous folio. The first mm maps the whole folio. A PMD maps a huge
 * page.
 */
static struct folio *mapcount_anon(struct kunit *test, unsigned int order)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);

	/* The deferred split queue is per memcg, so charge the folio. */
	KUNIT_ASSERT_EQ(test, mem_cgroup_charge(folio, NULL, GFP_KERNEL), 0);
	mapped_new_anon(test->priv, folio, RMAP_NONE);
	return folio;
}

/* The second mm maps a page of the folio too, as a child does. */
static void mapcount_dup(struct kunit *test, struct folio *folio, int i)
{
	struct mapped_mms *mms = test->priv;
	int err;

	mapped_fork_begin(mms, 0);
	err = pgtable_kunit_dup_anon_rmap(folio, folio_page(folio, i), 1,
					  mms->vma[1], mms->vma[0]);
	mapped_fork_end(mms, 0);
	KUNIT_EXPECT_EQ(test, err, 0);
}

static const unsigned int mapcount_orders[] = { 0, 1, 2, 4, PMD_FOLIO_ORDER };

static void mapcount_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(mapcount_order, mapcount_orders, mapcount_order_desc);

/*
 * The average number of mappings per page is rounded to the nearest whole
 * number, and halves are rounded up. It is never 0 for a mapped folio. A
 * mapping of the whole folio counts for each page. The case adds one mapping at
 * a time, from none to two and a half for each page:
 *
 *	mappings of 512 pages	0   1 .. 767   768 .. 1279   1280
 *	average			0       1            2           3
 */
static void folio_average_page_mapcount_rounds(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value, nr = 1U << order;
	bool pmd = IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) && order == PMD_FOLIO_ORDER;
	struct mapped_mms *mms = test->priv;
	struct folio *folio;
	unsigned int i;

	if (!PGTABLE_KUNIT_AVERAGE_MAPCOUNT)
		kunit_skip(test, "this kernel has no average mapcounts");
	if (order > MAPPED_ORDER_MAX)
		kunit_skip(test, "a folio that is too large for this machine");
	folio = pgtable_kunit_folio_alloc(test, order);
	KUNIT_EXPECT_EQ(test, pgtable_kunit_average_mapcount(folio), 0);
	for (i = 0; i < 2 * nr + nr / 2; i++) {
		unsigned int want = (2 * (i + 1) + nr) / (2 * nr);

		mapcount_add(mms, folio, i % nr);
		KUNIT_EXPECT_EQ_MSG(test, pgtable_kunit_average_mapcount(folio),
				    max(want, 1U), "%u mappings", i + 1);
	}
	if (pmd) {
		mapcount_add_pmd(mms, folio);
		KUNIT_EXPECT_EQ(test, pgtable_kunit_average_mapcount(folio), 4);
	}
	for (i = 0; i < 2 * nr + nr / 2; i++)
		mapcount_remove(mms, 0, folio, i % nr, 1);
	if (pmd) {
		KUNIT_EXPECT_EQ(test, pgtable_kunit_average_mapcount(folio), 1);
		mapcount_remove_pmd(mms, folio);
	}
	KUNIT_EXPECT_EQ(test, pgtable_kunit_average_mapcount(folio), 0);
}

/*
 * How many pages are mapped by PTEs; each page counts once. A kernel without
 * page mapcounts returns "unknown".
 */
static void folio_nr_pages_mapped_counts(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 2);
	struct mapped_mms *mms = test->priv;
	int i;

	for (i = 0; i < 2 * PAGES; i++) {
		mapcount_add(mms, folio, i % PAGES);
		KUNIT_EXPECT_EQ(test, folio_nr_pages_mapped(folio),
				PGTABLE_KUNIT_PAGE_MAPCOUNT ? min(i + 1, PAGES) : -1);
	}
	for (i = 0; i < 2 * PAGES; i++) {
		mapcount_remove(mms, 0, folio, i % PAGES, 1);
		KUNIT_EXPECT_EQ(test, folio_nr_pages_mapped(folio),
				PGTABLE_KUNIT_PAGE_MAPCOUNT ?
					min(2 * PAGES - 1 - i, PAGES) : -1);
	}
}

/* Folios to split are in a list only if the machine has huge pages. */
static void mapcount_needs_huge_pages(struct kunit *test)
{
	if (!has_transparent_hugepage())
		kunit_skip(test, "this machine has no huge pages");
}

/*
 * A maps the pages @a and B maps the pages @b: does the kernel know that the
 * folio is partly mapped?
 */
static bool mapcount_partial(unsigned int a, unsigned int b)
{
	if (PGTABLE_KUNIT_PAGE_MAPCOUNT)
		return (a | b) && (a | b) != GENMASK(PAGES - 1, 0);
	return (a || b) && hweight32(a) + hweight32(b) < PAGES;
}

/*
 * A maps all of an anonymous folio and B has any of its pages after a fork. A
 * unmaps it, page by page or all at once, and then B does. As soon as the
 * kernel knows that one page is no longer mapped while other pages are, it puts
 * the folio on the deferred split queue, and not earlier. A kernel without
 * mapcounts of pages knows when there are fewer mappings than pages:
 *
 *	A   . . 2 3	B   0 1 . .	all are mapped, by 4 mappings: no
 *	A   . . . 3	B   0 1 2 .	the same
 *	A   . . . 3	B   0 1 . .	yes
 *	A   . . . 3	B   . 1 2 3	no, by 4 mappings; yes by their pages
 */
static void folio_remove_rmap_partially_mapped(struct kunit *test)
{
	unsigned int all = GENMASK(PAGES - 1, 0), way;
	struct mapped_mms *mms = test->priv;

	mapcount_needs_huge_pages(test);
	for (way = 0; way < 2U << PAGES; way++) {
		struct folio *folio = mapcount_anon(test, 2);
		unsigned int has[2] = { all, way & all };
		int i, nr = way > all ? PAGES : 1;
		bool want = false;

		for (i = 0; i < PAGES; i++) {
			if (has[1] & BIT(i))
				mapcount_dup(test, folio, i);
		}
		KUNIT_EXPECT_FALSE(test, folio_test_partially_mapped(folio));
		while (has[0] || has[1]) {
			int mm = !has[0], first = __ffs(has[mm]);

			mapcount_remove(mms, mm, folio, first, mm ? 1 : nr);
			has[mm] &= ~GENMASK(first + (mm ? 1 : nr) - 1, first);
			want |= mapcount_partial(has[0], has[1]);
			KUNIT_EXPECT_EQ_MSG(test, folio_test_partially_mapped(folio), want,
					    "way %#x: A has %#x, B has %#x", way, has[0],
					    has[1]);
		}
	}
}

/*
 * A maps a huge page by its PMD. B maps none of its pages, the last page, all
 * pages except the first, or all pages. After A's PMD is removed the folio is
 * partly mapped, unless B maps none or all of its pages.
 */
static void folio_remove_rmap_pmd_partially_mapped(struct kunit *test)
{
	unsigned int nr_pages = 1U << PMD_FOLIO_ORDER;
	const unsigned int mapped[] = { 0, 1, nr_pages - 1, nr_pages };
	struct mapped_mms *mms = test->priv;
	unsigned int i;

	mapcount_needs_huge_pages(test);
	if (PMD_FOLIO_ORDER > MAPPED_ORDER_MAX)
		kunit_skip(test, "a huge page is too large for this machine");
	for (i = 0; i < ARRAY_SIZE(mapped); i++) {
		struct folio *folio = mapcount_anon(test, PMD_FOLIO_ORDER);
		unsigned int nr = mapped[i], first = nr_pages - nr;
		struct vm_area_struct *vma = mms->vma[1];

		mapped_lock();
		if (nr)
			folio_add_anon_rmap_ptes(folio, folio_page(folio, first), nr, vma,
						 vma->vm_start + first * PAGE_SIZE,
						 RMAP_NONE);
		mapped_unlock();
		mapcount_remove_pmd(mms, folio);
		KUNIT_EXPECT_EQ_MSG(test, folio_test_partially_mapped(folio),
				    nr && nr < nr_pages, "%u pages", nr);
		if (nr)
			mapcount_remove(mms, 1, folio, first, nr);
	}
}

/*
 * A counter of the folio's node, including the changes that each CPU has not
 * yet added to it.
 */
static long mapcount_stat(struct folio *folio, enum node_stat_item item)
{
	struct pglist_data *node = folio_pgdat(folio);
	long sum = atomic_long_read(&node->vm_stat[item]);
#ifdef CONFIG_SMP
	int cpu;

	for_each_online_cpu(cpu)
		sum += per_cpu_ptr(node->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
#endif
	return sum;
}

/* Step @i of folio_rmap_statistics. */
static void mapcount_stat_step(struct kunit *test, struct folio *folio, bool anon,
			       int i)
{
	unsigned int nr = folio_nr_pages(folio), half = DIV_ROUND_UP(nr, 2);
	bool pmd = folio_order(folio) == PMD_FOLIO_ORDER;
	struct mapped_mms *mms = test->priv;
	struct vm_area_struct *vma = mms->vma[1];

	if (i == 0 && anon) {
		mapped_new_anon(mms, folio, RMAP_NONE);
	} else if (i == 0 && pmd) {
		mapcount_add_pmd(mms, folio);
	} else if (i < 2) {
		mapped_lock();
		if (anon)
			folio_add_anon_rmap_ptes(folio, &folio->page, nr, vma,
						 vma->vm_start, RMAP_NONE);
		else
			folio_add_file_rmap_ptes(folio, &folio->page, nr, mms->vma[i]);
		mapped_unlock();
	} else if (i == 2 && pmd) {
		mapcount_remove_pmd(mms, folio);
	} else if (i == 2) {
		mapcount_remove(mms, 0, folio, 0, nr);
	} else if (i == 3) {
		mapcount_remove(mms, 1, folio, 0, half);
	} else if (nr > half) {
		mapcount_remove(mms, 1, folio, half, nr - half);
	}
}

/* The first step after which the statistics are wrong, or -1. */
static int mapcount_stat_wrong(struct kunit *test, bool anon, unsigned int order)
{
	enum node_stat_item mapped = anon ? NR_ANON_MAPPED : NR_FILE_MAPPED;
	enum node_stat_item huge = anon ? NR_ANON_THPS : NR_FILE_PMDMAPPED;
	struct folio *folio = pgtable_kunit_folio_alloc(test, order);
	long nr = 1L << order, pmd = order == PMD_FOLIO_ORDER ? nr : 0;
	long part = PGTABLE_KUNIT_PAGE_MAPCOUNT || nr == 1 ? nr / 2 : nr;
	const long want[][2] = {
		{ nr, pmd }, { nr, pmd }, { nr, 0 }, { part, 0 }, { 0, 0 },
	};
	long were[] = { mapcount_stat(folio, mapped), mapcount_stat(folio, huge) };
	int i, wrong = -1;

	if (anon)
		KUNIT_ASSERT_EQ(test, mem_cgroup_charge(folio, NULL, GFP_KERNEL), 0);
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		mapcount_stat_step(test, folio, anon, i);
		if (wrong < 0 && (mapcount_stat(folio, mapped) != were[0] + want[i][0] ||
				  mapcount_stat(folio, huge) != were[1] + want[i][1]))
			wrong = i;
	}
	return wrong;
}

/*
 * /proc/vmstat counts each mapped page once, and each page that a PMD maps
 * once. A maps a folio (a huge folio by its PMD). B maps each of its pages. A
 * unmaps the folio. Then B unmaps one half, and after that the other half:
 *
 *	step		0	1	2	3	4
 *	mapped		all	all	all	half	none
 *	by a PMD	all	all	none	none	none
 *
 * A kernel without mapcounts of pages counts all pages until the last is
 * unmapped. Other tasks may map pages meanwhile, so one right try of eight is
 * enough.
 */
static void folio_rmap_statistics(struct kunit *test)
{
	static const unsigned int orders[] = { 0, 2, PMD_FOLIO_ORDER };
	int i, tries, wrong;

	for (i = 0; i < 2 * ARRAY_SIZE(orders); i++) {
		unsigned int order = orders[i / 2];

		/*
		 * An anonymous folio that is partly mapped waits to be split.
		 */
		if (order && (!has_transparent_hugepage() || order > MAPPED_ORDER_MAX))
			continue;
		for (tries = 0, wrong = 0; tries < 8 && wrong >= 0; tries++)
			wrong = mapcount_stat_wrong(test, i % 2, order);
		KUNIT_EXPECT_EQ_MSG(test, wrong, -1, "%s folio, order %u: wrong after this step",
				    i % 2 ? "anonymous" : "file", order);
	}
}

/*
 * By how much the statistics of files (mapped pages plus PMD-mapped pages)
 * change while another CPU is between the two counters of a huge page.
 */
static long mapcount_raced(struct mapped_mms *mms, struct folio *folio, bool add)
{
	long were = mapcount_stat(folio, NR_FILE_MAPPED) +
		    mapcount_stat(folio, NR_FILE_PMDMAPPED);

	if (add)
		mapcount_add_pmd(mms, folio);
	else
		mapcount_remove_pmd(mms, folio);
	return mapcount_stat(folio, NR_FILE_MAPPED) +
	       mapcount_stat(folio, NR_FILE_PMDMAPPED) - were;
}

/*
 * A mapping by a PMD counts in _entire_mapcount and then in _nr_pages_mapped.
 * Two CPUs may race between these two counters: a remove may run before an add
 * has reached the second counter, or an add may run before a remove has reached
 * it. In both cases the pages stay mapped, and the statistics must not change.
 * The case simulates the other CPU: it changes the second counter itself. E is
 * ENTIRELY_MAPPED:
 *
 *	add		E	all pages
 *	other CPU adds	2E
 *	remove		E	no change: it raced with the add
 *	add		2E	no change: it raced with a remove
 *	other removes	E
 *	remove		0	no page
 *
 * Other tasks may map pages meanwhile, so one right try of eight is enough.
 */
static void folio_rmap_pmd_races(struct kunit *test)
{
	long pages = 2L << PMD_FOLIO_ORDER, got[4];
	struct mapped_mms *mms = test->priv;
	struct folio *folio;
	int tries;

	mapcount_needs_huge_pages(test);
	if (!PGTABLE_KUNIT_PAGE_MAPCOUNT)
		kunit_skip(test, "no mapcounts of pages: one counter for each mapping");
	if (PMD_FOLIO_ORDER > MAPPED_ORDER_MAX)
		kunit_skip(test, "a huge page is too large for this machine");
	folio = pgtable_kunit_folio_alloc(test, PMD_FOLIO_ORDER);
	for (tries = 0; tries < 8; tries++) {
		got[0] = mapcount_raced(mms, folio, true);
		atomic_add(ENTIRELY_MAPPED, &folio->_nr_pages_mapped);
		got[1] = mapcount_raced(mms, folio, false);
		got[2] = mapcount_raced(mms, folio, true);
		atomic_sub(ENTIRELY_MAPPED, &folio->_nr_pages_mapped);
		got[3] = mapcount_raced(mms, folio, false);
		KUNIT_ASSERT_EQ(test, atomic_read(&folio->_nr_pages_mapped), 0);
		if (got[0] == pages && !got[1] && !got[2] && got[3] == -pages)
			break;
	}
	KUNIT_EXPECT_EQ(test, got[0], pages);
	KUNIT_EXPECT_EQ_MSG(test, got[1], 0, "a remove that raced with an add");
	KUNIT_EXPECT_EQ_MSG(test, got[2], 0, "an add that raced with a remove");
	KUNIT_EXPECT_EQ(test, got[3], -pages);
}

static int page_mapcount_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	test->priv = err ? NULL : mapped_mms_real(test);
	return err;
}

static struct kunit_case page_mapcount_cases[] = {
	KUNIT_CASE_PARAM(folio_average_page_mapcount_rounds, mapcount_order_gen_params),
	KUNIT_CASE(folio_nr_pages_mapped_counts),
	KUNIT_CASE(folio_remove_rmap_partially_mapped),
	KUNIT_CASE(folio_remove_rmap_pmd_partially_mapped),
	KUNIT_CASE(folio_rmap_statistics),
	KUNIT_CASE(folio_rmap_pmd_races),
	{}
};

static struct kunit_suite page_mapcount_suite = {
	.name = "folio_page_mapcount",
	.suite_init = pgtable_kunit_suite_init,
	.init = page_mapcount_init,
	.test_cases = page_mapcount_cases,
};

kunit_test_suite(page_mapcount_suite);

MODULE_DESCRIPTION("KUnit tests for folios with and without mapcounts of their pages");
MODULE_LICENSE("GPL");
