// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that work on a range of page-table entries: every range.
 *
 * fork, munmap, mprotect, reclaim and others change dozens of entries with one
 * call. The contract of such a function is defined entry by entry: each entry
 * in the range changes as if it had been changed alone, the value returned
 * covers all entries of the range, and no other entry changes. Most
 * architectures use the generic loops, arm64 has functions of its own, and some
 * have a few. The same code tests them all, on real entries for real folios,
 * against a model that does not use the bits of an entry.
 *
 * If an architecture has functions of its own, the generic functions are
 * compiled a second time, so that they are tested everywhere. If the two
 * disagree, one of them disagrees with the model.
 *
 * Not covered: TLB invalidations (see contpte), calls that the contracts
 * forbid, several CPUs at once.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests 'pte_range*'
 */

#include <kunit/test.h>

#include "pte_range.h"

/* Entries of a window: fewer if a table takes longer to compare. */
#define RANGE_WINDOW	(10 - ilog2(PAGE_SIZE / SZ_1K))

/* What a function finds. */
enum range_found {
	RANGE_PAGES,		/* pages of one folio */
	RANGE_SAME,		/* the same, alike but for accessed and dirty */
	RANGE_NOTHING,		/* swap entries, and none */
	RANGE_ANYTHING,		/* all of it */
};

/**
 * struct range_op - a function under test
 * @desc: its name, and its other arguments
 * @op: its name in the model
 * @flags: its other arguments
 * @found: what it finds
 * @single: it works on one entry
 */
struct range_op {
	const char *desc;
	enum walk_op op;
	unsigned int flags;
	enum range_found found;
	bool single;
};

static const struct range_op range_ops[] = {
	{ "set_ptes", WALK_SET, 0, RANGE_NOTHING },
	{ "get_and_clear_full_ptes", WALK_GET_AND_CLEAR_FULL, 0, RANGE_PAGES },
	{ "get_and_clear_full_ptes, full", WALK_GET_AND_CLEAR_FULL, WALK_FULL,
	  RANGE_PAGES },
	{ "clear_full_ptes", WALK_CLEAR_FULL, 0, RANGE_PAGES },
	{ "clear_full_ptes, full", WALK_CLEAR_FULL, WALK_FULL, RANGE_PAGES },
	{ "get_and_clear_ptes", WALK_GET_AND_CLEAR_PTES, 0, RANGE_PAGES },
	{ "clear_ptes", WALK_CLEAR_PTES, 0, RANGE_PAGES },
	{ "clear_nonpresent_ptes", WALK_CLEAR_NONPRESENT, 0, RANGE_NOTHING },
	{ "clear_nonpresent_ptes, full", WALK_CLEAR_NONPRESENT, WALK_FULL,
	  RANGE_NOTHING },
	{ "wrprotect_ptes", WALK_WRPROTECT, 0, RANGE_PAGES },
	{ "clear_young_dirty_ptes, young", WALK_CLEAR_YOUNG_DIRTY, WALK_YOUNG,
	  RANGE_PAGES },
	{ "clear_young_dirty_ptes, dirty", WALK_CLEAR_YOUNG_DIRTY, WALK_DIRTY,
	  RANGE_PAGES },
	{ "clear_young_dirty_ptes, both", WALK_CLEAR_YOUNG_DIRTY,
	  WALK_YOUNG | WALK_DIRTY, RANGE_PAGES },
	{ "test_and_clear_young_ptes", WALK_TEST_YOUNG_PTES, 0, RANGE_PAGES },
	{ "clear_flush_young_ptes", WALK_FLUSH_YOUNG_PTES, 0, RANGE_PAGES },
	{ "modify_prot_ptes, writable", WALK_MODIFY_PROT, WALK_WRITE,
	  RANGE_SAME },
	{ "modify_prot_ptes, read-only", WALK_MODIFY_PROT, 0, RANGE_SAME },
	{ "modify_prot_ptes, PROT_NONE", WALK_MODIFY_PROT, WALK_NOACCESS,
	  RANGE_SAME },
	{ "set_pte_at", WALK_SET, 0, RANGE_ANYTHING, true },
	{ "ptep_get_and_clear", WALK_GET_AND_CLEAR, 0, RANGE_ANYTHING, true },
	{ "pte_clear", WALK_PTE_CLEAR, 0, RANGE_ANYTHING, true },
	{ "ptep_set_wrprotect", WALK_SET_WRPROTECT, 0, RANGE_PAGES, true },
	{ "ptep_test_and_clear_young", WALK_TEST_YOUNG, 0, RANGE_PAGES, true },
	{ "ptep_clear_flush_young", WALK_FLUSH_YOUNG, 0, RANGE_PAGES, true },
	{ "ptep_set_access_flags, young", WALK_ACCESS_FLAGS,
	  WALK_YOUNG | WALK_FLUSH, RANGE_PAGES, true },
	{ "ptep_set_access_flags, writable and dirty", WALK_ACCESS_FLAGS,
	  WALK_YOUNG | WALK_DIRTY | WALK_WRITE | WALK_FLUSH, RANGE_PAGES,
	  true },
	{ "ptep_get", WALK_GET, 0, RANGE_ANYTHING, true },
	{ "ptep_get_lockless", WALK_GET_LOCKLESS, 0, RANGE_ANYTHING, true },
};

/*
 * First all functions as the architecture has them. Then the generic versions
 * of the functions that the architecture implements itself. The parameter is a
 * number plus one.
 */
static PGTABLE_KUNIT_GEN_PARAMS(range_op)
{
	unsigned long number;

	for (number = (unsigned long)prev; number < 2 * ARRAY_SIZE(range_ops);
	     number++) {
		bool generic = number >= ARRAY_SIZE(range_ops);
		const struct range_op *op =
			&range_ops[number % ARRAY_SIZE(range_ops)];

		if (generic && !pte_range_is_own(op->op, op->single))
			continue;
		snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s%s",
			 generic ? "generic " : "", op->desc);
		return (const void *)(number + 1);
	}
	return NULL;
}

/* How the odd entry differs from the others of the window. */
struct range_odd {
	const char *desc;
	struct walk_entry all;
	struct walk_entry odd;
	unsigned int found;	/* BIT(RANGE_*) for which this is possible */
};

#define PAGES	(BIT(RANGE_PAGES) | BIT(RANGE_ANYTHING))
#define SAME	(PAGES | BIT(RANGE_SAME))
#define NOTHING	(BIT(RANGE_NOTHING) | BIT(RANGE_ANYTHING))

static const struct range_odd range_odds[] = {
	{ "young", { .kind = WALK_VALID, .write = true },
	  { .kind = WALK_VALID, .write = true, .young = true }, SAME },
	{ "old", { .kind = WALK_VALID, .young = true },
	  { .kind = WALK_VALID }, SAME },
	{ "dirty", { .kind = WALK_VALID, .write = true },
	  { .kind = WALK_VALID, .write = true, .hw_dirty = true }, SAME },
	{ "clean", { .kind = WALK_VALID, .write = true, .hw_dirty = true },
	  { .kind = WALK_VALID, .write = true }, SAME },
	{ "read-only and dirty", { .kind = WALK_VALID },
	  { .kind = WALK_VALID, .sw_dirty = true }, SAME },
	{ "read-only", { .kind = WALK_VALID, .write = true },
	  { .kind = WALK_VALID }, PAGES },
	{ "writable and dirty", { .kind = WALK_VALID },
	  { .kind = WALK_VALID, .write = true, .hw_dirty = true }, PAGES },
	{ "soft-dirty", { .kind = WALK_VALID, .write = true },
	  { .kind = WALK_VALID, .write = true, .soft_dirty = true }, PAGES },
	{ "soft-clean", { .kind = WALK_VALID, .soft_dirty = true },
	  { .kind = WALK_VALID }, PAGES },
	{ "uffd", { .kind = WALK_VALID },
	  { .kind = WALK_VALID, .uffd = true }, PAGES },
	{ "without uffd", { .kind = WALK_VALID, .uffd = true },
	  { .kind = WALK_VALID }, PAGES },
	{ "PROT_NONE, young", { .kind = WALK_PROTNONE },
	  { .kind = WALK_PROTNONE, .young = true }, SAME },
	{ "PROT_NONE, dirty", { .kind = WALK_PROTNONE },
	  { .kind = WALK_PROTNONE, .sw_dirty = true }, SAME },
	{ "none", { .kind = WALK_SWAP }, { .kind = WALK_NONE }, NOTHING },
	{ "swap", { .kind = WALK_NONE }, { .kind = WALK_SWAP }, NOTHING },
	{ "none among pages", { .kind = WALK_VALID }, { .kind = WALK_NONE },
	  BIT(RANGE_ANYTHING) },
	{ "page among swap entries", { .kind = WALK_SWAP },
	  { .kind = WALK_VALID, .write = true }, BIT(RANGE_ANYTHING) },
};

/* Does the architecture have the bit that makes the odd entry odd? */
static bool range_odd_exists(const struct walk *w, const struct range_odd *odd)
{
	unsigned int has = w->model.has;

	return (has & WALK_HAS_SOFT_DIRTY ||
		odd->all.soft_dirty == odd->odd.soft_dirty) &&
	       (has & WALK_HAS_UFFD || odd->all.uffd == odd->odd.uffd);
}

/* Consecutive pages of a folio; or consecutive swap entries. */
static void range_fill(struct walk *w, unsigned int first,
		       const struct range_odd *odd, unsigned int at)
{
	unsigned int i;

	walk_reset(w);
	for (i = 0; i < RANGE_WINDOW; i++) {
		struct walk_entry e = i == at ? odd->odd : odd->all;

		e.page = WALK_BLOCK + first + i;
		walk_fill(w, first + i, &e);
	}
}

/*
 * The entry to set: a new page if the place is empty, otherwise an entry like
 * the odd one.
 */
static struct walk_entry range_new(const struct range_odd *odd)
{
	struct walk_entry e = odd->odd;

	if (odd->found == NOTHING)
		e = (struct walk_entry){ .kind = WALK_VALID, .write = true };
	e.page = 1;
	return e;
}

/* Every range, with one odd entry. */
static bool range_each(struct walk *w, const struct range_op *op,
		       unsigned int first, const struct range_odd *odd,
		       unsigned int at, unsigned int *combinations)
{
	struct walk_step step = {
		.op = op->op, .flags = op->flags, .entry = range_new(odd),
	};
	unsigned int start, max_nr;

	for (start = 0; start < RANGE_WINDOW; start++) {
		max_nr = op->single || !walk_takes_range(op->op) ?
			 1 : RANGE_WINDOW - start;
		step.idx = first + start;
		for (step.nr = 1; step.nr <= max_nr; step.nr++) {
			range_fill(w, first, odd, at);
			if (!walk_step_legal(&w->model, &step))
				continue;
			(*combinations)++;
			if (walk_step_ok(w, &step, true))
				continue;
			kunit_err(w->test, "entry %u alone: %s\n", first + at,
				  odd->desc);
			return false;
		}
	}
	return true;
}

/*
 * In the range, each entry changes as if it alone had been passed to the
 * function for one entry: set [contpte 6, 84], cleared [88, 97-99, 101, 102,
 * 105, 107], write-protected [113, 114, 116, 120], old and clean [123, 143].
 * The function returns the first entry with the merged young and dirty bits of
 * all. Outside of the range nothing changes. The case tries every range in a
 * window of a few entries. Every entry of the window is the odd one in turn, in
 * every way in which entries of a batch may differ. At the end of the table it
 * tries one of these ways:
 *
 *	entries	|a a a o a a a a|
 *	range	     <------->
 */
static void range_op_every_range(struct kunit *test)
{
	/* The first or the last entries of the larger window of walks. */
	const unsigned int firsts[] = { 0, WALK_WINDOW - RANGE_WINDOW };
	unsigned long number = (unsigned long)test->param_value - 1;
	const struct range_op *op = &range_ops[number % ARRAY_SIZE(range_ops)];
	unsigned int end, i, at, combinations = 0, failed = 0;
	bool generic = number >= ARRAY_SIZE(range_ops);
	struct walk *w;

	w = pte_range_walk_alloc(test, "pte_range", generic);

	for (end = 0; end <= 1; end++) {
		bool done = false;

		w->base = end ? PTRS_PER_PTE - WALK_WINDOW : 0;
		for (i = 0; i < ARRAY_SIZE(range_odds) && !done; i++) {
			const struct range_odd *odd = &range_odds[i];

			if (!(odd->found & BIT(op->found)) ||
			    !range_odd_exists(w, odd))
				continue;
			/* The end of the table does not depend on bits. */
			done = end;
			for (at = 0; at < RANGE_WINDOW; at++) {
				if (!range_each(w, op, firsts[end], odd, at,
						&combinations) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, combinations, "combinations");
}

static struct kunit_suite pte_range_suite;

static int pte_range_init(struct kunit *test)
{
	return pgtable_kunit_case_init(test, &pte_range_suite);
}

static struct kunit_case pte_range_cases[] = {
	KUNIT_CASE_PARAM(range_op_every_range, range_op_gen_params),
	{}
};

static struct kunit_suite pte_range_suite = {
	.name = "pte_range",
	.init = pte_range_init,
	.test_cases = pte_range_cases,
};

kunit_test_suite(pte_range_suite);

MODULE_DESCRIPTION("KUnit tests for functions on ranges of page-table entries");
MODULE_LICENSE("GPL");
