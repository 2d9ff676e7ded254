// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: readers on other CPUs.
 *
 * A reader without the page-table lock (GUP-fast, perf) may read a block while
 * it is being changed. The reader starts again until the block is consistent.
 * It must return a value that its entry had, with the accessed and dirty bits
 * of the whole block.
 *
 * Some cases stop halfway through changing a block, and check that a reader
 * waits. One case lets readers and a writer run for a short time.
 * contpte_race.seconds= makes this time longer; pgtable_kunit.timeout= must
 * then be higher. All cases need two CPUs, and use more CPUs if there are any.
 * Not covered: the hardware (contpte_race_hw), stale TLB entries.
 *
 * Begin with contpte_fold. Read contpte_read before this suite.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--qemu_args '-smp 2' 'contpte_race'
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/module.h>

#include "contpte_race.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX	"contpte_race."

unsigned int contpte_race_seconds;
module_param_named(seconds, contpte_race_seconds, uint, 0644);
MODULE_PARM_DESC(seconds, "duration of each race in seconds; 0 for a fraction of a second");

/* A reader that has not returned after this time is waiting. */
#define SPIN_JIFFIES		max(HZ / 100, 1)

/* Entry @i of the first block, before any change. */
static pte_t race_pte(struct pte_ctx *f, unsigned int i, bool folded)
{
	pte_t pte = contpte_pte(f, i);

	return folded ? contpte_mkcont(pte) : pte;
}

static void race_set(struct pte_ctx *f, unsigned int i, pte_t pte)
{
	pgtable_kunit_raw_set(f->table->mm, contpte_addr(f, i),
			      contpte_ptep(f, i), pte);
}

/* One read of one entry by another CPU. */
struct race_read {
	pte_t *ptep;
	pte_t got;
	struct completion started;
	struct completion done;
	struct task_struct *task;
};

static int race_read_thread(void *data)
{
	struct race_read *read = data;

	complete(&read->started);
	read->got = ptep_get_lockless(read->ptep);
	complete(&read->done);

	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static void race_read_start(struct kunit *test, struct race_read *read,
			    pte_t *ptep)
{
	read->ptep = ptep;
	init_completion(&read->started);
	init_completion(&read->done);
	read->task = race_thread(test, race_next_cpu(-1), race_read_thread, read);
	wait_for_completion(&read->started);
}

/* Whether the reader returns before the time is over. */
static bool race_read_back(struct race_read *read, unsigned long timeout)
{
	return try_wait_for_completion(&read->done) ||
	       wait_for_completion_timeout(&read->done, timeout);
}

/*
 * Let the reader return: an empty entry ends its loop. A reader that does not
 * read its own entry again returns only after it has found the expected block,
 * which begins with @page.
 */
static void race_read_end(struct pte_ctx *f, struct race_read *read,
			  bool back, unsigned int page)
{
	unsigned int i;

	if (!back) {
		for (i = 0; i < CONT_PTES; i++)
			race_set(f, i, contpte_mkcont(contpte_pte(f, page + i)));
		race_read_back(read, RACE_ANSWER_JIFFIES);
	}
	race_clear(f);
	kthread_stop(read->task);
}

/* An entry that does not match the other entries of its block. */
static const struct race_flaw {
	const char *desc;
	pteval_t set, clear;
	int pages;	/* distance of its page from the right page */
	bool none;
	bool fits;	/* a reader accepts it all the same */
} race_flaws[] = {
	{ "none", .none = true },
	{ "PROT_NONE", .set = PTE_PRESENT_INVALID, .clear = PTE_VALID },
	{ "not contiguous", .clear = PTE_CONT },
	{ "the next page", .pages = 1 },
	{ "the page before", .pages = -1 },
	{ "a page of the next block", .pages = CONT_PTES },
	{ "read-only", .set = PTE_RDONLY, .clear = PTE_WRITE },
	{ "uffd", .set = PGTABLE_KUNIT_PTE_UFFD },
	{ "executable", .clear = PTE_UXN },
	{ "young", .set = PTE_AF, .fits = true },
	{ "dirty in hardware", .clear = PTE_RDONLY, .fits = true },
	{ "dirty in software", .set = PTE_DIRTY, .fits = true },
};

KUNIT_ARRAY_PARAM_DESC(race_flaw, race_flaws, desc);

static pte_t race_flawed(struct pte_ctx *f, unsigned int i,
			 const struct race_flaw *flaw)
{
	pte_t pte;

	if (flaw->none)
		return __pte(0);
	/* The folio has room on both sides of the second block's pages. */
	pte = contpte_mkcont(contpte_pte(f, CONT_PTES + i + flaw->pages));
	pte = clear_pte_bit(pte, __pgprot(flaw->clear));
	return set_pte_bit(pte, __pgprot(flaw->set));
}

/*
 * The reader waits while one entry of the block is none, not valid, not
 * contiguous, or has a wrong page or other permissions. After the entry is
 * repaired, the reader returns the value of its own entry. The reader does not
 * wait if only accessed and dirty bits differ. The wrong entry is the first,
 * the last, or one in the middle; the reader's own entry is before it or after
 * it. No other entry is young or dirty: a reader that has found both bits does
 * not have to read the rest.
 */
static void ptep_get_lockless_waits_for_block(struct kunit *test)
{
	const unsigned int places[] = { 0, CONT_PTES / 2, CONT_PTES - 1 };
	const struct race_flaw *flaw = test->param_value;
	struct pte_ctx *f = test->priv;
	struct race_read read;
	unsigned int n, i;

	if (!IS_ENABLED(CONFIG_HAVE_ARCH_USERFAULTFD_WP) &&
	    !strcmp(flaw->desc, "uffd"))
		kunit_skip(test, "needs CONFIG_HAVE_ARCH_USERFAULTFD_WP");

	for (n = 0; n < 2 * ARRAY_SIZE(places); n++) {
		unsigned int bad = places[n / 2];
		unsigned int at = (bad + (n % 2 ? 1 : CONT_PTES - 1)) % CONT_PTES;
		pte_t want = contpte_mkcont(contpte_pte(f, CONT_PTES + at));
		pte_t flawed = race_flawed(f, bad, flaw);
		bool waits, back;

		for (i = 0; i < CONT_PTES; i++)
			race_set(f, i, i == bad ? flawed :
				 contpte_mkcont(contpte_pte(f, CONT_PTES + i)));

		race_read_start(test, &read, contpte_ptep(f, at));
		if (flaw->fits) {
			waits = false;
			if (pte_young(flawed))
				want = pte_mkyoung(want);
			if (pte_dirty(flawed))
				want = pte_mkdirty(want);
		} else {
			waits = !race_read_back(&read, SPIN_JIFFIES);
			race_set(f, bad, contpte_mkcont(contpte_pte(f, CONT_PTES + bad)));
		}
		/* Wait again, to notice a reader that returns too early. */
		back = flaw->fits || waits ? race_read_back(&read, RACE_ANSWER_JIFFIES) :
					     true;
		race_read_end(f, &read, back, CONT_PTES);

		KUNIT_EXPECT_EQ_MSG(test, waits, !flaw->fits,
				    "entry %u is %s: the reader of entry %u %s",
				    bad, flaw->desc, at,
				    waits ? "waits" : "does not wait");
		KUNIT_EXPECT_TRUE_MSG(test, back,
				      "entry %u was %s: the reader of entry %u does not come back",
				      bad, flaw->desc, at);
		if (!back)
			return;
		KUNIT_EXPECT_EQ_MSG(test, pte_val(read.got), pte_val(want),
				    "entry %u was %s: reader of entry %u", bad,
				    flaw->desc, at);
	}
}

/* The new value of the entry that a reader waits for. */
static const struct race_change {
	const char *desc;
	bool swap;
	bool valid;
} race_changes[] = {
	{ "none" },
	{ "swap", .swap = true },
	{ "another page, not contiguous", .valid = true },
};

KUNIT_ARRAY_PARAM_DESC(race_change, race_changes, desc);

/*
 * A waiting reader also reads its own entry again. As soon as this entry is no
 * longer part of a block, the reader returns the new value, although the block
 * is still inconsistent.
 */
static void ptep_get_lockless_reads_entry_again(struct kunit *test)
{
	const struct race_change *change = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int i, at;

	for (at = 1; at < CONT_PTES; at += CONT_PTES / 2 - 1) {
		pte_t want = __pte(0);
		struct race_read read;
		bool waits, back;

		if (change->swap)
			want = swp_entry_to_pte(swp_entry(1, 0x1234));
		else if (change->valid)
			want = contpte_pte(f, 3 * CONT_PTES);

		for (i = 1; i < CONT_PTES; i++)
			race_set(f, i, race_pte(f, i, true));
		race_read_start(test, &read, contpte_ptep(f, at));
		waits = !race_read_back(&read, SPIN_JIFFIES);
		race_set(f, at, want);
		back = !waits || race_read_back(&read, RACE_ANSWER_JIFFIES);
		race_read_end(f, &read, back, 0);

		KUNIT_EXPECT_TRUE_MSG(test, waits,
				      "the reader of entry %u does not wait for entry 0",
				      at);
		KUNIT_EXPECT_TRUE_MSG(test, back,
				      "entry %u is %s: its reader does not come back",
				      at, change->desc);
		if (!back)
			return;
		KUNIT_EXPECT_EQ_MSG(test, pte_val(read.got), pte_val(want),
				    "entry %u is %s", at, change->desc);
	}
}

/* Whether a reader stops once it has found both bits. */
#ifdef PGTABLE_KUNIT_HAS_EARLY_READS
#define RACE_LEAVES_EARLY	true
#else
#define RACE_LEAVES_EARLY	false
#endif

/*
 * One entry of the block is young and dirty. If the entry before it is wrong,
 * the reader waits on every kernel. If the entry after it is wrong, the reader
 * of an older kernel waits. The reader of a newer kernel has found both bits,
 * and has to return. Both return their own page, young and dirty.
 */
static void ptep_get_lockless_leaves_early(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i, behind;

	for (behind = 0; behind < 2; behind++) {
		unsigned int found = CONT_PTES / 2, at = found + 1;
		unsigned int bad = behind ? CONT_PTES - 1 : 0;
		pte_t want = pte_mkdirty(pte_mkyoung(race_pte(f, at, true)));
		struct race_read read;
		bool waits, back;

		for (i = 0; i < CONT_PTES; i++) {
			pte_t pte = race_pte(f, i, true);

			if (i == found)
				pte = pte_mkdirty(pte_mkyoung(pte));
			if (i != bad)
				race_set(f, i, pte);
		}
		race_read_start(test, &read, contpte_ptep(f, at));
		waits = !race_read_back(&read, SPIN_JIFFIES);
		race_set(f, bad, race_pte(f, bad, true));
		back = !waits || race_read_back(&read, RACE_ANSWER_JIFFIES);
		race_read_end(f, &read, back, 0);

		KUNIT_EXPECT_EQ_MSG(test, waits, !behind || !RACE_LEAVES_EARLY,
				    "the reader of entry %u %s entry %u", at,
				    waits ? "waits for" : "does not wait for",
				    bad);
		KUNIT_EXPECT_TRUE(test, back);
		if (!back)
			return;
		KUNIT_EXPECT_EQ(test, pte_val(read.got), pte_val(want));
	}
}

/*
 * Stable states of the block, in the order in which the writer makes them.
 * Between two states a reader may see entries of both states, none, or young
 * entries that are not contiguous.
 */
enum race_state {
	RACE_NONE,		/* no entry */
	RACE_WRITTEN,		/* written one by one, the last is young */
	RACE_UNFOLDED,		/* all young from this state on */
	RACE_FOLDED,
	RACE_READONLY,
	RACE_CLEARED,
	RACE_SET,		/* at once */
	RACE_SPLIT,		/* part of it read-only */
	RACE_STATES,
};

struct race_reader {
	struct race_fold *race;
	struct task_struct *task;
	unsigned long reads;
	unsigned long contiguous;
	unsigned long at_rest;
	/* the first wrong value */
	bool failed;
	unsigned int entry;
	unsigned int state;
	pte_t got;
};

#define RACE_READERS	4
/* The writer waits for the readers again after this many rounds. */
#define RACE_WAIT	64

struct race_fold {
	struct pte_ctx *f;
	unsigned int seq;	/* state * 2, and + 1 during a change */
	unsigned long rounds;
	unsigned int nr;
	struct race_reader readers[RACE_READERS];
};

/* The only right value of an entry in a stable state. */
static pte_t race_fold_want(struct pte_ctx *f, unsigned int state,
			    unsigned int i)
{
	pte_t pte = pte_mkyoung(contpte_pte(f, i));

	switch (state) {
	case RACE_NONE:
	case RACE_CLEARED:
		return __pte(0);
	case RACE_UNFOLDED:
		return pte;
	case RACE_READONLY:
		return contpte_mkcont(pte_wrprotect(pte));
	case RACE_SPLIT:
		return i < CONT_PTES / 2 ? pte_wrprotect(pte) : pte;
	default:
		return contpte_mkcont(pte);
	}
}

/*
 * Whether a value is possible during a change: none, or the entry's own page,
 * writable or not, contiguous or not, and always young. Before the only young
 * entry is written, the block is not consistent.
 */
static bool race_fold_possible(struct pte_ctx *f, unsigned int i,
			       pte_t got)
{
	pte_t want = pte_mkyoung(contpte_pte(f, i));

	got = pte_mknoncont(got);
	return pte_none(got) || pte_same(got, want) ||
	       pte_same(got, pte_wrprotect(want));
}

static int race_fold_reader(void *data)
{
	struct race_reader *reader = data;
	struct race_fold *race = reader->race;
	struct pte_ctx *f = race->f;
	unsigned int i = 0;

	while (!kthread_should_stop()) {
		/*
		 * Read the state, then the entry, then the state again. The
		 * writer changes the entry between two changes of the state.
		 */
		unsigned int before = smp_load_acquire(&race->seq), after;
		pte_t got = ptep_get_lockless(contpte_ptep(f, i));
		bool ok = race_fold_possible(f, i, got);

		smp_rmb(); /* see above */
		after = READ_ONCE(race->seq);
		if (before == after && before % 2 == 0) {
			unsigned int state = before / 2 % RACE_STATES;

			ok = pte_same(got, race_fold_want(f, state, i));
			reader->at_rest++;
		}
		if (!ok && !reader->failed) {
			reader->entry = i;
			reader->state = before;
			reader->got = got;
			WRITE_ONCE(reader->failed, true);
		}
		reader->contiguous += pte_valid_cont(got);
		WRITE_ONCE(reader->reads, reader->reads + 1);
		i = (i + 1) % CONT_PTES;
		cond_resched();
	}
	return 0;
}

/* Change the block from one state to the next. */
static void race_fold_step(struct pte_ctx *f, unsigned int state)
{
	unsigned int i, last = CONT_PTES - 1;
	struct mm_struct *mm = f->table->mm;
	unsigned long addr = contpte_addr(f, 0);
	pte_t *ptep = contpte_ptep(f, 0);

	switch (state) {
	case RACE_NONE:
		for (i = 0; i < CONT_PTES; i++) {
			pte_t pte = race_pte(f, i, true);

			race_set(f, i, i == last ? pte_mkyoung(pte) : pte);
		}
		break;
	case RACE_WRITTEN:
		set_pte_at(mm, addr, ptep, pte_mkyoung(contpte_pte(f, 0)));
		break;
	case RACE_UNFOLDED:
		set_pte_at(mm, contpte_addr(f, last), contpte_ptep(f, last),
			   pte_mkyoung(contpte_pte(f, last)));
		break;
	case RACE_FOLDED:
		wrprotect_ptes(mm, addr, ptep, CONT_PTES);
		break;
	case RACE_READONLY:
		clear_full_ptes(mm, addr, ptep, CONT_PTES, 0);
		break;
	case RACE_CLEARED:
		set_ptes(mm, addr, ptep, pte_mkyoung(contpte_pte(f, 0)),
			 CONT_PTES);
		break;
	case RACE_SET:
		wrprotect_ptes(mm, addr, ptep, CONT_PTES / 2);
		break;
	case RACE_SPLIT:
		get_and_clear_full_ptes(mm, addr, ptep, CONT_PTES, 0);
		break;
	}
}

/* In a stable state, wait until every reader has read two more entries. */
static bool race_fold_all_read(struct race_fold *race)
{
	unsigned long end = jiffies + RACE_ANSWER_JIFFIES;
	unsigned int n;

	for (n = 0; n < race->nr; n++) {
		unsigned long reads = READ_ONCE(race->readers[n].reads);

		while (READ_ONCE(race->readers[n].reads) - reads < 2) {
			if (time_after(jiffies, end))
				return false;
			cpu_relax();
			cond_resched();
		}
	}
	return true;
}

/*
 * Readers on other CPUs read a block without a lock. Meanwhile a writer sets it
 * entry by entry, unfolds and folds it, write-protects all of it and a part of
 * it, and clears and sets it at once. Each reader gets a value that its entry
 * had at some time: exactly one value in a stable state, one of a few values
 * during a change. No reader hangs. At times the writer waits for the readers,
 * at each state in turn, because otherwise no reader could read all of a large
 * block. A quarter of a second is at least some hundred rounds.
 */
static void ptep_get_lockless_races_fold(struct kunit *test)
{
	unsigned long end = jiffies + RACE_JIFFIES(4);
	struct pte_ctx *f = test->priv;
	struct race_fold *race;
	bool all_read = true;
	unsigned int n, state, cpu = -1;

	race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race);
	race->f = f;
	while (race->nr < RACE_READERS) {
		struct race_reader *reader = &race->readers[race->nr];

		cpu = race_next_cpu(cpu);
		if (cpu >= nr_cpu_ids)
			break;
		reader->race = race;
		reader->task = race_thread(test, cpu, race_fold_reader, reader);
		race->nr++;
	}

	while (time_before(jiffies, end) && all_read) {
		for (state = 0; state < RACE_STATES; state++) {
			WRITE_ONCE(race->seq, race->seq + 1);
			/* A reader of a new entry also sees the odd count. */
			smp_mb();
			race_fold_step(f, state);
			/*
			 * A reader that sees the new state sees its entries.
			 */
			smp_store_release(&race->seq, race->seq + 1);
			if ((race->rounds + state * RACE_WAIT) %
			    (RACE_STATES * RACE_WAIT) == 0)
				all_read &= race_fold_all_read(race);
		}
		race->rounds++;
		cond_resched();
	}
	race_clear(f);
	for (n = 0; n < race->nr; n++)
		kthread_stop(race->readers[n].task);

	KUNIT_EXPECT_TRUE_MSG(test, all_read, "a reader hangs");
	KUNIT_EXPECT_GT(test, race->rounds, 0);
	for (n = 0; n < race->nr; n++) {
		struct race_reader *reader = &race->readers[n];

		kunit_info(test, "reader %u: %lu reads, %lu contiguous, %lu at rest, in %lu rounds\n",
			   n, reader->reads, reader->contiguous,
			   reader->at_rest, race->rounds);
		KUNIT_EXPECT_GT(test, reader->contiguous, 0);
		KUNIT_EXPECT_GT(test, reader->at_rest, 0);
		KUNIT_EXPECT_FALSE_MSG(test, reader->failed,
				       "entry %u of %u reads %016llx, %s state %u",
				       reader->entry, CONT_PTES,
				       pte_val(reader->got),
				       reader->state % 2 ? "on the way from" : "in or after",
				       reader->state / 2 % RACE_STATES);
	}
	pgtable_kunit_table_check(f->table, "after the race");
}

static int contpte_race_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (err)
		return err;
	race_needs_cpus(test);
	test->priv = contpte_fixture_alloc(test);
	return 0;
}

static struct kunit_case contpte_race_cases[] = {
	KUNIT_CASE_PARAM(ptep_get_lockless_waits_for_block,
			 race_flaw_gen_params),
	KUNIT_CASE_PARAM(ptep_get_lockless_reads_entry_again,
			 race_change_gen_params),
	KUNIT_CASE(ptep_get_lockless_leaves_early),
	KUNIT_CASE(ptep_get_lockless_races_fold),
	{}
};

static struct kunit_suite contpte_race_suite = {
	.name = "contpte_race",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_race_init,
	.test_cases = contpte_race_cases,
};

kunit_test_suite(contpte_race_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: other CPUs");
MODULE_LICENSE("GPL");
