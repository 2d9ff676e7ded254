/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of the suites on the order of writes and invalidations, and a
 * table of the functions under test.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_ORDER_H
#define _ARM64_MM_TESTS_CONTPTE_ORDER_H

#include "contpte.h"
#include "contpte_bbm.h"
#include "contpte_recorded.h"
#include "record.h"

/*
 * What a function does with the entries of its range, and with other entries.
 */
#define CONTPTE_OP_SINGLE	BIT(0)	/* it works on one entry */
#define CONTPTE_OP_UNFOLDS	BIT(1)	/* it unfolds blocks that it covers in part */
#define CONTPTE_OP_WRITES	BIT(2)	/* it writes all entries of its range */
#define CONTPTE_OP_GONE		BIT(3)	/* they are gone afterwards */
#define CONTPTE_OP_RETURNS	BIT(4)	/* it returns the first entry, with merged bits */
#define CONTPTE_OP_EXPANDS	BIT(5)	/* it expands to whole blocks that are folded */
#define CONTPTE_OP_YOUNG	BIT(6)	/* returns whether any was young */
#define CONTPTE_OP_FLUSHES	BIT(7)	/* and if so, invalidates the range */
#define CONTPTE_OP_OLD		BIT(8)	/* makes them old, returns nothing */
#define CONTPTE_OP_CLEAN	BIT(9)	/* makes them clean, returns nothing */
#define CONTPTE_OP_FOLDS	BIT(10)	/* sets the last entry of a block */

struct contpte_order;

/**
 * struct contpte_order_op - a function under test
 * @desc: its name
 * @run: calls the function. Returns the entry that it returned; for a function
 *	that returns true, a young entry
 * @flags: what it does
 * @makes: the new value of an entry in its range, after its block is unfolded
 *	if necessary; NULL if it does not change
 */
struct contpte_order_op {
	const char *desc;
	pte_t (*run)(struct contpte_order *o, unsigned long addr, pte_t *ptep,
		     unsigned int nr);
	unsigned int flags;
	pte_t (*makes)(pte_t pte);
};

/* The functions under test. */
#define CONTPTE_ORDER_OPS	19
extern const struct contpte_order_op contpte_order_ops[CONTPTE_ORDER_OPS];

/**
 * struct contpte_order_call - a call of a function under test, in a window of
 *	four blocks
 * @op: the function
 * @mask: the blocks that are folded
 * @start: first entry of its range
 * @end: the entry after the last
 * @bbml3: pretend that the CPUs have BBM level 3
 */
struct contpte_order_call {
	const struct contpte_order_op *op;
	unsigned int mask;
	int start;
	int end;
	bool bbml3;
};

/* The mask of all blocks. */
#define CONTPTE_ORDER_ALL	(BIT(CONTPTE_BLOCKS) - 1)

/**
 * struct contpte_order - what a case works on
 * @f: the table and its folio; the window is at the start of the table
 * @rec: the recorder of the table's entries
 * @bbm: the checker that the recorder feeds
 * @call: the last call
 * @outside: steps on entries outside of the window
 * @hardware: called before each step, to set bits as hardware does; or NULL
 * @data: for @hardware and for the function under test
 */
struct contpte_order {
	struct contpte_fixture *f;
	struct pgtable_kunit_record *rec;
	struct contpte_bbm *bbm;
	struct contpte_order_call call;
	unsigned int outside;
	void (*hardware)(struct contpte_order *o, int idx);
	void *data;
};

/**
 * struct contpte_order_flush - an invalidation that is expected
 * @first: the entry of the first page
 * @nr: number of pages
 * @flags: PGTABLE_KUNIT_NOSYNC and others; the invalidation is of last-level
 *	entries
 */
struct contpte_order_flush {
	int first;
	unsigned int nr;
	unsigned int flags;
};

struct contpte_order *contpte_order_alloc(struct kunit *test);
bool contpte_order_next(struct contpte_order_call *call);
void contpte_order_fill(struct contpte_order *o, unsigned int mask);
bool contpte_order_hardware(struct contpte_order *o, int idx, bool dirty);
void contpte_order_use_all(struct contpte_order *o);
void contpte_order_expand(const struct contpte_order_call *call, int *start,
			  int *end);
pte_t contpte_order_run(struct contpte_order *o,
			const struct contpte_order_call *call);
__printf(2, 3)
void contpte_order_fail(struct contpte_order *o, const char *fmt, ...);
bool contpte_order_obeys(struct contpte_order *o);
bool contpte_order_flushes(struct contpte_order *o,
			   const struct contpte_order_flush *want,
			   unsigned int nr);
bool contpte_order_accesses(struct contpte_order *o, unsigned int reads,
			    unsigned int writes);
unsigned int contpte_order_converts(struct contpte_order *o, unsigned int at,
				    int first, bool cont);
unsigned int contpte_order_first_write(struct contpte_order *o);
void contpte_order_model(struct contpte_order *o);
bool contpte_order_image(struct contpte_order *o);

static inline bool contpte_order_folded(const struct contpte_order_call *call,
					int idx)
{
	return call->mask & BIT(idx / CONT_PTES);
}

#endif /* _ARM64_MM_TESTS_CONTPTE_ORDER_H */
