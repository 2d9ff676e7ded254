// SPDX-License-Identifier: GPL-2.0
/*
 * riscv's functions for single entries, compiled a second time.
 *
 * asm/pgtable.h, linux/pgtable.h and pgtable.c are the tree's own. They read an
 * entry by READ_ONCE(). This file redefines READ_ONCE() so that it calls a
 * walker after the read. The hardware's walker may write to an entry at any
 * time. So a function must be right even if the walker writes between the
 * function's read and its write.
 */

#include <linux/atomic.h>
#include <linux/compiler.h>

#include "pte_walker.h"

#ifdef _ASM_RISCV_PGTABLE_H
#error "asm/pgtable.h was included before its reads could be followed"
#endif

struct pte_walker pte_walker;

/* @size is the number of bytes that were read. */
static inline void pte_walker_read(const void *p, unsigned long size)
{
	unsigned long first = (unsigned long)pte_walker.ptep;
	unsigned long at = (unsigned long)p;

	if (first && at >= first && at < first + pte_walker.nr * size)
		pte_walker.step((void *)p);
}

#undef READ_ONCE
#define READ_ONCE(x)							\
({									\
	__auto_type __walked_p = &(x);					\
	__auto_type __walked_v = __READ_ONCE(*__walked_p);		\
									\
	pte_walker_read((const void *)__walked_p,		\
			sizeof(*__walked_p));				\
	__walked_v;							\
})

#include <linux/mm.h>
#include <linux/pgtable.h>
#include <asm/tlbflush.h>

PTE_WALKER_FUNCTIONS;

/* The function returns int in some kernels, and bool in others. */
typeof(ptep_set_access_flags) copied_set_access_flags;
typeof(ptep_test_and_clear_young) copied_test_and_clear_young;

#define ptep_set_access_flags		copied_set_access_flags
#define ptep_test_and_clear_young	copied_test_and_clear_young
#include "pte_walker_functions.h"

void walked_wrprotect_ptes(struct mm_struct *mm, unsigned long addr,
			   pte_t *ptep, unsigned int nr)
{
	wrprotect_ptes(mm, addr, ptep, nr);
}

pte_t walked_get_and_clear(struct mm_struct *mm, unsigned long addr,
			   pte_t *ptep)
{
	return ptep_get_and_clear(mm, addr, ptep);
}

void walked_set_access_flags(struct vm_area_struct *vma, unsigned long addr,
			     pte_t *ptep, pte_t entry, int dirty)
{
	ptep_set_access_flags(vma, addr, ptep, entry, dirty);
}

bool walked_clear_young(struct vm_area_struct *vma, unsigned long addr,
			pte_t *ptep)
{
	return ptep_test_and_clear_young(vma, addr, ptep);
}

/* A wrong way to write-protect an entry, for the control. */
void walked_plain_wrprotect(pte_t *ptep)
{
	set_pte(ptep, pte_wrprotect(ptep_get(ptep)));
}
