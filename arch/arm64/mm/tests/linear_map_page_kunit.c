// SPDX-License-Identifier: GPL-2.0
/*
 * Permissions that change for single pages of the kernel.
 *
 * The kernel removes secret memory from the linear map page by page, and makes
 * the pages of kernel code read-only there. set_direct_map_*() makes a page
 * inaccessible in the linear map. set_memory_*() changes pages of vmalloc().
 * With rodata=full, a page that they make read-only becomes read-only in the
 * linear map too. Otherwise the kernel could write to the page through its
 * address in the linear map.
 *
 * Each case has a few pages, changes some of them, and checks each page: its
 * entry, and whether a write takes effect. Writes before each change put the
 * old entry into the TLB.
 *
 * The last case frees vmalloc() memory and uses its addresses again.
 *
 * Not covered: blocks that have to be split first (linear_map_split), and
 * lazily unmapped areas, which may map the same pages.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 linear_map_page
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/set_memory.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/mmu_context.h>
#include <asm/tlbflush.h>

#include "linear_map.h"

#define ORDER 2
#define PAGES BIT(ORDER)

static u64 page_entry(const void *addr)
{
	return lmap_leaf(&init_mm, (unsigned long)addr).val;
}

static bool can_write(void *addr)
{
	unsigned long word = 1;

	return !copy_to_kernel_nofault(addr, &word, sizeof(word));
}

/*
 * Check that pages [first, end) are inaccessible in the linear map, and that
 * all other pages are accessible.
 */
static void expect_hidden(struct kunit *test, struct page *page,
			  unsigned int first, unsigned int end)
{
	for (unsigned int i = 0; i < PAGES; i++) {
		bool shown = i < first || i >= end;

		KUNIT_EXPECT_EQ_MSG(test, kernel_page_present(page + i), shown,
				    "page %u; pages [%u, %u) must be hidden", i, first, end);
		KUNIT_EXPECT_EQ_MSG(test, can_write(page_address(page + i)), shown,
				    "page %u; pages [%u, %u) must be hidden", i, first, end);
	}
}

/*
 * Four pages become inaccessible one by one, and then accessible one by one. At
 * each step only this page changes, kernel_page_present() agrees, and a page
 * that is not present cannot be written to.
 */
static void set_direct_map_each_page(struct kunit *test)
{
	struct page *page;
	unsigned int i;

	if (!can_set_direct_map())
		kunit_skip(test, "this boot never changes single pages of the linear map");
	page = alloc_pages(GFP_KERNEL, ORDER);
	KUNIT_ASSERT_NOT_NULL(test, page);
	expect_hidden(test, page, 0, 0);
	for (i = 0; i < PAGES; i++) {
		unsigned long addr = (unsigned long)page_address(page + i);

		KUNIT_EXPECT_EQ(test, set_direct_map_invalid_noflush(page + i), 0);
		flush_tlb_kernel_range(addr, addr + PAGE_SIZE);
		expect_hidden(test, page, 0, i + 1);
	}
	for (i = 0; i < PAGES; i++) {
		KUNIT_EXPECT_EQ(test, set_direct_map_default_noflush(page + i), 0);
		expect_hidden(test, page, i + 1, PAGES);
	}
	__free_pages(page, ORDER);
}

/*
 * Before the kernel has checked all CPUs, it does not use features that only
 * some of them may have, such as break-before-make level 3.
 */
static struct {
	bool known;		/* the kernel has checked the CPUs */
	unsigned long size;	/* of the entry that maps the page at first */
	int hide;
	bool hidden;
	int show;
	bool shown;
} early;

static int __init hide_early(void)
{
	struct page *page;
	unsigned long addr;

	if (!can_set_direct_map())
		return 0;
	page = alloc_pages(GFP_KERNEL, 0);
	if (!page)
		return 0;
	addr = (unsigned long)page_address(page);
	early.known = system_capabilities_finalized();
	early.size = lmap_leaf(&init_mm, addr).size;
	early.hide = set_direct_map_invalid_noflush(page);
	flush_tlb_kernel_range(addr, addr + PAGE_SIZE);
	early.hidden = !kernel_page_present(page) && !can_write(page_address(page));
	early.show = set_direct_map_default_noflush(page);
	early.shown = kernel_page_present(page) && can_write(page_address(page));
	if (early.shown)
		__free_pages(page, 0);
	return 0;
}
early_initcall(hide_early);

/*
 * A page becomes inaccessible and accessible again while only the first CPU
 * runs. Drivers of a confidential guest need this early change. A block that
 * maps the page is split. Before commit f12b435de2f2 the kernel split no block
 * before it had checked all CPUs, and the change failed.
 */
static void set_direct_map_early(struct kunit *test)
{
	if (!can_set_direct_map())
		kunit_skip(test, "this boot never changes single pages of the linear map");
	KUNIT_EXPECT_FALSE_MSG(test, early.known, "the change was not early");
	KUNIT_EXPECT_EQ(test, early.hide, 0);
	KUNIT_EXPECT_TRUE(test, early.hidden);
	KUNIT_EXPECT_EQ(test, early.show, 0);
	KUNIT_EXPECT_TRUE(test, early.shown);
	PGTABLE_KUNIT_DID(test, early.size / PAGE_SIZE,
			  "pages of the entry that mapped the page");
}

/* Pages of an area, one bit each. */
#define ALL GENMASK(PAGES - 1, 0)

static const struct page_range {
	unsigned int first;
	unsigned int nr;
} ranges[] = {
	{ 0, PAGES }, { 0, 1 }, { 1, 2 }, { PAGES - 1, 1 },
};

/*
 * Check that the pages of @ro are read-only and all others are writable, in the
 * mapping of vmalloc() and, with rodata=full, in the linear map. The last call
 * changed the pages of @changed. Returns how many of the pages not in @changed
 * have the wrong permission in the linear map.
 */
static unsigned int expect_read_only(struct kunit *test, char *area,
				     unsigned long ro, unsigned long changed)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; i < PAGES; i++) {
		char *addr = area + i * PAGE_SIZE;
		void *alias = page_address(vmalloc_to_page(addr));
		bool alias_ro = rodata_full && ro & BIT(i);

		KUNIT_EXPECT_EQ_MSG(test, !!(page_entry(addr) & PTE_RDONLY),
				    !!(ro & BIT(i)), "page %u, read-only %#lx", i, ro);
		KUNIT_EXPECT_EQ_MSG(test, can_write(addr), !(ro & BIT(i)),
				    "page %u, read-only %#lx", i, ro);
		if (changed & BIT(i))
			KUNIT_EXPECT_EQ_MSG(test, can_write(alias), !alias_ro,
					    "page %u in the linear map, read-only %#lx",
					    i, ro);
		else
			wrong += can_write(alias) == alias_ro;
	}
	return wrong;
}

/*
 * One call makes several pages inaccessible in the linear map, and one call
 * makes them accessible again. These are all pages, the first page, two pages
 * in the middle, or the last page. The pages next to them stay accessible. The
 * case itself makes no TLB invalidation.
 */
static void set_direct_map_valid_range(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_HAS_DIRECT_MAP_VALID
	struct page *page;

	if (!can_set_direct_map())
		kunit_skip(test, "this boot never changes single pages of the linear map");
	page = alloc_pages(GFP_KERNEL, ORDER);
	KUNIT_ASSERT_NOT_NULL(test, page);
	for (unsigned int i = 0; i < ARRAY_SIZE(ranges); i++) {
		unsigned int first = ranges[i].first, nr = ranges[i].nr;

		expect_hidden(test, page, 0, 0);
		KUNIT_EXPECT_EQ(test, 0,
				set_direct_map_valid_noflush(page + first, nr, false));
		expect_hidden(test, page, first, first + nr);
		KUNIT_EXPECT_EQ(test, 0,
				set_direct_map_valid_noflush(page + first, nr, true));
	}
	expect_hidden(test, page, 0, 0);
	__free_pages(page, ORDER);
#else
	kunit_skip(test, "no set_direct_map_valid_noflush()");
#endif
}

/*
 * set_memory_ro() makes pages of vmalloc() read-only, and set_memory_rw() makes
 * them writable again. The range is all pages, the first page, two pages in the
 * middle, or the last page. With rodata=full the same pages, and no others,
 * change in the linear map too. Known issue 21: all pages of the area change in
 * the linear map.
 */
static void set_memory_ro_and_alias(struct kunit *test)
{
	unsigned int closed = 0, opened = 0, beside = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(ranges); i++) {
		unsigned int first = ranges[i].first, nr = ranges[i].nr;
		unsigned long mask = GENMASK(first + nr - 1, first);
		char *area = vmalloc(PAGES * PAGE_SIZE);
		unsigned long all = (unsigned long)area;
		unsigned long part = all + first * PAGE_SIZE;

		KUNIT_ASSERT_NOT_NULL(test, area);
		beside += PAGES - nr;
		expect_read_only(test, area, 0, ALL);
		KUNIT_EXPECT_EQ(test, set_memory_ro(part, nr), 0);
		closed += expect_read_only(test, area, mask, mask);
		KUNIT_EXPECT_EQ(test, set_memory_rw(part, nr), 0);
		expect_read_only(test, area, 0, ALL);

		KUNIT_EXPECT_EQ(test, set_memory_ro(all, PAGES), 0);
		expect_read_only(test, area, ALL, ALL);
		KUNIT_EXPECT_EQ(test, set_memory_rw(part, nr), 0);
		opened += expect_read_only(test, area, ALL & ~mask, mask);
		KUNIT_EXPECT_EQ(test, set_memory_rw(all, PAGES), 0);
		expect_read_only(test, area, 0, ALL);
		vfree(area);
	}
	PGTABLE_KUNIT_DID(test, beside, "pages beside a range");
	if (closed == beside && opened == beside) {
		pgtable_kunit_known_issue(test, 21,
					  "%u pages next to a range change with it in the linear map",
					  beside);
		return;
	}
	KUNIT_EXPECT_EQ_MSG(test, closed, 0, "pages next to a range became read-only");
	KUNIT_EXPECT_EQ_MSG(test, opened, 0, "pages next to a range became writable");
	if (rodata_full && pgtable_kunit_has_issue(21))
		pgtable_kunit_stale_issue(test, 21);
}

/*
 * set_memory_x() and set_memory_nx() change only their pages, and nothing in the
 * linear map, where memory is never executable.
 */
static void set_memory_x_not_alias(struct kunit *test)
{
	char *area = vmalloc(PAGES * PAGE_SIZE);
	unsigned long addr = (unsigned long)area + PAGE_SIZE;

	KUNIT_ASSERT_NOT_NULL(test, area);
	for (int round = 0; round < 2; round++) {
		KUNIT_EXPECT_EQ(test, round ? set_memory_nx(addr, 2) : set_memory_x(addr, 2), 0);
		for (unsigned int i = 0; i < PAGES; i++) {
			bool executable = !round && (i == 1 || i == 2);
			char *page = area + i * PAGE_SIZE;

			KUNIT_EXPECT_EQ_MSG(test, !(page_entry(page) & PTE_PXN),
					    executable, "page %u, round %d", i, round);
			KUNIT_EXPECT_TRUE_MSG(test, can_write(page), "page %u", i);
			page = page_address(vmalloc_to_page(page));
			KUNIT_EXPECT_TRUE_MSG(test, page_entry(page) & PTE_PXN,
					      "page %u, round %d", i, round);
		}
	}
	vfree(area);
}

/*
 * vfree() leaves its addresses in TLBs. The kernel invalidates these
 * translations before it uses the addresses again, so a write through a reused
 * address reaches the new page. vm_unmap_aliases() makes the kernel reuse the
 * addresses. The case keeps the pages of the first area meanwhile, so that the
 * second area has other pages. There are 64 rounds, and `make tlb` reports an
 * address that is reused while a TLB may hold it.
 */
#define AREAS 64

static void vmalloc_same_address(struct kunit *test)
{
	struct page *held[PAGES];
	unsigned int nr = 0;

	for (u64 round = 1; round <= AREAS; round++) {
		u64 *old = vmalloc(PAGES * PAGE_SIZE), *new;
		unsigned int i;

		KUNIT_ASSERT_NOT_NULL(test, old);
		for (i = 0; i < PAGES; i++) {
			u64 *page = (void *)old + i * PAGE_SIZE;

			WRITE_ONCE(*page, round);
			held[i] = vmalloc_to_page(page);
			get_page(held[i]);
		}
		vfree(old);
		vm_unmap_aliases();
		new = vmalloc(PAGES * PAGE_SIZE);
		for (i = 0; new && i < PAGES; i++) {
			u64 *page = (void *)new + i * PAGE_SIZE;
			u64 *linear = page_address(vmalloc_to_page(page));
			u64 *before = page_address(held[i]);

			WRITE_ONCE(*page, ~round);
			KUNIT_EXPECT_EQ(test, READ_ONCE(*linear), ~round);
			KUNIT_EXPECT_EQ(test, READ_ONCE(*before), round);
		}
		nr++;
		vfree(new);
		for (i = 0; i < PAGES; i++)
			put_page(held[i]);
		KUNIT_ASSERT_NOT_NULL(test, new);
	}
	PGTABLE_KUNIT_DID(test, nr, "areas freed, and others allocated");
}

static struct kunit_case linear_map_page_cases[] = {
	KUNIT_CASE(set_direct_map_each_page),
	KUNIT_CASE(set_direct_map_early),
	KUNIT_CASE(set_direct_map_valid_range),
	KUNIT_CASE(set_memory_ro_and_alias),
	KUNIT_CASE(set_memory_x_not_alias),
	KUNIT_CASE(vmalloc_same_address),
	{}
};

static struct kunit_suite linear_map_page_suite = {
	.name = "linear_map_page",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = linear_map_page_cases,
};

kunit_test_suite(linear_map_page_suite);

MODULE_DESCRIPTION("KUnit tests for permissions of single kernel pages");
MODULE_LICENSE("GPL");
