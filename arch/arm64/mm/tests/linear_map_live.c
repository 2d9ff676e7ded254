// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers that find the entry for an address in the page tables that the kernel
 * runs on.
 */

#include <linux/mm.h>
#include <linux/set_memory.h>

#include "linear_map.h"

static struct lmap_leaf lmap_found(u64 val, unsigned long addr,
				   unsigned long size, unsigned long cont)
{
	return (struct lmap_leaf){
		.val = val, .addr = ALIGN_DOWN(addr, size), .size = size,
		.cont = cont,
	};
}

/**
 * lmap_leaf() - find the entry that maps an address
 * @mm: the page tables
 * @addr: the address
 *
 * Return: the entry of the last level that exists for this address; it may be
 * invalid.
 */
struct lmap_leaf lmap_leaf(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgdp = pgd_offset(mm, addr);
	p4d_t *p4dp;
	pud_t *pudp;
	pmd_t *pmdp;

	if (pgd_none(READ_ONCE(*pgdp)))
		return lmap_found(0, addr, PGDIR_SIZE, 0);
	p4dp = p4d_offset(pgdp, addr);
	if (p4d_none(READ_ONCE(*p4dp)))
		return lmap_found(0, addr, P4D_SIZE, 0);
	pudp = pud_offset(p4dp, addr);
	if (pud_none(READ_ONCE(*pudp)) || pud_leaf(READ_ONCE(*pudp)))
		return lmap_found(pud_val(READ_ONCE(*pudp)), addr, PUD_SIZE, 0);
	pmdp = pmd_offset(pudp, addr);
	if (pmd_none(READ_ONCE(*pmdp)) || pmd_leaf(READ_ONCE(*pmdp)))
		return lmap_found(pmd_val(READ_ONCE(*pmdp)), addr, PMD_SIZE,
				  CONT_PMD_SIZE);
	return lmap_found(pte_val(__ptep_get(pte_offset_kernel(pmdp, addr))),
			  addr, PAGE_SIZE, CONT_PTE_SIZE);
}

/**
 * lmap_leaf_phys() - the physical address in an entry
 * @leaf: the entry
 */
phys_addr_t lmap_leaf_phys(const struct lmap_leaf *leaf)
{
	return __pte_to_phys(__pte(leaf->val));
}

/**
 * lmap_leaf_attributes() - all bits of an entry except the address
 * @leaf: the entry
 */
u64 lmap_leaf_attributes(const struct lmap_leaf *leaf)
{
	return leaf->val & ~__phys_to_pte_val(lmap_leaf_phys(leaf));
}

/**
 * lmap_by_pages() - whether this boot maps memory by single pages
 *
 * The kernel must do this if single pages change their permissions and a larger
 * entry cannot be split: either the CPU cannot split entries, or the kernel
 * cannot wait for the split.
 */
bool lmap_by_pages(void)
{
	return debug_pagealloc_enabled() ||
	       (can_set_direct_map() && pgtable_kunit_convert_flushes());
}
