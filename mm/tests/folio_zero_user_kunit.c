// SPDX-License-Identifier: GPL-2.0
/*
 * The content of a folio after folio_zero_user() and copy_user_large_folio().
 *
 * Both functions take the address that will be used next, and handle the pages
 * around it last. That splits the folio into parts, and some parts may be
 * empty. An error at an edge leaves stale data for user space to read, or
 * destroys the pages before or after the folio. The cases clear and copy folios
 * of every size, with the address at every edge. Then they check all bytes of
 * the folio and of the memory around it. A folio that is larger than the
 * largest block of the page allocator is made from neighbouring blocks.
 *
 * Not covered: the order (folio_zero_order), page faults (folio_zero_fault),
 * the folios of hugetlb.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	folio_zero_user
 */

#include <kunit/test.h>
#include <linux/mm.h>

#include "clear_extent.h"

/*
 * The largest order here is one above the page allocator's largest order: the
 * kernel handles such a folio on another path.
 */
#define ORDER_MAX	(MAX_PAGE_ORDER + 1)

/* Memory up to this size is checked byte by byte after each call. */
#define BYTES_MAX	SZ_4M

static unsigned int zero_orders[ORDER_MAX + 1];

static PGTABLE_KUNIT_GEN_PARAMS(zero_order)
{
	const unsigned int *order = prev;
	unsigned int next = order ? *order + 1 : 0;

	if (next > ORDER_MAX)
		return NULL;
	zero_orders[next] = next;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u%s", next,
		 next > MAX_PAGE_ORDER ? ", gigantic" : "");
	return &zero_orders[next];
}

static unsigned int zero_order_get(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;

	if (order > PGTABLE_KUNIT_MAX_FOLIO_ORDER)
		kunit_skip(test, "this kernel has no folios of that size");
	if (!clear_extent_fits(order))
		kunit_skip(test, "this machine has no room for %lu MiB and the memory around them",
			   PAGE_SIZE << order >> 20);
	return order;
}

static enum clear_fill zero_fill(unsigned int nr)
{
	return nr * PAGE_SIZE > BYTES_MAX ? CLEAR_MARKS : CLEAR_WORDS;
}

/*
 * Pages that may be used next: both ends, the middle, and pages near these.
 * Near means at most one page farther than the neighbourhood that is cleared
 * last.
 */
static int zero_hint(unsigned int nr, unsigned int i)
{
	const int hints[] = {
		0, 1, 2, 3, 4,
		nr / 2 - 3, nr / 2 - 2, nr / 2 - 1, nr / 2, nr / 2 + 1,
		nr / 2 + 2, nr / 2 + 3,
		nr - 5, nr - 4, nr - 3, nr - 2, nr - 1,
	};

	return i < ARRAY_SIZE(hints) ? hints[i] : INT_MAX;
}

/* Addresses that name the same page of the folio in different ways. */
static const struct zero_address {
	const char *desc;
	unsigned long above;	/* a multiple of any folio's size */
	unsigned long offset;
} zero_addresses[] = {
	{ "offset in the folio", 0, 0 },
	{ "user address", SZ_4G * 3, 0 },
	{ "beyond user space", ULONG_MAX << 33, 0 },
	{ "byte 123", SZ_4G, 123 },
	{ "last byte of the page", SZ_4G * 5, PAGE_SIZE - 1 },
};

/*
 * The folio is cleared to its last byte, and nothing else is. The sizes range
 * from one page to more than the largest block of the page allocator. The page
 * that is used next is at either end, so that one side is empty, or in the
 * middle, where the order changes. Of the address, only the bits that select
 * the page matter: not the bits inside the page, and not the bits above the
 * folio's size.
 */
static void folio_zero_user_every_order(struct kunit *test)
{
	unsigned int order = zero_order_get(test), nr = 1U << order;
	struct clear_extent *extent = clear_extent_alloc(test, order);
	struct folio *folio = clear_extent_folio(extent);
	unsigned int i, j, calls = 0;
	int hint;

	for (i = 0; (hint = zero_hint(nr, i)) != INT_MAX; i++) {
		if (hint < 0 || hint >= nr)
			continue;
		for (j = 0; j < ARRAY_SIZE(zero_addresses); j++) {
			const struct zero_address *addr = &zero_addresses[j];

			clear_extent_fill(extent, zero_fill(nr));
			folio_zero_user(folio, addr->above + hint * PAGE_SIZE +
					       addr->offset);
			if (!clear_extent_check(extent, 0, nr,
						"order %u, page %d, %s", order,
						hint, addr->desc))
				return;
			calls++;
		}
	}
	clear_extent_fill(extent, CLEAR_WORDS);
	folio_zero_user(folio, 0);
	clear_extent_check(extent, 0, nr, "order %u, every byte", order);
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/*
 * Each page of a folio is the page that is used next. The folio is cleared to
 * its last byte, and nothing else is. There are two folios: one is hardly
 * larger than the neighbourhood that is cleared last, and one has the size of a
 * huge page with 4K pages.
 */
static void folio_zero_user_every_page(struct kunit *test)
{
	static const unsigned int orders[] = { 4, 9 };
	unsigned int i, hint, calls = 0;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		struct clear_extent *extent;
		struct folio *folio;

		if (!clear_extent_fits(orders[i])) {
			kunit_info(test, "order %u is too large\n", orders[i]);
			continue;
		}
		extent = clear_extent_alloc(test, orders[i]);
		folio = clear_extent_folio(extent);
		for (hint = 0; hint < extent->nr; hint++) {
			clear_extent_fill(extent, CLEAR_MARKS);
			folio_zero_user(folio, SZ_4G + hint * PAGE_SIZE);
			if (!clear_extent_check(extent, 0, extent->nr,
						"order %u, page %u", orders[i],
						hint))
				return;
			calls++;
		}
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/*
 * A copy equals the original to its last byte. The original and the memory
 * around both folios do not change. Sizes and addresses are the same as in the
 * case that clears.
 */
static void copy_user_large_folio_every_order(struct kunit *test)
{
	unsigned int order = zero_order_get(test), nr = 1U << order;
	struct clear_extent *to = clear_extent_alloc(test, order);
	struct clear_extent *from = clear_extent_alloc(test, order);
	struct folio *dst = clear_extent_folio(to);
	struct folio *src = clear_extent_folio(from);
	struct vm_area_struct vma = {};
	unsigned int i, calls = 0;
	int hint;

	for (i = 0; (hint = zero_hint(nr, i)) != INT_MAX; i++) {
		const struct zero_address *addr;

		if (hint < 0 || hint >= nr)
			continue;
		addr = &zero_addresses[i % ARRAY_SIZE(zero_addresses)];
		clear_extent_fill(to, CLEAR_ONES);
		clear_extent_fill(from, zero_fill(nr));
		KUNIT_EXPECT_EQ(test, 0,
				copy_user_large_folio(dst, src,
						      addr->above +
						      hint * PAGE_SIZE +
						      addr->offset, &vma));
		if (!clear_extent_check_copy(to, from, "order %u, page %d, %s",
					     order, hint, addr->desc))
			return;
		calls++;
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

static struct kunit_case folio_zero_user_cases[] = {
	KUNIT_CASE_PARAM_ATTR(folio_zero_user_every_order, zero_order_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_SLOW(folio_zero_user_every_page),
	KUNIT_CASE_PARAM_ATTR(copy_user_large_folio_every_order,
			      zero_order_gen_params, PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite folio_zero_user_suite = {
	.name = "folio_zero_user",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = folio_zero_user_cases,
};

kunit_test_suite(folio_zero_user_suite);

MODULE_DESCRIPTION("KUnit tests for folio_zero_user()");
MODULE_LICENSE("GPL");
