// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of the functions under test on a real table, compared with the model.
 */

#include <linux/slab.h>

#include "pte_run.h"

/**
 * pte_ctx_pfn() - find a page
 * @c: the context
 * @page: its number in the model
 *
 * Return: its page frame number.
 */
unsigned long pte_ctx_pfn(const struct pte_ctx *c, unsigned int page)
{
	unsigned long pfn = page < MODEL_FOLIO_PAGES ?
			    c->pfn + page :
			    c->pair_pfn + page - MODEL_FOLIO_PAGES;

	return pfn + c->shift;
}

/*
 * The entry that a fault wants: it is more permissive than the present entry.
 */
static pte_t run_more(struct pte_ctx *c, const struct pte_step *step)
{
	pte_t pte = ptep_get(c->table->pte + c->base + step->idx);

	if (step->flags & PTE_STEP_YOUNG)
		pte = pte_mkyoung(pte);
	if (step->flags & PTE_STEP_WRITE)
		pte = pte_mkwrite(pte, &c->vma);
	if (step->flags & PTE_STEP_DIRTY)
		pte = pte_mkdirty(pte);
	return pte;
}

/**
 * pte_op_call() - call a function
 * @c: the context
 * @op: the function
 * @idx: first entry, counted from the start of the table
 * @nr: number of entries
 * @flags: PTE_STEP_FULL and others
 * @entry: the entry to write
 *
 * The context gets the value that the function returns.
 */
void pte_op_call(struct pte_ctx *c, enum pte_op_id op, int idx, unsigned int nr,
		 unsigned int flags, pte_t entry)
{
	struct pte_call call = {
		.mm = c->table->mm,
		.vma = &c->vma,
		.addr = pgtable_kunit_table_addr(c->table, idx),
		.ptep = c->table->pte + idx,
		.nr = nr,
		.flags = flags,
		.entry = entry,
	};

	c->backend->ops[op].call(&call);
	c->got = call.ret;
	c->number = call.number;
}

static void run_step(struct pte_ctx *c, const struct pte_step *step, pte_t entry)
{
	int idx = c->base + step->idx;
	pte_t *ptep = c->table->pte + idx, old = READ_ONCE(*ptep);

	if (step->op == PTE_OP_HARDWARE) {
		c->format->hardware(ptep, step->flags);
		return;
	}
	if (c->backend->begin)
		c->backend->begin(c, step);
	pte_op_call(c, step->op, idx, step->nr, step->flags, entry);
	if (c->backend->end)
		c->backend->end(c, step);
	if (step->op == PTE_OP_PTE_CLEAR && c->table->mm != &init_mm)
		pgtable_kunit_uncount(c->table->mm,
				      pgtable_kunit_table_addr(c->table, idx),
				      ptep, old);
}

static bool run_returned_ok(struct pte_ctx *c, const struct pte_step *step,
			    bool report, const char *desc)
{
	struct pte_model *m = &c->model;
	struct pgtable_kunit_pte_diff diff;
	unsigned int number = c->number;
	pte_t got = c->got;
	pte_t want;
	bool ok;

	if (m->returns == MODEL_RETURNS_NOTHING)
		return true;
	if (m->returns == MODEL_RETURNS_NUMBER) {
		if (report)
			KUNIT_EXPECT_EQ_MSG(c->test, number, m->number, "%s",
					    desc);
		return number == m->number;
	}

	want = c->format->encode(c, &m->ret);
	ok = c->format->same(c, step, got, want);
	if (report && !ok)
		KUNIT_FAIL(c->test, "%s returns %016llx, expected %016llx%s",
			   desc, (u64)pte_val(got), (u64)pte_val(want),
			   pgtable_kunit_pte_diff(&diff, got, want));
	return ok;
}

/**
 * pte_ctx_flushes_ok() - compare the kernel's TLB invalidations with the model
 * @c: the context
 * @report: fail the test if they disagree
 * @desc: the inputs of the call under test
 *
 * Return: whether they agree in number, order and range.
 */
bool pte_ctx_flushes_ok(struct pte_ctx *c, bool report, const char *desc)
{
	const struct pte_model *m = &c->model;
	struct pgtable_kunit_tlb *tlb = c->tlb;
	unsigned int i, nr = tlb->nr, both = min3(nr, m->flushes,
						  PGTABLE_KUNIT_FLUSHES);
	unsigned long start = 0, end = 0, want_start = 0, want_end = 0;

	for (i = 0; i < both; i++) {
		if (tlb->range[i].start !=
		    pgtable_kunit_table_addr(c->table, c->base + m->flush[i].start) ||
		    tlb->range[i].end !=
		    pgtable_kunit_table_addr(c->table, c->base + m->flush[i].end))
			break;
	}
	if (i == both && nr == m->flushes)
		return true;
	if (!report)
		return false;
	if (i < min(nr, PGTABLE_KUNIT_FLUSHES)) {
		start = tlb->range[i].start;
		end = tlb->range[i].end;
	}
	if (i < m->flushes) {
		want_start = pgtable_kunit_table_addr(c->table,
						      c->base + m->flush[i].start);
		want_end = pgtable_kunit_table_addr(c->table,
						    c->base + m->flush[i].end);
	}
	KUNIT_FAIL(c->test,
		   "%s: TLB invalidation %u of %u is %lx-%lx, expected %u, this one %lx-%lx (0: none)",
		   desc, i, nr, start, end, m->flushes, want_start, want_end);
	return false;
}

static bool run_ok(struct pte_ctx *c, const struct pte_step *step, bool report)
{
	char desc[128] = "";
	bool ok;

	if (report)
		pte_step_describe(step, desc, sizeof(desc));
	ok = c->format->image_ok(c, report, desc);
	ok &= run_returned_ok(c, step, report, desc);
	if (c->backend->ok)
		ok = ok && c->backend->ok(c, step, report, desc);
	else if (c->tlb)
		ok &= pte_ctx_flushes_ok(c, report, desc);
	return ok;
}

/**
 * pte_op_make() - make a step in the model and in the table, without a
 * comparison
 * @c: the context
 * @step: the step; it is legal
 */
void pte_op_make(struct pte_ctx *c, const struct pte_step *step)
{
	struct pte_model_entry want = step->entry;
	struct pte_model *m = &c->model;
	pte_t entry;

	if (step->op == PTE_OP_ACCESS_FLAGS)
		want = pte_model_access(m, step);
	entry = c->format->encode(c, &want);
	if (step->op == PTE_OP_ACCESS_FLAGS && !(m->has & MODEL_HAS_MERGE))
		entry = run_more(c, step);
	pte_model_step(m, step);
	if (step->op == PTE_OP_MODIFY_PROT) {
		want = m->changed;
		want.cont = false;
		entry = c->format->encode(c, &want);
	}
	if (pte_step_writes(step) && step->flags & PTE_STEP_LEAK)
		entry = c->format->leak(entry);
	run_step(c, step, entry);
}

/**
 * pte_op_run() - make a step in the model and in the table, and compare them
 * @c: the context
 * @step: the step; it is legal
 * @report: fail the test if they disagree
 *
 * Return: whether the whole table, the value returned and the TLB invalidations
 * agree, and any other data of the back end.
 */
bool pte_op_run(struct pte_ctx *c, const struct pte_step *step, bool report)
{
	bool ok;

	pte_op_make(c, step);
	ok = run_ok(c, step, false);
	if (!ok && report)
		run_ok(c, step, true);
	if (c->tlb)
		c->tlb->nr = 0;
	c->model.flushes = 0;
	return ok;
}

/**
 * pte_ctx_reset() - start over with an empty table
 * @c: the context
 */
void pte_ctx_reset(struct pte_ctx *c)
{
	pgtable_kunit_table_reset(c->table);
	memset(c->model.entry, 0, sizeof(c->model.entry));
	c->model.flushes = 0;
	if (c->tlb)
		c->tlb->nr = 0;
}

/**
 * pte_ctx_fill() - put an entry into the window
 * @c: the context
 * @idx: its place, counted from the start of the window
 * @entry: the entry
 *
 * This creates the state before a step, without the functions under test.
 */
void pte_ctx_fill(struct pte_ctx *c, unsigned int idx,
		  const struct pte_model_entry *entry)
{
	c->model.entry[idx] = *entry;
	pgtable_kunit_table_set(c->table, c->base + idx,
				c->format->encode(c, entry));
}

/* Set entries of one kind, and return the second entry of the table. */
static pte_t run_try_set(struct pte_ctx *c, enum pte_model_kind kind, unsigned int nr)
{
	const struct pte_model_entry entry = { .kind = kind };
	struct pgtable_kunit_table *table = c->table;
	pte_t pte;

	pte_op_call(c, PTE_OP_SET_PTES, 0, nr, 0, c->format->encode(c, &entry));
	pte = pgtable_kunit_raw_get(table->pte + 1);
	pgtable_kunit_table_reset(table);
	return pte;
}

/**
 * pte_ctx_avoid_known() - leave out steps with known issues of this kernel
 * @c: the context, complete
 *
 * Issue 2: set_ptes() of three pages maps other pages. Issue 22: set_ptes() of
 * a block that is PROT_NONE makes it contiguous. Other cases show these issues.
 * With such steps, a walk would only ever find these issues. If a kernel has
 * the faulty code but not this effect, the walks make all steps.
 */
void pte_ctx_avoid_known(struct pte_ctx *c)
{
	if (IS_ENABLED(CONFIG_UML) && pgtable_kunit_has_issue(2) &&
	    pte_pfn(run_try_set(c, MODEL_VALID, 3)) != pte_ctx_pfn(c, 1)) {
		kunit_info(c->test, "known issue 2: no more than two pages are set at once\n");
		c->model.set_max = 2;
	}
#ifdef CONFIG_ARM64
	if (pgtable_kunit_has_issue(22) &&
	    pte_cont(run_try_set(c, MODEL_PROTNONE, MODEL_BLOCK))) {
		kunit_info(c->test, "known issue 22: no whole block becomes PROT_NONE at once\n");
		c->model.none_max = MODEL_BLOCK - 1;
	}
#endif
}

/**
 * pte_ctx_init() - prepare a table and folios for steps
 * @c: the context; zeroed
 * @test: the test that owns them
 * @format: the format of the entries
 * @order: the order of the large folio
 */
void pte_ctx_init(struct pte_ctx *c, struct kunit *test,
		  const struct pte_format *format, unsigned int order)
{
	struct folio *pair[2];

	c->test = test;
	c->table = pgtable_kunit_table_alloc(test);
	c->vma.vm_mm = c->table->mm;
	c->folio = pgtable_kunit_folio_alloc(test, order);
	pgtable_kunit_folio_alloc_pair(test, ilog2(MODEL_BLOCK) - 1, pair);
	c->format = format;
	c->backend = &pte_arch_backend;
	c->pfn = folio_pfn(c->folio);
	c->pair_pfn = folio_pfn(pair[0]);
	c->model.folds = MODEL_FOLDS;
	c->model.quiet = !pgtable_kunit_convert_flushes();
	c->model.prot_flushes = MODEL_FOLDS && PGTABLE_KUNIT_MODIFY_PROT_RANGES &&
				!pgtable_kunit_source_has_issue(35);
	c->model.set_max = MODEL_WINDOW;
	c->model.none_max = MODEL_WINDOW;
}

static size_t describe_entry(const struct pte_model_entry *e, char *buf,
			     size_t size)
{
	if (e->kind == MODEL_SWAP)
		return scnprintf(buf, size, " swap entry %u", e->page);
	return scnprintf(buf, size, " page %u%s%s%s%s%s%s %s%s%s%s", e->page,
			 e->kind == MODEL_PROTNONE ? " PROT_NONE" : "",
			 e->write ? " rw" : " ro", e->exec ? " exec" : "",
			 e->nc ? " uncached" : "", e->uffd ? " uffd" : "",
			 e->special ? " special" : "",
			 e->young ? "young" : "old",
			 e->hw_dirty ? " hw-dirty" : "",
			 e->sw_dirty ? " sw-dirty" : "",
			 e->soft_dirty ? " soft-dirty" : "");
}

/**
 * pte_step_describe() - describe a step in words
 * @step: the step
 * @buf: gets the description
 * @size: its size
 */
void pte_step_describe(const struct pte_step *step, char *buf, size_t size)
{
	const struct pte_op *op = &pte_arch_backend.ops[step->op];
	unsigned int flags = step->flags;
	size_t len;

	len = scnprintf(buf, size, "%s idx %u", op->name, step->idx);
	if (step->nr > 1)
		len += scnprintf(buf + len, size - len, " nr %u", step->nr);

	switch (step->op) {
	case PTE_OP_SET_PTES:
	case PTE_OP_SET_PTE_AT:
		len += describe_entry(&step->entry, buf + len, size - len);
		if (flags & PTE_STEP_LEAK)
			scnprintf(buf + len, size - len, " with PTE_CONT");
		break;
	case PTE_OP_MODIFY_PROT:
		scnprintf(buf + len, size - len, " to %s%s",
			  flags & PTE_STEP_NOACCESS ? "PROT_NONE" :
			  flags & PTE_STEP_WRITE ? "rw" : "ro",
			  flags & PTE_STEP_LEAK ? " with PTE_CONT" : "");
		break;
	case PTE_OP_CLEAR_YOUNG_DIRTY:
	case PTE_OP_HARDWARE:
		scnprintf(buf + len, size - len, "%s%s",
			  flags & PTE_STEP_YOUNG ? " young" : "",
			  flags & PTE_STEP_DIRTY ? " dirty" : "");
		break;
	case PTE_OP_ACCESS_FLAGS:
		if (flags & PTE_STEP_GIVEN) {
			len += describe_entry(&step->entry, buf + len, size - len);
			scnprintf(buf + len, size - len, ", dirty=%u%s",
				  !!(flags & PTE_STEP_FLUSH),
				  flags & PTE_STEP_LEAK ? " with PTE_CONT" : "");
			break;
		}
		scnprintf(buf + len, size - len, " %s%s%s%s, dirty=%u%s",
			  flags & PTE_STEP_LESS ? "old clean ro" : "as it is",
			  flags & PTE_STEP_YOUNG ? " +young" : "",
			  flags & PTE_STEP_DIRTY ? " +dirty" : "",
			  flags & PTE_STEP_WRITE ? " +rw" : "",
			  !!(flags & PTE_STEP_FLUSH),
			  flags & PTE_STEP_LEAK ? " with PTE_CONT" : "");
		break;
	default:
		if (op->way[1].flags == PTE_STEP_FULL)
			scnprintf(buf + len, size - len, " full %u",
				  !!(flags & PTE_STEP_FULL));
	}
}
