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
 * All there are where a block is small. With larger blocks, those around the
 * places where something can change: the ends of a block and its middle.
 */
unsigned int contpte_next(unsigned int i)
{
	static const unsigned int at[] = {
		0, 1, 2, CONT_PTES / 2 - 1, CONT_PTES / 2, CONT_PTES - 2,
		CONT_PTES - 1,
	};
	unsigned int n;

	if (CONT_PTE_SIZE <= SZ_64K)
		return i + 1;
	for (n = 0; n < ARRAY_SIZE(at); n++) {
		if (at[n] > i % CONT_PTES)
			return ALIGN_DOWN(i, CONT_PTES) + at[n];
	}
	return ALIGN_DOWN(i, CONT_PTES) + CONT_PTES;
}

/**
 * contpte_fill() - fill a block with entries, exactly as they are said to be
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
			pte = contpte_mkcont(pte);
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
	bitmap_zero(f->converted, CONTPTE_TABLE_BLOCKS);
	f->converts = 0;
	f->tlb->nr = 0;
}

/**
 * contpte_model_convert() - say that a block is to be folded or unfolded
 * @f: the fixture
 * @idx: an entry of the block
 * @fold: fold it
 *
 * All entries get the accessed and dirty bits that any of them has.
 */
void contpte_model_convert(struct contpte_fixture *f, int idx, bool fold)
{
	int first = ALIGN_DOWN(idx, CONT_PTES), i;
	pte_t *want = f->table->want + first;
	bool young = false, dirty = false;

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
	__set_bit(first / CONT_PTES, f->converted);
	f->converts++;
}

/**
 * contpte_model_unfold() - say that a block is to be unfolded, if it is folded
 * @f: the fixture
 * @idx: an entry of the block
 */
void contpte_model_unfold(struct contpte_fixture *f, int idx)
{
	if (pte_valid_cont(f->table->want[idx]))
		contpte_model_convert(f, idx, false);
}

/**
 * contpte_model_unfold_partial() - the same for what a range covers in part
 * @f: the fixture
 * @start: first entry of the range
 * @end: the entry behind its last
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

/* Are the invalidations one for each conversion, of that block only? */
static bool flushes_ok(struct contpte_fixture *f)
{
	unsigned int i;

	if (!pgtable_kunit_convert_flushes())
		return !f->tlb->nr;
	if (f->tlb->nr != f->converts)
		return false;
	for (i = 0; i < min(f->tlb->nr, PGTABLE_KUNIT_FLUSHES); i++) {
		unsigned long start = f->tlb->range[i].start;
		unsigned long block = (start - f->table->addr) / CONT_PTE_SIZE;

		if (start % CONT_PTE_SIZE ||
		    f->tlb->range[i].end - start != CONT_PTE_SIZE ||
		    block >= CONTPTE_TABLE_BLOCKS ||
		    !test_bit(block, f->converted))
			return false;
	}
	return true;
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
	bool ok;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;

	ok = pgtable_kunit_table_check(f->table, "%pV", &vaf);
	if (!flushes_ok(f)) {
		KUNIT_FAIL(f->test,
			   "%pV: %u TLB invalidations, the first of %lx-%lx, expected %u, of blocks %*pbl from %lx on",
			   &vaf, f->tlb->nr, f->tlb->range[0].start,
			   f->tlb->range[0].end,
			   pgtable_kunit_convert_flushes() ? f->converts : 0,
			   (int)CONTPTE_TABLE_BLOCKS, f->converted,
			   f->table->addr);
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
	f->tlb = pgtable_kunit_tlb_record(test, f->table->mm);
	f->folio = pgtable_kunit_folio_alloc(test,
					     ilog2(2 * CONTPTE_WINDOW));
	return f;
}
