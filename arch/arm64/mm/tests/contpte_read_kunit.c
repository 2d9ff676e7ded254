// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: readers.
 *
 * The hardware may set the accessed and the dirty bit in any entry of a folded
 * block, whichever page was accessed. ptep_get() and ptep_get_lockless() give
 * them back for every entry of the block, and no bits of other blocks. The
 * lockless one does so while the block is converted by another CPU.
 *
 * Each case writes entries as the hardware leaves them, reads through the
 * public functions, and compares with what the entries say. Not covered: ageing
 * and access flags.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/kthread.h>

#include "contpte.h"

/* How the dirty bit is stored. */
static const struct read_kind {
	const char *desc;
	bool write;
	bool sw;
} read_kinds[] = {
	{ "writable, dirty in hardware", true, false },
	{ "writable, dirty in software", true, true },
	{ "read-only, dirty in software", false, true },
};

KUNIT_ARRAY_PARAM_DESC(read_kind, read_kinds, desc);

static pte_t read_pte(struct contpte_fixture *f, const struct read_kind *kind,
		      unsigned int page)
{
	pte_t pte = contpte_pte(f, page);

	return kind->write ? pte : pte_wrprotect(pte);
}

static void read_fill(struct contpte_fixture *f, const struct read_kind *kind,
		      bool folded, unsigned int young, unsigned int dirty)
{
	unsigned int i;

	for (i = 0; i < 3 * CONT_PTES; i++) {
		bool outside = i / CONT_PTES != 1;
		pte_t pte = read_pte(f, kind, i);

		/* Blocks on either side have all the bits. */
		if (outside || i % CONT_PTES == young)
			pte = pte_mkyoung(pte);
		if (outside || i % CONT_PTES == dirty)
			pte = kind->sw ?
			      set_pte_bit(pte, __pgprot(PTE_DIRTY)) :
			      contpte_mkhwdirty(pte);
		if (folded)
			pte = contpte_mkcont(pte);
		pgtable_kunit_table_set(f->table, i, pte);
	}
}

/*
 * One entry of a folded block is young and one is dirty, in all pairs of
 * places, including the same and nowhere: every entry of the block reads as
 * young and dirty, with its own page [contpte 44-50, 54]. The table does not
 * change, and the blocks next to it, which have both bits, do not count [52].
 * The newer kernel stops searching once it has found both bits, with a loop of
 * its own for each order of finding them: hence all pairs.
 */
static void ptep_get_folded(struct kunit *test)
{
	const struct read_kind *kind = test->param_value;
	struct contpte_fixture *f = test->priv;
	unsigned int young, dirty, i, reads = 0;

	for (young = 0; young < CONT_PTES + 1; young = contpte_next(young)) {
		for (dirty = 0; dirty < CONT_PTES + 1; dirty = contpte_next(dirty)) {
			pgtable_kunit_table_reset(f->table);
			read_fill(f, kind, true, young, dirty);

			for (i = CONT_PTES; i < 2 * CONT_PTES; i = contpte_next(i)) {
				pte_t *ptep = contpte_ptep(f, i), got[2], want;

				want = pgtable_kunit_raw_get(ptep);
				if (young != CONTPTE_NOWHERE)
					want = pte_mkyoung(want);
				if (dirty != CONTPTE_NOWHERE)
					want = pte_mkdirty(want);

				got[0] = ptep_get(ptep);
				got[1] = ptep_get_lockless(ptep);
				reads++;
				if (pte_same(got[0], want) &&
				    pte_same(got[1], want))
					continue;
				KUNIT_FAIL(test,
					   "%s: entry %u, young %u, dirty %u of %u: read %016llx, lockless %016llx, expected %016llx",
					   kind->desc, i % CONT_PTES, young,
					   dirty, CONT_PTES, pte_val(got[0]),
					   pte_val(got[1]), pte_val(want));
				return;
			}
			if (!contpte_check(f, "young %u, dirty %u", young, dirty))
				return;
		}
	}
	kunit_info(test, "%u reads\n", reads);
}

/*
 * In a block that is not folded, the bits of an entry are its own [contpte
 * 51], although its neighbours are young and dirty.
 */
static void ptep_get_unfolded(struct kunit *test)
{
	const struct read_kind *kind = test->param_value;
	struct contpte_fixture *f = test->priv;
	unsigned int i;

	read_fill(f, kind, false, 0, CONT_PTES - 1);
	for (i = 0; i < 3 * CONT_PTES; i++) {
		pte_t *ptep = contpte_ptep(f, i);
		pte_t want = pgtable_kunit_raw_get(ptep);

		KUNIT_EXPECT_EQ_MSG(test, pte_val(ptep_get(ptep)),
				    pte_val(want), "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, pte_val(ptep_get_lockless(ptep)),
				    pte_val(want), "lockless, entry %u", i);
	}
	contpte_check(f, "unfolded");
}

struct read_race {
	struct contpte_fixture *f;
	struct completion started;
	unsigned long rounds;
	unsigned long reads;
};

/*
 * In one round of 64, wait until the reader has had the time to read a block
 * that does not change; else large blocks are never read as a whole.
 */
static void read_race_let_read(struct read_race *race)
{
	unsigned long reads = READ_ONCE(race->reads);

	if (race->rounds % 64)
		return;
	while (READ_ONCE(race->reads) - reads < 2 && !kthread_should_stop())
		cond_resched();
}

/*
 * The other CPU: a block that is written entry by entry, only the last one
 * young, as if the hardware had accessed it; unfolded and folded again, all
 * entries young by now; and cleared.
 */
static int read_race_writer(void *data)
{
	struct read_race *race = data;
	struct contpte_fixture *f = race->f;
	struct mm_struct *mm = f->table->mm;
	unsigned int i, last = CONT_PTES - 1;

	complete(&race->started);
	while (!kthread_should_stop()) {
		for (i = 0; i < CONT_PTES; i++) {
			pte_t pte = contpte_mkcont(contpte_pte(f, i));

			if (i == last)
				pte = pte_mkyoung(pte);
			pgtable_kunit_raw_set(mm, contpte_addr(f, i),
					      contpte_ptep(f, i), pte);
		}
		read_race_let_read(race);
		set_pte_at(mm, contpte_addr(f, 0), contpte_ptep(f, 0),
			   pte_mkyoung(contpte_pte(f, 0)));
		set_pte_at(mm, contpte_addr(f, last), contpte_ptep(f, last),
			   pte_mkyoung(contpte_pte(f, last)));
		read_race_let_read(race);
		clear_full_ptes(mm, contpte_addr(f, 0), contpte_ptep(f, 0),
				CONT_PTES, 0);
		WRITE_ONCE(race->rounds, race->rounds + 1);
		cond_resched();
	}
	return 0;
}

/*
 * A lockless reader sees nothing, or its own page with the right bits. If it
 * sees a folded block, that block was consistent when it was read, and so it
 * was young: the only young entry is written last. A reader that does not
 * start again when it meets an entry that does not fit returns it as old. And
 * it makes progress [contpte 63]. Half a second is thousands of rounds.
 */
static void ptep_get_lockless_races_fold(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	struct read_race race = { .f = f };
	unsigned long folded = 0, end;
	struct task_struct *writer;
	unsigned int cpu, i = 0;

	/* On the writer's CPU, a reader that spins would wait for ever. */
	cpu = raw_smp_processor_id();
	KUNIT_ASSERT_EQ(test, 0,
			set_cpus_allowed_ptr(current, cpumask_of(cpu)));
	cpu = cpumask_any_but(cpu_online_mask, cpu);
	if (cpu >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");

	init_completion(&race.started);
	writer = kthread_create(read_race_writer, &race, "contpte_writer");
	KUNIT_ASSERT_FALSE(test, IS_ERR(writer));
	kthread_bind(writer, cpu);
	wake_up_process(writer);
	wait_for_completion(&race.started);

	for (end = jiffies + HZ / 2; time_before(jiffies, end);) {
		pte_t got = ptep_get_lockless(contpte_ptep(f, i));
		pte_t want = contpte_pte(f, i);
		bool cont = pte_valid_cont(got);

		if (!pte_none(got) &&
		    (!pte_same(pte_mkold(pte_mknoncont(got)), want) ||
		     (cont && !pte_young(got)))) {
			KUNIT_FAIL(test,
				   "entry %u of %u reads %016llx, expected %016llx, and young if contiguous",
				   i, CONT_PTES, pte_val(got), pte_val(want));
			break;
		}
		folded += cont;
		WRITE_ONCE(race.reads, race.reads + 1);
		i = (i + 1) % CONT_PTES;
		cond_resched();
	}
	kthread_stop(writer);

	kunit_info(test, "%lu reads, %lu of a folded block, %lu rounds\n",
		   race.reads, folded, race.rounds);
	KUNIT_EXPECT_GT(test, folded, 0);
	KUNIT_EXPECT_GT(test, race.rounds, 0);
	pgtable_kunit_table_check(f->table, "after the race");
}

static struct kunit_suite contpte_read_suite;

static int contpte_read_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_read_suite);

	if (err)
		return err;
	test->priv = contpte_fixture_alloc(test);
	return 0;
}

static struct kunit_case contpte_read_cases[] = {
	KUNIT_CASE_PARAM(ptep_get_folded, read_kind_gen_params),
	KUNIT_CASE_PARAM(ptep_get_unfolded, read_kind_gen_params),
	KUNIT_CASE(ptep_get_lockless_races_fold),
	{}
};

static struct kunit_suite contpte_read_suite = {
	.name = "contpte_read",
	.init = contpte_read_init,
	.test_cases = contpte_read_cases,
};

kunit_test_suite(contpte_read_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: readers");
MODULE_LICENSE("GPL");
