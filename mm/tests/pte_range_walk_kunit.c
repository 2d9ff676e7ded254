// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that work on a range of page-table entries: random walks.
 *
 * Each case of pte_range makes one call on a table that it has filled itself.
 * In this suite calls of all functions follow one another in random order, on
 * ranges of random size and entries of all kinds. Each call finds the table as
 * the call before left it. If a walk fails, the suite prints the smallest set
 * of steps that still fails:
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests \
 *	'pte_range_walk' --kernel_args pte_range_walk.seed=N \
 *	--kernel_args pte_range_walk.steps=10000000
 *
 * Without a seed, each boot chooses another seed. Not covered: all that the
 * head of pte_range_kunit.c lists as not covered. The suite contpte_walk walks
 * in the same way, and compares each bit of arm64's entries.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/random.h>

#include "pte_range.h"

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the first walk, 0 for another seed at each boot");

static ulong steps = WALK_STEPS / 4;
module_param(steps, ulong, 0444);
MODULE_PARM_DESC(steps, "number of steps, all walks together");

static u64 range_walk_first_seed;
static bool range_walk_reported;

static PGTABLE_KUNIT_GEN_PARAMS(range_walk)
{
	return walk_next_case(prev, steps, desc);
}

static void range_walk(struct kunit *test, const struct pte_backend *backend)
{
	struct walk *w;

	if (range_walk_reported)
		kunit_skip(test, "an earlier walk failed");
	w = walk_alloc(test, "pte_range_walk");
	pte_range_ctx_init(&w->c, test, backend);
	range_walk_reported = !walk_case(w, test->param_value, steps,
					 range_walk_first_seed);
}

/*
 * The case calls the functions in any order that their contracts allow, and
 * each entry of the table matches the model. 50,000 steps include some thousand
 * calls of each function.
 */
static void arch_functions_match_model(struct kunit *test)
{
	range_walk(test, &pte_arch_backend);
}

/*
 * Random walks with the generic versions of the functions that the architecture
 * implements itself: each entry of the table matches the model.
 */
static void generic_functions_match_model(struct kunit *test)
{
	range_walk(test, &pte_range_generic_backend);
}

static int pte_range_walk_suite_init(struct kunit_suite *suite)
{
	range_walk_reported = false;
	range_walk_first_seed = seed ?: get_random_u32();
	return pgtable_kunit_suite_init(suite);
}

static struct kunit_case pte_range_walk_cases[] = {
	KUNIT_CASE_PARAM_ATTR(arch_functions_match_model, range_walk_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM_ATTR(generic_functions_match_model,
			      range_walk_gen_params, PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite pte_range_walk_suite = {
	.name = "pte_range_walk",
	.suite_init = pte_range_walk_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = pte_range_walk_cases,
};

kunit_test_suite(pte_range_walk_suite);

MODULE_DESCRIPTION("KUnit tests for functions on ranges of page-table entries: random walks");
MODULE_LICENSE("GPL");
