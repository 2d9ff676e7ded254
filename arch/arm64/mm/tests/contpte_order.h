/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The recorded back end: arm64's page-table code, compiled a second time
 * (contpte_recorded.c). It makes more comparisons than the other back ends.
 * Each call must obey break-before-make at each step. It must make exactly the
 * invalidations of the model, of the right kind, and no more accesses than it
 * needs.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_ORDER_H
#define _ARM64_MM_TESTS_CONTPTE_ORDER_H

#include "contpte.h"
#include "contpte_bbm.h"
#include "contpte_record.h"

extern const struct pte_backend contpte_recorded_backend;

int recorded_pmdp_set_access_flags(struct vm_area_struct *vma,
				   unsigned long addr, pmd_t *pmdp, pmd_t entry,
				   int dirty);

/**
 * struct contpte_order_call - the range of a call, in a window of four blocks
 * @single: the function works on one entry
 * @mask: the blocks that are folded
 * @start: first entry of its range
 * @end: the entry after the last
 * @bbml3: pretend that the CPUs have BBM level 3
 */
struct contpte_order_call {
	bool single;
	unsigned int mask;
	int start;
	int end;
	bool bbml3;
};

/* The mask of all blocks. */
#define CONTPTE_ORDER_ALL	(BIT(CONTPTE_BLOCKS) - 1)

/**
 * struct contpte_order - the table, the recorder and the checker of a case
 * @f: the table and its folio; the window is at the start of the table
 * @rec: the recorder of the table's entries
 * @bbm: the checker that the recorder feeds
 * @before: the entries of the window before the call
 * @outside: steps on entries outside of the window
 * @hardware: called before each step, to set bits as hardware does; or NULL
 * @data: for @hardware
 */
struct contpte_order {
	struct pte_ctx *f;
	struct pgtable_kunit_record *rec;
	struct contpte_bbm *bbm;
	pte_t before[CONTPTE_WINDOW];
	unsigned int outside;
	void (*hardware)(struct contpte_order *o, int idx);
	void *data;
};

int contpte_order_init(struct kunit *test);
bool contpte_order_next(struct contpte_order_call *call);
void contpte_order_fill(struct contpte_order *o, unsigned int mask, bool used);
bool contpte_order_hardware(struct contpte_order *o, int idx, bool dirty);
struct pte_step contpte_order_step(struct contpte_order *o,
				   const struct pte_case *pc,
				   const struct contpte_order_call *call);
void contpte_order_start(struct contpte_order *o);
void contpte_order_stop(struct contpte_order *o, int start, int end);
void contpte_order_begin(struct pte_ctx *c, const struct pte_step *step);
void contpte_order_end(struct pte_ctx *c, const struct pte_step *step);
bool contpte_order_ok(struct pte_ctx *c, const struct pte_step *step,
		      bool report, const char *desc);
bool contpte_order_obeys(struct contpte_order *o, bool report, const char *desc);
bool contpte_order_accesses(struct contpte_order *o, unsigned int reads,
			    unsigned int writes, bool report, const char *desc);
unsigned int contpte_order_converts(struct contpte_order *o, unsigned int at,
				    int first, bool cont);
unsigned int contpte_order_first_write(struct contpte_order *o);

/*
 * The functions that a case may call for pages. A function must not set another
 * page in place of a valid page.
 */
static inline bool contpte_order_wanted(const struct pte_case *pc)
{
	return pc->op->finds != PTE_OP_FINDS_NOTHING &&
	       (pc->id != PTE_OP_SET_PTE_AT || pc->flags);
}

/* Pretend that the CPUs have BBM level 3 or not. */
static inline void contpte_order_bbml3(struct contpte_order *o, bool bbml3)
{
	o->rec->bbml3 = bbml3;
	o->f->model.quiet = bbml3;
}

#endif /* _ARM64_MM_TESTS_CONTPTE_ORDER_H */
