// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over a page table: steps of a walk.
 */

#include "walk.h"

/**
 * walk_step_ok() - make a step of a walk, silently
 * @w: the walk
 * @step: the step; it is legal
 *
 * Return: whether model and table agree.
 */
bool walk_step_ok(struct walk *w, const struct pte_step *step)
{
	bool ok = pte_op_run(&w->c, step, false);

	/* A planted failure, for walk_shortens_sequence. */
	if (w->plant) {
		ok = !w->planted || step->id != w->plant[1].id;
		w->planted |= step->id == w->plant[0].id;
	}
	return ok;
}

/**
 * walk_reset() - start over, with the same seed and an empty table
 * @w: the walk
 */
void walk_reset(struct walk *w)
{
	pte_ctx_reset(&w->c);
	w->planted = false;
}

/**
 * walk_replay_fails() - make some steps on an empty table
 * @w: the walk
 * @step: the steps. Steps that are not legal at their place are left out
 * @nr: their number
 * @report: fail the test with a message about the difference
 *
 * Return: whether model and table disagreed at some step.
 */
bool walk_replay_fails(struct walk *w, const struct pte_step *step,
		       unsigned int nr, bool report)
{
	unsigned int i;

	walk_reset(w);
	for (i = 0; i < nr; i++) {
		if (pte_step_legal(&w->c.model, &step[i]) &&
		    !(report ? pte_op_run(&w->c, &step[i], true) :
			       walk_step_ok(w, &step[i])))
			return true;
	}
	return false;
}

/**
 * walk_alloc() - make a walk
 * @test: the test that owns it
 * @name: of the suite
 *
 * Return: the walk; it has no table and no seed yet.
 */
struct walk *walk_alloc(struct kunit *test, const char *name)
{
	struct walk *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->name = name;
	return w;
}
