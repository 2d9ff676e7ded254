/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The model of the functions that work on user entries: the effect of each
 * function on a window of four blocks, in plain structs.
 */
#ifndef _PGTABLE_KUNIT_PTE_MODEL_H
#define _PGTABLE_KUNIT_PTE_MODEL_H

#include "pte_op.h"

/*
 * The number of entries of a folded block. Without folding, a number of entries
 * at which behaviour is likely to change.
 */
#ifdef CONFIG_ARM64
#define MODEL_BLOCK		CONT_PTES
#define MODEL_FOLDS		IS_ENABLED(CONFIG_ARM64_CONTPTE)
#else
#define MODEL_BLOCK		16
#define MODEL_FOLDS		false
#endif
#define MODEL_BLOCKS		4
#define MODEL_WINDOW		(MODEL_BLOCKS * MODEL_BLOCK)

/*
 * Pages have numbers. The first numbers are the pages of a folio that is twice
 * as large as the window. The next numbers are a block of pages. The first half
 * of the block belongs to one folio, and the second half to another folio.
 */
#define MODEL_FOLIO_PAGES	(2 * MODEL_WINDOW)
#define MODEL_PAGES		(MODEL_FOLIO_PAGES + MODEL_BLOCK)

/* No single step may cause more TLB invalidations than this. */
#define MODEL_FLUSHES		(MODEL_WINDOW + 2)

enum pte_model_kind {
	MODEL_NONE,
	MODEL_SWAP,
	MODEL_PROTNONE,
	MODEL_VALID,
};

/**
 * struct pte_model_entry - an entry in the model
 * @kind: none, swap entry, present but not accessible, or valid
 * @page: number of the page, or offset of the swap entry
 * @cont: it belongs to a folded block
 * @young: accessed
 * @write: writable
 * @hw_dirty: writable, and the hardware (or an equivalent) recorded a write
 * @sw_dirty: dirty in the software bit
 * @soft_dirty: written to since the bit was cleared
 * @exec: executable by user space
 * @nc: memory that is not cached
 * @uffd: tracked by userfaultfd; never writable
 * @special: the kernel does not look up a folio
 */
struct pte_model_entry {
	u8 kind;
	u16 page;
	bool cont;
	bool young;
	bool write;
	bool hw_dirty;
	bool sw_dirty;
	bool soft_dirty;
	bool exec;
	bool nc;
	bool uffd;
	bool special;
};

/**
 * struct pte_step - one call, or one event
 * @op: the function or event
 * @flags: its other arguments
 * @id: its place in the walk
 * @idx: first entry, counted from the start of the window
 * @nr: number of entries
 * @entry: the entry to write, for PTE_OP_SET_PTES, PTE_OP_SET_PTE_AT and
 *	PTE_STEP_GIVEN
 */
struct pte_step {
	u8 op;
	u8 flags;
	u16 id;
	u16 idx;
	u16 nr;
	struct pte_model_entry entry;
};

/* Does the function take an entry to write? */
static inline bool pte_step_writes(const struct pte_step *step)
{
	return step->op == PTE_OP_SET_PTES || step->op == PTE_OP_SET_PTE_AT ||
	       step->op == PTE_OP_MODIFY_PROT || step->op == PTE_OP_ACCESS_FLAGS;
}

/* The reason for an invalidation. */
enum pte_model_flush {
	MODEL_FLUSH_CONVERT,	/* between clear and set of a block */
	MODEL_FLUSH_PROT,	/* between clear and set, by mprotect() */
	MODEL_FLUSH_YOUNG,	/* removes young bits; does not wait */
	MODEL_FLUSH_FAULT,	/* after an access fault */
};

enum pte_model_returns {
	MODEL_RETURNS_NOTHING,
	MODEL_RETURNS_NUMBER,
	MODEL_RETURNS_ENTRY,
};

/* The state that entries can store on this architecture. */
#define MODEL_HAS_NC		BIT(0)
#define MODEL_HAS_UFFD		BIT(1)
#define MODEL_HAS_SPECIAL	BIT(2)
#define MODEL_HAS_SOFT_DIRTY	BIT(3)
/* A step may pass entries with the bit that the function has to strip. */
#define MODEL_HAS_LEAK		BIT(4)
/*
 * A fault may ask for fewer permissions than the entry has, and for entries
 * that are not accessible.
 */
#define MODEL_HAS_MERGE		BIT(5)

/**
 * struct pte_model - the window, and the expected result of the last step
 * @folds: blocks are folded when they can be
 * @kernel: the mapping is the kernel's, so blocks are never converted
 * @quiet: the CPU converts blocks without TLB invalidations
 * @prot_flushes: mprotect() invalidates where the size of translations changes
 * @has: the state that entries can store
 * @set_max: how many entries can be set with one call
 * @none_max: how many PROT_NONE entries can be set with one call
 * @entry: the window
 * @flushes: number of TLB invalidations of the last step
 * @flush: for each invalidation, the first entry, the entry after the last, and
 *   the reason
 * @start: first entry that the last step may have written
 * @end: the entry after the last
 * @converts: blocks that the last step has folded or unfolded
 * @returns: the kind of value that the last step returned
 * @number: the value, if it is a number
 * @ret: the value, if it is an entry
 * @changed: the entry that mprotect() writes back
 * @nr_folds: blocks folded since the start
 * @nr_unfolds: blocks unfolded
 */
struct pte_model {
	bool folds;
	bool kernel;
	bool quiet;
	bool prot_flushes;
	unsigned int has;
	unsigned int set_max;
	unsigned int none_max;
	struct pte_model_entry entry[MODEL_WINDOW];
	unsigned int flushes;
	struct {
		unsigned int start;
		unsigned int end;
		enum pte_model_flush why;
	} flush[MODEL_FLUSHES];
	unsigned int start;
	unsigned int end;
	unsigned int converts;
	enum pte_model_returns returns;
	unsigned int number;
	struct pte_model_entry ret;
	struct pte_model_entry changed;
	unsigned long nr_folds;
	unsigned long nr_unfolds;
};

bool pte_step_legal(const struct pte_model *m, const struct pte_step *step);
unsigned int pte_model_batch(const struct pte_model *m, unsigned int idx);
unsigned int pte_model_room(const struct pte_model *m, unsigned int idx);
bool pte_model_same_folio(unsigned int page1, unsigned int page2);
struct pte_model_entry pte_model_get(const struct pte_model *m, unsigned int idx);
void pte_model_step(struct pte_model *m, const struct pte_step *step);
struct pte_model_entry pte_model_access(const struct pte_model *m,
					const struct pte_step *step);

#endif /* _PGTABLE_KUNIT_PTE_MODEL_H */
