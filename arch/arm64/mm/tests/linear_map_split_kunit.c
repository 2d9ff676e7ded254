// SPDX-License-Identifier: GPL-2.0
/*
 * Permissions that change in a part of the linear map.
 *
 * set_memory_valid() makes a range of pages inaccessible, and accessible again.
 * On a CPU with break-before-make level 3, newer kernels map memory by blocks,
 * and split each block that the range covers in part. They split a block into
 * contiguous entries of the next level first, so that the other entries stay as
 * large as possible. Each case plugs in memory of its own, which entries of
 * every size map, and makes a range inaccessible. It compares each entry with a
 * model: the largest entry that contains no end of the range. If single pages
 * map the memory, no page outside of the range may change.
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
#include <linux/mm.h>
#include <linux/set_memory.h>

#include "linear_map.h"

/*
 * Where a range begins and ends: the pages around the ends of entries of each
 * size, counted from the start of the memory. With 4K pages a contiguous block
 * of pages is 64K, one of blocks 32M, and all of the memory is one block of 1G.
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

	/* The kernel does not merge entries that it has split. */
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
 * set_memory_valid() splits blocks exactly where permissions change [linear map
 * 34]: at the ends of each kind of range, and into entries no smaller than
 * necessary. All other entries of the memory keep their size, address and
 * permissions.
 */
static void set_memory_valid_range(struct kunit *test)
{
	split_run(test, test->param_value);
}

/*
 * set_memory_valid() splits blocks in this way for ranges that are larger than
 * a block too [linear map 34].
 */
static void set_memory_valid_large_range(struct kunit *test)
{
	split_run(test, test->param_value);
}

/*
 * A block is inaccessible as a whole. When one of its pages becomes accessible
 * again, the block is split, and its other pages stay inaccessible [linear map
 * 34].
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
