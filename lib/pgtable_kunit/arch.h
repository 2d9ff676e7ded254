/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the architectures that the page-table suites run on.
 *
 * An architecture needs a line here if its empty entries are not 0, or if its
 * entries have bits that do not describe the mapping.
 */
#ifndef _PGTABLE_KUNIT_ARCH_H
#define _PGTABLE_KUNIT_ARCH_H

#include <linux/pgtable.h>
#include <linux/string.h>

#include "compat.h"

/*
 * Write an entry exactly as given, and clear an entry. On arm64 the public
 * functions add and remove the contiguous bit, and the private functions do
 * not. Both update the counts of CONFIG_PAGE_TABLE_CHECK.
 */
#ifdef CONFIG_ARM64
#define pgtable_kunit_raw_get(ptep)		__ptep_get(ptep)
#define pgtable_kunit_raw_set(mm, addr, ptep, pte) \
	__set_ptes(mm, addr, ptep, pte, 1)
#define pgtable_kunit_raw_clear(mm, addr, ptep) \
	__ptep_get_and_clear(mm, addr, ptep)
#else
#define pgtable_kunit_raw_get(ptep)		ptep_get(ptep)
#define pgtable_kunit_raw_set(mm, addr, ptep, pte) \
	set_pte_at(mm, addr, ptep, pte)
#define pgtable_kunit_raw_clear(mm, addr, ptep) \
	ptep_get_and_clear(mm, addr, ptep)
#endif

/* An empty entry, which is not zero on every architecture. */
static inline pte_t pgtable_kunit_none(void)
{
#ifdef CONFIG_S390
	return __pte(_PAGE_INVALID);
#else
	return __pte(0);
#endif
}

/*
 * An entry without the bits that do not describe the mapping. These are the bit
 * of a contiguous block, and UML's bit for an entry that the host does not have
 * yet.
 */
static inline pte_t pgtable_kunit_plain(pte_t pte)
{
#if defined(CONFIG_ARM64)
	return pte_present(pte) ? clear_pte_bit(pte, __pgprot(PTE_CONT)) : pte;
#elif defined(CONFIG_UML)
	return __pte(pte_val(pte) & ~PGTABLE_KUNIT_UM_BITS);
#else
	return pte;
#endif
}

/* Is the entry part of a contiguous block? */
static inline bool pgtable_kunit_folded(pte_t pte)
{
#ifdef CONFIG_ARM64
	return pte_valid_cont(pte);
#else
	return false;
#endif
}

/* On these architectures the page allocator clears single pages for a fault. */
#ifdef vma_alloc_zeroed_movable_folio
#define PGTABLE_KUNIT_ALLOC_ZEROED		true
#else
#define PGTABLE_KUNIT_ALLOC_ZEROED		false
#endif

/*
 * For a probe at the first instruction of a function that clears pages: the
 * number of these pages.
 */
static inline unsigned int pgtable_kunit_clear_nr(const char *function,
						  struct pt_regs *regs)
{
#ifdef CONFIG_X86
	if (!strcmp(function, "__clear_pages_unrolled"))
		return regs->cx >> PAGE_SHIFT;
#endif
	return 1;
}

/*
 * For a probe at the first instruction of a function that returns how many
 * bytes it could not copy: return 1 at once. On architectures where copying
 * cannot fail, do nothing. Return: the return value for the handler of the
 * kprobe.
 */
static inline int pgtable_kunit_return_error(struct pt_regs *regs)
{
#ifdef CONFIG_X86
	regs->ax = 1;
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += sizeof(unsigned long);
	return 1;
#else
	return 0;
#endif
}

#endif /* _PGTABLE_KUNIT_ARCH_H */
