// SPDX-License-Identifier: GPL-2.0
/*
 * The model of the functions on page-table entries.
 *
 * The model applies each function to a window of plain structs, one entry after
 * the other. It shares no code with the kernel, does not use the bits of an
 * entry, and never reads the table. So the model does not copy a mistake of the
 * kernel's code.
 *
 * The model rests on two ideas. A folded block has one accessed bit and one
 * dirty bit, each in any of its entries. A function that changes a block in
 * part unfolds it first. If the function changes only these two bits, it
 * changes the whole block instead.
 */

#include "pte_model.h"

static bool model_present(const struct pte_model_entry *e)
{
	return e->kind == MODEL_PROTNONE || e->kind == MODEL_VALID;
}

static bool model_dirty(const struct pte_model_entry *e)
{
	return e->hw_dirty || e->sw_dirty;
}

static void model_mkdirty(const struct pte_model *m, struct pte_model_entry *e)
{
	e->sw_dirty = true;
	e->hw_dirty = e->write;
	if (m->has & MODEL_HAS_SOFT_DIRTY)
		e->soft_dirty = true;
}

/**
 * pte_model_same_folio() - whether two pages belong to one folio
 * @page1: number of one page
 * @page2: number of the other
 *
 * Return: whether both pages belong to one folio.
 */
bool pte_model_same_folio(unsigned int page1, unsigned int page2)
{
	if (page1 < MODEL_FOLIO_PAGES || page2 < MODEL_FOLIO_PAGES)
		return page1 < MODEL_FOLIO_PAGES && page2 < MODEL_FOLIO_PAGES;
	return (page1 - MODEL_FOLIO_PAGES) / (MODEL_BLOCK / 2) ==
	       (page2 - MODEL_FOLIO_PAGES) / (MODEL_BLOCK / 2);
}

/**
 * pte_model_batch() - how many entries a caller may pass to a function as a
 * batch
 * @m: the model
 * @idx: the first entry
 *
 * Return: number of entries that are present and map consecutive pages of one
 * folio.
 */
unsigned int pte_model_batch(const struct pte_model *m, unsigned int idx)
{
	const struct pte_model_entry *first = &m->entry[idx];
	unsigned int nr;

	if (!model_present(first))
		return 0;
	if (first->special)
		return 1;
	for (nr = 1; idx + nr < MODEL_WINDOW; nr++) {
		const struct pte_model_entry *e = first + nr;

		if (!model_present(e) || e->special ||
		    e->page != first->page + nr ||
		    !pte_model_same_folio(first->page, e->page))
			break;
	}
	return nr;
}

/**
 * pte_model_room() - how many consecutive entries are not present
 * @m: the model
 * @idx: the first entry
 *
 * Return: number of consecutive entries from the first one on that are not
 * present.
 */
unsigned int pte_model_room(const struct pte_model *m, unsigned int idx)
{
	unsigned int nr = 0;

	while (idx + nr < MODEL_WINDOW && !model_present(&m->entry[idx + nr]))
		nr++;
	return nr;
}

static bool model_set_legal(const struct pte_model *m,
			    const struct pte_step *step)
{
	const struct pte_model_entry *e = &step->entry;

	if (step->nr == 1)
		return true;
	if (!model_present(e) || e->special || step->nr > m->set_max ||
	    (e->kind == MODEL_PROTNONE && step->nr > m->none_max) ||
	    e->page + step->nr > MODEL_PAGES ||
	    !pte_model_same_folio(e->page, e->page + step->nr - 1))
		return false;
	return step->nr <= pte_model_room(m, step->idx);
}

static bool model_access_legal(const struct pte_model *m,
			       const struct pte_step *step)
{
	const struct pte_model_entry *e = &m->entry[step->idx];

	if (!(m->has & MODEL_HAS_MERGE) &&
	    (e->kind != MODEL_VALID || step->flags & PTE_STEP_LESS ||
	     !(step->flags & PTE_STEP_FLUSH)))
		return false;
	return model_present(e) && (!(step->flags & PTE_STEP_WRITE) ||
				   (e->kind == MODEL_VALID && !e->uffd));
}

/**
 * pte_step_legal() - whether the contract of a step's function allows the step
 * @m: the model, as it is before the step
 * @step: the step
 *
 * Return: whether the step is allowed.
 */
bool pte_step_legal(const struct pte_model *m, const struct pte_step *step)
{
	const struct pte_model_entry *first = &m->entry[step->idx];

	if (!step->nr || step->idx + step->nr > MODEL_WINDOW)
		return false;

	switch (step->op) {
	case PTE_OP_SET_PTES:
	case PTE_OP_SET_PTE_AT:
		return model_set_legal(m, step);
	case PTE_OP_PTE_CLEAR:
		/*
		 * The function does not update the counts of page_table_check.
		 */
		return !IS_ENABLED(CONFIG_PAGE_TABLE_CHECK) ||
		       first->kind != MODEL_VALID;
	case PTE_OP_HARDWARE:
		return first->kind == MODEL_VALID &&
		       (first->write || !(step->flags & PTE_STEP_DIRTY));
	case PTE_OP_ACCESS_FLAGS:
		return model_access_legal(m, step);
	case PTE_OP_MODIFY_PROT:
		/*
		 * Some CPUs need an additional invalidation if the entry is
		 * executable.
		 */
		return step->nr <= pte_model_batch(m, step->idx) && !first->exec &&
		       (!(step->flags & PTE_STEP_NOACCESS) ||
			step->nr <= m->none_max) &&
		       (!(step->flags & PTE_STEP_WRITE) || !first->uffd);
	}
	switch (pte_arch_backend.ops[step->op].finds) {
	case PTE_OP_FINDS_ANYTHING:
		return true;
	case PTE_OP_FINDS_NOTHING:
		return step->nr <= pte_model_room(m, step->idx);
	default:
		return step->nr <= pte_model_batch(m, step->idx);
	}
}

static void model_flush(struct pte_model *m, unsigned int start,
			unsigned int end, enum pte_model_flush why)
{
	m->flush[m->flushes].start = start;
	m->flush[m->flushes].end = end;
	m->flush[m->flushes].why = why;
	m->flushes++;
}

static void model_convert(struct pte_model *m, unsigned int idx, bool fold)
{
	unsigned int first = ALIGN_DOWN(idx, MODEL_BLOCK), i;
	bool young = false, dirty = false;

	for (i = first; i < first + MODEL_BLOCK; i++) {
		young |= m->entry[i].young;
		dirty |= model_dirty(&m->entry[i]);
	}
	for (i = first; i < first + MODEL_BLOCK; i++) {
		m->entry[i].cont = fold;
		m->entry[i].young = young;
		if (dirty)
			model_mkdirty(m, &m->entry[i]);
	}
	if (!m->quiet)
		model_flush(m, first, first + MODEL_BLOCK, MODEL_FLUSH_CONVERT);
	m->converts++;
	if (fold)
		m->nr_folds++;
	else
		m->nr_unfolds++;
}

static void model_unfold(struct pte_model *m, unsigned int idx)
{
	if (m->entry[idx].cont && !m->kernel)
		model_convert(m, idx, false);
}

/* Unfold the blocks that a range covers in part. */
static void model_unfold_ends(struct pte_model *m, unsigned int start,
			      unsigned int end)
{
	if (start % MODEL_BLOCK || end - start < MODEL_BLOCK)
		model_unfold(m, start);
	if (end % MODEL_BLOCK)
		model_unfold(m, end - 1);
}

/*
 * Do the entries differ only in accessed and dirty, so that they can be folded?
 */
static bool model_uniform(const struct pte_model *m, unsigned int first)
{
	const struct pte_model_entry *e = &m->entry[first];
	unsigned int i;

	if (e->kind != MODEL_VALID || e->special || e->page % MODEL_BLOCK ||
	    !pte_model_same_folio(e->page, e->page + MODEL_BLOCK - 1))
		return false;
	for (i = 1; i < MODEL_BLOCK; i++) {
		if (e[i].kind != e->kind || e[i].page != e->page + i ||
		    e[i].write != e->write || e[i].exec != e->exec ||
		    e[i].nc != e->nc || e[i].uffd != e->uffd ||
		    e[i].special)
			return false;
	}
	return true;
}

static void model_set_one(struct pte_model *m, unsigned int idx,
			  const struct pte_model_entry *entry)
{
	model_unfold(m, idx);
	m->entry[idx] = *entry;
	m->entry[idx].cont = false;

	/* A write of the last entry of a block may fold the block. */
	if (m->folds &&
	    idx % MODEL_BLOCK == MODEL_BLOCK - 1 &&
	    model_uniform(m, idx + 1 - MODEL_BLOCK))
		model_convert(m, idx, true);
}

static void model_set(struct pte_model *m, unsigned int idx, unsigned int nr,
		      const struct pte_model_entry *entry)
{
	unsigned int i;

	if (nr == 1) {
		model_set_one(m, idx, entry);
		return;
	}
	for (i = idx; i < idx + nr; i++) {
		unsigned int first = ALIGN_DOWN(i, MODEL_BLOCK);
		struct pte_model_entry *e = &m->entry[i];

		*e = *entry;
		e->page += i - idx;
		e->cont = m->folds &&
			  e->kind == MODEL_VALID &&
			  first >= idx && first + MODEL_BLOCK <= idx + nr &&
			  e->page % MODEL_BLOCK == i % MODEL_BLOCK;
	}
}

/* The first entry, with the accessed and dirty bits of all. */
static void model_clear(struct pte_model *m, unsigned int idx, unsigned int nr)
{
	unsigned int i;

	model_unfold_ends(m, idx, idx + nr);
	m->ret = m->entry[idx];
	for (i = idx; i < idx + nr; i++) {
		m->ret.young |= m->entry[i].young;
		m->ret.sw_dirty |= model_dirty(&m->entry[i]);
		if (i > idx && model_dirty(&m->entry[i]))
			model_mkdirty(m, &m->ret);
		m->entry[i] = (struct pte_model_entry){};
	}
}

static void model_wrprotect(struct pte_model *m, unsigned int idx,
			    unsigned int nr)
{
	unsigned int i;

	model_unfold_ends(m, idx, idx + nr);
	for (i = idx; i < idx + nr; i++) {
		struct pte_model_entry *e = &m->entry[i];

		e->sw_dirty |= e->hw_dirty;
		e->hw_dirty = false;
		e->write = false;
	}
}

/*
 * mprotect() writes a block where the range covers a whole block, and single
 * entries elsewhere. If the old translations may have another size, they must
 * leave the TLB first.
 */
static bool model_prot_flushes(const struct pte_model *m,
			       const struct pte_step *step)
{
	unsigned int block = ALIGN(step->idx, MODEL_BLOCK);

	if (!m->prot_flushes || m->quiet || step->flags & PTE_STEP_NOACCESS ||
	    m->entry[step->idx].kind != MODEL_VALID ||
	    block + MODEL_BLOCK > m->end)
		return false;
	if (m->entry[block].cont)
		return (step->idx | m->end) % MODEL_BLOCK;
	return true;
}

static void model_modify_prot(struct pte_model *m,
			      const struct pte_step *step)
{
	struct pte_model_entry *e = &m->changed;
	bool flush = model_prot_flushes(m, step);

	model_clear(m, step->idx, step->nr);
	*e = m->ret;
	e->kind = step->flags & PTE_STEP_NOACCESS ? MODEL_PROTNONE : MODEL_VALID;
	e->write = e->kind == MODEL_VALID && step->flags & PTE_STEP_WRITE;
	e->sw_dirty = model_dirty(e);
	e->hw_dirty = e->write && e->sw_dirty;
	if (flush)
		model_flush(m, m->start, m->end, MODEL_FLUSH_PROT);
	model_set(m, step->idx, step->nr, e);
}

/* Expand a range to the folded blocks at its ends. */
static void model_expand(struct pte_model *m)
{
	if (m->entry[m->start].cont)
		m->start = ALIGN_DOWN(m->start, MODEL_BLOCK);
	if (m->entry[m->end - 1].cont)
		m->end = ALIGN(m->end, MODEL_BLOCK);
}

static void model_young(struct pte_model *m, bool flush)
{
	unsigned int i;

	model_expand(m);
	m->number = false;
	for (i = m->start; i < m->end; i++) {
		/* Without blocks, the functions handle each page alone. */
		if (!m->folds && flush &&
		    m->entry[i].young)
			model_flush(m, i, i + 1, MODEL_FLUSH_YOUNG);
		m->number |= m->entry[i].young;
		m->entry[i].young = false;
	}
	if (m->folds && flush && m->number)
		model_flush(m, m->start, m->end, MODEL_FLUSH_YOUNG);
}

static void model_clear_young_dirty(struct pte_model *m,
				    const struct pte_step *step)
{
	unsigned int i;

	model_expand(m);
	for (i = m->start; i < m->end; i++) {
		struct pte_model_entry *e = &m->entry[i];

		if (step->flags & PTE_STEP_YOUNG)
			e->young = false;
		if (step->flags & PTE_STEP_DIRTY) {
			e->hw_dirty = false;
			e->sw_dirty = false;
		}
	}
}

/**
 * pte_model_get() - an entry as a reader gets it, with the bits of its block
 * @m: the model
 * @idx: number of the entry
 *
 * Return: the entry.
 */
struct pte_model_entry pte_model_get(const struct pte_model *m, unsigned int idx)
{
	struct pte_model_entry e = m->entry[idx];
	unsigned int i, first = ALIGN_DOWN(idx, MODEL_BLOCK);

	if (!e.cont)
		return e;
	for (i = first; i < first + MODEL_BLOCK; i++) {
		e.young |= m->entry[i].young;
		if (model_dirty(&m->entry[i]))
			model_mkdirty(m, &e);
	}
	return e;
}

/**
 * pte_model_access() - the entry that a fault wants
 * @m: the model, as it is before the step
 * @step: the step, a call of ptep_set_access_flags()
 *
 * Return: the entry, without the contiguous bit.
 */
struct pte_model_entry pte_model_access(const struct pte_model *m,
					const struct pte_step *step)
{
	struct pte_model_entry e = pte_model_get(m, step->idx);

	if (step->flags & PTE_STEP_GIVEN)
		e = step->entry;
	e.cont = false;
	if (step->flags & PTE_STEP_GIVEN)
		return e;
	if (step->flags & PTE_STEP_LESS) {
		e.young = false;
		e.write = false;
		e.hw_dirty = false;
		e.sw_dirty = false;
	}
	e.young |= !!(step->flags & PTE_STEP_YOUNG);
	e.write |= !!(step->flags & PTE_STEP_WRITE);
	if (step->flags & PTE_STEP_DIRTY)
		model_mkdirty(m, &e);
	e.hw_dirty |= e.write && e.sw_dirty;
	return e;
}

static bool model_access_same(const struct pte_model *m,
			      const struct pte_model_entry *a,
			      const struct pte_model_entry *b)
{
	if (a->young != b->young || a->write != b->write)
		return false;
	if (m->has & MODEL_HAS_MERGE)
		return a->hw_dirty == b->hw_dirty && a->sw_dirty == b->sw_dirty;
	return model_dirty(a) == model_dirty(b) && a->soft_dirty == b->soft_dirty;
}

static void model_access_flags(struct pte_model *m,
			       const struct pte_step *step)
{
	struct pte_model_entry want = pte_model_access(m, step);
	bool differs = false;
	unsigned int i;

	model_expand(m);
	for (i = m->start; i < m->end; i++)
		differs |= !model_access_same(m, &m->entry[i], &want);
	m->number = differs;
	if (!differs) {
		m->end = m->start;
		return;
	}

	/* Make all entries of a block more permissive, but never writable. */
	if (m->entry[m->start].cont && m->entry[m->start].write != want.write) {
		model_unfold(m, m->start);
		m->start = step->idx;
		m->end = step->idx + 1;
	}
	for (i = m->start; i < m->end; i++) {
		m->entry[i].young |= want.young;
		m->entry[i].write |= want.write;
		m->entry[i].hw_dirty |= want.hw_dirty;
		m->entry[i].sw_dirty |= want.sw_dirty;
		m->entry[i].soft_dirty |= want.soft_dirty;
	}
	if (step->flags & PTE_STEP_FLUSH)
		model_flush(m, m->start, m->end, MODEL_FLUSH_FAULT);
}

/**
 * pte_model_step() - apply a step to the model
 * @m: the model
 * @step: the step, which must be legal
 */
void pte_model_step(struct pte_model *m, const struct pte_step *step)
{
	struct pte_model_entry *first = &m->entry[step->idx];

	m->flushes = 0;
	m->converts = 0;
	m->start = step->idx;
	m->end = step->idx + step->nr;
	m->returns = MODEL_RETURNS_NOTHING;

	switch (step->op) {
	case PTE_OP_SET_PTES:
	case PTE_OP_SET_PTE_AT:
		model_set(m, step->idx, step->nr, &step->entry);
		break;
	case PTE_OP_GET_AND_CLEAR:
	case PTE_OP_GET_AND_CLEAR_ONE_FULL:
	case PTE_OP_GET_AND_CLEAR_FULL:
	case PTE_OP_GET_AND_CLEAR_PTES:
		m->returns = MODEL_RETURNS_ENTRY;
		fallthrough;
	case PTE_OP_PTE_CLEAR:
	case PTE_OP_CLEAR_FULL:
	case PTE_OP_CLEAR_PTES:
	case PTE_OP_CLEAR_NONPRESENT:
		model_clear(m, step->idx, step->nr);
		break;
	case PTE_OP_MODIFY_PROT:
		m->returns = MODEL_RETURNS_ENTRY;
		model_modify_prot(m, step);
		break;
	case PTE_OP_WRPROTECT_PTES:
	case PTE_OP_SET_WRPROTECT:
		model_wrprotect(m, step->idx, step->nr);
		break;
	case PTE_OP_TEST_YOUNG:
	case PTE_OP_TEST_YOUNG_PTES:
		m->returns = MODEL_RETURNS_NUMBER;
		model_young(m, false);
		break;
	case PTE_OP_FLUSH_YOUNG:
	case PTE_OP_FLUSH_YOUNG_PTES:
		m->returns = MODEL_RETURNS_NUMBER;
		model_young(m, true);
		break;
	case PTE_OP_CLEAR_YOUNG_DIRTY:
		model_clear_young_dirty(m, step);
		break;
	case PTE_OP_ACCESS_FLAGS:
		model_access_flags(m, step);
		/*
		 * Some architectures always return that the entry has changed.
		 */
		if (m->has & MODEL_HAS_MERGE || m->number)
			m->returns = MODEL_RETURNS_NUMBER;
		break;
	case PTE_OP_GET:
	case PTE_OP_GET_LOCKLESS:
		m->returns = MODEL_RETURNS_ENTRY;
		m->ret = pte_model_get(m, step->idx);
		break;
	case PTE_OP_HINT:
		m->returns = MODEL_RETURNS_NUMBER;
		m->number = first->cont ? MODEL_BLOCK - step->idx % MODEL_BLOCK : 1;
		break;
	case PTE_OP_HARDWARE:
		if (step->flags & PTE_STEP_YOUNG)
			first->young = true;
		if (step->flags & PTE_STEP_DIRTY) {
			first->hw_dirty = true;
			first->soft_dirty |= !!(m->has & MODEL_HAS_SOFT_DIRTY);
		}
		break;
	}
}
