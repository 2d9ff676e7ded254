// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is plugged in after the boot, and unplugged again.
 *
 * The code that built the linear map also extends it. The tables for it come
 * from the page allocator, which may have no free page. Each case plugs in
 * memory at addresses after the machine's last memory, without giving it to the
 * page allocator, and compares all entries with a model. The memory does not
 * have to exist, since no code accesses it. If the kernel uses less memory than
 * the machine has, one case plugs in real memory:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 linear_map_plug \
 *	--kconfig_add=CONFIG_MEMORY_HOTPLUG=y \
 *	--kconfig_add=CONFIG_MEMORY_HOTREMOVE=y --kernel_args mem=512M
 *
 * Not covered: memory that is given to the page allocator (MEM_ONLINE).
 */

#include <linux/memblock.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <asm/fixmap.h>

#include "linear_map.h"

/* Counts how often a slot of the fixmap is set. */
static unsigned int plug_sets(struct lmap_fixmap *fixmap,
			      unsigned int slot)
{
	unsigned int i, sets = 0;

	for (i = 0; i < min(fixmap->nr, LMAP_FIXMAPS); i++)
		sets += fixmap->change[i].slot == slot &&
			fixmap->change[i].phys;
	return sets;
}

static const unsigned int plug_sections[] = { 1, 2, 3, 0 };

static void plug_desc(const unsigned int *sections, char *desc)
{
	if (*sections)
		snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%u sections", *sections);
	else
		strscpy(desc, "all sizes of entries", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(plug, plug_sections, plug_desc);

/*
 * Plugged-in memory is mapped like memory at boot. Each page is at its own
 * address. It is mapped by the largest entries and contiguous blocks that fit,
 * or by pages if the kernel mapped memory by pages at boot. The fixmap maps
 * each table of PTEs once, not once for each block. After the memory is
 * unplugged, it has no entry and no table. The last size has entries of every
 * level.
 */
static void arch_add_memory_mapped(struct kunit *test)
{
	unsigned int sections = *(const unsigned int *)test->param_value;
	struct lmap_fixmap *fixmap;
	unsigned long tables = 0;
	struct lmap_area area;

	lmap_area_init(&area, test, lmap_area_large());
	if (sections)
		area.size = sections * BIT(SECTION_SIZE_BITS);
	fixmap = lmap_fixmap_record(test);
	KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
	if (lmap_by_pages())
		tables = area.size / PMD_SIZE;
	KUNIT_EXPECT_EQ(test, plug_sets(fixmap, FIX_PTE), tables);
	KUNIT_EXPECT_EQ(test, fixmap->nr % 2, 0);
	lmap_area_check(&area, "plugged in");
	PGTABLE_KUNIT_DID(test, area.leaves, "entries");
	lmap_area_unplug(&area);
	lmap_area_check_empty(&area, "unplugged");
}

/*
 * The kernel maps the struct pages of plugged-in memory: by blocks with 4K
 * pages, and by single pages with other page sizes. With 4K pages, a map by
 * single pages would need more TLB entries. The kernel uses single pages if it
 * gets no memory for a block, so the case first makes sure that there is
 * memory.
 */
static void arch_add_memory_struct_pages(struct kunit *test)
{
	bool blocks = IS_ENABLED(CONFIG_ARM64_4K_PAGES);
	unsigned long addr, end, wrong = 0, entries = 0;
	struct lmap_area area;
	struct page *block;

	if (blocks) {
		block = alloc_pages(GFP_KERNEL, PMD_ORDER);
		KUNIT_ASSERT_NOT_NULL(test, block);
		__free_pages(block, PMD_ORDER);
	}
	lmap_area_init(&area, test, BIT(SECTION_SIZE_BITS));
	KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
	addr = (unsigned long)pfn_to_page(PHYS_PFN(area.phys));
	end = (unsigned long)pfn_to_page(PHYS_PFN(area.phys + area.size));
	while (addr < end) {
		struct lmap_leaf leaf = lmap_leaf(&init_mm, addr);

		wrong += !(leaf.val & PTE_VALID) ||
			 leaf.size != (blocks ? PMD_SIZE : PAGE_SIZE);
		addr = leaf.addr + leaf.size;
		entries++;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	lmap_area_unplug(&area);
	PGTABLE_KUNIT_DID(test, entries, "entries");
}

#ifdef PGTABLE_KUNIT_HAS_REFUSES_SPLITS
/* Is this address within an entry, or within a contiguous block? */
static bool plug_within_entry(unsigned long addr)
{
	struct lmap_leaf leaf = lmap_leaf(&init_mm, addr);

	if (!leaf.val)
		return false;
	return !IS_ALIGNED(addr, leaf.val & PTE_CONT ? leaf.cont : leaf.size);
}

/* Does the kernel let this memory go offline? */
static bool plug_can_go(unsigned long pfn, unsigned long nr)
{
	struct memory_notify arg = { .start_pfn = pfn, .nr_pages = nr };
	int ret = memory_notify(MEM_GOING_OFFLINE, &arg);

	/*
	 * Some users of the notifier wait between the first call and this call.
	 */
	memory_notify(MEM_CANCEL_OFFLINE, &arg);
	return !notifier_to_errno(ret);
}

static unsigned int plug_offline(struct kunit *test, unsigned long size)
{
	const unsigned long at[] = {
		0, PAGE_SIZE, CONT_PTE_SIZE, PMD_SIZE, CONT_PMD_SIZE,
		BIT(SECTION_SIZE_BITS), size / 2, size - PMD_SIZE,
		size - PAGE_SIZE, size,
	};
	unsigned int start, end, refused = 0;
	struct lmap_area area;

	lmap_area_init(&area, test, size);
	KUNIT_ASSERT_EQ(test, 0, lmap_area_plug(&area));
	for (start = 0; start < ARRAY_SIZE(at); start++) {
		for (end = 0; end < ARRAY_SIZE(at); end++) {
			unsigned long first = PHYS_PFN(area.phys + at[start]);
			unsigned long last = PHYS_PFN(area.phys + at[end]);
			bool splits;

			if (at[start] >= at[end] || at[end] > size)
				continue;
			splits = plug_within_entry(area.virt + at[start]) ||
				 plug_within_entry(area.virt + at[end]) ||
				 plug_within_entry((unsigned long)pfn_to_page(first)) ||
				 plug_within_entry((unsigned long)pfn_to_page(last));
			refused += splits;
			KUNIT_EXPECT_EQ_MSG(test, plug_can_go(first, last - first), !splits,
					    "size %lx: from %lx to %lx", size,
					    at[start], at[end]);
		}
	}
	lmap_area_unplug(&area);
	return refused;
}
#endif

/*
 * Memory may go offline only if the kernel can unmap it without a split of an
 * entry: an entry of the linear map or an entry of the struct pages. During a
 * split of a live entry, two translations of one address could exist. The
 * ranges begin and end at entries of each size, in one section and in memory
 * that has entries of all sizes. All of the memory together may always go
 * offline.
 */
static void memory_offline_within_entry(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_HAS_REFUSES_SPLITS
	unsigned int refused = plug_offline(test, BIT(SECTION_SIZE_BITS));

	PGTABLE_KUNIT_DID(test, refused + plug_offline(test, lmap_area_large()),
			  "ranges refused");
#else
	kunit_skip(test, "this kernel can take a part of a large entry offline");
#endif
}

/*
 * More allocations than a section needs: at most 64 tables, and its struct pages.
 */
#define PLUG_ALLOCATIONS	4096

/*
 * Each allocation of a table or of struct pages fails once, in turn. Each time
 * the kernel either returns an error, maps nothing and leaves no table, or it
 * uses smaller pages and maps everything. Older kernels stop the machine
 * instead.
 */
static void arch_add_memory_no_memory(struct kunit *test)
{
	struct lmap_area area;
	unsigned int failed = 0, allocations, i;
	int err = -ENOMEM;

#ifndef PGTABLE_KUNIT_HAS_TABLES_FAIL
	kunit_skip(test, "this kernel stops if it gets no memory for a table");
#endif

	lmap_area_init(&area, test, BIT(SECTION_SIZE_BITS));
	lmap_alloc_watch(test);
	for (i = 1; i < PLUG_ALLOCATIONS; i++) {
		lmap_alloc_fail(i);
		err = lmap_area_plug(&area);
		allocations = lmap_alloc_fail(0);
		if (err) {
			failed++;
			KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", i);
		} else {
			lmap_area_check(&area, "plugged in");
			lmap_area_unplug(&area);
		}
		if (!lmap_area_check_empty(&area, err ? "failed" : "unplugged") ||
		    allocations < i)
			break;
	}
	KUNIT_EXPECT_EQ_MSG(test, err, 0, "with %u allocations", i);
	KUNIT_EXPECT_LT(test, i, PLUG_ALLOCATIONS);
	kunit_info(test, "%u allocations\n", i - 1);
	PGTABLE_KUNIT_DID(test, failed, "failed allocations after which there is no memory");
}

/* Find memory of the machine that the kernel does not use because of mem=. */
static phys_addr_t plug_hidden(struct kunit *test, unsigned long size)
{
	phys_addr_t start = ALIGN(memblock_end_of_DRAM(), size);
	struct device_node *node = NULL;
	struct resource res;

	while ((node = of_find_node_by_type(node, "memory"))) {
		if (of_address_to_resource(node, 0, &res) ||
		    start < res.start || start + size - 1 > res.end)
			continue;
		of_node_put(node);
		return start;
	}
	kunit_skip(test, "boot with mem=512M, or less than the machine has");
	return 0;
}

/*
 * Real memory is plugged in as on a request of firmware. The case writes to
 * each page through the linear map, and reads the same content back. So no two
 * addresses map the same page. The page allocator does not get the memory, so
 * no other code writes to it.
 */
static void add_memory_written(struct kunit *test)
{
	unsigned long size = memory_block_size_bytes(), off, wrong = 0;
	phys_addr_t start = plug_hidden(test, size);
	u64 *first = phys_to_virt(start);

	KUNIT_ASSERT_EQ(test, 0, add_memory(0, start, size, MHP_NONE));
	for (off = 0; off < size; off += PAGE_SIZE)
		WRITE_ONCE(first[off / sizeof(u64)], start + off);
	for (off = 0; off < size; off += PAGE_SIZE)
		wrong += READ_ONCE(first[off / sizeof(u64)]) != start + off;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	PGTABLE_KUNIT_DID(test, size / PAGE_SIZE, "pages that were written");
	KUNIT_EXPECT_EQ(test, 0, remove_memory(start, size));
	KUNIT_EXPECT_EQ(test, 0, lmap_leaf(&init_mm, (unsigned long)first).val);
}

static struct kunit_case linear_map_plug_cases[] = {
	KUNIT_CASE_PARAM(arch_add_memory_mapped, plug_gen_params),
	KUNIT_CASE(arch_add_memory_struct_pages),
	KUNIT_CASE(memory_offline_within_entry),
	KUNIT_CASE(arch_add_memory_no_memory),
	KUNIT_CASE(add_memory_written),
	{}
};

static struct kunit_suite linear_map_plug_suite = {
	.name = "linear_map_plug",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = linear_map_plug_cases,
};

kunit_test_suite(linear_map_plug_suite);

MODULE_DESCRIPTION("KUnit tests for memory that is plugged in later");
MODULE_LICENSE("GPL");
