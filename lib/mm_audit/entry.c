// SPDX-License-Identifier: GPL-2.0
/*
 * Entries of page tables: the counts that each entry adds to its page, and the
 * rules for one entry.
 */

#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>

#include "audit.h"

/* Properties of an entry that are the same at all levels. */
struct audit_entry {
	struct page *page;
	unsigned long addr;
	unsigned long nr;
	bool write;
	bool exec;
	bool whole;
};

/**
 * audit_vma_at() - find the VMA of an address
 * @a: the audit; its VMA becomes the first VMA that ends after @addr
 * @addr: the address; it is not below the address of the last call
 *
 * Return: whether the address is in a VMA.
 */
bool audit_vma_at(struct audit *a, unsigned long addr)
{
	while (a->vma && a->vma->vm_end <= addr)
		a->vma = vma_next(&a->vmi);
	return a->vma && a->vma->vm_start <= addr;
}

/* Count a mapping of a folio, or of one page of it. */
static void entry_count(struct audit *a, struct folio *folio,
			const struct audit_entry *e)
{
	struct audit_frame *head = audit_frame(a, folio_pfn(folio)), *frame;
	int i;

	if (!head)
		return;
	head->mappings++;
	if (head->last != a->nr) {
		head->last = a->nr;
		head->owners++;
	}
	head->locked += !!(a->vma->vm_flags & VM_LOCKED);
	if (AUDIT_HAS_MM_ID && folio_test_large(folio) &&
	    !folio_test_hugetlb(folio))
		for (i = 0; i < 2; i++)
			head->slot[i] += audit_folio_mm_id(folio, i) ==
					 audit_mm_id(a->mm);
	if (e->whole) {
		head->entire++;
	} else {
		frame = audit_frame(a, page_to_pfn(e->page));
		if (frame)
			frame->ptes++;
	}
}

/* The reverse mapping must lead from the folio to this address. */
static void entry_rmap(struct audit *a, struct folio *folio,
		       const struct audit_entry *e)
{
	unsigned long pfn = page_to_pfn(e->page);
	struct vm_area_struct *vma = a->vma;
	struct anon_vma_chain *avc;
	struct anon_vma *anon_vma;
	pgoff_t index = folio->index + folio_page_idx(folio, e->page);

	if (folio_test_ksm(folio))
		return;
	if (folio_test_anon(folio)) {
		anon_vma = folio_anon_vma(folio);
		a->out->compared[MM_AUDIT_entry_rmap]++;
		list_for_each_entry(avc, &vma->anon_vma_chain, same_vma)
			if (avc->anon_vma == anon_vma)
				goto found;
		audit_report(a, MM_AUDIT_entry_rmap,
			     "VMAs that the anon_vma of the folio leads to",
			     e->addr, pfn, 0, 1);
	} else if (folio->mapping && vma->vm_file &&
		   !(vma->vm_flags & VM_MIXEDMAP)) {
		audit_equal(a, MM_AUDIT_entry_rmap,
			    "VMAs that the file of the folio leads to", e->addr,
			    pfn, folio->mapping == vma->vm_file->f_mapping, 1);
	} else {
		return;
	}
found:
	audit_equal(a, MM_AUDIT_entry_rmap, "index of the page", e->addr, pfn,
		    index, folio_test_anon(folio) ?
		    audit_anon_index(vma, e->addr) :
		    linear_page_index(vma, e->addr));
}

static void entry_rights(struct audit *a, struct folio *folio,
			 const struct audit_entry *e)
{
	vm_flags_t flags = a->vma->vm_flags;
	unsigned long pfn = page_to_pfn(e->page);

	a->out->compared[MM_AUDIT_vma_rights]++;
	if (e->write && !(flags & VM_WRITE))
		audit_report(a, MM_AUDIT_vma_rights, "right to write", e->addr,
			     pfn, 1, 0);
	if (e->exec && !(flags & VM_EXEC))
		audit_report(a, MM_AUDIT_vma_rights, "right to execute",
			     e->addr, pfn, 1, 0);
	if (!(flags & (VM_SHARED | VM_MAYSHARE)))
		audit_equal(a, MM_AUDIT_private_write,
			    "right to write to a page of a file", e->addr, pfn,
			    e->write && !folio_test_anon(folio), 0);
	if (folio_test_anon(folio))
		audit_equal(a, MM_AUDIT_write_exclusive,
			    "right to write to a page that may be shared",
			    e->addr, pfn,
			    e->write && !PageAnonExclusive(e->page), 0);
}

/* A mapping of a page that has a folio. */
static void entry_mapped(struct audit *a, const struct audit_entry *e)
{
	struct folio *folio = page_folio(e->page);

	audit_equal(a, MM_AUDIT_freed_page, "pages that are free", e->addr,
		    page_to_pfn(e->page),
		    !folio_ref_count(folio) || PageBuddy(e->page), 0);
	if (PageBuddy(e->page))
		return;
	entry_count(a, folio, e);
	entry_rmap(a, folio, e);
	entry_rights(a, folio, e);
}

static bool entry_in_vma(struct audit *a, unsigned long addr,
			 unsigned long value)
{
	a->out->entries++;
	a->out->compared[MM_AUDIT_vma_entry]++;
	if (audit_vma_at(a, addr))
		return true;
	audit_report(a, MM_AUDIT_vma_entry, "entry where there is no VMA", addr,
		     0, value, 0);
	return false;
}

/* An entry that is not present: @nr pages. */
static void entry_leaf(struct audit *a, struct audit_entry *e, swp_entry_t entry,
		       bool exclusive)
{
	struct folio *folio;

	switch (audit_leaf(entry)) {
	case AUDIT_LEAF_SWAP:
		a->sum.rss[MM_SWAPENTS] += e->nr;
		audit_swap_entry(a, e->addr, entry, exclusive);
		break;
	case AUDIT_LEAF_MAPPED:
		e->page = audit_leaf_page(entry);
		folio = page_folio(e->page);
		entry_count(a, folio, e);
		a->sum.rss[mm_counter(folio)] += e->nr;
		break;
	case AUDIT_LEAF_MIGRATION:
	case AUDIT_LEAF_UNMAPPED:
		folio = page_folio(audit_leaf_page(entry));
		a->sum.rss[mm_counter(folio)] += e->nr;
		break;
	default:
		break;
	}
}

/**
 * audit_pte() - check an entry of the lowest level
 * @a: the audit
 * @addr: its address
 * @pte: the entry, which is not empty and not of a hugetlb page
 */
void audit_pte(struct audit *a, unsigned long addr, pte_t pte)
{
	struct audit_entry e = { .addr = addr, .nr = 1 };
	struct page *page;

	if (!entry_in_vma(a, addr, pte_val(pte)))
		return;
	if (!pte_present(pte)) {
		entry_leaf(a, &e, audit_leaf_entry(pte),
			   pte_swp_exclusive(pte));
		return;
	}
	page = vm_normal_page(a->vma, addr, pte);
	if (!page)
		return;
	e.page = page;
	e.write = pte_write(pte);
	e.exec = audit_pte_exec(pte);
	a->sum.rss[mm_counter(page_folio(page))]++;
	entry_mapped(a, &e);
}

/**
 * audit_pmd() - check an entry that maps a huge page, or that is not present
 * @a: the audit
 * @addr: its address
 * @pmd: the entry, which is not empty and not of a hugetlb page
 */
void audit_pmd(struct audit *a, unsigned long addr, pmd_t pmd)
{
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	struct audit_entry e = { .addr = addr, .nr = HPAGE_PMD_NR, .whole = true };

	if (!entry_in_vma(a, addr, pmd_val(pmd)))
		return;
	if (!pmd_present(pmd)) {
		entry_leaf(a, &e, audit_leaf_entry_pmd(pmd), false);
		return;
	}
	e.page = vm_normal_page_pmd(a->vma, addr, pmd);
	if (!e.page)
		return;
	e.write = pmd_write(pmd);
	a->sum.rss[mm_counter(page_folio(e.page))] += HPAGE_PMD_NR;
	entry_mapped(a, &e);
#endif
}

#ifdef CONFIG_HUGETLB_PAGE
/**
 * audit_hugetlb() - check an entry of a hugetlb page
 * @a: the audit
 * @addr: its address, the first of the huge page
 * @pte: the entry
 */
void audit_hugetlb(struct audit *a, unsigned long addr, pte_t pte)
{
	struct hstate *h = hstate_vma(a->vma);
	struct audit_entry e = {
		.addr = addr, .nr = pages_per_huge_page(h), .whole = true,
	};

	if (huge_pte_none(pte) || !entry_in_vma(a, addr, pte_val(pte)))
		return;
	if (!pte_present(pte)) {
		if (audit_leaf(audit_leaf_entry(pte)) == AUDIT_LEAF_MIGRATION)
			a->sum.hugetlb += e.nr;
		return;
	}
	e.page = pte_page(pte);
	e.write = huge_pte_write(pte);
	a->sum.hugetlb += e.nr;
	if (!audit_equal(a, MM_AUDIT_hugetlb_total,
			 "hugetlb folios in an entry of a hugetlb VMA", addr,
			 page_to_pfn(e.page),
			 folio_test_hugetlb(page_folio(e.page)), 1))
		return;
	entry_mapped(a, &e);
}
#endif

#ifdef CONFIG_ARM64
/* The bits that may differ: accessed, dirty, and the dirty bit of hardware. */
static u64 cont_bits(u64 val, u64 pfn_mask)
{
	u64 mask = PTE_AF | PTE_DIRTY | pfn_mask;

	if (val & PTE_WRITE)
		mask |= PTE_RDONLY;
	return val & ~mask;
}

static void cont_check(struct audit *a, unsigned long addr, const u64 *entry,
		       unsigned int nr, unsigned long pages)
{
	pte_t first = __pte(entry[0]);
	u64 pfn_mask = pte_val(pfn_pte(~0UL >> PAGE_SHIFT, __pgprot(0)));
	unsigned long pfn = pte_pfn(first);
	unsigned int i;

	audit_equal(a, MM_AUDIT_cont_block, "pages before the block's start",
		    addr, pfn, pfn & (nr * pages - 1), 0);
	for (i = 1; i < nr; i++) {
		unsigned long at = addr + i * pages * PAGE_SIZE;
		pte_t pte = __pte(entry[i]);

		a->out->compared[MM_AUDIT_cont_block]++;
		if (!pte_valid_cont(pte))
			audit_report(a, MM_AUDIT_cont_block,
				     "entry of a block is not contiguous", at,
				     pfn, entry[i], entry[0]);
		else if (pte_pfn(pte) != pfn + i * pages)
			audit_report(a, MM_AUDIT_cont_block, "page of a block",
				     at, pfn, pte_pfn(pte), pfn + i * pages);
		else if (cont_bits(entry[i], pfn_mask) !=
			 cont_bits(entry[0], pfn_mask))
			audit_report(a, MM_AUDIT_cont_block, "bits of a block",
				     at, pfn, cont_bits(entry[i], pfn_mask),
				     cont_bits(entry[0], pfn_mask));
	}
	if (pfn_valid(pfn) && pfn_valid(pfn + nr * pages - 1))
		audit_equal(a, MM_AUDIT_cont_block,
			    "pages of a block that are in another folio", addr,
			    pfn, page_folio(pfn_to_page(pfn)) !=
			    page_folio(pfn_to_page(pfn + nr * pages - 1)), 0);
}

/**
 * audit_cont_ptes() - check a contiguous block
 * @a: the audit
 * @addr: an address
 * @ptep: its entry; nothing is checked if it is not contiguous
 *
 *	| 0 1 2 ... 15 | 0 1 ...		the block begins at a multiple
 *	  ^ addr				of its size
 */
void audit_cont_ptes(struct audit *a, unsigned long addr, pte_t *ptep)
{
	u64 entry[CONT_PTES];
	unsigned int i;

	if (!pte_valid_cont(__ptep_get(ptep)))
		return;
	if (!audit_equal(a, MM_AUDIT_cont_block, "entry where no block begins",
			 addr, pte_pfn(__ptep_get(ptep)),
			 (addr & (CONT_PTE_SIZE - 1)) >> PAGE_SHIFT, 0))
		return;
	for (i = 0; i < CONT_PTES; i++)
		entry[i] = pte_val(__ptep_get(ptep + i));
	cont_check(a, addr, entry, CONT_PTES, 1);
}

/**
 * audit_cont_pmds() - check a contiguous block of huge pages
 * @a: the audit
 * @addr: an address in a hugetlb VMA
 * @pmdp: its entry; nothing is checked if no block begins there
 */
void audit_cont_pmds(struct audit *a, unsigned long addr, pmd_t *pmdp)
{
	u64 entry[CONT_PMDS];
	unsigned int i;

	if (!IS_ALIGNED(addr, CONT_PMD_SIZE) ||
	    !pte_valid_cont(pmd_pte(READ_ONCE(*pmdp))))
		return;
	for (i = 0; i < CONT_PMDS; i++)
		entry[i] = pmd_val(READ_ONCE(pmdp[i]));
	cont_check(a, addr, entry, CONT_PMDS, PMD_SIZE / PAGE_SIZE);
}
#else
void audit_cont_pmds(struct audit *a, unsigned long addr, pmd_t *pmdp)
{
}
#endif
