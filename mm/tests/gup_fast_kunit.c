// SPDX-License-Identifier: GPL-2.0
/*
 * GUP-fast takes references to user pages without the mmap lock.
 *
 * gup_fast_pte_range() reads entries while others may change them. It takes a
 * page only if the entry alone shows that this is allowed. It leaves all other
 * pages to the slow path, which uses the VMA. get_user_pages_fast_only() never
 * takes the slow path, so it shows what the fast path did.
 *
 * Not covered: changes by other CPUs at the same time (selftest folio_race),
 * huge pages, hugetlb.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	gup_fast
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/shmem_fs.h>
#include <linux/uaccess.h>

#include "user_mm.h"

static const unsigned int gup_orders[] = { 0, 2, USER_BLOCK_ORDER };

static void gup_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(gup_order, gup_orders, gup_order_desc);

static struct user_mm *gup_populate(struct kunit *test, unsigned int order)
{
	struct user_mm *u = test->priv;

	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, true);
	user_mm_populate(u, order);
	snprintf(u->what, sizeof(u->what), "order %u", order);
	return u;
}

/*
 * Reference pages @first to @first + @nr - 1 by the fast path, check that they
 * are the pages of the model, and drop them. Returns the number of these pages.
 */
static int gup_take(struct user_mm *u, unsigned int first, unsigned int nr,
		    unsigned int flags)
{
	static struct page *pages[USER_PAGES];	/* too large for the stack */
	int got, i;

	got = get_user_pages_fast_only(u->page[first].addr, nr, flags, pages);
	for (i = 0; i < got; i++) {
		KUNIT_EXPECT_EQ_MSG(u->test, page_to_pfn(pages[i]),
				    u->page[first + i].pfn, "%s: page %u",
				    u->what, first + i);
		put_page(pages[i]);
	}
	return got;
}

/*
 * The fast path finds each page of a range, in each block. The ranges begin at
 * each place of the first block and have from one page to all pages. The case
 * takes the pages for reading and for writing.
 */
static void gup_fast_every_range(struct kunit *test)
{
	struct user_mm *u = gup_populate(test,
					 *(unsigned int *)test->param_value);
	unsigned int step = max(1U, USER_BLOCK / 16), first, nr, ranges = 0;

	for (first = 0; first < USER_BLOCK; first += step) {
		for (nr = 1; first + nr <= USER_PAGES; nr += step) {
			KUNIT_EXPECT_EQ(test, gup_take(u, first, nr, 0), nr);
			KUNIT_EXPECT_EQ(test,
					gup_take(u, first, nr, FOLL_WRITE), nr);
			ranges++;
		}
	}
	user_mm_check(u);
	user_mm_unmap(u);
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/**
 * struct gup_stop - an entry that the fast path does not take
 * @name: what it is
 * @change: make it from a present entry
 * @read: whether the fast path takes it for a read
 */
struct gup_stop {
	const char *name;
	pte_t (*change)(pte_t pte);
	bool read;
};

static pte_t gup_readonly(pte_t pte)
{
	return pte_wrprotect(pte);
}

static pte_t gup_hint(pte_t pte)
{
	return pte_modify(pte, PAGE_NONE);
}

static pte_t gup_special(pte_t pte)
{
	return pte_mkspecial(pte);
}

static const struct gup_stop gup_stops[] = {
	{ "read-only", gup_readonly, true },
	{ "PROT_NONE", gup_hint, false },
	{ "special", gup_special, false },
};

static void gup_stop_desc(const struct gup_stop *stop, char *desc)
{
	strscpy(desc, stop->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(gup_stop, gup_stops, gup_stop_desc);

/* Replace one entry. Returns the old entry. */
static pte_t gup_replace(struct user_mm *u, unsigned int page,
			 pte_t (*change)(pte_t pte), pte_t to)
{
	unsigned long addr = u->page[page].addr;
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep, old;

	mmap_write_lock(u->mm);
	ptep = pte_offset_map_lock(u->mm, pmd_off(u->mm, addr), addr, &ptl);
	old = ptep_get_and_clear(u->mm, addr, ptep);
	set_pte_at(u->mm, addr, ptep, change ? change(old) : to);
	pte_unmap_unlock(ptep, ptl);
	mmap_write_unlock(u->mm);
	return old;
}

/*
 * The fast path ends at an entry that needs the VMA. It finds the pages before
 * this entry, but neither the page of this entry nor the pages after it. The
 * entry is at each place of the second block.
 */
static void gup_fast_stops(struct kunit *test)
{
	const struct gup_stop *stop = test->param_value;
	struct user_mm *u = gup_populate(test, USER_BLOCK_ORDER);
	unsigned int page, stops = 0;

	for (page = USER_BLOCK; page < 2 * USER_BLOCK; page++) {
		pte_t old = gup_replace(u, page, stop->change, __pte(0));

		KUNIT_EXPECT_EQ_MSG(test, gup_take(u, 0, USER_PAGES, 0),
				    stop->read ? USER_PAGES : page, "page %u",
				    page);
		KUNIT_EXPECT_EQ_MSG(test,
				    gup_take(u, 0, USER_PAGES, FOLL_WRITE),
				    page, "page %u", page);
		gup_replace(u, page, NULL, old);
		stops++;
	}
	user_mm_unmap(u);
	PGTABLE_KUNIT_DID(test, stops, "entries that end it");
}

/* Runs in the child, which still shares all pages with its parent. */
static int gup_child_pins(struct user_mm *u)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < USER_PAGES; i++) {
		struct page *page;
		int got = pin_user_pages_fast(u->page[i].addr, 1, 0, &page);

		if (got != 1) {
			wrong++;
			continue;
		}
		if (page_to_pfn(page) == u->page[i].pfn ||
		    page_to_pfn(page) != pte_pfn(user_mm_pte(u, u->page[i].addr)))
			wrong++;
		unpin_user_page(page);
	}
	if (wrong)
		KUNIT_FAIL(u->test, "%s: %u pages of the child are wrong",
			   u->what, wrong);
	return wrong;
}

/*
 * A pin for reading must see all later writes of the process. So the fast path
 * does not take a page that fork() shares: the child first gets its own copy,
 * and this copy is pinned. The parent keeps its pages.
 */
static void pin_fast_unshares(struct kunit *test)
{
	struct user_mm *u = gup_populate(test,
					 *(unsigned int *)test->param_value);

	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(u, gup_child_pins, NULL));
	user_mm_check(u);
	user_mm_unmap(u);
}

/*
 * The same for a long-term pin of a page of a file. In a private mapping the
 * process first gets its own copy. In a shared mapping the kernel pins the page
 * of the file. The fast path has no VMA, and cannot know which kind of mapping
 * it is.
 */
static void pin_longterm_of_file(struct kunit *test)
{
	static const unsigned long kinds[] = { MAP_SHARED, MAP_PRIVATE };
	unsigned int k, data, pins = 0;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct user_mm *u = test->priv;
		struct file *file = pgtable_kunit_shmem_file("gup_fast", PAGE_SIZE);
		unsigned long addr, before;
		struct page *page;

		KUNIT_ASSERT_FALSE(test, IS_ERR(file));
		addr = vm_mmap(file, USER_ADDR, PAGE_SIZE, PROT_READ | PROT_WRITE,
			       kinds[k] | MAP_FIXED, 0);
		fput(file);
		KUNIT_ASSERT_EQ(test, addr, USER_ADDR);
		KUNIT_ASSERT_EQ(test, 0, get_user(data, (unsigned int __user *)addr));
		before = pte_pfn(user_mm_pte(u, addr));
		KUNIT_ASSERT_EQ(test, 1,
				pin_user_pages_fast(addr, 1, FOLL_LONGTERM, &page));
		KUNIT_EXPECT_EQ(test, PageAnon(page), kinds[k] == MAP_PRIVATE);
		KUNIT_EXPECT_EQ(test, page_to_pfn(page) == before,
				kinds[k] == MAP_SHARED);
		KUNIT_EXPECT_EQ(test, page_to_pfn(page),
				pte_pfn(user_mm_pte(u, addr)));
		unpin_user_page(page);
		KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, PAGE_SIZE));
		pins++;
	}
	PGTABLE_KUNIT_DID(test, pins, "pins");
}

static struct kunit_case gup_fast_cases[] = {
	KUNIT_CASE_PARAM(gup_fast_every_range, gup_order_gen_params),
	KUNIT_CASE_PARAM(gup_fast_stops, gup_stop_gen_params),
	KUNIT_CASE_PARAM(pin_fast_unshares, gup_order_gen_params),
	KUNIT_CASE(pin_longterm_of_file),
	{}
};

static struct kunit_suite gup_fast_suite = {
	.name = "gup_fast",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = gup_fast_cases,
};

kunit_test_suite(gup_fast_suite);

MODULE_DESCRIPTION("KUnit tests for GUP-fast");
MODULE_LICENSE("GPL");
