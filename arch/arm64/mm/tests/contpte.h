/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the suites for contiguous PTEs have in common: a window of four blocks
 * in a synthetic table, a folio to fill it with, and a model.
 *
 * A block is CONT_PTES entries, aligned to their number. It is folded if all
 * its entries have PTE_CONT. The model has the image that the table should
 * have, and the list of expected TLB invalidations in their order. There is one
 * invalidation for each block that is converted, of exactly this block, and the
 * function under test may add its own.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_H
#define _ARM64_MM_TESTS_CONTPTE_H

#include <linux/log2.h>

#include "pte_run.h"

#define CONTPTE_BLOCKS		4
#define CONTPTE_WINDOW		(CONTPTE_BLOCKS * CONT_PTES)
#define CONTPTE_TABLE_BLOCKS	(PTRS_PER_PTE / CONT_PTES)
#define CONTPTE_ORDER		ilog2(CONT_PTES)

/* Without CONFIG_ARM64_CONTPTE only the contiguous bit is different. */
#define CONTPTE_FOLDS		IS_ENABLED(CONFIG_ARM64_CONTPTE)

/* The largest number of invalidations by one call under test. */
#define CONTPTE_FLUSHES		4

/* A place in a block that means none of its entries. */
#define CONTPTE_NOWHERE		CONT_PTES

/**
 * struct contpte_fixture - what a case works on
 * @test: the test
 * @table: the table
 * @vma: for functions that need a VMA; only its mm is set
 * @tlb: the TLB invalidations of the table's mm
 * @folio: twice as large as the window, so that pages can be misaligned
 * @flushes: number of TLB invalidations that the model expects
 * @flush: the expected invalidations
 */
struct contpte_fixture {
	struct kunit *test;
	struct pgtable_kunit_table *table;
	struct vm_area_struct vma;
	struct pgtable_kunit_tlb *tlb;
	struct folio *folio;
	unsigned int flushes;
	struct contpte_flush {
		int idx;
		int nr;
	} flush[CONTPTE_FLUSHES];
};

unsigned int contpte_next(unsigned int i);

static inline pte_t *contpte_ptep(struct contpte_fixture *f, int idx)
{
	return f->table->pte + idx;
}

static inline unsigned long contpte_addr(struct contpte_fixture *f, int idx)
{
	return pgtable_kunit_table_addr(f->table, idx);
}

/* An entry for a page of the folio: writable, old and clean. */
static inline pte_t contpte_pte(struct contpte_fixture *f, unsigned int page)
{
	pgprot_t prot = vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED);

	return pte_mkold(pte_mkclean(pfn_pte(folio_pfn(f->folio) + page, prot)));
}

/* Set only the bit; pte_mkcont() may set more. */
static inline pte_t contpte_mkcont(pte_t pte)
{
	return set_pte_bit(pte, __pgprot(PTE_CONT));
}

/* The bit, as far as the kernel is configured to set it. */
static inline pte_t contpte_mkfolded(pte_t pte)
{
	return CONTPTE_FOLDS ? contpte_mkcont(pte) : pte;
}

/* Make an entry dirty as hardware makes a writable entry dirty. */
static inline pte_t contpte_mkhwdirty(pte_t pte)
{
	return clear_pte_bit(pte, __pgprot(PTE_RDONLY));
}

/*
 * Skip a case that is about the contiguous bit alone, if the kernel never sets
 * it.
 */
static inline void contpte_skip_unless_folds(struct kunit *test)
{
	if (!CONTPTE_FOLDS)
		kunit_skip(test, "needs CONFIG_ARM64_CONTPTE");
}

void contpte_fill(struct contpte_fixture *f, int idx, unsigned int page,
		  bool folded, unsigned int young, unsigned int dirty);
void contpte_reset(struct contpte_fixture *f);
void contpte_fill_window(struct contpte_fixture *f, int base, unsigned int mask,
			 unsigned int young, unsigned int dirty);
bool contpte_set_none(struct contpte_fixture *f);
void contpte_model_flush(struct contpte_fixture *f, int idx, int nr);
void contpte_model_convert(struct contpte_fixture *f, int idx, bool fold);
void contpte_model_unfold(struct contpte_fixture *f, int idx);
void contpte_model_unfold_partial(struct contpte_fixture *f, int start,
				  int end);
__printf(2, 3)
bool contpte_check(struct contpte_fixture *f, const char *fmt, ...);
struct contpte_fixture *contpte_fixture_alloc(struct kunit *test);
void contpte_ctx_init(struct pte_ctx *c, struct kunit *test);

#endif /* _ARM64_MM_TESTS_CONTPTE_H */
