// SPDX-License-Identifier: GPL-2.0
/*
 * The recorded back end: comparisons in addition to the table.
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

static struct contpte_order *contpte_order_alloc(struct kunit *test)
{
	struct contpte_order *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, o);
	o->f = contpte_fixture_alloc(test);
	o->f->backend = &contpte_recorded_backend;
	o->f->data = o;
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
	    (!call->single || call->end == call->start + 1))
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
 * @o: the context
 * @mask: the blocks that are folded
 * @used: all pages were written to: the entries are young and dirty
 */
void contpte_order_fill(struct contpte_order *o, unsigned int mask, bool used)
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
	for (i = 0; used && i < CONTPTE_WINDOW; i++) {
		struct pte_model_entry e = o->f->model.entry[i];

		e.young = true;
		e.hw_dirty = true;
		pte_ctx_fill(o->f, i, &e);
	}
}

/**
 * contpte_order_hardware() - set a bit in an entry, as hardware does
 * @o: the context
 * @idx: the entry
 * @dirty: the page is written to; otherwise it is only read
 *
 * Return: whether hardware can set the bit: the entry is valid, and for a write
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
 * contpte_order_step() - the step for a call of a function
 * @o: the context; its window is filled
 * @pc: the function
 * @call: the range of the call
 */
struct pte_step contpte_order_step(struct contpte_order *o,
				   const struct pte_case *pc,
				   const struct contpte_order_call *call)
{
	return (struct pte_step){
		.op = pc->id, .flags = pc->flags, .idx = call->start,
		.nr = call->end - call->start,
		.entry = pte_case_entry(pc, &o->f->model.entry[call->start]),
	};
}

/**
 * contpte_order_start() - record and check from here on
 * @o: the context
 */
void contpte_order_start(struct contpte_order *o)
{
	o->outside = 0;
	memcpy(o->before, o->f->table->pte, sizeof(o->before));
	contpte_bbm_start(o->bbm, o->f->table->pte, o->rec->bbml3);
	pgtable_kunit_record_start(o->rec);
}

/**
 * contpte_order_stop() - the call has ended
 * @o: the context
 * @start: first entry of its range
 * @end: the entry after the last
 */
void contpte_order_stop(struct contpte_order *o, int start, int end)
{
	pgtable_kunit_record_stop();
	contpte_bbm_end(o->bbm, start, end);
}

/**
 * contpte_order_begin() - for the back end: before a call
 * @c: the context
 * @step: the call
 */
void contpte_order_begin(struct pte_ctx *c, const struct pte_step *step)
{
	contpte_order_start(c->data);
}

/**
 * contpte_order_end() - for the back end: after a call
 * @c: the context
 * @step: the call
 */
void contpte_order_end(struct pte_ctx *c, const struct pte_step *step)
{
	contpte_order_stop(c->data, step->idx, step->idx + step->nr);
}

__printf(4, 5)
static bool order_fail(struct contpte_order *o, bool report, const char *desc,
		       const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	if (!report)
		return false;
	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	KUNIT_FAIL(o->f->test, "%s, bbml3=%d: %pV", desc, o->rec->bbml3, &vaf);
	va_end(args);
	return false;
}

/**
 * contpte_order_obeys() - check that the last call obeyed the rules
 * @o: the context
 * @report: fail the test if not
 * @desc: the inputs of the call
 *
 * Return: whether the call obeyed, and touched no entry outside of the window.
 */
bool contpte_order_obeys(struct contpte_order *o, bool report, const char *desc)
{
	struct contpte_bbm *bbm = o->bbm;

	if (bbm->rule)
		return order_fail(o, report, desc,
				  "breaks the rule \"%s\" at entry %d, step %u",
				  contpte_bbm_rule_name(bbm->rule), bbm->idx,
				  bbm->steps);
	if (o->outside || o->rec->nr > PGTABLE_KUNIT_STEPS)
		return order_fail(o, report, desc,
				  "%u of %u steps are outside of the window",
				  o->outside, o->rec->nr);
	return true;
}

/* The flags of an invalidation for this reason. */
static unsigned int flush_flags(enum pte_model_flush why)
{
	if (why == MODEL_FLUSH_YOUNG)
		return PGTABLE_KUNIT_LAST_LEVEL | PGTABLE_KUNIT_NOSYNC;
	if (why == MODEL_FLUSH_FAULT)
		return PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH;
	return PGTABLE_KUNIT_LAST_LEVEL;
}

/*
 * Whether the call made exactly the invalidations of the model, in their order,
 * page by page, with the right level hint.
 */
static bool order_flushes(struct contpte_order *o, bool report,
			  const char *desc)
{
	const struct pte_model *m = &o->f->model;
	unsigned int i, n = 0;

	if (o->rec->flushes != m->flushes)
		return order_fail(o, report, desc, "%u invalidations, expected %u",
				  o->rec->flushes, m->flushes);
	for (i = 0; n < m->flushes; i++) {
		const struct pgtable_kunit_step *step = o->rec->step + i;
		unsigned long start = contpte_addr(o->f, m->flush[n].start);
		unsigned long end = contpte_addr(o->f, m->flush[n].end);
		unsigned int flags = flush_flags(m->flush[n].why);

		if (step->kind != PGTABLE_KUNIT_FLUSH)
			continue;
		n++;
		if (step->mm == o->f->table->mm && step->start == start &&
		    step->end == end && step->stride == PAGE_SIZE &&
		    step->level == 3 && step->flags == flags)
			continue;
		return order_fail(o, report, desc,
				  "invalidates %lx-%lx by %lx, level %d, flags %#x; expected %lx-%lx, flags %#x",
				  step->start, step->end, step->stride,
				  step->level, step->flags, start, end, flags);
	}
	return true;
}

/**
 * contpte_order_accesses() - check the number of accesses of the last call
 * @o: the context
 * @reads: how often it may read an entry
 * @writes: how often it may write an entry
 * @report: fail the test if it made more
 * @desc: the inputs of the call
 *
 * Return: whether it made no more accesses.
 */
bool contpte_order_accesses(struct contpte_order *o, unsigned int reads,
			    unsigned int writes, bool report, const char *desc)
{
	/* A debug kernel reads an entry before it overwrites it. */
	if (IS_ENABLED(CONFIG_DEBUG_VM))
		reads += writes;
	if (o->rec->reads <= reads && o->rec->writes <= writes)
		return true;
	return order_fail(o, report, desc,
			  "%u reads and %u writes, expected no more than %u and %u",
			  o->rec->reads, o->rec->writes, reads, writes);
}

/*
 * Whether the recorder has seen at least one write for each entry that the call
 * changed. If not, the code under test is not the recorded copy, or it writes
 * in a way that the recorder does not see. Then the other checks prove nothing.
 */
static bool order_recorded(struct contpte_order *o, bool report,
			   const char *desc)
{
	unsigned int i, changed = 0;

	for (i = 0; i < CONTPTE_WINDOW; i++)
		changed += !pte_same(o->before[i],
				     pgtable_kunit_raw_get(contpte_ptep(o->f, i)));
	if (o->rec->writes >= changed)
		return true;
	return order_fail(o, report, desc,
			  "changes %u entries, but only %u writes were recorded",
			  changed, o->rec->writes);
}

/**
 * contpte_order_ok() - for the back end: compare the record with the model
 * @c: the context
 * @step: the call
 * @report: fail the test if they disagree
 * @desc: the inputs of the call
 *
 * Each entry is read and written once, and twice more for a conversion. A
 * function that removes entries and sets them again writes each entry twice.
 * The limit allows extra reads: of both ends, of each entry, and of a block to
 * convert.
 *
 * Return: whether they agree.
 */
bool contpte_order_ok(struct pte_ctx *c, const struct pte_step *step,
		      bool report, const char *desc)
{
	enum pte_op_does does = c->backend->ops[step->op].does;
	const struct pte_model *m = &c->model;
	unsigned int entries = m->end - m->start;
	struct contpte_order *o = c->data;
	unsigned int reads, writes;

	writes = entries + 2 * CONT_PTES * m->converts;
	if (step->op == PTE_OP_MODIFY_PROT)
		writes += entries;
	reads = 3 + entries + CONT_PTES * m->converts;
	if (does == PTE_OP_AGES || does == PTE_OP_FAULTS)
		reads += entries;
	/*
	 * A fault that changes nothing reads the block, to compare its entries.
	 */
	if (does == PTE_OP_FAULTS && !entries)
		reads += CONT_PTES;
	if (does == PTE_OP_READS) {
		writes = 0;
		reads = m->entry[step->idx].cont ? CONT_PTES + 2 : 1;
	}
	return order_recorded(o, report, desc) &&
	       contpte_order_obeys(o, report, desc) &&
	       order_flushes(o, report, desc) &&
	       contpte_order_accesses(o, reads, writes, report, desc);
}

/**
 * contpte_order_converts() - check that a block is converted
 * @o: the context; the last call obeyed the rules
 * @at: the step to begin at
 * @first: the first entry of the block
 * @cont: the block is folded; otherwise it is unfolded
 *
 * The call must clear all entries, then invalidate the block once if that is
 * necessary, then set all entries.
 *
 * Return: the step after the conversion, or 0 if the order is wrong.
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
 * @o: the context
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
 * contpte_order_init() - the init of a suite: a recorder in test->priv
 * @test: the test
 *
 * Return: 0, or an error number.
 */
int contpte_order_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (!err)
		test->priv = contpte_order_alloc(test);
	return err;
}
