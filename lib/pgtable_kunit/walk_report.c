// SPDX-License-Identifier: GPL-2.0
/* Random walks over a page table: test cases, and the report of a failure. */

#include "walk.h"

/*
 * Limits of the search for a shorter sequence: the number of later walks to
 * try, the number of their sequences to shorten, and the length that is short
 * enough.
 */
#define WALK_MORE_TRIED		50
#define WALK_MORE_SHORTENED	4
#define WALK_SHORT		4

/* The sequences that are printed are a few steps long. */
#define WALK_PRINTED	64

/* Try to leave out the steps from @start to @end - 1, and @other (@nr: none). */
static bool walk_drop(struct pte_step *step, struct pte_step *tried,
		      unsigned int *nr, unsigned int start, unsigned int end,
		      unsigned int other, unsigned int *budget,
		      bool (*fails)(void *data, const struct pte_step *step,
				    unsigned int nr),
		      void *data)
{
	unsigned int i, left = 0;

	if (*budget < *nr)
		return false;
	for (i = 0; i < *nr; i++) {
		if ((i < start || i >= end) && i != other)
			tried[left++] = step[i];
	}
	*budget -= left + 1;
	if (!fails(data, tried, left))
		return false;
	memcpy(step, tried, left * sizeof(*step));
	*nr = left;
	return true;
}

/**
 * walk_shorten() - find a short sequence of steps that still fails
 * @step: the steps that fail; afterwards only the necessary steps
 * @tried: room for the same number
 * @nr: their number
 * @budget: how many steps the search may make
 * @fails: whether a sequence of steps fails
 * @data: for @fails
 *
 * The search tries to leave out half of the steps, a quarter, and so on down to
 * single steps. Finally it tries to leave out each pair of steps. For example,
 * a step that clears an entry and the step that sets it can only be left out
 * together. The result is not always the shortest sequence, but no single step
 * and no pair of steps can be left out.
 *
 * Return: the number of remaining steps.
 */
unsigned int walk_shorten(struct pte_step *step, struct pte_step *tried,
			  unsigned int nr, unsigned int budget,
			  bool (*fails)(void *data,
					const struct pte_step *step,
					unsigned int nr),
			  void *data)
{
	unsigned int size, i, j;
	bool dropped;

	/* Begin at the end, since the first steps are most often necessary. */
	for (size = max(nr / 2, 1); size; size /= 2) {
		for (i = rounddown(nr, size) + size; i >= size; i -= size) {
			if (i - size < nr)
				walk_drop(step, tried, &nr, i - size, i, nr,
					  &budget, fails, data);
		}
	}

	/* If both numbers are equal, this leaves out a single step. */
	do {
		dropped = false;
		for (i = 0; i < nr; i++) {
			for (j = nr; j > i && !dropped; j--)
				dropped = walk_drop(step, tried, &nr, i, i + 1,
						    j - 1, &budget, fails,
						    data);
		}
	} while (dropped);
	return nr;
}

static bool walk_fails(void *data, const struct pte_step *step,
		       unsigned int nr)
{
	return walk_replay_fails(data, step, nr, false);
}

/*
 * Make one walk until its end or until it fails. Return: whether it failed.
 */
static bool walk_goes_wrong(struct walk *w, u64 from, unsigned int length)
{
	unsigned int i;

	walk_seed(w, from);
	while (w->nr < length) {
		struct pte_step *step = &w->step[w->nr];

		walk_draw(w, step);
		w->nr++;
		w->count[step->op]++;
		if (!walk_step_ok(w, step))
			return true;
		for (i = 0; i < MODEL_WINDOW; i += MODEL_BLOCK) {
			if (w->c.model.entry[i].cont) {
				w->folded_steps++;
				break;
			}
		}
	}
	return false;
}

/*
 * The last step of a walk failed. Print how to repeat the walk, and a shorter
 * sequence. If that sequence is long, later walks may show the same failure
 * with fewer steps.
 */
static void walk_report(struct walk *w, unsigned int length)
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
	KUNIT_FAIL(w->c.test,
		   "%s.seed=%llu %s.steps=%u goes wrong in step %u; these %u steps are enough, from entry %u of the table on:",
		   w->name, w->seed, w->name, length, made, best, w->c.base);
	for (i = 0; i < min(best, WALK_PRINTED); i++) {
		pte_step_describe(&w->best[i], buf, sizeof(buf));
		kunit_err(w->c.test, "%3u: %s\n", i, buf);
	}
	if (!walk_replay_fails(w, w->best, best, true))
		KUNIT_FAIL(w->c.test, "a repetition of these steps does not fail");
}

static void walk_info(struct walk *w, ulong done)
{
	char buf[512];
	size_t len = 0;
	unsigned int i;

	for (i = 0; i < PTE_OPS; i++)
		len += scnprintf(buf + len, sizeof(buf) - len, ", %s %lu",
				 w->c.backend->ops[i].name, w->count[i]);
	kunit_info(w->c.test, "%lu steps, %lu with a folded block, %lu folds, %lu unfolds%s\n",
		   done, w->folded_steps, w->c.model.nr_folds,
		   w->c.model.nr_unfolds, buf);
}

static ulong walk_case_steps(ulong number, ulong steps)
{
	return min(steps - number * WALK_CASE, WALK_CASE);
}

/**
 * walk_next_case() - a generator of parameters: one case for WALK_CASE steps
 * @prev: the parameter before
 * @steps: how many steps to make, all cases together
 * @desc: buffer for its description
 *
 * Return: the parameter, or NULL if there are no more steps to make.
 */
const void *walk_next_case(const void *prev, ulong steps, char *desc)
{
	ulong number = (ulong)prev;

	if (number * WALK_CASE >= steps)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "steps %lu to %lu",
		 number * WALK_CASE,
		 number * WALK_CASE + walk_case_steps(number, steps) - 1);
	return (const void *)(number + 1);
}

/**
 * walk_case() - make the walks of one test case
 * @w: a walk
 * @which: the parameter of the case, see walk_next_case()
 * @steps: how many steps to make, all cases together
 * @seed: seed of the first walk
 *
 * Return: the number of steps made; 0 if a step failed, which also fails the
 * test.
 */
unsigned long walk_case(struct walk *w, const void *which, ulong steps,
			u64 seed)
{
	ulong number = (ulong)which - 1, done = 0;
	ulong todo = walk_case_steps(number, steps);

	seed += number * (WALK_CASE / WALK_LENGTH);
	kunit_info(w->c.test, "%s.seed=%llu %s.steps=%lu\n", w->name, seed,
		   w->name, todo);
	while (done < todo) {
		unsigned int length = min(todo - done, WALK_LENGTH);

		if (walk_goes_wrong(w, seed++, length)) {
			walk_report(w, length);
			return 0;
		}
		done += length;
	}
	walk_info(w, done);
	return done;
}
