// SPDX-License-Identifier: GPL-2.0
/*
 * The fixture and the model of the suites for contiguous PTEs.
 */

#include <linux/slab.h>

#include "contpte.h"

/**
 * contpte_next() - the next index or number of entries to test
 * @i: the last one
 *
 * In a small block, all numbers are tested. With larger blocks and tables, and
 * with KASAN (which is many times slower), only the places where something can
 * change are tested: near the ends of a block, and in its middle.
 */
unsigned int contpte_next(unsigned int i)
{
	static const unsigned int at[] = {
		0, 1, CONT_PTES / 2, CONT_PTES - 1,
	};
	bool small = CONT_PTE_SIZE <= SZ_64K;
	unsigned int n;

	if (small && !IS_ENABLED(CONFIG_KASAN))
		return i + 1;
	for (n = 0; n < ARRAY_SIZE(at); n++) {
		if (at[n] > i % CONT_PTES)
			return ALIGN_DOWN(i, CONT_PTES) + at[n];
	}
	return ALIGN_DOWN(i, CONT_PTES) + CONT_PTES;
}

/**
 * contpte_fill() - fill a block with entries that have exactly these bits
 * @f: the context
 * @idx: the first entry of the block, counted from the start of the window
 * @page: the page of the folio that it maps
 * @folded: the entries are contiguous
 * @young: the young entry, or CONTPTE_NOWHERE
 * @dirty: the dirty entry, or CONTPTE_NOWHERE
 */
void contpte_fill(struct pte_ctx *f, int idx, unsigned int page, bool folded,
		  unsigned int young, unsigned int dirty)
{
	struct pte_model_entry e = contpte_entry(page);
	struct pte_model_entry *entry = f->model.entry + idx;
	pte_t pte;
	unsigned int i;

	e.cont = folded && CONTPTE_FOLDS;
	pte = f->format->encode(f, &e);
	for (i = 0; i < CONT_PTES; i++) {
		entry[i] = e;
		entry[i].page += i;
		if (i == young || i == dirty) {
			entry[i].young = i == young;
			entry[i].hw_dirty = i == dirty;
			pte_ctx_fill(f, idx + i, &entry[i]);
		} else {
			pgtable_kunit_table_set(f->table, f->base + idx + i,
						pte_advance_pfn(pte, i));
		}
	}
}

/**
 * contpte_empty_window() - start over with an empty window
 * @f: the context; the rest of its table is empty
 *
 * Only the entries of the window are cleared: the rest must not change.
 */
void contpte_empty_window(struct pte_ctx *f)
{
	unsigned int i;

	for (i = f->base; i < f->base + CONTPTE_WINDOW; i++) {
		pte_t *ptep = contpte_ptep(f, i);

		if (!pte_none(READ_ONCE(*ptep)))
			pgtable_kunit_raw_clear(f->table->mm,
						contpte_addr(f, i), ptep);
	}
	memset(f->table->want + f->base, 0, CONTPTE_WINDOW * sizeof(pte_t));
	memset(f->model.entry, 0, sizeof(f->model.entry));
	cond_resched();
}

/**
 * contpte_fill_window() - start over with the window full of entries
 * @f: the context
 * @base: the first entry of the window
 * @mask: which of its blocks are folded
 * @young: a number that decides which entry of each block is young
 * @dirty: a number that decides which entry of each block is dirty
 *
 * In some of the blocks no entry is young, or none is dirty. If the window
 * keeps its place, the function clears only the entries of the window: the rest
 * must not change.
 */
void contpte_fill_window(struct pte_ctx *f, int base, unsigned int mask,
			 unsigned int young, unsigned int dirty)
{
	unsigned int block;

	if (base != f->base) {
		pte_ctx_reset(f);
		f->base = base;
	}
	/* Without this check the kernel lets a call overwrite an entry. */
	if (IS_ENABLED(CONFIG_PAGE_TABLE_CHECK))
		contpte_empty_window(f);
	cond_resched();
	for (block = 0; block < CONTPTE_BLOCKS; block++)
		contpte_fill(f, block * CONT_PTES, block * CONT_PTES,
			     mask & BIT(block),
			     (young + block) % (CONT_PTES + 1),
			     (dirty + 2 * block) % (CONT_PTES + 1));
}

/**
 * contpte_kernel_mm() - make the table a part of a mapping of the kernel
 * @f: the context; its table is empty
 * @mm: the mm
 *
 * Entries are accounted to the mm in which they are set and cleared.
 */
void contpte_kernel_mm(struct pte_ctx *f, struct mm_struct *mm)
{
	f->table->mm = mm;
	f->model.folds = false;
	f->model.kernel = true;
}

/**
 * contpte_set_none() - set a block of entries that are PROT_NONE
 * @f: the context; its table is empty
 *
 * The caller passes an entry with a contiguous bit that leaked from a getter.
 * The entries must not be contiguous. With known issue 22 the kernel makes them
 * contiguous by pte_mkcont(), which also makes them valid in 6.12. The expected
 * image is then the image with these entries.
 *
 * Return: whether the entries are contiguous.
 */
bool contpte_set_none(struct pte_ctx *f)
{
	pte_t none = pte_modify(contpte_pte(f, 0), vm_get_page_prot(VM_NONE));
	pte_t *want = f->table->want;
	bool folds = true;
	unsigned int i;

	set_ptes(f->table->mm, contpte_addr(f, 0), contpte_ptep(f, 0),
		 contpte_mkcont(none), CONT_PTES);
	for (i = 0; i < CONT_PTES; i++) {
		want[i] = pte_advance_pfn(none, i);
		folds &= pte_same(pgtable_kunit_raw_get(contpte_ptep(f, i)),
				  pte_mkcont(want[i]));
	}
	for (i = 0; folds && i < CONT_PTES; i++)
		want[i] = pte_mkcont(want[i]);
	return folds;
}

/**
 * contpte_model_flush() - expect a TLB invalidation
 * @f: the context
 * @idx: the first entry of its range
 * @nr: number of entries of its range
 */
void contpte_model_flush(struct pte_ctx *f, int idx, int nr)
{
	struct pte_model *m = &f->model;

	if (WARN_ON_ONCE(m->flushes == MODEL_FLUSHES))
		return;
	m->flush[m->flushes].start = idx;
	m->flush[m->flushes].end = idx + nr;
	m->flushes++;
}

/**
 * contpte_want_folded() - expect that a block is folded
 * @f: the context
 * @first: the first entry of the block; no entry is young or dirty
 *
 * For entries with bits that the model does not know. This function does
 * nothing if the kernel was built without CONFIG_ARM64_CONTPTE.
 */
void contpte_want_folded(struct pte_ctx *f, int first)
{
	unsigned int i;

	for (i = first; i < first + CONT_PTES; i++)
		f->table->want[i] = contpte_mkfolded(f->table->want[i]);
	if (CONTPTE_FOLDS && pgtable_kunit_convert_flushes())
		contpte_model_flush(f, first, CONT_PTES);
}

/**
 * contpte_check() - compare the table and the TLB invalidations with the model
 * @f: the context
 * @fmt: the inputs of the call under test, as for printf()
 *
 * Return: whether they agree. The next check compares only later invalidations.
 */
bool contpte_check(struct pte_ctx *f, const char *fmt, ...)
{
	char desc[128];
	va_list args;
	bool ok;

	va_start(args, fmt);
	vsnprintf(desc, sizeof(desc), fmt, args);
	va_end(args);
	ok = pgtable_kunit_table_check(f->table, "%s", desc);
	ok &= pte_ctx_flushes_ok(f, true, desc);
	f->tlb->nr = 0;
	f->model.flushes = 0;
	return ok;
}

/**
 * contpte_fixture_alloc() - make a context
 * @test: the test that owns it
 */
struct pte_ctx *contpte_fixture_alloc(struct kunit *test)
{
	struct pte_ctx *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	contpte_ctx_init(f, test);
	return f;
}

/**
 * contpte_init() - the init of a suite: a window in a table in test->priv
 * @test: the test
 *
 * Return: 0, or an error number.
 */
int contpte_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (!err)
		test->priv = contpte_fixture_alloc(test);
	return err;
}
