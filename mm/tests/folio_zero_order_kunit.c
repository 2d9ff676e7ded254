// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which folio_zero_user() and copy_user_large_folio() handle
 * pages.
 *
 * The page that is used next is cleared or copied last, or among the last, so
 * that it stays in the caches. A kernel without preemption gets chances to run
 * another task meanwhile. The content of the folio shows neither the order nor
 * these chances. So kprobes record each call that clears or copies a page, and
 * each chance to reschedule. The cases compare the record with an order that is
 * computed in another way.
 *
 * Newer kernels clear ranges. On arm64 ranges are made of single pages, and the
 * record has the single pages. On x86_64 the record has ranges, but only in
 *
 *   ./tools/testing/kunit/kunit.py run --arch=x86_64 --kunitconfig=mm/tests \
 *	'folio_zero*' --kernel_args clearcpuid=erms,rep_good
 *
 * since pages are cleared inline otherwise. Not covered: the caches themselves.
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/preempt.h>

#include "clear_extent.h"

/*
 * The largest order here is one above the page allocator's largest order: the
 * kernel handles such a folio on another path.
 */
#define ORDER_MAX	(MAX_PAGE_ORDER + 1)

/*
 * The number of events to keep: one call and its other events for each page,
 * and some more.
 */
#define EVENTS(nr)	(2 * (nr) + 16)

/*
 * Sizes that are tried with all hints, and larger sizes that are tried with
 * some.
 */
static const struct order_size {
	const char *desc;
	unsigned int order;
	bool some;
} order_sizes[] = {
	{ "order 0", 0 },
	{ "order 1", 1 },
	{ "order 2", 2 },
	{ "order 3", 3 },
	{ "order 4", 4 },
	{ "order 9", 9 },
	{ "largest order", MAX_PAGE_ORDER, true },
	{ "gigantic", ORDER_MAX, true },
};

KUNIT_ARRAY_PARAM_DESC(order_size, order_sizes, desc);

struct order_fixture {
	struct kunit *test;
	struct clear_record *record;
	struct clear_extent *extent;
	struct folio *folio;
	unsigned int *want;
};

static bool order_possible(unsigned int order)
{
	return order <= PGTABLE_KUNIT_MAX_FOLIO_ORDER && clear_extent_fits(order);
}

static struct order_fixture order_fixture(struct kunit *test,
					  struct clear_record *record,
					  unsigned int order)
{
	struct order_fixture f = { .test = test, .record = record };

	f.extent = clear_extent_alloc(test, order);
	f.folio = clear_extent_folio(f.extent);
	f.want = kunit_kcalloc(test, f.extent->nr, sizeof(*f.want), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f.want);
	return f;
}

/* For a case with one size, and one kind of events. */
static struct order_fixture order_fixture_of(struct kunit *test,
					     enum clear_event_kind kind)
{
	const struct order_size *size = test->param_value;
	unsigned int order = size->order;

	if (!order_possible(order))
		kunit_skip(test, "order %u is too large for this machine, or this kernel",
			   order);
	return order_fixture(test, clear_record_alloc(test, kind,
						      EVENTS(1U << order)),
			     order);
}

/* For a case with all sizes: the next size that this machine supports. */
static const struct order_size *order_next_size(const struct order_size *size)
{
	for (size = size ? size + 1 : order_sizes;
	     size < order_sizes + ARRAY_SIZE(order_sizes); size++) {
		if (order_possible(size->order))
			return size;
	}
	return NULL;
}

/*
 * The next hint to try: all pages; in large folios the first and the last eight
 * pages, the middle, and every 97th.
 */
static unsigned int order_next_hint(unsigned int nr, unsigned int hint,
				    bool some)
{
	do {
		hint++;
	} while (some && hint >= 8 && hint + 8 < nr && hint % 97 &&
		 abs_diff(hint, nr / 2) > 3);
	return hint;
}

static unsigned long order_addr(unsigned int page)
{
	return 3UL * SZ_4G + page * PAGE_SIZE + 123;
}

/*
 * Compare the events of one kind with the expected pages. An event of several
 * pages counts as several, in ascending order. Pages outside of the folio have
 * other uses, such as page tables.
 */
static bool order_same(struct order_fixture *f, enum clear_event_kind kind,
		       unsigned int hint)
{
	unsigned long first = page_to_pfn(f->extent->page);
	unsigned int nr = f->extent->nr, i, j, n = 0;

	if (f->record->nr > f->record->max) {
		KUNIT_FAIL(f->test, "page %u of %u: %u events are too many", hint,
			   nr, f->record->nr);
		return false;
	}
	for (i = 0; i < f->record->nr; i++) {
		const struct clear_event *event = &f->record->event[i];

		if (event->kind != kind)
			continue;
		for (j = 0; j < event->nr; j++, n++) {
			unsigned long page = event->pfn + j - first;

			if (n < nr && page == f->want[n])
				continue;
			KUNIT_FAIL(f->test,
				   "page %u of %u is used next: call %u is for page %ld, expected %d",
				   hint, nr, n, (long)page, n < nr ? f->want[n] : -1);
			return false;
		}
	}
	KUNIT_EXPECT_EQ_MSG(f->test, n, nr, "page %u of %u is used next", hint, nr);
	return n == nr;
}

/*
 * Each page is cleared once, in the kernel's documented order, for every page
 * that may be used next. This includes a page at either end, where a group is
 * empty, and folios that are not larger than the neighbourhood that comes last.
 */
static void folio_zero_user_order(struct kunit *test)
{
	const struct order_size *size = test->param_value;
	struct order_fixture f = order_fixture_of(test, CLEAR_EVENT_CLEAR);
	unsigned int hint, calls = 0, clears = 0;

	for (hint = 0; hint < f.extent->nr;
	     hint = order_next_hint(f.extent->nr, hint, size->some)) {
		clear_order_zero(f.want, f.extent->nr, hint);
		f.record->nr = 0;
		folio_zero_user(f.folio, order_addr(hint));
		if (!order_same(&f, CLEAR_EVENT_CLEAR, hint))
			return;
		clears = max(clears, f.record->nr);
		calls++;
	}
	kunit_info(test, "number folio_zero_user %s pages=%u clears=%u\n",
		   size->desc, f.extent->nr, clears);
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/* The groups that are not empty: on the right, on the left, and near. */
static unsigned int order_groups(unsigned int nr, unsigned int hint)
{
	return 1 + (hint + 2 < nr - 1) + (hint > 2);
}

/*
 * A newer kernel with preemption clears each of the three groups of pages with
 * one call. So there are at most three calls, and only one call if the
 * neighbourhood is the whole folio. No call has a count of 0.
 */
static void folio_zero_user_extents(struct kunit *test)
{
	const struct order_size *size = NULL;
	struct clear_record *record;
	unsigned int calls = 0;

	if (!PGTABLE_KUNIT_ZERO_EXTENTS)
		kunit_skip(test, "this kernel clears page by page");
	if (!IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "this architecture clears page by page");
	if (!preempt_model_preemptible())
		kunit_skip(test, "this kernel is not preemptible");
	record = clear_record_alloc(test, CLEAR_EVENT_CLEAR, EVENTS(1));

	while ((size = order_next_size(size))) {
		struct order_fixture f = order_fixture(test, record, size->order);
		unsigned int nr = f.extent->nr, hint, i;

		for (hint = 0; hint < nr;
		     hint = order_next_hint(nr, hint, size->some)) {
			record->nr = 0;
			folio_zero_user(f.folio, order_addr(hint));
			KUNIT_ASSERT_EQ_MSG(test, record->nr,
					    order_groups(nr, hint),
					    "page %u of %u is used next", hint, nr);
			for (i = 0; i < record->nr; i++)
				KUNIT_EXPECT_GT(test, record->event[i].nr, 0);
			calls++;
		}
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/*
 * Copies go from far to near, and the page that is used next comes last. Each
 * page is copied once, from the same page of the original.
 */
static void copy_user_large_folio_order(struct kunit *test)
{
	const struct order_size *size = test->param_value;
	struct order_fixture f = order_fixture_of(test, CLEAR_EVENT_COPY);
	struct clear_extent *from = clear_extent_alloc(test, size->order);
	struct folio *src = clear_extent_folio(from);
	long apart = page_to_pfn(from->page) - page_to_pfn(f.extent->page);
	struct vm_area_struct vma = {};
	unsigned int hint, i, calls = 0;

	for (hint = 0; hint < f.extent->nr;
	     hint = order_next_hint(f.extent->nr, hint, size->some)) {
		clear_order_copy(f.want, f.extent->nr, hint);
		f.record->nr = 0;
		KUNIT_EXPECT_EQ(test, 0,
				copy_user_large_folio(f.folio, src,
						      order_addr(hint), &vma));
		if (!order_same(&f, CLEAR_EVENT_COPY, hint))
			return;
		for (i = 0; i < f.record->nr; i++) {
			const struct clear_event *event = &f.record->event[i];

			KUNIT_ASSERT_EQ(test, (long)(event->from - event->pfn),
					apart);
		}
		calls++;
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/*
 * If memory cannot be read, the copy ends with an error, and no further page is
 * copied. The case simulates the error at each page of the folio in turn, if
 * the architecture's copy can report errors.
 */
static void copy_user_large_folio_error(struct kunit *test)
{
	const unsigned int order = 4, hint = 5;	/* hint: before the middle */
	struct order_fixture f;
	struct clear_extent *from;
	struct folio *src;
	struct vm_area_struct vma = {};
	unsigned int i;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_COPY_MC) || !IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "copies report no errors on this architecture");
	if (IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "the kernel would poison the page: CONFIG_MEMORY_FAILURE=y");
	f = order_fixture(test, clear_record_alloc(test, CLEAR_EVENT_COPY,
						   EVENTS(1U << order)), order);
	from = clear_extent_alloc(test, order);
	src = clear_extent_folio(from);
	clear_order_copy(f.want, f.extent->nr, hint);

	for (i = 0; i < f.extent->nr; i++) {
		clear_record_fail_copy(page_to_pfn(f.extent->page) + f.want[i]);
		f.record->nr = 0;
		KUNIT_EXPECT_EQ(test, -EHWPOISON,
				copy_user_large_folio(f.folio, src,
						      order_addr(hint), &vma));
		KUNIT_EXPECT_EQ_MSG(test, f.record->nr, i + 1,
				    "copies up to the page that fails");
	}
	clear_record_fail_copy(0);
	f.record->nr = 0;
	KUNIT_EXPECT_EQ(test, 0, copy_user_large_folio(f.folio, src,
						       order_addr(hint), &vma));
	KUNIT_EXPECT_EQ(test, f.record->nr, f.extent->nr);
	PGTABLE_KUNIT_DID(test, i, "places");
}

/* Returns the largest number of pages between two chances to reschedule. */
static unsigned int order_longest(const struct clear_record *record)
{
	unsigned int i, pages = 0, longest = 0;

	for (i = 0; i < record->nr; i++) {
		if (record->event[i].kind == CLEAR_EVENT_RESCHED)
			pages = 0;
		else
			pages += record->event[i].nr;
		longest = max(longest, pages);
	}
	return longest;
}

/* Copy the folio onto itself: only the order of events is checked. */
static int order_copy_itself(struct folio *folio, unsigned long addr)
{
	struct vm_area_struct vma = {};

	return copy_user_large_folio(folio, folio, addr, &vma);
}

static int order_zero(struct folio *folio, unsigned long addr)
{
	folio_zero_user(folio, addr);
	return 0;
}

static const struct {
	const char *desc;
	int (*call)(struct folio *folio, unsigned long addr);
} order_functions[] = {
	{ "folio_zero_user", order_zero },
	{ "copy_user_large_folio", order_copy_itself },
};

/* The copy of a gigantic page has no check that sleeping is allowed. */
static bool order_sleeps(const struct order_size *size, unsigned int function)
{
	return order_functions[function].call == order_zero ||
	       size->order <= MAX_PAGE_ORDER;
}

/* If the folio is large enough, the page that is used next is not at an end. */
static void order_call(struct order_fixture *f, unsigned int function)
{
	unsigned long addr = order_addr(min(5U, f->extent->nr - 1));

	f->record->nr = 0;
	KUNIT_EXPECT_EQ(f->test, 0, order_functions[function].call(f->folio, addr));
	KUNIT_ASSERT_LE(f->test, f->record->nr, f->record->max);
}

static unsigned int order_chances(const struct clear_record *record)
{
	unsigned int i, chances = 0;

	for (i = 0; i < record->nr; i++)
		chances += record->event[i].kind == CLEAR_EVENT_RESCHED;
	return chances;
}

/*
 * A kernel without preemption checks before each page whether another task
 * should run. So it has as many chances as there are pages, and one more if the
 * check for sleeping is such a chance too. It never handles two pages between
 * two chances. A kernel with preemption has no such checks.
 */
static void folio_zero_user_resched(struct kunit *test)
{
	const struct order_size *size = NULL;
	struct clear_record *record;
	unsigned int chances = 0;

	if (preempt_model_preemptible())
		kunit_skip(test, "this kernel is preemptible");
	record = clear_record_alloc(test, CLEAR_EVENT_CLEAR | CLEAR_EVENT_COPY |
				    CLEAR_EVENT_RESCHED, EVENTS(1U << ORDER_MAX));

	while ((size = order_next_size(size))) {
		struct order_fixture f = order_fixture(test, record, size->order);
		unsigned int i, want;

		for (i = 0; i < ARRAY_SIZE(order_functions); i++) {
			order_call(&f, i);
			want = f.extent->nr;
			if (preempt_model_voluntary() && order_sleeps(size, i))
				want++;
			KUNIT_EXPECT_EQ_MSG(test, order_chances(record), want,
					    "%s, %s", size->desc,
					    order_functions[i].desc);
			KUNIT_EXPECT_EQ_MSG(test, order_longest(record), 1,
					    "pages before a chance to reschedule, %s, %s",
					    size->desc, order_functions[i].desc);
			chances += want;
		}
	}
	kunit_info(test, "%u chances\n", chances);
}

/*
 * Both functions check before the first page whether sleeping is allowed. So a
 * caller that holds a spinlock gets a warning on every machine, even where the
 * function would not sleep.
 */
static void folio_zero_user_might_sleep(struct kunit *test)
{
	const struct order_size *size = NULL;
	struct clear_record *record;
	unsigned int i, calls = 0;

	if (!IS_ENABLED(CONFIG_DEBUG_ATOMIC_SLEEP))
		kunit_skip(test, "needs CONFIG_DEBUG_ATOMIC_SLEEP");
	record = clear_record_alloc(test, CLEAR_EVENT_CLEAR | CLEAR_EVENT_COPY |
				    CLEAR_EVENT_SLEEP, EVENTS(1U << ORDER_MAX));

	while ((size = order_next_size(size))) {
		struct order_fixture f = order_fixture(test, record, size->order);

		for (i = 0; i < ARRAY_SIZE(order_functions); i++) {
			if (!order_sleeps(size, i))
				continue;
			order_call(&f, i);
			KUNIT_EXPECT_GT(test, record->nr, 1);
			KUNIT_EXPECT_EQ_MSG(test, record->event[0].kind,
					    CLEAR_EVENT_SLEEP, "%s, %s",
					    size->desc, order_functions[i].desc);
			calls++;
		}
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

static struct kunit_case folio_zero_order_cases[] = {
	KUNIT_CASE_PARAM_ATTR(folio_zero_user_order, order_size_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_SLOW(folio_zero_user_extents),
	KUNIT_CASE_PARAM_ATTR(copy_user_large_folio_order, order_size_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE(copy_user_large_folio_error),
	KUNIT_CASE(folio_zero_user_resched),
	KUNIT_CASE(folio_zero_user_might_sleep),
	{}
};

static struct kunit_suite folio_zero_order_suite = {
	.name = "folio_zero_order",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = folio_zero_order_cases,
};

kunit_test_suite(folio_zero_order_suite);

MODULE_DESCRIPTION("KUnit tests for the order in which folios are cleared and copied");
MODULE_LICENSE("GPL");
