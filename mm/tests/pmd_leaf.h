/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Entries of huge pages in every combination of young, dirty, writable,
 * soft-dirty and uffd-wp. The page frames are beyond the memory of the machine,
 * since nothing accesses the pages.
 */
#ifndef _MM_TESTS_PMD_LEAF_H
#define _MM_TESTS_PMD_LEAF_H

#include <linux/mm.h>
#include <linux/pgtable.h>

#include "pgtable_kunit.h"

#define HUGE_YOUNG	BIT(0)
#define HUGE_DIRTY	BIT(1)
#define HUGE_WRITE	BIT(2)
#define HUGE_SOFT	BIT(3)
#define HUGE_UFFD	BIT(4)
#define HUGE_STATES	BIT(5)

/* Page frames that no machine has; each is aligned to a huge page. */
static inline unsigned long huge_pfn(unsigned int nr)
{
	return (BIT_ULL(40) + nr * PMD_SIZE) >> PAGE_SHIFT;
}

#ifdef pgtable_supports_uffd
#define huge_has_uffd()		pgtable_supports_uffd()
#define huge_mkuffd(pmd)	pmd_mkuffd(pmd)
#define huge_uffd(pmd)		pmd_uffd(pmd)
#define huge_clear_uffd(pmd)	pmd_clear_uffd(pmd)
#else
#define huge_has_uffd()		IS_ENABLED(CONFIG_HAVE_ARCH_USERFAULTFD_WP)
#define huge_mkuffd(pmd)	pmd_mkuffd_wp(pmd)
#define huge_uffd(pmd)		pmd_uffd_wp(pmd)
#define huge_clear_uffd(pmd)	pmd_clear_uffd_wp(pmd)
#endif

#ifdef pgtable_supports_soft_dirty
#define huge_has_soft()		pgtable_supports_soft_dirty()
#else
#define huge_has_soft()		IS_ENABLED(CONFIG_MEM_SOFT_DIRTY)
#endif

/* Does the hardware use the entry? */
static inline bool huge_valid(pmd_t pmd)
{
#if defined(CONFIG_ARM64)
	return pmd_valid(pmd);
#elif defined(CONFIG_S390)
	return !(pmd_val(pmd) & _SEGMENT_ENTRY_INVALID);
#else
	return pmd_val(pmd) & _PAGE_PRESENT;
#endif
}

/* A write-protected entry of userfaultfd is not writable. */
static inline bool huge_possible(unsigned int state)
{
	return !(state & HUGE_SOFT && !huge_has_soft()) &&
	       !(state & HUGE_UFFD && !huge_has_uffd()) &&
	       !(state & HUGE_UFFD && state & HUGE_WRITE);
}

static inline pmd_t huge_pmd(unsigned int nr, unsigned int state)
{
	pmd_t pmd = pfn_pmd(huge_pfn(nr), vm_get_page_prot(VM_READ | VM_WRITE));

	pmd = pmd_wrprotect(pmd_mkold(pmd_mkclean(pmd_mkhuge(pmd))));
	if (state & HUGE_WRITE)
		pmd = pmd_mkwrite_novma(pmd);
	if (state & HUGE_DIRTY)
		pmd = pmd_mkdirty(pmd);
	if (state & HUGE_YOUNG)
		pmd = pmd_mkyoung(pmd);
	pmd = state & HUGE_SOFT ? pmd_mksoft_dirty(pmd) :
				  pmd_clear_soft_dirty(pmd);
	return state & HUGE_UFFD ? huge_mkuffd(pmd) : pmd;
}

static inline unsigned int huge_state(pmd_t pmd)
{
	return (pmd_young(pmd) ? HUGE_YOUNG : 0) |
	       (pmd_dirty(pmd) ? HUGE_DIRTY : 0) |
	       (pmd_write(pmd) ? HUGE_WRITE : 0) |
	       (pmd_soft_dirty(pmd) ? HUGE_SOFT : 0) |
	       (huge_uffd(pmd) ? HUGE_UFFD : 0);
}

#endif /* _MM_TESTS_PMD_LEAF_H */
