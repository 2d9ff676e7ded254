/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The types of entries that are not present, and the right answer of each
 * function for each type. The functions have other names in older kernels.
 */
#ifndef _MM_TESTS_SOFTLEAF_H
#define _MM_TESTS_SOFTLEAF_H

#include <linux/swap.h>
#include <linux/swapops.h>

#include "pgtable_kunit.h"

/* Kinds of types. */
#define LEAF_SWAP		BIT(0)
#define LEAF_MIGRATION_READ	BIT(1)
#define LEAF_MIGRATION_EXCL	BIT(2)
#define LEAF_MIGRATION_WRITE	BIT(3)
#define LEAF_DEVICE_READ	BIT(4)
#define LEAF_DEVICE_WRITE	BIT(5)
#define LEAF_EXCLUSIVE_READ	BIT(6)	/* newer kernels have only this kind */
#define LEAF_EXCLUSIVE_WRITE	BIT(7)
#define LEAF_HWPOISON		BIT(8)
#define LEAF_MARKER		BIT(9)

#define LEAF_MIGRATION	(LEAF_MIGRATION_READ | LEAF_MIGRATION_EXCL | \
			 LEAF_MIGRATION_WRITE)
#define LEAF_DEVICE	(LEAF_DEVICE_READ | LEAF_DEVICE_WRITE)
#define LEAF_EXCLUSIVE	(LEAF_EXCLUSIVE_READ | LEAF_EXCLUSIVE_WRITE)
#define LEAF_PFN	(LEAF_MIGRATION | LEAF_DEVICE | LEAF_EXCLUSIVE | \
			 LEAF_HWPOISON)
/* The kinds of entries that a PMD can hold. */
#define LEAF_PMD	(LEAF_MIGRATION | LEAF_DEVICE)

/**
 * struct leaf_type - a type of entries that has a name
 * @desc: for messages
 * @type: its number
 * @kind: LEAF_MIGRATION_READ and others
 * @make: makes an entry of the type
 */
struct leaf_type {
	const char *desc;
	unsigned int type;
	unsigned int kind;
	swp_entry_t (*make)(pgoff_t offset);
};

static const struct leaf_type leaf_types[] = {
	{ "marker", SWP_PTE_MARKER, LEAF_MARKER, make_pte_marker_entry },
#ifdef CONFIG_MIGRATION
	{ "migration, read-only", SWP_MIGRATION_READ, LEAF_MIGRATION_READ,
	  make_readable_migration_entry },
	{ "migration, exclusive", SWP_MIGRATION_READ_EXCLUSIVE,
	  LEAF_MIGRATION_EXCL, make_readable_exclusive_migration_entry },
	{ "migration, writable", SWP_MIGRATION_WRITE, LEAF_MIGRATION_WRITE,
	  make_writable_migration_entry },
#endif
#ifdef CONFIG_DEVICE_PRIVATE
	{ "device, read-only", SWP_DEVICE_READ, LEAF_DEVICE_READ,
	  make_readable_device_private_entry },
	{ "device, writable", SWP_DEVICE_WRITE, LEAF_DEVICE_WRITE,
	  make_writable_device_private_entry },
#ifdef SWP_DEVICE_EXCLUSIVE
	{ "device exclusive", SWP_DEVICE_EXCLUSIVE, LEAF_EXCLUSIVE_READ,
	  make_device_exclusive_entry },
#else
	{ "device exclusive, read-only", SWP_DEVICE_EXCLUSIVE_READ,
	  LEAF_EXCLUSIVE_READ, make_readable_device_exclusive_entry },
	{ "device exclusive, writable", SWP_DEVICE_EXCLUSIVE_WRITE,
	  LEAF_EXCLUSIVE_WRITE, make_writable_device_exclusive_entry },
#endif
#endif
#ifdef CONFIG_MEMORY_FAILURE
	{ "hwpoison", SWP_HWPOISON, LEAF_HWPOISON },
#endif
};

/**
 * struct leaf_question - a function that tests for some kinds of entries
 * @desc: its name
 * @ask: the function, if it takes a decoded entry
 * @ask_pte: the function, if it takes an entry of a page table
 * @kinds: the kinds for which it must be true
 * @markers: if not 0, it must be true only for a marker with one of these bits
 */
struct leaf_question {
	const char *desc;
	bool (*ask)(swp_entry_t entry);
	bool (*ask_pte)(pte_t pte);
	unsigned int kinds;
	unsigned long markers;
};

/*
 * Most of the functions are inline, so each gets a wrapper that has an address.
 */
#define LEAF_ASK(name)							\
	static bool ask_##name(swp_entry_t entry)			\
	{								\
		return name(entry);					\
	}
#define LEAF_ASK_PTE(name)						\
	static bool ask_##name(pte_t pte)				\
	{								\
		return name(pte);					\
	}
#define LEAF_IS(name, _kinds) \
	{ #name, .ask = ask_##name, .kinds = _kinds }
#define LEAF_PTE_IS(name, _kinds) \
	{ #name, .ask_pte = ask_##name, .kinds = _kinds }
#define LEAF_MARKS(name, _markers)					\
	{ #name, .ask = ask_##name, .kinds = LEAF_MARKER,		\
	  .markers = _markers }
#define LEAF_PTE_MARKS(name, _markers)					\
	{ #name, .ask_pte = ask_##name, .kinds = LEAF_MARKER,		\
	  .markers = _markers }

#ifdef _LINUX_LEAFOPS_H

LEAF_ASK(softleaf_is_none)
LEAF_ASK(softleaf_is_swap)
LEAF_ASK(softleaf_is_migration)
LEAF_ASK(softleaf_is_migration_read)
LEAF_ASK(softleaf_is_migration_read_exclusive)
LEAF_ASK(softleaf_is_migration_write)
LEAF_ASK(softleaf_is_device_private)
LEAF_ASK(softleaf_is_device_private_write)
LEAF_ASK(softleaf_is_device_exclusive)
LEAF_ASK(softleaf_is_hwpoison)
LEAF_ASK(is_hwpoison_entry)
LEAF_ASK(softleaf_is_marker)
LEAF_ASK(softleaf_has_pfn)
LEAF_ASK(softleaf_is_valid_pmd_entry)
LEAF_ASK(softleaf_is_poison_marker)
LEAF_ASK(softleaf_is_guard_marker)
LEAF_ASK(softleaf_is_uffd_wp_marker)
LEAF_ASK_PTE(pte_is_marker)
LEAF_ASK_PTE(pte_is_uffd_wp_marker)
LEAF_ASK_PTE(pte_is_uffd_marker)

static const struct leaf_question leaf_questions[] = {
	LEAF_IS(softleaf_is_none, 0),
	LEAF_IS(softleaf_is_swap, LEAF_SWAP),
	LEAF_IS(softleaf_is_migration, LEAF_MIGRATION),
	LEAF_IS(softleaf_is_migration_read, LEAF_MIGRATION_READ),
	LEAF_IS(softleaf_is_migration_read_exclusive, LEAF_MIGRATION_EXCL),
	LEAF_IS(softleaf_is_migration_write, LEAF_MIGRATION_WRITE),
	LEAF_IS(softleaf_is_device_private, LEAF_DEVICE),
	LEAF_IS(softleaf_is_device_private_write, LEAF_DEVICE_WRITE),
	LEAF_IS(softleaf_is_device_exclusive, LEAF_EXCLUSIVE),
	LEAF_IS(softleaf_is_hwpoison, LEAF_HWPOISON),
	LEAF_IS(is_hwpoison_entry, LEAF_HWPOISON),
	LEAF_IS(softleaf_is_marker, LEAF_MARKER),
	LEAF_IS(softleaf_has_pfn, LEAF_PFN),
	LEAF_IS(softleaf_is_valid_pmd_entry, LEAF_PMD),
	LEAF_MARKS(softleaf_is_poison_marker, PTE_MARKER_POISONED),
	LEAF_MARKS(softleaf_is_guard_marker, PTE_MARKER_GUARD),
	LEAF_MARKS(softleaf_is_uffd_wp_marker, PTE_MARKER_UFFD_WP),
	LEAF_PTE_IS(pte_is_marker, LEAF_MARKER),
	LEAF_PTE_MARKS(pte_is_uffd_wp_marker, PTE_MARKER_UFFD_WP),
	LEAF_PTE_MARKS(pte_is_uffd_marker,
		       PTE_MARKER_UFFD_WP | PTE_MARKER_POISONED),
};

#define leaf_to_pte(entry)		softleaf_to_pte(entry)
#define leaf_to_marker(entry)		softleaf_to_marker(entry)
#define leaf_to_pfn(entry)		softleaf_to_pfn(entry)
#define leaf_to_page(entry)		softleaf_to_page(entry)
#define leaf_to_folio(entry)		softleaf_to_folio(entry)
#define leaf_young(entry)		softleaf_is_migration_young(entry)
#define leaf_dirty(entry)		softleaf_is_migration_dirty(entry)
#define leaf_to_pmd(entry)		softleaf_to_pmd(entry)
#define leaf_from_pmd(pmd)		softleaf_from_pmd(pmd)
#define leaf_pmd_migration(pmd)		pmd_is_migration_entry(pmd)
#define leaf_pmd_device(pmd)		pmd_is_device_private_entry(pmd)
#define leaf_pmd_valid(pmd)		pmd_is_valid_softleaf(pmd)
#define leaf_pmd_folio(pmd)		pmd_to_softleaf_folio(pmd)

#else

LEAF_ASK(non_swap_entry)
LEAF_ASK(is_migration_entry)
LEAF_ASK(is_readable_migration_entry)
LEAF_ASK(is_writable_migration_entry)
LEAF_ASK(is_device_private_entry)
LEAF_ASK(is_writable_device_private_entry)
LEAF_ASK(is_device_exclusive_entry)
LEAF_ASK(is_writable_device_exclusive_entry)
LEAF_ASK(is_hwpoison_entry)
LEAF_ASK(is_pfn_swap_entry)
LEAF_ASK(is_pte_marker_entry)
LEAF_ASK(is_poisoned_swp_entry)
LEAF_ASK_PTE(is_swap_pte)
LEAF_ASK_PTE(is_pte_marker)
LEAF_ASK_PTE(pte_none_mostly)
#ifdef CONFIG_MIGRATION
LEAF_ASK(is_readable_exclusive_migration_entry)
#endif

static const struct leaf_question leaf_questions[] = {
	LEAF_IS(non_swap_entry, LEAF_PFN | LEAF_MARKER),
	LEAF_IS(is_migration_entry, LEAF_MIGRATION),
	LEAF_IS(is_readable_migration_entry, LEAF_MIGRATION_READ),
#ifdef CONFIG_MIGRATION
	LEAF_IS(is_readable_exclusive_migration_entry, LEAF_MIGRATION_EXCL),
#endif
	LEAF_IS(is_writable_migration_entry, LEAF_MIGRATION_WRITE),
	LEAF_IS(is_device_private_entry, LEAF_DEVICE),
	LEAF_IS(is_writable_device_private_entry, LEAF_DEVICE_WRITE),
	LEAF_IS(is_device_exclusive_entry, LEAF_EXCLUSIVE),
	LEAF_IS(is_writable_device_exclusive_entry, LEAF_EXCLUSIVE_WRITE),
	LEAF_IS(is_hwpoison_entry, LEAF_HWPOISON),
	LEAF_IS(is_pfn_swap_entry, LEAF_PFN),
	LEAF_IS(is_pte_marker_entry, LEAF_MARKER),
	LEAF_MARKS(is_poisoned_swp_entry, PTE_MARKER_POISONED),
	LEAF_PTE_IS(is_swap_pte, LEAF_SWAP | LEAF_PFN | LEAF_MARKER),
	LEAF_PTE_IS(is_pte_marker, LEAF_MARKER),
	LEAF_PTE_IS(pte_none_mostly, LEAF_MARKER),
};

#define leaf_to_pte(entry)		swp_entry_to_pte(entry)
#define leaf_to_marker(entry)		pte_marker_get(entry)
#define leaf_to_pfn(entry)		swp_offset_pfn(entry)
#define leaf_to_page(entry)		pfn_swap_entry_to_page(entry)
#define leaf_to_folio(entry)		pfn_swap_entry_folio(entry)
#define leaf_young(entry)		is_migration_entry_young(entry)
#define leaf_dirty(entry)		is_migration_entry_dirty(entry)
#define leaf_to_pmd(entry)		swp_entry_to_pmd(entry)
#define leaf_from_pmd(pmd)		pmd_to_swp_entry(pmd)
#define leaf_pmd_migration(pmd)		is_pmd_migration_entry(pmd)

#endif /* _LINUX_LEAFOPS_H */

#ifdef PGTABLE_KUNIT_PMD_SWP
#ifdef pgtable_supports_uffd
#define leaf_pmd_mkuffd(pmd)		pmd_swp_mkuffd(pmd)
#define leaf_pmd_uffd(pmd)		pmd_swp_uffd(pmd)
#define leaf_pmd_clear_uffd(pmd)	pmd_swp_clear_uffd(pmd)
#else
#define leaf_pmd_mkuffd(pmd)		pmd_swp_mkuffd_wp(pmd)
#define leaf_pmd_uffd(pmd)		pmd_swp_uffd_wp(pmd)
#define leaf_pmd_clear_uffd(pmd)	pmd_swp_clear_uffd_wp(pmd)
#endif
#endif

#ifdef pgtable_supports_uffd
#define leaf_pte_clear_uffd(pte)	pte_swp_clear_uffd(pte)
#define leaf_has_uffd()			pgtable_supports_uffd()
#else
#define leaf_pte_clear_uffd(pte)	pte_swp_clear_uffd_wp(pte)
#define leaf_has_uffd()			IS_ENABLED(CONFIG_HAVE_ARCH_USERFAULTFD_WP)
#endif

#ifdef CONFIG_MIGRATION
#define leaf_keeps_young_dirty()	migration_entry_supports_ad()
#else
#define leaf_keeps_young_dirty()	false
#endif

/* On riscv the CPU must have an extension, too. */
#ifdef pgtable_supports_soft_dirty
#define leaf_has_soft_dirty()		pgtable_supports_soft_dirty()
#else
#define leaf_has_soft_dirty()		IS_ENABLED(CONFIG_MEM_SOFT_DIRTY)
#endif

#endif /* _MM_TESTS_SOFTLEAF_H */
