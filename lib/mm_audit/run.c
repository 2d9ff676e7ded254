// SPDX-License-Identifier: GPL-2.0
/*
 * An audit stops the machine, reads all page tables and folios, and keeps the
 * violations. It repeats itself if it finds violations, and reports only
 * violations that stay the same. So it does not report differences that exist
 * only for a moment.
 */

#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/stop_machine.h>
#include <linux/swap.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

#include "audit.h"

/* The time between two rounds, in milliseconds. */
#define RUN_WAIT	20

static DEFINE_MUTEX(run_lock);
static struct audit run_audit;
static struct mm_audit *run_round;

/* Collect all address spaces of tasks, each once. */
static void run_collect(struct audit *a)
{
	struct task_struct *leader, *task;
	unsigned int i;

	a->nr_tasks = 0;
	a->overflow = false;
	for_each_process_thread(leader, task) {
		struct mm_struct *mm = task->mm;

		if (!mm || (task != leader && mm == leader->mm))
			continue;
		for (i = 0; i < a->nr_tasks && a->tasks[i].mm != mm; i++)
			;
		if (i < a->nr_tasks)
			continue;
		if (i == AUDIT_MMS) {
			a->overflow = true;
			return;
		}
		a->tasks[a->nr_tasks++] = (struct audit_task){ mm, task };
	}
}

static int run_stopped(void *data)
{
	struct audit *a = data;
	u64 start = ktime_get_mono_fast_ns();
	unsigned int i;

	rcu_read_lock();
	run_collect(a);
	for (i = 0; i < a->nr_tasks && !a->overflow; i++) {
		a->nr = i + 1;
		a->mm = a->tasks[i].mm;
		a->task = a->tasks[i].task;
		audit_mm(a);
	}
	a->mm = NULL;
	a->task = NULL;
	if (!a->overflow) {
		audit_folios(a);
		audit_stats(a);
		audit_hugetlb_state(a);
		audit_swaps(a);
	}
	rcu_read_unlock();
	a->out->mms = a->nr_tasks;
	a->out->ns = ktime_get_mono_fast_ns() - start;
	return a->overflow ? -E2BIG : 0;
}

/* Flush the pages and statistics that each CPU keeps to itself. */
static void run_drain(void)
{
	lru_add_drain_all();
#ifdef CONFIG_MEMCG
	if (!mem_cgroup_disabled()) {
#ifdef PGTABLE_KUNIT_HAS_CSS_RSTAT
		css_rstat_flush(&root_mem_cgroup->css);
#else
		cgroup_rstat_flush(root_mem_cgroup->css.cgroup);
#endif
	}
#endif
}

static int run_once(struct audit *a, struct mm_audit *out, bool quiet)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->quiet = quiet;
	a->out = out;
	memset(a->stat, 0, sizeof(a->stat));
	memset(a->nr_anon, 0, sizeof(a->nr_anon));
	memset(a->partially_mapped, 0, sizeof(a->partially_mapped));
	a->charged = 0;
	err = audit_frames_prepare(a);
	if (!err)
		err = audit_swap_prepare(a);
	if (err)
		return err;
	audit_frames_clear();
	audit_swap_clear(a);
	audit_hugetlb_clear();
	run_drain();
	return stop_machine(run_stopped, a, NULL);
}

static bool run_same(const struct mm_audit_violation *a,
		     const struct mm_audit_violation *b)
{
	return a->rule == b->rule && a->what == b->what && a->pid == b->pid &&
	       a->addr == b->addr && a->pfn == b->pfn && a->got == b->got &&
	       a->want == b->want;
}

/* Drop the violations of @audit that @again does not have. */
static void run_keep(struct mm_audit *audit, const struct mm_audit *again)
{
	unsigned int i, j, nr = 0;

	for (i = 0; i < audit->nr; i++) {
		for (j = 0; j < again->nr; j++)
			if (run_same(&audit->violation[i], &again->violation[j]))
				break;
		if (j < again->nr)
			audit->violation[nr++] = audit->violation[i];
	}
	/* Violations that were not kept cannot be compared one by one. */
	audit->violations = audit->nr < MM_AUDIT_KEEP ? nr :
			    min(audit->violations, again->violations);
	audit->nr = nr;
}

/**
 * mm_audit_run() - audit all address spaces and all folios
 * @audit: the audit; @audit->quiet is read, and all other members are written
 *
 * The caller sleeps. A violation is reported if MM_AUDIT_ROW rounds in a row
 * find it with the same numbers.
 *
 * Return: 0, even if there are violations; -ENOMEM without memory for an audit,
 * -E2BIG if there are too many address spaces.
 */
int mm_audit_run(struct mm_audit *audit)
{
	struct audit *a = &run_audit;
	int err = -ENOMEM;

	guard(mutex)(&run_lock);
	if (!a->tasks)
		a->tasks = vmalloc_array(AUDIT_MMS, sizeof(*a->tasks));
	if (!run_round)
		run_round = vmalloc(sizeof(*run_round));
	if (!a->tasks || !run_round)
		return err;
	err = run_once(a, audit, audit->quiet);
	audit->rounds = 1;
	while (!err && audit->violations && audit->rounds < MM_AUDIT_ROW) {
		msleep(RUN_WAIT);
		err = run_once(a, run_round, audit->quiet);
		run_keep(audit, run_round);
		audit->rounds++;
	}
	return err;
}
