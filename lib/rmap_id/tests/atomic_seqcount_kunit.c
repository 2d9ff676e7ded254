// SPDX-License-Identifier: GPL-2.0
/*
 * A sequence count with several writers: its state after each step, for writers
 * and readers.
 *
 * The suite uses one thread. The state is one word, so the suite can check each
 * step of a writer that does not have to wait. Not covered: writers that wait,
 * and races (atomic_seqcount_race has both).
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests 'atomic_seqcount'
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/preempt.h>

#include "atomic_seqcount_test.h"

/*
 * The count of writers includes a writer while it writes, and two nested
 * writers count as two. At the end of a write, the count of writes increases.
 * Preemption is off from the first begin to the last end.
 */
static void atomic_seqcount_write_shared(struct kunit *test)
{
	struct atomic_seqcount s;
	int preempt = preempt_count();

	atomic_seqcount_init(&s);
	cnt_expect(test, &s, 0, 0, 0);
	KUNIT_EXPECT_FALSE(test, atomic_seqcount_write_begin(&s, false));
	cnt_expect(test, &s, 1, 0, 0);
	KUNIT_EXPECT_FALSE(test, atomic_seqcount_write_begin(&s, false));
	cnt_expect(test, &s, 2, 0, 0);
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		KUNIT_EXPECT_EQ(test, preempt_count(), preempt + 2);
	atomic_seqcount_write_end(&s, false);
	cnt_expect(test, &s, 1, 0, 1);
	atomic_seqcount_write_end(&s, false);
	cnt_expect(test, &s, 0, 0, 2);
	KUNIT_EXPECT_EQ(test, preempt_count(), preempt);
}

/*
 * A writer gets exclusive access only if there is no other writer. Otherwise it
 * shares the count, and its attempt leaves no trace in the state.
 */
static void atomic_seqcount_write_exclusive(struct kunit *test)
{
	struct atomic_seqcount s;
	int preempt = preempt_count();
	bool alone, first, second;

	atomic_seqcount_init(&s);
	alone = atomic_seqcount_write_begin(&s, true);
	KUNIT_EXPECT_TRUE(test, alone);
	cnt_expect(test, &s, 0, 1, 0);
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		KUNIT_EXPECT_EQ(test, preempt_count(), preempt + 1);
	atomic_seqcount_write_end(&s, alone);
	cnt_expect(test, &s, 0, 0, 1);

	first = atomic_seqcount_write_begin(&s, false);
	second = atomic_seqcount_write_begin(&s, true);
	KUNIT_EXPECT_FALSE(test, first || second);
	cnt_expect(test, &s, 2, 0, 1);
	atomic_seqcount_write_end(&s, first);
	/* If a writer were exclusive by mistake, the next writer would wait. */
	if (!second) {
		first = atomic_seqcount_write_begin(&s, true);
		KUNIT_EXPECT_FALSE(test, first);
		cnt_expect(test, &s, 2, 0, 2);
		atomic_seqcount_write_end(&s, first);
	}
	atomic_seqcount_write_end(&s, second);
	cnt_expect(test, &s, 0, 0, 4);
	KUNIT_EXPECT_EQ(test, preempt_count(), preempt);

	alone = atomic_seqcount_write_begin(&s, true);
	KUNIT_EXPECT_TRUE(test, alone);
	atomic_seqcount_write_end(&s, alone);
	cnt_expect(test, &s, 0, 0, 5);
}

/*
 * Actions between begin and end of a read: a part of a write, a whole write, or
 * no write.
 */
static const struct cnt_write {
	const char *desc;
	bool begin_before;
	bool begin;
	bool end;
	bool exclusive;
} cnt_writes_between[] = {
	{ "none" },
	{ "whole, shared", .begin = true, .end = true },
	{ "whole, exclusive", .begin = true, .end = true, .exclusive = true },
	{ "begin, shared", .begin = true },
	{ "begin, exclusive", .begin = true, .exclusive = true },
	{ "end, shared", .begin_before = true, .end = true },
	{ "end, exclusive", .begin_before = true, .end = true, .exclusive = true },
};

KUNIT_ARRAY_PARAM_DESC(cnt_write, cnt_writes_between, desc);

/*
 * A reader retries if a write began or ended while it read. It does not retry
 * if no write began or ended meanwhile, even after many earlier writes.
 * If a reader does not wait, the state shows the reader that there are writers.
 */
static void atomic_seqcount_read_overlap(struct kunit *test)
{
	const struct cnt_write *p = test->param_value;
	struct atomic_seqcount s;
	unsigned int before;
	bool writing = false;
	s64 start;

	atomic_seqcount_init(&s);
	for (before = 0; before < 3; before++) {
		if (p->begin_before)
			writing = atomic_seqcount_write_begin(&s, p->exclusive);
		start = p->begin_before ? atomic_seqcount_read(&s) :
			atomic_seqcount_read_begin(&s);
		KUNIT_EXPECT_EQ(test, !!(start & ATOMIC_SEQCOUNT_WRITERS_MASK),
				p->begin_before);
		KUNIT_EXPECT_FALSE(test, atomic_seqcount_read_retry(&s, start));
		if (p->begin)
			writing = atomic_seqcount_write_begin(&s, p->exclusive);
		KUNIT_EXPECT_EQ(test, writing, p->exclusive);
		if (p->end)
			atomic_seqcount_write_end(&s, writing);
		KUNIT_EXPECT_EQ(test, atomic_seqcount_read_retry(&s, start),
				p->begin || p->end);
		if (p->begin && !p->end)
			atomic_seqcount_write_end(&s, writing);

		start = atomic_seqcount_read_begin(&s);
		KUNIT_EXPECT_FALSE(test, atomic_seqcount_read_retry(&s, start));
	}
}

/*
 * The count of writes does not overflow into other bits: after 2^32 writes it
 * is 0, and the number of writers is unchanged. The largest number of sharing
 * writers does not overflow into the number of attempts.
 */
static void atomic_seqcount_overflow(struct kunit *test)
{
	const s64 last = ~0ULL << 32;
	struct atomic_seqcount s;
	bool alone;

	atomic64_set(&s.state, last);
	KUNIT_EXPECT_FALSE(test, atomic_seqcount_write_begin(&s, false));
	KUNIT_EXPECT_FALSE(test, atomic_seqcount_write_begin(&s, false));
	atomic_seqcount_write_end(&s, false);
	cnt_expect(test, &s, 1, 0, 0);
	atomic_seqcount_write_end(&s, false);
	cnt_expect(test, &s, 0, 0, 1);

	atomic64_set(&s.state, last);
	alone = atomic_seqcount_write_begin(&s, true);
	KUNIT_EXPECT_TRUE(test, alone);
	atomic_seqcount_write_end(&s, alone);
	cnt_expect(test, &s, 0, 0, 0);

	atomic64_set(&s.state, last | 0xfffe);
	alone = atomic_seqcount_write_begin(&s, true);
	KUNIT_EXPECT_FALSE(test, alone);
	cnt_expect(test, &s, 0xffff, 0, ~0U);
	atomic_seqcount_write_end(&s, alone);
	cnt_expect(test, &s, 0xfffe, 0, 0);
	KUNIT_EXPECT_GE(test, 0xffff, 2 * num_possible_cpus() - 1);
}

struct cnt_irq {
	struct irq_work work;
	struct completion done;
	bool may_write;
};

static void cnt_irq_work(struct irq_work *work)
{
	struct cnt_irq *irq = container_of(work, struct cnt_irq, work);

	irq->may_write = atomic_seqcount_may_write();
	complete(&irq->done);
}

/*
 * Writers are tasks. An interrupt must not write, since it could wait forever
 * for the writer that it interrupted. CONFIG_DEBUG_ATOMIC_SEQCOUNT checks that.
 */
static void atomic_seqcount_write_in_irq(struct kunit *test)
{
	struct cnt_irq irq = {
		.work = IRQ_WORK_INIT_HARD(cnt_irq_work),
		.done = COMPLETION_INITIALIZER_ONSTACK(irq.done),
		.may_write = true,
	};

	KUNIT_EXPECT_TRUE(test, atomic_seqcount_may_write());
	irq_work_queue(&irq.work);
	irq_work_sync(&irq.work);
	KUNIT_ASSERT_TRUE(test, try_wait_for_completion(&irq.done));
	KUNIT_EXPECT_FALSE(test, irq.may_write);
}

static struct kunit_case atomic_seqcount_cases[] = {
	KUNIT_CASE(atomic_seqcount_write_shared),
	KUNIT_CASE(atomic_seqcount_write_exclusive),
	KUNIT_CASE_PARAM(atomic_seqcount_read_overlap, cnt_write_gen_params),
	KUNIT_CASE(atomic_seqcount_overflow),
	KUNIT_CASE(atomic_seqcount_write_in_irq),
	{}
};

static struct kunit_suite atomic_seqcount_suite = {
	.name = "atomic_seqcount",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = atomic_seqcount_cases,
};

kunit_test_suite(atomic_seqcount_suite);

MODULE_DESCRIPTION("KUnit tests for sequence counts with several writers");
MODULE_LICENSE("GPL");
