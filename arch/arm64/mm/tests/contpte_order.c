// SPDX-License-Identifier: GPL-2.0
/*
 * The fixture of the suites on the order of writes and invalidations.
 */

#include "contpte_order.h"

static void before_step(struct pgtable_kunit_record *rec, int idx)
{
	struct contpte_order *o = rec->data;

	if (o->hardware)
		o->hardware(o, idx);
}

/*
 * Pass to the checker the pages of the window that an invalidation covers on
 * all CPUs.
 */
static void flush_step(struct contpte_order *o,
		       const struct pgtable_kunit_step *step)
{
	unsigned long start = contpte_addr(o->f, 0);
	unsigned long end = contpte_addr(o->f, CONTPTE_WINDOW), addr;

	if (step->mm != o->f->table->mm || step->end < start ||
	    (step->flags & (PGTABLE_KUNIT_NOSYNC | PGTABLE_KUNIT_LOCAL)))
		return;
	if (step->level && step->level != 3 && step->level != TLBI_TTL_UNKNOWN)
		return;
	addr = step->start;
	if (step->stride == PAGE_SIZE)
		addr = max(addr, start);
	for (; addr < min(step->end, end); addr += step->stride) {
		if (addr >= start)
			contpte_bbm_flush(o->bbm, (addr - start) / PAGE_SIZE);
	}
}

static void after_step(struct pgtable_kunit_record *rec,
		       const struct pgtable_kunit_step *step)
{
	struct contpte_order *o = rec->data;

	if (step->kind == PGTABLE_KUNIT_FLUSH)
		flush_step(o, step);
	else if (step->idx < 0 || step->idx >= CONTPTE_WINDOW)
		o->outside++;
	else if (step->kind == PGTABLE_KUNIT_WRITE)
		contpte_bbm_write(o->bbm, step->idx, __pte(step->new));
}

/**
 * contpte_order_alloc() - make a fixture
 * @test: the test that is to own it
 */
struct contpte_order *contpte_order_alloc(struct kunit *test)
{
	struct contpte_order *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, o);
	o->f = contpte_fixture_alloc(test);
	o->bbm = kunit_kzalloc(test, sizeof(*o->bbm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, o->bbm);
	o->rec = pgtable_kunit_record_alloc(test, o->f->table);
	o->rec->before = before_step;
	o->rec->after = after_step;
	o->rec->data = o;
	return o;
}

/* The next entry that is at an edge or in the middle of a block. */
static int next_edge(int idx)
{
	static const int at[] = {
		1, CONT_PTES / 2, CONT_PTES - 1, CONT_PTES,
	};
	int n = 0;

	while (at[n] <= idx % CONT_PTES)
		n++;
	return ALIGN_DOWN(idx, CONT_PTES) + at[n];
}

/**
 * contpte_order_next() - the next call of a function
 * @call: the last one
 *
 * The calls of a function have all ranges that start and end at an edge or in
 * the middle of a block. A function that works on one entry gets ranges of one
 * entry. Each range is tried with no block folded, with blocks 0 and 2, with
 * blocks 1 and 3, and with all blocks folded. If the kernel uses BBM level 3,
 * each call is made without it and with it.
 *
 * Return: whether there is a next call.
 */
bool contpte_order_next(struct contpte_order_call *call)
{
	if (call->end && PGTABLE_KUNIT_BBM_SIDES > 1) {
		call->bbml3 = !call->bbml3;
		if (call->bbml3)
			return true;
	}
	call->end = call->end ? next_edge(call->end) : 1;
	if (call->end <= CONTPTE_WINDOW &&
	    (!(call->op->flags & CONTPTE_OP_SINGLE) ||
	     call->end == call->start + 1))
		return true;
	call->start = next_edge(call->start);
	call->end = call->start + 1;
	if (call->start < CONTPTE_WINDOW)
		return true;
	call->start = 0;
	call->end = 1;
	call->mask += CONTPTE_ORDER_ALL / 3;
	return call->mask <= CONTPTE_ORDER_ALL;
}

/**
 * contpte_order_fill() - fill the window: four blocks, old and clean
 * @o: the fixture
 * @mask: the blocks that are folded
 */
void contpte_order_fill(struct contpte_order *o, unsigned int mask)
{
	struct pgtable_kunit_table *table = o->f->table;
	int i;

	/* Only the window is filled: the rest must not change. */
	for (i = 0; i < CONTPTE_WINDOW; i++)
		pgtable_kunit_raw_clear(table->mm, contpte_addr(o->f, i),
					contpte_ptep(o->f, i));
	cond_resched();
	for (i = 0; i < CONTPTE_BLOCKS; i++)
		contpte_fill(o->f, i * CONT_PTES, i * CONT_PTES, mask & BIT(i),
			     CONTPTE_NOWHERE, CONTPTE_NOWHERE);
}

/**
 * contpte_order_hardware() - set a bit in an entry, as hardware does
 * @o: the fixture
 * @idx: the entry
 * @dirty: the page is written to; otherwise it is only read
 *
 * Return: whether hardware can do that: the entry is valid, and for a write
 * also writable.
 */
bool contpte_order_hardware(struct contpte_order *o, int idx, bool dirty)
{
	pte_t *ptep = contpte_ptep(o->f, idx);
	pte_t pte = READ_ONCE(*ptep);

	if (!pte_valid(pte) || (dirty && !pte_write(pte)))
		return false;
	pte = pte_mkyoung(pte);
	if (dirty)
		pte = contpte_mkhwdirty(pte);
	WRITE_ONCE(*ptep, pte);
	return true;
}

/**
 * contpte_order_use_all() - write to all pages of the window, as hardware does
 * @o: the fixture; its window is full
 *
 * After that the entries can be made old or clean.
 */
void contpte_order_use_all(struct contpte_order *o)
{
	int i;

	for (i = 0; i < CONTPTE_WINDOW; i++) {
		contpte_order_hardware(o, i, true);
		o->f->table->want[i] = pgtable_kunit_raw_get(contpte_ptep(o->f, i));
	}
}

/**
 * contpte_order_expand() - the range that a function expands its range to
 * @call: the call
 * @start: first entry
 * @end: the entry after the last
 */
void contpte_order_expand(const struct contpte_order_call *call, int *start,
			  int *end)
{
	*start = call->start;
	*end = call->end;
	if (!(call->op->flags & CONTPTE_OP_EXPANDS))
		return;
	if (contpte_order_folded(call, *end - 1))
		*end = ALIGN(*end, CONT_PTES);
	if (contpte_order_folded(call, *start))
		*start = ALIGN_DOWN(*start, CONT_PTES);
}

/**
 * contpte_order_run() - call a function, and record and check it
 * @o: the fixture; its table is filled
 * @call: the call
 */
pte_t contpte_order_run(struct contpte_order *o,
			const struct contpte_order_call *call)
{
	pte_t pte;

	o->call = *call;
	o->outside = 0;
	o->rec->bbml3 = call->bbml3;
	contpte_bbm_start(o->bbm, o->f->table->pte, call->bbml3);
	pgtable_kunit_record_start(o->rec);
	pte = call->op->run(o, contpte_addr(o->f, call->start),
			    contpte_ptep(o->f, call->start),
			    call->end - call->start);
	pgtable_kunit_record_stop();
	contpte_bbm_end(o->bbm, call->start, call->end);
	return pte;
}

/**
 * contpte_order_fail() - fail the test because of the last call
 * @o: the fixture
 * @fmt: what is wrong, as for printf()
 */
void contpte_order_fail(struct contpte_order *o, const char *fmt, ...)
{
	const struct contpte_order_call *call = &o->call;
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	KUNIT_FAIL(o->f->test, "%s of [%d, %d), folded blocks %#x, bbml3=%d: %pV",
		   call->op->desc, call->start, call->end, call->mask,
		   call->bbml3, &vaf);
	va_end(args);
}

/**
 * contpte_order_obeys() - check that the last call obeyed the rules
 * @o: the fixture
 *
 * Return: whether it did, and touched no entry outside of the window.
 */
bool contpte_order_obeys(struct contpte_order *o)
{
	struct contpte_bbm *bbm = o->bbm;

	if (bbm->rule) {
		contpte_order_fail(o, "breaks the rule \"%s\" at entry %d, step %u",
				   contpte_bbm_rule_name(bbm->rule), bbm->idx,
				   bbm->steps);
		return false;
	}
	if (o->outside || o->rec->nr > PGTABLE_KUNIT_STEPS) {
		contpte_order_fail(o, "%u of %u steps are outside of the window",
				   o->outside, o->rec->nr);
		return false;
	}
	return true;
}

static bool flush_is(struct contpte_order *o,
		     const struct pgtable_kunit_step *step,
		     const struct contpte_order_flush *want)
{
	unsigned long start = contpte_addr(o->f, want->first);

	return step->mm == o->f->table->mm && step->start == start &&
	       step->end == start + want->nr * PAGE_SIZE &&
	       step->stride == PAGE_SIZE && step->level == 3 &&
	       step->flags == (want->flags | PGTABLE_KUNIT_LAST_LEVEL);
}

/**
 * contpte_order_flushes() - check the invalidations of the last call
 * @o: the fixture
 * @want: those that are expected, in their order
 * @nr: number of them
 *
 * Return: whether the call made exactly these invalidations, page by page, with
 * the right hint at the level.
 */
bool contpte_order_flushes(struct contpte_order *o,
			   const struct contpte_order_flush *want,
			   unsigned int nr)
{
	const struct pgtable_kunit_step *step;
	unsigned int i, n = 0;

	if (o->rec->flushes != nr) {
		contpte_order_fail(o, "%u invalidations, expected %u",
				   o->rec->flushes, nr);
		return false;
	}
	for (i = 0; n < nr; i++) {
		step = o->rec->step + i;
		if (step->kind != PGTABLE_KUNIT_FLUSH || flush_is(o, step, want + n++))
			continue;
		contpte_order_fail(o,
				   "invalidates %lx-%lx by %lx, level %d, flags %#x; expected %u pages from entry %d on, flags %#x",
				   step->start, step->end, step->stride,
				   step->level, step->flags, want[n - 1].nr,
				   want[n - 1].first,
				   want[n - 1].flags | PGTABLE_KUNIT_LAST_LEVEL);
		return false;
	}
	return true;
}

/**
 * contpte_order_converts() - check that a block is converted
 * @o: the fixture; the last call obeyed the rules
 * @at: the step to begin at
 * @first: the first entry of the block
 * @cont: the block is folded; else it is unfolded
 *
 * The call must clear all entries, then invalidate the block once if that is
 * necessary, then set all entries.
 *
 * Return: the step after the conversion, or 0 if the order is another one.
 */
unsigned int contpte_order_converts(struct contpte_order *o, unsigned int at,
				    int first, bool cont)
{
	const struct pgtable_kunit_step *step = o->rec->step + at;
	const struct pgtable_kunit_step *end = o->rec->step + o->rec->nr;
	unsigned int cleared = 0, flushed = 0, set = 0;

	for (; step < end && set < CONT_PTES; step++) {
		if (step->kind == PGTABLE_KUNIT_READ)
			continue;
		if (step->kind == PGTABLE_KUNIT_FLUSH) {
			if (cleared < CONT_PTES || set || flushed++)
				return 0;
			continue;
		}
		if (step->idx < first || step->idx >= first + CONT_PTES)
			return 0;
		if (!step->new) {
			if (!step->old || set || flushed)
				return 0;
			cleared++;
			continue;
		}
		if (step->old || cleared < CONT_PTES ||
		    flushed != !o->rec->bbml3 ||
		    !pte_valid(__pte(step->new)) ||
		    !!pte_cont(__pte(step->new)) != cont)
			return 0;
		set++;
	}
	return set == CONT_PTES ? step - o->rec->step : 0;
}

/**
 * contpte_order_first_write() - find the end of the first write
 * @o: the fixture
 *
 * Return: the step after the first write; the number of steps if there is none.
 */
unsigned int contpte_order_first_write(struct contpte_order *o)
{
	unsigned int at;

	for (at = 0; at < o->rec->nr; at++) {
		if (o->rec->step[at].kind == PGTABLE_KUNIT_WRITE)
			return at + 1;
	}
	return at;
}

/**
 * contpte_order_model() - compute the table after the last call
 * @o: the fixture; its expected image is from before the call
 *
 * Blocks that the range covers in part are unfolded. The entries of the range
 * change as the function says. An entry that completes a block folds it.
 */
void contpte_order_model(struct contpte_order *o)
{
	const struct contpte_order_call *call = &o->call;
	pte_t *want = o->f->table->want;
	int first, last, i;

	if (call->op->flags & CONTPTE_OP_UNFOLDS)
		contpte_model_unfold_partial(o->f, call->start, call->end);
	contpte_order_expand(call, &first, &last);
	for (i = first; i < last && call->op->makes; i++)
		want[i] = call->op->makes(want[i]);
	if ((call->op->flags & CONTPTE_OP_FOLDS) && call->end % CONT_PTES == 0)
		contpte_model_convert(o->f, call->end - 1, true);
}

/**
 * contpte_order_image() - compare the table with the image that is expected
 * @o: the fixture
 *
 * Return: whether each entry of the whole table is as in the model. This finds
 * a call that does nothing: such a call breaks no rule, but leaves another
 * image.
 */
bool contpte_order_image(struct contpte_order *o)
{
	const struct contpte_order_call *call = &o->call;

	return pgtable_kunit_table_check(o->f->table,
					 "%s of [%d, %d), folded blocks %#x, bbml3=%d",
					 call->op->desc, call->start, call->end,
					 call->mask, call->bbml3);
}

/**
 * contpte_order_accesses() - check the number of accesses of the last call
 * @o: the fixture
 * @reads: how often it may read an entry
 * @writes: how often it may write one
 *
 * Return: whether it made no more accesses than that.
 */
bool contpte_order_accesses(struct contpte_order *o, unsigned int reads,
			    unsigned int writes)
{
	/* A debug kernel reads an entry before it overwrites it. */
	if (IS_ENABLED(CONFIG_DEBUG_VM))
		reads += writes;
	if (o->rec->reads <= reads && o->rec->writes <= writes)
		return true;
	contpte_order_fail(o, "%u reads and %u writes, expected no more than %u and %u",
			   o->rec->reads, o->rec->writes, reads, writes);
	return false;
}
