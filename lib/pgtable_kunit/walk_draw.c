// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over a page table: choosing the steps.
 *
 * Evenly drawn steps would hardly ever fill a block with entries that fit
 * together. So places are mostly near the edges of blocks, pages mostly fit
 * their addresses, and new entries often continue their neighbours.
 */

#include <linux/hash.h>

#include "walk.h"

static const struct {
	const char *name;
	unsigned int weight;
	bool ranges;		/* takes more than one entry */
} walk_ops[WALK_OPS] = {
	[WALK_SET]		  = { "set_ptes", 6, true },
	[WALK_PTE_CLEAR]	  = { "pte_clear", 2 },
	[WALK_GET_AND_CLEAR]	  = { "ptep_get_and_clear", 2 },
	[WALK_GET_AND_CLEAR_FULL] = { "get_and_clear_full_ptes", 3, true },
	[WALK_CLEAR_FULL]	  = { "clear_full_ptes", 2, true },
	[WALK_GET_AND_CLEAR_PTES] = { "get_and_clear_ptes", 1, true },
	[WALK_CLEAR_PTES]	  = { "clear_ptes", 1, true },
	[WALK_CLEAR_NONPRESENT]	  = { "clear_nonpresent_ptes", 1, true },
	[WALK_MODIFY_PROT]	  = { "modify_prot_*", 4, true },
	[WALK_WRPROTECT]	  = { "wrprotect_ptes", 4, true },
	[WALK_SET_WRPROTECT]	  = { "ptep_set_wrprotect", 2 },
	[WALK_TEST_YOUNG]	  = { "ptep_test_and_clear_young", 3 },
	[WALK_FLUSH_YOUNG]	  = { "ptep_clear_flush_young", 3 },
	[WALK_TEST_YOUNG_PTES]	  = { "test_and_clear_young_ptes", 2, true },
	[WALK_FLUSH_YOUNG_PTES]	  = { "clear_flush_young_ptes", 2, true },
	[WALK_CLEAR_YOUNG_DIRTY]  = { "clear_young_dirty_ptes", 4, true },
	[WALK_ACCESS_FLAGS]	  = { "ptep_set_access_flags", 8 },
	[WALK_GET]		  = { "ptep_get", 4 },
	[WALK_GET_LOCKLESS]	  = { "ptep_get_lockless", 4 },
	[WALK_HINT]		  = { "pte_batch_hint", 2 },
	[WALK_HARDWARE]		  = { "hardware", 12 },
};

/**
 * walk_op_name() - the name of a function
 * @op: which
 *
 * Return: its name.
 */
const char *walk_op_name(enum walk_op op)
{
	return walk_ops[op].name;
}

/* A number below @end. */
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
 * @seed: what to draw it from
 *
 * The window is at the begin of the table, at its end, or somewhere between.
 */
void walk_seed(struct walk *w, u64 seed)
{
	static const unsigned int bases[] = {
		0, PTRS_PER_PTE - WALK_WINDOW,
		ALIGN_DOWN((PTRS_PER_PTE - WALK_WINDOW) / 2, WALK_BLOCK),
	};
	unsigned int i;

	w->seed = seed;
	w->nr = 0;
	w->plan_idx = 0;
	w->plan_end = 0;
	/* Neighbouring seeds give different walks. */
	prandom_seed_state(&w->rnd, hash_64(seed, 32));
	for (i = 0; i < 16; i++)
		prandom_u32_state(&w->rnd);
	w->base = bases[walk_below(w, ARRAY_SIZE(bases))];
	walk_reset(w);
}

/* The first entry: usually one where something can change. */
static unsigned int walk_draw_idx(struct walk *w)
{
	static const unsigned int edges[] = {
		0, 1, WALK_BLOCK / 2, WALK_BLOCK - 2, WALK_BLOCK - 1,
		WALK_BLOCK - 1,
	};

	if (walk_chance(w, 40))
		return walk_below(w, WALK_WINDOW);
	return walk_below(w, WALK_BLOCKS) * WALK_BLOCK +
	       edges[walk_below(w, ARRAY_SIZE(edges))];
}

static unsigned int walk_draw_nr(struct walk *w, unsigned int idx)
{
	unsigned int to_edge = WALK_BLOCK - idx % WALK_BLOCK;

	switch (walk_below(w, 6)) {
	case 0:
		return 1;
	case 1:
		return to_edge;
	case 2:
		return to_edge + walk_below(w, WALK_BLOCKS) * WALK_BLOCK;
	case 3:
		return to_edge + WALK_BLOCK - 1;
	default:
		return 1 + walk_below(w, 2 * WALK_BLOCK);
	}
}

static bool walk_has(struct walk *w, unsigned int what, unsigned int percent)
{
	return w->model.has & what && walk_chance(w, percent);
}

static void walk_draw_dirty(struct walk *w, struct walk_entry *e)
{
	e->young = walk_chance(w, 50);
	e->sw_dirty = walk_chance(w, 25);
	e->hw_dirty = e->write && walk_chance(w, 25);
	e->soft_dirty = walk_has(w, WALK_HAS_SOFT_DIRTY, 40);
}

/* An entry that continues its neighbour, if there is one. */
static bool walk_draw_neighbour(struct walk *w, unsigned int idx,
				struct walk_entry *e)
{
	const struct walk_entry *near = &w->model.entry[idx];

	if (idx && near[-1].kind >= WALK_PROTNONE &&
	    near[-1].page + 1 < WALK_PAGES) {
		*e = near[-1];
		e->page++;
	} else if (idx < WALK_WINDOW - 1 && near[1].kind >= WALK_PROTNONE &&
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

/* Pages usually fit their addresses, or there would be no blocks. */
static void walk_draw_entry(struct walk *w, unsigned int idx,
			    struct walk_entry *e)
{
	*e = (struct walk_entry){
		.kind = WALK_VALID,
		.write = walk_chance(w, 60),
		.exec = walk_chance(w, 3),
		.nc = walk_has(w, WALK_HAS_NC, 3),
		.uffd = walk_has(w, WALK_HAS_UFFD, 3),
		.special = walk_has(w, WALK_HAS_SPECIAL, 2),
	};
	if (walk_chance(w, 5))
		e->kind = WALK_SWAP;
	else if (walk_chance(w, 5))
		e->kind = WALK_PROTNONE;
	if (e->uffd || e->kind != WALK_VALID)
		e->write = false;

	if (walk_chance(w, 85))
		e->page = walk_below(w, WALK_PAGES / WALK_BLOCK) * WALK_BLOCK +
			  idx % WALK_BLOCK;
	else
		e->page = walk_below(w, WALK_PAGES);
	/* Choose pages that cannot fit their addresses by chance. */
	if (w->shift && (e->page + w->shift) % WALK_BLOCK == idx % WALK_BLOCK)
		e->page ^= 1;
	walk_draw_dirty(w, e);
}

/*
 * As many entries as one call can set: not present before, with pages of one
 * folio.
 */
static unsigned int walk_draw_room(struct walk *w, const struct walk_step *step)
{
	unsigned int max_nr = min(walk_room(&w->model, step->idx),
				  w->model.set_max);
	const struct walk_entry *e = &step->entry;
	unsigned int nr = 1;

	if (e->kind == WALK_SWAP || e->special)
		return 1;
	if (e->kind == WALK_PROTNONE)
		max_nr = min(max_nr, w->model.none_max);
	while (nr < max_nr && e->page + nr < WALK_PAGES &&
	       walk_same_folio(e->page, e->page + nr))
		nr++;
	return nr;
}

static enum walk_op walk_draw_op(struct walk *w)
{
	unsigned int sum = 0, i, at;

	for (i = 0; i < WALK_OPS; i++)
		sum += walk_ops[i].weight;
	at = walk_below(w, sum);
	for (i = 0; at >= walk_ops[i].weight; i++)
		at -= walk_ops[i].weight;
	return i;
}

/**
 * walk_takes_range() - whether a function takes more than one entry
 * @op: which
 *
 * Return: whether it does, in this kernel.
 */
bool walk_takes_range(enum walk_op op)
{
	if (op == WALK_MODIFY_PROT)
		return PGTABLE_KUNIT_MODIFY_PROT_RANGES;
	if (op == WALK_TEST_YOUNG_PTES)
		return PGTABLE_KUNIT_YOUNG_RANGES;
	if (op == WALK_FLUSH_YOUNG_PTES)
		return PGTABLE_KUNIT_YOUNG_RANGES;
	return walk_ops[op].ranges;
}

/* The longest run of entries that are set one by one. */
#define WALK_RUN	32

/*
 * A plan is a range that will be filled. First its entries are cleared, batch
 * by batch, and then the range is set as a whole, or entry by entry in
 * ascending order. Other steps come in between.
 */
static void walk_plan(struct walk *w)
{
	unsigned int idx = walk_draw_idx(w), nr = walk_draw_nr(w, idx);

	if (walk_chance(w, 70)) {
		idx = ALIGN_DOWN(idx, WALK_BLOCK);
		nr = (1 + walk_below(w, WALK_BLOCKS)) * WALK_BLOCK;
	}
	w->plan_idx = idx;
	w->plan_end = min(idx + nr, WALK_WINDOW);
	w->plan_ascends = false;
}

static void walk_draw_plan(struct walk *w, struct walk_step *step)
{
	static const enum walk_op clears[] = {
		WALK_GET_AND_CLEAR_FULL, WALK_CLEAR_FULL,
		WALK_GET_AND_CLEAR_PTES, WALK_CLEAR_PTES,
	};
	unsigned int left = w->plan_end - w->plan_idx, i;

	for (i = w->plan_idx; i < w->plan_end && !w->plan_ascends; i++) {
		if (w->model.entry[i].kind < WALK_PROTNONE)
			continue;
		step->op = clears[walk_below(w, ARRAY_SIZE(clears))];
		step->idx = i;
		step->nr = min(walk_batch(&w->model, i), w->plan_end - i);
		return;
	}

	step->op = WALK_SET;
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

static void walk_draw_set(struct walk *w, struct walk_step *step)
{
	if (!walk_chance(w, 85) ||
	    !walk_draw_neighbour(w, step->idx, &step->entry))
		walk_draw_entry(w, step->idx, &step->entry);
	if (walk_chance(w, 50))
		step->nr = min(walk_draw_nr(w, step->idx), walk_draw_room(w, step));
}

static void walk_try_draw(struct walk *w, struct walk_step *step)
{
	*step = (struct walk_step){
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
	else if (step->op == WALK_SET)
		walk_draw_set(w, step);
	else if (step->op == WALK_CLEAR_NONPRESENT)
		step->nr = min(walk_draw_nr(w, step->idx),
			       walk_room(&w->model, step->idx));
	else if (walk_takes_range(step->op))
		step->nr = min(walk_draw_nr(w, step->idx),
			       walk_batch(&w->model, step->idx));

	/* The contiguous bit leaks only if there is one, and not often. */
	if ((step->op == WALK_SET || step->op == WALK_MODIFY_PROT ||
	     step->op == WALK_ACCESS_FLAGS) &&
	    (!walk_has(w, WALK_HAS_LEAK, 25) ||
	     step->entry.kind == WALK_SWAP))
		step->flags &= ~WALK_LEAK;
	if (step->op == WALK_ACCESS_FLAGS && walk_chance(w, 75))
		step->flags &= ~(WALK_WRITE | WALK_LESS);
	if (step->op == WALK_ACCESS_FLAGS && !(w->model.has & WALK_HAS_MERGE)) {
		step->flags &= ~WALK_LESS;
		step->flags |= WALK_FLUSH;
	}
}

/**
 * walk_draw() - draw a step that is legal
 * @w: the walk
 * @step: where to put it
 */
void walk_draw(struct walk *w, struct walk_step *step)
{
	do {
		walk_try_draw(w, step);
	} while (!walk_step_legal(&w->model, step));
}

static size_t walk_describe_entry(const struct walk_entry *e, char *buf,
				  size_t size)
{
	if (e->kind == WALK_SWAP)
		return scnprintf(buf, size, " swap entry %u", e->page);
	return scnprintf(buf, size, " page %u%s%s%s%s%s%s %s%s%s%s", e->page,
			 e->kind == WALK_PROTNONE ? " PROT_NONE" : "",
			 e->write ? " rw" : " ro", e->exec ? " exec" : "",
			 e->nc ? " uncached" : "", e->uffd ? " uffd" : "",
			 e->special ? " special" : "",
			 e->young ? "young" : "old",
			 e->hw_dirty ? " hw-dirty" : "",
			 e->sw_dirty ? " sw-dirty" : "",
			 e->soft_dirty ? " soft-dirty" : "");
}

/**
 * walk_describe() - describe a step in words
 * @step: the step
 * @buf: where to put them
 * @size: its size
 */
void walk_describe(const struct walk_step *step, char *buf, size_t size)
{
	unsigned int flags = step->flags;
	size_t len;

	len = scnprintf(buf, size, "%s idx %u", walk_op_name(step->op),
			step->idx);
	if (step->nr > 1)
		len += scnprintf(buf + len, size - len, " nr %u", step->nr);

	switch (step->op) {
	case WALK_SET:
		len += walk_describe_entry(&step->entry, buf + len, size - len);
		if (flags & WALK_LEAK)
			scnprintf(buf + len, size - len, " with PTE_CONT");
		break;
	case WALK_GET_AND_CLEAR_FULL:
	case WALK_CLEAR_FULL:
		scnprintf(buf + len, size - len, " full %u",
			  !!(flags & WALK_FULL));
		break;
	case WALK_MODIFY_PROT:
		scnprintf(buf + len, size - len, " to %s%s",
			  flags & WALK_NOACCESS ? "PROT_NONE" :
			  flags & WALK_WRITE ? "rw" : "ro",
			  flags & WALK_LEAK ? " with PTE_CONT" : "");
		break;
	case WALK_CLEAR_YOUNG_DIRTY:
	case WALK_HARDWARE:
		scnprintf(buf + len, size - len, "%s%s",
			  flags & WALK_YOUNG ? " young" : "",
			  flags & WALK_DIRTY ? " dirty" : "");
		break;
	case WALK_ACCESS_FLAGS:
		scnprintf(buf + len, size - len, " %s%s%s%s, dirty=%u%s",
			  flags & WALK_LESS ? "old clean ro" : "as it is",
			  flags & WALK_YOUNG ? " +young" : "",
			  flags & WALK_DIRTY ? " +dirty" : "",
			  flags & WALK_WRITE ? " +rw" : "",
			  !!(flags & WALK_FLUSH),
			  flags & WALK_LEAK ? " with PTE_CONT" : "");
		break;
	}
}
