/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the suites for contiguous PTEs: a window of four blocks in a
 * synthetic table, a folio for these blocks, and a model.
 *
 * A block is CONT_PTES entries, aligned to their number. It is folded if all
 * its entries have PTE_CONT. The model has the expected content of the table,
 * and the expected TLB invalidations in order. Each block that is converted
 * gets one invalidation of exactly this block. The function under test may add
 * its own. pte_model.h has the model, pte_run.h the calls. For entries with
 * bits that the model does not know, a case changes the expected image itself.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_H
#define _ARM64_MM_TESTS_CONTPTE_H

#include <linux/log2.h>

#include "pte_run.h"

#define CONTPTE_BLOCKS		MODEL_BLOCKS
#define CONTPTE_WINDOW		MODEL_WINDOW
#define CONTPTE_TABLE_BLOCKS	(PTRS_PER_PTE / CONT_PTES)
#define CONTPTE_ORDER		ilog2(CONT_PTES)

/*
 * Without CONFIG_ARM64_CONTPTE, no entry is contiguous; the rest is the same.
 */
#define CONTPTE_FOLDS		MODEL_FOLDS

/* The value for "no entry of the block" as a place in a block. */
#define CONTPTE_NOWHERE		CONT_PTES

unsigned int contpte_next(unsigned int i);

static inline pte_t *contpte_ptep(struct pte_ctx *f, int idx)
{
	return f->table->pte + idx;
}

static inline unsigned long contpte_addr(struct pte_ctx *f, int idx)
{
	return pgtable_kunit_table_addr(f->table, idx);
}

/* Make one call of a function, and compare the result with the model. */
static inline bool contpte_step(struct pte_ctx *f, enum pte_op_id op, int idx,
				unsigned int nr, unsigned int flags)
{
	const struct pte_step step = {
		.op = op, .flags = flags, .idx = idx, .nr = nr,
	};

	return pte_op_run(f, &step, true);
}

/* Make one call that sets entries. */
static inline bool contpte_set(struct pte_ctx *f, int idx, unsigned int nr,
			       struct pte_model_entry entry, unsigned int flags)
{
	const struct pte_step step = {
		.op = nr == 1 ? PTE_OP_SET_PTE_AT : PTE_OP_SET_PTES,
		.flags = flags, .idx = idx, .nr = nr, .entry = entry,
	};

	return pte_op_run(f, &step, true);
}

/* An entry for a page of the folio: writable, old and clean. */
static inline pte_t contpte_pte(struct pte_ctx *f, unsigned int page)
{
	pgprot_t prot = vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED);

	return pte_mkold(pte_mkclean(pfn_pte(folio_pfn(f->folio) + page, prot)));
}

/* The same entry in the model. */
static inline struct pte_model_entry contpte_entry(unsigned int page)
{
	return (struct pte_model_entry){
		.kind = MODEL_VALID, .write = true, .page = page,
	};
}

/* Set only the contiguous bit. pte_mkcont() may set other bits too. */
static inline pte_t contpte_mkcont(pte_t pte)
{
	return set_pte_bit(pte, __pgprot(PTE_CONT));
}

/* The contiguous bit, or no bit if the kernel is configured not to set it. */
static inline pte_t contpte_mkfolded(pte_t pte)
{
	return CONTPTE_FOLDS ? contpte_mkcont(pte) : pte;
}

/*
 * Make an entry dirty in the way in which hardware makes a writable entry
 * dirty.
 */
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

void contpte_fill(struct pte_ctx *f, int idx, unsigned int page,
		  bool folded, unsigned int young, unsigned int dirty);
void contpte_empty_window(struct pte_ctx *f);
void contpte_fill_window(struct pte_ctx *f, int base, unsigned int mask,
			 unsigned int young, unsigned int dirty);
bool contpte_set_none(struct pte_ctx *f);
void contpte_model_flush(struct pte_ctx *f, int idx, int nr);
void contpte_want_folded(struct pte_ctx *f, int first);
__printf(2, 3)
bool contpte_check(struct pte_ctx *f, const char *fmt, ...);
struct pte_ctx *contpte_fixture_alloc(struct kunit *test);
int contpte_init(struct kunit *test);
void contpte_ctx_init(struct pte_ctx *c, struct kunit *test);
void contpte_kernel_mm(struct pte_ctx *f, struct mm_struct *mm);

#endif /* _ARM64_MM_TESTS_CONTPTE_H */
