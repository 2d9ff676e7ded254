/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that work on user entries, in one table.
 *
 *   pte_op_table.h	the table: a row for each function
 *   pte_model.c	the effect of each function, in plain structs
 *   pte_op.c		calls a function, and compares with the model
 *
 * A new function needs a name in enum pte_op_id, a row in the table, and a case
 * in the model. All suites that go through the table then test it: with each
 * range and one odd entry (pte_range), with folded blocks (contpte), for the
 * order of accesses (contpte_order), with changes by hardware (contpte_hw), and
 * in random walks.
 *
 * The same table is compiled for each back end: for the functions of the
 * architecture, for the generic functions, and for arm64's code with a
 * recorder. A back end defines PTE_OP_TABLE and includes pte_op_table.h.
 */
#ifndef _PGTABLE_KUNIT_PTE_OP_H
#define _PGTABLE_KUNIT_PTE_OP_H

#include "pgtable_kunit.h"

/* Functions under test, and actions of the hardware. */
enum pte_op_id {
	PTE_OP_SET_PTES,
	PTE_OP_SET_PTE_AT,
	PTE_OP_PTE_CLEAR,
	PTE_OP_GET_AND_CLEAR,
	PTE_OP_GET_AND_CLEAR_ONE_FULL,
	PTE_OP_GET_AND_CLEAR_FULL,
	PTE_OP_CLEAR_FULL,
	PTE_OP_GET_AND_CLEAR_PTES,
	PTE_OP_CLEAR_PTES,
	PTE_OP_CLEAR_NONPRESENT,
	PTE_OP_MODIFY_PROT,
	PTE_OP_WRPROTECT_PTES,
	PTE_OP_SET_WRPROTECT,
	PTE_OP_TEST_YOUNG,
	PTE_OP_FLUSH_YOUNG,
	PTE_OP_TEST_YOUNG_PTES,
	PTE_OP_FLUSH_YOUNG_PTES,
	PTE_OP_CLEAR_YOUNG_DIRTY,
	PTE_OP_ACCESS_FLAGS,
	PTE_OP_GET,
	PTE_OP_GET_LOCKLESS,
	PTE_OP_HINT,
	PTE_OP_HARDWARE,
	PTE_OPS,
};

/* Flags of steps. The first two are for the functions that write an entry. */
#define PTE_STEP_LEAK		BIT(0)	/* the argument looks like part of a block */
#define PTE_STEP_FULL		BIT(0)	/* the last argument of *_full_ptes() */
#define PTE_STEP_YOUNG		BIT(1)
#define PTE_STEP_DIRTY		BIT(2)
#define PTE_STEP_WRITE		BIT(3)
#define PTE_STEP_LESS		BIT(4)	/* start from old, clean and read-only */
#define PTE_STEP_FLUSH		BIT(5)	/* the last argument of set_access_flags() */
#define PTE_STEP_NOACCESS	BIT(6)	/* mprotect() to PROT_NONE */
#define PTE_STEP_GIVEN		BIT(7)	/* set_access_flags() gets the step's entry */
/* Kinds of entries for set_pte_at(). */
#define PTE_STEP_SWAP		BIT(1)
#define PTE_STEP_SAME		BIT(2)

/**
 * struct pte_call - the arguments of a function, and its result
 * @mm: the mm of the entries
 * @vma: for functions that need a VMA; only its mm is set
 * @addr: address that the first entry translates
 * @ptep: the first entry
 * @nr: number of entries
 * @flags: PTE_STEP_FULL and others
 * @entry: the entry to write
 * @ret: the entry that the function returned
 * @number: the number or truth that it returned
 */
struct pte_call {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	unsigned long addr;
	pte_t *ptep;
	unsigned int nr;
	unsigned int flags;
	pte_t entry;
	pte_t ret;
	unsigned int number;
};

/* The effect of a function on the entries of its range. */
enum pte_op_does {
	PTE_OP_READS,
	PTE_OP_SETS,
	PTE_OP_CLEARS,
	PTE_OP_PROTECTS,
	PTE_OP_AGES,		/* or cleans */
	PTE_OP_FAULTS,		/* makes them young, dirty or writable */
};

/* The kinds of entries that a function may be called for. */
enum pte_op_finds {
	PTE_OP_FINDS_PAGES,	/* pages of one folio */
	PTE_OP_FINDS_SAME,	/* as before, except accessed and dirty */
	PTE_OP_FINDS_NOTHING,	/* swap entries, and none */
	PTE_OP_FINDS_ANYTHING,	/* all of it */
};

/* The combinations of flags with which suites call a function. */
struct pte_op_way {
	const char *name;
	unsigned int flags;
};

#define PTE_OP_WAYS	3

/**
 * struct pte_op - a function under test
 * @name: its name
 * @takes_range: it takes more than one entry, in this kernel
 * @missing: this kernel has no such function
 * @does: its effect on the entries
 * @finds: the entries that it may be called for
 * @weight: how often random walks call it; 0 for never
 * @call: calls it
 * @way: the flags with which suites call it, and a text for each. A function
 *	without flags has one way, without a text
 */
struct pte_op {
	const char *name;
	bool takes_range;
	bool missing;
	enum pte_op_does does;
	enum pte_op_finds finds;
	unsigned int weight;
	void (*call)(struct pte_call *c);
	struct pte_op_way way[PTE_OP_WAYS];
};

struct pte_ctx;
struct pte_step;

/**
 * struct pte_backend - versions of the functions under test
 * @name: the name of these versions, with a blank after it; "" for the kernel's
 *	own
 * @ops: the table
 * @own: whether the back end has its own version of a function
 * @begin: called before a function; or NULL
 * @end: called after it; or NULL
 * @ok: compare the other data about the call with the model; NULL if the
 *	kernel's own TLB invalidations are compared
 */
struct pte_backend {
	const char *name;
	const struct pte_op *ops;
	bool (*own)(enum pte_op_id id);
	void (*begin)(struct pte_ctx *c, const struct pte_step *step);
	void (*end)(struct pte_ctx *c, const struct pte_step *step);
	bool (*ok)(struct pte_ctx *c, const struct pte_step *step, bool report,
		   const char *desc);
};

extern const struct pte_backend pte_arch_backend;

#endif /* _PGTABLE_KUNIT_PTE_OP_H */
