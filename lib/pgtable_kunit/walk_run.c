// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over a page table: steps on the real table.
 */

#include <linux/slab.h>

#include "walk.h"

static void arch_set_ptes(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
			  pte_t pte, unsigned int nr)
{
	set_ptes(mm, addr, ptep, pte, nr);
}

static pte_t arch_get_and_clear_full_ptes(struct mm_struct *mm,
					  unsigned long addr, pte_t *ptep,
					  unsigned int nr, int full)
{
	return get_and_clear_full_ptes(mm, addr, ptep, nr, full);
}

static void arch_clear_full_ptes(struct mm_struct *mm, unsigned long addr,
				 pte_t *ptep, unsigned int nr, int full)
{
	clear_full_ptes(mm, addr, ptep, nr, full);
}

static void arch_wrprotect_ptes(struct mm_struct *mm, unsigned long addr,
				pte_t *ptep, unsigned int nr)
{
	wrprotect_ptes(mm, addr, ptep, nr);
}

static void arch_clear_young_dirty_ptes(struct vm_area_struct *vma,
					unsigned long addr, pte_t *ptep,
					unsigned int nr, cydp_t flags)
{
	clear_young_dirty_ptes(vma, addr, ptep, nr, flags);
}

/* The functions of the architecture; some exist for one entry only. */
const struct walk_functions walk_arch_functions = {
	.set_ptes = arch_set_ptes,
	.get_and_clear_full_ptes = arch_get_and_clear_full_ptes,
	.clear_full_ptes = arch_clear_full_ptes,
	.wrprotect_ptes = arch_wrprotect_ptes,
	.clear_young_dirty_ptes = arch_clear_young_dirty_ptes,
	.test_and_clear_young_ptes = pgtable_kunit_test_and_clear_young,
	.clear_flush_young_ptes = pgtable_kunit_clear_flush_young,
	.modify_prot_start_ptes = pgtable_kunit_modify_prot_start,
	.modify_prot_commit_ptes = pgtable_kunit_modify_prot_commit,
};

/**
 * walk_page_pfn() - where a page is
 * @w: the walk
 * @page: its number
 *
 * Return: its page frame number.
 */
unsigned long walk_page_pfn(const struct walk *w, unsigned int page)
{
	unsigned long pfn = page < WALK_FOLIO_PAGES ?
			    w->pfn + page :
			    w->pair_pfn + page - WALK_FOLIO_PAGES;

	return pfn + w->shift;
}

/* The entry that a fault wants: more permissive than the present one. */
static pte_t walk_more(struct walk *w, const struct walk_step *step)
{
	pte_t pte = ptep_get(w->table->pte + w->base + step->idx);

	if (step->flags & WALK_YOUNG)
		pte = pte_mkyoung(pte);
	if (step->flags & WALK_WRITE)
		pte = pte_mkwrite(pte, &w->vma);
	if (step->flags & WALK_DIRTY)
		pte = pte_mkdirty(pte);
	return pte;
}

/* Call the function. Return: its value, if it is an entry. */
static pte_t walk_call(struct walk *w, const struct walk_step *step,
		       pte_t entry, pte_t changed, unsigned int *number)
{
	unsigned int idx = w->base + step->idx, nr = step->nr;
	unsigned long addr = pgtable_kunit_table_addr(w->table, idx);
	const struct walk_functions *fn = w->functions;
	int full = !!(step->flags & WALK_FULL);
	struct mm_struct *mm = w->table->mm;
	pte_t *ptep = w->table->pte + idx;
	pte_t pte = __pte(0);
	cydp_t cydp = 0;

	switch (step->op) {
	case WALK_SET:
		fn->set_ptes(mm, addr, ptep, entry, nr);
		break;
	case WALK_PTE_CLEAR:
		pte = pgtable_kunit_raw_get(ptep);
		pte_clear(mm, addr, ptep);
		pgtable_kunit_uncount(mm, addr, ptep, pte);
		break;
	case WALK_GET_AND_CLEAR:
		return ptep_get_and_clear(mm, addr, ptep);
	case WALK_GET_AND_CLEAR_FULL:
		return fn->get_and_clear_full_ptes(mm, addr, ptep, nr, full);
	case WALK_CLEAR_FULL:
		fn->clear_full_ptes(mm, addr, ptep, nr, full);
		break;
	case WALK_GET_AND_CLEAR_PTES:
		return pgtable_kunit_get_and_clear_ptes(mm, addr, ptep, nr);
	case WALK_CLEAR_PTES:
		pgtable_kunit_clear_ptes(mm, addr, ptep, nr);
		break;
	case WALK_CLEAR_NONPRESENT:
		pgtable_kunit_clear_nonpresent(mm, addr, ptep, nr, full);
		break;
	case WALK_MODIFY_PROT:
		pte = fn->modify_prot_start_ptes(&w->vma, addr, ptep, nr);
		fn->modify_prot_commit_ptes(&w->vma, addr, ptep, pte, changed,
					    nr);
		break;
	case WALK_WRPROTECT:
		fn->wrprotect_ptes(mm, addr, ptep, nr);
		break;
	case WALK_SET_WRPROTECT:
		ptep_set_wrprotect(mm, addr, ptep);
		break;
	case WALK_TEST_YOUNG:
		*number = !!ptep_test_and_clear_young(&w->vma, addr, ptep);
		break;
	case WALK_FLUSH_YOUNG:
		*number = !!ptep_clear_flush_young(&w->vma, addr, ptep);
		break;
	case WALK_TEST_YOUNG_PTES:
		*number = fn->test_and_clear_young_ptes(&w->vma, addr, ptep, nr);
		break;
	case WALK_FLUSH_YOUNG_PTES:
		*number = fn->clear_flush_young_ptes(&w->vma, addr, ptep, nr);
		break;
	case WALK_CLEAR_YOUNG_DIRTY:
		if (step->flags & WALK_YOUNG)
			cydp |= CYDP_CLEAR_YOUNG;
		if (step->flags & WALK_DIRTY)
			cydp |= CYDP_CLEAR_DIRTY;
		fn->clear_young_dirty_ptes(&w->vma, addr, ptep, nr, cydp);
		break;
	case WALK_ACCESS_FLAGS:
		*number = !!ptep_set_access_flags(&w->vma, addr, ptep, entry,
						  !!(step->flags & WALK_FLUSH));
		break;
	case WALK_GET:
		return ptep_get(ptep);
	case WALK_GET_LOCKLESS:
		return ptep_get_lockless(ptep);
	case WALK_HINT:
		*number = pte_batch_hint(ptep, READ_ONCE(*ptep));
		break;
	case WALK_HARDWARE:
		w->ops->hardware(ptep, step->flags);
		break;
	}
	return pte;
}

static bool walk_returned_ok(struct walk *w, const struct walk_step *step,
			     pte_t got, unsigned int number, bool report,
			     const char *desc)
{
	struct walk_model *m = &w->model;
	struct pgtable_kunit_pte_diff diff;
	pte_t want;
	bool ok;

	if (m->returns == WALK_RETURNS_NOTHING)
		return true;
	if (m->returns == WALK_RETURNS_NUMBER) {
		if (report)
			KUNIT_EXPECT_EQ_MSG(w->test, number, m->number, "%s",
					    desc);
		return number == m->number;
	}

	want = w->ops->encode(w, &m->ret);
	ok = w->ops->same(w, step, got, want);
	if (report && !ok)
		KUNIT_FAIL(w->test, "%s returns %016llx, expected %016llx%s",
			   desc, (u64)pte_val(got), (u64)pte_val(want),
			   pgtable_kunit_pte_diff(&diff, got, want));
	return ok;
}

/**
 * walk_step_ok() - make a step, in the model and for real
 * @w: the walk
 * @step: the step; it is legal
 * @report: fail the test if they disagree
 *
 * Return: whether table, value returned and TLB invalidations agree.
 */
bool walk_step_ok(struct walk *w, const struct walk_step *step, bool report)
{
	bool writes = step->op == WALK_SET || step->op == WALK_ACCESS_FLAGS ||
		      step->op == WALK_MODIFY_PROT;
	struct walk_entry want = step->entry;
	struct walk_model *m = &w->model;
	pte_t entry, changed, got;
	unsigned int number = 0;
	char desc[128] = "";
	bool ok;

	if (step->op == WALK_ACCESS_FLAGS)
		want = walk_model_access(m, step);
	entry = w->ops->encode(w, &want);
	if (step->op == WALK_ACCESS_FLAGS && !(m->has & WALK_HAS_MERGE))
		entry = walk_more(w, step);
	walk_model_step(m, step);
	want = m->changed;
	want.cont = false;
	changed = w->ops->encode(w, &want);
	if (writes && step->flags & WALK_LEAK) {
		entry = w->ops->leak(entry);
		changed = w->ops->leak(changed);
	}
	if (report)
		walk_describe(step, desc, sizeof(desc));

	got = walk_call(w, step, entry, changed, &number);
	ok = w->ops->image_ok(w, report, desc);
	ok &= walk_returned_ok(w, step, got, number, report, desc);
	if (w->ops->flushes_ok)
		ok &= w->ops->flushes_ok(w, report, desc);

	/* A planted failure, for walk_shortens_sequence. */
	if (w->plant) {
		ok = !w->planted || step->id != w->plant[1].id;
		w->planted |= step->id == w->plant[0].id;
	}
	return ok;
}

/**
 * walk_reset() - start over, with the same seed and an empty table
 * @w: the walk
 */
void walk_reset(struct walk *w)
{
	pgtable_kunit_table_reset(w->table);
	memset(w->model.entry, 0, sizeof(w->model.entry));
	w->planted = false;
}

/**
 * walk_fill() - put an entry into the window
 * @w: the walk
 * @idx: where, counted from the begin of the window
 * @entry: the entry
 *
 * This creates the state before a step, without the functions under test.
 */
void walk_fill(struct walk *w, unsigned int idx, const struct walk_entry *entry)
{
	w->model.entry[idx] = *entry;
	pgtable_kunit_table_set(w->table, w->base + idx,
				w->ops->encode(w, entry));
}

/**
 * walk_replay_fails() - make some steps on an empty table
 * @w: the walk
 * @step: the steps. Steps that are not legal in their place are left out
 * @nr: their number
 * @report: fail the test with what differs
 *
 * Return: whether model and table disagreed at some step.
 */
bool walk_replay_fails(struct walk *w, const struct walk_step *step,
		       unsigned int nr, bool report)
{
	unsigned int i;

	walk_reset(w);
	for (i = 0; i < nr; i++) {
		if (walk_step_legal(&w->model, &step[i]) &&
		    !walk_step_ok(w, &step[i], report))
			return true;
	}
	return false;
}

/* Set entries of one kind, and return what the second one is. */
static pte_t walk_try_set(struct walk *w, enum walk_kind kind, unsigned int nr)
{
	const struct walk_entry entry = { .kind = kind };
	struct pgtable_kunit_table *table = w->table;
	pte_t pte;

	w->functions->set_ptes(table->mm, table->addr, table->pte,
			       w->ops->encode(w, &entry), nr);
	pte = pgtable_kunit_raw_get(table->pte + 1);
	pgtable_kunit_table_reset(table);
	return pte;
}

/**
 * walk_avoid_known() - leave out what known issues of this kernel get wrong
 * @w: the walk, complete
 *
 * Issue 2: set_ptes() of three pages maps other pages. Issue 22: set_ptes() of
 * a block that is PROT_NONE makes it contiguous. Other cases show these issues;
 * a walk would meet nothing else. A kernel with the faulty code that does not
 * do so gets all steps.
 */
void walk_avoid_known(struct walk *w)
{
	if (IS_ENABLED(CONFIG_UML) && pgtable_kunit_has_issue(2) &&
	    pte_pfn(walk_try_set(w, WALK_VALID, 3)) != walk_page_pfn(w, 1)) {
		kunit_info(w->test, "known issue 2: no more than two pages are set at once\n");
		w->model.set_max = 2;
	}
#ifdef CONFIG_ARM64
	if (pgtable_kunit_has_issue(22) &&
	    pte_cont(walk_try_set(w, WALK_PROTNONE, WALK_BLOCK))) {
		kunit_info(w->test, "known issue 22: no whole block becomes PROT_NONE at once\n");
		w->model.none_max = WALK_BLOCK - 1;
	}
#endif
}

/**
 * walk_alloc() - make a walk
 * @test: the test that is to own it
 * @name: of the suite
 * @ops: the suite's
 * @table: the table
 * @folio: a folio of WALK_FOLIO_PAGES at least
 *
 * Return: the walk; it has no seed yet.
 */
struct walk *walk_alloc(struct kunit *test, const char *name,
			const struct walk_ops *ops,
			struct pgtable_kunit_table *table, struct folio *folio)
{
	struct walk *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct folio *pair[2];

	KUNIT_ASSERT_NOT_NULL(test, w);
	pgtable_kunit_folio_alloc_pair(test, ilog2(WALK_BLOCK) - 1, pair);
	w->test = test;
	w->name = name;
	w->table = table;
	w->vma.vm_mm = table->mm;
	w->ops = ops;
	w->functions = &walk_arch_functions;
	w->pfn = folio_pfn(folio);
	w->pair_pfn = folio_pfn(pair[0]);
	w->model.folds = WALK_FOLDS;
	w->model.set_max = WALK_WINDOW;
	w->model.none_max = WALK_WINDOW;
	return w;
}
