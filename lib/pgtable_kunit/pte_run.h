/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the functions under test on a real table, compared with the model.
 */
#ifndef _PGTABLE_KUNIT_PTE_RUN_H
#define _PGTABLE_KUNIT_PTE_RUN_H

#include "pte_model.h"

/**
 * struct pte_format - conversion of entries of the model to entries of the
 * table
 * @encode: turn an entry of the model into an entry of the table
 * @image_ok: compare the window with the model, and the rest of the table
 * @same: compare an entry that a step returned with the expected one
 * @hardware: set bits in an entry as an access does
 * @leak: make an entry look like an entry of a block, if MODEL_HAS_LEAK
 */
struct pte_format {
	pte_t (*encode)(const struct pte_ctx *c,
			const struct pte_model_entry *e);
	bool (*image_ok)(struct pte_ctx *c, bool report, const char *desc);
	bool (*same)(struct pte_ctx *c, const struct pte_step *step, pte_t got,
		     pte_t want);
	void (*hardware)(pte_t *ptep, unsigned int flags);
	pte_t (*leak)(pte_t pte);
};

/**
 * struct pte_ctx - the table, the model and the functions for steps
 * @test: the test
 * @table: the table
 * @vma: for functions that need a VMA; only its mm is set
 * @tlb: the TLB invalidations of the table's mm, or NULL
 * @folio: the large folio
 * @format: the format of the entries
 * @backend: the functions under test
 * @data: for the back end
 * @pfn: the first page frame of the large folio
 * @pair_pfn: PFN of the first of the two folios that share a block
 * @shift: added to the page frame of each page; with 1, pages are not aligned
 *   to their addresses even if their numbers are
 * @base: entry of the table at which the window begins
 * @model: the model
 * @got: the value that the last step returned, if it is an entry
 * @number: the value, if it is a number
 */
struct pte_ctx {
	struct kunit *test;
	struct pgtable_kunit_table *table;
	struct vm_area_struct vma;
	struct pgtable_kunit_tlb *tlb;
	struct folio *folio;
	const struct pte_format *format;
	const struct pte_backend *backend;
	void *data;
	unsigned long pfn;
	unsigned long pair_pfn;
	unsigned int shift;
	unsigned int base;
	struct pte_model model;
	pte_t got;
	unsigned int number;
};

void pte_ctx_init(struct pte_ctx *c, struct kunit *test,
		  const struct pte_format *format, unsigned int order);
void pte_ctx_avoid_known(struct pte_ctx *c);
void pte_ctx_reset(struct pte_ctx *c);
void pte_ctx_fill(struct pte_ctx *c, unsigned int idx,
		  const struct pte_model_entry *entry);
unsigned long pte_ctx_pfn(const struct pte_ctx *c, unsigned int page);
bool pte_ctx_flushes_ok(struct pte_ctx *c, bool report, const char *desc);

void pte_op_make(struct pte_ctx *c, const struct pte_step *step);
bool pte_op_run(struct pte_ctx *c, const struct pte_step *step, bool report);
void pte_op_call(struct pte_ctx *c, enum pte_op_id op, int idx, unsigned int nr,
		 unsigned int flags, pte_t entry);
void pte_step_describe(const struct pte_step *step, char *buf, size_t size);

/**
 * struct pte_case - a function and its flags, for a parameter of a test case
 * @id: the function
 * @op: its row in the table
 * @flags: its flags
 * @desc: a description of both
 */
struct pte_case {
	enum pte_op_id id;
	const struct pte_op *op;
	unsigned int flags;
	char desc[KUNIT_PARAM_DESC_SIZE];
};

const void *pte_case_next(const struct pte_backend *backend, const void *prev,
			  bool (*wanted)(const struct pte_case *pc), char *desc);
struct pte_case pte_case_get(const struct pte_backend *backend,
			     const void *param);
struct pte_model_entry pte_case_entry(const struct pte_case *pc,
				      const struct pte_model_entry *old);

#endif /* _PGTABLE_KUNIT_PTE_RUN_H */
