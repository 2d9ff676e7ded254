# SPDX-License-Identifier: GPL-2.0-only
#
# An inline function cannot be probed for by the preprocessor. For the Makefiles
# of the page-table suites: where their library is, and what the tree has.

pgtable_kunit_has = $(if $(shell grep -sw $(1) $(srctree)/$(2)), \
		      -DPGTABLE_KUNIT_HAS_$(3))

ccflags-y += -I$(srctree)/lib/pgtable_kunit \
	$(call pgtable_kunit_has,get_and_clear_ptes,include/linux/pgtable.h,CLEAR_PTES) \
	$(call pgtable_kunit_has,modify_prot_start_ptes,include/linux/pgtable.h,MODIFY_PROT_PTES) \
	$(call pgtable_kunit_has,clear_flush_young_ptes,include/linux/pgtable.h,YOUNG_PTES) \
	$(call pgtable_kunit_has,clear_nonpresent_ptes,include/linux/pgtable.h,CLEAR_NONPRESENT) \
	$(call pgtable_kunit_has,pagetable_dtor,include/linux/mm.h,ONE_DTOR) \
	$(call pgtable_kunit_has,pte_range_has_valid_noncont,arch/arm64/mm/mmu.c,KEPT_TABLES) \
	$(call pgtable_kunit_has,__wp_can_reuse_large_anon_folio,mm/memory.c,REUSED_FOLIOS) \
	$(call pgtable_kunit_has,do_huge_zero_wp_pmd,mm/huge_memory.c,HUGE_ZERO_WP) \
	$(call pgtable_kunit_has,folio_maybe_mapped_shared,include/linux/mm.h,MAYBE_MAPPED_SHARED) \
	$(call pgtable_kunit_has,dst_vma,include/linux/rmap.h,DUP_RMAP_VMA)
