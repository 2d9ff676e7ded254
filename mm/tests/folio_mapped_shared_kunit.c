// SPDX-License-Identifier: GPL-2.0
/*
 * Is a large folio mapped by one mm, or by several? Directed tests.
 *
 * A folio has two slots for owners, each with the ID of an mm and the number of
 * its mappings. It also has a flag for "maybe several owners". The functions
 * that update the slots are inline, and of an mm they read only the ID. So the
 * cases call them with mms that have only an ID. Each step of a script names
 * the slots that it should leave. The cases also compare the folio with a
 * model.
 *
 * Not covered: all orders of steps (folio_mapped_shared_walk), races
 * (folio_mapped_race), the rmap functions that call these functions
 * (folio_mapped_rmap), 32-bit kernels, where a slot can overflow, and how
 * reclaim, migration and copy-on-write use the answer.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests --arch=arm64 \
 *	'folio_mapped_shared'
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/rmap.h>
#include <linux/slab.h>

#include "folio_mapped.h"

/* As many pages as the folio has. */
#define ALL	1000

/**
 * struct mapped_step - one step of a script
 * @mm: the mm that maps or unmaps: A, B, C
 * @nr: how many pages; negative to unmap them
 * @owner: the mms in the slots afterwards, or 0
 * @count: the number of mappings in each slot
 * @shared: whether the folio then counts as shared
 */
struct mapped_step {
	char mm;
	int nr;
	char owner[2];
	int count[2];
	bool shared;
};

/* The last step has no mm. */
#define MAPPED_STEPS	11

static const struct mapped_script {
	const char *desc;
	struct mapped_step step[MAPPED_STEPS];
} mapped_scripts[] = {
	{ "one mm, in parts", {
		{ 'A', 1, { 'A' }, { 1 } },
		{ 'A', 2, { 'A' }, { 3 } },
		{ 'A', 1, { 'A' }, { 4 } },
		{ 'A', -3, { 'A' }, { 1 } },
		{ 'A', -1 },
	} },
	{ "one mm, more than once", {
		{ 'A', ALL, { 'A' }, { ALL } },
		{ 'A', ALL, { 'A' }, { 2 * ALL } },
		{ 'A', -ALL, { 'A' }, { ALL } },
		{ 'A', -ALL },
	} },
	{ "a second mm comes and goes", {
		{ 'A', ALL, { 'A' }, { ALL } },
		{ 'B', 1, { 'A', 'B' }, { ALL, 1 }, true },
		{ 'B', -1, { 'A' }, { ALL } },
		{ 'B', ALL, { 'A', 'B' }, { ALL, ALL }, true },
		{ 'B', -1, { 'A', 'B' }, { ALL, ALL - 1 }, true },
		{ 'B', 1 - ALL, { 'A' }, { ALL } },
		{ 'A', -ALL },
	} },
	{ "the first mm goes, and comes back", {
		{ 'A', 4, { 'A' }, { 4 } },
		{ 'B', 2, { 'A', 'B' }, { 4, 2 }, true },
		{ 'A', -4, { 0, 'B' }, { 0, 2 } },
		{ 'B', 1, { 0, 'B' }, { 0, 3 } },
		{ 'A', 1, { 'A', 'B' }, { 1, 3 }, true },
		{ 'A', -1, { 0, 'B' }, { 0, 3 } },
		{ 'C', 2, { 'C', 'B' }, { 2, 3 }, true },
		{ 'B', -3, { 'C' }, { 2 } },
		{ 'C', -2 },
	} },
	{ "mapped again after nobody did", {
		{ 'A', ALL, { 'A' }, { ALL } },
		{ 'A', -ALL },
		{ 'A', 2, { 'A' }, { 2 } },
		{ 'B', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'A', -2, { 0, 'B' }, { 0, 1 } },
		{ 'B', -1 },
		{ 'B', 3, { 'B' }, { 3 } },
		{ 'B', -3 },
	} },
	{ "a third mm goes first", {
		{ 'A', 2, { 'A' }, { 2 } },
		{ 'B', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'C', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'C', 3, { 'A', 'B' }, { 2, 1 }, true },
		{ 'C', -4, { 'A', 'B' }, { 2, 1 }, true },
		{ 'B', -1, { 'A' }, { 2 } },
		{ 'A', -2 },
	} },
	{ "a third mm goes last but one", {
		{ 'A', 2, { 'A' }, { 2 } },
		{ 'B', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'C', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'B', -1, { 'A' }, { 2 }, true },
		{ 'C', -1, { 'A' }, { 2 } },
		{ 'A', -2 },
	} },
	{ "a third mm stays, in no slot", {
		{ 'A', 2, { 'A' }, { 2 } },
		{ 'B', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'C', 3, { 'A', 'B' }, { 2, 1 }, true },
		{ 'A', -2, { 0, 'B' }, { 0, 1 }, true },
		/*
		 * C alone maps the folio, but the kernel cannot know it:
		 * "shared" is allowed.
		 */
		{ 'B', -1, {}, {}, true },
		{ 'C', -1, {}, {}, true },
		/* One mapping cannot belong to two mms. */
		{ 'C', -1, {}, {} },
		{ 'C', -1 },
	} },
	{ "a third mm gets a slot later", {
		{ 'A', 1, { 'A' }, { 1 } },
		{ 'B', 1, { 'A', 'B' }, { 1, 1 }, true },
		{ 'C', 2, { 'A', 'B' }, { 1, 1 }, true },
		{ 'A', -1, { 0, 'B' }, { 0, 1 }, true },
		{ 'C', 1, { 'C', 'B' }, { 1, 1 }, true },
		{ 'B', -1, { 'C' }, { 1 }, true },
		{ 'C', -3 },
	} },
	{ "a slot with fewer than its mm unmaps", {
		{ 'A', 2, { 'A' }, { 2 } },
		{ 'B', 1, { 'A', 'B' }, { 2, 1 }, true },
		{ 'C', 4, { 'A', 'B' }, { 2, 1 }, true },
		{ 'B', -1, { 'A' }, { 2 }, true },
		{ 'C', 2, { 'A', 'C' }, { 2, 2 }, true },
		{ 'C', -3, { 'A' }, { 2 }, true },
		{ 'C', -3, { 'A' }, { 2 } },
		{ 'A', -2 },
	} },
	{ "a slot with exactly what its mm unmaps", {
		{ 'A', 1, { 'A' }, { 1 } },
		{ 'B', 1, { 'A', 'B' }, { 1, 1 }, true },
		{ 'C', 4, { 'A', 'B' }, { 1, 1 }, true },
		{ 'B', -1, { 'A' }, { 1 }, true },
		{ 'C', 2, { 'A', 'C' }, { 1, 2 }, true },
		{ 'C', -2, { 'A' }, { 1 }, true },
		{ 'C', 1, { 'A', 'C' }, { 1, 1 }, true },
		{ 'A', -1, { 0, 'C' }, { 0, 1 }, true },
		{ 'C', -4 },
		{ 'C', -1 },
	} },
};

KUNIT_ARRAY_PARAM_DESC(mapped_script, mapped_scripts, desc);

/*
 * Small IDs, the largest ones, and IDs that differ in single bits; 0 stands for
 * "none".
 */
static const unsigned int mapped_ids[][MAPPED_MMS] = {
	{ 1, 2, 3, 4, 5, 6 },
	{
		PGTABLE_KUNIT_MM_ID_MAX, PGTABLE_KUNIT_MM_ID_MAX - 1,
		PGTABLE_KUNIT_MM_ID_MAX / 2 + 1, 1, 2, 3,
	},
	{ 0x5555, 0x2aaa, 0x7fff, 1, 2, 3 },
};

/* Orders from the smallest that the slots fit into. */
static unsigned int mapped_next_order(unsigned int order)
{
	return order == 2 ? 4 : order == 4 ? 9 : order == 9 ? MAPPED_ORDER_MAX : 99;
}

/* Convert a count of a step to the pages of a folio of @pages. */
static int mapped_pages(int nr, int pages)
{
	int all = (nr + (nr < 0 ? -ALL / 2 : ALL / 2)) / ALL;

	return all * pages + (nr - all * ALL);
}

/* Does the folio have the state that the step requires? */
static bool mapped_step_check(struct kunit *test, const struct mapped_step *step,
			      struct folio *folio, const unsigned int *ids)
{
	struct pgtable_kunit_owners owners = pgtable_kunit_owners(folio);
	bool right = pgtable_kunit_mapped_shared(folio) == step->shared;
	int i, pages = folio_nr_pages(folio);

	for (i = 0; i < 2; i++) {
		unsigned int id = step->owner[i] ? ids[step->owner[i] - 'A'] : 0;

		right &= owners.id[i] == id;
		right &= owners.count[i] == mapped_pages(step->count[i], pages);
	}
	if (!right)
		KUNIT_FAIL(test,
			   "order %u, %c maps %d pages: slots %x:%d %x:%d, shared %d",
			   folio_order(folio), step->mm, step->nr, owners.id[0],
			   owners.count[0], owners.id[1], owners.count[1],
			   pgtable_kunit_mapped_shared(folio));
	return right;
}

/*
 * The script names the slots and the answer after each step. The case tries
 * orders from 2 to the largest. It tries IDs up to the largest, because an ID
 * shares its word with a flag. In the first round the first mapping of the new
 * folio is set, and in the second round it is added. Afterwards the folio is as
 * new.
 */
static void folio_mapcount_script(struct kunit *test)
{
	const struct mapped_script *script = test->param_value;
	struct mapped_mms *mms = test->priv;
	unsigned int order, ids, set;

	for (order = 2; order <= MAPPED_ORDER_MAX; order = mapped_next_order(order)) {
		struct folio *folio = pgtable_kunit_folio_alloc(test, order);
		const int pages = folio_nr_pages(folio);

		for (ids = 0; ids < 2 * ARRAY_SIZE(mapped_ids); ids++) {
			const unsigned int *id = mapped_ids[ids / 2];
			const struct mapped_step *step = script->step;
			struct mapped_model model = {};

			mapped_mms_ids(mms, id);
			for (set = ids & 1; step->mm; step++, set = 0) {
				struct vm_area_struct *vma = mms->vma[step->mm - 'A'];
				int nr = mapped_pages(step->nr, pages), got;

				mapped_model_change(&model, step->mm - 'A', nr);
				got = mapped_total(&model);
				if (set)
					pgtable_kunit_set_mapcount(folio, nr, vma);
				else if (nr > 0)
					got = pgtable_kunit_add_mapcount(folio, nr,
									 vma);
				else
					got = pgtable_kunit_sub_mapcount(folio, -nr,
									 vma);
				KUNIT_EXPECT_EQ(test, got, mapped_total(&model));
				pgtable_kunit_tried++;
				if (!mapped_step_check(test, step, folio, id) ||
				    !mapped_check(test, &model, folio,
						  "%c maps %d pages", step->mm, nr))
					return;
			}
			KUNIT_EXPECT_FALSE(test, folio_mapped(folio));
		}
	}
	pgtable_kunit_exit(test);
}

/*
 * The smallest folio that has slots is of order 1. In such a folio, the words
 * after the mapcount must contain nothing but the slots.
 */
static void folio_mapcount_order_1(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 1);
	struct mapped_mms *mms = test->priv;
	struct mapped_model model = {};

	mapped_model_change(&model, 0, 2);
	pgtable_kunit_set_mapcount(folio, 2, mms->vma[0]);
	mapped_check(test, &model, folio, "A maps 2");
	mapped_model_change(&model, 1, 1);
	pgtable_kunit_add_mapcount(folio, 1, mms->vma[1]);
	mapped_check(test, &model, folio, "B maps 1");
	KUNIT_EXPECT_TRUE(test, pgtable_kunit_mapped_shared(folio));
	mapped_model_change(&model, 1, -1);
	pgtable_kunit_sub_mapcount(folio, 1, mms->vma[1]);
	mapped_check(test, &model, folio, "B unmaps 1");
	KUNIT_EXPECT_FALSE(test, pgtable_kunit_mapped_shared(folio));
	mapped_model_change(&model, 0, -2);
	pgtable_kunit_sub_mapcount(folio, 2, mms->vma[0]);
	mapped_check(test, &model, folio, "A unmaps 2");
}

static bool mapped_same_owners(const struct pgtable_kunit_owners *a,
			       const struct pgtable_kunit_owners *b)
{
	return a->mapcount == b->mapcount && a->shared == b->shared &&
	       !memcmp(a->id, b->id, sizeof(a->id)) &&
	       !memcmp(a->count, b->count, sizeof(a->count));
}

/*
 * The lock is a bit in one of the words with IDs. While the lock is held, the
 * bit is set and preemption is off, and nothing else changes. This holds with
 * and without the flag for several owners in the other word.
 */
static void folio_lock_large_mapcount_one_bit(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 2);
	struct mapped_mms *mms = test->priv;
	unsigned int nr;

	mapped_mms_ids(mms, mapped_ids[1]);
	for (nr = 0; nr <= 3; nr++) {
		struct pgtable_kunit_owners before, held, after;
		int preempt = preempt_count(), inside;

		before = pgtable_kunit_owners(folio);
		pgtable_kunit_lock_mapcount(folio);
		inside = preempt_count();
		held = pgtable_kunit_owners(folio);
		pgtable_kunit_unlock_mapcount(folio);
		after = pgtable_kunit_owners(folio);

		KUNIT_EXPECT_FALSE(test, before.locked || after.locked);
		KUNIT_EXPECT_TRUE(test, mapped_same_owners(&before, &after));
		KUNIT_EXPECT_TRUE(test, mapped_same_owners(&before, &held));
		KUNIT_EXPECT_EQ(test, preempt_count(), preempt);
		/* With one CPU there is no other CPU to lock out. */
		if (IS_ENABLED(CONFIG_SMP) || IS_ENABLED(CONFIG_DEBUG_SPINLOCK))
			KUNIT_EXPECT_TRUE(test, held.locked);
		if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
			KUNIT_EXPECT_EQ(test, inside, preempt + 1);

		if (nr < 3)
			pgtable_kunit_add_mapcount(folio, 1, mms->vma[nr]);
	}
	while (nr-- > 1)
		pgtable_kunit_sub_mapcount(folio, 1, mms->vma[nr - 1]);
	KUNIT_EXPECT_FALSE(test, folio_mapped(folio));
}

/*
 * One mm maps a folio again and again, until a slot of 16 bits cannot count the
 * mappings any more. 32-bit kernels have such slots, and then the kernel frees
 * the slot. The folio counts as shared as long as a mapping is in no slot, and
 * no count goes below 0 when all pages are unmapped again. With slots of 32
 * bits, the mm stays the only owner. The number of mappings is always right.
 */
static void folio_mapcount_overflow(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 2);
	struct pgtable_kunit_owners before = pgtable_kunit_owners(folio), now;
	unsigned int nr = folio_nr_pages(folio), n, wrong = 0;
	const unsigned int most = (SHRT_MAX + 1) / nr;
	struct mapped_mms *mms = test->priv;

	mapped_mms_ids(mms, mapped_ids[0]);
	for (n = 1; n <= most; n++) {
		pgtable_kunit_add_mapcount(folio, nr, mms->vma[0]);
		wrong += folio_mapcount(folio) != n * nr ||
			 pgtable_kunit_mapped_shared(folio);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	for (; n <= most + 3; n++) {
		pgtable_kunit_add_mapcount(folio, nr, mms->vma[0]);
		KUNIT_EXPECT_EQ(test, folio_mapcount(folio), n * nr);
		KUNIT_EXPECT_EQ_MSG(test, pgtable_kunit_mapped_shared(folio),
				    !IS_ENABLED(CONFIG_64BIT), "%u mappings",
				    n * nr);
	}
	now = pgtable_kunit_owners(folio);
	KUNIT_EXPECT_EQ(test, now.count[0] + now.count[1],
			IS_ENABLED(CONFIG_64BIT) ? (most + 3) * nr : 2 * nr);
	for (wrong = 0, n--; n; n--) {
		pgtable_kunit_sub_mapcount(folio, nr, mms->vma[0]);
		now = pgtable_kunit_owners(folio);
		wrong += now.mapcount != (n - 1) * nr || now.count[0] < 0 ||
			 now.count[1] < 0;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	now = pgtable_kunit_owners(folio);
	KUNIT_EXPECT_TRUE(test, mapped_same_owners(&before, &now));
	PGTABLE_KUNIT_DID(test, 2 * (most + 3), "changes of the number of mappings");
}

/* Arguments that no caller may use. */
static const struct mapped_misuse {
	const char *desc;
	int nr;
	unsigned int id;
} mapped_misuses[] = {
	{ "no page", 0, 1 },
	{ "more pages than there are", 5, 1 },
	{ "an mm without an ID", 1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(mapped_misuse, mapped_misuses, desc);

struct mapped_call {
	struct folio *folio;
	struct vm_area_struct *vma;
	int nr;
};

static void mapped_call(void *data)
{
	struct mapped_call *call = data;

	pgtable_kunit_add_mapcount(call->folio, call->nr, call->vma);
}

/*
 * A call with wrong arguments gives one warning. The case repairs the folio
 * after each call. The kernel gives each of the warnings only once, so the case
 * works once per boot.
 */
static void folio_mapcount_misuse(struct kunit *test)
{
	const struct mapped_misuse *misuse = test->param_value;
	struct folio *folio = pgtable_kunit_folio_alloc(test, 2);
	const unsigned int ids[MAPPED_MMS] = { misuse->id };
	struct pgtable_kunit_owners clean = pgtable_kunit_owners(folio);
	struct mapped_mms *mms = test->priv;
	struct mapped_call call = { folio, mms->vma[0], misuse->nr };
	int warnings;

	if (!IS_ENABLED(CONFIG_DEBUG_VM))
		kunit_skip(test, "no CONFIG_DEBUG_VM: nothing is checked");
	mapped_mms_ids(mms, ids);
	warnings = pgtable_kunit_count_warnings(test, mapped_call, &call);
	pgtable_kunit_restore_owners(folio, &clean);
	if (warnings < 0)
		kunit_skip(test, "no kunit_warning_suppress()");
	KUNIT_EXPECT_EQ(test, warnings, 1);
}

static struct kunit_case mapped_cases[] = {
	KUNIT_CASE_PARAM(folio_mapcount_script, mapped_script_gen_params),
	KUNIT_CASE(folio_mapcount_order_1),
	KUNIT_CASE(folio_lock_large_mapcount_one_bit),
	KUNIT_CASE(folio_mapcount_overflow),
	KUNIT_CASE_PARAM(folio_mapcount_misuse, mapped_misuse_gen_params),
	{}
};

static struct kunit_suite mapped_suite = {
	.name = "folio_mapped_shared",
	.suite_init = pgtable_kunit_suite_init,
	.init = mapped_fake_init,
	.test_cases = mapped_cases,
};

kunit_test_suite(mapped_suite);

MODULE_DESCRIPTION("KUnit tests for the owners of a mapped folio");
MODULE_LICENSE("GPL");
