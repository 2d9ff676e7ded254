// SPDX-License-Identifier: GPL-2.0
/*
 * Large entries of the vmalloc space.
 *
 * vmalloc_huge(), ioremap() and vmap_page_range() map memory by the largest
 * entries that fit: blocks of 1G and of a PMD, and with hugetlb also contiguous
 * pages, if a kernel has arch_vmap_pte_range_map_size(). vunmap_range() must
 * find out how large each entry is.
 *
 *	    64K               64K               64K
 *	|----------------|----------------|----------------|
 *	         ########|################|###
 *	         pages       contiguous    pages
 *
 * Each case compares every entry around a range with a model, before and after
 * each call, and reads or writes each page through its address. After a page is
 * unmapped, a read of its address must fail.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 'vmap_block*' \
 *	--kconfig_add=CONFIG_HUGETLBFS=y
 *
 * Not covered: KASAN's shadow of vmalloc memory, modules, lazy invalidation of
 * the addresses that vfree() gives up (linear_map_page), several CPUs.
 */

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/set_memory.h>
#include <linux/uaccess.h>

#include "vmap_block.h"

/* The number of pages of the memory that cases map and read. */
#define PAGES		(4 * CONT_PTES)
#define ORDER		ilog2(PAGES)

/*
 * No range maps the page before the blocks of an area, and the page after them.
 */
#define WINDOW		(6 * CONT_PTE_SIZE)

static u64 tag_of(phys_addr_t phys)
{
	return PHYS_PFN(phys) ^ 0x5a5a000000000000;
}

static void free_memory(void *page)
{
	__free_pages(page, ORDER);
}

/* Memory at the start of a block, in which each page has its own content. */
static phys_addr_t tagged_memory(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_KERNEL, ORDER);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, free_memory,
							   page));
	for (unsigned int i = 0; i < PAGES; i++)
		*(u64 *)page_address(page + i) = tag_of(page_to_phys(page + i));
	return page_to_phys(page);
}

/*
 * Read each page of an area, and compare its content with the model. Returns
 * how many pages could be read.
 */
static unsigned int read_area(struct vmap_block_area *area, const char *when)
{
	unsigned long end = area->virt + area->size, addr;
	unsigned int readable = 0;

	for (addr = area->virt; addr < end; addr += PAGE_SIZE) {
		u64 want = 0, got = 0;

		for (unsigned int i = 0; i < area->nr; i++) {
			struct vmap_block_range *range = &area->range[i];

			if (addr >= range->start && addr < range->end)
				want = tag_of(range->phys + addr - range->start);
		}
		if (copy_from_kernel_nofault(&got, (void *)addr, sizeof(got)))
			got = 0;
		readable += !!got;
		KUNIT_EXPECT_EQ_MSG(area->test, got, want, "%s: page %lu",
				    when, (addr - area->virt) / PAGE_SIZE);
	}
	return readable;
}

/* Starts of a range and of its memory, and lengths, in pages. */
static const unsigned int edges[] = { 0, 1, CONT_PTES - 1 };
static const unsigned int lengths[] = {
	1, CONT_PTES - 1, CONT_PTES, CONT_PTES + 1, 2 * CONT_PTES,
	3 * CONT_PTES - 1,
};

/*
 * vmap_page_range() uses a contiguous block exactly where addresses and memory
 * are aligned and the range contains the whole block. The range starts at,
 * after and before the start of a block, in the addresses and in memory. Its
 * length is a page, one or more blocks, or one page less or more than these.
 * vunmap_range() of the whole range leaves nothing mapped.
 */
static void vmap_page_range_edges(struct kunit *test)
{
	phys_addr_t phys = tagged_memory(test);
	unsigned long blocks = 0, pages = 0;
	struct vmap_block_area area;

	vmap_block_init(&area, test, CONT_PTE_SIZE, WINDOW);
	for (unsigned int i = 0; i < ARRAY_SIZE(edges) * ARRAY_SIZE(edges); i++) {
		unsigned long start = edges[i / ARRAY_SIZE(edges)] * PAGE_SIZE;
		unsigned long skip = edges[i % ARRAY_SIZE(edges)] * PAGE_SIZE;

		start += CONT_PTE_SIZE;
		for (unsigned int n = 0; n < ARRAY_SIZE(lengths); n++) {
			unsigned long size = lengths[n] * PAGE_SIZE;

			area.nr = 0;
			KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, start, size,
								phys + skip));
			if (!vmap_block_check(&area, "mapped"))
				kunit_info(test, "start %lx, memory %lx, size %lx\n",
					   start, skip, size);
			blocks += area.blocks;
			pages += area.pages;
			KUNIT_EXPECT_EQ(test, read_area(&area, "mapped"), lengths[n]);
			vunmap_range(area.virt + start, area.virt + start + size);
			area.nr = 0;
			vmap_block_check(&area, "unmapped");
			read_area(&area, "unmapped");
		}
	}
	vmap_block_free(&area);
	kunit_info(test, "%lu blocks\n", blocks);
	KUNIT_EXPECT_EQ(test, !!blocks, VMAP_BLOCK_CONT);
	PGTABLE_KUNIT_DID(test, pages, "single pages");
}

/*
 * Blocks in the middle of a mapping are unmapped: each pair of a first and a
 * last block. The other blocks stay unchanged. Then the hole maps other memory,
 * and reads get the content of this memory, without an old translation of a
 * block.
 */
static void vunmap_range_blocks(struct kunit *test)
{
	const unsigned long all = PAGES * PAGE_SIZE, block = CONT_PTE_SIZE;
	phys_addr_t phys = tagged_memory(test), other = tagged_memory(test);
	struct vmap_block_area area;
	unsigned int holes = 0;

	vmap_block_init(&area, test, CONT_PTE_SIZE, WINDOW);
	for (unsigned long from = 0; from < all; from += block) {
		for (unsigned long to = from + block; to <= all; to += block) {
			area.nr = 0;
			KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, block, all, phys));
			vmap_block_check(&area, "mapped");
			read_area(&area, "mapped");

			vunmap_range(area.virt + block + from, area.virt + block + to);
			area.range[1] = area.range[0];
			area.range[0].end = area.virt + block + from;
			area.range[1].start = area.virt + block + to;
			area.range[1].phys += to;
			area.nr = 2;
			vmap_block_check(&area, "with a hole");
			KUNIT_EXPECT_EQ(test, read_area(&area, "with a hole"),
					PAGES - (to - from) / PAGE_SIZE);

			KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, block + from,
								to - from, other));
			vmap_block_check(&area, "filled");
			KUNIT_EXPECT_EQ(test, read_area(&area, "filled"), PAGES);
			vunmap_range(area.virt + block, area.virt + block + all);
			holes++;
		}
	}
	area.nr = 0;
	vmap_block_check(&area, "unmapped");
	vmap_block_free(&area);
	PGTABLE_KUNIT_DID(test, holes, "holes");
}

/* A call of vunmap_range() for a part of a block. */
struct part {
	unsigned long start;
	unsigned long end;
};

static void unmap_part(void *data)
{
	struct part *part = data;

	vunmap_range(part->start, part->end);
}

/*
 * A range begins or ends within a contiguous block, which vunmap_range() cannot
 * split. So the function warns. All of the range is unmapped, and no block
 * keeps only some of its entries, because with a hole in a block the CPU could
 * still use the unmapped entries. Blocks outside of the range stay.
 */
static void vunmap_range_part_of_block(struct kunit *test)
{
	static const struct { unsigned int first, end; } parts[] = {
		{ 0, 1 }, { 1, CONT_PTES }, { CONT_PTES / 2, CONT_PTES / 2 + 1 },
		{ CONT_PTES - 1, CONT_PTES + 1 }, { 1, 2 * CONT_PTES },
		{ 1, 3 * CONT_PTES - 1 },
	};
	phys_addr_t phys = tagged_memory(test);
	struct vmap_block_area area;
	int warned = 0;

	if (!VMAP_BLOCK_CONT)
		kunit_skip(test, "this kernel has no contiguous blocks in vmalloc space");
	vmap_block_init(&area, test, CONT_PTE_SIZE, WINDOW);
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		unsigned long first = parts[i].first * PAGE_SIZE;
		unsigned long end = parts[i].end * PAGE_SIZE;
		unsigned long base = area.virt + CONT_PTE_SIZE;
		struct part part = { base + first, base + end };
		int warnings;

		area.nr = 0;
		KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, CONT_PTE_SIZE,
							PAGES * PAGE_SIZE, phys));
		vmap_block_check(&area, "mapped");
		read_area(&area, "mapped");
		warnings = pgtable_kunit_count_warnings(test, unmap_part, &part);
		if (warnings < 0) {
			vmap_block_free(&area);
			kunit_skip(test, "no kunit_warning_suppress()");
		}
		KUNIT_EXPECT_GT_MSG(test, warnings, 0, "pages [%u, %u)",
				    parts[i].first, parts[i].end);
		warned += warnings;
		area.range[1] = area.range[0];
		area.range[0].end = base + ALIGN_DOWN(first, CONT_PTE_SIZE);
		area.range[1].start = base + ALIGN(end, CONT_PTE_SIZE);
		area.range[1].phys += ALIGN(end, CONT_PTE_SIZE);
		area.nr = 2;
		vmap_block_check(&area, "a part unmapped");
		/*
		 * vunmap_range() invalidates only the caller's range, so a TLB
		 * may still hold the rest of the block. A read must come after
		 * this invalidation.
		 */
		flush_tlb_kernel_range(area.virt, area.virt + area.size);
		read_area(&area, "a part unmapped");
		vunmap_range(base, base + PAGES * PAGE_SIZE);
	}
	vmap_block_free(&area);
	PGTABLE_KUNIT_DID(test, warned, "warnings");
}

static const unsigned int levels[] = { 0, 1 };

static void level_desc(const unsigned int *level, char *desc)
{
	strscpy(desc, *level ? "PUD" : "PMD", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(level, levels, level_desc);

/* The page of the table that maps @addr by entries smaller than @size. */
static struct page *table_of(unsigned long addr, unsigned long size)
{
	pud_t *pudp = pud_offset(p4d_offset(pgd_offset_k(addr), addr), addr);

	if (size == PUD_SIZE)
		return pud_page(READ_ONCE(*pudp));
	return pmd_page(READ_ONCE(*pmd_offset(pudp, addr)));
}

/*
 * A block replaces a table that is left from earlier pages at these addresses.
 * The block maps all of its memory. The kernel frees the table and the tables
 * below it, so only the reference of the test is left. After the block is
 * unmapped, pages can be mapped there again. These mappings map physical
 * addresses without memory, and no code reads them.
 */
static void vmap_page_range_over_table(struct kunit *test)
{
	bool pud = *(const unsigned int *)test->param_value;
	unsigned long size = pud ? PUD_SIZE : PMD_SIZE;
	phys_addr_t phys = vmap_block_no_memory();
	struct page *table[2] = {};
	struct vmap_block_area area;

	if (!(pud ? arch_vmap_pud_supported(PAGE_KERNEL) :
	      arch_vmap_pmd_supported(PAGE_KERNEL)))
		kunit_skip(test, "this kernel has no such blocks in vmalloc space");
	vmap_block_init(&area, test, size, 2 * size);
	for (int round = 0; round < 2; round++) {
		unsigned long page = round ? size - PAGE_SIZE : 0;

		area.nr = 0;
		KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, page, PAGE_SIZE,
							phys + page));
		vmap_block_check(&area, "a page mapped");
		KUNIT_EXPECT_EQ(test, area.pages, 1);
		table[0] = table_of(area.virt + page, PMD_SIZE);
		get_page(table[0]);
		if (pud) {
			table[1] = table_of(area.virt + page, PUD_SIZE);
			get_page(table[1]);
		}
		vunmap_range(area.virt + page, area.virt + page + PAGE_SIZE);
		area.nr = 0;
		vmap_block_check(&area, "the page unmapped");

		KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, 0, size, phys));
		vmap_block_check(&area, "a block mapped");
		KUNIT_EXPECT_EQ(test, area.large, 1);
		for (int i = 0; i <= pud; i++) {
			KUNIT_EXPECT_EQ_MSG(test, page_ref_count(table[i]), 1,
					    "a table of level %d is not free", i);
			put_page(table[i]);
		}
		vunmap_range(area.virt, area.virt + size);
		area.nr = 0;
		vmap_block_check(&area, "the block unmapped");
	}
	vmap_block_free(&area);
	PGTABLE_KUNIT_DID(test, 2 * (1 + pud), "tables replaced");
}

/*
 * A range has two blocks of a PMD, and pages before and after them. Memory and
 * addresses have the same alignment, or the memory starts one page or one
 * contiguous block later. When a block in the middle is unmapped, its
 * neighbours stay mapped.
 */
static void vmap_page_range_large(struct kunit *test)
{
	static const unsigned long skips[] = { 0, PAGE_SIZE, CONT_PTE_SIZE };
	const unsigned long size = 2 * PMD_SIZE + CONT_PTE_SIZE + PAGE_SIZE;
	unsigned long large = 0, pages = 0;
	struct vmap_block_area area;

	vmap_block_init(&area, test, PMD_SIZE, 4 * PMD_SIZE);
	for (unsigned int i = 0; i < ARRAY_SIZE(skips); i++) {
		unsigned long hole = area.virt + PMD_SIZE;

		area.nr = 0;
		KUNIT_ASSERT_EQ(test, 0,
				vmap_block_map(&area, PMD_SIZE - CONT_PTE_SIZE, size,
					       vmap_block_no_memory() + PMD_SIZE -
					       CONT_PTE_SIZE + skips[i]));
		vmap_block_check(&area, "mapped");
		large += area.large;
		pages += area.pages;
		vunmap_range(hole, hole + PMD_SIZE);
		area.range[1] = area.range[0];
		area.range[0].end = hole;
		area.range[1].phys += hole + PMD_SIZE - area.range[1].start;
		area.range[1].start = hole + PMD_SIZE;
		area.nr = 2;
		vmap_block_check(&area, "with a hole");
		vunmap_range(area.virt, area.virt + area.size);
		area.nr = 0;
		vmap_block_check(&area, "unmapped");
	}
	vmap_block_free(&area);
	KUNIT_EXPECT_EQ(test, large, arch_vmap_pmd_supported(PAGE_KERNEL) ? 2 : 0);
	PGTABLE_KUNIT_DID(test, pages, "single pages");
}

/*
 * pmd_set_huge() writes an entry for a block if the place is empty, and changes
 * the permissions of a block. It refuses to let a block map other memory, and
 * the entry stays. pmd_clear_huge() removes a block, but not a table.
 */
static void pmd_set_huge_refuses(struct kunit *test)
{
	phys_addr_t phys = vmap_block_no_memory();
	struct vmap_block_area area;
	unsigned long addr;
	pmd_t *pmdp;
	pud_t *pudp;
	u64 val;

	if (!arch_vmap_pmd_supported(PAGE_KERNEL))
		kunit_skip(test, "this kernel has no such blocks in vmalloc space");
	vmap_block_init(&area, test, PMD_SIZE, PMD_SIZE);
	addr = area.virt;
	KUNIT_ASSERT_EQ(test, 0, vmap_block_map(&area, 0, PMD_SIZE, phys));
	vmap_block_check(&area, "mapped");
	pudp = pud_offset(p4d_offset(pgd_offset_k(addr), addr), addr);
	pmdp = pmd_offset(pudp, addr);
	val = pmd_val(READ_ONCE(*pmdp));

	KUNIT_EXPECT_EQ(test, 0, pmd_set_huge(pmdp, phys + PMD_SIZE, PAGE_KERNEL));
	KUNIT_EXPECT_EQ(test, pmd_val(READ_ONCE(*pmdp)), val);
	KUNIT_EXPECT_EQ(test, 1, pmd_set_huge(pmdp, phys, PAGE_KERNEL_RO));
	KUNIT_EXPECT_EQ(test, pmd_val(READ_ONCE(*pmdp)),
			pmd_val(pfn_pmd(PHYS_PFN(phys),
					mk_pmd_sect_prot(PAGE_KERNEL_RO))));
	KUNIT_EXPECT_EQ(test, 0, pud_clear_huge(pudp));
	KUNIT_EXPECT_TRUE(test, pud_table(READ_ONCE(*pudp)));
	KUNIT_EXPECT_EQ(test, 1, pmd_clear_huge(pmdp));
	KUNIT_EXPECT_TRUE(test, pmd_none(READ_ONCE(*pmdp)));
	KUNIT_EXPECT_EQ(test, 0, pmd_clear_huge(pmdp));
	/* The caller of pmd_clear_huge() must invalidate the block. */
	flush_tlb_kernel_range(addr, addr + PMD_SIZE);
	KUNIT_EXPECT_EQ(test, 1, pmd_set_huge(pmdp, phys + PMD_SIZE, PAGE_KERNEL));
	area.range[0].phys = phys + PMD_SIZE;
	vmap_block_check(&area, "other memory");
	vmap_block_free(&area);
}

static struct kunit_case vmap_block_cases[] = {
	KUNIT_CASE(vmap_page_range_edges),
	KUNIT_CASE(vunmap_range_blocks),
	KUNIT_CASE(vunmap_range_part_of_block),
	KUNIT_CASE_PARAM(vmap_page_range_over_table, level_gen_params),
	KUNIT_CASE(vmap_page_range_large),
	KUNIT_CASE(pmd_set_huge_refuses),
	{}
};

static struct kunit_suite vmap_block_suite = {
	.name = "vmap_block",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = vmap_block_cases,
};

kunit_test_suite(vmap_block_suite);

MODULE_DESCRIPTION("KUnit tests for large entries of the vmalloc space");
MODULE_LICENSE("GPL");
