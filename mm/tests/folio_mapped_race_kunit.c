// SPDX-License-Identifier: GPL-2.0
/*
 * Is a large folio mapped by one mm, or by several, while other CPUs map and
 * unmap it?
 *
 * The kernel takes the lock of the folio to map it, but not to find out whether
 * it is shared. So each mm maps the folio and then asks, while other mms do the
 * same on other CPUs.
 *
 * Not covered: an mm that asks without a mapping, which may get an outdated
 * answer.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests --arch=arm64 \
 *	--qemu_args '-smp 2' 'folio_mapped_race'
 */

#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rmap.h>

#include "folio_mapped.h"

/**
 * struct mapped_racer - one of several mms that map a folio at the same time
 * @folio: the folio
 * @vma: the mm that maps it
 * @other: an mm on another CPU
 * @inside: this mm maps the folio, or is about to map it
 * @rounds: how often this mm has mapped the folio
 * @met: how often @other was inside at the same time
 * @missed: how often the kernel said "not shared"
 */
struct mapped_racer {
	struct folio *folio;
	struct vm_area_struct *vma;
	struct mapped_racer *other;
	bool inside;
	unsigned long rounds;
	unsigned long met;
	unsigned long missed;
};

/* While this mm and A map the folio, it is shared. */
static void mapped_race_round(struct mapped_racer *racer)
{
	struct folio *folio = racer->folio;
	int nr = 1 + racer->rounds % folio_nr_pages(folio);

	WRITE_ONCE(racer->inside, true);
	pgtable_kunit_add_mapcount(folio, nr, racer->vma);
	racer->missed += !pgtable_kunit_mapped_shared(folio);
	if (nr > 1)
		pgtable_kunit_sub_mapcount(folio, nr - 1, racer->vma);
	racer->missed += !pgtable_kunit_mapped_shared(folio);
	if (READ_ONCE(racer->other->inside))
		WRITE_ONCE(racer->met, racer->met + 1);
	pgtable_kunit_sub_mapcount(folio, 1, racer->vma);
	WRITE_ONCE(racer->inside, false);
	racer->rounds++;
}

static int mapped_race_thread(void *data)
{
	while (!kthread_should_stop()) {
		mapped_race_round(data);
		cond_resched();
	}
	return 0;
}

static bool mapped_race_all_met(struct mapped_racer *racers)
{
	return READ_ONCE(racers[0].met) && READ_ONCE(racers[1].met) &&
	       READ_ONCE(racers[2].met);
}

/*
 * A has one page mapped all the time. Three other mms map and unmap pages: one
 * on this CPU, and two on one or two other CPUs. While one of them has a
 * mapping, the kernel never says that only A maps the folio. When they have
 * unmapped it, only A maps it, and no count is lost. At the end the folio is as
 * new. Each of the three must at some time have a mapping while an mm on
 * another CPU has a mapping too. The case runs for half a second, which is
 * enough for thousands of rounds, and longer if necessary.
 */
static void folio_mapcount_race(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 4);
	struct mapped_racer racers[3] = {};
	unsigned int here = raw_smp_processor_id(), cpu = here;
	struct mapped_mms *mms = test->priv;
	struct task_struct *tasks[2];
	struct mapped_model model = {};
	unsigned long start;
	int i;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	KUNIT_ASSERT_EQ(test, 0,
			set_cpus_allowed_ptr(current, cpumask_of(here)));
	mapped_model_change(&model, 0, 1);
	pgtable_kunit_set_mapcount(folio, 1, mms->vma[0]);
	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		racers[i].folio = folio;
		racers[i].vma = mms->vma[i + 1];
		racers[i].other = &racers[i == 2 ? 0 : 2];
	}
	for (i = 0; i < ARRAY_SIZE(tasks); i++) {
		tasks[i] = kthread_create(mapped_race_thread, &racers[i],
					  "folio_mapped/%d", i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(tasks[i]));
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu == here)
			cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_any_but(cpu_online_mask, here);
		kthread_bind(tasks[i], cpu);
		wake_up_process(tasks[i]);
	}
	start = jiffies;
	while (pgtable_kunit_race_on(start, HZ / 2, mapped_race_all_met(racers))) {
		mapped_race_round(&racers[2]);
		cond_resched();
	}
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		kthread_stop(tasks[i]);

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		KUNIT_EXPECT_EQ_MSG(test, racers[i].missed, 0, "mm %d", i + 1);
		PGTABLE_KUNIT_DID(test, racers[i].rounds, "rounds");
		PGTABLE_KUNIT_DID(test, racers[i].met, "rounds while another CPU mapped the folio");
	}
	mapped_check(test, &model, folio, "A alone");
	KUNIT_EXPECT_FALSE(test, pgtable_kunit_mapped_shared(folio));
	mapped_model_change(&model, 0, -1);
	pgtable_kunit_sub_mapcount(folio, 1, mms->vma[0]);
	mapped_check(test, &model, folio, "nobody");
}

static struct kunit_case mapped_race_cases[] = {
	KUNIT_CASE(folio_mapcount_race),
	{}
};

static struct kunit_suite mapped_race_suite = {
	.name = "folio_mapped_race",
	.suite_init = pgtable_kunit_suite_init,
	.init = mapped_fake_init,
	.test_cases = mapped_race_cases,
};

kunit_test_suite(mapped_race_suite);

MODULE_DESCRIPTION("KUnit tests for the owners of a mapped folio, races");
MODULE_LICENSE("GPL");
