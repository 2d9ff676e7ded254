// SPDX-License-Identifier: GPL-2.0
/*
 * A part of the vmalloc space that only one test uses, and a model of its
 * entries.
 */

#include <linux/io.h>
#include <linux/memblock.h>
#include <linux/sizes.h>

#include "vmap_block.h"

/* KASAN needs shadow memory for these addresses: an eighth of their size. */
#define VMAP_BLOCK_MOST		SZ_512M

/**
 * vmap_block_init() - reserve addresses
 * @area: the area
 * @test: the test
 * @align: the alignment of its address
 * @size: its size
 */
void vmap_block_init(struct vmap_block_area *area, struct kunit *test,
		     unsigned long align, unsigned long size)
{
	if (IS_ENABLED(CONFIG_KASAN_VMALLOC) && size + align > VMAP_BLOCK_MOST)
		kunit_skip(test, "KASAN needs too much memory for these addresses");
	*area = (struct vmap_block_area){ .test = test, .size = size };
	area->vm = get_vm_area(size + align, VM_SPARSE);
	KUNIT_ASSERT_NOT_NULL(test, area->vm);
	area->virt = ALIGN((unsigned long)area->vm->addr, align);
}

/**
 * vmap_block_free() - unmap an area, and give up its addresses
 * @area: the area
 */
void vmap_block_free(struct vmap_block_area *area)
{
	free_vm_area(area->vm);
}

/**
 * vmap_block_map() - map memory, and expect it in the model
 * @area: the area
 * @offset: where in the area
 * @size: how many bytes
 * @phys: their physical address
 *
 * Return: the result of vmap_page_range().
 */
int vmap_block_map(struct vmap_block_area *area, unsigned long offset,
		   unsigned long size, phys_addr_t phys)
{
	unsigned long start = area->virt + offset;

	area->range[area->nr++] = (struct vmap_block_range){
		.start = start, .end = start + size, .phys = phys,
		.max = PUD_SIZE,
	};
	return vmap_page_range(start, start + size, phys, PAGE_KERNEL);
}

/**
 * vmap_block_no_memory() - physical addresses without memory and without a
 * device
 *
 * No code may access addresses that map them.
 */
phys_addr_t vmap_block_no_memory(void)
{
	return ALIGN(max_t(phys_addr_t, memblock_end_of_DRAM(),
			   PFN_PHYS(max_pfn)), PUD_SIZE);
}

/* Whether @range maps the aligned bytes around @addr by one entry or block. */
static bool vmap_block_whole(const struct vmap_block_range *range,
			     unsigned long addr, unsigned long size)
{
	unsigned long first = ALIGN_DOWN(addr, size);

	return size <= range->max && first >= range->start &&
	       first + size <= range->end &&
	       IS_ALIGNED(range->phys + (first - range->start), size);
}

/* The model: the entry for @addr is as large as the range allows. */
static struct lmap_leaf vmap_block_want(struct vmap_block_area *area,
					unsigned long addr)
{
	const struct vmap_block_range *range = area->range;
	unsigned long size = PAGE_SIZE;
	pgprot_t prot = PAGE_KERNEL;
	unsigned long cont = 0;
	unsigned int i;
	u64 val;

	for (i = 0; i < area->nr; i++, range++)
		if (addr >= range->start && addr < range->end)
			break;
	if (i == area->nr)
		return (struct lmap_leaf){};

	if (arch_vmap_pud_supported(prot) && vmap_block_whole(range, addr, PUD_SIZE))
		size = PUD_SIZE;
	else if (arch_vmap_pmd_supported(prot) &&
		 vmap_block_whole(range, addr, PMD_SIZE))
		size = PMD_SIZE;
	else if (VMAP_BLOCK_CONT && vmap_block_whole(range, addr, CONT_PTE_SIZE))
		cont = CONT_PTE_SIZE;
	if (cont)
		prot = __pgprot(pgprot_val(prot) | PTE_CONT);
	if (size != PAGE_SIZE)
		prot = mk_pmd_sect_prot(prot);
	addr = ALIGN_DOWN(addr, size);
	val = pte_val(pfn_pte(PHYS_PFN(range->phys + addr - range->start), prot));
	return (struct lmap_leaf){
		.val = val, .addr = addr, .size = size, .cont = cont,
	};
}

/*
 * The end of an empty entry, or the start of the next range if that comes
 * first.
 */
static unsigned long vmap_block_next(struct vmap_block_area *area,
				     unsigned long addr,
				     const struct lmap_leaf *got)
{
	unsigned long next = got->val ? addr + PAGE_SIZE : got->addr + got->size;

	for (unsigned int i = 0; i < area->nr; i++)
		if (area->range[i].start > addr)
			next = min(next, area->range[i].start);
	return next;
}

/**
 * vmap_block_check() - compare all entries of an area with the model
 * @area: the area
 * @when: for messages
 *
 * Return: whether they agree. An address that maps nothing has an empty entry,
 * at any level.
 */
bool vmap_block_check(struct vmap_block_area *area, const char *when)
{
	unsigned long end = area->virt + area->size, addr;
	unsigned int failed = 0;

	area->blocks = 0;
	area->large = 0;
	area->pages = 0;
	for (addr = area->virt; addr < end;) {
		struct lmap_leaf got = lmap_leaf(&init_mm, addr);
		struct lmap_leaf want = vmap_block_want(area, addr);

		if (got.val != want.val || (want.val && got.size != want.size)) {
			KUNIT_FAIL(area->test,
				   "%s: %lx of %lx: entry %016llx of %lx bytes, expected %016llx of %lx",
				   when, addr - area->virt, area->size, got.val,
				   got.size, want.val, want.size);
			if (++failed == PGTABLE_KUNIT_ENOUGH)
				break;
		}
		if (want.cont)
			area->blocks += IS_ALIGNED(addr, want.cont);
		else if (want.val)
			*(want.size > PAGE_SIZE ? &area->large : &area->pages) += 1;
		if (want.val)
			addr += want.size;
		else
			addr = vmap_block_next(area, addr, &got);
	}
	return !failed;
}
