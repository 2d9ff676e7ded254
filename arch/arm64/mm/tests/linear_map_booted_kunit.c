// SPDX-License-Identifier: GPL-2.0
/*
 * The linear map that the machine runs on.
 *
 * Each page of memory has an address in the linear map, which was built while
 * the machine booted, by the code that linear_map tests in private. Here the
 * result is looked at: every entry of the kernel's own tables, for all memory
 * there is. Nothing is changed, and so each case works whatever the command
 * line and the CPU have made of it; what they have is printed:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map_booted --kernel_args rodata=off
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map_booted --qemu_args '-cpu max,midr=0xc00fac30'
 *
 * With the latter newer kernels map by blocks.
 *
 * Not covered: how often tables were changed on the way (`make check` counts
 * that from outside), splitting, memory that is plugged in later.
 */

#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/memblock.h>
#include <linux/set_memory.h>
#include <asm/sections.h>

#include "pgtable_kunit.h"

/**
 * struct booted_leaf - what maps an address
 * @val: the entry, or 0
 * @addr: the first address that it translates
 * @size: how many bytes it translates
 * @cont: the size of a contiguous block of such entries, or 0
 */
struct booted_leaf {
	u64 val;
	unsigned long addr;
	unsigned long size;
	unsigned long cont;
};

static struct booted_leaf booted_found(u64 val, unsigned long addr,
				       unsigned long size, unsigned long cont)
{
	return (struct booted_leaf){
		.val = val, .addr = ALIGN_DOWN(addr, size), .size = size,
		.cont = cont,
	};
}

static struct booted_leaf booted_leaf(unsigned long addr)
{
	pgd_t *pgdp = pgd_offset_k(addr);
	p4d_t *p4dp;
	pud_t *pudp;
	pmd_t *pmdp;

	if (pgd_none(READ_ONCE(*pgdp)))
		return booted_found(0, addr, PGDIR_SIZE, 0);
	p4dp = p4d_offset(pgdp, addr);
	if (p4d_none(READ_ONCE(*p4dp)))
		return booted_found(0, addr, P4D_SIZE, 0);
	pudp = pud_offset(p4dp, addr);
	if (pud_none(READ_ONCE(*pudp)) || pud_leaf(READ_ONCE(*pudp)))
		return booted_found(pud_val(READ_ONCE(*pudp)), addr, PUD_SIZE, 0);
	pmdp = pmd_offset(pudp, addr);
	if (pmd_none(READ_ONCE(*pmdp)) || pmd_leaf(READ_ONCE(*pmdp)))
		return booted_found(pmd_val(READ_ONCE(*pmdp)), addr, PMD_SIZE,
				    CONT_PMD_SIZE);
	return booted_found(pte_val(__ptep_get(pte_offset_kernel(pmdp, addr))),
			    addr, PAGE_SIZE, CONT_PTE_SIZE);
}

static phys_addr_t booted_phys(const struct booted_leaf *leaf)
{
	return __pte_to_phys(__pte(leaf->val));
}

/* All but the address. */
static u64 booted_attributes(const struct booted_leaf *leaf)
{
	return leaf->val & ~__phys_to_pte_val(booted_phys(leaf));
}

/* Parts of the kernel itself have rules of their own. */
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
 * @blocks: entries that map more
 * @cont: contiguous entries among them
 * @text: entries that map text of the kernel
 */
struct booted_count {
	unsigned long pages;
	unsigned long blocks;
	unsigned long cont;
	unsigned long text;
};

/* Each entry that maps memory has to be as a case wants it. */
static struct booted_count
booted_memory(struct kunit *test,
	      bool (*ok)(const struct booted_leaf *leaf, phys_addr_t phys))
{
	struct booted_count count = {};
	phys_addr_t start, end, phys;
	unsigned int failed = 0;
	u64 i;

	for_each_mem_range(i, &start, &end) {
		end = ALIGN_DOWN(end, PAGE_SIZE);
		for (phys = PAGE_ALIGN(start); phys < end;) {
			unsigned long addr = (unsigned long)__phys_to_virt(phys);
			struct booted_leaf leaf = booted_leaf(addr);

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

static bool booted_maps_itself(const struct booted_leaf *leaf, phys_addr_t phys)
{
	if (!(leaf->val & PTE_VALID))
		return system_state >= SYSTEM_FREEING_INITMEM &&
		       booted_in(phys, __init_end, __bss_stop);
	return (unsigned long)__phys_to_virt(booted_phys(leaf)) == leaf->addr;
}

/*
 * Every page of memory is mapped at its address, to itself [linear map 29, 31].
 * Newer kernels take the second address of their data away when they have
 * booted; a run at boot finds all of it.
 */
static void memory_mapped_to_itself(struct kunit *test)
{
	struct booted_count count = booted_memory(test, booted_maps_itself);

	kunit_info(test, "%lu pages, %lu blocks, %lu of them contiguous\n",
		   count.pages, count.blocks, count.cont);
	PGTABLE_KUNIT_DID(test, count.pages + count.blocks, "entries");
}

/*
 * Nothing but memory is mapped [linear map 29]: each entry of the linear map, up
 * to the last address that there is, begins and ends with a byte of memory, so
 * that no page is mapped of which firmware has taken a part away.
 */
static void nothing_else_mapped(struct kunit *test)
{
	unsigned long addr = _PAGE_OFFSET(vabits_actual), end = PAGE_END;
	unsigned long entries = 0, failed = 0;

	while (addr < end && addr >= _PAGE_OFFSET(vabits_actual)) {
		struct booted_leaf leaf = booted_leaf(addr);
		phys_addr_t phys = booted_phys(&leaf);

		if (leaf.val & PTE_VALID) {
			entries++;
			if (!memblock_is_map_memory(phys) ||
			    !memblock_is_map_memory(phys + leaf.size - 1)) {
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

/* The others of a contiguous block: do they go on as they should? */
static bool booted_block_ok(const struct booted_leaf *leaf)
{
	unsigned long first = ALIGN_DOWN(leaf->addr, leaf->cont), addr;
	phys_addr_t phys = booted_phys(leaf) - (leaf->addr - first);

	if (!leaf->cont || !IS_ALIGNED(phys, leaf->cont))
		return false;
	for (addr = first; addr < first + leaf->cont; addr += leaf->size) {
		struct booted_leaf other = booted_leaf(addr);

		if (other.size != leaf->size ||
		    booted_attributes(&other) != booted_attributes(leaf) ||
		    booted_phys(&other) != phys + addr - first)
			return false;
	}
	return true;
}

static bool booted_contiguous_ok(const struct booted_leaf *leaf,
				 phys_addr_t phys)
{
	bool cont = leaf->val & PTE_VALID && leaf->val & PTE_CONT;

	return !cont || booted_block_ok(leaf);
}

/* Apart from text, which never changes in part. */
static bool booted_single_page(const struct booted_leaf *leaf, phys_addr_t phys)
{
	return !(leaf->val & PTE_VALID) || booted_is_text(phys) ||
	       (leaf->size == PAGE_SIZE && !(leaf->val & PTE_CONT));
}

/*
 * Where an entry is contiguous, all of its block are [linear map 29, 31]: they
 * map memory that follows on, aligned to the block, with the same attributes.
 * No entry is contiguous, and none but of the kernel's text is larger than a
 * page [29], if single pages must be able to change their permissions on a CPU that
 * cannot split blocks; elsewhere there have to be some.
 */
static void contiguous_blocks_complete(struct kunit *test)
{
	struct booted_count count = booted_memory(test, booted_contiguous_ok);

	if (can_set_direct_map() && pgtable_kunit_convert_flushes()) {
		booted_memory(test, booted_single_page);
		PGTABLE_KUNIT_DID(test, count.pages, "single pages");
	} else {
		PGTABLE_KUNIT_DID(test, count.cont, "contiguous entries");
	}
}

static bool booted_attributes_ok(const struct booted_leaf *leaf,
				 phys_addr_t phys)
{
	const u64 mask = PTE_USER | PTE_PXN | PTE_UXN | PTE_NG | PTE_WRITE |
			 PTE_RDONLY | PTE_SHARED | PTE_AF;
	const u64 want = PTE_PXN | PTE_UXN | (pgprot_val(PAGE_KERNEL) &
					      (PTE_SHARED | PTE_AF));
	u64 got = leaf->val & mask;

	/* Blocks and pages have their attributes in one place. */
	return !(leaf->val & PTE_VALID) || got == (want | PTE_RDONLY) ||
	       (got == (want | PTE_WRITE) && !booted_is_text(phys));
}

/*
 * Memory is data [linear map 29]: the kernel can read and write it, user space
 * cannot, and neither can execute it. What is the kernel's text can only be
 * read; and so can other pages that the kernel has protected, such as the slots
 * of kprobes.
 */
static void attributes_of_data(struct kunit *test)
{
	struct booted_count count = booted_memory(test, booted_attributes_ok);

	KUNIT_EXPECT_GT(test, count.text, 0);
}

static struct kunit_suite linear_map_booted_suite;

static int linear_map_booted_init(struct kunit *test)
{
	return pgtable_kunit_case_init(test, &linear_map_booted_suite);
}

static struct kunit_case linear_map_booted_cases[] = {
	KUNIT_CASE(memory_mapped_to_itself),
	KUNIT_CASE(nothing_else_mapped),
	KUNIT_CASE(contiguous_blocks_complete),
	KUNIT_CASE(attributes_of_data),
	{}
};

static struct kunit_suite linear_map_booted_suite = {
	.name = "linear_map_booted",
	.init = linear_map_booted_init,
	.test_cases = linear_map_booted_cases,
};

kunit_test_suite(linear_map_booted_suite);

MODULE_DESCRIPTION("KUnit tests for the linear map that the machine runs on");
MODULE_LICENSE("GPL");
