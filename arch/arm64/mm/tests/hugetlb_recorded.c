// SPDX-License-Identifier: GPL-2.0
/*
 * arm64's hugetlbpage.c, compiled a second time for the recorder.
 *
 * The file is the tree's own. This file and its inline functions access entries
 * through the recorder (contpte_record_access.h). The recorder also gets all
 * invalidations (contpte_recorded.h). The functions get other names, so that
 * the kernel's own functions stay unchanged.
 *
 * The file asks the kernel four questions, which the test answers: whether the
 * CPU has erratum 2645198, whether a table can be shared, how large the folio
 * of an entry is, and where to register a size.
 */

#include <linux/export.h>

#include "contpte_record_access.h"
#include "contpte_recorded.h"

#include "pgtable_kunit.h"

#include <linux/fs.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/sysctl.h>
#include <asm/mman.h>
#include <asm/tlb.h>
#include <asm/tlbflush.h>

#include "hugetlb_entry.h"

#define __ptep_set_access_flags		recorded_huge_access_flags
#define __ptep_set_access_flags_anysz	recorded_huge_access_flags_anysz
#define ptep_clear_flush		recorded_ptep_clear_flush
#include "hugetlb_recorded_access_flags.h"
#include "hugetlb_recorded_clear_flush.h"

static bool recorded_erratum;
static pte_t *recorded_shares;
static unsigned long recorded_sizes;
static unsigned int recorded_cma;
unsigned long huge_recorded_size;

static inline bool recorded_has_cap(unsigned long cap)
{
	return cap == ARM64_WORKAROUND_2645198 && recorded_erratum;
}

static inline bool recorded_want_share(struct vm_area_struct *vma,
				       unsigned long addr)
{
	return recorded_shares;
}

static inline pte_t *recorded_share(struct mm_struct *mm,
				    struct vm_area_struct *vma,
				    unsigned long addr, pud_t *pudp)
{
	return recorded_shares;
}

static inline unsigned long recorded_page_size(struct page *page)
{
	return huge_recorded_size;
}

static inline void recorded_add_hstate(unsigned int order)
{
	recorded_sizes |= BIT(order + PAGE_SHIFT);
}

static inline void recorded_cma_reserve(int order)
{
	recorded_cma = order;
}

#undef alternative_has_cap_unlikely
#define alternative_has_cap_unlikely	recorded_has_cap
#undef want_pmd_share
#define want_pmd_share			recorded_want_share
#undef huge_pmd_share
#define huge_pmd_share			recorded_share
#undef page_size
#define page_size			recorded_page_size
#undef hugetlb_add_hstate
#define hugetlb_add_hstate		recorded_add_hstate
#undef hugetlb_cma_reserve
#define hugetlb_cma_reserve		recorded_cma_reserve

/*
 * Keep functions that a kernel frees after its start, since the test calls
 * them. The copy of hugetlbpage_init() also runs at boot, but then it registers
 * nothing.
 */
#undef __init
#define __init
#ifndef CONFIG_CMA
#define CONFIG_CMA			1
#endif
#ifndef CONFIG_ARCH_ENABLE_HUGEPAGE_MIGRATION
#define CONFIG_ARCH_ENABLE_HUGEPAGE_MIGRATION	1
#endif

#include "hugetlb_recorded_names.h"
#include "../hugetlbpage.c"

static unsigned long recorded_init(void)
{
	recorded_sizes = 0;
	hugetlbpage_init();
	return recorded_sizes;
}

static unsigned int recorded_cma_order(void)
{
#ifdef arch_hugetlb_cma_order
	return arch_hugetlb_cma_order();
#else
	recorded_cma = 0;
	arm64_hugetlb_cma_reserve();
	return recorded_cma;
#endif
}

const struct huge_ops huge_ops = {
	.erratum = &recorded_erratum,
	.shares = &recorded_shares,
	.cma_order = recorded_cma_order,
	.init = recorded_init,
	.get = huge_ptep_get,
	.set = set_huge_pte_at,
	.clear = huge_pte_clear,
	.get_and_clear = huge_ptep_get_and_clear,
	.access_flags = huge_ptep_set_access_flags,
	.wrprotect = huge_ptep_set_wrprotect,
	.clear_flush = huge_ptep_clear_flush,
	.prot_start = huge_ptep_modify_prot_start,
	.prot_commit = huge_ptep_modify_prot_commit,
	.flush_range = flush_hugetlb_tlb_range,
	.alloc = huge_pte_alloc,
	.offset = huge_pte_offset,
	.mask_last_page = hugetlb_mask_last_page,
	.make = arch_make_huge_pte,
	.valid_size = arch_hugetlb_valid_size,
	.migration = arch_hugetlb_migration_supported,
};
