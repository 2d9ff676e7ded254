// SPDX-License-Identifier: GPL-2.0
/*
 * The linear map that the machine runs on.
 *
 * Each page of memory has an address in the linear map. The kernel built this
 * map at boot, by the code that suite linear_map tests in a private mm. These
 * cases check the result: every entry of the kernel's own tables, for all
 * memory. They change nothing, so they work with any command line and CPU. They
 * print the numbers of entries that they found:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map_booted --kernel_args rodata=off
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map_booted --qemu_args '-cpu max,midr=0xc00fac30'
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map_booted --kernel_args linear_map_booted.nomap=6K@256M
 *
 * With the second command newer kernels map by blocks, and the third command
 * makes a hole in memory.
 *
 * Not covered: the number of table changes while the kernel built the map
 * (`make check` counts them on the host), and changes after the boot
 * (linear_map_split and linear_map_plug).
 */

#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/kfence.h>
#include <linux/memblock.h>
#include <linux/set_memory.h>
#include <asm/sections.h>

#include "linear_map.h"

/* The holes in memory that the command line asks for. */
static struct booted_hole {
	phys_addr_t start;
	phys_addr_t end;
} booted_holes[8];

static unsigned int booted_nr_holes;

/*
 * One or several ranges of the form SIZE@START: START counts from the start of
 * memory.
 */
static int __init booted_dig(char *arg, int (*dig)(phys_addr_t, phys_addr_t))
{
	while (arg && *arg && booted_nr_holes < ARRAY_SIZE(booted_holes)) {
		struct booted_hole *hole = &booted_holes[booted_nr_holes];
		phys_addr_t size = memparse(arg, &arg);
		int err;

		if (*arg++ != '@')
			return -EINVAL;
		hole->start = memblock_start_of_DRAM() + memparse(arg, &arg);
		hole->end = hole->start + size;
		err = dig(hole->start, size);
		if (err)
			return err;
		booted_nr_holes++;
		arg += *arg == ',';
	}
	return 0;
}

/*
 * Firmware keeps this memory: the kernel has it in its list of memory, but does
 * not map it.
 */
static int __init booted_nomap(char *arg)
{
	return booted_dig(arg, memblock_mark_nomap);
}

early_param("linear_map_booted.nomap", booted_nomap);

/* Remove this memory: the kernel does not know that it exists. */
static int __init booted_absent(char *arg)
{
	return booted_dig(arg, memblock_remove);
}

early_param("linear_map_booted.absent", booted_absent);

/* Other rules apply to parts of the kernel itself. */
static bool booted_in(phys_addr_t phys, const char *start, const char *end)
{
	return phys >= __pa_symbol(start) && phys < __pa_symbol(end);
}

static bool booted_is_text(phys_addr_t phys)
{
	return booted_in(phys, _text, __init_begin);
}

/**
 * struct booted_count - what was found
 * @pages: entries that map a page
 * @blocks: entries that map more than a page
 * @cont: contiguous entries among them
 * @text: entries that map text of the kernel
 */
struct booted_count {
	unsigned long pages;
	unsigned long blocks;
	unsigned long cont;
	unsigned long text;
};

/*
 * Call the check of a case for each entry that maps memory. Every entry must
 * pass.
 */
static struct booted_count
booted_memory(struct kunit *test,
	      bool (*ok)(const struct lmap_leaf *leaf, phys_addr_t phys))
{
	struct booted_count count = {};
	phys_addr_t start, end, phys;
	unsigned int failed = 0;
	u64 i;

	for_each_mem_range(i, &start, &end) {
		end = ALIGN_DOWN(end, PAGE_SIZE);
		for (phys = PAGE_ALIGN(start); phys < end;) {
			unsigned long addr = (unsigned long)__phys_to_virt(phys);
			struct lmap_leaf leaf = lmap_leaf(&init_mm, addr);

			count.pages += leaf.size == PAGE_SIZE;
			count.blocks += leaf.size > PAGE_SIZE;
			count.cont += leaf.val & PTE_VALID && leaf.val & PTE_CONT;
			count.text += booted_is_text(phys);
			if (!ok(&leaf, phys)) {
				KUNIT_FAIL(test,
					   "physical %pa: entry %016llx of %lu bytes at %lx",
					   &phys, leaf.val, leaf.size, addr);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return count;
			}
			phys += leaf.addr + leaf.size - addr;
		}
		cond_resched();
	}
	return count;
}

/* Whether the page at this address may be inaccessible for a while. */
static bool booted_comes_and_goes(unsigned long addr)
{
	return debug_pagealloc_enabled() || is_kfence_address((void *)addr);
}

static bool booted_maps_itself(const struct lmap_leaf *leaf, phys_addr_t phys)
{
	if (!leaf->val ||
	    (unsigned long)__phys_to_virt(lmap_leaf_phys(leaf)) != leaf->addr)
		return false;
	return leaf->val & PTE_VALID || booted_comes_and_goes(leaf->addr);
}

/*
 * Every page of memory is mapped at its own address, even the kernel's own
 * data. Newer kernels remove this data from the linear map, but only after the
 * last suite. Some pages have entries that are not valid: free pages with
 * debug_pagealloc=on, and the pages around an object of KFENCE.
 */
static void memory_mapped_to_itself(struct kunit *test)
{
	struct booted_count count = booted_memory(test, booted_maps_itself);

	kunit_info(test, "%lu pages, %lu blocks, %lu of them contiguous\n",
		   count.pages, count.blocks, count.cont);
	PGTABLE_KUNIT_DID(test, count.pages + count.blocks, "entries");
}

/* Whether every byte is memory that the kernel may map. */
static bool booted_is_memory(phys_addr_t phys, unsigned long size)
{
	phys_addr_t start, end, bytes = 0;
	u64 i;

	for_each_mem_range(i, &start, &end)
		if (start < phys + size && end > phys)
			bytes += min(end, phys + size) - max(start, phys);
	return bytes == size;
}

/*
 * Only memory is mapped: each byte of each entry of the linear map, up to the
 * last address of the map, is memory. So if firmware uses a part of a page, the
 * page is not mapped.
 */
static void nothing_else_mapped(struct kunit *test)
{
	unsigned long addr = _PAGE_OFFSET(vabits_actual), end = PAGE_END;
	unsigned long entries = 0, failed = 0;

	while (addr < end && addr >= _PAGE_OFFSET(vabits_actual)) {
		struct lmap_leaf leaf = lmap_leaf(&init_mm, addr);
		phys_addr_t phys = lmap_leaf_phys(&leaf);

		if (leaf.val & PTE_VALID) {
			entries++;
			if (!booted_is_memory(phys, leaf.size)) {
				KUNIT_FAIL(test, "%lx: entry %016llx of %lu bytes maps no memory",
					   addr, leaf.val, leaf.size);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
		addr = leaf.addr + leaf.size;
	}
	PGTABLE_KUNIT_DID(test, entries, "entries");
}

/*
 * A hole in memory is not mapped. A page with a byte of the hole is not mapped,
 * but the pages next to it are mapped. The command line makes these holes. Some
 * holes begin and end within a page, some have less than a page between them,
 * and some are larger than a block. The case memory_mapped_to_itself checks all
 * other memory.
 */
static void holes_not_mapped(struct kunit *test)
{
	unsigned long pages = 0, around = 0;
	unsigned int i;

	if (!booted_nr_holes)
		kunit_skip(test, "boot with linear_map_booted.nomap=SIZE@START");

	for (i = 0; i < booted_nr_holes; i++) {
		phys_addr_t start = ALIGN_DOWN(booted_holes[i].start, PAGE_SIZE);
		phys_addr_t end = PAGE_ALIGN(booted_holes[i].end), phys;

		for (phys = start - PAGE_SIZE; phys <= end; phys += PAGE_SIZE) {
			struct lmap_leaf leaf =
				lmap_leaf(&init_mm, (unsigned long)__phys_to_virt(phys));
			bool hole = phys >= start && phys < end;

			/* Another hole may begin at this page. */
			if (!hole && !booted_is_memory(phys, PAGE_SIZE))
				continue;
			KUNIT_EXPECT_EQ_MSG(test, !leaf.val, hole,
					    "hole %u: %pa: entry %016llx of %lu bytes",
					    i, &phys, leaf.val, leaf.size);
			pages += hole;
			around += !hole;
		}
	}
	PGTABLE_KUNIT_DID(test, pages, "pages that are not mapped");
	PGTABLE_KUNIT_DID(test, around, "pages beside them");
}

/*
 * Whether the other entries of a contiguous block map the following memory,
 * with the same attributes.
 */
static bool booted_block_ok(const struct lmap_leaf *leaf)
{
	unsigned long first = ALIGN_DOWN(leaf->addr, leaf->cont), addr;
	phys_addr_t phys = lmap_leaf_phys(leaf) - (leaf->addr - first);

	if (!leaf->cont || !IS_ALIGNED(phys, leaf->cont))
		return false;
	for (addr = first; addr < first + leaf->cont; addr += leaf->size) {
		struct lmap_leaf other = lmap_leaf(&init_mm, addr);

		if (other.size != leaf->size ||
		    lmap_leaf_attributes(&other) != lmap_leaf_attributes(leaf) ||
		    lmap_leaf_phys(&other) != phys + addr - first)
			return false;
	}
	return true;
}

static bool booted_contiguous_ok(const struct lmap_leaf *leaf,
				 phys_addr_t phys)
{
	bool cont = leaf->val & PTE_VALID && leaf->val & PTE_CONT;

	return !cont || booted_block_ok(leaf);
}

/*
 * Whether the entry maps one page and is not contiguous. Entries that are not
 * valid may be larger. Entries of text may be larger too, since the permissions
 * of text never change in part.
 */
static bool booted_single_page(const struct lmap_leaf *leaf, phys_addr_t phys)
{
	return !(leaf->val & PTE_VALID) || booted_is_text(phys) ||
	       (leaf->size == PAGE_SIZE && !(leaf->val & PTE_CONT));
}

/*
 * If an entry is contiguous, all entries of its block are contiguous: they map
 * consecutive memory, aligned to the block, with the same attributes. If the
 * kernel must change permissions of single pages and the CPU cannot split
 * blocks, no entry is contiguous, and only entries of the kernel's text are
 * larger than a page. Otherwise there must be larger entries.
 */
static void contiguous_blocks_complete(struct kunit *test)
{
	struct booted_count count = booted_memory(test, booted_contiguous_ok);

	if (lmap_by_pages()) {
		booted_memory(test, booted_single_page);
		PGTABLE_KUNIT_DID(test, count.pages, "single pages");
	} else {
		PGTABLE_KUNIT_DID(test, count.cont, "contiguous entries");
	}
}

static bool booted_attributes_ok(const struct lmap_leaf *leaf,
				 phys_addr_t phys)
{
	const u64 mask = PTE_USER | PTE_PXN | PTE_UXN | PTE_NG | PTE_WRITE |
			 PTE_RDONLY | PTE_SHARED | PTE_AF;
	const u64 want = PTE_PXN | PTE_UXN | (pgprot_val(PAGE_KERNEL) &
					      (PTE_SHARED | PTE_AF));
	u64 got = leaf->val & mask;

	/* Blocks and pages have their attributes in the same bits. */
	return !(leaf->val & PTE_VALID) || got == (want | PTE_RDONLY) ||
	       (got == (want | PTE_WRITE) && !booted_is_text(phys));
}

/*
 * Memory is data: the kernel can read and write it, user space can do neither,
 * and neither the kernel nor user space can execute it. The kernel's text is
 * read-only. Other pages that the kernel has protected are read-only too, such
 * as the slots of kprobes.
 */
static void attributes_of_data(struct kunit *test)
{
	struct booted_count count = booted_memory(test, booted_attributes_ok);

	KUNIT_EXPECT_GT(test, count.text, 0);
}

static bool booted_pool_by_pages(const struct lmap_leaf *leaf, phys_addr_t phys)
{
	return !is_kfence_address((void *)__phys_to_virt(phys)) ||
	       (leaf->size == PAGE_SIZE && !(leaf->val & PTE_CONT));
}

/*
 * KFENCE makes single pages of its pool inaccessible, even in an interrupt. So
 * the pool is mapped by single pages, even if all other memory is mapped by
 * blocks, as with rodata=off.
 */
static void kfence_pool_by_pages(struct kunit *test)
{
	struct booted_count count;

#ifdef CONFIG_KFENCE
	if (!is_kfence_address(__kfence_pool))
#endif
		kunit_skip(test, "needs CONFIG_KFENCE and its pool");

	count = booted_memory(test, booted_pool_by_pages);
	if (!lmap_by_pages())
		PGTABLE_KUNIT_DID(test, count.blocks, "blocks elsewhere");
	PGTABLE_KUNIT_DID(test, count.pages, "pages");
}

/* The number of pages of one allocation that are accessible. */
static unsigned int booted_accessible(struct page *page, unsigned int order)
{
	unsigned int i, valid = 0;

	for (i = 0; i < 1U << order; i++) {
		unsigned long addr = (unsigned long)page_address(page + i);

		valid += !!(lmap_leaf(&init_mm, addr).val & PTE_VALID);
	}
	return valid;
}

/*
 * With debug_pagealloc=on a page is accessible only from its allocation to its
 * release. The orders are 0 to 4: a CPU keeps lists of free pages for orders up
 * to 3, but not for order 4. Interrupts are off between the release and the
 * check, so no other code allocates the page.
 */
static void free_page_not_mapped(struct kunit *test)
{
	unsigned int order, freed = 0;

	if (!debug_pagealloc_enabled())
		kunit_skip(test, "boot with CONFIG_DEBUG_PAGEALLOC and debug_pagealloc=on");

	for (order = 0; order <= 4; order++) {
		struct page *page = alloc_pages(GFP_KERNEL, order);
		unsigned int before, after;
		unsigned long flags;

		KUNIT_ASSERT_NOT_NULL(test, page);
		before = booted_accessible(page, order);
		local_irq_save(flags);
		__free_pages(page, order);
		after = booted_accessible(page, order);
		local_irq_restore(flags);

		KUNIT_EXPECT_EQ_MSG(test, before, 1U << order, "order %u", order);
		KUNIT_EXPECT_EQ_MSG(test, after, 0, "order %u", order);
		freed += before - after;
	}
	PGTABLE_KUNIT_DID(test, freed, "pages that were freed");
}

static struct kunit_case linear_map_booted_cases[] = {
	KUNIT_CASE(memory_mapped_to_itself),
	KUNIT_CASE(nothing_else_mapped),
	KUNIT_CASE(holes_not_mapped),
	KUNIT_CASE(contiguous_blocks_complete),
	KUNIT_CASE(attributes_of_data),
	KUNIT_CASE(kfence_pool_by_pages),
	KUNIT_CASE(free_page_not_mapped),
	{}
};

static struct kunit_suite linear_map_booted_suite = {
	.name = "linear_map_booted",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = linear_map_booted_cases,
};

kunit_test_suite(linear_map_booted_suite);

MODULE_DESCRIPTION("KUnit tests for the linear map that the machine runs on");
MODULE_LICENSE("GPL");
