/* SPDX-License-Identifier: GPL-2.0 */
/* How an entry of a block can differ from the others. */
#ifndef _ARM64_MM_TESTS_CONTPTE_ODD_H
#define _ARM64_MM_TESTS_CONTPTE_ODD_H

#include "contpte.h"

static inline pte_t odd_none(pte_t pte)
{
	return __pte(0);
}

static inline pte_t odd_swap(pte_t pte)
{
	return swp_entry_to_pte(swp_entry(0, pte_pfn(pte)));
}

static inline pte_t odd_protnone(pte_t pte)
{
	return pte_modify(pte, vm_get_page_prot(VM_NONE));
}

static inline pte_t odd_next_page(pte_t pte)
{
	return pte_advance_pfn(pte, 1);
}

static inline pte_t odd_next_block(pte_t pte)
{
	return pte_advance_pfn(pte, CONT_PTES);
}

static inline pte_t odd_memory_type(pte_t pte)
{
	return __pte(pte_val(pte) ^ PTE_ATTRINDX(MT_NORMAL ^ MT_NORMAL_NC));
}

static inline pte_t odd_uffd(pte_t pte)
{
	return pgtable_kunit_mkuffd(pte);
}

#define ODD_BIT(bit)							\
static inline pte_t odd_##bit(pte_t pte)					\
{									\
	return __pte(pte_val(pte) ^ (bit));				\
}

ODD_BIT(PTE_WRITE)
ODD_BIT(PTE_USER)
ODD_BIT(PTE_UXN)
ODD_BIT(PTE_PXN)
ODD_BIT(PTE_GP)
ODD_BIT(PTE_NG)
ODD_BIT(PTE_SPECIAL)
#ifdef PTE_PO_IDX_MASK
ODD_BIT(PTE_PO_IDX_0)
ODD_BIT(PTE_PO_IDX_2)
#endif

/**
 * struct contpte_odd - a way in which an entry differs from its neighbours
 * @desc: name
 * @make: makes a plain entry odd
 * @valid: the odd entry is still valid
 * @folds: a block can be folded if all its entries are odd in this way
 * @read_only: such entries are never writable, so the tests make their
 *	neighbours read-only too
 */
static const struct contpte_odd {
	const char *desc;
	pte_t (*make)(pte_t pte);
	bool valid;
	bool folds;
	bool read_only;
} contpte_odds[] = {
	{ "none", odd_none },
	{ "swap entry", odd_swap },
	{ "PROT_NONE", odd_protnone },
	{ "next page", odd_next_page, true },
	{ "next block", odd_next_block, true, true },
	{ "memory type", odd_memory_type, true, true },
#ifdef CONFIG_HAVE_ARCH_USERFAULTFD_WP
	{ "uffd-wp", odd_uffd, true, true, true },
#endif
	{ "PTE_WRITE", odd_PTE_WRITE, true, true },
	{ "PTE_USER", odd_PTE_USER, true, true },
	{ "PTE_UXN", odd_PTE_UXN, true, true },
	{ "PTE_PXN", odd_PTE_PXN, true, true },
	{ "PTE_GP", odd_PTE_GP, true, true },
	{ "PTE_NG", odd_PTE_NG, true, true },
	{ "PTE_SPECIAL", odd_PTE_SPECIAL, true },
#ifdef PTE_PO_IDX_MASK
	{ "PTE_PO_IDX_0", odd_PTE_PO_IDX_0, true, true },
	{ "PTE_PO_IDX_2", odd_PTE_PO_IDX_2, true, true },
#endif
};

/*
 * An entry for a page of the folio: an odd entry, or a neighbour of an odd
 * entry.
 */
static inline pte_t contpte_odd_pte(struct pte_ctx *f,
				    const struct contpte_odd *odd,
				    unsigned int page, bool is_odd)
{
	pte_t pte = contpte_pte(f, page);

	if (odd->read_only)
		pte = pte_wrprotect(pte);
	return is_odd ? odd->make(pte) : pte;
}

#endif /* _ARM64_MM_TESTS_CONTPTE_ODD_H */
