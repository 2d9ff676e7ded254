// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that work on a range of page-table entries: every range.
 *
 * fork, munmap, mprotect, reclaim and others change dozens of entries with one
 * call. The contract of such a function is defined entry by entry. Each entry
 * in the range changes as if only this entry were changed. The returned value
 * depends on all entries of the range. No other entry changes. Most
 * architectures use the generic loops. arm64 has its own functions, and some
 * other architectures have a few. The same code tests all of them, on real
 * entries for real folios, against a model that does not depend on the bit
 * layout of an entry.
 *
 * If an architecture has its own functions, the generic functions are
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

/*
 * Number of entries in a window. It is smaller if a table takes longer to
 * compare.
 */
#define RANGE_WINDOW	(10 - ilog2(PAGE_SIZE / SZ_1K))

/*
 * A function that takes no entry, or for which this suite has no suitable
 * entry.
 */
static bool range_wanted(const struct pte_case *pc)
{
	return pc->id != PTE_OP_HINT && !(pc->flags & PTE_STEP_LESS);
}

/*
 * First all functions as the architecture has them, and then the generic
 * versions of the functions that the architecture implements itself. Parameters
 * for generic versions have larger values.
 */
#define RANGE_GENERIC	(PTE_OPS * PTE_OP_WAYS)

static PGTABLE_KUNIT_GEN_PARAMS(range_op)
{
	const void *next;

	if ((unsigned long)prev <= RANGE_GENERIC) {
		next = pte_case_next(&pte_arch_backend, prev, range_wanted, desc);
		if (next)
			return next;
		prev = (void *)RANGE_GENERIC;
	}
	next = pte_case_next(&pte_range_generic_backend, prev - RANGE_GENERIC,
			     range_wanted, desc);
	return next ? next + RANGE_GENERIC : NULL;
}

/* How the odd entry differs from the others of the window. */
struct range_odd {
	const char *desc;
	struct pte_model_entry all;
	struct pte_model_entry odd;
	unsigned int found;	/* BIT(PTE_OP_FINDS_*) for which this is possible */
};

#define PAGES	(BIT(PTE_OP_FINDS_PAGES) | BIT(PTE_OP_FINDS_ANYTHING))
#define SAME	(PAGES | BIT(PTE_OP_FINDS_SAME))
#define NOTHING	(BIT(PTE_OP_FINDS_NOTHING) | BIT(PTE_OP_FINDS_ANYTHING))

static const struct range_odd range_odds[] = {
	{ "young", { .kind = MODEL_VALID, .write = true },
	  { .kind = MODEL_VALID, .write = true, .young = true }, SAME },
	{ "old", { .kind = MODEL_VALID, .young = true },
	  { .kind = MODEL_VALID }, SAME },
	{ "dirty", { .kind = MODEL_VALID, .write = true },
	  { .kind = MODEL_VALID, .write = true, .hw_dirty = true }, SAME },
	{ "clean", { .kind = MODEL_VALID, .write = true, .hw_dirty = true },
	  { .kind = MODEL_VALID, .write = true }, SAME },
	{ "read-only and dirty", { .kind = MODEL_VALID },
	  { .kind = MODEL_VALID, .sw_dirty = true }, SAME },
	{ "read-only", { .kind = MODEL_VALID, .write = true },
	  { .kind = MODEL_VALID }, PAGES },
	{ "writable and dirty", { .kind = MODEL_VALID },
	  { .kind = MODEL_VALID, .write = true, .hw_dirty = true }, PAGES },
	{ "soft-dirty", { .kind = MODEL_VALID, .write = true },
	  { .kind = MODEL_VALID, .write = true, .soft_dirty = true }, PAGES },
	{ "soft-clean", { .kind = MODEL_VALID, .soft_dirty = true },
	  { .kind = MODEL_VALID }, PAGES },
	{ "uffd", { .kind = MODEL_VALID },
	  { .kind = MODEL_VALID, .uffd = true }, PAGES },
	{ "without uffd", { .kind = MODEL_VALID, .uffd = true },
	  { .kind = MODEL_VALID }, PAGES },
	{ "PROT_NONE, young", { .kind = MODEL_PROTNONE },
	  { .kind = MODEL_PROTNONE, .young = true }, SAME },
	{ "PROT_NONE, dirty", { .kind = MODEL_PROTNONE },
	  { .kind = MODEL_PROTNONE, .sw_dirty = true }, SAME },
	{ "none", { .kind = MODEL_SWAP }, { .kind = MODEL_NONE }, NOTHING },
	{ "swap", { .kind = MODEL_NONE }, { .kind = MODEL_SWAP }, NOTHING },
	{ "none among pages", { .kind = MODEL_VALID }, { .kind = MODEL_NONE },
	  BIT(PTE_OP_FINDS_ANYTHING) },
	{ "page among swap entries", { .kind = MODEL_SWAP },
	  { .kind = MODEL_VALID, .write = true }, BIT(PTE_OP_FINDS_ANYTHING) },
};

/* Does the architecture have the bit that makes the odd entry odd? */
static bool range_odd_exists(const struct pte_ctx *c,
			     const struct range_odd *odd)
{
	unsigned int has = c->model.has;

	return (has & MODEL_HAS_SOFT_DIRTY ||
		odd->all.soft_dirty == odd->odd.soft_dirty) &&
	       (has & MODEL_HAS_UFFD || odd->all.uffd == odd->odd.uffd);
}

/* Consecutive pages of a folio; or consecutive swap entries. */
static void range_fill(struct pte_ctx *c, unsigned int first,
		       const struct range_odd *odd, unsigned int at)
{
	unsigned int i;

	pte_ctx_reset(c);
	for (i = 0; i < RANGE_WINDOW; i++) {
		struct pte_model_entry e = i == at ? odd->odd : odd->all;

		e.page = MODEL_BLOCK + first + i;
		pte_ctx_fill(c, first + i, &e);
	}
}

/* Every range, with one odd entry. */
static bool range_each(struct pte_ctx *c, const struct pte_case *pc,
		       unsigned int first, const struct range_odd *odd,
		       unsigned int at)
{
	struct pte_step step = {
		.op = pc->id, .flags = pc->flags,
		.entry = pte_case_entry(pc, &odd->odd),
	};
	unsigned int start, max_nr;

	for (start = 0; start < RANGE_WINDOW; start++) {
		max_nr = pc->op->takes_range ? RANGE_WINDOW - start : 1;
		step.idx = first + start;
		for (step.nr = 1; step.nr <= max_nr; step.nr++) {
			range_fill(c, first, odd, at);
			if (!pte_step_legal(&c->model, &step))
				continue;
			pgtable_kunit_tried++;
			if (pte_op_run(c, &step, true))
				continue;
			kunit_err(c->test, "%s, entry %u alone: %s\n", pc->desc,
				  first + at, odd->desc);
			return false;
		}
	}
	return true;
}

/*
 * In the range, each entry changes as the function for one entry would change
 * it. It is set, cleared, write-protected, or made old and clean. The function
 * returns the first entry with the merged young and dirty bits of all. Outside
 * of the range nothing changes. The case tries every range in a window of a few
 * entries. Every entry of the window is the odd one in turn, in every way in
 * which entries of a batch may differ. At the end of the table, the case tries
 * only one of these ways:
 *
 *	entries	|a a a o a a a a|
 *	range	     <------->
 */
static void range_op_every_range(struct kunit *test)
{
	/* The first or the last entries of the larger window of the model. */
	const unsigned int firsts[] = { 0, MODEL_WINDOW - RANGE_WINDOW };
	bool generic = (unsigned long)test->param_value > RANGE_GENERIC;
	const struct pte_backend *backend = generic ?
		&pte_range_generic_backend : &pte_arch_backend;
	const struct pte_case pc = pte_case_get(backend, test->param_value -
						(generic ? RANGE_GENERIC : 0));
	unsigned int end, i, at, failed = 0;
	struct pte_ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	pte_range_ctx_init(c, test, backend);

	for (end = 0; end <= 1; end++) {
		bool done = false;

		c->base = end ? PTRS_PER_PTE - MODEL_WINDOW : 0;
		for (i = 0; i < ARRAY_SIZE(range_odds) && !done; i++) {
			const struct range_odd *odd = &range_odds[i];

			if (!(odd->found & BIT(pc.op->finds)) ||
			    !range_odd_exists(c, odd))
				continue;
			/*
			 * At the end of the table, the result does not depend
			 * on bits.
			 */
			done = end;
			for (at = 0; at < RANGE_WINDOW; at++) {
				if (!range_each(c, &pc, firsts[end], odd, at) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
}

static struct kunit_case pte_range_cases[] = {
	KUNIT_CASE_PARAM(range_op_every_range, range_op_gen_params),
	{}
};

static struct kunit_suite pte_range_suite = {
	.name = "pte_range",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.exit = pgtable_kunit_exit,
	.test_cases = pte_range_cases,
};

kunit_test_suite(pte_range_suite);

MODULE_DESCRIPTION("KUnit tests for functions on ranges of page-table entries");
MODULE_LICENSE("GPL");
