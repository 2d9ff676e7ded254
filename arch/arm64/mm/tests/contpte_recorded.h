/* SPDX-License-Identifier: GPL-2.0 */
/*
 * arm64's functions for page-table entries, compiled for the recorder.
 *
 * These are the functions of the tree with a prefix. A call makes the same
 * accesses to the same entries as the function without the prefix, and records
 * each step. TLB invalidations are recorded, but not executed.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_RECORDED_H
#define _ARM64_MM_TESTS_CONTPTE_RECORDED_H

#include <linux/mm_types.h>

pte_t recorded_ptep_get(pte_t *ptep);
pte_t recorded_ptep_get_lockless(pte_t *ptep);
void recorded_set_ptes(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		       pte_t pte, unsigned int nr);
void recorded_pte_clear(struct mm_struct *mm, unsigned long addr, pte_t *ptep);
pte_t recorded_ptep_get_and_clear(struct mm_struct *mm, unsigned long addr,
				  pte_t *ptep);
void recorded_clear_full_ptes(struct mm_struct *mm, unsigned long addr,
			      pte_t *ptep, unsigned int nr, int full);
pte_t recorded_get_and_clear_full_ptes(struct mm_struct *mm, unsigned long addr,
				       pte_t *ptep, unsigned int nr, int full);
void recorded_ptep_set_wrprotect(struct mm_struct *mm, unsigned long addr,
				 pte_t *ptep);
void recorded_wrprotect_ptes(struct mm_struct *mm, unsigned long addr,
			     pte_t *ptep, unsigned int nr);
int recorded_ptep_set_access_flags(struct vm_area_struct *vma,
				   unsigned long addr, pte_t *ptep, pte_t entry,
				   int dirty);
int recorded_pmdp_set_access_flags(struct vm_area_struct *vma,
				   unsigned long addr, pmd_t *pmdp, pmd_t entry,
				   int dirty);
bool recorded_test_and_clear_young(struct vm_area_struct *vma,
				   unsigned long addr, pte_t *ptep,
				   unsigned int nr);
bool recorded_clear_flush_young(struct vm_area_struct *vma, unsigned long addr,
				pte_t *ptep, unsigned int nr);
void recorded_clear_young_dirty_ptes(struct vm_area_struct *vma,
				     unsigned long addr, pte_t *ptep,
				     unsigned int nr, cydp_t flags);

#endif /* _ARM64_MM_TESTS_CONTPTE_RECORDED_H */
