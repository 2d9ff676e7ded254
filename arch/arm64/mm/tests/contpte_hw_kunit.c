// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: changes that hardware and other CPUs may make at any moment.
 *
 * The kernel folds, unfolds, clears or write-protects entries under the
 * page-table lock. Meanwhile other CPUs use the pages, and hardware sets the
 * access flag or the dirty state of any valid entry. If a bit gets lost between
 * a read and a write, a page is reclaimed although it is in use, or data is
 * never written back. Tests in user space do not hit this window, which may be
 * one instruction long. These cases set the bit exactly in this window.
 *
 * The code under test is the tree's own, compiled a second time so that each
 * single access to an entry goes through a hook (contpte_recorded.c). Before
 * one access the hook acts as hardware, and the case repeats the call for each
 * access. In another case the hook acts as a CPU that changes a block while
 * another CPU reads it without the lock.
 *
 * Not covered: memory ordering between CPUs, entries that are not cached
 * coherently, many CPUs at once (contpte_race uses two real CPUs).
 *
 * Begin with contpte_fold. Read contpte_order before this suite.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_hw'
 */

#include <kunit/test.h>

#include "contpte_order.h"

static PGTABLE_KUNIT_GEN_PARAMS(contpte_order_op)
{
	return pte_case_next(&contpte_recorded_backend, prev,
			     contpte_order_wanted, desc);
}

/* Hardware uses the entry that is about to be accessed. */
#define HW_SAME		(-1)

/**
 * struct hw_event - hardware uses a page
 * @at: hardware acts before this access
 * @entry: the entry that it uses, or HW_SAME
 * @dirty: it writes to the page
 * @seen: accesses so far
 * @done: the entry that it used, or INT_MIN if it could not use the entry
 */
struct hw_event {
	unsigned int at;
	int entry;
	bool dirty;
	unsigned int seen;
	int done;
};

static void hw_before(struct contpte_order *o, int idx)
{
	struct hw_event *event = o->data;
	int entry = event->entry == HW_SAME ? idx : event->entry;

	/* In large blocks, try only some accesses: those near the edges. */
	if (idx > 0 && contpte_next(idx - 1) != idx)
		return;
	if (event->seen++ != event->at || entry == INT_MIN)
		return;
	if (contpte_order_hardware(o, entry, event->dirty))
		event->done = entry;
}

/* Does the function set an entry that fits its neighbours? */
static bool hw_sets_same(const struct pte_case *pc)
{
	return pc->id == PTE_OP_SET_PTE_AT && pc->flags & PTE_STEP_SAME;
}

/* Does the entry have the bit in the model? */
static bool hw_has(const struct pte_model_entry *e, bool dirty)
{
	return dirty ? e->hw_dirty || e->sw_dirty : e->young;
}

/*
 * Is the bit in the entry, or in the value that the function returned? If the
 * model drops a bit that was set before the call, the function may drop it too.
 */
static bool hw_kept(struct contpte_order *o, const struct pte_step *step,
		    struct pte_model *m, const struct hw_event *event)
{
	pte_t pte = READ_ONCE(*contpte_ptep(o->f, event->done));
	struct pte_model_entry *e = &m->entry[event->done];
	bool dirty = event->dirty, is, returned;

	is = pte_present(pte) && (dirty ? pte_dirty(pte) : pte_young(pte));
	if (is)
		return true;
	e->young = true;
	e->hw_dirty = dirty;
	pte_model_step(m, step);
	if (hw_has(e, dirty))
		return false;
	if (m->returns == MODEL_RETURNS_ENTRY && hw_has(&m->ret, dirty))
		return dirty ? pte_dirty(o->f->got) : pte_young(o->f->got);
	returned = m->returns == MODEL_RETURNS_NUMBER && !dirty;
	return !returned || o->f->number;
}

/* Repeat one call. Hardware uses one entry before each access in turn. */
static bool hw_each_access(struct contpte_order *o, const struct pte_case *pc,
			   const struct contpte_order_call *call, int entry,
			   bool dirty, unsigned int *events)
{
	struct hw_event event = { .entry = entry, .dirty = dirty };
	static struct pte_model before;

	o->data = &event;
	contpte_order_bbml3(o, call->bbml3);
	for (event.at = 0; ; event.at++) {
		const struct pte_model_entry none = {};
		struct pte_step step;

		event.seen = 0;
		event.done = INT_MIN;
		contpte_order_fill(o, call->mask, false);
		step = contpte_order_step(o, pc, call);
		/*
		 * In this entry the function sets a new page, which may
		 * complete a block.
		 */
		if (hw_sets_same(pc)) {
			pgtable_kunit_raw_clear(o->f->table->mm,
						contpte_addr(o->f, step.idx),
						contpte_ptep(o->f, step.idx));
			o->f->model.entry[step.idx] = none;
		}
		before = o->f->model;
		o->hardware = hw_before;
		pte_op_make(o->f, &step);
		o->hardware = NULL;
		if (event.at >= event.seen)
			return true;
		if (event.done == INT_MIN)
			continue;
		(*events)++;
		if (!hw_kept(o, &step, &before, &event)) {
			KUNIT_FAIL(o->f->test,
				   "%s of [%d, %d), folded blocks %#x, bbml3=%d: loses the change of entry %d to %s before access %u",
				   pc->desc, call->start, call->end, call->mask,
				   call->bbml3, event.done,
				   dirty ? "dirty" : "young", event.at);
			return false;
		}
		if (!contpte_order_obeys(o, true, pc->desc))
			return false;
	}
}

/* Repeat one call, with or without BBM level 3, for each way to use the pages. */
static bool hw_each_use(struct contpte_order *o, const struct pte_case *pc,
			struct contpte_order_call *call, unsigned int *events)
{
	const int n = CONT_PTES;
	const int entries[] = {
		HW_SAME, n - 1, n, 0, n / 2, n + n / 2,
	};
	int i, tries = ARRAY_SIZE(entries), side;

	/* In large blocks, try only the first few of these entries. */
	if (CONT_PTE_SIZE > SZ_64K)
		tries = 3;
	for (i = 0; i < tries; i++) {
		for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
			call->bbml3 = side;
			if (!hw_each_access(o, pc, call, entries[i], false,
					    events) ||
			    !hw_each_access(o, pc, call, entries[i], true,
					    events))
				return false;
		}
	}
	return true;
}

/*
 * If hardware sets a bit, the bit is afterwards in the entry, or in the value
 * that the function returns. Only functions that drop bits on purpose may lose
 * it: functions that clear an entry without returning its value, or make it old
 * or clean. The rules of break-before-make always hold.
 *
 * The range is the first, an inner or the last entry of a block, a whole block, a
 * part of a block, or two halves of two blocks, which are both unfolded. The
 * blocks are folded or not. Hardware sets the bit in the entry that the
 * function accesses next (the shortest window), or in an entry at the edges or
 * in the middle of the blocks:
 *
 *	entries	|cccccccc|cccccccc|
 *	range	     <------->
 *	used	 ^  ^   ^ ^   ^  ^	before every access of the function
 */
static void hardware_update_kept(struct kunit *test)
{
	const int n = CONT_PTES;
	const struct {
		int start;
		int end;
	} ranges[] = {
		{ n - 1, n }, { 0, 1 }, { n / 2, n / 2 + 1 }, { 0, n },
		{ 1, n - 1 }, { n / 2, n + n / 2 },
	};
	const struct pte_case pc = pte_case_get(&contpte_recorded_backend,
						test->param_value);
	struct contpte_order_call call = {};
	struct contpte_order *o = test->priv;
	unsigned int i, events = 0;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		call.start = ranges[i].start;
		call.end = ranges[i].end;
		if (!pc.op->takes_range && call.end > call.start + 1)
			break;

		call.mask = 0;
		if (!hw_each_use(o, &pc, &call, &events))
			return;
		/* A new entry is not in a folded block. */
		if (hw_sets_same(&pc))
			continue;
		call.mask = CONTPTE_ORDER_ALL;
		if (!hw_each_use(o, &pc, &call, &events))
			return;
	}
	PGTABLE_KUNIT_DID(test, events, "events");
}

/* The states of a block that a reader without a lock may find. */
enum hw_block {
	HW_NONE,
	HW_SWAP,
	HW_PLAIN,		/* not folded; the last is young and dirty */
	HW_OLD,			/* folded, old and clean */
	HW_DIRTY,		/* folded, the last is dirty */
	HW_YOUNG,		/* folded, the first is young */
	HW_READ_ONLY,		/* folded, read-only */
	HW_OTHER,		/* folded, other pages, the last is dirty */
	HW_BLOCKS,
};

static pte_t hw_block_pte(struct pte_ctx *f, enum hw_block block, int i)
{
	bool last = i == CONT_PTES - 1;
	pte_t pte = contpte_mkcont(contpte_pte(f, i));

	switch (block) {
	case HW_NONE:
		return __pte(0);
	case HW_SWAP:
		return swp_entry_to_pte(swp_entry(0, i + 1));
	case HW_PLAIN:
		pte = contpte_pte(f, i);
		return last ? pte_mkyoung(contpte_mkhwdirty(pte)) : pte;
	case HW_DIRTY:
		return last ? contpte_mkhwdirty(pte) : pte;
	case HW_YOUNG:
		return i ? pte : pte_mkyoung(pte);
	case HW_READ_ONLY:
		return pte_wrprotect(pte);
	case HW_OTHER:
		pte = pte_advance_pfn(pte, CONT_PTES);
		return last ? contpte_mkhwdirty(pte) : pte;
	default:
		return pte;
	}
}

/* The entry that a reader gets from a block in a stable state. */
static pte_t hw_block_get(struct pte_ctx *f, enum hw_block block, int i)
{
	pte_t pte = hw_block_pte(f, block, i);
	int n;

	for (n = 0; n < CONT_PTES && pte_valid_cont(pte); n++) {
		if (pte_young(hw_block_pte(f, block, n)))
			pte = pte_mkyoung(pte);
		if (pte_dirty(hw_block_pte(f, block, n)))
			pte = pte_mkdirty(pte);
	}
	return pte;
}

/**
 * struct hw_writer - another CPU changes a block meanwhile, under the lock
 * @at: it begins before this access
 * @rate: from then on, it writes this many entries before each access
 * @to: the state that it writes
 * @seen: accesses so far
 * @first: the value of @wrote at the first access
 * @wrote: number of writes: it clears all entries, and then sets all entries
 */
struct hw_writer {
	unsigned int at;
	unsigned int rate;
	enum hw_block to;
	unsigned int seen;
	unsigned int first;
	unsigned int wrote;
};

static void hw_write(struct contpte_order *o, int idx)
{
	struct hw_writer *w = o->data;
	unsigned int n;

	if (w->seen++ < w->at)
		return;
	for (n = 0; n < w->rate && w->wrote < 2 * CONT_PTES; n++) {
		int i = w->wrote++ % CONT_PTES;
		pte_t pte = __pte(0);

		if (w->wrote > CONT_PTES)
			pte = hw_block_pte(o->f, w->to, i);
		if (pte_none(pte))
			pgtable_kunit_raw_clear(o->f->table->mm,
						contpte_addr(o->f, i),
						contpte_ptep(o->f, i));
		else
			pgtable_kunit_raw_set(o->f->table->mm,
					      contpte_addr(o->f, i),
					      contpte_ptep(o->f, i), pte);
	}
	if (w->seen == 1)
		w->first = w->wrote;
}

/*
 * Whether entry @i was none during the read: it was cleared before the last
 * access, and was not set again before the first access.
 */
static bool hw_was_none(const struct hw_writer *w, unsigned int i)
{
	return w->wrote > i && w->first <= CONT_PTES + i;
}

static pte_t hw_identity(pte_t pte)
{
	return pte_valid(pte) ? pte_mkold(pte_mkclean(pte)) : pte;
}

/*
 * Whether the value fits one of the states during the read. If the states differ
 * only in the accessed and dirty bits, the bits of both states are right.
 */
static bool hw_one_state(pte_t got, pte_t was, pte_t is)
{
	bool same = pte_same(hw_identity(was), hw_identity(is));

	if (!pte_same(hw_identity(got), hw_identity(was)))
		swap(was, is);
	if (!pte_same(hw_identity(got), hw_identity(was)))
		return false;
	if (!pte_valid(got))
		return true;
	return (pte_young(got) == pte_young(was) ||
		(same && pte_young(got) == pte_young(is))) &&
	       (pte_dirty(got) == pte_dirty(was) ||
		(same && pte_dirty(got) == pte_dirty(is)));
}

static bool hw_read(struct contpte_order *o, enum hw_block from, int i,
		    struct hw_writer *w)
{
	pte_t got, was, is;
	int n;

	o->hardware = NULL;
	contpte_order_fill(o, 0, false);
	for (n = 0; n < CONT_PTES; n++) {
		pte_t *ptep = contpte_ptep(o->f, n);
		pte_t pte = hw_block_pte(o->f, from, n);

		pgtable_kunit_raw_clear(o->f->table->mm, contpte_addr(o->f, n),
					ptep);
		if (!pte_none(pte))
			pgtable_kunit_raw_set(o->f->table->mm,
					      contpte_addr(o->f, n), ptep, pte);
	}
	o->hardware = hw_write;
	o->data = w;
	w->seen = 0;
	w->first = 0;
	w->wrote = 0;
	contpte_order_start(o);
	pte_op_call(o->f, PTE_OP_GET_LOCKLESS, i, 1, 0, __pte(0));
	contpte_order_stop(o, i, i + 1);
	got = o->f->got;

	was = hw_block_get(o->f, from, i);
	is = hw_block_get(o->f, w->to, i);
	if (hw_one_state(got, was, is) ||
	    (pte_none(got) && hw_was_none(w, i)))
		return true;
	KUNIT_FAIL(o->f->test,
		   "entry %d: block %d becomes %d before access %u, %u entries each: returns %016llx, expected %016llx or %016llx",
		   i, from, w->to, w->at, w->rate, pte_val(got), pte_val(was),
		   pte_val(is));
	return false;
}

/*
 * Another CPU changes a block during a call of ptep_get_lockless(). It clears all
 * entries of the block and sets them again, as contpte_convert() does. The reader
 * gets the state before or after the change, or none if the entry was none
 * meanwhile. It never gets a mix (bits of one state with the page of another),
 * and never an entry of a block that is being converted. The change begins
 * before each access of the reader in turn, and is as fast as the reader,
 * faster, or much faster. Each state of a block changes to each other state.
 */
static void ptep_get_lockless_sees_one_state(struct kunit *test)
{
	const unsigned int rates[] = { 1, 3, 2 * CONT_PTES };
	const int entries[] = { 0, CONT_PTES / 2, CONT_PTES - 1 };
	struct contpte_order *o = test->priv;
	unsigned int from, i, r, failed = 0, disturbed = 0;
	struct hw_writer w;

	for (from = 0; from < HW_BLOCKS; from++) {
		for (w.to = 0; w.to < HW_BLOCKS; w.to++) {
			for (w.at = 0; w.at < CONT_PTES + 3; w.at = contpte_next(w.at)) {
				for (i = 0; i < ARRAY_SIZE(rates) * ARRAY_SIZE(entries); i++) {
					r = i % ARRAY_SIZE(rates);
					w.rate = rates[r];
					if (!hw_read(o, from, entries[i / ARRAY_SIZE(rates)], &w) &&
					    ++failed == PGTABLE_KUNIT_ENOUGH)
						return;
					disturbed += w.wrote > 0;
				}
			}
		}
	}
	PGTABLE_KUNIT_DID(test, disturbed, "reads of a block that changes");
}

static struct kunit_case contpte_hw_cases[] = {
	KUNIT_CASE_PARAM_ATTR(hardware_update_kept, contpte_order_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_SLOW(ptep_get_lockless_sees_one_state),
	{}
};

static struct kunit_suite contpte_hw_suite = {
	.name = "contpte_hw",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_order_init,
	.test_cases = contpte_hw_cases,
};

kunit_test_suite(contpte_hw_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: updates by others");
MODULE_LICENSE("GPL");
