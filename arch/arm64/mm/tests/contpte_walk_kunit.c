// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: random walks.
 *
 * The directed suites look at situations that somebody has thought of. This one
 * makes random calls of all the functions that work on user entries, in random
 * order, on a window of four blocks, with the hardware setting accessed and
 * dirty bits in between; and compares table, value returned and TLB
 * invalidations with a model after every step.
 *
 * A walk is a thousand steps on a table that was empty before, drawn from a
 * seed. Where it goes wrong, the same steps are made again and again with some
 * left out, and the shortest sequence that still goes wrong is printed:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_walk' --kernel_args contpte_walk.seed=N \
 *	--kernel_args contpte_walk.steps=10000000
 *
 * Without a seed, each boot draws another one. The suite needs no contiguous
 * PTEs: without CONFIG_ARM64_CONTPTE, all is the same but for the bit, which
 * is never there [contpte 214].
 *
 * Not covered: calls that the contracts forbid, other CPUs, real address
 * spaces, the order of writes and invalidations within a call.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "contpte_walk.h"

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the first walk, 0 for another one each boot");

/* To compare a table takes the longer the larger it is, and with KASAN. */
static ulong steps = 200000 / (PAGE_SIZE / SZ_4K) /
		     (IS_ENABLED(CONFIG_KASAN) ? 8 : 1);
module_param(steps, ulong, 0444);
MODULE_PARM_DESC(steps, "number of steps, all walks together");

/* Steps of one test case: seconds, so that long runs are no hangs. */
#define WALK_CASE	25000

/* Steps that may be made to find a shorter sequence. */
#define WALK_BUDGET	300000

/* Other walks that may be tried for it, and shortened, and what will do. */
#define WALK_MORE_TRIED		50
#define WALK_MORE_SHORTENED	4
#define WALK_SHORT		4

/* What is expected of a walk is only certain after some steps. */
#define WALK_CERTAIN	10000

/* The sequences that are printed are a few steps long. */
#define WALK_PRINTED	64

static u64 walk_first_seed;
static bool walk_reported;

static ulong walk_case_steps(ulong number)
{
	return min(steps - number * WALK_CASE, WALK_CASE);
}

/* One case for each WALK_CASE steps: the parameter is its number, plus one. */
static PGTABLE_KUNIT_GEN_PARAMS(walk)
{
	ulong number = (ulong)prev;

	if (number * WALK_CASE >= steps)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "steps %lu to %lu",
		 number * WALK_CASE,
		 number * WALK_CASE + walk_case_steps(number) - 1);
	return (const void *)(number + 1);
}

static bool walk_fails(void *data, const struct walk_step *step,
		       unsigned int nr)
{
	return walk_replay_fails(data, step, nr, false);
}

/* One walk, until its end or until it goes wrong. Return: the latter. */
static bool walk_goes_wrong(struct walk *w, u64 from, unsigned int length)
{
	unsigned int i;

	walk_seed(w, from);
	while (w->nr < length) {
		struct walk_step *step = &w->step[w->nr];

		walk_draw(w, step);
		w->nr++;
		w->count[step->op]++;
		if (!walk_step_ok(w, step, false))
			return true;
		for (i = 0; i < CONTPTE_WINDOW; i += CONT_PTES) {
			if (w->model.entry[i].cont) {
				w->folded_steps++;
				break;
			}
		}
	}
	return false;
}

/*
 * The last step of a walk went wrong: say how to see it again, and shorter. If
 * what is left is long, the walks that follow may show the same with less.
 */
static void walk_report(struct kunit *test, struct walk *w, unsigned int length)
{
	unsigned int nr, i, made = 0, best = WALK_LENGTH + 1;
	unsigned int tried = 0, shortened = 0;
	u64 from = w->seed, best_seed = from;
	bool wrong = true;
	char buf[128];

	for (;;) {
		if (wrong) {
			unsigned int last = w->nr - 1;

			nr = walk_shorten(w->step, w->tried, w->nr, WALK_BUDGET,
					  walk_fails, w);
			shortened++;
			if (nr < best) {
				best = nr;
				best_seed = w->seed;
				made = last;
				memcpy(w->best, w->step, nr * sizeof(*w->best));
			}
		}
		if (best <= WALK_SHORT || tried++ == WALK_MORE_TRIED ||
		    shortened == WALK_MORE_SHORTENED)
			break;
		wrong = walk_goes_wrong(w, from + tried, length);
	}

	walk_seed(w, best_seed);
	KUNIT_FAIL(test,
		   "contpte_walk.seed=%llu contpte_walk.steps=%u goes wrong in step %u; these %u steps are enough, from entry %u of the table on:",
		   w->seed, length, made, best, w->base);
	for (i = 0; i < min(best, WALK_PRINTED); i++) {
		walk_describe(&w->best[i], buf, sizeof(buf));
		kunit_err(test, "%3u: %s\n", i, buf);
	}
	if (!walk_replay_fails(w, w->best, best, true))
		KUNIT_FAIL(test, "not when they are made once more");
}

static void walk_info(struct kunit *test, struct walk *w, ulong done)
{
	char buf[512];
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < WALK_OPS; i++)
		len += scnprintf(buf + len, sizeof(buf) - len, ", %s %lu",
				 walk_op_name(i), w->count[i]);
	kunit_info(test, "%lu steps, %lu with a folded block, %lu folds, %lu unfolds%s\n",
		   done, w->folded_steps, w->model.folds, w->model.unfolds,
		   buf);
}

/*
 * Whatever order the functions are called in, within their contracts, the table
 * is as if each had done what it says to entries that know nothing of blocks,
 * apart from the bits that a block shares; and the TLB is invalidated where a
 * block was converted and where a function is to do it, and nowhere else. All
 * rows of [contpte] on folding, unfolding, getting, setting, clearing,
 * write-protecting, ageing and access flags, in combination. 200,000 steps are
 * thousands of folds and unfolds, and enough to find each of the mutants of
 * contpte.c that were tried.
 */
static void walk_matches_model(struct kunit *test)
{
	ulong number = (ulong)test->param_value - 1, done = 0;
	ulong todo = walk_case_steps(number);
	struct walk *w = test->priv;
	u64 from = walk_first_seed + number * (WALK_CASE / WALK_LENGTH);

	if (walk_reported)
		kunit_skip(test, "a walk has gone wrong before");
	kunit_info(test, "contpte_walk.seed=%llu contpte_walk.steps=%lu\n",
		   from, todo);
	while (done < todo) {
		unsigned int length = min(todo - done, WALK_LENGTH);

		if (walk_goes_wrong(w, from++, length)) {
			walk_report(test, w, length);
			walk_reported = true;
			return;
		}
		done += length;
	}
	walk_info(test, w, done);

	if (!CONTPTE_FOLDS) {
		KUNIT_EXPECT_EQ(test, w->model.folds + w->folded_steps, 0);
	} else if (done >= WALK_CERTAIN) {
		KUNIT_EXPECT_GT(test, w->model.folds, 0);
		KUNIT_EXPECT_GT(test, w->model.unfolds, 0);
		KUNIT_EXPECT_GT(test, w->folded_steps, done / 10);
		KUNIT_EXPECT_LT(test, w->folded_steps, done);
	}
}

/* Two steps in this order make a sequence fail; others may hold each other. */
struct walk_plant {
	u16 first;
	u16 second;
	enum {
		WALK_LOOSE,	/* any can be left out */
		WALK_PAIRS,	/* only two at a time can */
		WALK_CHAIN,	/* none can as long as the one before is there */
	} others;
};

static bool walk_planted(void *data, const struct walk_step *step,
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

/*
 * The shortest sequence is found, exactly, if two steps are enough: at either
 * end, side by side, and far apart; and where steps can only go in pairs, or
 * one after the other; first by a predicate alone. Then with real walks, that
 * are to go wrong at the second of two steps if the first one was made before:
 * what is left after making them again and again is these two. It has to be
 * steps that are legal on an empty table; a reader and a set of one entry are.
 */
static void walk_shortens_sequence(struct kunit *test)
{
	static const struct walk_plant plants[] = {
		{ 0, 1 }, { 0, WALK_LENGTH - 1 }, { 7, 8 }, { 500, 501 },
		{ 250, 750 }, { WALK_LENGTH - 2, WALK_LENGTH - 1 },
		{ 3, 900, WALK_PAIRS }, { 20, 40, WALK_CHAIN },
	};
	struct walk *w = test->priv;
	struct walk_step pair[2];
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
			struct walk_step *step = &w->step[w->nr];

			walk_draw(w, step);
			w->nr++;
			/* The kernel's own faults are not looked for here. */
			walk_step_ok(w, step, false);
		}
		for (i = 0; i < WALK_LENGTH && w->step[i].op != WALK_GET; i++)
			;
		KUNIT_ASSERT_LT(test, i, WALK_LENGTH);
		pair[0] = w->step[i];
		for (i = WALK_LENGTH - 1; i && (w->step[i].op != WALK_SET ||
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

static struct kunit_suite contpte_walk_suite;

static int contpte_walk_suite_init(struct kunit_suite *suite)
{
	walk_reported = false;
	walk_first_seed = seed ?: get_random_u32();
	return 0;
}

static int contpte_walk_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_walk_suite);

	if (err)
		return err;
	test->priv = walk_alloc(test);
	return 0;
}

static const struct kunit_attributes contpte_walk_slow = {
	.speed = KUNIT_SPEED_SLOW,
};

static struct kunit_case contpte_walk_cases[] = {
	KUNIT_CASE_PARAM_ATTR(walk_matches_model, walk_gen_params,
			      contpte_walk_slow),
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
