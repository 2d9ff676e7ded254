// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: the hardware on another CPU.
 *
 * An MMU may set the accessed and the dirty bit of a valid entry at any time,
 * without a lock, and in any entry of a contiguous block. A function that
 * changes an entry at the same time must not lose such a bit: a lost dirty bit
 * is lost data. Hence each function either changes an entry by
 * compare-and-exchange, or removes the entry and uses the value that it gets.
 *
 * A thread on another CPU changes the entries of a block as an MMU does, and
 * records its changes. Meanwhile the case calls one function repeatedly. After
 * each call every bit that the thread has set must be in the table or in the
 * value returned, and no other entry may have changed. This case needs two
 * CPUs; contpte_race.seconds= makes it longer. Another case also works on one
 * CPU: a probe changes entries before each instruction of these functions. Not
 * covered: translations that a TLB may still hold, and whether a real MMU
 * behaves like the thread.
 *
 * Begin with contpte_fold. Read contpte_hw before this suite.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--qemu_args '-smp 2' 'contpte_race_hw'
 */

#include <kunit/test.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <asm/insn.h>

#include "contpte_race.h"

/**
 * struct race_hw - a thread that acts as the MMU of another CPU
 * @f: the fixture; the thread works on the first block of its table
 * @round: number of the current round, from 1 on; each round has a new block
 * @young: for each entry, the round in which the thread made it young
 * @dirty: the same for entries that it made dirty
 *
 * The thread runs without a pause. It reads @round before it reads an entry,
 * and records the round after it has changed the entry. So if an entry's record
 * has the current round, the entry was changed in this round. A late record has
 * an earlier round, and proves nothing.
 */
struct race_hw {
	struct pte_ctx *f;
	unsigned int round;
	unsigned int young[CONT_PTES];
	unsigned int dirty[CONT_PTES];
};

/* An access to the page of an entry, by a CPU that finds no TLB entry. */
static void race_hw_access(struct race_hw *hw, unsigned int i, bool write)
{
	/* Read the round first, then the entry: see race_hw_fill(). */
	unsigned int round = smp_load_acquire(&hw->round);
	pte_t *ptep = contpte_ptep(hw->f, i);
	unsigned int *note = write ? &hw->dirty[i] : &hw->young[i];
	pte_t old = pgtable_kunit_raw_get(ptep), new;

	if (!pte_valid(old))
		return;
	if (!write)
		new = pte_mkyoung(old);
	else if (pte_write(old))
		new = contpte_mkhwdirty(old);
	else
		return;
	if (pte_same(new, old))
		return;
	if (cmpxchg_relaxed(&pte_val(*ptep), pte_val(old), pte_val(new)) ==
	    pte_val(old)) {
		/*
		 * Record the round after the write of the entry.
		 * race_hw_check() reads the record before it reads the entry.
		 */
		smp_store_release(note, round);
	}
}

static int race_hw_thread(void *data)
{
	struct race_hw *hw = data;
	unsigned int i = 0, n;

	while (!kthread_should_stop()) {
		for (n = 0; n < CONT_PTES; n++) {
			race_hw_access(hw, i, n & 1);
			race_hw_access(hw, i, !(n & 1));
			i = (i + 1) % CONT_PTES;
		}
		/* Start at another entry next time. */
		i = (i + 5) % CONT_PTES;
		cond_resched();
	}
	return 0;
}

/**
 * struct race_hw_op - a function that is called while hardware sets bits
 * @desc: its name, and the situation
 * @op: the function
 * @flags: its flags
 * @folded: the block is folded before
 * @start: the first entry of its range
 * @nr: the number of entries; a function for one entry is called for each
 */
struct race_hw_op {
	const char *desc;
	enum pte_op_id op;
	unsigned int flags;
	bool folded;
	unsigned int start;
	unsigned int nr;
};

static const struct race_hw_op race_hw_ops[] = {
	{ "wrprotect_ptes, folded", PTE_OP_WRPROTECT_PTES, 0, true, 0, CONT_PTES },
	{ "wrprotect_ptes, not folded", PTE_OP_WRPROTECT_PTES, 0, false, 0,
	  CONT_PTES },
	{ "wrprotect_ptes, part of a folded block", PTE_OP_WRPROTECT_PTES, 0, true,
	  1, CONT_PTES / 2 },
	{ "wrprotect_ptes, one of a folded block", PTE_OP_WRPROTECT_PTES, 0, true,
	  1, 1 },
	{ "get_and_clear_full_ptes, folded", PTE_OP_GET_AND_CLEAR_FULL, 0, true, 0,
	  CONT_PTES },
	{ "get_and_clear_full_ptes, part of a folded block",
	  PTE_OP_GET_AND_CLEAR_FULL, 0, true, 1, CONT_PTES / 2 },
	{ "get_and_clear_full_ptes, not folded", PTE_OP_GET_AND_CLEAR_FULL, 0,
	  false, 0, CONT_PTES },
	{ "ptep_set_access_flags, folded", PTE_OP_ACCESS_FLAGS, PTE_STEP_YOUNG,
	  true, CONT_PTES / 2, 1 },
	{ "ptep_set_access_flags, not folded", PTE_OP_ACCESS_FLAGS, PTE_STEP_YOUNG,
	  false, CONT_PTES / 2, 1 },
	{ "ptep_test_and_clear_young, folded", PTE_OP_TEST_YOUNG, 0, true, 0,
	  CONT_PTES },
	{ "clear_young_dirty_ptes, folded", PTE_OP_CLEAR_YOUNG_DIRTY,
	  PTE_STEP_YOUNG, true, 0, CONT_PTES },
	/* The last entry completes the block, which is then folded. */
	{ "set_pte_at, fold", PTE_OP_SET_PTE_AT, 0, false, CONT_PTES - 1, 1 },
};

static const struct pte_op *race_hw_row(const struct race_hw_op *op)
{
	return &pte_arch_backend.ops[op->op];
}

/*
 * Call the function in the table and in the model, and compare them if there is
 * no hardware.
 */
static bool race_hw_call(struct pte_ctx *f, const struct race_hw_op *op, bool alone)
{
	unsigned int nr = race_hw_row(op)->takes_range ? op->nr : 1;
	struct pte_step step = {
		.op = op->op, .flags = op->flags, .nr = nr,
		.entry = contpte_entry(op->start),
	};
	bool ok = true;

	for (step.idx = op->start; step.idx < op->start + op->nr; step.idx += nr) {
		if (alone)
			ok &= pte_op_run(f, &step, true);
		else
			pte_op_make(f, &step);
	}
	return ok;
}

KUNIT_ARRAY_PARAM_DESC(race_hw_op, race_hw_ops, desc);

/*
 * Begin the next round with old and clean entries, which hardware can change.
 * The entry that a function sets is none before.
 */
static void race_hw_fill(struct race_hw *hw, const struct race_hw_op *op)
{
	struct pte_ctx *f = hw->f;
	struct pte_model_entry e;
	unsigned int i;

	race_clear(f);
	for (i = 0; i < CONT_PTES; i++) {
		e = contpte_entry(i);
		e.cont = op->folded && CONTPTE_FOLDS;
		if (op->op == PTE_OP_SET_PTE_AT && i == op->start)
			e = (struct pte_model_entry){};
		f->model.entry[i] = e;
		if (e.kind)
			pgtable_kunit_raw_set(f->table->mm, contpte_addr(f, i),
					      contpte_ptep(f, i),
					      f->format->encode(f, &e));
	}
	/* Write the entries first, then the round: see race_hw_access(). */
	smp_store_release(&hw->round, hw->round + 1);
}

/* Statistics of all rounds: the bits that hardware set. */
struct race_hw_seen {
	unsigned long rounds;
	unsigned long young;
	unsigned long dirty;
};

/* An entry without the bits that hardware and a fold change. */
static pte_t race_hw_plain(pte_t pte)
{
	return pte_none(pte) ? pte : pte_mkold(pte_mkclean(pte_mknoncont(pte)));
}

/*
 * Whether no bit that hardware has set is lost, and each entry is otherwise as
 * in the model.
 */
static bool race_hw_check(struct kunit *test, struct race_hw *hw,
			  const struct race_hw_op *op, struct race_hw_seen *seen)
{
	bool old = race_hw_row(op)->does == PTE_OP_AGES;
	struct pte_ctx *f = hw->f;
	unsigned int i;

	for (i = 0; i < CONT_PTES; i++) {
		/*
		 * Read the record before the entry: race_hw_access() writes the
		 * record after the entry.
		 */
		bool young = smp_load_acquire(&hw->young[i]) == hw->round;
		/* Read this record before the entry too. */
		bool dirty = smp_load_acquire(&hw->dirty[i]) == hw->round;
		pte_t got = pgtable_kunit_raw_get(contpte_ptep(f, i));
		pte_t want = f->format->encode(f, &f->model.entry[i]);
		pte_t has = pte_none(want) ? f->got : got;
		const char *fault = NULL;

		if (!pte_same(race_hw_plain(got), race_hw_plain(want)))
			fault = "has changed";
		else if (dirty && !pte_dirty(has))
			fault = "has lost its dirty bit";
		else if (young && !old && !pte_young(has))
			fault = "has lost its accessed bit";
		if (fault) {
			KUNIT_FAIL(test,
				   "%s: entry %u of %u %s: %016llx, returned %016llx, in round %u",
				   op->desc, i, CONT_PTES, fault, pte_val(got),
				   pte_val(f->got), hw->round);
			return false;
		}
		seen->young += young;
		seen->dirty += dirty;
	}
	seen->rounds++;
	return true;
}

/*
 * Make one call without hardware, after which the table and the invalidations
 * must match the model exactly. After calls with hardware, the case compares
 * only the bits that hardware cannot change.
 */
static void race_hw_check_alone(struct kunit *test, struct race_hw *hw,
				const struct race_hw_op *op)
{
	struct pte_ctx *f = hw->f;

	race_hw_fill(hw, op);
	f->tlb->nr = 0;
	if (!race_hw_call(f, op, true))
		kunit_err(test, "%s: without the hardware\n", op->desc);
}

/*
 * Each function that write-protects, clears, folds or unfolds a block, or
 * changes its flags, keeps the bits that hardware sets meanwhile. At the start
 * of a round the block is old and clean, and hardware begins to set all bits
 * that are clear. After a short time the case calls the function once, and
 * compares the records with the entries. The time varies, so that hardware may
 * be at any of the entries during the call. A tenth of a second is enough for
 * some thousand calls if the other CPU really runs at the same time. Otherwise
 * each round waits for the other CPU, and takes longer.
 */
static void range_op_races_hw(struct kunit *test)
{
	const struct race_hw_op *op = test->param_value;
	struct pte_ctx *f = test->priv;
	struct race_hw_seen seen = {};
	struct task_struct *task;
	struct race_hw *hw;
	bool ok = true;
	unsigned long start;
	unsigned int i;

	race_needs_cpus(test);
	hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hw);
	hw->f = f;
	task = race_thread(test, race_next_cpu(-1), race_hw_thread, hw);

	start = jiffies;
	while (ok && pgtable_kunit_race_on(start, RACE_JIFFIES(10),
					   seen.young && seen.dirty)) {
		race_hw_fill(hw, op);
		for (i = seen.rounds % 61; i; i--)
			cpu_relax();
		race_hw_call(f, op, false);
		ok = race_hw_check(test, hw, op, &seen);
		cond_resched();
	}
	kthread_stop(task);

	if (!ok)
		return;
	race_hw_check_alone(test, hw, op);
	PGTABLE_KUNIT_DID(test, seen.rounds, "calls");
	PGTABLE_KUNIT_DID(test, seen.young, "entries made young");
	PGTABLE_KUNIT_DID(test, seen.dirty, "entries made dirty");
}

/*
 * More functions that change entries, in addition to the functions in
 * race_hw_ops.
 */
static const char * const step_symbols[] = {
	"contpte_convert",
	"__contpte_try_fold",
	"__contpte_try_unfold",
	"contpte_wrprotect_ptes",
	"contpte_get_and_clear_full_ptes",
	"contpte_clear_young_dirty_ptes",
	"contpte_ptep_set_access_flags",
	"__ptep_set_access_flags",
	"__ptep_set_access_flags_anysz",
	"contpte_ptep_test_and_clear_young",
	"contpte_test_and_clear_young_ptes",
};

/**
 * struct step - the hardware changes entries before one instruction
 * @probe: a probe on the instruction
 * @hw: the action of the hardware
 * @task: the task to interrupt
 * @wait: how often the instruction runs before that without a change
 * @first: the first entry that the hardware uses
 * @nr: how many entries it uses
 * @hit: the hardware has changed the entries
 */
struct step {
	struct kprobe probe;
	struct race_hw *hw;
	struct task_struct *task;
	unsigned int wait;
	unsigned int first;
	unsigned int nr;
	bool hit;
};

/* All entries are accessed and written to at once. */
static int step_in(struct kprobe *probe, struct pt_regs *regs)
{
	struct step *step = container_of(probe, struct step, probe);
	unsigned int i;

	if (current != step->task || step->hit || step->wait--)
		return 0;
	step->hit = true;
	for (i = step->first; i < step->first + step->nr; i++) {
		race_hw_access(step->hw, i, false);
		race_hw_access(step->hw, i, true);
	}
	return 0;
}

NOKPROBE_SYMBOL(step_in);

/*
 * Call the function, and let hardware act before one instruction. Returns false
 * if the instruction never runs.
 */
static bool step_instruction(struct kunit *test, struct race_hw *hw,
			     const struct race_hw_op *op, unsigned long addr,
			     struct race_hw_seen *seen, bool *ok)
{
	static const unsigned int waits[] = { 0, 1, CONT_PTES - 1 };
	static struct step step;
	unsigned int n;

	step = (struct step) {
		.probe = {
			.addr = (kprobe_opcode_t *)addr,
			.pre_handler = step_in,
		},
		.hw = hw,
	};
	/*
	 * Some places cannot have a probe, for example inside a load-exclusive
	 * sequence.
	 */
	if (register_kprobe(&step.probe))
		return true;

	for (n = 0; n < 2 * ARRAY_SIZE(waits); n++) {
		unsigned int wait = waits[n / 2];

		race_hw_fill(hw, op);
		step.hit = false;
		step.wait = wait;
		step.first = n % 2 ? min(op->start + wait, CONT_PTES - 1) : 0;
		step.nr = n % 2 ? 1 : CONT_PTES;
		WRITE_ONCE(step.task, current);
		race_hw_call(hw->f, op, false);
		WRITE_ONCE(step.task, NULL);
		if (!step.hit)
			break;
		*ok = race_hw_check(test, hw, op, seen);
		if (!*ok) {
			kunit_info(test, "the hardware was before %pS, time %u\n",
				   (void *)addr, wait + 1);
			break;
		}
	}
	unregister_kprobe(&step.probe);
	cond_resched();
	return n;
}

/*
 * The case checks the same functions, but does not depend on chance, and works
 * on one CPU. Right before one instruction of a function that changes entries,
 * hardware sets the bits of all entries, or of one entry. The case repeats this
 * for each instruction: when it runs for the first, the second and the last
 * time. So hardware acts between every read of an entry and the write that
 * follows. If only one entry gets the bits, no other entry can hide a loss.
 * Each change of a probe stops all CPUs. With more than one CPU the case would
 * take minutes, so it is skipped.
 */
static void range_op_hw_at_each_instruction(struct kunit *test)
{
	const struct race_hw_op *op = test->param_value;
	struct race_hw_seen seen = {};
	struct race_hw *hw;
	bool ok = true;
	int n;

	if (num_online_cpus() > 1)
		kunit_skip(test, "runs only on one CPU: each probe stops all other CPUs");

	hw = kunit_kzalloc(test, sizeof(*hw), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hw);
	hw->f = test->priv;

	for (n = -1; n < (int)ARRAY_SIZE(step_symbols) && ok; n++) {
		unsigned long addr = n < 0 ? (unsigned long)race_hw_row(op)->call : 0;
		unsigned long off, size = 0;
		struct kprobe find = {
			.symbol_name = n < 0 ? NULL : step_symbols[n],
		};

		/*
		 * If a function has no symbol, the compiler has inlined it into
		 * its callers.
		 */
		if (n >= 0 && !register_kprobe(&find)) {
			addr = (unsigned long)find.addr;
			unregister_kprobe(&find);
		}
		if (!addr || !kallsyms_lookup_size_offset(addr, &size, &off))
			continue;
		addr -= off;
		for (off = 0; off < size && ok; off += AARCH64_INSN_SIZE) {
			/*
			 * If the call does not reach the first instruction, it
			 * does not use this function.
			 */
			if (!step_instruction(test, hw, op, addr + off, &seen,
					      &ok) && !off)
				break;
		}
	}
	if (!ok)
		return;
	race_hw_check_alone(test, hw, op);
	PGTABLE_KUNIT_DID(test, seen.rounds, "calls");
	PGTABLE_KUNIT_DID(test, seen.young, "entries made young");
	PGTABLE_KUNIT_DID(test, seen.dirty, "entries made dirty");
}

static struct kunit_case contpte_race_hw_cases[] = {
	KUNIT_CASE_PARAM_ATTR(range_op_hw_at_each_instruction,
			      race_hw_op_gen_params, PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM(range_op_races_hw, race_hw_op_gen_params),
	{}
};

static struct kunit_suite contpte_race_hw_suite = {
	.name = "contpte_race_hw",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_race_hw_cases,
};

kunit_test_suite(contpte_race_hw_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: the hardware on another CPU");
MODULE_LICENSE("GPL");
