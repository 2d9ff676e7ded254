/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random walks over a page table, and the model that they are compared with.
 *
 * A walk calls all the functions that work on user entries, in random order, on
 * a window of a synthetic table. After each call it knows what the table should
 * be. Each suite defines how entries are written as bits, and which functions
 * are called.
 *
 *   walk_model.c	what each function does, in plain structs
 *   walk_draw.c	draws steps
 *   walk_run.c		calls the functions, and compares with the model
 *   walk_report.c	finds the fewest steps that go wrong, and prints them
 */
#ifndef _PGTABLE_KUNIT_WALK_H
#define _PGTABLE_KUNIT_WALK_H

#include <linux/prandom.h>

#include "pgtable_kunit.h"

/*
 * The number of entries of a folded block. Without folding, the number of
 * entries after which something is likely to change.
 */
#ifdef CONFIG_ARM64
#define WALK_BLOCK		CONT_PTES
#define WALK_FOLDS		IS_ENABLED(CONFIG_ARM64_CONTPTE)
#else
#define WALK_BLOCK		16
#define WALK_FOLDS		false
#endif
#define WALK_BLOCKS		4
#define WALK_WINDOW		(WALK_BLOCKS * WALK_BLOCK)

/*
 * Pages have numbers. The first numbers are the pages of a folio of twice the
 * window. The next ones are a block of pages that two folios share, half and
 * half.
 */
#define WALK_FOLIO_PAGES	(2 * WALK_WINDOW)
#define WALK_PAGES		(WALK_FOLIO_PAGES + WALK_BLOCK)

/* Steps of one walk; each walk has a seed of its own. */
#define WALK_LENGTH		1000

/* No single step may cause more TLB invalidations. */
#define WALK_FLUSHES		(WALK_WINDOW + 2)

enum walk_kind {
	WALK_NONE,
	WALK_SWAP,
	WALK_PROTNONE,
	WALK_VALID,
};

/**
 * struct walk_entry - what the model knows of an entry
 * @kind: none, swap entry, present but not accessible, or valid
 * @page: number of the page, or offset of the swap entry
 * @cont: it belongs to a folded block
 * @young: accessed
 * @write: writable
 * @hw_dirty: writable, and the hardware (or an equivalent) noted a write
 * @sw_dirty: dirty by the bit of software
 * @soft_dirty: written to since the bit was cleared
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
	bool soft_dirty;
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
	WALK_CLEAR_NONPRESENT,
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
#define WALK_LEAK	BIT(0)	/* the entry passed looks like one of a block */
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

/* What entries can store on this architecture. */
#define WALK_HAS_NC		BIT(0)
#define WALK_HAS_UFFD		BIT(1)
#define WALK_HAS_SPECIAL	BIT(2)
#define WALK_HAS_SOFT_DIRTY	BIT(3)
/* A step may pass entries with the bit that the function has to strip. */
#define WALK_HAS_LEAK		BIT(4)
/*
 * A fault may ask for fewer permissions than the entry has, and for entries
 * that are not accessible.
 */
#define WALK_HAS_MERGE		BIT(5)

/**
 * struct walk_model - the window, and the expected result of the last step
 * @folds: blocks are folded when they can be
 * @has: what entries can say
 * @set_max: how many entries can be set with one call
 * @none_max: the same for entries that are PROT_NONE
 * @entry: the window
 * @flushes: number of TLB invalidations of the last step
 * @flush: first entry, and the one after the last, of each
 * @returns: what the last step returned
 * @number: the value, if it is a number
 * @ret: the value, if it is an entry
 * @changed: the entry that mprotect() writes back
 * @nr_folds: blocks folded since the begin of the walk
 * @nr_unfolds: blocks unfolded
 */
struct walk_model {
	bool folds;
	unsigned int has;
	unsigned int set_max;
	unsigned int none_max;
	struct walk_entry entry[WALK_WINDOW];
	unsigned int flushes;
	struct {
		unsigned int start;
		unsigned int end;
	} flush[WALK_FLUSHES];
	enum walk_returns returns;
	unsigned int number;
	struct walk_entry ret;
	struct walk_entry changed;
	unsigned long nr_folds;
	unsigned long nr_unfolds;
};

bool walk_step_legal(const struct walk_model *m, const struct walk_step *step);
unsigned int walk_batch(const struct walk_model *m, unsigned int idx);
unsigned int walk_room(const struct walk_model *m, unsigned int idx);
bool walk_same_folio(unsigned int page1, unsigned int page2);
struct walk_entry walk_model_get(const struct walk_model *m, unsigned int idx);
void walk_model_step(struct walk_model *m, const struct walk_step *step);
struct walk_entry walk_model_access(const struct walk_model *m,
				    const struct walk_step *step);

/**
 * struct walk_functions - the functions on ranges of entries, under test
 *
 * They have the kernel's names and contracts.
 */
struct walk_functions {
	void (*set_ptes)(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
			 pte_t pte, unsigned int nr);
	pte_t (*get_and_clear_full_ptes)(struct mm_struct *mm,
					 unsigned long addr, pte_t *ptep,
					 unsigned int nr, int full);
	void (*clear_full_ptes)(struct mm_struct *mm, unsigned long addr,
				pte_t *ptep, unsigned int nr, int full);
	void (*wrprotect_ptes)(struct mm_struct *mm, unsigned long addr,
			       pte_t *ptep, unsigned int nr);
	void (*clear_young_dirty_ptes)(struct vm_area_struct *vma,
				       unsigned long addr, pte_t *ptep,
				       unsigned int nr, cydp_t flags);
	bool (*test_and_clear_young_ptes)(struct vm_area_struct *vma,
					  unsigned long addr, pte_t *ptep,
					  unsigned int nr);
	bool (*clear_flush_young_ptes)(struct vm_area_struct *vma,
				       unsigned long addr, pte_t *ptep,
				       unsigned int nr);
	pte_t (*modify_prot_start_ptes)(struct vm_area_struct *vma,
					unsigned long addr, pte_t *ptep,
					unsigned int nr);
	void (*modify_prot_commit_ptes)(struct vm_area_struct *vma,
					unsigned long addr, pte_t *ptep,
					pte_t old_pte, pte_t pte,
					unsigned int nr);
};

extern const struct walk_functions walk_arch_functions;

struct walk;

/**
 * struct walk_ops - what a suite defines
 * @encode: turn an entry of the model into one of the table
 * @image_ok: compare the window with the model, and the rest of the table
 * @same: compare an entry that a step returned with the expected one
 * @flushes_ok: compare the TLB invalidations with the model; or NULL
 * @hardware: set bits in an entry as an access does
 * @leak: make an entry look like one of a block, if WALK_HAS_LEAK
 *
 * The three that compare can fail the test with a description of the step.
 */
struct walk_ops {
	pte_t (*encode)(const struct walk *w, const struct walk_entry *e);
	bool (*image_ok)(struct walk *w, bool report, const char *desc);
	bool (*same)(struct walk *w, const struct walk_step *step, pte_t got,
		     pte_t want);
	bool (*flushes_ok)(struct walk *w, bool report, const char *desc);
	void (*hardware)(pte_t *ptep, unsigned int flags);
	pte_t (*leak)(pte_t pte);
};

/**
 * struct walk - a walk
 * @test: the test
 * @name: of the suite, and of its parameters
 * @table: the table
 * @vma: for functions that need a VMA; only its mm is set
 * @ops: the suite's
 * @functions: those under test
 * @data: the suite's
 * @pfn: of the large folio
 * @pair_pfn: of the first of the folios that share a block
 * @shift: page numbers are shifted by this; with 1, pages that look aligned to
 *   their addresses are not
 * @seed: the seed of the walk
 * @rnd: the state of its random numbers
 * @base: entry of the table at which the window begins
 * @plan_idx: next entry of a range that is to be filled, see walk_draw_plan()
 * @plan_end: the entry after its last
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
	struct kunit *test;
	const char *name;
	struct pgtable_kunit_table *table;
	struct vm_area_struct vma;
	const struct walk_ops *ops;
	const struct walk_functions *functions;
	void *data;
	unsigned long pfn;
	unsigned long pair_pfn;
	unsigned int shift;
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

struct walk *walk_alloc(struct kunit *test, const char *name,
			const struct walk_ops *ops,
			struct pgtable_kunit_table *table, struct folio *folio);
void walk_avoid_known(struct walk *w);
void walk_reset(struct walk *w);
void walk_fill(struct walk *w, unsigned int idx,
	       const struct walk_entry *entry);
bool walk_step_ok(struct walk *w, const struct walk_step *step, bool report);
bool walk_replay_fails(struct walk *w, const struct walk_step *step,
		       unsigned int nr, bool report);
unsigned long walk_page_pfn(const struct walk *w, unsigned int page);

void walk_describe(const struct walk_step *step, char *buf, size_t size);
const char *walk_op_name(enum walk_op op);
bool walk_takes_range(enum walk_op op);
void walk_seed(struct walk *w, u64 seed);
void walk_draw(struct walk *w, struct walk_step *step);

/*
 * Steps of one test case: some seconds, so that a long run does not look like a
 * hang.
 */
#define WALK_CASE	25000

/* Comparing a large table takes longer, and so it does with KASAN. */
#define WALK_STEPS	(200000 / (PAGE_SIZE / SZ_4K) / \
			 (IS_ENABLED(CONFIG_KASAN) ? 8 : 1))

/* Some expectations of a walk hold only after some steps. */
#define WALK_CERTAIN	10000

/* Steps that the search for a shorter sequence may make. */
#define WALK_BUDGET	300000

const void *walk_next_case(const void *prev, ulong steps, char *desc);
unsigned long walk_case(struct walk *w, const void *which, ulong steps,
			u64 seed);
unsigned int walk_shorten(struct walk_step *step, struct walk_step *tried,
			  unsigned int nr, unsigned int budget,
			  bool (*fails)(void *data,
					const struct walk_step *step,
					unsigned int nr),
			  void *data);

#endif /* _PGTABLE_KUNIT_WALK_H */
