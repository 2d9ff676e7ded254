// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a test plugs in, so that only the test uses this part of the
 * linear map, and a model of the entries. Also functions that make allocations
 * fail.
 */

#include <linux/kprobes.h>
#include <linux/memblock.h>
#include <linux/memory_hotplug.h>

#include "linear_map.h"

/**
 * lmap_area_large() - the size of an area that has entries of all sizes
 *
 * An area has such entries only if memory is mapped by blocks. Otherwise all
 * entries map pages, and a few tables of pages are enough.
 */
unsigned long lmap_area_large(void)
{
	unsigned long size = max(BIT(SECTION_SIZE_BITS), 4 * PMD_SIZE);

	if (lmap_by_pages())
		return size;
	return max3(size, (unsigned long)CONT_PMD_SIZE,
		    pud_sect_supported() ? PUD_SIZE : 0UL);
}

/**
 * lmap_area_init() - choose the place of an area
 * @area: the area
 * @test: the test
 * @size: its size, and its alignment; not less than a section
 *
 * The place is after the end of memory, where there is no memory and no device.
 */
void lmap_area_init(struct lmap_area *area, struct kunit *test,
		    unsigned long size)
{
	struct range range = mhp_get_pluggable_range(true);

	*area = (struct lmap_area){ .test = test, .size = size };
	area->phys = ALIGN(max_t(phys_addr_t, memblock_end_of_DRAM(),
				 PFN_PHYS(max_pfn)), max(size, PUD_SIZE));
	area->virt = (unsigned long)__phys_to_virt(area->phys);
	KUNIT_ASSERT_LE(test, area->phys + size - 1, range.end);
	KUNIT_ASSERT_TRUE(test, lmap_area_check_empty(area, "before"));
}

/**
 * lmap_area_plug() - plug in memory, without giving it to the page allocator
 * @area: the area
 *
 * Return: the result of arch_add_memory().
 */
int lmap_area_plug(struct lmap_area *area)
{
	struct mhp_params params = { .pgprot = PAGE_KERNEL };
	unsigned long pfn = max_pfn, low_pfn = max_low_pfn;
	int err;

	mem_hotplug_begin();
	err = arch_add_memory(0, area->phys, area->size, &params);
	mem_hotplug_done();
	max_pfn = pfn;
	max_low_pfn = low_pfn;
	return err;
}

/**
 * lmap_area_unplug() - unplug the memory of an area
 * @area: the area
 */
void lmap_area_unplug(struct lmap_area *area)
{
	mem_hotplug_begin();
	arch_remove_memory(area->phys, area->size, NULL, NULL);
	mem_hotplug_done();
}

/*
 * Whether one entry, or one contiguous block, can map the aligned bytes around
 * @addr.
 */
static bool lmap_area_whole(struct lmap_area *area, unsigned long addr,
			    unsigned long size)
{
	unsigned long first = ALIGN_DOWN(addr, size), end = first + size;
	unsigned int i;

	if (first < area->virt || end > area->virt + area->size ||
	    !IS_ALIGNED(area->phys + first - area->virt, size))
		return false;
	for (i = 0; i < area->nr_cuts; i++)
		if (area->cut[i] > first && area->cut[i] < end)
			return false;
	return true;
}

/*
 * The model: the entry that maps @addr, as large as possible within the cuts.
 */
static struct lmap_leaf lmap_area_want(struct lmap_area *area,
				       unsigned long addr)
{
	const bool blocks = !lmap_by_pages();
	unsigned long size = PAGE_SIZE;
	pgprot_t prot = PAGE_KERNEL;
	bool cont = false;
	u64 val;

	if (blocks && pud_sect_supported() &&
	    lmap_area_whole(area, addr, PUD_SIZE)) {
		size = PUD_SIZE;
	} else if (blocks && lmap_area_whole(area, addr, PMD_SIZE)) {
		size = PMD_SIZE;
		cont = lmap_area_whole(area, addr, CONT_PMD_SIZE);
	} else {
		cont = blocks && lmap_area_whole(area, addr, CONT_PTE_SIZE);
	}
	if (cont)
		prot = __pgprot(pgprot_val(prot) | PTE_CONT);
	if (size != PAGE_SIZE)
		prot = mk_pmd_sect_prot(prot);
	addr = ALIGN_DOWN(addr, size);
	val = pte_val(pfn_pte(PHYS_PFN(area->phys + addr - area->virt), prot));
	if (addr >= area->invalid && addr < area->invalid_end &&
	    !(addr >= area->valid && addr < area->valid_end))
		val &= ~PTE_VALID;
	return (struct lmap_leaf){ .val = val, .addr = addr, .size = size };
}

/**
 * lmap_area_check() - compare all entries of an area with the model
 * @area: the area
 * @when: for messages
 *
 * Return: whether they agree. The function does not check how the kernel marks
 * an invalid entry.
 */
bool lmap_area_check(struct lmap_area *area, const char *when)
{
	unsigned long addr, failed = 0;

	area->leaves = 0;
	for (addr = area->virt; addr < area->virt + area->size;) {
		struct lmap_leaf got = lmap_leaf(&init_mm, addr);
		struct lmap_leaf want = lmap_area_want(area, addr);
		u64 mask = want.val & PTE_VALID ? 0 : PTE_NG;

		if ((got.val & ~mask) != (want.val & ~mask) ||
		    got.size != want.size) {
			KUNIT_FAIL(area->test,
				   "%s: %lx of %lx: entry %016llx of %lu bytes, expected %016llx of %lu",
				   when, addr - area->virt, area->size, got.val,
				   got.size, want.val, want.size);
			if (++failed == PGTABLE_KUNIT_ENOUGH)
				break;
		}
		area->leaves++;
		addr = got.addr + got.size;
	}
	return !failed;
}

/**
 * lmap_area_check_empty() - check that no entry and no table of an area is left
 * @area: the area
 * @when: for messages
 *
 * Return: whether nothing is left.
 */
bool lmap_area_check_empty(struct lmap_area *area, const char *when)
{
	unsigned long addr;

	for (addr = area->virt; addr < area->virt + area->size;) {
		struct lmap_leaf got = lmap_leaf(&init_mm, addr);

		if (got.val || got.size < PUD_SIZE) {
			KUNIT_FAIL(area->test,
				   "%s: %lx of %lx: entry %016llx of %lu bytes, expected none, and no table",
				   when, addr - area->virt, area->size, got.val,
				   got.size);
			return false;
		}
		addr = got.addr + got.size;
	}
	return true;
}

/*
 * The number of the allocation that must fail, and the number of allocations so
 * far.
 */
static struct {
	struct task_struct *task;
	unsigned int fail;
	unsigned int nr;
} lmap_alloc;

static int lmap_alloc_enter(struct kprobe *probe, struct pt_regs *regs)
{
	if (current != lmap_alloc.task || ++lmap_alloc.nr != lmap_alloc.fail)
		return 0;
	/* Return from the allocator at once, without a page. */
	regs->regs[0] = 0;
	instruction_pointer_set(regs, procedure_link_pointer(regs));
	return 1;
}

NOKPROBE_SYMBOL(lmap_alloc_enter);

static struct kprobe lmap_alloc_probe;

static void lmap_alloc_stop(void *data)
{
	unregister_kprobe(&lmap_alloc_probe);
}

/**
 * lmap_alloc_watch() - count the page allocations of this thread
 * @test: the test; the counting ends when this test ends
 */
void lmap_alloc_watch(struct kunit *test)
{
	lmap_alloc.task = current;
	lmap_alloc.fail = 0;
	lmap_alloc_probe = (struct kprobe){
		/* All functions that allocate pages call this function. */
		.symbol_name = "__alloc_frozen_pages_noprof",
		.pre_handler = lmap_alloc_enter,
	};
	KUNIT_ASSERT_EQ(test, 0, register_kprobe(&lmap_alloc_probe));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, lmap_alloc_stop,
							   NULL));
}

/**
 * lmap_alloc_fail() - let one allocation of this thread fail
 * @nth: 1 for the next allocation, 0 for none
 *
 * Return: the number of allocations since the last call.
 */
unsigned int lmap_alloc_fail(unsigned int nth)
{
	unsigned int nr = lmap_alloc.nr;

	lmap_alloc.nr = 0;
	WRITE_ONCE(lmap_alloc.fail, nth);
	return nr;
}
