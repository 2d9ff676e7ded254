/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random walks over contiguous PTEs: what the parts of the suite share.
 *
 *   contpte_walk_model.c	what each function does, in plain structs
 *   contpte_walk_run.c		calls the functions, and compares with the model
 *   contpte_walk_draw.c	draws steps, and drops those that are not needed
 *   contpte_walk_kunit.c	the cases
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_WALK_H
#define _ARM64_MM_TESTS_CONTPTE_WALK_H

#include <linux/prandom.h>

#include "contpte.h"

/*
 * Pages have numbers of their own. Those of the fixture's folio come first,
 * then one block of pages that two folios share, half and half.
 */
#define WALK_FOLIO_PAGES	(2 * CONTPTE_WINDOW)
#define WALK_PAGES		(WALK_FOLIO_PAGES + CONT_PTES)

/* Steps of one walk; each walk has a seed of its own. */
#define WALK_LENGTH		1000

/* No single step may cause more TLB invalidations. */
#define WALK_FLUSHES		(CONTPTE_WINDOW + 2)

enum walk_kind {
	WALK_NONE,
	WALK_SWAP,
	WALK_PROTNONE,
	WALK_VALID,
};

/**
 * struct walk_entry - what the model knows of an entry
 * @kind: none, swap entry, present but not valid, or valid
 * @page: number of the page, or offset of the swap entry
 * @cont: it belongs to a folded block
 * @young: accessed
 * @write: writable
 * @hw_dirty: writable, and the hardware (or an equivalent) noted a write
 * @sw_dirty: dirty by the bit of software
 * @exec: executable by user space
 * @nc: memory that is not cached
 * @uffd: tracked by userfaultfd; never writable
 * @special: no folio is looked up
 */
struct walk_entry {
	u8 kind;
	u16 page;
	bool cont;
	bool young;
	bool write;
	bool hw_dirty;
	bool sw_dirty;
	bool exec;
	bool nc;
	bool uffd;
	bool special;
};

/* Functions under test, and what hardware does. */
enum walk_op {
	WALK_SET,
	WALK_PTE_CLEAR,
	WALK_GET_AND_CLEAR,
	WALK_GET_AND_CLEAR_FULL,
	WALK_CLEAR_FULL,
	WALK_GET_AND_CLEAR_PTES,
	WALK_CLEAR_PTES,
	WALK_MODIFY_PROT,
	WALK_WRPROTECT,
	WALK_SET_WRPROTECT,
	WALK_TEST_YOUNG,
	WALK_FLUSH_YOUNG,
	WALK_TEST_YOUNG_PTES,
	WALK_FLUSH_YOUNG_PTES,
	WALK_CLEAR_YOUNG_DIRTY,
	WALK_ACCESS_FLAGS,
	WALK_GET,
	WALK_GET_LOCKLESS,
	WALK_HINT,
	WALK_HARDWARE,
	WALK_OPS,
};

/* Flags of steps. The first two are for the functions that write an entry. */
#define WALK_LEAK	BIT(0)	/* the entry passed has PTE_CONT */
#define WALK_FULL	BIT(0)	/* the last argument of *_full_ptes() */
#define WALK_YOUNG	BIT(1)
#define WALK_DIRTY	BIT(2)
#define WALK_WRITE	BIT(3)
#define WALK_LESS	BIT(4)	/* start from old, clean and read-only */
#define WALK_FLUSH	BIT(5)	/* the last argument of set_access_flags() */
#define WALK_NOACCESS	BIT(6)	/* mprotect() to PROT_NONE */

/**
 * struct walk_step - one call, or one event
 * @op: which
 * @flags: its other arguments
 * @id: its place in the walk that it was drawn for
 * @idx: first entry, counted from the begin of the window
 * @nr: number of entries
 * @entry: the entry to write, for WALK_SET
 */
struct walk_step {
	u8 op;
	u8 flags;
	u16 id;
	u16 idx;
	u16 nr;
	struct walk_entry entry;
};

enum walk_returns {
	WALK_RETURNS_NOTHING,
	WALK_RETURNS_NUMBER,
	WALK_RETURNS_ENTRY,
};

/**
 * struct walk_model - the window, and what the last step was to do
 * @entry: the window
 * @flushes: number of TLB invalidations of the last step
 * @flush: first entry, and the one behind the last, of each
 * @returns: what the last step returned
 * @number: the value, if it is a number
 * @ret: the value, if it is an entry
 * @changed: the entry that mprotect() writes back
 * @folds: blocks folded since the begin of the walk
 * @unfolds: blocks unfolded
 */
struct walk_model {
	struct walk_entry entry[CONTPTE_WINDOW];
	unsigned int flushes;
	struct {
		unsigned int start;
		unsigned int end;
	} flush[WALK_FLUSHES];
	enum walk_returns returns;
	unsigned int number;
	struct walk_entry ret;
	struct walk_entry changed;
	unsigned long folds;
	unsigned long unfolds;
};

bool walk_step_legal(const struct walk_model *m, const struct walk_step *step);
unsigned int walk_batch(const struct walk_model *m, unsigned int idx);
bool walk_same_folio(unsigned int page1, unsigned int page2);
void walk_model_step(struct walk_model *m, const struct walk_step *step);
struct walk_entry walk_model_access(const struct walk_model *m,
				    const struct walk_step *step);

/**
 * struct walk - a walk
 * @f: the fixture
 * @pfn: of the fixture's folio
 * @pair_pfn: of the first of the folios that share a block
 * @seed: what the walk is drawn from
 * @rnd: where it is
 * @base: entry of the table at which the window begins
 * @plan_idx: next entry of a range that is to be filled, see walk_draw_plan()
 * @plan_end: the entry behind its last
 * @plan_ascends: fill it entry by entry
 * @model: the model
 * @nr: number of steps so far
 * @step: the steps
 * @tried: steps of a shorter walk that is being tried
 * @best: the shortest sequence of steps that goes wrong
 * @plant: for tests: the walk goes wrong once the first and later the second of
 *	   these steps were made
 * @planted: the first one was
 * @folded_steps: steps during which a block of the window was folded
 * @count: steps by function
 */
struct walk {
	struct contpte_fixture *f;
	unsigned long pfn;
	unsigned long pair_pfn;
	u64 seed;
	struct rnd_state rnd;
	unsigned int base;
	unsigned int plan_idx;
	unsigned int plan_end;
	bool plan_ascends;
	struct walk_model model;
	unsigned int nr;
	struct walk_step step[WALK_LENGTH];
	struct walk_step tried[WALK_LENGTH];
	struct walk_step best[WALK_LENGTH];
	const struct walk_step *plant;
	bool planted;
	unsigned long folded_steps;
	unsigned long count[WALK_OPS];
};

struct walk *walk_alloc(struct kunit *test);
void walk_reset(struct walk *w);
bool walk_step_ok(struct walk *w, const struct walk_step *step, bool report);
bool walk_replay_fails(struct walk *w, const struct walk_step *step,
		       unsigned int nr, bool report);
void walk_describe(const struct walk_step *step, char *buf, size_t size);
const char *walk_op_name(enum walk_op op);

void walk_seed(struct walk *w, u64 seed);
void walk_draw(struct walk *w, struct walk_step *step);
unsigned int walk_shorten(struct walk_step *step, struct walk_step *tried,
			  unsigned int nr, unsigned int budget,
			  bool (*fails)(void *data,
					const struct walk_step *step,
					unsigned int nr),
			  void *data);

#endif /* _ARM64_MM_TESTS_CONTPTE_WALK_H */
