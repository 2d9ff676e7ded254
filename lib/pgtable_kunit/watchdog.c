// SPDX-License-Identifier: GPL-2.0
/*
 * The watchdog: it names a test case that hangs, and ends the run.
 *
 * KUnit gives up on a case after minutes, and then waits for a thread that may
 * never notice this. So the watchdog runs a kernel timer during each case. The
 * timer expires in the interrupt of the tick. So it also ends an endless loop
 * on a machine with one CPU, in a kernel without preemption. The kernel cannot
 * continue after a hang, so the timer causes a panic. The launcher boots again
 * for the other suites.
 */

#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/sched/debug.h>
#include <linux/timer.h>

#include "pgtable_kunit.h"

/*
 * The limit is longer if the kernel checks each access or lock, but shorter
 * than KUnit's own limit.
 */
static unsigned int timeout =
	IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_PROVE_LOCKING) ? 90 : 60;
module_param(timeout, uint, 0644);
MODULE_PARM_DESC(timeout, "seconds after which a test case counts as a hang");

/* The limit of slow cases is longer by this factor. */
#define SLOW_FACTOR	3

/* KUnit runs one case at a time. */
static struct {
	const char *suite;
	const char *name;
	struct task_struct *task;
	unsigned int seconds;
	bool warned;
} watched;

static void watchdog_expired(struct timer_list *timer)
{
	pr_emerg("# %s: %s: hang: no end after %u s\n", watched.suite,
		 watched.name, watched.seconds);
	sched_show_task(watched.task);
	panic("# %s: %s: hang\n", watched.suite, watched.name);
}

static DEFINE_TIMER(watchdog, watchdog_expired);

static void case_exit(void *data)
{
	struct kunit *test = data;

	timer_delete_sync(&watchdog);
	put_task_struct(watched.task);

	if (!watched.warned && test_taint(TAINT_WARN))
		KUNIT_FAIL(test, "the kernel has warned: see its log");
}

/* The suite that is running. */
static const struct kunit_suite *suite_now;

static const struct kunit_case *case_of(struct kunit *test,
					const struct kunit_suite *suite)
{
	const struct kunit_case *test_case;

	for (test_case = suite->test_cases; test_case->run_case; test_case++) {
		if (!strcmp(test_case->name, test->name))
			return test_case;
	}
	return NULL;
}

/**
 * pgtable_kunit_case_init() - watch over a test case
 * @test: the test
 * @suite: its suite
 *
 * For the init function of a suite with another suite_init than
 * pgtable_kunit_suite_init().
 *
 * Return: 0, or an error number.
 */
int pgtable_kunit_case_init(struct kunit *test, const struct kunit_suite *suite)
{
	const struct kunit_case *test_case = case_of(test, suite);

	/* A suite without suite_init may run after a suite that has it. */
	if (!test_case) {
		kunit_err(test, "its suite needs .suite_init = pgtable_kunit_suite_init\n");
		return -EINVAL;
	}
	watched.suite = suite->name;
	watched.name = test->name;
	watched.task = get_task_struct(current);
	watched.seconds = timeout;
	if (test_case->attr.speed == KUNIT_SPEED_SLOW ||
	    test_case->attr.speed == KUNIT_SPEED_VERY_SLOW)
		watched.seconds *= SLOW_FACTOR;
	watched.warned = test_taint(TAINT_WARN);
	mod_timer(&watchdog, jiffies + watched.seconds * HZ);

	return kunit_add_action_or_reset(test, case_exit, test);
}

/**
 * pgtable_kunit_suite_init() - the suite_init of a suite
 * @suite: the suite
 *
 * Return: 0
 */
int pgtable_kunit_suite_init(struct kunit_suite *suite)
{
	suite_now = suite;
	return 0;
}

/**
 * pgtable_kunit_init() - the init of a suite: watch over a test case
 * @test: the test
 *
 * If a suite has its own init function, this init function must call
 * pgtable_kunit_init() first. The case fails if it makes the kernel warn. If
 * the case takes longer than the parameter pgtable_kunit.timeout, the watchdog
 * ends it as a hang.
 *
 * Return: 0, or an error number.
 */
int pgtable_kunit_init(struct kunit *test)
{
	return pgtable_kunit_case_init(test, suite_now);
}
