// SPDX-License-Identifier: GPL-2.0
/*
 * A module that calls the functions of asm/pgtable.h on runs of entries.
 *
 * The functions are inline, and for a contiguous block they call functions of
 * contpte.c. The functions of contpte.c must be exported; otherwise a driver
 * that maps memory does not link. The test only checks that this module links.
 * The module is never loaded. Not covered: functions that invalidate, which
 * call functions that only the kernel itself may call.
 *
 *   ./tools/testing/kunit/kunit.py build --arch=arm64 --kunitconfig=mm/tests \
 *	--kconfig_add CONFIG_MODULES=y --kconfig_add CONFIG_ARM64_MTE=n \
 *	--kconfig_add CONFIG_CONTPTE_LINK_KUNIT_TEST=m
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pgtable.h>

/* The function is not static, so that the compiler keeps the calls. */
pte_t contpte_link(struct vm_area_struct *vma, unsigned long addr, pte_t *ptep,
		   pte_t pte, unsigned int nr);

pte_t contpte_link(struct vm_area_struct *vma, unsigned long addr, pte_t *ptep,
		   pte_t pte, unsigned int nr)
{
	struct mm_struct *mm = vma->vm_mm;

	set_ptes(mm, addr, ptep, pte, nr);
	set_pte_at(mm, addr, ptep, ptep_get(ptep));
	wrprotect_ptes(mm, addr, ptep, nr);
	ptep_set_wrprotect(mm, addr, ptep);
	clear_young_dirty_ptes(vma, addr, ptep, nr, CYDP_CLEAR_YOUNG);
	ptep_test_and_clear_young(vma, addr, ptep);
	pte_clear(mm, addr, ptep);
	clear_full_ptes(mm, addr, ptep, nr, 0);
	get_and_clear_full_ptes(mm, addr, ptep, nr, 0);
	ptep_get_and_clear(mm, addr, ptep);
	return ptep_get_lockless(ptep);
}

MODULE_DESCRIPTION("Links with the functions for contiguous PTEs");
MODULE_LICENSE("GPL");
