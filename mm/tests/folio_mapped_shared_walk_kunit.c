// SPDX-License-Identifier: GPL-2.0
/*
 * Is a large folio mapped by one mm, or by several? All orders of events.
 *
 * Four mms map and unmap up to three pages each, in every order. The case
 * visits all states that can be reached, makes every step from each state, and
 * compares the folio with the model. Random walks cover larger folios and more
 * mms.
 *
 * Not covered: races (folio_mapped_race), and all that the head of
 * folio_mapped_shared lists as not covered.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests --arch=arm64 \
 *	'folio_mapped_shared_walk' \
 *	--kernel_args folio_mapped_shared_walk_kunit.seed=N \
 *	--kernel_args folio_mapped_shared_walk_kunit.steps=10000000
 *
 * Without a seed, each boot chooses another seed.
 */

#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/rmap.h>
#include <linux/slab.h>

#include "folio_mapped.h"

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the walks, 0 for another seed at each boot");

static ulong steps = 100000;
module_param(steps, ulong, 0444);
MODULE_PARM_DESC(steps, "number of steps of each walk");

/* The exhaustive search: number of mms, and of mappings of each. */
#define STATE_MMS	4
#define STATE_MAPPED	3
#define STATE_ORDER	2

/* Map or unmap, and return the state of the folio. */
static const char *mapped_step(struct mapped_model *model,
			       const struct mapped_mms *mms, struct folio *folio,
			       int mm, int nr)
{
	int got;

	mapped_model_change(model, mm, nr);
	if (nr > 0)
		got = pgtable_kunit_add_mapcount(folio, nr, mms->vma[mm]);
	else
		got = pgtable_kunit_sub_mapcount(folio, -nr, mms->vma[mm]);
	if (got != mapped_total(model))
		return "returned mapcount";
	return mapped_wrong(model, mms, folio);
}

/*
 * A state in 20 bits: the mappings of each mm, the mms in the slots, their
 * counts, and two flags. The tracked mms are those in the slots.
 */
#define STATE_BITS	20

static u32 state_encode(const struct mapped_model *model, struct folio *folio)
{
	struct pgtable_kunit_owners owners = pgtable_kunit_owners(folio);
	u32 state = 0;
	int i;

	for (i = 0; i < STATE_MMS; i++)
		state = state << 2 | model->mapped[i];
	for (i = 0; i < 2; i++)
		state = state << 5 | owners.id[i] << 2 | owners.count[i];
	return state << 2 | owners.shared << 1 | model->crowded;
}

static void state_decode(u32 state, struct mapped_model *model,
			 struct folio *folio)
{
	struct pgtable_kunit_owners owners = {};
	int i;

	memset(model, 0, sizeof(*model));
	model->crowded = state & 1;
	model->sticky = state >> 1 & 1;
	owners.shared = model->sticky;
	state >>= 2;
	for (i = 1; i >= 0; i--, state >>= 5) {
		owners.id[i] = state >> 2 & 7;
		owners.count[i] = state & 3;
		if (owners.id[i])
			model->tracked[owners.id[i] - 1] = owners.count[i];
	}
	for (i = STATE_MMS - 1; i >= 0; i--, state >>= 2)
		model->mapped[i] = state & 3;
	owners.mapcount = mapped_total(model);
	pgtable_kunit_restore_owners(folio, &owners);
}

/**
 * struct mapped_state - a state that has been reached
 * @state: which, as a number
 * @from: index of the state before
 * @mm: which mm made the step
 * @nr: the number of pages
 */
struct mapped_state {
	u32 state;
	u32 from;
	s8 mm;
	s8 nr;
};

/**
 * struct mapped_states - the states that have been reached
 * @seen: by their number
 * @nr: how many
 * @found: in the order in which they were found
 */
struct mapped_states {
	unsigned long *seen;
	unsigned int nr;
	struct mapped_state *found;
};

static void states_free(void *data)
{
	struct mapped_states *states = data;

	kvfree(states->seen);
	kvfree(states->found);
}

static struct mapped_states *states_alloc(struct kunit *test)
{
	const size_t nr = 1UL << STATE_BITS;
	struct mapped_states *states;

	states = kunit_kzalloc(test, sizeof(*states), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, states);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, states_free, states));
	states->seen = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	states->found = kvcalloc(nr, sizeof(*states->found), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, states->seen && states->found);
	return states;
}

/* The steps that lead to the state with that index. */
static void states_print(struct kunit *test, const struct mapped_states *states,
			 u32 index)
{
	const struct mapped_state *found = &states->found[index];

	if (!index)
		return;
	states_print(test, states, found->from);
	kunit_err(test, "  %c %s %d\n", 'A' + found->mm,
		  found->nr > 0 ? "maps" : "unmaps", abs(found->nr));
}

/*
 * From each state that can be reached, each of four mms maps or unmaps one to
 * three pages. There are only some 10,000 states, so this covers every sequence
 * of such steps, of any length. After a failure the case prints the steps that
 * lead to the state.
 */
static void folio_mapcount_every_order(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, STATE_ORDER);
	struct pgtable_kunit_owners clean = pgtable_kunit_owners(folio);
	struct mapped_states *states = states_alloc(test);
	const struct mapped_mms *mms = test->priv;
	unsigned int transitions = 0, shared = 0, wrongly = 0;
	struct mapped_model model = {};
	const char *wrong;
	u32 at;
	int mm, nr;

	states->found[states->nr++].state = state_encode(&model, folio);
	__set_bit(states->found[0].state, states->seen);
	for (at = 0; at < states->nr; at++) {
		state_decode(states->found[at].state, &model, folio);
		wrong = mapped_wrong(&model, mms, folio);
		KUNIT_ASSERT_NULL_MSG(test, wrong, "state %05x: %s",
				      states->found[at].state, wrong);
		shared += pgtable_kunit_mapped_shared(folio);
		wrongly += pgtable_kunit_mapped_shared(folio) &&
			   mapped_owners(&model) == 1;

		for (mm = 0; mm < STATE_MMS; mm++) {
			for (nr = -STATE_MAPPED; nr <= STATE_MAPPED; nr++) {
				u32 next;

				state_decode(states->found[at].state, &model, folio);
				if (!nr || model.mapped[mm] + nr < 0 ||
				    model.mapped[mm] + nr > STATE_MAPPED)
					continue;
				transitions++;
				wrong = mapped_step(&model, mms, folio, mm, nr);
				if (wrong) {
					states_print(test, states, at);
					mapped_check(test, &model, folio,
						     "%c maps %d", 'A' + mm, nr);
					pgtable_kunit_restore_owners(folio, &clean);
					KUNIT_FAIL_AND_ABORT(test, "%s", wrong);
				}

				next = state_encode(&model, folio);
				if (__test_and_set_bit(next, states->seen))
					continue;
				states->found[states->nr++] =
					(struct mapped_state){ next, at, mm, nr };
			}
		}
		cond_resched();
	}
	pgtable_kunit_restore_owners(folio, &clean);

	/*
	 * If no state had an mm without a slot, there would be fewer states.
	 */
	KUNIT_EXPECT_GT(test, states->nr, 1000);
	kunit_info(test, "%u states, %u steps; %u states are shared, %u of them by one mm\n",
		   states->nr, transitions, shared, wrongly);
}

static const struct mapped_walk {
	unsigned int order;
	unsigned int mms;
} mapped_walks[] = {
	{ 1, 3 }, { 2, 2 }, { 2, 6 }, { 4, 3 }, { 4, 6 }, { 9, 2 }, { 9, 6 },
	{ MAPPED_ORDER_MAX, 4 },
};

static void mapped_walk_desc(const struct mapped_walk *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u, %u mms", p->order, p->mms);
}

KUNIT_ARRAY_PARAM(mapped_walk, mapped_walks, mapped_walk_desc);

/*
 * Random steps of up to six mms, on folios of all sizes. Each mm has up to
 * twice as many mappings as there are pages. After every step the folio matches
 * the model. With two mms the answer is always exact.
 */
static void folio_mapcount_random(struct kunit *test)
{
	const struct mapped_walk *p = test->param_value;
	struct folio *folio = pgtable_kunit_folio_alloc(test, p->order);
	struct pgtable_kunit_owners clean = pgtable_kunit_owners(folio);
	const struct mapped_mms *mms = test->priv;
	const int pages = folio_nr_pages(folio);
	struct mapped_model model = {};
	unsigned long step, inexact = 0, alone = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, seed + (p->order << 3 | p->mms));
	for (step = 0; step < steps; step++) {
		int mm = prandom_u32_state(&rnd) % p->mms;
		u32 draw = prandom_u32_state(&rnd);
		int mapped = model.mapped[mm], nr;
		const char *wrong;

		/*
		 * In some phases mms map and unmap. In other phases they only
		 * unmap, so that few mappings are left.
		 */
		if (step & 32 && !mapped)
			continue;
		if (mapped && (draw & 1 || step & 32 || mapped > pages))
			nr = -min(draw & 2 ? mapped : 1 + (int)(draw >> 8) % mapped,
				  pages);
		else
			nr = draw & 4 ? pages : 1 + (int)(draw >> 8) % pages;
		wrong = mapped_step(&model, mms, folio, mm, nr);
		if (wrong) {
			mapped_check(test, &model, folio,
				     "seed %lu, step %lu: %c maps %d", seed, step,
				     'A' + mm, nr);
			pgtable_kunit_restore_owners(folio, &clean);
			KUNIT_FAIL_AND_ABORT(test, "%s", wrong);
		}
		inexact += model.crowded;
		alone += mapped_owners(&model) == 1;
		if (!(step & 1023))
			cond_resched();
	}
	if (p->mms == 2)
		KUNIT_EXPECT_EQ(test, inexact, 0);
	pgtable_kunit_restore_owners(folio, &clean);
	kunit_info(test, "seed %lu, %lu steps; the first mapping without a slot after %lu\n",
		   seed, steps, inexact);
	PGTABLE_KUNIT_DID(test, alone, "steps after which one mm is left");
}

static int mapped_walk_suite_init(struct kunit_suite *suite)
{
	seed = seed ?: get_random_u32();
	return pgtable_kunit_suite_init(suite);
}

static struct kunit_case mapped_walk_cases[] = {
	KUNIT_CASE_SLOW(folio_mapcount_every_order),
	KUNIT_CASE_PARAM_ATTR(folio_mapcount_random, mapped_walk_gen_params,
			      PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite mapped_walk_suite = {
	.name = "folio_mapped_shared_walk",
	.suite_init = mapped_walk_suite_init,
	.init = mapped_fake_init,
	.test_cases = mapped_walk_cases,
};

kunit_test_suite(mapped_walk_suite);

MODULE_DESCRIPTION("KUnit tests for the owners of a mapped folio, all orders");
MODULE_LICENSE("GPL");
