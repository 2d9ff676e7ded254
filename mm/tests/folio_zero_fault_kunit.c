// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults on anonymous memory: whether and how often each page is cleared.
 *
 * If the page allocator has cleared a folio already (init_on_alloc=1), the
 * fault does not have to clear it again; older kernels clear it again. If
 * nothing clears the folio, user space reads old data of other processes. Each
 * case writes to memory of its own address space, in folios of each size that
 * anonymous memory can have. One case checks the content of the folio. The
 * other case records with kprobes which pages were cleared, and in which order,
 * after the allocation of the folio began. Both cases run with init_on_alloc
 * off and on.
 *
 * Not covered: user space, memory that is not anonymous, hugetlb, init_on_free.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	folio_zero_fault
 */

#include <kunit/test.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "clear_extent.h"

/* Where in a folio the fault occurs: the ends, the middle, and in between. */
#define FAULTS		7

/*
 * The number of events to keep: two calls for each page, and the page tables.
 */
#define EVENTS(nr)	(2 * (nr) + 64)

/* The number of folios to fill, so that a fault gets one of them. */
#define DIRTY_FOLIOS	4

static const struct fault_init {
	const char *desc;
	bool on_alloc;
} fault_inits[] = {
	{ "init_on_alloc=0", false },
	{ "init_on_alloc=1", true },
};

KUNIT_ARRAY_PARAM_DESC(fault_init, fault_inits, desc);

static bool fault_on_alloc(void)
{
	return want_init_on_alloc(0);
}

static void fault_set_on_alloc(bool on)
{
	if (on)
		static_branch_enable(&init_on_alloc);
	else
		static_branch_disable(&init_on_alloc);
}

static void fault_restore(void *data)
{
	const struct fault_init *init = data;

	fault_set_on_alloc(!init->on_alloc);
}

/*
 * The test can change the switch only if the kernel's constants are writable.
 */
static void fault_init_set(struct kunit *test)
{
	const struct fault_init *init = test->param_value;

	if (fault_on_alloc() == init->on_alloc)
		return;
	if (system_state >= SYSTEM_RUNNING)
		kunit_skip(test, "boot with %s", init->desc);
	fault_set_on_alloc(init->on_alloc);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, fault_restore,
						  (void *)init));
	KUNIT_ASSERT_EQ(test, fault_on_alloc(), init->on_alloc);
}

/*
 * Sizes of anonymous folios for which a case needs at most half of the memory.
 */
static bool fault_order_ok(unsigned int order)
{
	unsigned long pages = (FAULTS + DIRTY_FOLIOS) << order;

	return !order || (THP_ORDERS_ALL_ANON & BIT(order) &&
			  !thp_disabled_by_hw() &&
			  pages <= totalram_pages() / 2);
}

/* Fill the memory that a fault is likely to allocate. */
static void fault_make_dirty(struct kunit *test, unsigned int order)
{
	struct page *page[DIRTY_FOLIOS];
	unsigned int i;

	for (i = 0; i < DIRTY_FOLIOS; i++) {
		page[i] = alloc_pages(GFP_HIGHUSER_MOVABLE, order);
		KUNIT_ASSERT_NOT_NULL(test, page[i]);
		memset(page_address(page[i]), 0xff, PAGE_SIZE << order);
	}
	while (i--)
		__free_pages(page[i], order);
}

static unsigned int fault_index(unsigned int nr, unsigned int i)
{
	const unsigned int index[FAULTS] = {
		0, 1, nr / 4, nr / 2, nr / 2 + 1, nr - 2, nr - 1,
	};

	return index[i] % nr;
}

/*
 * The number of bytes that all faults need, plus one folio for the alignment.
 */
static size_t fault_room(unsigned int order)
{
	return (FAULTS + 1) * (PAGE_SIZE << order);
}

/* Map memory for all faults, so that they allocate folios of this order. */
static unsigned long fault_mmap(struct kunit *test, unsigned int order)
{
	unsigned long addr;

	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, false);
	addr = kunit_vm_mmap(test, NULL, 0, fault_room(order),
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	return addr;
}

/* The address of the n-th fault. */
static unsigned long fault_addr(unsigned long addr, unsigned int order,
				unsigned int n, unsigned int index)
{
	unsigned long size = PAGE_SIZE << order;

	return ALIGN(addr, size) + n * size + index * PAGE_SIZE;
}

/*
 * Write a zero to a page. Takes a reference to the folio for the caller. The
 * test fails if the folio does not have the expected size.
 */
static struct folio *fault_in(struct kunit *test, unsigned int order,
			      unsigned long addr)
{
	struct folio *folio;
	struct page *page;

	KUNIT_ASSERT_EQ(test, 0, put_user(0, (u8 __user *)addr));
	KUNIT_ASSERT_EQ(test, 1, get_user_pages_fast(addr, 1, FOLL_WRITE, &page));
	folio = page_folio(page);
	if (folio_order(folio) != order) {
		folio_put(folio);
		KUNIT_FAIL_AND_ABORT(test, "no folio of order %u", order);
	}
	return folio;
}

/*
 * A page fault leaves no byte of old content, wherever in the folio the fault
 * occurs, for folios of each size.
 */
static void fault_leaves_nothing(struct kunit *test)
{
	unsigned int order, i, faults = 0;

	fault_init_set(test);
	for (order = 0; order <= PMD_ORDER; order++) {
		unsigned int nr = 1U << order;
		unsigned long addr;

		if (!fault_order_ok(order))
			continue;
		addr = fault_mmap(test, order);
		for (i = 0; i < FAULTS; i++) {
			unsigned int index = fault_index(nr, i);
			struct folio *folio;
			void *bad;

			fault_make_dirty(test, order);
			folio = fault_in(test, order,
					 fault_addr(addr, order, i, index));
			bad = memchr_inv(folio_address(folio), 0, folio_size(folio));
			KUNIT_EXPECT_PTR_EQ_MSG(test, bad, NULL,
						"order %u, fault in page %u",
						order, index);
			folio_put(folio);
			faults++;
		}
		KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, fault_room(order)));
	}
	PGTABLE_KUNIT_DID(test, faults, "faults");
}

struct fault_fixture {
	struct kunit *test;
	struct clear_record *record;
	unsigned int *want;
	unsigned int dirty;
};

/*
 * The record of the folio must first show the pages that the allocator clears,
 * from start to end, and then the pages that the fault clears.
 */
static void fault_check(struct fault_fixture *f, struct folio *folio,
			unsigned int index, bool by_alloc, bool by_fault)
{
	unsigned int nr = folio_nr_pages(folio), i, j, n = 0;
	unsigned int clears = nr * (by_alloc + by_fault);

	for (i = 0; by_alloc && i < nr; i++)
		f->want[i] = i;
	if (by_fault)
		clear_order_zero(f->want + nr * by_alloc, nr, index);

	KUNIT_ASSERT_LE(f->test, f->record->nr, f->record->max);
	for (i = 0; i < f->record->nr; i++) {
		const struct clear_event *event = &f->record->event[i];

		if (event->pfn < folio_pfn(folio) ||
		    event->pfn >= folio_pfn(folio) + nr)
			continue;
		f->dirty += event->from == ULONG_MAX;
		for (j = 0; j < event->nr; j++, n++) {
			unsigned long page = event->pfn + j - folio_pfn(folio);

			if (n < clears && f->want[n] == page)
				continue;
			KUNIT_FAIL(f->test,
				   "%u pages, fault in page %u: call %u of %u is for page %lu, expected %d",
				   nr, index, n, clears, page,
				   n < clears ? f->want[n] : -1);
			return;
		}
	}
	KUNIT_EXPECT_EQ_MSG(f->test, n, clears,
			    "number of cleared pages; %u pages, fault in page %u", nr, index);
}

/*
 * The fault clears each page once, and clears the written page among the last.
 * With init_on_alloc=1 the allocator clears all pages, and the fault clears
 * none. Only older kernels clear large folios a second time.
 */
static void fault_clears_once(struct kunit *test)
{
	const struct fault_init *init = test->param_value;
	struct fault_fixture f = { .test = test };
	unsigned int order = PMD_ORDER, i, faults = 0;

	while (!fault_order_ok(order))
		order--;
	fault_init_set(test);
	f.want = kunit_kcalloc(test, 2UL << order, sizeof(*f.want), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f.want);
	f.record = clear_record_alloc(test, CLEAR_EVENT_CLEAR,
				      EVENTS(1U << order));

	do {
		bool gfp_zero = !order && PGTABLE_KUNIT_ALLOC_ZEROED;
		unsigned int nr = 1U << order;
		unsigned long addr;

		if (!fault_order_ok(order))
			continue;
		addr = fault_mmap(test, order);
		for (i = 0; i < FAULTS; i++) {
			unsigned int index = fault_index(nr, i);
			struct folio *folio;

			fault_make_dirty(test, order);
			f.record->nr = 0;
			folio = fault_in(test, order,
					 fault_addr(addr, order, i, index));
			fault_check(&f, folio, index, gfp_zero || init->on_alloc,
				    !gfp_zero && !(init->on_alloc &&
						   PGTABLE_KUNIT_NEEDS_ZEROING));
			folio_put(folio);
			faults++;
		}
		KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, fault_room(order)));
	} while (order--);
	PGTABLE_KUNIT_DID(test, faults, "faults");
	PGTABLE_KUNIT_DID(test, f.dirty, "calls that cleared dirty pages");
}

static struct kunit_case folio_zero_fault_cases[] = {
	KUNIT_CASE_PARAM_ATTR(fault_leaves_nothing, fault_init_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM_ATTR(fault_clears_once, fault_init_gen_params,
			      PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite folio_zero_fault_suite = {
	.name = "folio_zero_fault",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = folio_zero_fault_cases,
};

kunit_test_suite(folio_zero_fault_suite);

MODULE_DESCRIPTION("KUnit tests for the clearing of pages in page faults");
MODULE_LICENSE("GPL");
