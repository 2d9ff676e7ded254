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
 * (contpte_recorded.c). After each access a checker examines what hardware could
 * have cached by then (contpte_bbm.c has the rules). The number, range and kind
 * of the invalidations have to be exactly what is needed, and the number of
 * accesses may not grow with the square of a block. The cases pretend that the
 * CPU has BBM level 3, and that it has not, so both are tested on any machine.
 *
 * Not covered: the instructions that an invalidation consists of, the barriers
 * between CPUs, bits that hardware sets meanwhile (contpte_hw).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_order'
 */

#include <kunit/test.h>

#include "contpte_order.h"

KUNIT_ARRAY_PARAM_DESC(contpte_order_op, contpte_order_ops, desc);

/* The expected invalidations: of blocks that a function unfolds or folds. */
static unsigned int op_expect(const struct contpte_order_call *call,
			      struct contpte_order_flush *want)
{
	unsigned int n = 0;
	int first;

	for (first = ALIGN_DOWN(call->start, CONT_PTES); first < call->end;
	     first += CONT_PTES) {
		if ((call->op->flags & CONTPTE_OP_UNFOLDS) &&
		    contpte_order_folded(call, first) &&
		    (first < call->start || first + CONT_PTES > call->end))
			want[n++] = (struct contpte_order_flush){
				first, CONT_PTES
			};
	}
	if ((call->op->flags & CONTPTE_OP_FOLDS) && call->end % CONT_PTES == 0)
		want[n++] = (struct contpte_order_flush){
			call->end - CONT_PTES, CONT_PTES
		};
	return n;
}

static bool op_check(struct contpte_order *o,
		     const struct contpte_order_call *call)
{
	struct contpte_order_flush want[CONTPTE_BLOCKS + 1];
	unsigned int converts, entries, reads, writes = 0;
	int first, last;
	pte_t got;

	contpte_order_fill(o, call->mask);
	if (call->op->flags & (CONTPTE_OP_OLD | CONTPTE_OP_CLEAN))
		contpte_order_use_all(o);
	got = contpte_order_run(o, call);
	contpte_order_model(o);

	converts = op_expect(call, want);
	contpte_order_expand(call, &first, &last);
	entries = last - first;
	/*
	 * Extra reads: of both ends, of each entry, and of a block to convert.
	 */
	reads = 3 + entries + CONT_PTES * converts;
	if (call->op->flags & CONTPTE_OP_EXPANDS)
		reads += entries;
	if (call->op->flags & CONTPTE_OP_WRITES)
		writes = entries + 2 * CONT_PTES * converts;
	else
		reads = contpte_order_folded(call, first) ? CONT_PTES + 2 : 1;

	if ((call->op->flags & CONTPTE_OP_RETURNS) &&
	    !pte_same(pte_mknoncont(got), contpte_pte(o->f, call->start))) {
		contpte_order_fail(o, "returns %016llx", pte_val(got));
		return false;
	}
	return contpte_order_obeys(o) && contpte_order_image(o) &&
	       contpte_order_flushes(o, want, call->bbml3 ? 0 : converts) &&
	       contpte_order_accesses(o, reads, writes);
}

/*
 * Every function follows break-before-make at every step [contpte 36]. It
 * invalidates each block that it unfolds or folds once, as a whole, on all CPUs,
 * and waits for the end. It invalidates nothing else [37, 38, 52, 85, 87, 89-95,
 * 100-104, 108, 110-112, 121, 129, 136, 141-145]. With BBM level 3 it
 * invalidates nothing at all [237]. Each entry is written at most once, and
 * twice more for a conversion. Reading entries one by one takes a constant
 * number of reads for each [53, 252]. Afterwards the table is as in a model, and
 * the function returns the first entry: a function that does nothing would break
 * no rule.
 *
 * The ranges start and end at the edges and in the middle of four blocks, of
 * which none, the even blocks, the odd blocks, or all are folded. Blocks that
 * are not folded must not be touched, and the two ends must not be mixed up.
 */
static void op_order(struct kunit *test)
{
	struct contpte_order_call call = { .op = test->param_value };
	unsigned int calls = 0, failed = 0;

	while (contpte_order_next(&call)) {
		calls++;
		if (!op_check(test->priv, &call) &&
		    ++failed == PGTABLE_KUNIT_ENOUGH)
			return;
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/* Set entries. The pages are off by the number that @data points to. */
static pte_t order_set(struct contpte_order *o, unsigned long addr, pte_t *ptep,
		       unsigned int nr)
{
	int *off = o->data, idx = ptep - o->f->table->pte;

	recorded_set_ptes(o->f->table->mm, addr, ptep,
			  contpte_pte(o->f, idx + *off), nr);
	return __pte(0);
}

static const struct contpte_order_op order_set_op = {
	"set_ptes", order_set, CONTPTE_OP_WRITES,
};

/*
 * New entries make a block contiguous or not. The places were empty before, so
 * nothing is invalidated, nothing is read, and each entry is written once
 * [contpte 67, 69, 70]. Meanwhile hardware may see a block that is contiguous in
 * part, but never two translations of one page that disagree. In the end a block
 * is contiguous if the range covers it and its pages are aligned, and no other
 * block is.
 */
static void set_ptes_of_new_entries(struct kunit *test)
{
	struct contpte_order_call call = { .op = &order_set_op };
	struct contpte_order *o = test->priv;
	unsigned int calls = 0, folds = 0;
	int off = 0;

	o->data = &off;
	while (contpte_order_next(&call)) {
		int nr = call.end - call.start, i;

		/* Here the first two masks are offsets: there are no blocks yet. */
		off = !!call.mask;
		if (nr == 1 || call.mask > CONTPTE_ORDER_ALL / 3)
			continue;
		contpte_reset(o->f);
		contpte_order_run(o, &call);
		for (i = call.start; i < call.end; i++) {
			int block = ALIGN_DOWN(i, CONT_PTES);
			bool fold = !off && block >= call.start &&
				    block + CONT_PTES <= call.end;
			pte_t pte = contpte_pte(o->f, i + off);

			o->f->table->want[i] = fold ? contpte_mkcont(pte) : pte;
			folds += fold && i == block;
		}
		calls++;
		if (!contpte_order_obeys(o) || !contpte_order_image(o) ||
		    !contpte_order_flushes(o, NULL, 0) ||
		    !contpte_order_accesses(o, 0, nr))
			return;
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
	PGTABLE_KUNIT_DID(test, folds, "contiguous blocks");
}

/*
 * A block is set one entry after the other; the last call folds it [contpte 10,
 * 11]. Before the last call nothing is invalidated. The last call clears all
 * entries, invalidates the block once, and sets all entries, in this order [36].
 * With BBM level 3 there is no invalidation, but all entries are still cleared
 * first [237], since the first entry gets the bits of the last.
 *
 *	|nnnnnnnn|	|--------|  flush  |cccccccc|
 */
static void set_pte_at_folds(struct kunit *test)
{
	struct contpte_order_call call = { .op = &order_set_op };
	struct contpte_order *o = test->priv;
	unsigned int folds = 0;
	int i, side, off = 0;

	o->data = &off;
	for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
		call.bbml3 = side;
		contpte_reset(o->f);
		for (i = 0; i < CONTPTE_WINDOW; i++) {
			int first = ALIGN_DOWN(i, CONT_PTES);
			bool last = i == first + CONT_PTES - 1;
			struct contpte_order_flush want = { first, CONT_PTES };

			call.start = i;
			call.end = i + 1;
			contpte_order_run(o, &call);
			if (!contpte_order_obeys(o) ||
			    !contpte_order_flushes(o, &want, last && !side) ||
			    !contpte_order_accesses(o, 1 + last * CONT_PTES,
						    1 + last * 2 * CONT_PTES))
				return;
			if (last && !contpte_order_converts(o, contpte_order_first_write(o),
							    first, true)) {
				contpte_order_fail(o, "not cleared, invalidated, set");
				return;
			}
			folds += last;
		}
	}
	PGTABLE_KUNIT_DID(test, folds, "folds");
}

/*
 * Each function that takes one entry out of a folded block is called for each
 * entry. It first clears, invalidates and sets all entries, which unfolds the
 * block, and then changes the entry [contpte 36, 38, 66, 85, 112, 134].
 *
 *	|cccccccc|	|--------|  flush  |nnnnnnnn|	|nnn-nnnn|
 */
static void single_entry_unfolds(struct kunit *test)
{
	struct contpte_order_call call = { .mask = CONTPTE_ORDER_ALL };
	struct contpte_order *o = test->priv;
	unsigned int unfolds = 0;
	int i, side;

	for (call.op = contpte_order_ops;
	     call.op < contpte_order_ops + CONTPTE_ORDER_OPS; call.op++) {
		if (!(call.op->flags & CONTPTE_OP_UNFOLDS))
			continue;
		for (i = CONT_PTES; i < 2 * CONT_PTES; i = contpte_next(i)) {
			for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
				unsigned int at;

				call.start = i;
				call.end = i + 1;
				call.bbml3 = side;
				contpte_order_fill(o, call.mask);
				contpte_order_run(o, &call);
				at = contpte_order_converts(o, 0, CONT_PTES, false);
				if (!at || at >= o->rec->nr) {
					contpte_order_fail(o, "not cleared, flushed, set, changed");
					return;
				}
				unfolds++;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, unfolds, "unfolds");
}

static bool young_check(struct contpte_order *o,
			const struct contpte_order_call *call, int young)
{
	struct contpte_order_flush want = { .flags = PGTABLE_KUNIT_NOSYNC };
	int first, last;
	bool in, got;

	contpte_order_expand(call, &first, &last);
	want.first = first;
	want.nr = last - first;
	in = young >= first && young < last;

	contpte_order_fill(o, call->mask);
	contpte_order_hardware(o, young, false);
	o->f->table->want[young] = pgtable_kunit_raw_get(contpte_ptep(o->f, young));
	got = pte_young(contpte_order_run(o, call));
	contpte_order_model(o);
	if (got != in) {
		contpte_order_fail(o, "entry %d is young: returns %d", young,
				   got);
		return false;
	}
	if (!(call->op->flags & CONTPTE_OP_FLUSHES))
		in = false;
	return contpte_order_obeys(o) && contpte_order_image(o) &&
	       contpte_order_flushes(o, &want, in);
}

/*
 * A function makes entries old and invalidates them. If an entry was young, one
 * invalidation, without a wait for its end, covers the range, expanded to the
 * folded blocks at its ends. If no entry was young, there is none [contpte 124,
 * 125, 231, 232]. Checking whether entries are young never invalidates [121,
 * 122]. The young entry is at either end of the range, next to it, or at either
 * end of the expanded range. Afterwards it is old inside the expanded range, and
 * young outside of it.
 */
static void young_range(struct kunit *test)
{
	struct contpte_order_call call = {};
	unsigned int i, failed = 0, calls = 0;

	for (i = 0; i < CONTPTE_ORDER_OPS; i++) {
		call.op = contpte_order_ops + i;
		if (!(call.op->flags & CONTPTE_OP_YOUNG))
			continue;
		call.mask = 0;
		call.start = 0;
		call.end = 0;
		call.bbml3 = false;
		while (contpte_order_next(&call)) {
			int young[] = {
				call.start, call.end - 1, call.start - 1,
				call.end, 0, 0,
			};
			unsigned int n;

			contpte_order_expand(&call, young + 4, young + 5);
			young[5]--;
			for (n = 0; n < ARRAY_SIZE(young); n++) {
				if (young[n] < 0 || young[n] >= CONTPTE_WINDOW)
					continue;
				calls++;
				if (!young_check(test->priv, &call, young[n]) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
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
	bool write;		/* the new entry is */
	bool young;
	bool dirty;
	bool changes;
	bool unfolds;
} order_access[] = {
	{ "nothing new", true, true, true },
	{ "young", true, true, true, true, false, true },
	{ "dirty", true, true, true, true, true, true },
	{ "young, read-only", true, false, false, true, false, true },
	{ "writable", true, false, true, true, true, true, true },
	{ "not folded, nothing new", false, true, true },
	{ "not folded, young", false, true, true, true, false, true },
	{ "not folded, dirty", false, true, true, true, true, true },
	{ "not folded, writable", false, false, true, true, true, true },
};

KUNIT_ARRAY_PARAM_DESC(order_access, order_access, desc);

/* Set the flags that @data has, with an invalidation, as a fault does. */
static pte_t order_access_flags(struct contpte_order *o, unsigned long addr,
				pte_t *ptep, unsigned int nr, int dirty)
{
	const struct order_access *access = o->data;
	pte_t pte = contpte_pte(o->f, ptep - o->f->table->pte);

	if (!access->write)
		pte = pte_wrprotect(pte);
	if (access->young)
		pte = pte_mkyoung(pte);
	if (access->dirty)
		pte = pte_mkdirty(pte);
	return __pte(recorded_ptep_set_access_flags(&o->f->vma, addr, ptep, pte,
						    dirty));
}

static pte_t order_access0(struct contpte_order *o, unsigned long addr,
			   pte_t *ptep, unsigned int nr)
{
	return order_access_flags(o, addr, ptep, nr, 0);
}

static pte_t order_access1(struct contpte_order *o, unsigned long addr,
			   pte_t *ptep, unsigned int nr)
{
	return order_access_flags(o, addr, ptep, nr, 1);
}

static const struct contpte_order_op order_access_ops[] = {
	{ "ptep_set_access_flags, dirty=0", order_access0, CONTPTE_OP_SINGLE },
	{ "ptep_set_access_flags, dirty=1", order_access1, CONTPTE_OP_SINGLE },
};

static void access_fill(struct contpte_order *o,
			const struct order_access *access)
{
	int i;

	contpte_reset(o->f);
	for (i = 0; i < CONTPTE_WINDOW; i++) {
		pte_t pte = contpte_pte(o->f, i);

		if (!access->was_write)
			pte = pte_wrprotect(pte);
		if (access->folded)
			pte = contpte_mkcont(pte);
		pgtable_kunit_table_set(o->f->table, i, pte);
	}
}

static bool access_check(struct contpte_order *o,
			 const struct order_access *access,
			 const struct contpte_order_call *call, bool flush)
{
	struct pgtable_kunit_record *rec = o->rec;
	unsigned int n = 0, writes = 0;
	struct contpte_order_flush want[2];
	int first = call->start, nr = 1;
	bool got;

	if (access->folded) {
		first = ALIGN_DOWN(first, CONT_PTES);
		nr = CONT_PTES;
	}
	if (access->unfolds) {
		if (!call->bbml3)
			want[n++] = (struct contpte_order_flush){ first, nr };
		writes = 2 * nr;
		first = call->start;
		nr = 1;
	}
	if (access->changes) {
		writes += nr;
		if (flush)
			want[n++] = (struct contpte_order_flush){
				first, nr, PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH,
			};
	}

	access_fill(o, access);
	got = pte_val(contpte_order_run(o, call));
	if (got != access->changes || rec->writes != writes) {
		contpte_order_fail(o, "returns %d, %u writes, expected %d, %u",
				   got, rec->writes, access->changes, writes);
		return false;
	}
	if (!contpte_order_obeys(o) || !contpte_order_flushes(o, want, n))
		return false;
	if (access->changes && flush &&
	    rec->step[rec->nr - 1].kind != PGTABLE_KUNIT_FLUSH) {
		contpte_order_fail(o, "goes on after the invalidation");
		return false;
	}
	return true;
}

/*
 * A fault makes entries young, dirty or writable. In a folded block one call
 * makes all entries young or dirty. If the caller wants an invalidation, one
 * invalidation of the block follows the last write [contpte 129, 130, 133]. If
 * an entry becomes writable, it is the only one: the block is unfolded first,
 * and then only the page is invalidated [134]. If no flag is new, nothing is
 * written [128, 139]. On newer kernels the invalidation after a fault is only
 * for the local CPU [238]. The invalidation by an unfold must be for all CPUs.
 */
static void set_access_flags_flushes(struct kunit *test)
{
	const struct order_access *access = test->param_value;
	struct contpte_order *o = test->priv;
	struct contpte_order_call call = {
		.mask = access->folded ? CONTPTE_ORDER_ALL : 0,
	};
	int i, flush, side;

	o->data = (void *)access;
	for (i = 0; i < 2 * CONT_PTES; i = contpte_next(i)) {
		call.start = i;
		call.end = i + 1;
		for (flush = 0; flush < 2; flush++) {
			call.op = order_access_ops + flush;
			for (side = 0; side < PGTABLE_KUNIT_BBM_SIDES; side++) {
				call.bbml3 = side;
				if (!access_check(o, access, &call, flush))
					return;
			}
		}
	}
}

static pte_t order_pmd_access(struct contpte_order *o, unsigned long addr,
			      pte_t *ptep, unsigned int nr)
{
	pmd_t young = pmd_mkyoung(pte_pmd(pgtable_kunit_raw_get(ptep)));

	return __pte(recorded_pmdp_set_access_flags(&o->f->vma, addr,
						    (pmd_t *)ptep, young, 1));
}

/*
 * A fault makes a huge page young. One invalidation follows, with the hint that
 * the entry is a PMD. A CPU may ignore an invalidation that names another level.
 * An older kernel gives no hint, which the recorder shows as level 3.
 */
static void pmdp_set_access_flags_flushes(struct kunit *test)
{
	static const struct contpte_order_op op = {
		"pmdp_set_access_flags", order_pmd_access, CONTPTE_OP_SINGLE,
	};
	struct contpte_order_call call = { .op = &op, .end = 1 };
	struct contpte_order *o = test->priv;
	const struct pgtable_kunit_step *last;
	pmd_t huge = pmd_mkhuge(pte_pmd(contpte_pte(o->f, 0)));

	contpte_reset(o->f);
	pgtable_kunit_table_set(o->f->table, 0, pmd_pte(huge));
	KUNIT_ASSERT_EQ(test, pte_val(contpte_order_run(o, &call)), 1);
	KUNIT_ASSERT_EQ(test, o->rec->flushes, 1);
	last = o->rec->step + o->rec->nr - 1;
	KUNIT_ASSERT_EQ(test, last->kind, PGTABLE_KUNIT_FLUSH);
	KUNIT_EXPECT_EQ(test, last->flags, PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH);
	KUNIT_EXPECT_EQ(test, last->start, contpte_addr(o->f, 0));
	KUNIT_EXPECT_EQ(test, last->end, last->start + last->stride);
	KUNIT_EXPECT_EQ(test, last->level, last->stride == PMD_SIZE ? 2 : 3);
}

/* Walk the window, with one ptep_get() for each batch. */
static pte_t order_walk(struct contpte_order *o, unsigned long addr,
			pte_t *ptep, unsigned int nr)
{
	pte_t *end = ptep + nr;

	while (ptep < end)
		ptep += pte_batch_hint(ptep, recorded_ptep_get(ptep));
	return __pte(end - ptep);
}

/*
 * A walk of a folded table that advances by pte_batch_hint() after each
 * ptep_get() reads a block once, not once for each of its entries [contpte 53,
 * 252]. One walk begins at the first entry. Another begins in the middle of a
 * block, where the hint is the number of entries up to the end of the block
 * [147].
 */
static void ptep_get_of_batches(struct kunit *test)
{
	static const struct contpte_order_op walk = {
		"ptep_get by batches", order_walk,
	};
	struct contpte_order *o = test->priv;
	struct contpte_order_call call = {
		.op = &walk, .mask = CONTPTE_ORDER_ALL, .end = CONTPTE_WINDOW,
	};

	for (; call.start < CONT_PTES; call.start += CONT_PTES / 2) {
		pte_t left;

		contpte_order_fill(o, call.mask);
		left = contpte_order_run(o, &call);
		KUNIT_EXPECT_EQ(test, pte_val(left), 0);
		contpte_order_obeys(o);
		contpte_order_flushes(o, NULL, 0);
		contpte_order_accesses(o, CONTPTE_BLOCKS * (CONT_PTES + 1), 0);
	}
}

static struct kunit_suite contpte_order_suite;

static int contpte_order_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_order_suite);

	if (err)
		return err;
	test->priv = contpte_order_alloc(test);
	return 0;
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
	.init = contpte_order_init,
	.test_cases = contpte_order_cases,
};

kunit_test_suite(contpte_order_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: order of accesses");
MODULE_LICENSE("GPL");
