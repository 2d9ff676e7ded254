/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random walks over a page table.
 *
 * A walk calls all the functions that work on user entries, in random order, on
 * a window of a synthetic table. After each call it compares the table with a
 * model. Each suite defines the format of entries, and the functions to call.
 *
 *   walk_draw.c	draws steps
 *   walk_run.c		repeats the steps of a walk
 *   walk_report.c	finds the fewest steps that fail, and prints them
 */
#ifndef _PGTABLE_KUNIT_WALK_H
#define _PGTABLE_KUNIT_WALK_H

#include <linux/prandom.h>

#include "pte_run.h"

/* Steps of one walk; each walk has its own seed. */
#define WALK_LENGTH		1000

/**
 * struct walk - a walk
 * @c: the table, the functions under test, and the model
 * @name: the name of the suite, and of its parameters
 * @seed: the seed of the walk
 * @rnd: the state of its random numbers
 * @plan_idx: next entry of the range that the plan fills, see walk_draw_plan()
 * @plan_end: the entry after the last of this range
 * @plan_ascends: fill it entry by entry
 * @nr: number of steps so far
 * @step: the steps
 * @tried: steps of a shorter walk that is being tried
 * @best: the shortest sequence of steps that fails
 * @plant: for tests: the walk fails when the first and later the second of
 *	   these steps have been made
 * @planted: the first of these steps has been made
 * @folded_steps: steps during which a block of the window was folded
 * @count: number of steps by function
 */
struct walk {
	struct pte_ctx c;
	const char *name;
	u64 seed;
	struct rnd_state rnd;
	unsigned int plan_idx;
	unsigned int plan_end;
	bool plan_ascends;
	unsigned int nr;
	struct pte_step step[WALK_LENGTH];
	struct pte_step tried[WALK_LENGTH];
	struct pte_step best[WALK_LENGTH];
	const struct pte_step *plant;
	bool planted;
	unsigned long folded_steps;
	unsigned long count[PTE_OPS];
};

struct walk *walk_alloc(struct kunit *test, const char *name);
void walk_reset(struct walk *w);
bool walk_step_ok(struct walk *w, const struct pte_step *step);
bool walk_replay_fails(struct walk *w, const struct pte_step *step,
		       unsigned int nr, bool report);

void walk_seed(struct walk *w, u64 seed);
void walk_draw(struct walk *w, struct pte_step *step);

/*
 * Steps of one test case. They take only some seconds, so that a long run does
 * not look like a hang.
 */
#define WALK_CASE	25000

/* Comparing a large table takes longer, and KASAN makes it slower too. */
#define WALK_STEPS	(200000 / (PAGE_SIZE / SZ_4K) / \
			 (IS_ENABLED(CONFIG_KASAN) ? 8 : 1))

/* Some expectations of a walk hold only after some steps. */
#define WALK_CERTAIN	10000

/* Steps that the search for a shorter sequence may make. */
#define WALK_BUDGET	300000

const void *walk_next_case(const void *prev, ulong steps, char *desc);
unsigned long walk_case(struct walk *w, const void *which, ulong steps,
			u64 seed);
unsigned int walk_shorten(struct pte_step *step, struct pte_step *tried,
			  unsigned int nr, unsigned int budget,
			  bool (*fails)(void *data,
					const struct pte_step *step,
					unsigned int nr),
			  void *data);

#endif /* _PGTABLE_KUNIT_WALK_H */
