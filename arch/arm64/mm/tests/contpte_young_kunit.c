// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: ageing and cleaning.
 *
 * The functions that clear the accessed or the dirty bit work on whole folded
 * blocks, and do not unfold them: the core tracks age and dirtiness per folio,
 * and a block lies within one folio. If some entries of a block kept the bit,
 * the block would never get old, since readers gather the bits of all entries.
 *
 * Each case runs the real function on real entries for all ranges in a window
 * of four blocks, folded in all ways, and compares the whole table, the value
 * returned and the TLB invalidations with a model. Not covered: the secondary
 * MMUs of the *_notify forms, and PMDs.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

/* A function that clears accessed or dirty bits. */
struct young_op {
	const char *desc;
	/* exactly one of the three is set */
	bool (*single)(struct vm_area_struct *vma, unsigned long addr,
		       pte_t *ptep);
	bool (*range)(struct vm_area_struct *vma, unsigned long addr,
		      pte_t *ptep, unsigned int nr);
	cydp_t cydp;
	bool flush;		/* it invalidates entries that were young */
};

static bool op_test_and_clear(struct vm_area_struct *vma, unsigned long addr,
			      pte_t *ptep)
{
	return ptep_test_and_clear_young(vma, addr, ptep);
}

static bool op_clear_flush(struct vm_area_struct *vma, unsigned long addr,
			   pte_t *ptep)
{
	return ptep_clear_flush_young(vma, addr, ptep);
}

static const struct young_op young_ops[] = {
	{ .desc = "ptep_test_and_clear_young", .single = op_test_and_clear },
	{ .desc = "ptep_clear_flush_young", .single = op_clear_flush,
	  .flush = true },
	{ .desc = "test_and_clear_young_ptes",
	  .range = pgtable_kunit_test_and_clear_young },
	{ .desc = "clear_flush_young_ptes",
	  .range = pgtable_kunit_clear_flush_young, .flush = true },
	{ .desc = "clear_young_dirty_ptes, young", .cydp = CYDP_CLEAR_YOUNG },
	{ .desc = "clear_young_dirty_ptes, dirty", .cydp = CYDP_CLEAR_DIRTY },
	{ .desc = "clear_young_dirty_ptes, young and dirty",
	  .cydp = CYDP_CLEAR_YOUNG | CYDP_CLEAR_DIRTY },
};

KUNIT_ARRAY_PARAM_DESC(young_op, young_ops, desc);

static bool op_run(struct contpte_fixture *f, const struct young_op *op,
		   int start, int end)
{
	unsigned long addr = contpte_addr(f, start);
	pte_t *ptep = contpte_ptep(f, start);

	if (op->single)
		return op->single(&f->vma, addr, ptep);
	if (op->range)
		return op->range(&f->vma, addr, ptep, end - start);
	clear_young_dirty_ptes(&f->vma, addr, ptep, end - start, op->cydp);
	return false;
}

static bool op_model(struct contpte_fixture *f, const struct young_op *op,
		     int start, int end)
{
	pte_t *want = f->table->want;
	bool young = false;
	int i;

	if (pte_valid_cont(want[start]))
		start = ALIGN_DOWN(start, CONT_PTES);
	if (pte_valid_cont(want[end - 1]))
		end = ALIGN(end, CONT_PTES);

	for (i = start; i < end; i++) {
		young |= pte_young(want[i]);
		if (!op->cydp || op->cydp & CYDP_CLEAR_YOUNG)
			want[i] = pte_mkold(want[i]);
		if (op->cydp & CYDP_CLEAR_DIRTY)
			want[i] = pte_mkclean(want[i]);
	}
	if (op->flush && young)
		contpte_model_flush(f, start, end - start);
	return young && !op->cydp;
}

/*
 * If a range starts or ends in a folded block, it is widened to the whole block
 * [contpte 121-125, 141-146, 230-232]:
 *
 *	entries	|cccccccc|nnnnnnnn|cccccccc|nnnnnnnn|
 *	range	       <------------->
 *	widened  <-------------------------->
 *
 * All entries in the widened range lose the bits, and no entry outside of it
 * does. The page, the contiguous bit and the write bit stay. The value returned
 * says whether any entry was young. If one was, the form that flushes
 * invalidates the widened range, once. A second call finds no entry young. The
 * case tries every range, and every way in which four blocks may be folded.
 */
static void young_op_matches_model(struct kunit *test)
{
	const struct young_op *op = test->param_value;
	unsigned int start, end, mask, ranges = 0, failed = 0;
	struct contpte_fixture *f = test->priv;

	if (op->range && !PGTABLE_KUNIT_YOUNG_RANGES)
		kunit_skip(test, "this kernel has no %s", op->desc);

	for (mask = 0; mask < BIT(CONTPTE_BLOCKS); mask++) {
		int base = mask & 1 ? 0 : PTRS_PER_PTE - CONTPTE_WINDOW;

		for (start = 0; start < CONTPTE_WINDOW; start = contpte_next(start)) {
			for (end = start + 1; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
				bool got, want, again;

				if (op->single && end > start + 1)
					break;
				contpte_fill_window(f, base, mask, start + mask,
						    end);
				got = op_run(f, op, base + start, base + end);
				again = op_run(f, op, base + start, base + end);
				want = op_model(f, op, base + start, base + end);

				ranges++;
				if (contpte_check(f, "%s of [%u, %u), folded blocks %#x",
						  op->desc, start, end, mask) &&
				    got == want && !again)
					continue;
				KUNIT_EXPECT_EQ_MSG(test, got, want,
						    "%s of [%u, %u), folded blocks %#x",
						    op->desc, start, end, mask);
				KUNIT_EXPECT_FALSE_MSG(test, again,
						       "again, %s of [%u, %u), folded blocks %#x",
						       op->desc, start, end, mask);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/*
 * The first entries of a block of PROT_NONE entries are replaced by entries
 * that are not present. Then a function is called for the others. It must not
 * change the entries that are not present [contpte 75]: in them, the accessed
 * bit is a part of the type. That bit is set in migration entries and markers.
 *
 *	entries	|ssssssssNNNNNNNN|	s: not present, N: PROT_NONE
 *	range	         <------>
 *
 * One entry, half of the block, and all but one are replaced.
 */
static void young_op_beside_nonpresent(struct kunit *test)
{
	static const unsigned int replaced[] = {
		1, CONT_PTES / 2, CONT_PTES - 1,
	};
	const unsigned int type = BIT(MAX_SWAPFILES_SHIFT) - 1;
	const struct young_op *op = test->param_value;
	struct contpte_fixture *f = test->priv;
	unsigned int n, i;

	contpte_skip_unless_folds(test);
	if (op->range && !PGTABLE_KUNIT_YOUNG_RANGES)
		kunit_skip(test, "this kernel has no %s", op->desc);

	for (n = 0; n < ARRAY_SIZE(replaced); n++) {
		unsigned int start = replaced[n];
		unsigned int end = op->single ? start + 1 : CONT_PTES;
		bool folds, wide, got, want;

		contpte_reset(f);
		folds = contpte_set_none(f);
		for (i = 0; i < CONT_PTES; i++) {
			pte_t pte = pte_mkdirty(pte_mkyoung(f->table->want[i]));

			if (i < start)
				pte = swp_entry_to_pte(swp_entry(type, i + 1));
			pgtable_kunit_table_set(f->table, i, pte);
		}
		got = op_run(f, op, start, end);

		/* All but one of the functions look at the contiguous bit only. */
		wide = folds && op->single != op_clear_flush;
		want = op_model(f, op, wide ? 0 : start, wide ? CONT_PTES : end);
		if (folds)
			pgtable_kunit_known_issue(test, 22,
						  "PROT_NONE entries are contiguous%s",
						  wide ? ", and those beside them change" : "");
		else
			pgtable_kunit_stale_issue(test, 22);
		contpte_check(f, "%s of [%u, %u), %u are not present", op->desc,
			      start, end, start);
		KUNIT_EXPECT_EQ_MSG(test, got, want, "%s of [%u, %u)",
				    op->desc, start, end);
	}
}

static struct kunit_suite contpte_young_suite;

static int contpte_young_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_young_suite);

	if (err)
		return err;
	test->priv = contpte_fixture_alloc(test);
	return 0;
}

static struct kunit_case contpte_young_cases[] = {
	KUNIT_CASE_PARAM_ATTR(young_op_matches_model, young_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM(young_op_beside_nonpresent, young_op_gen_params),
	{}
};

static struct kunit_suite contpte_young_suite = {
	.name = "contpte_young",
	.init = contpte_young_init,
	.test_cases = contpte_young_cases,
};

kunit_test_suite(contpte_young_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: ageing and cleaning");
MODULE_LICENSE("GPL");
