// SPDX-License-Identifier: GPL-2.0
/*
 * arm64's page-table code, compiled a second time for the recorder.
 *
 * asm/pgtable.h and contpte.c are the tree's own. All accesses to an entry go
 * through a few macros (READ_ONCE(), xchg_relaxed() and so on). contpte_record_access.h
 * defines the macros so that they report to the recorder. So a test covers
 * every single access of the inline functions of asm/pgtable.h, public and
 * private, and not only contpte.c.
 *
 * Two headers are made from the tree when this file is built (see the
 * Makefile). One header renames each global function of contpte.c, so that
 * the kernel's own functions stay unchanged. The other header contains
 * __ptep_set_access_flags(), the only primitive that is not inline.
 */

#include <linux/export.h>

#include "contpte_record_access.h"

#include "contpte_recorded_names.h"
#include "contpte_recorded.h"

#include "pgtable_kunit.h"

#include "contpte_recorded_access_flags.h"

#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(...)

#include "../contpte.c"

#include "contpte_order.h"

#define PTE_OP_TABLE	contpte_recorded_ops
#include "pte_op_table.h"

/* arm64 has its functions for mprotect() in mmu.c, which is not recorded. */
static bool recorded_own(enum pte_op_id id)
{
	return id != PTE_OP_MODIFY_PROT;
}

const struct pte_backend contpte_recorded_backend = {
	.name = "",
	.ops = contpte_recorded_ops,
	.own = recorded_own,
	.begin = contpte_order_begin,
	.end = contpte_order_end,
	.ok = contpte_order_ok,
};

int recorded_pmdp_set_access_flags(struct vm_area_struct *vma,
				   unsigned long addr, pmd_t *pmdp, pmd_t entry,
				   int dirty)
{
	return pmdp_set_access_flags(vma, addr, pmdp, entry, dirty);
}
