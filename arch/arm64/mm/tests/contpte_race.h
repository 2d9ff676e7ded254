/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for suites that need other CPUs. */
#ifndef _ARM64_MM_TESTS_CONTPTE_RACE_H
#define _ARM64_MM_TESTS_CONTPTE_RACE_H

#include <linux/cpumask.h>
#include <linux/kthread.h>

#include "contpte.h"

/* The parameter contpte_race.seconds. */
extern unsigned int contpte_race_seconds;

/*
 * How long a race runs: a fraction of a second, or as long as the parameter
 * says.
 */
#define RACE_JIFFIES(fraction) \
	(contpte_race_seconds ? contpte_race_seconds * HZ : HZ / (fraction))

/* Another CPU has to answer within this time. */
#define RACE_ANSWER_JIFFIES	(10 * HZ)

/**
 * race_next_cpu() - choose the next CPU to run something on
 * @cpu: the CPU that was chosen before, or -1
 *
 * Return: an online CPU that is not this one, or nr_cpu_ids.
 */
static inline unsigned int race_next_cpu(int cpu)
{
	do {
		cpu = cpumask_next(cpu, cpu_online_mask);
	} while (cpu == raw_smp_processor_id());
	return cpu;
}

/**
 * race_thread() - start a thread on another CPU
 * @test: the test
 * @cpu: the CPU
 * @fn: the function of the thread, which runs until kthread_should_stop()
 * @data: its argument
 */
static inline struct task_struct *race_thread(struct kunit *test,
					      unsigned int cpu,
					      int (*fn)(void *data), void *data)
{
	struct task_struct *task = kthread_create(fn, data, "contpte_race/%u", cpu);

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, cpu);
	wake_up_process(task);
	return task;
}

/**
 * race_needs_cpus() - skip a case if there is no other CPU
 * @test: the test
 *
 * Otherwise the case stays on its CPU. If it moved to the CPU of a thread that
 * waits for it in a loop, this thread would block the case.
 */
static inline void race_needs_cpus(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0,
			set_cpus_allowed_ptr(current,
					     cpumask_of(raw_smp_processor_id())));
	if (race_next_cpu(-1) >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
}

/**
 * race_clear() - clear all entries of the first block
 * @f: the fixture
 *
 * A lockless reader that waits for the block then returns.
 */
static inline void race_clear(struct pte_ctx *f)
{
	unsigned int i;

	for (i = 0; i < CONT_PTES; i++)
		pgtable_kunit_raw_clear(f->table->mm, contpte_addr(f, i),
					contpte_ptep(f, i));
}

#endif /* _ARM64_MM_TESTS_CONTPTE_RACE_H */
