// SPDX-License-Identifier: GPL-2.0
/*
 * The walk over all page tables of an address space.
 *
 * It follows the tables, not the VMAs, so it also finds entries where there is
 * no VMA. It reads each entry unchanged, and changes no entry.
 */

#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pgalloc.h>
#include <linux/pgtable.h>

#include "audit.h"

static bool walk_is_hugetlb(struct audit *a, unsigned long addr)
{
	return audit_vma_at(a, addr) && is_vm_hugetlb_page(a->vma);
}

#ifdef CONFIG_HUGETLB_PAGE
/* An entry of a hugetlb VMA; each huge page counts at its first address. */
static void walk_hugetlb(struct audit *a, unsigned long addr, void *entry)
{
	unsigned long size = huge_page_size(hstate_vma(a->vma));

	if (IS_ALIGNED(addr, size))
		audit_hugetlb(a, addr, huge_ptep_get(a->mm, addr, entry));
}
#else
static void walk_hugetlb(struct audit *a, unsigned long addr, void *entry)
{
}
#endif

static void walk_ptes(struct audit *a, pmd_t *pmd, unsigned long addr,
		      unsigned long end)
{
	pte_t *ptep = pte_offset_kernel(pmd, addr);

	for (; addr != end; addr += PAGE_SIZE, ptep++) {
		pte_t pte = audit_raw_pte(ptep);

		if (pte_none(pte))
			continue;
#ifdef CONFIG_ARM64
		if (IS_ALIGNED(addr, CONT_PTE_SIZE) || !pte_valid_cont(__ptep_get(ptep - 1)))
			audit_cont_ptes(a, addr, ptep);
#endif
		if (walk_is_hugetlb(a, addr))
			walk_hugetlb(a, addr, ptep);
		else
			audit_pte(a, addr, pte);
	}
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/* The sum includes page tables that wait for the split of a huge page. */
static unsigned long walk_deposits(pgtable_t first)
{
	unsigned long nr = 0;

#if AUDIT_DEPOSITS
	struct page *page;

	if (first) {
		nr = 1;
		list_for_each_entry(page, &first->lru, lru)
			nr++;
	}
#endif
	return nr * PTRS_PER_PTE * sizeof(pte_t);
}
#endif

static void walk_pmds(struct audit *a, pud_t *pud, unsigned long addr,
		      unsigned long end)
{
	pmd_t *pmdp = pmd_offset(pud, addr);
	unsigned long next;

#if defined(CONFIG_TRANSPARENT_HUGEPAGE) && defined(CONFIG_SPLIT_PMD_PTLOCKS)
	if (!mm_pmd_folded(a->mm))
		a->sum.tables += walk_deposits(pmd_huge_pte(a->mm, pmdp));
#endif
	for (; addr != end; addr = next, pmdp++) {
		pmd_t pmd = READ_ONCE(*pmdp);

		next = pmd_addr_end(addr, end);
		if (pmd_none(pmd))
			continue;
		if (pmd_present(pmd) && !pmd_leaf(pmd)) {
			if (pmd_bad(pmd)) {
				audit_report(a, MM_AUDIT_vma_entry,
					     "entry for a page table is bad",
					     addr, 0, (long)pmd_val(pmd), 0);
				continue;
			}
			a->sum.tables += PTRS_PER_PTE * sizeof(pte_t);
			walk_ptes(a, pmdp, addr, next);
			continue;
		}
		if (walk_is_hugetlb(a, addr)) {
			audit_cont_pmds(a, addr, pmdp);
			walk_hugetlb(a, addr, pmdp);
		} else {
			audit_pmd(a, addr, pmd);
		}
	}
}

/*
 * Several address spaces may use one table of hugetlb pages. Its entries count
 * once. Return: whether the walk has already counted the table.
 */
static bool walk_shared(struct audit *a, pud_t *pud, unsigned long addr)
{
#if AUDIT_TABLE_SHARE
	void *table = pmd_offset(pud, addr & PUD_MASK);
	struct audit_frame *frame;

	if (!walk_is_hugetlb(a, addr))
		return false;
	frame = audit_frame(a, page_to_pfn(virt_to_page(table)));
	if (audit_table_share(table))
		a->sum.shared_tables++;
	return frame && frame->ptes++;
#else
	return false;
#endif
}

static void walk_puds(struct audit *a, p4d_t *p4d, unsigned long addr,
		      unsigned long end)
{
	pud_t *pudp = pud_offset(p4d, addr);
	unsigned long next;

	for (; addr != end; addr = next, pudp++) {
		pud_t pud = READ_ONCE(*pudp);

		next = pud_addr_end(addr, end);
		if (pud_none(pud))
			continue;
		audit_vma_at(a, addr);
		if (pud_present(pud) && !pud_leaf(pud)) {
			if (!mm_pmd_folded(a->mm))
				a->sum.tables += PTRS_PER_PMD * sizeof(pmd_t);
			if (!walk_shared(a, pudp, addr))
				walk_pmds(a, pudp, addr, next);
		} else if (walk_is_hugetlb(a, addr)) {
			walk_hugetlb(a, addr, pudp);
		}
	}
}

static void walk_p4ds(struct audit *a, pgd_t *pgd, unsigned long addr,
		      unsigned long end)
{
	p4d_t *p4d = p4d_offset(pgd, addr);
	unsigned long next;

	for (; addr != end; addr = next, p4d++) {
		next = p4d_addr_end(addr, end);
		if (p4d_none(*p4d) || !p4d_present(*p4d))
			continue;
		if (!mm_pud_folded(a->mm))
			a->sum.tables += PTRS_PER_PUD * sizeof(pud_t);
		walk_puds(a, p4d, addr, next);
	}
}

/**
 * audit_walk() - check all entries of the current address space
 * @a: the audit
 */
void audit_walk(struct audit *a)
{
	unsigned long addr = 0, end = a->mm->task_size, next;
	pgd_t *pgd = pgd_offset(a->mm, 0);

#if defined(CONFIG_TRANSPARENT_HUGEPAGE) && !defined(CONFIG_SPLIT_PMD_PTLOCKS)
	a->sum.tables += walk_deposits(a->mm->pmd_huge_pte);
#endif
	for (; addr != end; addr = next, pgd++) {
		next = pgd_addr_end(addr, end);
		if (!pgd_none(*pgd) && pgd_present(*pgd))
			walk_p4ds(a, pgd, addr, next);
	}
}
