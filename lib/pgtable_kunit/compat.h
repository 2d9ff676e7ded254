/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between the kernels that the page-table suites run on.
 *
 * This is the only place that knows. Each probe asks the tree whether it has
 * a thing; none asks for a version number, because distributions backport.
 */
#ifndef _PGTABLE_KUNIT_COMPAT_H
#define _PGTABLE_KUNIT_COMPAT_H

#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#if __has_include("linux/leafops.h")
#include <linux/leafops.h>
#endif

/*
 * Writing and clearing one entry exactly as given. On arm64 the public
 * functions add and remove the contiguous bit as they see fit; the private
 * ones do not. Both keep the books of CONFIG_PAGE_TABLE_CHECK.
 */
#ifdef CONFIG_ARM64
#define pgtable_kunit_raw_get(ptep)		__ptep_get(ptep)
#define pgtable_kunit_raw_set(mm, addr, ptep, pte) \
	__set_ptes(mm, addr, ptep, pte, 1)
#define pgtable_kunit_raw_clear(mm, addr, ptep) \
	__ptep_get_and_clear(mm, addr, ptep)
#else
#define pgtable_kunit_raw_get(ptep)		ptep_get(ptep)
#define pgtable_kunit_raw_set(mm, addr, ptep, pte) \
	set_pte_at(mm, addr, ptep, pte)
#define pgtable_kunit_raw_clear(mm, addr, ptep) \
	ptep_get_and_clear(mm, addr, ptep)
#endif

/* With BBM level 3, arm64 converts a contiguous block without a flush. */
#ifdef ARM64_HAS_BBML3
#define pgtable_kunit_convert_flushes()		(!system_supports_bbml3())
#else
#define pgtable_kunit_convert_flushes()		true
#endif

/* Reading the young bit of a migration entry. */
#ifdef _LINUX_LEAFOPS_H
#define pgtable_kunit_migration_young(pte) \
	softleaf_is_migration_young(softleaf_from_pte(pte))
#else
#define pgtable_kunit_migration_young(pte) \
	is_migration_entry_young(pte_to_swp_entry(pte))
#endif

/* The bit of userfaultfd write protection has had two names. */
#ifdef pgtable_supports_uffd
#define pgtable_kunit_mkuffd(pte)		pte_mkuffd(pte)
#else
#define pgtable_kunit_mkuffd(pte)		pte_mkuffd_wp(pte)
#endif

/**
 * struct pgtable_kunit_batch - a batch, in the same terms on every kernel
 * @nr: number of entries
 * @write: some entry of the batch is writable, the first one included
 * @young: some entry of the batch is young, the first one included
 * @dirty: some entry of the batch is dirty, the first one included
 */
struct pgtable_kunit_batch {
	unsigned int nr;
	bool write;
	bool young;
	bool dirty;
};

/* Bits that are to end a batch where they change. */
#define PGTABLE_KUNIT_RESPECT_DIRTY		BIT(0)
#define PGTABLE_KUNIT_RESPECT_SOFT_DIRTY	BIT(1)
#define PGTABLE_KUNIT_RESPECT_WRITE		BIT(2)

/*
 * The batch functions are private to mm/: who wants to call them includes
 * mm/internal.h first. The older kernel is told what to ignore, and reports on
 * the entries behind the first. The newer one is told what to respect, and
 * merges into a copy of the first entry.
 */
#if defined(FPB_RESPECT_DIRTY)

#define PGTABLE_KUNIT_RESPECT_ALL	(PGTABLE_KUNIT_RESPECT_DIRTY | \
					 PGTABLE_KUNIT_RESPECT_SOFT_DIRTY | \
					 PGTABLE_KUNIT_RESPECT_WRITE)

static inline struct pgtable_kunit_batch
pgtable_kunit_folio_pte_batch(struct folio *folio, unsigned long addr,
			      pte_t *ptep, unsigned int max_nr,
			      unsigned int respect)
{
	struct vm_area_struct vma = {};
	struct pgtable_kunit_batch batch;
	fpb_t flags = FPB_MERGE_WRITE | FPB_MERGE_YOUNG_DIRTY;
	pte_t pte = ptep_get(ptep);

	if (respect & PGTABLE_KUNIT_RESPECT_DIRTY)
		flags |= FPB_RESPECT_DIRTY;
	if (respect & PGTABLE_KUNIT_RESPECT_SOFT_DIRTY)
		flags |= FPB_RESPECT_SOFT_DIRTY;
	if (respect & PGTABLE_KUNIT_RESPECT_WRITE)
		flags |= FPB_RESPECT_WRITE;

	batch.nr = folio_pte_batch_flags(folio, &vma, ptep, &pte, max_nr,
					 flags);
	batch.write = pte_write(pte);
	batch.young = pte_young(pte);
	batch.dirty = pte_dirty(pte);
	return batch;
}

/* The form that respects nothing and reports nothing but the length. */
static inline unsigned int
pgtable_kunit_folio_pte_batch_nr(struct folio *folio, unsigned long addr,
				 pte_t *ptep, unsigned int max_nr)
{
	return folio_pte_batch(folio, ptep, ptep_get(ptep), max_nr);
}

#elif defined(FPB_IGNORE_DIRTY)

#define PGTABLE_KUNIT_RESPECT_ALL	(PGTABLE_KUNIT_RESPECT_DIRTY | \
					 PGTABLE_KUNIT_RESPECT_SOFT_DIRTY)

static inline struct pgtable_kunit_batch
pgtable_kunit_folio_pte_batch(struct folio *folio, unsigned long addr,
			      pte_t *ptep, unsigned int max_nr,
			      unsigned int respect)
{
	struct pgtable_kunit_batch batch;
	pte_t pte = ptep_get(ptep);
	fpb_t flags = 0;

	if (!(respect & PGTABLE_KUNIT_RESPECT_DIRTY))
		flags |= FPB_IGNORE_DIRTY;
	if (!(respect & PGTABLE_KUNIT_RESPECT_SOFT_DIRTY))
		flags |= FPB_IGNORE_SOFT_DIRTY;

	batch.nr = folio_pte_batch(folio, addr, ptep, pte, max_nr, flags,
				   &batch.write, &batch.young, &batch.dirty);
	batch.write |= !!pte_write(pte);
	batch.young |= !!pte_young(pte);
	batch.dirty |= !!pte_dirty(pte);
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

#ifdef PGTABLE_KUNIT_BUILDER
/*
 * Undo what the arm64 page-table builder does when it allocates a table.
 * Whether there is one destructor for all levels only a look into mm.h tells;
 * the Makefile takes it.
 */
static inline void pgtable_kunit_table_dtor_free(struct ptdesc *ptdesc,
						 unsigned int shift)
{
#ifdef PGTABLE_KUNIT_ONE_DTOR
	pagetable_dtor(ptdesc);
#else
	if (shift == PAGE_SHIFT)
		pagetable_pte_dtor(ptdesc);
	else if (shift == PMD_SHIFT)
		pagetable_pmd_dtor(ptdesc);
#endif
	pagetable_free(ptdesc);
}
#endif /* PGTABLE_KUNIT_BUILDER */

#endif /* _PGTABLE_KUNIT_COMPAT_H */
