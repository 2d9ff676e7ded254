// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: random walks.
 *
 * The other suites test chosen situations. This suite makes random calls of all
 * functions that work on user entries, on a window of four blocks, while
 * hardware sets accessed and dirty bits in between. After every step it
 * compares table, value returned and TLB invalidations with a model.
 *
 * A walk is a thousand random steps, which depend on a seed, on a table that is
 * empty at first. If a walk fails, the suite repeats it without some of its
 * steps, and prints the shortest sequence that still fails:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_walk' --kernel_args contpte_walk.seed=N \
 *	--kernel_args contpte_walk.steps=10000000
 *
 * Without a seed, each boot chooses another seed. The suite also runs without
 * CONFIG_ARM64_CONTPTE: then no entry ever has the contiguous bit.
 *
 * Not covered: calls that the contracts forbid, other CPUs, real address
 * spaces, the order of writes and invalidations within a call.
 *
 * Begin with contpte_fold and contpte.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "contpte.h"
#include "walk.h"

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the first walk, 0 for another seed at each boot");

static ulong steps = WALK_STEPS;
module_param(steps, ulong, 0444);
MODULE_PARM_DESC(steps, "number of steps, all walks together");

static u64 walk_first_seed;
static bool walk_reported;

static PGTABLE_KUNIT_GEN_PARAMS(walk)
{
	return walk_next_case(prev, steps, desc);
}

/*
 * The case calls the functions in any order that their contracts allow. The
 * table always looks as if each call had changed single entries without blocks,
 * except for the bits that a block shares. There is an invalidation for each
 * block that was converted and for each function that has to invalidate, and no
 * other. So the case tests folding, unfolding, getting, setting, clearing,
 * write-protecting, ageing and access flags together. 200,000 steps contain
 * thousands of folds and unfolds, and have noticed each mutant of contpte.c
 * that was tried.
 */
static void walk_matches_model(struct kunit *test)
{
	struct walk *w = test->priv;
	ulong done;

	if (walk_reported)
		kunit_skip(test, "an earlier walk failed");
	done = walk_case(w, test->param_value, steps, walk_first_seed);
	walk_reported = !done;

	if (!CONTPTE_FOLDS) {
		KUNIT_EXPECT_EQ(test, w->c.model.nr_folds + w->folded_steps, 0);
	} else if (done >= WALK_CERTAIN) {
		KUNIT_EXPECT_GT(test, w->c.model.nr_folds, 0);
		KUNIT_EXPECT_GT(test, w->c.model.nr_unfolds, 0);
		KUNIT_EXPECT_GT(test, w->folded_steps, done / 10);
		KUNIT_EXPECT_LT(test, w->folded_steps, done);
	}
}

/*
 * A sequence fails if it has two given steps in this order. Other steps may
 * depend on each other.
 */
struct walk_plant {
	u16 first;
	u16 second;
	enum {
		WALK_LOOSE,	/* each step can be left out alone */
		WALK_PAIRS,	/* only pairs can be left out */
		WALK_CHAIN,	/* each only after the step before it */
	} others;
};

static bool walk_planted(void *data, const struct pte_step *step,
			 unsigned int nr)
{
	const struct walk_plant *plant = data;
	bool first = false, both = false;
	unsigned int i;

	if (plant->others == WALK_PAIRS && nr % 2)
		return false;
	for (i = 0; i < nr; i++) {
		bool other = step[i].id != plant->first &&
			     step[i].id != plant->second;

		if (plant->others == WALK_CHAIN && other && i + 1 < nr &&
		    step[i + 1].id != step[i].id + 1)
			return false;
		both |= first && step[i].id == plant->second;
		first |= step[i].id == plant->first;
	}
	return both;
}

static bool walk_fails(void *data, const struct pte_step *step,
		       unsigned int nr)
{
	return walk_replay_fails(data, step, nr, false);
}

/*
 * If two steps make a sequence fail, the suite finds exactly these two steps as
 * the shortest sequence. The two steps are at both ends, next to each other, or
 * far apart. In some sequences, other steps can be left out only in pairs, or
 * one after the other. The case first uses a predicate instead of a walk. Then
 * it uses real walks that fail at the second of two given steps if the first
 * step came before. The shortest sequence must be these two steps. Both steps
 * are legal on an empty table: they read or set one entry.
 */
static void walk_shortens_sequence(struct kunit *test)
{
	static const struct walk_plant plants[] = {
		{ 0, 1 }, { 0, WALK_LENGTH - 1 }, { 7, 8 }, { 500, 501 },
		{ 250, 750 }, { WALK_LENGTH - 2, WALK_LENGTH - 1 },
		{ 3, 900, WALK_PAIRS }, { 20, 40, WALK_CHAIN },
	};
	struct walk *w = test->priv;
	struct pte_step pair[2];
	unsigned int i, p, nr;

	for (p = 0; p < ARRAY_SIZE(plants); p++) {
		struct walk_plant plant = plants[p];

		for (i = 0; i < WALK_LENGTH; i++)
			w->step[i].id = i;
		nr = walk_shorten(w->step, w->tried, WALK_LENGTH, WALK_BUDGET,
				  walk_planted, &plant);
		KUNIT_EXPECT_EQ_MSG(test, nr, 2, "plants %u", p);
		KUNIT_EXPECT_EQ_MSG(test, w->step[0].id, plant.first,
				    "plants %u", p);
		KUNIT_EXPECT_EQ_MSG(test, w->step[1].id, plant.second,
				    "plants %u", p);
	}

	for (p = 0; p < 4; p++) {
		bool ok = true;

		walk_seed(w, walk_first_seed + p);
		w->plant = NULL;
		while (w->nr < WALK_LENGTH) {
			struct pte_step *step = &w->step[w->nr];

			walk_draw(w, step);
			w->nr++;
			/*
			 * The case does not look for bugs of the kernel itself.
			 */
			walk_step_ok(w, step);
		}
		for (i = 0; i < WALK_LENGTH && w->step[i].op != PTE_OP_GET; i++)
			;
		KUNIT_ASSERT_LT(test, i, WALK_LENGTH);
		pair[0] = w->step[i];
		for (i = WALK_LENGTH - 1; i && (w->step[i].op != PTE_OP_SET_PTES ||
						w->step[i].nr > 1); i--)
			;
		pair[1] = w->step[i];
		KUNIT_ASSERT_LT(test, pair[0].id, pair[1].id);

		w->plant = pair;
		walk_reset(w);
		nr = walk_shorten(w->step, w->tried, WALK_LENGTH, WALK_BUDGET,
				  walk_fails, w);
		ok &= nr == 2;
		ok &= w->step[0].id == pair[0].id;
		ok &= w->step[1].id == pair[1].id;
		KUNIT_EXPECT_TRUE_MSG(test, ok,
				      "contpte_walk.seed=%llu: %u steps left, the first %u and %u, expected %u and %u",
				      w->seed, nr, w->step[0].id, w->step[1].id,
				      pair[0].id, pair[1].id);
	}
}

static int contpte_walk_suite_init(struct kunit_suite *suite)
{
	walk_reported = false;
	walk_first_seed = seed ?: get_random_u32();
	return pgtable_kunit_suite_init(suite);
}

static int contpte_walk_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);
	struct walk *w;

	if (err)
		return err;
	w = walk_alloc(test, "contpte_walk");
	contpte_ctx_init(&w->c, test);
	pte_ctx_avoid_known(&w->c);
	test->priv = w;
	return 0;
}

static struct kunit_case contpte_walk_cases[] = {
	KUNIT_CASE_PARAM_ATTR(walk_matches_model, walk_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE(walk_shortens_sequence),
	{}
};

static struct kunit_suite contpte_walk_suite = {
	.name = "contpte_walk",
	.suite_init = contpte_walk_suite_init,
	.init = contpte_walk_init,
	.test_cases = contpte_walk_cases,
};

kunit_test_suite(contpte_walk_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: random walks");
MODULE_LICENSE("GPL");
