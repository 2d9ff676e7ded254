// SPDX-License-Identifier: GPL-2.0
/*
 * Random walks over a page table: the model.
 *
 * The model applies each function to a window of plain structs, one entry after
 * the other. It shares no code with the kernel, does not use the bits of an
 * entry, and never reads the table. So a comparison with the model proves
 * something.
 *
 * The model rests on two ideas. A folded block has one accessed bit and one
 * dirty bit, which may be in any of its entries. A function that changes a
 * block in part unfolds it first. If the function changes only these two bits,
 * it changes the whole block instead.
 */

#include "walk.h"

static bool walk_present(const struct walk_entry *e)
{
	return e->kind == WALK_PROTNONE || e->kind == WALK_VALID;
}

static bool walk_dirty(const struct walk_entry *e)
{
	return e->hw_dirty || e->sw_dirty;
}

static void walk_mkdirty(const struct walk_model *m, struct walk_entry *e)
{
	e->sw_dirty = true;
	e->hw_dirty = e->write;
	if (m->has & WALK_HAS_SOFT_DIRTY)
		e->soft_dirty = true;
}

/**
 * walk_same_folio() - whether two pages belong to one folio
 * @page1: number of one page
 * @page2: number of the other
 *
 * Return: whether they do.
 */
bool walk_same_folio(unsigned int page1, unsigned int page2)
{
	if (page1 < WALK_FOLIO_PAGES || page2 < WALK_FOLIO_PAGES)
		return page1 < WALK_FOLIO_PAGES && page2 < WALK_FOLIO_PAGES;
	return (page1 - WALK_FOLIO_PAGES) / (WALK_BLOCK / 2) ==
	       (page2 - WALK_FOLIO_PAGES) / (WALK_BLOCK / 2);
}

/**
 * walk_batch() - how many entries a function may be given as a batch
 * @m: the model
 * @idx: the first entry
 *
 * Return: number of entries that are present and map consecutive pages of one
 * folio.
 */
unsigned int walk_batch(const struct walk_model *m, unsigned int idx)
{
	const struct walk_entry *first = &m->entry[idx];
	unsigned int nr;

	if (!walk_present(first))
		return 0;
	if (first->special)
		return 1;
	for (nr = 1; idx + nr < WALK_WINDOW; nr++) {
		const struct walk_entry *e = first + nr;

		if (!walk_present(e) || e->special ||
		    e->page != first->page + nr ||
		    !walk_same_folio(first->page, e->page))
			break;
	}
	return nr;
}

/**
 * walk_room() - how many entries are not present
 * @m: the model
 * @idx: the first entry
 *
 * Return: number of consecutive entries from the first one on that are not
 * present.
 */
unsigned int walk_room(const struct walk_model *m, unsigned int idx)
{
	unsigned int nr = 0;

	while (idx + nr < WALK_WINDOW && !walk_present(&m->entry[idx + nr]))
		nr++;
	return nr;
}

static bool walk_set_legal(const struct walk_model *m,
			   const struct walk_step *step)
{
	const struct walk_entry *e = &step->entry;

	if (step->nr == 1)
		return true;
	if (!walk_present(e) || e->special || step->nr > m->set_max ||
	    (e->kind == WALK_PROTNONE && step->nr > m->none_max) ||
	    e->page + step->nr > WALK_PAGES ||
	    !walk_same_folio(e->page, e->page + step->nr - 1))
		return false;
	return step->nr <= walk_room(m, step->idx);
}

static bool walk_access_legal(const struct walk_model *m,
			      const struct walk_step *step)
{
	const struct walk_entry *e = &m->entry[step->idx];

	if (!(m->has & WALK_HAS_MERGE) &&
	    (e->kind != WALK_VALID || step->flags & WALK_LESS ||
	     !(step->flags & WALK_FLUSH)))
		return false;
	return walk_present(e) && (!(step->flags & WALK_WRITE) ||
				   (e->kind == WALK_VALID && !e->uffd));
}

/**
 * walk_step_legal() - whether the contract of its function allows a step
 * @m: the model, as it is before the step
 * @step: the step
 *
 * Return: whether it does.
 */
bool walk_step_legal(const struct walk_model *m, const struct walk_step *step)
{
	const struct walk_entry *first = &m->entry[step->idx];

	if (!step->nr || step->idx + step->nr > WALK_WINDOW)
		return false;

	switch (step->op) {
	case WALK_SET:
		return walk_set_legal(m, step);
	case WALK_PTE_CLEAR:
		/*
		 * The function does not update the counts of page_table_check.
		 */
		return !IS_ENABLED(CONFIG_PAGE_TABLE_CHECK) ||
		       first->kind != WALK_VALID;
	case WALK_GET_AND_CLEAR:
	case WALK_GET:
	case WALK_GET_LOCKLESS:
	case WALK_HINT:
		return true;
	case WALK_HARDWARE:
		return first->kind == WALK_VALID &&
		       (first->write || !(step->flags & WALK_DIRTY));
	case WALK_CLEAR_NONPRESENT:
		return step->nr <= walk_room(m, step->idx);
	case WALK_ACCESS_FLAGS:
		return walk_access_legal(m, step);
	case WALK_MODIFY_PROT:
		/*
		 * Some CPUs need one more invalidation if the entry is
		 * executable.
		 */
		return step->nr <= walk_batch(m, step->idx) && !first->exec &&
		       (!(step->flags & WALK_NOACCESS) ||
			step->nr <= m->none_max) &&
		       (!(step->flags & WALK_WRITE) || !first->uffd);
	default:
		return step->nr <= walk_batch(m, step->idx);
	}
}

static void model_flush(struct walk_model *m, unsigned int start,
			unsigned int end)
{
	m->flush[m->flushes].start = start;
	m->flush[m->flushes].end = end;
	m->flushes++;
}

static void model_convert(struct walk_model *m, unsigned int idx, bool fold)
{
	unsigned int first = ALIGN_DOWN(idx, WALK_BLOCK), i;
	bool young = false, dirty = false;

	for (i = first; i < first + WALK_BLOCK; i++) {
		young |= m->entry[i].young;
		dirty |= walk_dirty(&m->entry[i]);
	}
	for (i = first; i < first + WALK_BLOCK; i++) {
		m->entry[i].cont = fold;
		m->entry[i].young = young;
		if (dirty)
			walk_mkdirty(m, &m->entry[i]);
	}
	if (pgtable_kunit_convert_flushes())
		model_flush(m, first, first + WALK_BLOCK);
	if (fold)
		m->nr_folds++;
	else
		m->nr_unfolds++;
}

static void model_unfold(struct walk_model *m, unsigned int idx)
{
	if (m->entry[idx].cont)
		model_convert(m, idx, false);
}

/* Unfold the blocks that a range covers in part. */
static void model_unfold_ends(struct walk_model *m, unsigned int start,
			      unsigned int end)
{
	if (start % WALK_BLOCK || end - start < WALK_BLOCK)
		model_unfold(m, start);
	if (end % WALK_BLOCK)
		model_unfold(m, end - 1);
}

/*
 * Do the entries differ only in accessed and dirty, so that they can be folded?
 */
static bool model_uniform(const struct walk_model *m, unsigned int first)
{
	const struct walk_entry *e = &m->entry[first];
	unsigned int i;

	if (e->kind != WALK_VALID || e->special || e->page % WALK_BLOCK ||
	    !walk_same_folio(e->page, e->page + WALK_BLOCK - 1))
		return false;
	for (i = 1; i < WALK_BLOCK; i++) {
		if (e[i].kind != e->kind || e[i].page != e->page + i ||
		    e[i].write != e->write || e[i].exec != e->exec ||
		    e[i].nc != e->nc || e[i].uffd != e->uffd ||
		    e[i].special)
			return false;
	}
	return true;
}

static void model_set_one(struct walk_model *m, unsigned int idx,
			  const struct walk_entry *entry)
{
	model_unfold(m, idx);
	m->entry[idx] = *entry;
	m->entry[idx].cont = false;

	/* Setting the last entry of a block may fold it. */
	if (m->folds &&
	    idx % WALK_BLOCK == WALK_BLOCK - 1 &&
	    model_uniform(m, idx + 1 - WALK_BLOCK))
		model_convert(m, idx, true);
}

static void model_set(struct walk_model *m, unsigned int idx, unsigned int nr,
		      const struct walk_entry *entry)
{
	unsigned int i;

	if (nr == 1) {
		model_set_one(m, idx, entry);
		return;
	}
	for (i = idx; i < idx + nr; i++) {
		unsigned int first = ALIGN_DOWN(i, WALK_BLOCK);
		struct walk_entry *e = &m->entry[i];

		*e = *entry;
		e->page += i - idx;
		e->cont = m->folds &&
			  e->kind == WALK_VALID &&
			  first >= idx && first + WALK_BLOCK <= idx + nr &&
			  e->page % WALK_BLOCK == i % WALK_BLOCK;
	}
}

/* The first entry, with the accessed and dirty bits of all. */
static void model_clear(struct walk_model *m, unsigned int idx, unsigned int nr)
{
	unsigned int i;

	model_unfold_ends(m, idx, idx + nr);
	m->ret = m->entry[idx];
	for (i = idx; i < idx + nr; i++) {
		m->ret.young |= m->entry[i].young;
		m->ret.sw_dirty |= walk_dirty(&m->entry[i]);
		if (i > idx && walk_dirty(&m->entry[i]))
			walk_mkdirty(m, &m->ret);
		m->entry[i] = (struct walk_entry){};
	}
}

static void model_wrprotect(struct walk_model *m, unsigned int idx,
			    unsigned int nr)
{
	unsigned int i;

	model_unfold_ends(m, idx, idx + nr);
	for (i = idx; i < idx + nr; i++) {
		struct walk_entry *e = &m->entry[i];

		e->sw_dirty |= e->hw_dirty;
		e->hw_dirty = false;
		e->write = false;
	}
}

static void model_modify_prot(struct walk_model *m,
			      const struct walk_step *step)
{
	struct walk_entry *e = &m->changed;

	model_clear(m, step->idx, step->nr);
	*e = m->ret;
	e->kind = step->flags & WALK_NOACCESS ? WALK_PROTNONE : WALK_VALID;
	e->write = e->kind == WALK_VALID && step->flags & WALK_WRITE;
	e->sw_dirty = walk_dirty(e);
	e->hw_dirty = e->write && e->sw_dirty;
	model_set(m, step->idx, step->nr, e);
}

/* A range with all of the folded blocks at its ends. */
static void model_expand(const struct walk_model *m,
			 const struct walk_step *step, unsigned int *start,
			 unsigned int *end)
{
	*start = step->idx;
	*end = step->idx + step->nr;
	if (m->entry[*start].cont)
		*start = ALIGN_DOWN(*start, WALK_BLOCK);
	if (m->entry[*end - 1].cont)
		*end = ALIGN(*end, WALK_BLOCK);
}

static void model_young(struct walk_model *m, const struct walk_step *step,
			bool flush)
{
	unsigned int start, end, i;

	model_expand(m, step, &start, &end);
	m->number = false;
	for (i = start; i < end; i++) {
		/* Without blocks, each page is handled alone. */
		if (!m->folds && flush &&
		    m->entry[i].young)
			model_flush(m, i, i + 1);
		m->number |= m->entry[i].young;
		m->entry[i].young = false;
	}
	if (m->folds && flush && m->number)
		model_flush(m, start, end);
}

static void model_clear_young_dirty(struct walk_model *m,
				    const struct walk_step *step)
{
	unsigned int start, end, i;

	model_expand(m, step, &start, &end);
	for (i = start; i < end; i++) {
		struct walk_entry *e = &m->entry[i];

		if (step->flags & WALK_YOUNG)
			e->young = false;
		if (step->flags & WALK_DIRTY) {
			e->hw_dirty = false;
			e->sw_dirty = false;
		}
	}
}

/**
 * walk_model_get() - an entry as a reader gets it: with the bits of its block
 * @m: the model
 * @idx: which
 *
 * Return: the entry.
 */
struct walk_entry walk_model_get(const struct walk_model *m, unsigned int idx)
{
	struct walk_entry e = m->entry[idx];
	unsigned int i, first = ALIGN_DOWN(idx, WALK_BLOCK);

	if (!e.cont)
		return e;
	for (i = first; i < first + WALK_BLOCK; i++) {
		e.young |= m->entry[i].young;
		if (walk_dirty(&m->entry[i]))
			walk_mkdirty(m, &e);
	}
	return e;
}

/**
 * walk_model_access() - the entry that a fault wants
 * @m: the model, as it is before the step
 * @step: the step, a call of ptep_set_access_flags()
 *
 * Return: that entry, without the contiguous bit.
 */
struct walk_entry walk_model_access(const struct walk_model *m,
				    const struct walk_step *step)
{
	struct walk_entry e = walk_model_get(m, step->idx);

	e.cont = false;
	if (step->flags & WALK_LESS) {
		e.young = false;
		e.write = false;
		e.hw_dirty = false;
		e.sw_dirty = false;
	}
	e.young |= !!(step->flags & WALK_YOUNG);
	e.write |= !!(step->flags & WALK_WRITE);
	if (step->flags & WALK_DIRTY)
		walk_mkdirty(m, &e);
	e.hw_dirty |= e.write && e.sw_dirty;
	return e;
}

static bool model_access_same(const struct walk_model *m,
			      const struct walk_entry *a,
			      const struct walk_entry *b)
{
	if (a->young != b->young || a->write != b->write)
		return false;
	if (m->has & WALK_HAS_MERGE)
		return a->hw_dirty == b->hw_dirty && a->sw_dirty == b->sw_dirty;
	return walk_dirty(a) == walk_dirty(b) && a->soft_dirty == b->soft_dirty;
}

static void model_access_flags(struct walk_model *m,
			       const struct walk_step *step)
{
	struct walk_entry want = walk_model_access(m, step);
	unsigned int start = step->idx, end = start + 1, i;
	bool differs = false;

	if (m->entry[start].cont) {
		start = ALIGN_DOWN(start, WALK_BLOCK);
		end = start + WALK_BLOCK;
	}
	for (i = start; i < end; i++)
		differs |= !model_access_same(m, &m->entry[i], &want);
	m->number = differs;
	if (!differs)
		return;

	/* All entries of a block become more permissive, but never writable. */
	if (m->entry[start].cont && m->entry[start].write != want.write) {
		model_unfold(m, start);
		start = step->idx;
		end = start + 1;
	}
	for (i = start; i < end; i++) {
		m->entry[i].young |= want.young;
		m->entry[i].write |= want.write;
		m->entry[i].hw_dirty |= want.hw_dirty;
		m->entry[i].sw_dirty |= want.sw_dirty;
		m->entry[i].soft_dirty |= want.soft_dirty;
	}
	if (step->flags & WALK_FLUSH)
		model_flush(m, start, end);
}

/**
 * walk_model_step() - apply a step to the model
 * @m: the model
 * @step: the step; it is legal
 */
void walk_model_step(struct walk_model *m, const struct walk_step *step)
{
	struct walk_entry *first = &m->entry[step->idx];

	m->flushes = 0;
	m->returns = WALK_RETURNS_NOTHING;

	switch (step->op) {
	case WALK_SET:
		model_set(m, step->idx, step->nr, &step->entry);
		break;
	case WALK_GET_AND_CLEAR:
	case WALK_GET_AND_CLEAR_FULL:
	case WALK_GET_AND_CLEAR_PTES:
		m->returns = WALK_RETURNS_ENTRY;
		fallthrough;
	case WALK_PTE_CLEAR:
	case WALK_CLEAR_FULL:
	case WALK_CLEAR_PTES:
	case WALK_CLEAR_NONPRESENT:
		model_clear(m, step->idx, step->nr);
		break;
	case WALK_MODIFY_PROT:
		m->returns = WALK_RETURNS_ENTRY;
		model_modify_prot(m, step);
		break;
	case WALK_WRPROTECT:
	case WALK_SET_WRPROTECT:
		model_wrprotect(m, step->idx, step->nr);
		break;
	case WALK_TEST_YOUNG:
	case WALK_TEST_YOUNG_PTES:
		m->returns = WALK_RETURNS_NUMBER;
		model_young(m, step, false);
		break;
	case WALK_FLUSH_YOUNG:
	case WALK_FLUSH_YOUNG_PTES:
		m->returns = WALK_RETURNS_NUMBER;
		model_young(m, step, true);
		break;
	case WALK_CLEAR_YOUNG_DIRTY:
		model_clear_young_dirty(m, step);
		break;
	case WALK_ACCESS_FLAGS:
		model_access_flags(m, step);
		/*
		 * Some architectures always return that the entry has changed.
		 */
		if (m->has & WALK_HAS_MERGE || m->number)
			m->returns = WALK_RETURNS_NUMBER;
		break;
	case WALK_GET:
	case WALK_GET_LOCKLESS:
		m->returns = WALK_RETURNS_ENTRY;
		m->ret = walk_model_get(m, step->idx);
		break;
	case WALK_HINT:
		m->returns = WALK_RETURNS_NUMBER;
		m->number = first->cont ? WALK_BLOCK - step->idx % WALK_BLOCK : 1;
		break;
	case WALK_HARDWARE:
		if (step->flags & WALK_YOUNG)
			first->young = true;
		if (step->flags & WALK_DIRTY) {
			first->hw_dirty = true;
			first->soft_dirty |= !!(m->has & WALK_HAS_SOFT_DIRTY);
		}
		break;
	}
}
