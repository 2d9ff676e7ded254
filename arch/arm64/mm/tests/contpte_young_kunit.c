// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: ageing and cleaning.
 *
 * The functions that clear the accessed or the dirty bit work on whole folded
 * blocks, and do not unfold them. The core tracks accessed and dirty per folio,
 * and a block lies within one folio. If some entries of a block kept the bit,
 * the block would never get old, since readers gather the bits of all entries.
 *
 * Each case runs the real function on real entries, for all ranges in a window
 * of four blocks, and for each combination of folded blocks. It compares the
 * whole table, the returned value and the TLB invalidations with a model. Not
 * covered: the secondary MMUs of the *_notify forms, and PMDs.
 *
 * Begin with contpte_fold and contpte.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

/* The functions that clear accessed or dirty bits. */
static bool young_wanted(const struct pte_case *pc)
{
	return pc->op->does == PTE_OP_AGES;
}

static PGTABLE_KUNIT_GEN_PARAMS(young_op)
{
	return pte_case_next(&pte_arch_backend, prev, young_wanted, desc);
}

static struct pte_case young_case(struct kunit *test)
{
	struct pte_case pc = pte_case_get(&pte_arch_backend, test->param_value);

	if (pc.op->missing)
		kunit_skip(test, "this kernel has no %s", pc.desc);
	return pc;
}

/*
 * If a range starts or ends in a folded block, it is widened to the whole
 * block:
 *
 *	entries	|cccccccc|nnnnnnnn|cccccccc|nnnnnnnn|
 *	range	       <------------->
 *	widened  <-------------------------->
 *
 * All entries in the widened range lose the bits, and no entry outside of it
 * does. The page, the contiguous bit and the write bit stay. The value returned
 * says whether any entry was young. If an entry was young, a function that
 * flushes invalidates the widened range, once. A second call finds no entry
 * young. The case tries every range, and every combination of folded blocks.
 */
static void young_op_matches_model(struct kunit *test)
{
	const struct pte_case pc = young_case(test);
	unsigned int start, end, mask, ranges = 0, failed = 0;
	struct pte_ctx *f = test->priv;
	bool again;

	for (mask = 0; mask < BIT(CONTPTE_BLOCKS); mask++) {
		int base = mask & 1 ? 0 : PTRS_PER_PTE - CONTPTE_WINDOW;

		for (start = 0; start < CONTPTE_WINDOW; start = contpte_next(start)) {
			for (end = start + 1; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
				if (!pc.op->takes_range && end > start + 1)
					break;
				contpte_fill_window(f, base, mask, start + mask,
						    end);
				ranges++;
				again = false;
				if (contpte_step(f, pc.id, start, end - start,
						 pc.flags)) {
					again = true;
					pte_op_call(f, pc.id, base + start,
						    end - start, pc.flags,
						    __pte(0));
					if (!f->number && !f->tlb->nr)
						continue;
				}
				KUNIT_FAIL(test, "%s%s of [%u, %u), folded blocks %#x",
					   again ? "again, " : "", pc.desc,
					   start, end, mask);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/*
 * In a block of PROT_NONE entries, the case replaces the first entries by
 * entries that are not present. Then it calls a function for the other entries.
 * The function must not change the entries that are not present, because in
 * them the accessed bit is a part of the type. This bit is set in migration
 * entries and markers.
 *
 *	entries	|ssssssssNNNNNNNN|	s: not present, N: PROT_NONE
 *	range	         <------>
 *
 * One entry, half of the block, and all entries except one are replaced.
 */
static void young_op_beside_nonpresent(struct kunit *test)
{
	static const unsigned int replaced[] = {
		1, CONT_PTES / 2, CONT_PTES - 1,
	};
	const unsigned int type = BIT(MAX_SWAPFILES_SHIFT) - 1;
	const struct pte_case pc = young_case(test);
	struct pte_ctx *f = test->priv;
	unsigned int n, i;

	contpte_skip_unless_folds(test);

	for (n = 0; n < ARRAY_SIZE(replaced); n++) {
		unsigned int start = replaced[n];
		unsigned int end = pc.op->takes_range ? CONT_PTES : start + 1;
		pte_t *want = f->table->want;
		bool folds, wide;

		pte_ctx_reset(f);
		folds = contpte_set_none(f);
		for (i = 0; i < CONT_PTES; i++) {
			pte_t pte = pte_mkdirty(pte_mkyoung(want[i]));

			if (i < start)
				pte = swp_entry_to_pte(swp_entry(type, i + 1));
			pgtable_kunit_table_set(f->table, i, pte);
		}
		pte_op_call(f, pc.id, start, end - start, pc.flags, __pte(0));

		/* All functions except one check only the contiguous bit. */
		wide = folds && pc.id != PTE_OP_FLUSH_YOUNG;
		for (i = wide ? 0 : start; i < (wide ? CONT_PTES : end); i++) {
			if (!pc.flags || pc.flags & PTE_STEP_YOUNG)
				want[i] = pte_mkold(want[i]);
			if (pc.flags & PTE_STEP_DIRTY)
				want[i] = pte_mkclean(want[i]);
		}
		if (pc.id == PTE_OP_FLUSH_YOUNG || pc.id == PTE_OP_FLUSH_YOUNG_PTES)
			contpte_model_flush(f, wide ? 0 : start,
					    wide ? CONT_PTES : end - start);
		if (folds)
			pgtable_kunit_known_issue(test, 22,
						  "PROT_NONE entries are contiguous%s",
						  wide ? ", and entries next to them change" : "");
		else
			pgtable_kunit_stale_issue(test, 22);
		contpte_check(f, "%s of [%u, %u), %u are not present", pc.desc,
			      start, end, start);
		KUNIT_EXPECT_EQ_MSG(test, f->number, !pc.flags, "%s of [%u, %u)",
				    pc.desc, start, end);
	}
}

static struct kunit_case contpte_young_cases[] = {
	KUNIT_CASE_PARAM_ATTR(young_op_matches_model, young_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM(young_op_beside_nonpresent, young_op_gen_params),
	{}
};

static struct kunit_suite contpte_young_suite = {
	.name = "contpte_young",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_young_cases,
};

kunit_test_suite(contpte_young_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: ageing and cleaning");
MODULE_LICENSE("GPL");
