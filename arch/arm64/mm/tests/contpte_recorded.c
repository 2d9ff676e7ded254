// SPDX-License-Identifier: GPL-2.0
/*
 * arm64's page-table code, compiled a second time for the recorder.
 *
 * asm/pgtable.h and contpte.c are the tree's own. All accesses to an entry go
 * through a few macros (READ_ONCE(), xchg_relaxed() and so on). This file
 * defines the macros so that they report to the recorder. So a test covers
 * every single access of the inline functions of asm/pgtable.h, public and
 * private, and not only contpte.c.
 *
 * Two headers are made from the tree when this file is built (see the
 * Makefile). One renames each function that contpte.c exports, so that the
 * kernel's own functions stay as they are. The other holds
 * __ptep_set_access_flags(), the only primitive that is not inline.
 */

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/export.h>

#include "record.h"

#undef READ_ONCE
#define READ_ONCE(x)							\
({									\
	__auto_type __rec_p = &(x);					\
	__auto_type __rec_v = (pgtable_kunit_record_begin((const void *)__rec_p),	\
			       __READ_ONCE(*__rec_p));			\
									\
	pgtable_kunit_record_end((const void *)__rec_p, false);			\
	__rec_v;							\
})

#undef WRITE_ONCE
#define WRITE_ONCE(x, val)						\
do {									\
	__auto_type __rec_p = &(x);					\
	typeof(*__rec_p) __rec_v = (val);				\
									\
	pgtable_kunit_record_begin((const void *)__rec_p);				\
	__WRITE_ONCE(*__rec_p, __rec_v);				\
	pgtable_kunit_record_end((const void *)__rec_p, true);			\
} while (0)

#define RECORDED_XCHG(xchg, ptr, val)					\
({									\
	__auto_type __rec_p = (ptr);					\
	typeof(*__rec_p) __rec_v = (val);				\
	typeof(*__rec_p) __rec_got;					\
									\
	pgtable_kunit_record_begin((const void *)__rec_p);				\
	__rec_got = xchg(__rec_p, __rec_v);				\
	pgtable_kunit_record_end((const void *)__rec_p, true);			\
	__rec_got;							\
})

#define RECORDED_CMPXCHG(cmpxchg, ptr, old, val)			\
({									\
	__auto_type __rec_p = (ptr);					\
	typeof(*__rec_p) __rec_old = (old);				\
	typeof(*__rec_p) __rec_v = (val);				\
	typeof(*__rec_p) __rec_got;					\
									\
	pgtable_kunit_record_begin((const void *)__rec_p);				\
	__rec_got = cmpxchg(__rec_p, __rec_old, __rec_v);		\
	pgtable_kunit_record_end((const void *)__rec_p, __rec_got == __rec_old);	\
	__rec_got;							\
})

#undef xchg
#undef xchg_relaxed
#undef cmpxchg
#undef cmpxchg_relaxed
#undef try_cmpxchg
#define xchg(ptr, val)		RECORDED_XCHG(raw_xchg, ptr, val)
#define xchg_relaxed(ptr, val)	RECORDED_XCHG(raw_xchg_relaxed, ptr, val)
#define cmpxchg(ptr, old, val)	RECORDED_CMPXCHG(raw_cmpxchg, ptr, old, val)
#define cmpxchg_relaxed(ptr, old, val) \
	RECORDED_CMPXCHG(raw_cmpxchg_relaxed, ptr, old, val)
#define try_cmpxchg(ptr, oldp, val)					\
({									\
	__auto_type __rec_oldp = (oldp);				\
	typeof(*__rec_oldp) __rec_want = *__rec_oldp;			\
									\
	*__rec_oldp = cmpxchg(ptr, __rec_want, val);			\
	*__rec_oldp == __rec_want;					\
})

#include "contpte_recorded_names.h"

#define PGTABLE_KUNIT_RECORD
#include "compat.h"

#include "contpte_recorded.h"
#include "contpte_recorded_access_flags.h"

#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(...)

#include "../contpte.c"

pte_t recorded_ptep_get(pte_t *ptep)
{
	return ptep_get(ptep);
}

pte_t recorded_ptep_get_lockless(pte_t *ptep)
{
	return ptep_get_lockless(ptep);
}

void recorded_set_ptes(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		       pte_t pte, unsigned int nr)
{
	set_ptes(mm, addr, ptep, pte, nr);
}

void recorded_pte_clear(struct mm_struct *mm, unsigned long addr, pte_t *ptep)
{
	pte_clear(mm, addr, ptep);
}

pte_t recorded_ptep_get_and_clear(struct mm_struct *mm, unsigned long addr,
				  pte_t *ptep)
{
	return ptep_get_and_clear(mm, addr, ptep);
}

void recorded_clear_full_ptes(struct mm_struct *mm, unsigned long addr,
			      pte_t *ptep, unsigned int nr, int full)
{
	clear_full_ptes(mm, addr, ptep, nr, full);
}

pte_t recorded_get_and_clear_full_ptes(struct mm_struct *mm, unsigned long addr,
				       pte_t *ptep, unsigned int nr, int full)
{
	return get_and_clear_full_ptes(mm, addr, ptep, nr, full);
}

void recorded_ptep_set_wrprotect(struct mm_struct *mm, unsigned long addr,
				 pte_t *ptep)
{
	ptep_set_wrprotect(mm, addr, ptep);
}

void recorded_wrprotect_ptes(struct mm_struct *mm, unsigned long addr,
			     pte_t *ptep, unsigned int nr)
{
	wrprotect_ptes(mm, addr, ptep, nr);
}

int recorded_ptep_set_access_flags(struct vm_area_struct *vma,
				   unsigned long addr, pte_t *ptep, pte_t entry,
				   int dirty)
{
	return ptep_set_access_flags(vma, addr, ptep, entry, dirty);
}

int recorded_pmdp_set_access_flags(struct vm_area_struct *vma,
				   unsigned long addr, pmd_t *pmdp, pmd_t entry,
				   int dirty)
{
	return pmdp_set_access_flags(vma, addr, pmdp, entry, dirty);
}

bool recorded_test_and_clear_young(struct vm_area_struct *vma,
				   unsigned long addr, pte_t *ptep,
				   unsigned int nr)
{
	return pgtable_kunit_test_and_clear_young(vma, addr, ptep, nr);
}

bool recorded_clear_flush_young(struct vm_area_struct *vma, unsigned long addr,
				pte_t *ptep, unsigned int nr)
{
	return pgtable_kunit_clear_flush_young(vma, addr, ptep, nr);
}

void recorded_clear_young_dirty_ptes(struct vm_area_struct *vma,
				     unsigned long addr, pte_t *ptep,
				     unsigned int nr, cydp_t flags)
{
	clear_young_dirty_ptes(vma, addr, ptep, nr, flags);
}
