// SPDX-License-Identifier: GPL-2.0
/*
 * The fixture and the model of the suites for contiguous PTEs.
 */

#include <linux/slab.h>

#include "contpte.h"

/**
 * contpte_next() - the next index or number of entries worth a try
 * @i: the last one
 *
 * In a small block these are all. With larger blocks and tables, and with
 * KASAN, which makes everything many times slower, they are the places where
 * something can change: near the ends of a block, and its middle.
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
 * @f: the fixture
 * @idx: the first entry of the block
 * @page: the page of the folio that it maps
 * @folded: the entries are contiguous
 * @young: the one that is young, or CONTPTE_NOWHERE
 * @dirty: the one that is dirty, or CONTPTE_NOWHERE
 */
void contpte_fill(struct contpte_fixture *f, int idx, unsigned int page,
		  bool folded, unsigned int young, unsigned int dirty)
{
	unsigned int i;

	for (i = 0; i < CONT_PTES; i++) {
		pte_t pte = contpte_pte(f, page + i);

		if (folded)
			pte = contpte_mkfolded(pte);
		if (i == young)
			pte = pte_mkyoung(pte);
		if (i == dirty)
			pte = contpte_mkhwdirty(pte);
		pgtable_kunit_table_set(f->table, idx + i, pte);
	}
}

/**
 * contpte_reset() - start over with an empty table and an empty record
 * @f: the fixture
 */
void contpte_reset(struct contpte_fixture *f)
{
	pgtable_kunit_table_reset(f->table);
	f->flushes = 0;
	f->tlb->nr = 0;
}

/**
 * contpte_fill_window() - start over with the window full of entries
 * @f: the fixture
 * @base: the first entry of the window
 * @mask: which of its blocks are folded
 * @young: a number that decides which entry of each block is young
 * @dirty: a number that decides which entry of each block is dirty
 *
 * In some of the blocks no entry is young, or none is dirty.
 */
void contpte_fill_window(struct contpte_fixture *f, int base, unsigned int mask,
			 unsigned int young, unsigned int dirty)
{
	unsigned int block;

	contpte_reset(f);
	for (block = 0; block < CONTPTE_BLOCKS; block++)
		contpte_fill(f, base + block * CONT_PTES, block * CONT_PTES,
			     mask & BIT(block),
			     (young + block) % (CONT_PTES + 1),
			     (dirty + 2 * block) % (CONT_PTES + 1));
}

/**
 * contpte_set_none() - set a block of entries that are PROT_NONE
 * @f: the fixture; its table is empty
 *
 * The caller passes an entry with a contiguous bit that leaked from a getter.
 * The entries must not be contiguous. With known issue 22 they are, and the
 * expected image has that bit.
 *
 * Return: whether they are.
 */
bool contpte_set_none(struct contpte_fixture *f)
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
				  contpte_mkcont(want[i]));
	}
	for (i = 0; folds && i < CONT_PTES; i++)
		want[i] = contpte_mkcont(want[i]);
	return folds;
}

/**
 * contpte_model_flush() - expect a TLB invalidation
 * @f: the fixture
 * @idx: the first entry of its range
 * @nr: number of entries of its range
 */
void contpte_model_flush(struct contpte_fixture *f, int idx, int nr)
{
	if (f->flushes < CONTPTE_FLUSHES)
		f->flush[f->flushes] = (struct contpte_flush){ idx, nr };
	f->flushes++;
}

/**
 * contpte_model_convert() - expect that a block is folded or unfolded
 * @f: the fixture
 * @idx: an entry of the block
 * @fold: fold it
 *
 * All entries get the accessed and dirty bits of the block. This function does
 * nothing if the kernel was built without CONFIG_ARM64_CONTPTE.
 */
void contpte_model_convert(struct contpte_fixture *f, int idx, bool fold)
{
	int first = ALIGN_DOWN(idx, CONT_PTES), i;
	pte_t *want = f->table->want + first;
	bool young = false, dirty = false;

	if (!CONTPTE_FOLDS)
		return;
	for (i = 0; i < CONT_PTES; i++) {
		young |= pte_young(want[i]);
		dirty |= pte_dirty(want[i]);
	}
	for (i = 0; i < CONT_PTES; i++) {
		want[i] = fold ? contpte_mkcont(want[i]) :
				 pte_mknoncont(want[i]);
		if (young)
			want[i] = pte_mkyoung(want[i]);
		if (dirty)
			want[i] = pte_mkdirty(want[i]);
	}
	if (pgtable_kunit_convert_flushes())
		contpte_model_flush(f, first, CONT_PTES);
}

/**
 * contpte_model_unfold() - expect that a block is unfolded, if it is folded
 * @f: the fixture
 * @idx: an entry of the block
 */
void contpte_model_unfold(struct contpte_fixture *f, int idx)
{
	if (pte_valid_cont(f->table->want[idx]))
		contpte_model_convert(f, idx, false);
}

/**
 * contpte_model_unfold_partial() - expect that blocks are unfolded, if a range
 *	covers them in part and they are folded
 * @f: the fixture
 * @start: first entry of the range
 * @end: the entry after its last
 */
void contpte_model_unfold_partial(struct contpte_fixture *f, int start,
				  int end)
{
	int first;

	for (first = ALIGN_DOWN(start, CONT_PTES); first < end;
	     first += CONT_PTES) {
		if (first < start || first + CONT_PTES > end)
			contpte_model_unfold(f, max(first, start));
	}
}

/* The number of the first unexpected invalidation, or -1. */
static int flush_differs(struct contpte_fixture *f)
{
	unsigned int i, nr = min3(f->tlb->nr, f->flushes, CONTPTE_FLUSHES);

	for (i = 0; i < nr; i++) {
		int idx = f->flush[i].idx, end = idx + f->flush[i].nr;

		if (f->tlb->range[i].start != contpte_addr(f, idx) ||
		    f->tlb->range[i].end != contpte_addr(f, end))
			return i;
	}
	return f->tlb->nr == f->flushes ? -1 : nr;
}

/**
 * contpte_check() - compare table and TLB invalidations with the model
 * @f: the fixture
 * @fmt: the inputs of the call under test, as for printf()
 *
 * Return: whether they agree.
 */
bool contpte_check(struct contpte_fixture *f, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;
	int differs;
	bool ok;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;

	ok = pgtable_kunit_table_check(f->table, "%pV", &vaf);
	differs = flush_differs(f);
	if (differs >= 0) {
		unsigned int i = min(differs, CONTPTE_FLUSHES - 1);

		KUNIT_FAIL(f->test,
			   "%pV: TLB invalidation %d of %u is %lx-%lx, expected %u, this one %lx-%lx (0: none)",
			   &vaf, differs, f->tlb->nr,
			   differs < f->tlb->nr ? f->tlb->range[i].start : 0,
			   differs < f->tlb->nr ? f->tlb->range[i].end : 0,
			   f->flushes,
			   differs < f->flushes ? contpte_addr(f, f->flush[i].idx) : 0,
			   differs < f->flushes ?
			   contpte_addr(f, f->flush[i].idx + f->flush[i].nr) : 0);
		ok = false;
	}
	va_end(args);
	return ok;
}

/**
 * contpte_fixture_alloc() - make a fixture
 * @test: the test that is to own it
 */
struct contpte_fixture *contpte_fixture_alloc(struct kunit *test)
{
	struct contpte_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->table = pgtable_kunit_table_alloc(test);
	f->vma.vm_mm = f->table->mm;
	f->tlb = pgtable_kunit_tlb_record(test, f->table->mm);
	f->folio = pgtable_kunit_folio_alloc(test,
					     ilog2(2 * CONTPTE_WINDOW));
	return f;
}
