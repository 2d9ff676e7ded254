// SPDX-License-Identifier: GPL-2.0
/*
 * A sequence count with several writers: waiting threads, and races.
 *
 * In some cases the count is in a known state, and then a thread on another CPU
 * begins to read or write. In other cases all threads write and read at the
 * same time for a while, and the data shows whether an exclusive writer was the
 * only writer.
 *
 * Not covered: memory barriers that the machine of the test does not need;
 * fairness.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests \
 *	--arch=arm64 --qemu_args '-smp 2' 'atomic_seqcount_race'
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "atomic_seqcount_test.h"
#include "rmap_id.h"

/*
 * The duration of a race, and of a race in which a mistake would rarely lose an
 * update.
 */
#define RACE_JIFFIES	(HZ / 2)
#define RARE_JIFFIES	(2 * HZ)

/*
 * A thread that has to wait takes longer than this time. A thread that does not
 * have to wait takes much less time.
 */
#define WAIT_JIFFIES	(HZ / 20)

/* A waiting thread must return within this time. */
#define ANSWER_JIFFIES	(10 * HZ)

/*
 * The action of the thread on the other CPU: read, write and share, or try to
 * write exclusively.
 */
enum cnt_waiter_kind { CNT_READS, CNT_SHARES, CNT_WANTS_ALL };

struct cnt_waiter {
	struct atomic_seqcount *s;
	enum cnt_waiter_kind kind;
	struct completion started, done;
	bool exclusive;
};

static int cnt_waiter_thread(void *data)
{
	struct cnt_waiter *waiter = data;

	complete(&waiter->started);
	if (waiter->kind == CNT_READS) {
		atomic_seqcount_read_begin(waiter->s);
	} else {
		waiter->exclusive =
			atomic_seqcount_write_begin(waiter->s,
						    waiter->kind == CNT_WANTS_ALL);
		atomic_seqcount_write_end(waiter->s, waiter->exclusive);
	}
	complete(&waiter->done);
	return 0;
}

/* A thread on another CPU. The case stays on its own CPU. */
static struct task_struct *cnt_thread(struct kunit *test, int (*fn)(void *data),
				      void *data)
{
	struct task_struct *task = kthread_create(fn, data, "atomic_seqcount");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, cpumask_any_but(cpu_online_mask,
					   raw_smp_processor_id()));
	wake_up_process(task);
	return task;
}

/* Start the thread before the count is held, since this may sleep. */
static void cnt_waiter_start(struct kunit *test, struct cnt_waiter *waiter,
			     struct atomic_seqcount *s, enum cnt_waiter_kind kind)
{
	waiter->s = s;
	waiter->kind = kind;
	init_completion(&waiter->started);
	init_completion(&waiter->done);
	cnt_thread(test, cnt_waiter_thread, waiter);
}

static bool cnt_spin_until(struct completion *done, unsigned long timeout)
{
	unsigned long end = jiffies + timeout;

	while (!completion_done(done) && time_before(jiffies, end))
		cpu_relax();
	return completion_done(done);
}

static void cnt_needs_cpus(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0,
			set_cpus_allowed_ptr(current,
					     cpumask_of(raw_smp_processor_id())));
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
}

static const struct cnt_wait {
	const char *desc;
	bool exclusive;			/* the state of the count meanwhile */
	enum cnt_waiter_kind kind;	/* the action of the other thread */
	bool waits;
} cnt_waits[] = {
	{ "reader, one exclusive", true, CNT_READS, true },
	{ "reader, one shared", false, CNT_READS, true },
	{ "writer, one exclusive", true, CNT_SHARES, true },
	{ "writer, one shared", false, CNT_SHARES, false },
	{ "exclusive writer, one exclusive", true, CNT_WANTS_ALL, true },
	{ "exclusive writer, one shared", false, CNT_WANTS_ALL, false },
};

KUNIT_ARRAY_PARAM_DESC(cnt_wait, cnt_waits, desc);

/*
 * Readers wait for any writer, and writers wait only for an exclusive writer. A
 * writer that has waited does not get exclusive access. A thread that must wait
 * is still waiting after some ticks, and returns once the writer has ended.
 */
static void atomic_seqcount_waits(struct kunit *test)
{
	const struct cnt_wait *p = test->param_value;
	struct atomic_seqcount s;
	struct cnt_waiter waiter = {};
	bool held, started, done;

	cnt_needs_cpus(test);
	atomic_seqcount_init(&s);
	held = atomic_seqcount_write_begin(&s, p->exclusive);
	KUNIT_EXPECT_EQ(test, held, p->exclusive);

	/*
	 * The creation of a thread sleeps, so the count is held, but preemption
	 * is on.
	 */
	preempt_enable();
	cnt_waiter_start(test, &waiter, &s, p->kind);
	preempt_disable();
	started = cnt_spin_until(&waiter.started, ANSWER_JIFFIES);
	done = cnt_spin_until(&waiter.done,
			      p->waits ? WAIT_JIFFIES : ANSWER_JIFFIES);
	atomic_seqcount_write_end(&s, held);

	KUNIT_EXPECT_TRUE(test, started);
	KUNIT_EXPECT_EQ(test, done, !p->waits);
	KUNIT_ASSERT_TRUE(test, cnt_spin_until(&waiter.done, ANSWER_JIFFIES));
	KUNIT_EXPECT_FALSE(test, waiter.exclusive);
	cnt_expect(test, &s, 0, 0, p->kind == CNT_READS ? 1 : 2);
}

/*
 * A writer tries to get exclusive access, and has not seen yet that there are
 * other writers. For that moment it blocks all other writers: a sharing writer
 * waits, and a second writer that tries to get exclusive access waits and then
 * shares. The first attempt always succeeds if there is no other writer.
 */
static void atomic_seqcount_attempt_in_flight(struct kunit *test)
{
	enum cnt_waiter_kind kinds[] = { CNT_SHARES, CNT_WANTS_ALL };
	struct atomic_seqcount s;
	unsigned int i;

	cnt_needs_cpus(test);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct cnt_waiter waiter = {};
		bool early;

		/* The state with one writer that shares, and one attempt. */
		atomic64_set(&s.state, ATOMIC_SEQCOUNT_SHARED +
				       ATOMIC_SEQCOUNT_EXCLUSIVE);
		cnt_waiter_start(test, &waiter, &s, kinds[i]);
		early = cnt_spin_until(&waiter.done, WAIT_JIFFIES);
		cnt_expect(test, &s, 2, 1, 0);
		KUNIT_EXPECT_FALSE(test, early);

		/*
		 * The attempt fails because there is another writer, so the
		 * writer shares.
		 */
		atomic64_add(ATOMIC_SEQCOUNT_SHARED - ATOMIC_SEQCOUNT_EXCLUSIVE,
			     &s.state);
		KUNIT_ASSERT_TRUE(test, cnt_spin_until(&waiter.done,
						       ANSWER_JIFFIES));
		KUNIT_EXPECT_FALSE(test, waiter.exclusive);
		cnt_expect(test, &s, 2, 0, 1);
	}
}

/* Data that belongs together: b is 2 * a, and c is 3 * a. */
struct cnt_data {
	struct atomic_seqcount s;
	atomic64_t a, b, c;
	atomic_t alone, inside;
	unsigned long wrong;
};

struct cnt_racer {
	struct cnt_data *data;
	unsigned int number;
	unsigned long writes, exclusive, wrong;
	s64 sum;
};

static void cnt_write(struct cnt_racer *racer)
{
	struct cnt_data *data = racer->data;
	s64 d = 1 + racer->writes % 5;
	/* Some writes do not try to get exclusive access. */
	bool exclusive = atomic_seqcount_write_begin(&data->s,
						     racer->writes % 4 != 3);

	/* An exclusive writer must be the only writer at this point. */
	atomic_inc(&data->inside);
	if (exclusive)
		racer->wrong += atomic_read(&data->inside) != 1 ||
				atomic_inc_return(&data->alone) != 1;
	else
		racer->wrong += atomic_read(&data->alone) != 0;

	if (exclusive) {
		atomic64_set(&data->a, atomic64_read(&data->a) + d);
		atomic64_set(&data->b, atomic64_read(&data->b) + 2 * d);
		atomic64_set(&data->c, atomic64_read(&data->c) + 3 * d);
	} else {
		atomic64_add(d, &data->a);
		atomic64_add(2 * d, &data->b);
		atomic64_add(3 * d, &data->c);
	}

	if (exclusive)
		atomic_dec(&data->alone);
	atomic_dec(&data->inside);
	atomic_seqcount_write_end(&data->s, exclusive);

	racer->writes++;
	racer->exclusive += exclusive;
	racer->sum += d;
}

static void cnt_read(struct cnt_racer *racer)
{
	struct cnt_data *data = racer->data;
	s64 a, b, c, start;

	do {
		start = atomic_seqcount_read_begin(&data->s);
		a = atomic64_read(&data->a);
		b = atomic64_read(&data->b);
		c = atomic64_read(&data->c);
	} while (atomic_seqcount_read_retry(&data->s, start));
	racer->wrong += b != 2 * a || c != 3 * a;
}

static int cnt_racer_thread(void *racer)
{
	while (!kthread_should_stop()) {
		cnt_write(racer);
		cnt_write(racer);
		cnt_read(racer);
		cond_resched();
	}
	return 0;
}

/*
 * Threads on two CPUs write three numbers and read them. Every read is
 * consistent, and no write is lost, neither a plain nor an atomic store. No
 * thread writes at the same time as an exclusive writer.
 */
static void atomic_seqcount_all_at_once(struct kunit *test)
{
	struct cnt_data *data = kunit_kzalloc(test, sizeof(*data), GFP_KERNEL);
	unsigned long end = jiffies + RACE_JIFFIES;
	struct cnt_racer racers[3] = {};
	struct task_struct *tasks[2];
	unsigned long exclusive = 0;
	unsigned int i;
	u32 writes = 0;
	s64 sum = 0;

	cnt_needs_cpus(test);
	KUNIT_ASSERT_NOT_NULL(test, data);
	for (i = 0; i < ARRAY_SIZE(racers); i++)
		racers[i].data = data;
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		tasks[i] = cnt_thread(test, cnt_racer_thread, &racers[i]);
	while (time_before(jiffies, end)) {
		cnt_read(&racers[2]);
		cnt_write(&racers[2]);
		cond_resched();
	}
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		kthread_stop(tasks[i]);

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		PGTABLE_KUNIT_DID(test, racers[i].writes, "writes");
		exclusive += racers[i].exclusive;
		KUNIT_EXPECT_EQ(test, racers[i].wrong, 0);
		writes += racers[i].writes;
		sum += racers[i].sum;
	}
	PGTABLE_KUNIT_DID(test, exclusive, "exclusive writes");
	KUNIT_EXPECT_EQ(test, atomic64_read(&data->a), sum);
	KUNIT_EXPECT_EQ(test, atomic64_read(&data->b), 2 * sum);
	KUNIT_EXPECT_EQ(test, atomic64_read(&data->c), 3 * sum);
	cnt_expect(test, &data->s, 0, 0, writes);
}

/**
 * struct id_race - one of several owners that map an object at the same time
 * @object: the object, with a mapping of ID 1 all the time
 * @id: ID of this owner
 * @beside: whether it also holds the sequence count as a sharing writer while
 *	it maps and unmaps
 * @rounds: how often the owner has mapped the object
 * @wrong: how often the object gave a wrong answer meanwhile
 */
struct id_race {
	struct rmap_id_object *object;
	unsigned int id;
	bool beside;
	unsigned long rounds;
	unsigned long wrong;
};

/*
 * Map and unmap while another writer holds the count: the writer is never
 * exclusive, and no reader succeeds.
 */
static void id_race_beside(struct id_race *race)
{
	bool alone = atomic_seqcount_write_begin(&race->object->seqcount, false);
	unsigned int i;

	for (i = 0; i < 64; i++)
		rmap_id_add(race->object, race->id, i < 32 ? 1 : -1);
	atomic_seqcount_write_end(&race->object->seqcount, alone);
	race->rounds++;
}

/*
 * Map, check the owner of the object, and unmap. While this owner has its
 * mappings, ID 1 is the only owner exactly if this owner has ID 1 too.
 */
static void id_race_round(struct id_race *race)
{
	bool alone = race->id == 1;
	int nr = 1 + race->rounds % 7;

	if (race->beside) {
		id_race_beside(race);
		return;
	}
	rmap_id_add(race->object, race->id, nr);
	race->wrong += rmap_id_exclusive(race->object, race->id) != alone;
	race->wrong += rmap_id_exclusive(race->object, 1) != alone;
	rmap_id_add(race->object, race->id, -nr);
	race->rounds++;
}

static int id_race_thread(void *data)
{
	while (!kthread_should_stop()) {
		id_race_round(data);
		cond_resched();
	}
	return 0;
}

static const struct id_race_kind {
	const char *desc;
	unsigned int id[2];
	unsigned long length;
	bool beside;
} id_race_kinds[] = {
	{ "three owners", { 0x5501, 0xaa01 }, RACE_JIFFIES },
	{ "one owner", { 1, 1 }, RACE_JIFFIES },
	{ "beside writers", { 0x5501, 0xaa01 }, RARE_JIFFIES, true },
};

KUNIT_ARRAY_PARAM_DESC(id_race_kind, id_race_kinds, desc);

/*
 * One owner has a mapping all the time. Two more owners map and unmap the
 * object on two CPUs: while they have a mapping, no owner is the only one. In
 * another run all three are the same owner, and this owner is the only owner
 * all the time. A read in the middle of a write would give a wrong answer. At
 * the end the sums are right, so no update was lost. This also holds for
 * writers that share the count: an update would be lost if a writer were
 * stopped between the read and the write of a sum.
 */
static void rmap_id_exclusive_race(struct kunit *test)
{
	const struct id_race_kind *kind = test->param_value;
	unsigned long end = jiffies + kind->length;
	struct rmap_id_object *object;
	struct id_race races[2] = {};
	struct task_struct *task;
	unsigned int i;

	cnt_needs_cpus(test);
	object = kunit_kzalloc(test, struct_size(object, sum, RMAP_ID_VALUES_MAX),
			       GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, object);
	rmap_id_init(object, 9);
	for (i = 0; i < ARRAY_SIZE(races); i++) {
		races[i].object = object;
		races[i].id = kind->id[i];
		races[i].beside = kind->beside;
	}

	rmap_id_add(object, 1, 1);
	task = cnt_thread(test, id_race_thread, &races[0]);
	while (time_before(jiffies, end)) {
		id_race_round(&races[1]);
		cond_resched();
	}
	kthread_stop(task);

	for (i = 0; i < ARRAY_SIZE(races); i++) {
		PGTABLE_KUNIT_DID(test, races[i].rounds, "rounds");
		KUNIT_EXPECT_EQ(test, races[i].wrong, 0);
	}
	KUNIT_EXPECT_TRUE(test, rmap_id_exclusive(object, 1));
	rmap_id_add(object, 1, -1);
	KUNIT_EXPECT_EQ(test, atomic_read(&object->mapcount), 0);
	for (i = 0; i < RMAP_ID_VALUES_MAX; i++)
		KUNIT_EXPECT_EQ(test, atomic64_read(&object->sum[i]), 0);
}

static struct kunit_case seqcount_race_cases[] = {
	KUNIT_CASE_PARAM(atomic_seqcount_waits, cnt_wait_gen_params),
	KUNIT_CASE(atomic_seqcount_attempt_in_flight),
	KUNIT_CASE(atomic_seqcount_all_at_once),
	KUNIT_CASE_PARAM(rmap_id_exclusive_race, id_race_kind_gen_params),
	{}
};

static struct kunit_suite seqcount_race_suite = {
	.name = "atomic_seqcount_race",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = seqcount_race_cases,
};

kunit_test_suite(seqcount_race_suite);

MODULE_DESCRIPTION("KUnit tests for sequence counts with several writers: races");
MODULE_LICENSE("GPL");
