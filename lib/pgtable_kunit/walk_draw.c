// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over a page table: choosing the steps.
 *
 * Steps with equal probability would hardly ever fill a block with matching
 * entries. So places are mostly near the edges of blocks, pages mostly have the
 * alignment of their addresses, and new entries often continue their
 * neighbours.
 */

#include <linux/hash.h>

#include "walk.h"

/* A random number below @end. */
static unsigned int walk_below(struct walk *w, unsigned int end)
{
	return prandom_u32_state(&w->rnd) % end;
}

/* True in @percent of a hundred calls. */
static bool walk_chance(struct walk *w, unsigned int percent)
{
	return walk_below(w, 100) < percent;
}

/**
 * walk_seed() - begin a new walk
 * @w: the walk
 * @seed: the seed of its random numbers
 *
 * The window is at the start of the table, at its end, or somewhere in between.
 */
void walk_seed(struct walk *w, u64 seed)
{
	static const unsigned int bases[] = {
		0, PTRS_PER_PTE - MODEL_WINDOW,
		ALIGN_DOWN((PTRS_PER_PTE - MODEL_WINDOW) / 2, MODEL_BLOCK),
	};
	unsigned int i;

	w->seed = seed;
	w->nr = 0;
	w->plan_idx = 0;
	w->plan_end = 0;
	/* This makes the walks of neighbouring seeds different. */
	prandom_seed_state(&w->rnd, hash_64(seed, 32));
	for (i = 0; i < 16; i++)
		prandom_u32_state(&w->rnd);
	w->c.base = bases[walk_below(w, ARRAY_SIZE(bases))];
	walk_reset(w);
}

/* The first entry: usually one where something can change. */
static unsigned int walk_draw_idx(struct walk *w)
{
	static const unsigned int edges[] = {
		0, 1, MODEL_BLOCK / 2, MODEL_BLOCK - 2, MODEL_BLOCK - 1,
		MODEL_BLOCK - 1,
	};

	if (walk_chance(w, 40))
		return walk_below(w, MODEL_WINDOW);
	return walk_below(w, MODEL_BLOCKS) * MODEL_BLOCK +
	       edges[walk_below(w, ARRAY_SIZE(edges))];
}

static unsigned int walk_draw_nr(struct walk *w, unsigned int idx)
{
	unsigned int to_edge = MODEL_BLOCK - idx % MODEL_BLOCK;

	switch (walk_below(w, 6)) {
	case 0:
		return 1;
	case 1:
		return to_edge;
	case 2:
		return to_edge + walk_below(w, MODEL_BLOCKS) * MODEL_BLOCK;
	case 3:
		return to_edge + MODEL_BLOCK - 1;
	default:
		return 1 + walk_below(w, 2 * MODEL_BLOCK);
	}
}

static bool walk_has(struct walk *w, unsigned int what, unsigned int percent)
{
	return w->c.model.has & what && walk_chance(w, percent);
}

static void walk_draw_dirty(struct walk *w, struct pte_model_entry *e)
{
	e->young = walk_chance(w, 50);
	e->sw_dirty = walk_chance(w, 25);
	e->hw_dirty = e->write && walk_chance(w, 25);
	e->soft_dirty = walk_has(w, MODEL_HAS_SOFT_DIRTY, 40);
}

/* An entry that continues its neighbour, if it has a neighbour. */
static bool walk_draw_neighbour(struct walk *w, unsigned int idx,
				struct pte_model_entry *e)
{
	const struct pte_model_entry *near = &w->c.model.entry[idx];

	if (idx && near[-1].kind >= MODEL_PROTNONE &&
	    near[-1].page + 1 < MODEL_PAGES) {
		*e = near[-1];
		e->page++;
	} else if (idx < MODEL_WINDOW - 1 && near[1].kind >= MODEL_PROTNONE &&
		   near[1].page) {
		*e = near[1];
		e->page--;
	} else {
		return false;
	}
	e->cont = false;
	walk_draw_dirty(w, e);
	return true;
}

/*
 * Pages usually have the alignment of their addresses, because otherwise there
 * would be no blocks.
 */
static void walk_draw_entry(struct walk *w, unsigned int idx,
			    struct pte_model_entry *e)
{
	*e = (struct pte_model_entry){
		.kind = MODEL_VALID,
		.write = walk_chance(w, 60),
		.exec = walk_chance(w, 3),
		.nc = walk_has(w, MODEL_HAS_NC, 3),
		.uffd = walk_has(w, MODEL_HAS_UFFD, 3),
		.special = walk_has(w, MODEL_HAS_SPECIAL, 2),
	};
	if (walk_chance(w, 5))
		e->kind = MODEL_SWAP;
	else if (walk_chance(w, 5))
		e->kind = MODEL_PROTNONE;
	if (e->uffd || e->kind != MODEL_VALID)
		e->write = false;

	if (walk_chance(w, 85))
		e->page = walk_below(w, MODEL_PAGES / MODEL_BLOCK) * MODEL_BLOCK +
			  idx % MODEL_BLOCK;
	else
		e->page = walk_below(w, MODEL_PAGES);
	/*
	 * Choose pages that cannot have the alignment of their addresses by
	 * chance.
	 */
	if (w->c.shift && (e->page + w->c.shift) % MODEL_BLOCK == idx % MODEL_BLOCK)
		e->page ^= 1;
	walk_draw_dirty(w, e);
}

/*
 * The number of entries that one call can set: they are not present before, and
 * get pages of one folio.
 */
static unsigned int walk_draw_room(struct walk *w, const struct pte_step *step)
{
	unsigned int max_nr = min(pte_model_room(&w->c.model, step->idx),
				  w->c.model.set_max);
	const struct pte_model_entry *e = &step->entry;
	unsigned int nr = 1;

	if (e->kind == MODEL_SWAP || e->special)
		return 1;
	if (e->kind == MODEL_PROTNONE)
		max_nr = min(max_nr, w->c.model.none_max);
	while (nr < max_nr && e->page + nr < MODEL_PAGES &&
	       pte_model_same_folio(e->page, e->page + nr))
		nr++;
	return nr;
}

static enum pte_op_id walk_draw_op(struct walk *w)
{
	const struct pte_op *ops = w->c.backend->ops;
	unsigned int sum = 0, i, at;

	for (i = 0; i < PTE_OPS; i++)
		sum += ops[i].weight;
	at = walk_below(w, sum);
	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	return i;
}

/* The longest run of entries that are set one by one. */
#define WALK_RUN	32

/*
 * A plan is a range that will be filled. First its entries are cleared, batch
 * by batch, and then one call sets the whole range, or one call per entry sets
 * it in ascending order. Other steps occur in between.
 */
static void walk_plan(struct walk *w)
{
	unsigned int idx = walk_draw_idx(w), nr = walk_draw_nr(w, idx);

	if (walk_chance(w, 70)) {
		idx = ALIGN_DOWN(idx, MODEL_BLOCK);
		nr = (1 + walk_below(w, MODEL_BLOCKS)) * MODEL_BLOCK;
	}
	w->plan_idx = idx;
	w->plan_end = min(idx + nr, MODEL_WINDOW);
	w->plan_ascends = false;
}

static void walk_draw_plan(struct walk *w, struct pte_step *step)
{
	static const enum pte_op_id clears[] = {
		PTE_OP_GET_AND_CLEAR_FULL, PTE_OP_CLEAR_FULL,
		PTE_OP_GET_AND_CLEAR_PTES, PTE_OP_CLEAR_PTES,
	};
	unsigned int left = w->plan_end - w->plan_idx, i;

	for (i = w->plan_idx; i < w->plan_end && !w->plan_ascends; i++) {
		if (w->c.model.entry[i].kind < MODEL_PROTNONE)
			continue;
		step->op = clears[walk_below(w, ARRAY_SIZE(clears))];
		step->idx = i;
		step->nr = min(pte_model_batch(&w->c.model, i), w->plan_end - i);
		return;
	}

	step->op = PTE_OP_SET_PTES;
	step->idx = w->plan_idx;
	if (!w->plan_ascends) {
		walk_draw_entry(w, step->idx, &step->entry);
		step->nr = min(left, walk_draw_room(w, step));
		w->plan_ascends = left <= WALK_RUN && walk_chance(w, 15);
	} else if (!walk_draw_neighbour(w, step->idx, &step->entry)) {
		walk_draw_entry(w, step->idx, &step->entry);
	}
	if (w->plan_ascends)
		step->nr = 1;
	w->plan_idx += step->nr;
	w->plan_ascends &= w->plan_idx < w->plan_end;
	if (!w->plan_ascends)
		w->plan_end = w->plan_idx;
}

static void walk_draw_set(struct walk *w, struct pte_step *step)
{
	if (!walk_chance(w, 85) ||
	    !walk_draw_neighbour(w, step->idx, &step->entry))
		walk_draw_entry(w, step->idx, &step->entry);
	if (walk_chance(w, 50))
		step->nr = min(walk_draw_nr(w, step->idx), walk_draw_room(w, step));
}

static void walk_try_draw(struct walk *w, struct pte_step *step)
{
	*step = (struct pte_step){
		.op = walk_draw_op(w),
		.flags = walk_below(w, 256),
		.id = w->nr,
		.idx = walk_draw_idx(w),
		.nr = 1,
	};

	if (w->plan_idx >= w->plan_end && walk_chance(w, 12))
		walk_plan(w);
	if (w->plan_idx < w->plan_end && walk_chance(w, 80))
		walk_draw_plan(w, step);
	else if (step->op == PTE_OP_SET_PTES)
		walk_draw_set(w, step);
	else if (step->op == PTE_OP_CLEAR_NONPRESENT)
		step->nr = min(walk_draw_nr(w, step->idx),
			       pte_model_room(&w->c.model, step->idx));
	else if (w->c.backend->ops[step->op].takes_range)
		step->nr = min(walk_draw_nr(w, step->idx),
			       pte_model_batch(&w->c.model, step->idx));

	/*
	 * The contiguous bit leaks only if the architecture has it, and not
	 * often.
	 */
	if (pte_step_writes(step) &&
	    (!walk_has(w, MODEL_HAS_LEAK, 25) ||
	     step->entry.kind == MODEL_SWAP))
		step->flags &= ~PTE_STEP_LEAK;
	step->flags &= ~PTE_STEP_GIVEN;
	if (step->op == PTE_OP_ACCESS_FLAGS && walk_chance(w, 75))
		step->flags &= ~(PTE_STEP_WRITE | PTE_STEP_LESS);
	if (step->op == PTE_OP_ACCESS_FLAGS && !(w->c.model.has & MODEL_HAS_MERGE)) {
		step->flags &= ~PTE_STEP_LESS;
		step->flags |= PTE_STEP_FLUSH;
	}
}

/**
 * walk_draw() - choose a random step that is legal
 * @w: the walk
 * @step: gets the step
 */
void walk_draw(struct walk *w, struct pte_step *step)
{
	do {
		walk_try_draw(w, step);
	} while (!pte_step_legal(&w->c.model, step));
}
