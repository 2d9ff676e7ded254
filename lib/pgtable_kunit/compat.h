/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between the kernels that the page-table suites run on. Each probe
 * checks whether the tree has a feature, and no probe checks a version number,
 * because distributions backport features.
 */
#ifndef _PGTABLE_KUNIT_COMPAT_H
#define _PGTABLE_KUNIT_COMPAT_H

#include <kunit/test.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#if __has_include("linux/leafops.h")
#include <linux/leafops.h>
#endif
/* With BBM level 3, arm64 converts a contiguous block without a flush. */
#ifdef ARM64_HAS_BBML3
#define pgtable_kunit_convert_flushes()		(!system_supports_bbml3())
#else
#define pgtable_kunit_convert_flushes()		true
#endif

/*
 * The CPUs that a test can pretend to run on: one without BBM level 3 and, if
 * the code checks for BBM level 3, one with it. After an access fault arm64
 * invalidates on all CPUs, or only on the local one.
 */
#ifdef ARM64_HAS_BBML3
#define PGTABLE_KUNIT_BBM_SIDES			2
#else
#define PGTABLE_KUNIT_BBM_SIDES			1
#endif
#ifdef TLBF_NOBROADCAST
#define PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH \
	(PGTABLE_KUNIT_LAST_LEVEL | PGTABLE_KUNIT_LOCAL)
#else
#define PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH	PGTABLE_KUNIT_LAST_LEVEL
#endif

#ifdef CONFIG_ARM64
/* Invalidate in steps of @stride; 6.12 has another function for @sync. */
static inline void
pgtable_kunit_flush_tlb_range(struct vm_area_struct *vma, unsigned long start,
			      unsigned long end, unsigned long stride,
			      bool last_level, bool sync)
{
#ifdef TLBF_NONE
	__flush_tlb_range(vma, start, end, stride, TLBI_TTL_UNKNOWN,
			  (last_level ? TLBF_NOWALKCACHE : TLBF_NONE) |
			  (sync ? TLBF_NONE : TLBF_NOSYNC));
#else
	if (sync)
		__flush_tlb_range(vma, start, end, stride, last_level,
				  TLBI_TTL_UNKNOWN);
	else
		__flush_tlb_range_nosync(vma, start, end, stride, last_level,
					 TLBI_TTL_UNKNOWN);
#endif
}
#endif /* CONFIG_ARM64 */

#ifdef CONFIG_UML
/* UML's bits for an entry that the host does not have yet. */
#ifdef _PAGE_NEEDSYNC
#define PGTABLE_KUNIT_UM_BITS			_PAGE_NEEDSYNC
#else
#define PGTABLE_KUNIT_UM_BITS			(_PAGE_NEWPAGE | _PAGE_NEWPROT)
#endif
#endif /* CONFIG_UML */

/* Entries that are not present: type and offset, and a young migration entry. */
#ifdef _LINUX_LEAFOPS_H
#define pgtable_kunit_swp_entry(pte)		softleaf_from_pte(pte)
#define pgtable_kunit_pmd_swp_entry(pmd)	softleaf_from_pmd(pmd)
#define pgtable_kunit_migration_young(pte) \
	softleaf_is_migration_young(softleaf_from_pte(pte))
#else
#define pgtable_kunit_swp_entry(pte)		pte_to_swp_entry(pte)
#define pgtable_kunit_pmd_swp_entry(pmd)	pmd_to_swp_entry(pmd)
#define pgtable_kunit_migration_young(pte) \
	is_migration_entry_young(pte_to_swp_entry(pte))
#endif

/*
 * Types of entries that keep the write permission. The older kernel has more
 * types.
 */
static inline bool pgtable_kunit_swp_writable(unsigned int type)
{
	switch (type) {
#ifdef CONFIG_MIGRATION
	case SWP_MIGRATION_WRITE:
#endif
#ifdef CONFIG_DEVICE_PRIVATE
	case SWP_DEVICE_WRITE:
#ifdef SWP_DEVICE_EXCLUSIVE_WRITE
	case SWP_DEVICE_EXCLUSIVE_WRITE:
#endif
#endif
		return true;
	default:
		return false;
	}
}

/*
 * Entries of the PMD level that are not present. The symbol has had two names.
 */
#if defined(CONFIG_ARCH_HAS_PMD_SOFTLEAVES) || \
	defined(CONFIG_ARCH_ENABLE_THP_MIGRATION)
#define PGTABLE_KUNIT_PMD_SWP
#endif

/* The bit of userfaultfd write protection has had two names. */
#ifdef pgtable_supports_uffd
#define pgtable_kunit_mkuffd(pte)		pte_mkuffd(pte)
#define pgtable_kunit_uffd(pte)			pte_uffd(pte)
#define pgtable_kunit_clear_uffd(pte)		pte_clear_uffd(pte)
#define pgtable_kunit_swp_mkuffd(pte)		pte_swp_mkuffd(pte)
#define pgtable_kunit_swp_uffd(pte)		pte_swp_uffd(pte)
#else
#define pgtable_kunit_mkuffd(pte)		pte_mkuffd_wp(pte)
#define pgtable_kunit_uffd(pte)			pte_uffd_wp(pte)
#define pgtable_kunit_clear_uffd(pte)		pte_clear_uffd_wp(pte)
#define pgtable_kunit_swp_mkuffd(pte)		pte_swp_mkuffd_wp(pte)
#define pgtable_kunit_swp_uffd(pte)		pte_swp_uffd_wp(pte)
#endif

#ifdef CONFIG_DEVICE_PRIVATE
/*
 * Give a page to a device; the folio is locked and has one more reference. The
 * older kernel takes ranges, and has two types of entries for it.
 */
static inline struct folio *
pgtable_kunit_make_exclusive(struct mm_struct *mm, unsigned long addr)
{
#ifdef SWP_DEVICE_EXCLUSIVE
	struct folio *folio = NULL;

	return IS_ERR(make_device_exclusive(mm, addr, NULL, &folio)) ? NULL :
	       folio;
#else
	struct page *page = NULL;

	make_device_exclusive_range(mm, addr, addr + PAGE_SIZE, &page, NULL);
	return page ? page_folio(page) : NULL;
#endif
}
#endif /* CONFIG_DEVICE_PRIVATE */

#ifdef CONFIG_ARM64
#ifdef PTE_UFFD
#define PGTABLE_KUNIT_PTE_UFFD			PTE_UFFD
#else
#define PGTABLE_KUNIT_PTE_UFFD			PTE_UFFD_WP
#endif
#endif /* CONFIG_ARM64 */

/*
 * Functions that once worked on one entry and now take a range. Some of them
 * are inline, so probe.mk has to look for them. If the kernel has no function
 * for ranges, @nr must be 1.
 */
#ifdef PGTABLE_KUNIT_HAS_CLEAR_PTES
#define pgtable_kunit_get_and_clear_ptes	get_and_clear_ptes
#define pgtable_kunit_clear_ptes		clear_ptes
#else
#define pgtable_kunit_get_and_clear_ptes(mm, addr, ptep, nr) \
	get_and_clear_full_ptes(mm, addr, ptep, nr, 0)
#define pgtable_kunit_clear_ptes(mm, addr, ptep, nr) \
	clear_full_ptes(mm, addr, ptep, nr, 0)
#endif

#ifdef PGTABLE_KUNIT_HAS_MODIFY_PROT_PTES
#define PGTABLE_KUNIT_MODIFY_PROT_RANGES	true
#define pgtable_kunit_modify_prot_start		modify_prot_start_ptes
#define pgtable_kunit_modify_prot_commit	modify_prot_commit_ptes
#else
#define PGTABLE_KUNIT_MODIFY_PROT_RANGES	false
#define pgtable_kunit_modify_prot_start(vma, addr, ptep, nr) \
	((void)(nr), ptep_modify_prot_start(vma, addr, ptep))
#define pgtable_kunit_modify_prot_commit(vma, addr, ptep, old_pte, pte, nr) \
	((void)(nr), ptep_modify_prot_commit(vma, addr, ptep, old_pte, pte))
#endif

#ifdef PGTABLE_KUNIT_HAS_YOUNG_PTES
#define PGTABLE_KUNIT_YOUNG_RANGES		true
#define pgtable_kunit_test_and_clear_young	test_and_clear_young_ptes
#define pgtable_kunit_clear_flush_young		clear_flush_young_ptes
#else
#define PGTABLE_KUNIT_YOUNG_RANGES		false
#define pgtable_kunit_test_and_clear_young(vma, addr, ptep, nr) \
	((void)(nr), ptep_test_and_clear_young(vma, addr, ptep))
#define pgtable_kunit_clear_flush_young(vma, addr, ptep, nr) \
	((void)(nr), ptep_clear_flush_young(vma, addr, ptep))
#endif

/* The older kernel has one more argument: whether the whole mm is freed. */
#ifdef PGTABLE_KUNIT_HAS_CLEAR_NONPRESENT
#define pgtable_kunit_clear_nonpresent(mm, addr, ptep, nr, full) \
	((void)(full), clear_nonpresent_ptes(mm, addr, ptep, nr))
#else
#define pgtable_kunit_clear_nonpresent		clear_not_present_full_ptes
#endif

/*
 * arm64's hugetlbpage.c: the newer kernel invalidates in steps of an entry, only
 * last-level entries, and uses break-before-make only for a valid block. The
 * older kernel invalidates in steps of a page, also tables, for any old entry.
 * Without the contiguous bit it invalidates one page, at any level.
 */
#ifdef PGTABLE_KUNIT_HAS_HUGE_ANYSZ
#define PGTABLE_KUNIT_HUGE_EXACT		true
#else
#define PGTABLE_KUNIT_HUGE_EXACT		false
#endif

/* A file of shmem: the type of the flags differs. */
#ifdef EMPTY_VMA_FLAGS
#define pgtable_kunit_shmem_file(name, size) \
	shmem_file_setup(name, size, EMPTY_VMA_FLAGS)
#else
#define pgtable_kunit_shmem_file(name, size) \
	shmem_file_setup(name, size, 0)
#endif

/* Table descriptors may have their own access flag. */
#ifdef PMD_TABLE_AF
#define PGTABLE_KUNIT_TABLE_AF			PMD_TABLE_AF
#else
#define PGTABLE_KUNIT_TABLE_AF			0
#endif

/* Does create_pgd_mapping() keep entries that exist already? */
#define PGTABLE_KUNIT_KEEPS_TABLES \
	__is_defined(PGTABLE_KUNIT_HAS_KEPT_TABLES)

/*
 * If the other owner of a large folio has exited, does a write reuse a page?
 */
#define PGTABLE_KUNIT_REUSES_FOLIOS \
	__is_defined(PGTABLE_KUNIT_HAS_REUSED_FOLIOS)

/*
 * Does a write to the huge zero page allocate a huge page, or small pages?
 */
#define PGTABLE_KUNIT_REPLACES_HUGE_ZERO \
	__is_defined(PGTABLE_KUNIT_HAS_HUGE_ZERO_WP)

/* Reclaim unmaps the pages of a folio by batches, or one by one. */
#define PGTABLE_KUNIT_UNMAPS_BATCHES \
	__is_defined(PGTABLE_KUNIT_HAS_UNMAP_BATCHES)

/* mremap() moves the pages of a folio by batches, or one by one. */
#define PGTABLE_KUNIT_MREMAP_BATCHES \
	__is_defined(PGTABLE_KUNIT_HAS_MREMAP_BATCHES)

/*
 * A fault on cached pages of a file subtracts their number from the misses of
 * readahead. Newer kernels subtract 1, for the accessed page.
 */
#define PGTABLE_KUNIT_MISSES_PER_PAGE \
	__is_defined(PGTABLE_KUNIT_HAS_MISSES_PER_PAGE)

/**
 * struct pgtable_kunit_batch - the result of a batch, the same on every kernel
 * @nr: number of entries
 * @write: a writable entry was reported
 * @young: a young entry was reported
 * @dirty: a dirty entry was reported
 * @pte: the caller's copy of the first entry, afterwards
 */
struct pgtable_kunit_batch {
	unsigned int nr;
	bool write;
	bool young;
	bool dirty;
	pte_t pte;
};

/* Each combination of the flags below is less than this number. */
#define PGTABLE_KUNIT_BATCH_FLAGS		BIT(5)

/*
 * The batch functions are private to mm/: a suite that calls them includes
 * mm/internal.h first. RESPECT are the bits that end a batch where they change.
 * MERGE are the bits that are reported. The older kernel takes the bits to
 * ignore. It reports bits of the entries after the first, if the caller wants a
 * report. The newer kernel takes the bits to respect. It merges the bits to
 * report into a copy of the first entry, young and dirty together.
 */
#if defined(FPB_RESPECT_DIRTY)

#define PGTABLE_KUNIT_RESPECT_DIRTY		BIT(0)
#define PGTABLE_KUNIT_RESPECT_SOFT_DIRTY	BIT(1)
#define PGTABLE_KUNIT_RESPECT_WRITE		BIT(2)
#define PGTABLE_KUNIT_MERGE_WRITE		BIT(3)
#define PGTABLE_KUNIT_MERGE_YOUNG		BIT(4)
#define PGTABLE_KUNIT_MERGE_DIRTY		BIT(4)
#define PGTABLE_KUNIT_REPORTS_FIRST		true

static inline struct pgtable_kunit_batch
pgtable_kunit_folio_pte_batch(struct folio *folio, unsigned long addr,
			      pte_t *ptep, unsigned int max_nr,
			      unsigned int flags)
{
	struct pgtable_kunit_batch batch = { .pte = ptep_get(ptep) };
	struct vm_area_struct vma = {};
	fpb_t fpb = 0;

	if (flags & PGTABLE_KUNIT_RESPECT_DIRTY)
		fpb |= FPB_RESPECT_DIRTY;
	if (flags & PGTABLE_KUNIT_RESPECT_SOFT_DIRTY)
		fpb |= FPB_RESPECT_SOFT_DIRTY;
	if (flags & PGTABLE_KUNIT_RESPECT_WRITE)
		fpb |= FPB_RESPECT_WRITE;
	if (flags & PGTABLE_KUNIT_MERGE_WRITE)
		fpb |= FPB_MERGE_WRITE;
	if (flags & PGTABLE_KUNIT_MERGE_YOUNG)
		fpb |= FPB_MERGE_YOUNG_DIRTY;

	batch.nr = folio_pte_batch_flags(folio, &vma, ptep, &batch.pte, max_nr,
					 fpb);
	batch.write = pte_write(batch.pte);
	batch.young = pte_young(batch.pte);
	batch.dirty = pte_dirty(batch.pte);
	return batch;
}

/* The form that respects no bits and returns only the length. */
static inline unsigned int
pgtable_kunit_folio_pte_batch_nr(struct folio *folio, unsigned long addr,
				 pte_t *ptep, unsigned int max_nr)
{
	return folio_pte_batch(folio, ptep, ptep_get(ptep), max_nr);
}

#elif defined(FPB_IGNORE_DIRTY)

#define PGTABLE_KUNIT_RESPECT_DIRTY		BIT(0)
#define PGTABLE_KUNIT_RESPECT_SOFT_DIRTY	BIT(1)
#define PGTABLE_KUNIT_RESPECT_WRITE		0
#define PGTABLE_KUNIT_MERGE_WRITE		BIT(2)
#define PGTABLE_KUNIT_MERGE_YOUNG		BIT(3)
#define PGTABLE_KUNIT_MERGE_DIRTY		BIT(4)
#define PGTABLE_KUNIT_REPORTS_FIRST		false

static inline struct pgtable_kunit_batch
pgtable_kunit_folio_pte_batch(struct folio *folio, unsigned long addr,
			      pte_t *ptep, unsigned int max_nr,
			      unsigned int flags)
{
	/* The caller has to initialise its variables, too. */
	struct pgtable_kunit_batch batch = {
		.write = flags & PGTABLE_KUNIT_MERGE_WRITE,
		.young = flags & PGTABLE_KUNIT_MERGE_YOUNG,
		.dirty = flags & PGTABLE_KUNIT_MERGE_DIRTY,
		.pte = ptep_get(ptep),
	};
	fpb_t fpb = 0;

	if (!(flags & PGTABLE_KUNIT_RESPECT_DIRTY))
		fpb |= FPB_IGNORE_DIRTY;
	if (!(flags & PGTABLE_KUNIT_RESPECT_SOFT_DIRTY))
		fpb |= FPB_IGNORE_SOFT_DIRTY;

	batch.nr = folio_pte_batch(folio, addr, ptep, batch.pte, max_nr, fpb,
				   batch.write ? &batch.write : NULL,
				   batch.young ? &batch.young : NULL,
				   batch.dirty ? &batch.dirty : NULL);
	return batch;
}

static inline unsigned int
pgtable_kunit_folio_pte_batch_nr(struct folio *folio, unsigned long addr,
				 pte_t *ptep, unsigned int max_nr)
{
	return folio_pte_batch(folio, addr, ptep, ptep_get(ptep), max_nr,
			       FPB_IGNORE_DIRTY | FPB_IGNORE_SOFT_DIRTY,
			       NULL, NULL, NULL);
}

#endif

/*
 * The memory cgroup of a slot of a swap device: each device has a map, which is
 * empty at first. Some kernels end a batch of swap entries where the memory
 * cgroup changes. The Makefile checks whether this kernel does, and whether
 * code can write the map entry by entry.
 */
#if __has_include("linux/swap_cgroup.h")
#include <linux/swap_cgroup.h>
#define pgtable_kunit_swap_cgroup_on(type, nr)	swap_cgroup_swapon(type, nr)
#define pgtable_kunit_swap_cgroup_off(type)	swap_cgroup_swapoff(type)
#else
#define pgtable_kunit_swap_cgroup_on(type, nr)	((void)(type), (void)(nr), 0)
#define pgtable_kunit_swap_cgroup_off(type)	do { } while (0)
#endif

#define PGTABLE_KUNIT_SWAP_BATCH_CGROUP \
	__is_defined(PGTABLE_KUNIT_HAS_SWAP_BATCH_CGROUP)

/*
 * Newer kernels hide all files from kernel threads. After this call, code finds
 * the files that user space will find.
 */
#include <linux/fs_struct.h>
#ifdef scoped_with_init_fs
#define pgtable_kunit_with_files()	scoped_with_init_fs()
#else
#define pgtable_kunit_with_files()
#endif

/* Returns false if the kernel has no such function. */
static inline bool pgtable_kunit_swap_cgroup_record(swp_entry_t entry,
						    unsigned short id)
{
#ifdef PGTABLE_KUNIT_HAS_SWAP_RECORD_ENTRY
	swap_cgroup_record(entry, id, 1);
	return true;
#else
	return false;
#endif
}

/*
 * Clearing of pages. In newer kernels folio_zero_user() uses functions that
 * clear a range of pages. The Makefile checks for both, and whether a
 * page fault asks the page allocator if it has already cleared the folio.
 */
#define PGTABLE_KUNIT_CLEAR_RANGES \
	__is_defined(PGTABLE_KUNIT_HAS_CLEAR_RANGES)

static inline void pgtable_kunit_clear_pages(void *addr, unsigned int nr)
{
#ifdef PGTABLE_KUNIT_HAS_CLEAR_RANGES
	clear_pages(addr, nr);
#endif
}

static inline void pgtable_kunit_clear_user_pages(void *addr,
						  unsigned long vaddr,
						  struct page *page,
						  unsigned int nr)
{
#ifdef PGTABLE_KUNIT_HAS_CLEAR_RANGES
	clear_user_pages(addr, vaddr, page, nr);
#endif
}

static inline void pgtable_kunit_clear_user_highpages(struct page *page,
						      unsigned long vaddr,
						      unsigned int nr)
{
#ifdef PGTABLE_KUNIT_HAS_CLEAR_RANGES
	clear_user_highpages(page, vaddr, nr);
#endif
}

#define PGTABLE_KUNIT_ZERO_EXTENTS \
	__is_defined(PGTABLE_KUNIT_HAS_ZERO_EXTENTS)

#define PGTABLE_KUNIT_NEEDS_ZEROING \
	__is_defined(PGTABLE_KUNIT_HAS_NEEDS_ZEROING)

/* Larger folios cannot be cleared this way: with DEBUG_VM the kernel warns. */
#if defined(MAX_FOLIO_ORDER) && defined(CONFIG_DEBUG_VM)
#define PGTABLE_KUNIT_MAX_FOLIO_ORDER		MAX_FOLIO_ORDER
#else
#define PGTABLE_KUNIT_MAX_FOLIO_ORDER		UINT_MAX
#endif

/*
 * name_gen_params() generates test parameters that are not an array. The newer
 * kernel also gives it a pointer to the test.
 */
#ifdef kunit_register_params_array
#define PGTABLE_KUNIT_GEN_PARAMS(name)					\
	const void *name##_gen_params(struct kunit *test, const void *prev, \
				      char *desc)
#else
#define PGTABLE_KUNIT_GEN_PARAMS(name)					\
	const void *name##_gen_params(const void *prev, char *desc)
#endif

#ifdef CONFIG_ARM64
/*
 * Undo the work of the arm64 page-table builder when it allocates a table.
 * probe.mk finds out whether there is one destructor for all levels.
 */
static inline void pgtable_kunit_table_dtor_free(struct ptdesc *ptdesc,
						 unsigned int shift)
{
#ifdef PGTABLE_KUNIT_HAS_ONE_DTOR
	pagetable_dtor(ptdesc);
#else
	if (shift == PAGE_SHIFT)
		pagetable_pte_dtor(ptdesc);
	else if (shift == PMD_SHIFT)
		pagetable_pmd_dtor(ptdesc);
#endif
	pagetable_free(ptdesc);
}
#endif /* CONFIG_ARM64 */

/*
 * Whether a large folio is mapped by more than one mm. The newer kernel keeps
 * the IDs of up to two owners if it is configured to. Otherwise it considers
 * all large folios shared. The older kernel guesses from mapcounts.
 */
enum pgtable_kunit_shared {
	PGTABLE_KUNIT_SHARED_TRACKED,
	PGTABLE_KUNIT_SHARED_ASSUMED,
	PGTABLE_KUNIT_SHARED_GUESSED,
};

#ifdef PGTABLE_KUNIT_HAS_MAYBE_MAPPED_SHARED
#define PGTABLE_KUNIT_SHARED \
	(IS_ENABLED(CONFIG_MM_ID) ? PGTABLE_KUNIT_SHARED_TRACKED : \
				    PGTABLE_KUNIT_SHARED_ASSUMED)
#define pgtable_kunit_mapped_shared(folio)	folio_maybe_mapped_shared(folio)
#else
#define PGTABLE_KUNIT_SHARED			PGTABLE_KUNIT_SHARED_GUESSED
#define pgtable_kunit_mapped_shared(folio)	folio_likely_mapped_shared(folio)
#endif

/*
 * The newer kernel can be built without a mapcount of each page, and then
 * reports their average, which needs fs/proc/internal.h.
 */
#define PGTABLE_KUNIT_PAGE_MAPCOUNT		!IS_ENABLED(CONFIG_NO_PAGE_MAPCOUNT)
#ifdef PGTABLE_KUNIT_HAS_AVERAGE_MAPCOUNT
#define PGTABLE_KUNIT_AVERAGE_MAPCOUNT		true
#define pgtable_kunit_average_mapcount(folio)	folio_average_page_mapcount(folio)
#else
#define PGTABLE_KUNIT_AVERAGE_MAPCOUNT		false
#define pgtable_kunit_average_mapcount(folio)	((void)(folio), 0)
#endif

/* Fork: the newer kernel takes the VMA that gets the new mappings. */
#ifdef PGTABLE_KUNIT_HAS_DUP_RMAP_VMA
#define pgtable_kunit_dup_file_rmap		folio_dup_file_rmap_ptes
#define pgtable_kunit_dup_anon_rmap		folio_try_dup_anon_rmap_ptes
#else
#define pgtable_kunit_dup_file_rmap(folio, page, nr, dst) \
	((void)(dst), folio_dup_file_rmap_ptes(folio, page, nr))
#define pgtable_kunit_dup_anon_rmap(folio, page, nr, dst, src) \
	((void)(dst), folio_try_dup_anon_rmap_ptes(folio, page, nr, src))
#endif

static inline void pgtable_kunit_dup_file_rmap_pmd(struct folio *folio,
						   struct vm_area_struct *dst)
{
#ifdef PGTABLE_KUNIT_HAS_DUP_RMAP_VMA
	folio_dup_file_rmap_pmd(folio, &folio->page, dst);
#else
	folio_dup_file_rmap_pmd(folio, &folio->page);
#endif
}

static inline int pgtable_kunit_dup_anon_rmap_pmd(struct folio *folio,
						  struct vm_area_struct *dst,
						  struct vm_area_struct *src)
{
#ifdef PGTABLE_KUNIT_HAS_DUP_RMAP_VMA
	return folio_try_dup_anon_rmap_pmd(folio, &folio->page, dst, src);
#else
	return folio_try_dup_anon_rmap_pmd(folio, &folio->page, src);
#endif
}

/*
 * Returns the number of warnings that @fn causes. The warnings do not fail the
 * test. If the kernel cannot keep them out of the log, @fn is not called.
 */
static inline int pgtable_kunit_count_warnings(struct kunit *test,
					       void (*fn)(void *data),
					       void *data)
{
#ifdef kunit_warning_suppress
	struct kunit_suppressed_warning *w = kunit_start_suppress_warning(test);
	int nr;

	fn(data);
	nr = kunit_suppressed_warning_count(w);
	kunit_end_suppress_warning(test, w);
	return nr;
#else
	return -EOPNOTSUPP;
#endif
}

#endif /* _PGTABLE_KUNIT_COMPAT_H */
