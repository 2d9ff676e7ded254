/* SPDX-License-Identifier: GPL-2.0 */
/*
 * riscv's functions for single entries, with a page-table walker that writes
 * to the entry after each read.
 *
 * This file is included before any header that defines pte_t.
 */
#ifndef _PTE_WALKER_H
#define _PTE_WALKER_H

/**
 * struct pte_walker - a function that is called after each read of an entry
 * @ptep: the first of the entries, or NULL
 * @nr: their number
 * @step: called after a read of one of these entries, with the entry
 */
struct pte_walker {
	void *ptep;
	unsigned int nr;
	void (*step)(void *ptep);
};

extern struct pte_walker pte_walker;

struct mm_struct;
struct vm_area_struct;

/* The copies of the functions, for a file that has pte_t. */
#define PTE_WALKER_FUNCTIONS						\
void walked_wrprotect_ptes(struct mm_struct *mm, unsigned long addr,	\
			   pte_t *ptep, unsigned int nr);		\
pte_t walked_get_and_clear(struct mm_struct *mm, unsigned long addr,	\
			   pte_t *ptep);				\
void walked_set_access_flags(struct vm_area_struct *vma,		\
			     unsigned long addr, pte_t *ptep,		\
			     pte_t entry, int dirty);			\
bool walked_clear_young(struct vm_area_struct *vma, unsigned long addr,	\
			pte_t *ptep);					\
void walked_plain_wrprotect(pte_t *ptep)

#endif /* _PTE_WALKER_H */
