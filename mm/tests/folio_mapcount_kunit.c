// SPDX-License-Identifier: GPL-2.0
/*
 * Folios that have only a mapcount, and the IDs of mms.
 *
 * For small folios and hugetlb folios, only the mapcount decides whether
 * several mms map them. For a page that is never mapped, the word of the
 * mapcount contains the type of the page. Large folios keep the IDs of the mms
 * that map them, so no two mms may have the same ID.
 *
 * Not covered: how large folios use the IDs (folio_mapped_shared).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'folio_mapcount'
 */

#include <kunit/test.h>
#include <linux/idr.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu_counter.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "folio_mapped.h"

/* Number of mms that exist at once. */
#define IDS		32

/* Folios with only a mapcount: the owners are not known. */
enum mapcount_kind { MAPCOUNT_SMALL, MAPCOUNT_HUGETLB, MAPCOUNT_LARGE };

static const struct mapcount_folio {
	const char *desc;
	enum mapcount_kind kind;
} mapcount_folios[] = {
	{ "small", MAPCOUNT_SMALL },
	{ "hugetlb", MAPCOUNT_HUGETLB },
	{ "large, owners not known", MAPCOUNT_LARGE },
};

KUNIT_ARRAY_PARAM_DESC(mapcount_folio, mapcount_folios, desc);

/* Turn the folio into a hugetlb folio, or back into a normal one. */
static void hugetlb_set(struct folio *folio, bool hugetlb)
{
#ifdef CONFIG_HUGETLB_PAGE
	if (hugetlb)
		__folio_set_hugetlb(folio);
	else if (folio_test_hugetlb(folio))
		__folio_clear_hugetlb(folio);
#endif
}

/*
 * A small folio or a hugetlb folio is shared if it is mapped more than once.
 * If the kernel is configured not to track owners, large folios always count as
 * shared.
 */
static void folio_mapped_shared_by_mapcount(struct kunit *test)
{
	const struct mapcount_folio *p = test->param_value;
	struct folio *folio = pgtable_kunit_folio_alloc(test, p->kind == MAPCOUNT_SMALL ?
							      0 : 2);
	atomic_t *mapcount = &folio->_mapcount;
	int nr;

	if (p->kind == MAPCOUNT_HUGETLB && !IS_ENABLED(CONFIG_HUGETLB_PAGE))
		kunit_skip(test, "no CONFIG_HUGETLB_PAGE");
	if (p->kind == MAPCOUNT_LARGE &&
	    PGTABLE_KUNIT_SHARED != PGTABLE_KUNIT_SHARED_ASSUMED)
		kunit_skip(test, "this kernel does not assume that large folios are shared");

	hugetlb_set(folio, p->kind == MAPCOUNT_HUGETLB);
	if (p->kind != MAPCOUNT_SMALL)
		mapcount = &folio->_large_mapcount;
	for (nr = 0; nr <= 3; nr++) {
		atomic_set(mapcount, nr - 1);
		KUNIT_EXPECT_EQ(test, folio_mapcount(folio), nr);
		KUNIT_EXPECT_EQ_MSG(test, pgtable_kunit_mapped_shared(folio),
				    nr > 1 || p->kind == MAPCOUNT_LARGE,
				    "mapped %d times", nr);
	}
	atomic_set(mapcount, -1);
	hugetlb_set(folio, false);
}

/*
 * A page that user space cannot map has no mapcount. Its type is in the word of
 * the mapcount, and must not count as a mapcount.
 */
static void folio_mapcount_of_types(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 0);
	void *slab = kunit_kmalloc(test, 64, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, slab);
	KUNIT_EXPECT_EQ(test, folio_mapcount(virt_to_folio(slab)), 0);

	__folio_set_pgtable(folio);
	KUNIT_EXPECT_NE(test, atomic_read(&folio->_mapcount), -1);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	__folio_clear_pgtable(folio);
	__folio_set_offline(folio);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	__folio_clear_offline(folio);
	KUNIT_EXPECT_EQ(test, atomic_read(&folio->_mapcount), -1);
}

/*
 * The kernel gives each mm a unique ID within its limits, and never the ID of
 * init_mm, which stands for no mm. After an mm is freed, the kernel reuses the
 * lowest free ID, unless another task takes this ID first.
 */
static void mm_alloc_distinct_ids(struct kunit *test)
{
	struct mm_struct *mms[IDS];
	unsigned int ids[IDS], i, j, freed = 0;
	bool again = false;

	mapped_needs_ids(test);
	KUNIT_EXPECT_EQ(test, pgtable_kunit_mm_id(&init_mm), 0);
	for (i = 0; i < IDS; i++) {
		mms[i] = mm_alloc();
		KUNIT_ASSERT_NOT_NULL(test, mms[i]);
		ids[i] = pgtable_kunit_mm_id(mms[i]);
		KUNIT_EXPECT_GT(test, ids[i], 0);
		KUNIT_EXPECT_LE(test, ids[i], PGTABLE_KUNIT_MM_ID_MAX);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, ids[i], ids[j]);
	}
	for (i = 0; i < IDS; i += 2) {
		freed = freed ? min(freed, ids[i]) : ids[i];
		mmput(mms[i]);
	}
	for (i = 0; i < IDS; i += 2) {
		mms[i] = mm_alloc();
		KUNIT_ASSERT_NOT_NULL(test, mms[i]);
		again |= pgtable_kunit_mm_id(mms[i]) == freed;
		for (j = 1; j < IDS; j += 2)
			KUNIT_EXPECT_NE(test, pgtable_kunit_mm_id(mms[i]), ids[j]);
	}
	KUNIT_EXPECT_TRUE_MSG(test, again, "ID %u is lost", freed);
	for (i = 0; i < IDS; i++)
		mmput(mms[i]);
}

#if defined(CONFIG_KRETPROBES) && defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API)
/* The thread with allocations that must fail, and the number that failed. */
static struct task_struct *mm_fails_of;
static unsigned int mm_failed;

/* The first and the fourth argument: the object and the number of counters. */
struct mm_fail {
	void *what;
	unsigned int nr;
};

static int mm_fail_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mm_fail *fail = (void *)ri->data;

	if (current != READ_ONCE(mm_fails_of))
		return 1;
	fail->what = (void *)regs_get_kernel_argument(regs, 0);
	fail->nr = regs_get_kernel_argument(regs, 3);
	return 0;
}

/* ida_alloc_range(ida, ...) and __percpu_counter_init_many(counters, ..., nr). */
static int mm_fail_id(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mm_fail *fail = (void *)ri->data;

	if ((int)regs_return_value(regs) < 0)
		return 0;
	ida_free(fail->what, regs_return_value(regs));
	regs_set_return_value(regs, -ENOMEM);
	mm_failed++;
	return 0;
}

static int __maybe_unused mm_fail_counters(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mm_fail *fail = (void *)ri->data;

	if (regs_return_value(regs))
		return 0;
	percpu_counter_destroy_many(fail->what, fail->nr);
	regs_set_return_value(regs, -ENOMEM);
	mm_failed++;
	return 0;
}

/*
 * The allocations of a new mm, in order. With one CPU, counters need none.
 */
static const struct mm_step {
	const char *desc;
	const char *function;
	kretprobe_handler_t fail;
} mm_steps[] = {
	{ "ID", "ida_alloc_range", mm_fail_id },
#ifdef CONFIG_SMP
	{ "counters", "__percpu_counter_init_many", mm_fail_counters },
#endif
};

static struct kretprobe mm_fail_probe;

static void mm_fail_off(void *unused)
{
	WRITE_ONCE(mm_fails_of, NULL);
	unregister_kretprobe(&mm_fail_probe);
}

static void mm_fail_on(struct kunit *test, const struct mm_step *step)
{
	mm_fail_probe = (struct kretprobe) {
		.kp.symbol_name = step->function,
		.entry_handler = mm_fail_entry,
		.handler = step->fail,
		.data_size = sizeof(struct mm_fail),
	};
	KUNIT_ASSERT_EQ(test, register_kretprobe(&mm_fail_probe), 0);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, mm_fail_off, NULL));
}
#else
static const struct mm_step {
	const char *desc;
} mm_steps[] = {
	{ "ID" },
	{ "counters" },
};

static struct task_struct *mm_fails_of;
static unsigned int mm_failed;

static void mm_fail_on(struct kunit *test, const struct mm_step *step)
{
	kunit_skip(test, "needs CONFIG_KRETPROBES");
}
#endif

KUNIT_ARRAY_PARAM_DESC(mm_step, mm_steps, desc);

/*
 * If no ID is left, or if another allocation of a new mm fails, there is no mm,
 * and no ID is lost. Fork makes an mm in the same way. A probe makes an
 * allocation fail: when the allocation returns, the probe undoes it and returns
 * an error. The kernel uses the lowest free ID first, so the mm before and the
 * mm after the failure get the same ID. The case repeats this eight times,
 * because another task could free an ID meanwhile and so hide a lost ID.
 */
static void mm_alloc_fails(struct kunit *test)
{
	const struct mm_step *step = test->param_value;
	unsigned int i, same = 0, before, after;
	struct mm_struct *mm, *none;

	mapped_needs_ids(test);
	mm_fail_on(test, step);
	mm_failed = 0;
	for (i = 0; i < 8; i++) {
		mm = mm_alloc();
		KUNIT_ASSERT_NOT_NULL(test, mm);
		before = pgtable_kunit_mm_id(mm);
		mmput(mm);

		WRITE_ONCE(mm_fails_of, current);
		none = mm_alloc();
		WRITE_ONCE(mm_fails_of, NULL);
		KUNIT_EXPECT_NULL(test, none);
		if (none)
			mmput(none);

		mm = mm_alloc();
		KUNIT_ASSERT_NOT_NULL(test, mm);
		after = pgtable_kunit_mm_id(mm);
		mmput(mm);
		KUNIT_EXPECT_GT(test, after, 0);
		same += after == before;
	}
	PGTABLE_KUNIT_DID(test, mm_failed, "allocations that failed");
	KUNIT_EXPECT_EQ(test, mm_failed, i);
	KUNIT_EXPECT_GE_MSG(test, same, i - 1, "IDs are lost");
}

static struct kunit_case mapcount_cases[] = {
	KUNIT_CASE_PARAM(folio_mapped_shared_by_mapcount,
			 mapcount_folio_gen_params),
	KUNIT_CASE(folio_mapcount_of_types),
	KUNIT_CASE(mm_alloc_distinct_ids),
	KUNIT_CASE_PARAM(mm_alloc_fails, mm_step_gen_params),
	{}
};

static struct kunit_suite mapcount_suite = {
	.name = "folio_mapcount",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = mapcount_cases,
};

kunit_test_suite(mapcount_suite);

MODULE_DESCRIPTION("KUnit tests for mapcounts, and for IDs of mms");
MODULE_LICENSE("GPL");
