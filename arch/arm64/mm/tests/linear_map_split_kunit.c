// SPDX-License-Identifier: GPL-2.0
/*
 * Permissions that change in a part of the linear map.
 *
 * set_memory_valid() makes a range of pages inaccessible, and accessible again.
 * On a CPU with break-before-make level 3, newer kernels map memory by blocks,
 * and split each block that the range covers in part. They first split a block
 * into contiguous entries of the next level, so that the other entries stay as
 * large as possible. Each case plugs in its own memory, mapped by entries of
 * every size, and makes a range inaccessible. It compares each entry with a
 * model, which has the largest entries that contain no end of the range. If
 * single pages map the memory, no page outside of the range may change.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 linear_map_split \
 *	--kconfig_add=CONFIG_MEMORY_HOTPLUG=y \
 *	--kconfig_add=CONFIG_MEMORY_HOTREMOVE=y \
 *	--qemu_args '-cpu max,pauth-impdef=on,midr=0xc00fac30'
 *
 * Not covered: machines with CPUs of two kinds, on which the kernel splits the
 * whole map at boot.
 */

#include <linux/kernel.h>
#include <linux/kfence.h>
#include <linux/mm.h>
#include <linux/set_memory.h>
#include <linux/uaccess.h>
#include <asm/kfence.h>
#include <asm/tlbflush.h>

#include "linear_map.h"

/*
 * The pages at which a range begins and ends: pages around the ends of entries
 * of each size, counted from the start of the memory. With 4K pages a
 * contiguous block of pages is 64K, a contiguous block of PMDs is 32M, and all
 * of the memory is one block of 1G.
 */
static const struct split_range {
	const char *desc;
	unsigned long start;
	unsigned long size;
} split_ranges[] = {
	{ "first page", 0, PAGE_SIZE },
	{ "second page", PAGE_SIZE, PAGE_SIZE },
	{ "page in the middle of a block", PMD_SIZE / 2 + 5 * PAGE_SIZE, PAGE_SIZE },
	{ "last page of contiguous ones", CONT_PTE_SIZE - PAGE_SIZE, PAGE_SIZE },
	{ "last page of a block", PMD_SIZE - PAGE_SIZE, PAGE_SIZE },
	{ "contiguous pages", 3 * CONT_PTE_SIZE, CONT_PTE_SIZE },
	{ "two pages, of two contiguous blocks", CONT_PTE_SIZE - PAGE_SIZE,
	  2 * PAGE_SIZE },
	{ "two pages, of two blocks", PMD_SIZE - PAGE_SIZE, 2 * PAGE_SIZE },
	{ "all but the ends of a block", PAGE_SIZE, PMD_SIZE - 2 * PAGE_SIZE },
	{ "to the middle of a block", 0, PMD_SIZE / 2 },
};

/* Ranges for memory that has entries of all sizes. */
static const struct split_range split_large_ranges[] = {
	{ "block", PMD_SIZE, PMD_SIZE },
	{ "from and to the middle of blocks", PMD_SIZE + CONT_PTE_SIZE / 2,
	  2 * PMD_SIZE },
	{ "contiguous blocks", 0, CONT_PMD_SIZE },
	{ "last page of contiguous blocks", CONT_PMD_SIZE - PAGE_SIZE, PAGE_SIZE },
	{ "contiguous blocks but a page", PAGE_SIZE, CONT_PMD_SIZE - PAGE_SIZE },
};

KUNIT_ARRAY_PARAM_DESC(split, split_ranges, desc);
KUNIT_ARRAY_PARAM_DESC(split_large, split_large_ranges, desc);

static void split_cut(struct lmap_area *area, unsigned long start,
		      unsigned long size)
{
	area->cut[area->nr_cuts++] = start;
	area->cut[area->nr_cuts++] = start + size;
}

static void split_change(struct lmap_area *area, unsigned long start,
			 unsigned long size, bool valid)
{
	KUNIT_EXPECT_EQ(area->test, 0,
			set_memory_valid(start, size / PAGE_SIZE, valid));
}

static void split_run(struct kunit *test, const struct split_range *range)
{
	struct lmap_area area;
	unsigned long before;

	lmap_area_init(&area, test, lmap_area_large());
	if (range->start + range->size > area.size)
		kunit_skip(test, "the memory is not that large");
	KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
	lmap_area_check(&area, "plugged in");
	before = area.leaves;

	split_cut(&area, area.virt + range->start, range->size);
	area.invalid = area.virt + range->start;
	area.invalid_end = area.invalid + range->size;
	split_change(&area, area.invalid, range->size, false);
	lmap_area_check(&area, "taken away");

	/* The kernel never merges split entries again. */
	area.valid = area.invalid;
	area.valid_end = area.invalid_end;
	split_change(&area, area.valid, range->size, true);
	lmap_area_check(&area, "given back");
	kunit_info(test, "%lu entries became %lu\n", before, area.leaves);
	PGTABLE_KUNIT_DID(test, range->size / PAGE_SIZE, "pages");
	lmap_area_unplug(&area);
	lmap_area_check_empty(&area, "unplugged");
}

/*
 * set_memory_valid() splits blocks exactly where permissions change: at the
 * ends of each kind of range, and into entries no smaller than necessary. All
 * other entries of the memory keep their size, address and permissions.
 */
static void set_memory_valid_range(struct kunit *test)
{
	split_run(test, test->param_value);
}

/* The same for ranges that are larger than a block. */
static void set_memory_valid_large_range(struct kunit *test)
{
	split_run(test, test->param_value);
}

/*
 * A whole block is inaccessible. When one of its pages becomes accessible
 * again, the block is split, and its other pages stay inaccessible.
 */
static void set_memory_valid_part_of_invalid(struct kunit *test)
{
	struct lmap_area area;

	lmap_area_init(&area, test, lmap_area_large());
	KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
	area.invalid = area.virt;
	area.invalid_end = area.virt + area.size;
	split_change(&area, area.virt, area.size, false);
	lmap_area_check(&area, "all taken away");

	area.valid = area.virt + 7 * PAGE_SIZE;
	area.valid_end = area.valid + PAGE_SIZE;
	split_cut(&area, area.valid, PAGE_SIZE);
	split_change(&area, area.valid, PAGE_SIZE, true);
	lmap_area_check(&area, "a page given back");
	PGTABLE_KUNIT_DID(test, area.leaves, "entries");

	split_change(&area, area.virt, area.size, true);
	area.valid = area.virt;
	area.valid_end = area.invalid_end;
	lmap_area_check(&area, "all given back");
	lmap_area_unplug(&area);
}

/* A call of set_memory_valid() for two pages of two different blocks. */
struct split_call {
	unsigned long start;
	int err;
};

static void split_hide_two(void *data)
{
	struct split_call *call = data;

	call->err = set_memory_valid(call->start, 2, false);
}

/*
 * The ends of a range are in two blocks: each of these blocks needs a table,
 * and the larger block around them needs a table too. The allocation of one of
 * these tables fails. The call returns -ENOMEM, changes no permission, and
 * leaves a map in which each page has its address. Blocks that are already
 * split stay split, into whole contiguous blocks. The next call completes the
 * split.
 *
 *	 2M        2M        2M
 *	|---------|---------|---------|	fails: blocks that are not contiguous
 *	|-----xxxx|---------|---------|	or contiguous pages up to the first end
 *	         ^ range ^
 */
static void set_memory_valid_no_memory(struct kunit *test)
{
	unsigned int failed = 0, nth;
	struct lmap_area area;

	if (lmap_by_pages())
		kunit_skip(test, "single pages map the memory");
	lmap_alloc_watch(test);
	for (nth = 1; nth < 8; nth++) {
		struct split_call call = {};
		unsigned int first_end, tables;

		lmap_area_init(&area, test, lmap_area_large());
		/*
		 * A table for the entry around both blocks, if one entry maps
		 * them.
		 */
		first_end = area.size >= PUD_SIZE && pud_sect_supported() ? 2 : 1;
		KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
		call.start = area.virt + PMD_SIZE - PAGE_SIZE;
		lmap_alloc_fail(nth);
		if (pgtable_kunit_count_warnings(test, split_hide_two, &call) < 0) {
			lmap_alloc_fail(0);
			lmap_area_unplug(&area);
			kunit_skip(test, "no kunit_warning_suppress()");
		}
		tables = lmap_alloc_fail(0);
		if (!call.err) {
			KUNIT_EXPECT_EQ_MSG(test, tables, first_end + 1,
					    "tables that the split needs");
			lmap_area_unplug(&area);
			break;
		}
		failed++;
		KUNIT_EXPECT_EQ(test, call.err, -ENOMEM);
		if (nth > first_end)
			area.cut[area.nr_cuts++] = call.start;
		else if (nth == first_end)
			area.cut[area.nr_cuts++] = area.virt + PMD_SIZE;
		lmap_area_check(&area, "without memory");

		area.nr_cuts = 0;
		split_cut(&area, call.start, 2 * PAGE_SIZE);
		split_change(&area, call.start, 2 * PAGE_SIZE, false);
		area.invalid = call.start;
		area.invalid_end = call.start + 2 * PAGE_SIZE;
		lmap_area_check(&area, "with memory again");
		lmap_area_unplug(&area);
		lmap_area_check_empty(&area, "unplugged");
	}
	PGTABLE_KUNIT_DID(test, failed, "failed allocations");
	KUNIT_EXPECT_EQ(test, failed, nth - 1);
}

/* Pages of one or two blocks of the booted map. */
#define LIVE_ORDER	min_t(unsigned int, PMD_ORDER + 1, MAX_PAGE_ORDER)
#define LIVE_MOST	SZ_64M

static u64 live_tag(unsigned long i)
{
	return (i << 16) + 0x1234;
}

/*
 * Pages of memory in use become inaccessible, and accessible again: at the ends
 * of contiguous blocks and in the middle. After each change the content of all
 * other pages of the block is unchanged. The CPU reads this content through the
 * newly split entries.
 */
static void set_direct_map_live_block(struct kunit *test)
{
	unsigned long nr = BIT(LIVE_ORDER), hide[] = {
		0, 1, CONT_PTES - 1, nr / 2 + 1, nr - 1,
	};
	unsigned long entries = 0, old_size = 0, wrong = 0;
	struct page *page;

	if (nr * PAGE_SIZE > LIVE_MOST)
		kunit_skip(test, "a block is too large for this machine");
	page = alloc_pages(GFP_KERNEL, LIVE_ORDER);
	KUNIT_ASSERT_NOT_NULL(test, page);
	for (unsigned long i = 0; i < nr; i++)
		WRITE_ONCE(*(u64 *)page_address(page + i), live_tag(i));
	for (unsigned int h = 0; h < ARRAY_SIZE(hide); h++) {
		unsigned long addr = (unsigned long)page_address(page + hide[h]);

		old_size = max(old_size, lmap_leaf(&init_mm, addr).size);
		KUNIT_EXPECT_EQ(test, 0, set_direct_map_invalid_noflush(page + hide[h]));
		flush_tlb_kernel_range(addr, addr + PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, lmap_leaf(&init_mm, addr).size, PAGE_SIZE);
		for (unsigned long i = 0; i < nr; i++) {
			u64 got = 0;

			if (copy_from_kernel_nofault(&got, page_address(page + i),
						     sizeof(got)))
				got = 0;
			wrong += got != (i == hide[h] ? 0 : live_tag(i));
			entries++;
		}
		KUNIT_EXPECT_EQ(test, 0, set_direct_map_default_noflush(page + hide[h]));
		wrong += READ_ONCE(*(u64 *)addr) != live_tag(hide[h]);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	kunit_info(test, "the largest entry had %lu bytes\n", old_size);
	__free_pages(page, LIVE_ORDER);
	PGTABLE_KUNIT_DID(test, entries, "pages read");
}

#if defined(CONFIG_KFENCE) && defined(PGTABLE_KUNIT_HAS_KFENCE_SPLITS)
/* Let KFENCE begin with its pool at @pool, and forget the pool. */
static bool kfence_begin(unsigned long pool)
{
	bool ok;

	__kfence_pool = (char *)pool;
	ok = arch_kfence_init_pool();
	__kfence_pool = NULL;
	return ok;
}

/* Check each page of an area. Returns how many are in the pool. */
static unsigned int kfence_check(struct lmap_area *area, unsigned long pool)
{
	unsigned long end = area->virt + area->size, addr;
	unsigned int pages = 0, wrong = 0;

	for (addr = area->virt; addr < end; addr += PAGE_SIZE) {
		struct lmap_leaf leaf = lmap_leaf(&init_mm, addr);

		wrong += !(leaf.val & PTE_VALID) ||
			 lmap_leaf_phys(&leaf) + addr - leaf.addr !=
			 area->phys + addr - area->virt;
		if (addr < pool || addr >= pool + KFENCE_POOL_SIZE)
			continue;
		pages++;
		wrong += leaf.size != PAGE_SIZE || leaf.val & PTE_CONT;
	}
	KUNIT_EXPECT_EQ(area->test, wrong, 0);
	return pages;
}
#endif

/*
 * KFENCE may begin long after the boot. Its pool is then in memory that blocks
 * map. KFENCE removes pages from the map even in an interrupt, where the kernel
 * cannot split a block. So the kernel splits the blocks first, and then single
 * pages that are not contiguous map all of the pool. All other pages keep their
 * address. The pool begins in the middle of a block. In the second round this
 * block is already split into contiguous pages.
 */
static void kfence_pool_late(struct kunit *test)
{
#if defined(CONFIG_KFENCE) && defined(PGTABLE_KUNIT_HAS_KFENCE_SPLITS)
	unsigned int pages = 0;

	if (__kfence_pool || kfence_early_init)
		kunit_skip(test, "KFENCE started at boot");
	if (lmap_by_pages())
		kunit_skip(test, "single pages map the memory");
	for (unsigned int round = 0; round < 2; round++) {
		struct lmap_area area;
		unsigned long pool;

		lmap_area_init(&area, test, lmap_area_large());
		KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
		pool = area.virt + PMD_SIZE / 2;
		if (round) {
			split_change(&area, area.virt + PMD_SIZE - PAGE_SIZE,
				     PAGE_SIZE, false);
			split_change(&area, area.virt + PMD_SIZE - PAGE_SIZE,
				     PAGE_SIZE, true);
		}
		KUNIT_EXPECT_TRUE(test, kfence_begin(pool));
		pages += kfence_check(&area, pool);
		lmap_area_unplug(&area);
		lmap_area_check_empty(&area, "unplugged");
	}
	PGTABLE_KUNIT_DID(test, pages, "pages of the pool");
#else
	kunit_skip(test, "needs CONFIG_KFENCE, and a kernel that splits blocks for it");
#endif
}

static int linear_map_split_init(struct kunit *test)
{
	if (!can_set_direct_map())
		kunit_skip(test, "pages of this boot never change their permissions");
	return pgtable_kunit_init(test);
}

static struct kunit_case linear_map_split_cases[] = {
	KUNIT_CASE_PARAM(set_memory_valid_range, split_gen_params),
	KUNIT_CASE_PARAM(set_memory_valid_large_range, split_large_gen_params),
	KUNIT_CASE(set_memory_valid_part_of_invalid),
	KUNIT_CASE(set_memory_valid_no_memory),
	KUNIT_CASE(set_direct_map_live_block),
	KUNIT_CASE(kfence_pool_late),
	{}
};

static struct kunit_suite linear_map_split_suite = {
	.name = "linear_map_split",
	.suite_init = pgtable_kunit_suite_init,
	.init = linear_map_split_init,
	.test_cases = linear_map_split_cases,
};

kunit_test_suite(linear_map_split_suite);

MODULE_DESCRIPTION("KUnit tests for permissions that change in the linear map");
MODULE_LICENSE("GPL");
