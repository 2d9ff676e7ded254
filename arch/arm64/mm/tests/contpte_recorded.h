/* SPDX-License-Identifier: GPL-2.0 */
/*
 * arm64's TLB invalidations and its check of the BBM level, for the object that
 * compiles the page-table code a second time. They call the recorder. These
 * macros have to be defined before any header that uses them. The arguments of
 * the invalidations differ between kernels.
 */
#ifndef _CONTPTE_RECORDED_H
#define _CONTPTE_RECORDED_H

#include <linux/cpufeature.h>
#include <asm/tlbflush.h>
#ifdef __ASM_PGTABLE_H
#error "asm/pgtable.h was included before it could be recorded"
#endif
#include "contpte_record.h"

#ifdef TLBF_NONE
static inline void recorded_flush_range(struct vm_area_struct *vma,
					unsigned long start, unsigned long end,
					unsigned long stride, int level,
					tlbf_t tlbf)
{
	unsigned int flags = 0;

	if (tlbf & TLBF_NOWALKCACHE)
		flags |= PGTABLE_KUNIT_LAST_LEVEL;
	if (tlbf & TLBF_NOSYNC)
		flags |= PGTABLE_KUNIT_NOSYNC;
	if (tlbf & TLBF_NOBROADCAST)
		flags |= PGTABLE_KUNIT_LOCAL;
	if (tlbf & TLBF_NONOTIFY)
		flags |= PGTABLE_KUNIT_NONOTIFY;
	pgtable_kunit_record_flush(vma->vm_mm, start, end, stride, level,
				   flags);
}

static inline void recorded___flush_page(struct vm_area_struct *vma,
					 unsigned long addr, tlbf_t tlbf)
{
	recorded_flush_range(vma, addr, addr + PAGE_SIZE, PAGE_SIZE, 3,
			     tlbf | TLBF_NOWALKCACHE);
}

static inline void recorded_flush_page(struct vm_area_struct *vma,
				       unsigned long addr)
{
	recorded___flush_page(vma, addr, TLBF_NONE);
}

#define __flush_tlb_page	recorded___flush_page
#else
static inline void recorded_flush(struct vm_area_struct *vma,
				  unsigned long start, unsigned long end,
				  unsigned long stride, bool last_level,
				  int level, unsigned int flags)
{
	if (last_level)
		flags |= PGTABLE_KUNIT_LAST_LEVEL;
	pgtable_kunit_record_flush(vma->vm_mm, start, end, stride, level,
				   flags);
}

static inline void recorded_flush_range(struct vm_area_struct *vma,
					unsigned long start, unsigned long end,
					unsigned long stride, bool last_level,
					int level)
{
	recorded_flush(vma, start, end, stride, last_level, level, 0);
}

static inline void recorded_flush_range_nosync(struct vm_area_struct *vma,
					       unsigned long start,
					       unsigned long end,
					       unsigned long stride,
					       bool last_level, int level)
{
	recorded_flush(vma, start, end, stride, last_level, level,
		       PGTABLE_KUNIT_NOSYNC);
}

static inline void recorded_flush_page(struct vm_area_struct *vma,
				       unsigned long addr)
{
	recorded_flush(vma, addr, addr + PAGE_SIZE, PAGE_SIZE, true, 3, 0);
}

static inline void recorded_flush_page_nosync(struct vm_area_struct *vma,
					      unsigned long addr)
{
	recorded_flush(vma, addr, addr + PAGE_SIZE, PAGE_SIZE, true, 3,
		       PGTABLE_KUNIT_NOSYNC);
}

#define __flush_tlb_range_nosync	recorded_flush_range_nosync
#define flush_tlb_page_nosync		recorded_flush_page_nosync
#endif /* TLBF_NONE */

static inline void recorded_flush_mm(struct mm_struct *mm)
{
	pgtable_kunit_record_flush(mm, 0, -PAGE_SIZE, PAGE_SIZE,
				   TLBI_TTL_UNKNOWN, 0);
}

static inline void recorded_flush_tlb_range(struct vm_area_struct *vma,
					    unsigned long start,
					    unsigned long end)
{
	pgtable_kunit_record_flush(vma->vm_mm, start, end, PAGE_SIZE,
				   TLBI_TTL_UNKNOWN, 0);
}

static inline void recorded_flush_kernel_range(unsigned long start,
					       unsigned long end)
{
	pgtable_kunit_record_flush(&init_mm, start, end, PAGE_SIZE,
				   TLBI_TTL_UNKNOWN, PGTABLE_KUNIT_LAST_LEVEL |
				   PGTABLE_KUNIT_KERNEL);
}

#define __flush_tlb_range	recorded_flush_range
#define flush_tlb_range		recorded_flush_tlb_range
#define flush_tlb_kernel_range	recorded_flush_kernel_range
#define flush_tlb_page		recorded_flush_page
#define flush_tlb_mm		recorded_flush_mm
#define system_supports_bbml3	pgtable_kunit_record_bbml3

#endif /* _CONTPTE_RECORDED_H */
