// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: the order of writes and TLB invalidations.
 *
 * A table that is right when a function returns may have been wrong in between,
 * while other CPUs walk it. If a block is folded without the invalidation
 * between clear and set, a TLB has two translations of one address. A CPU
 * without BBM level 3 may then abort, or use a mix of both.
 *
 * The code under test is the tree's own, asm/pgtable.h and contpte.c, compiled a
 * second time so that each single access to an entry is recorded
 * (contpte_recorded.c). After each access a checker examines the translations
 * that hardware could have cached (contpte_bbm.c has the rules). The
 * invalidations must have exactly the necessary number, range and kind. The
 * number of accesses must not grow with the square of the block size. The cases
 * pretend that the CPU has BBM level 3, and then that it does not have it, so
 * both are tested on any machine.
 *
 * Not covered: the instructions of an invalidation, the barriers between CPUs,
 * bits that hardware sets meanwhile (contpte_hw).
 *
 * Begin with contpte_fold. Read contpte_bbm before this suite.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_order'
 */

#include <kunit/test.h>

#include "contpte_order.h"

static PGTABLE_KUNIT_GEN_PARAMS(contpte_order_op)
{
	return pte_case_next(&contpte_recorded_backend, prev,
			     contpte_order_wanted, desc);
}

/*
 * Fill the window and make a call. If the call makes entries old, they are
 * young and dirty before it.
 */
static bool order_check(struct contpte_order *o, const struct pte_case *pc,
			const struct contpte_order_call *call)
{
	struct pte_step step;

	contpte_order_bbml3(o, call->bbml3);
	contpte_order_fill(o, call->mask,
			   pc->op->does == PTE_OP_AGES && pc->flags);
	step = contpte_order_step(o, pc, call);
	if (pte_op_run(o->f, &step, true))
		return true;
	kunit_err(o->f->test, "%s, folded blocks %#x\n", pc->desc, call->mask);
	return false;
}

/*
 * Every function follows break-before-make at every step. It invalidates each
 * block that it unfolds or folds once: all pages of the block, on all CPUs. It
 * waits for the end of the invalidation. It invalidates nothing else. With BBM
 * level 3 it invalidates nothing at all. Each entry is written at most once. If
 * the block is converted, each entry may be written two more times. A walk that
 * reads entries one by one makes a constant number of reads for each entry.
 * Afterwards the table matches a model, and the function returns the first
 * entry. This check is necessary because a function that does nothing breaks no
 * rule.
 *
 * The ranges start and end at the edges and in the middle of four blocks. None,
 * the even blocks, the odd blocks, or all blocks are folded. The function must
 * not convert blocks that are not folded, and must not confuse the two ends.
 */
static void op_order(struct kunit *test)
{
	const struct pte_case pc = pte_case_get(&contpte_recorded_backend,
						test->param_value);
	struct contpte_order_call call = { .single = !pc.op->takes_range };
	unsigned int calls = 0, failed = 0;

	while (contpte_order_next(&call)) {
		calls++;
		if (!order_check(test->priv, &pc, &call) &&
		    ++failed == PGTABLE_KUNIT_ENOUGH)
			return;
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/*
 * set_ptes() of new entries in empty places reads and invalidates nothing, and
 * writes each entry once. Meanwhile hardware may see a block that is contiguous
 * in part, but never two different translations of one page. In the end a block
 * is contiguous if the range covers it and its pages are aligned, and no other
 * block is contiguous.
 */
static void set_ptes_of_new_entries(struct kunit *test)
{
	struct contpte_order_call call = {};
	struct contpte_order *o = test->priv;
	unsigned int calls = 0, folds = 0;

	while (contpte_order_next(&call)) {
		/*
		 * In this case the first two masks are used as offsets of the
		 * pages, since there are no blocks yet.
		 */
		int nr = call.end - call.start, off = !!call.mask, i;

		if (nr == 1 || call.mask > CONTPTE_ORDER_ALL / 3)
			continue;
		contpte_order_bbml3(o, call.bbml3);
		pte_ctx_reset(o->f);
		if (!contpte_set(o->f, call.start, nr,
				 contpte_entry(call.start + off), 0) ||
		    !contpte_order_accesses(o, 0, nr, true, "set_ptes"))
			return;
		for (i = 0; i < CONTPTE_WINDOW; i += CONT_PTES)
			folds += o->f->model.entry[i].cont;
		calls++;
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
	PGTABLE_KUNIT_DID(test, folds, "contiguous blocks");
}

/*
 * The entries of a block are set one after the other, and the last call folds
 * the block. Before the last call nothing is invalidated. The last call clears
 * all entries, invalidates the block once, and sets all entries, in this order.
 * With BBM level 3 there is no invalidation, but all entries are still cleared
 * first, since the first entry gets the bits of the last entry.
 *
 *	|nnnnnnnn|	|--------|  flush  |cccccccc|
 */
static void set_pte_at_folds(struct kunit *test)
{
	struct contpte_order *o = test->priv;
	unsigned int folds = 0;
	int i, side;

	for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
		contpte_order_bbml3(o, side);
		pte_ctx_reset(o->f);
		for (i = 0; i < CONTPTE_WINDOW; i++) {
			int first = ALIGN_DOWN(i, CONT_PTES);
			bool last = i == first + CONT_PTES - 1;

			if (!contpte_set(o->f, i, 1, contpte_entry(i), 0) ||
			    !contpte_order_accesses(o, 1 + last * CONT_PTES,
						    1 + last * 2 * CONT_PTES,
						    true, "set_pte_at"))
				return;
			KUNIT_EXPECT_EQ(test, o->f->model.converts, last);
			if (last && !contpte_order_converts(o, contpte_order_first_write(o),
							    first, true)) {
				KUNIT_FAIL(test, "entry %d: not cleared, invalidated, set", i);
				return;
			}
			folds += last;
		}
	}
	PGTABLE_KUNIT_DID(test, folds, "folds");
}

/*
 * The case calls each function that changes one entry of a folded block, for
 * each entry. The function first clears, invalidates and sets all entries,
 * which unfolds the block, and then changes the entry.
 *
 *	|cccccccc|	|--------|  flush  |nnnnnnnn|	|nnn-nnnn|
 */
static void single_entry_unfolds(struct kunit *test)
{
	struct contpte_order_call call = { .mask = CONTPTE_ORDER_ALL };
	struct contpte_order *o = test->priv;
	char desc[KUNIT_PARAM_DESC_SIZE];
	unsigned int unfolds = 0;
	const void *param = NULL;

	while ((param = pte_case_next(&contpte_recorded_backend, param,
				      contpte_order_wanted, desc))) {
		const struct pte_case pc = pte_case_get(&contpte_recorded_backend,
							param);
		int i, side;

		for (i = CONT_PTES; i < 2 * CONT_PTES; i = contpte_next(i)) {
			for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
				unsigned int at;

				call.start = i;
				call.end = i + 1;
				call.bbml3 = side;
				if (!order_check(o, &pc, &call))
					return;
				if (!o->f->model.converts)
					continue;
				at = contpte_order_converts(o, 0, CONT_PTES, false);
				if (!at || at >= o->rec->nr) {
					KUNIT_FAIL(test,
						   "%s of entry %d: not cleared, flushed, set, changed",
						   pc.desc, i);
					return;
				}
				unfolds++;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, unfolds, "unfolds");
}

/*
 * A function makes entries old and invalidates them. If an entry was young, one
 * invalidation covers the range and the folded blocks at its ends. The function
 * does not wait for the end of the invalidation. If no entry was young, there
 * is no invalidation. Checking whether entries are young never invalidates. The
 * young entry is at either end of the range, next to it, or at either end of
 * the expanded range. After the call this entry is old if it is inside the
 * expanded range, and otherwise still young.
 */
static void young_range(struct kunit *test)
{
	unsigned int failed = 0, calls = 0;
	struct contpte_order *o = test->priv;
	char desc[KUNIT_PARAM_DESC_SIZE];
	const void *param = NULL;

	while ((param = pte_case_next(&contpte_recorded_backend, param,
				      contpte_order_wanted, desc))) {
		const struct pte_case pc = pte_case_get(&contpte_recorded_backend,
							param);
		struct contpte_order_call call = { .single = !pc.op->takes_range };

		if (pc.op->does != PTE_OP_AGES || pc.flags)
			continue;
		while (contpte_order_next(&call)) {
			int young[] = {
				call.start, call.end - 1, call.start - 1,
				call.end, ALIGN_DOWN(call.start, CONT_PTES),
				ALIGN(call.end, CONT_PTES) - 1,
			};
			unsigned int n;

			for (n = 0; n < ARRAY_SIZE(young); n++) {
				struct pte_model_entry e;
				struct pte_step step;

				if (young[n] < 0 || young[n] >= CONTPTE_WINDOW)
					continue;
				contpte_order_bbml3(o, call.bbml3);
				contpte_order_fill(o, call.mask, false);
				e = o->f->model.entry[young[n]];
				e.young = true;
				pte_ctx_fill(o->f, young[n], &e);
				step = contpte_order_step(o, &pc, &call);
				calls++;
				if (pte_op_run(o->f, &step, true))
					continue;
				kunit_err(test, "folded blocks %#x, entry %d is young\n",
					  call.mask, young[n]);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/* A call of ptep_set_access_flags(). */
static const struct order_access {
	const char *desc;
	bool folded;
	bool was_write;		/* the entries were writable */
	bool write;		/* the new entry is writable */
	bool young;
	bool dirty;
} order_access[] = {
	{ "nothing new", true, true, true },
	{ "young", true, true, true, true },
	{ "dirty", true, true, true, true, true },
	{ "young, read-only", true, false, false, true },
	{ "writable", true, false, true, true, true },
	{ "not folded, nothing new", false, true, true },
	{ "not folded, young", false, true, true, true },
	{ "not folded, dirty", false, true, true, true, true },
	{ "not folded, writable", false, false, true, true, true },
};

KUNIT_ARRAY_PARAM_DESC(order_access, order_access, desc);

static bool access_check(struct contpte_order *o,
			 const struct order_access *access, int at, bool flush)
{
	const struct pte_step step = {
		.op = PTE_OP_ACCESS_FLAGS, .idx = at, .nr = 1,
		.flags = PTE_STEP_GIVEN | (flush ? PTE_STEP_FLUSH : 0),
		.entry = {
			.kind = MODEL_VALID, .page = at, .write = access->write,
			.young = access->young, .sw_dirty = access->dirty,
			.hw_dirty = access->dirty && access->write,
		},
	};
	struct pgtable_kunit_record *rec = o->rec;
	const struct pte_model *m = &o->f->model;
	unsigned int writes;
	int i;

	pte_ctx_reset(o->f);
	for (i = 0; i < CONTPTE_WINDOW; i++) {
		struct pte_model_entry e = contpte_entry(i);

		e.write = access->was_write;
		e.cont = access->folded;
		pte_ctx_fill(o->f, i, &e);
	}
	if (!pte_op_run(o->f, &step, true))
		return false;
	writes = 2 * CONT_PTES * m->converts + m->end - m->start;
	KUNIT_EXPECT_EQ(o->f->test, rec->writes, writes);
	/*
	 * The call must end with the invalidation that the caller asked for.
	 */
	if (o->f->number && flush)
		KUNIT_EXPECT_EQ(o->f->test, rec->step[rec->nr - 1].kind,
				PGTABLE_KUNIT_FLUSH);
	return true;
}

/*
 * A fault makes entries young, dirty or writable. In a folded block one call
 * makes all entries young or dirty. If the caller wants an invalidation, one
 * invalidation of the block follows the last write. If an entry becomes
 * writable, no other entry becomes writable: the block is unfolded first, and
 * then only the page is invalidated. If no flag is new, nothing is written. On
 * newer kernels the invalidation after a fault is only for the local CPU. The
 * invalidation by an unfold must be for all CPUs.
 */
static void set_access_flags_flushes(struct kunit *test)
{
	const struct order_access *access = test->param_value;
	struct contpte_order *o = test->priv;
	unsigned int changed = 0;
	int i, flush, side;

	for (i = 0; i < 2 * CONT_PTES; i = contpte_next(i)) {
		for (flush = 0; flush < 2; flush++) {
			for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
				contpte_order_bbml3(o, side);
				if (!access_check(o, access, i, flush))
					return;
				changed += o->f->number;
			}
		}
	}
	if (access->young || access->dirty)
		PGTABLE_KUNIT_DID(test, changed, "calls with something new");
	else
		KUNIT_EXPECT_EQ(test, changed, 0);
}

/*
 * A fault makes a huge page young. One invalidation follows, with the hint that
 * the entry is a PMD. A CPU may ignore an invalidation that names another level.
 * An older kernel gives no hint, which the recorder shows as level 3.
 */
static void pmdp_set_access_flags_flushes(struct kunit *test)
{
	struct contpte_order *o = test->priv;
	const struct pgtable_kunit_step *last;
	pmd_t huge = pmd_mkhuge(pte_pmd(contpte_pte(o->f, 0)));
	int changed;

	pte_ctx_reset(o->f);
	pgtable_kunit_table_set(o->f->table, 0, pmd_pte(huge));
	contpte_order_start(o);
	changed = recorded_pmdp_set_access_flags(&o->f->vma, contpte_addr(o->f, 0),
						 (pmd_t *)contpte_ptep(o->f, 0),
						 pmd_mkyoung(huge), 1);
	contpte_order_stop(o, 0, 1);
	KUNIT_ASSERT_EQ(test, changed, 1);
	KUNIT_ASSERT_EQ(test, o->rec->flushes, 1);
	last = o->rec->step + o->rec->nr - 1;
	KUNIT_ASSERT_EQ(test, last->kind, PGTABLE_KUNIT_FLUSH);
	KUNIT_EXPECT_EQ(test, last->flags, PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH);
	KUNIT_EXPECT_EQ(test, last->start, contpte_addr(o->f, 0));
	KUNIT_EXPECT_EQ(test, last->end, last->start + last->stride);
	KUNIT_EXPECT_EQ(test, last->level, last->stride == PMD_SIZE ? 2 : 3);
}

/*
 * A walk of a folded table that advances by pte_batch_hint() after each
 * ptep_get() reads a block once, not once for each of its entries. One walk
 * begins at the first entry. Another walk begins in the middle of a block,
 * where the hint is the number of entries up to the end of the block.
 */
static void ptep_get_of_batches(struct kunit *test)
{
	struct contpte_order *o = test->priv;
	int start, i;

	for (start = 0; start < CONT_PTES; start += CONT_PTES / 2) {
		contpte_order_fill(o, CONTPTE_ORDER_ALL, false);
		contpte_order_start(o);
		for (i = start; i < CONTPTE_WINDOW;
		     i += pte_batch_hint(contpte_ptep(o->f, i), o->f->got))
			pte_op_call(o->f, PTE_OP_GET, i, 1, 0, __pte(0));
		contpte_order_stop(o, start, CONTPTE_WINDOW);
		KUNIT_EXPECT_EQ(test, i, CONTPTE_WINDOW);
		KUNIT_EXPECT_EQ(test, o->rec->flushes, 0);
		contpte_order_obeys(o, true, "ptep_get by batches");
		contpte_order_accesses(o, CONTPTE_BLOCKS * (CONT_PTES + 1), 0,
				       true, "ptep_get by batches");
	}
}

static struct kunit_case contpte_order_cases[] = {
	KUNIT_CASE_PARAM_ATTR(op_order, contpte_order_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE(set_ptes_of_new_entries),
	KUNIT_CASE(set_pte_at_folds),
	KUNIT_CASE(single_entry_unfolds),
	KUNIT_CASE_SLOW(young_range),
	KUNIT_CASE_PARAM(set_access_flags_flushes, order_access_gen_params),
	KUNIT_CASE(pmdp_set_access_flags_flushes),
	KUNIT_CASE(ptep_get_of_batches),
	{}
};

static struct kunit_suite contpte_order_suite = {
	.name = "contpte_order",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_order_init,
	.test_cases = contpte_order_cases,
};

kunit_test_suite(contpte_order_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: order of accesses");
MODULE_LICENSE("GPL");
