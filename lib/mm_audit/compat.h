/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels and the architectures that the auditor runs
 * on. The preprocessor or the table lib/pgtable_kunit/probes finds out what the
 * tree has. There are no checks of version numbers.
 */
#ifndef _MM_AUDIT_COMPAT_H
#define _MM_AUDIT_COMPAT_H

#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#if __has_include("linux/leafops.h")
#include <linux/leafops.h>
#endif

#include "../../mm/internal.h"
#if __has_include("../../mm/page_alloc.h")
#include "../../mm/page_alloc.h"
#endif

/*
 * The trees of VMAs that the reverse mapping walks. In the newer kernel the
 * pages of a private mapping of a file have their own index.
 */
#ifdef anon_rmap_tree_foreach
#define audit_anon_tree_foreach(avc, anon_vma, first, last)	\
	anon_rmap_tree_foreach(avc, anon_vma, first, last)
#define audit_file_tree_foreach(vma, mapping, first, last)	\
	mapping_rmap_tree_foreach(vma, mapping, first, last)
#define audit_anon_start(vma)		vma_start_anon_pgoff(vma)
#define audit_anon_index(vma, addr)	__linear_anon_page_index(vma, addr)
#else
#define audit_anon_tree_foreach(avc, anon_vma, first, last)	\
	anon_vma_interval_tree_foreach(avc, &(anon_vma)->rb_root, first, last)
#define audit_file_tree_foreach(vma, mapping, first, last)	\
	vma_interval_tree_foreach(vma, &(mapping)->i_mmap, first, last)
#define audit_anon_start(vma)		((vma)->vm_pgoff)
#define audit_anon_index(vma, addr)	linear_page_index(vma, addr)
#endif

/*
 * One entry as it is in the table: arm64's getters merge the entries of a
 * block.
 */
#ifdef CONFIG_ARM64
#define audit_raw_pte(ptep)		__ptep_get(ptep)
#else
#define audit_raw_pte(ptep)		ptep_get(ptep)
#endif

/* Whether an entry allows a process to execute the page. */
static inline bool audit_pte_exec(pte_t pte)
{
#if defined(CONFIG_ARM64)
	return !(pte_val(pte) & PTE_UXN);
#elif defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	/*
	 * PROT_NONE clears the present bit, and does not set the bit that
	 * forbids execution.
	 */
	return pte_exec(pte) && (pte_flags(pte) & _PAGE_PRESENT);
#elif defined(CONFIG_RISCV)
	return pte_exec(pte);
#else
	return false;
#endif
}

/**
 * enum audit_leaf - the object that an entry refers to if it is not present
 * @AUDIT_LEAF_SWAP: a slot of a swap device
 * @AUDIT_LEAF_MIGRATION: a folio that is being moved, and is not mapped
 * @AUDIT_LEAF_MAPPED: a folio of a device, which counts as mapped
 * @AUDIT_LEAF_UNMAPPED: a folio that belongs only to a device
 * @AUDIT_LEAF_OTHER: an entry that does not count: markers, broken pages
 */
enum audit_leaf {
	AUDIT_LEAF_SWAP,
	AUDIT_LEAF_MIGRATION,
	AUDIT_LEAF_MAPPED,
	AUDIT_LEAF_UNMAPPED,
	AUDIT_LEAF_OTHER,
};

#ifdef _LINUX_LEAFOPS_H
#define audit_leaf_entry(pte)		softleaf_from_pte(pte)
#define audit_leaf_entry_pmd(pmd)	softleaf_from_pmd(pmd)
#define audit_leaf_page(entry)		softleaf_to_page(entry)

static inline enum audit_leaf audit_leaf(swp_entry_t entry)
{
	if (softleaf_is_swap(entry))
		return AUDIT_LEAF_SWAP;
	if (softleaf_is_migration(entry))
		return AUDIT_LEAF_MIGRATION;
	if (softleaf_is_device_private(entry) ||
	    softleaf_is_device_exclusive(entry))
		return AUDIT_LEAF_MAPPED;
	return AUDIT_LEAF_OTHER;
}
#else
#define audit_leaf_entry(pte)		pte_to_swp_entry(pte)
#define audit_leaf_entry_pmd(pmd)	pmd_to_swp_entry(pmd)
#define audit_leaf_page(entry)		pfn_swap_entry_to_page(entry)

static inline enum audit_leaf audit_leaf(swp_entry_t entry)
{
	if (!non_swap_entry(entry))
		return AUDIT_LEAF_SWAP;
	if (is_migration_entry(entry))
		return AUDIT_LEAF_MIGRATION;
	if (is_device_private_entry(entry))
		return AUDIT_LEAF_MAPPED;
	if (is_device_exclusive_entry(entry))
		return AUDIT_LEAF_UNMAPPED;
	return AUDIT_LEAF_OTHER;
}
#endif

/* The IDs of the address spaces that map a large folio. */
#ifdef CONFIG_MM_ID
#define AUDIT_HAS_MM_ID			1
#define audit_mm_id(mm)			((mm)->mm_id)
#define audit_folio_mm_id(folio, i)	folio_mm_id(folio, i)
#define audit_slot_count(folio, i)	((folio)->_mm_id_mapcount[i] + 1)
#define audit_shared_bit(folio)		\
	test_bit(FOLIO_MM_IDS_SHARED_BITNUM, &(folio)->_mm_ids)
#else
#define AUDIT_HAS_MM_ID			0
#define audit_mm_id(mm)			((void)(mm), 1U)
#define audit_folio_mm_id(folio, i)	((void)(folio), (void)(i), 0U)
#define audit_slot_count(folio, i)	((void)(folio), (void)(i), 0)
#define audit_shared_bit(folio)		((void)(folio), false)
#endif

/* A kernel may have no mapcount of each page. */
#define AUDIT_PAGE_MAPCOUNT		!IS_ENABLED(CONFIG_NO_PAGE_MAPCOUNT)

/*
 * Page tables that wait for the split of a huge page. Generic code keeps them
 * in a list, in the order of their use. The auditor leaves out architectures
 * that have their own list.
 */
#ifndef __HAVE_ARCH_PGTABLE_DEPOSIT
#define AUDIT_DEPOSITS			1
#else
#define AUDIT_DEPOSITS			0
#endif

/* The number of other address spaces that use a table of hugetlb pages. */
#ifdef CONFIG_HUGETLB_PMD_PAGE_TABLE_SHARING
#define AUDIT_TABLE_SHARE		1
#define audit_table_share(table)	\
	atomic_read(&virt_to_ptdesc(table)->pt_share_count)
#else
#define AUDIT_TABLE_SHARE		0
#define audit_table_share(table)	((void)(table), 0)
#endif

#endif /* _MM_AUDIT_COMPAT_H */
