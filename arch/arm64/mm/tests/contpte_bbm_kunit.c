// SPDX-License-Identifier: GPL-2.0
/*
 * The checker of break-before-make that suite contpte_order relies on.
 *
 * A checker that accepts everything proves nothing. Each case feeds the checker a
 * sequence of writes and invalidations, as text. The checker must accept the
 * sequences that the kernel makes. It must reject each forbidden sequence, and
 * name the rule and the entry that breaks this rule. No function of the kernel
 * is called.
 *
 * Not covered: whether the rules agree with the architecture (see
 * contpte_bbm.c).
 *
 * Begin with contpte_fold. Read this suite before contpte_order.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_bbm'
 */

#include <kunit/test.h>

#include "contpte_order.h"

/*
 * A sequence is a string of steps on one block, block 1 of the window:
 *
 *	f	invalidate the block's pages
 *	F	invalidate all of them except the last
 *	z	clear all entries		Z	all except the last
 *	n	write all, not contiguous	c	write all, contiguous
 *	N, C	only the first of them
 *	r	write all, contiguous and read-only
 *	R	only the first of them
 *	p	write all, not contiguous and read-only
 *	a	write all, contiguous and young and dirty
 *	o	write the first, not contiguous, with the page of the next block
 *	m	write all, not contiguous, with another memory type
 *	x	write all, contiguous, with the pages shifted by one
 *	.	the function returns; its range was the whole block
 *	:	the function returns; its range was the first entry
 *
 * The first step is the initial table; no TLB has cached it yet.
 */
struct bbm_sequence {
	const char *desc;
	const char *steps;
	enum contpte_bbm_rule rule;
	bool not_bbml3;		/* right with BBM level 3 */
};

static const struct bbm_sequence bbm_sequences[] = {
	/* The sequences that the kernel makes. */
	{ "fold", "nzfc:", CONTPTE_BBM_OK },
	{ "unfold", "czfn:", CONTPTE_BBM_OK },
	{ "set a new block", "zc.", CONTPTE_BBM_OK },
	{ "clear a block, flush by the caller", "cz.fn.", CONTPTE_BBM_OK },
	{ "write-protect a block", "cr.f.", CONTPTE_BBM_OK },
	{ "set access flags", "ca.f.", CONTPTE_BBM_OK },
	{ "unfold and clear one", "czfnZ.", CONTPTE_BBM_OK },
	/* No invalidation: right only with BBM level 3. */
	{ "fold without flush", "nzc:", CONTPTE_BBM_CONFLICT, true },
	{ "unfold without flush", "czn:", CONTPTE_BBM_CONFLICT, true },
	{ "fold, flush of a part", "nzFc:", CONTPTE_BBM_CONFLICT, true },
	{ "unfold, flush of a part", "czFn:", CONTPTE_BBM_CONFLICT, true },
	{ "fold, flush too early", "nfzc:", CONTPTE_BBM_CONFLICT, true },
	{ "fold, flush before the last is clear", "nZfzc:",
	  CONTPTE_BBM_CONFLICT, true },
	{ "fold, flush too late", "nzcf:", CONTPTE_BBM_CONFLICT, true },
	{ "unfold, flush before the last is clear", "cZfzN",
	  CONTPTE_BBM_CONFLICT, true },
	/* The block has no invalid entry in between. */
	{ "fold in place", "nfcf:", CONTPTE_BBM_IN_PLACE, true },
	{ "unfold in place", "cfnf:", CONTPTE_BBM_IN_PLACE, true },
	{ "another page in place", "no.", CONTPTE_BBM_IN_PLACE },
	{ "another memory type in place", "nm.", CONTPTE_BBM_IN_PLACE },
	/* Two kinds of entries at the same time. */
	{ "first entry of the old kind", "nZfC", CONTPTE_BBM_MIXED, true },
	{ "last entry of the new kind", "cZfN", CONTPTE_BBM_MIXED, true },
	/* Entries at the wrong place. */
	{ "shifted pages", "zx.", CONTPTE_BBM_MISALIGNED },
	/* Another translation, with or without the bit. */
	{ "another page, cleared only", "nzo.", CONTPTE_BBM_CONFLICT },
	{ "another memory type, cleared only", "nzm.", CONTPTE_BBM_CONFLICT },
	/* States of the block when a function returns. */
	{ "clear all but one of a block", "cZ.", CONTPTE_BBM_PARTIAL },
	{ "set one of a block", "zC.", CONTPTE_BBM_PARTIAL },
	{ "write-protect one of a block", "cR.", CONTPTE_BBM_PARTIAL },
	{ "write-protect all, for one", "cr:", CONTPTE_BBM_STALE },
	{ "clear all, for one", "nz:", CONTPTE_BBM_STALE },
	{ "clear and flush all, for one", "nzf:", CONTPTE_BBM_CHANGED },
	{ "unfold and write-protect all, for one", "czfp:",
	  CONTPTE_BBM_CHANGED },
	{ "set all, for one", "zc:", CONTPTE_BBM_CHANGED },
};

KUNIT_ARRAY_PARAM_DESC(bbm_sequence, bbm_sequences, desc);

#define BBM_FIRST	CONT_PTES

static pte_t bbm_pte(struct pte_ctx *f, char step, int i)
{
	pte_t pte = contpte_pte(f, BBM_FIRST + i);

	switch (step) {
	case 'z':
	case 'Z':
		return __pte(0);
	case 'c':
	case 'C':
		return contpte_mkcont(pte);
	case 'r':
	case 'R':
		return pte_wrprotect(contpte_mkcont(pte));
	case 'p':
		return pte_wrprotect(pte);
	case 'a':
		return pte_mkyoung(pte_mkdirty(contpte_mkcont(pte)));
	case 'o':
		return pte_advance_pfn(pte, CONT_PTES);
	case 'm':
		return __pte(pte_val(pte) ^
			     PTE_ATTRINDX(MT_NORMAL ^ MT_NORMAL_NC));
	case 'x':
		return pte_advance_pfn(contpte_mkcont(pte), 1);
	}
	return pte;
}

/* The number of entries of the block that a step writes or invalidates. */
static int bbm_entries(char step)
{
	if (step == 'F' || step == 'Z')
		return CONT_PTES - 1;
	return strchr("NCRo", step) ? 1 : CONT_PTES;
}

static void bbm_step(struct pte_ctx *f, struct contpte_bbm *bbm,
		     char step)
{
	int i;

	if (step == '.' || step == ':') {
		contpte_bbm_end(bbm, BBM_FIRST, BBM_FIRST +
				(step == '.' ? CONT_PTES : 1));
		return;
	}
	for (i = 0; i < bbm_entries(step); i++) {
		if (step == 'f' || step == 'F')
			contpte_bbm_flush(bbm, BBM_FIRST + i);
		else
			contpte_bbm_write(bbm, BBM_FIRST + i,
					  bbm_pte(f, step, i));
	}
}

/*
 * The checker judges each sequence by the rules without BBM level 3, and by the
 * rules with it. With level 3, a change of the contiguous bit needs no flush. A
 * sequence is still wrong if it lacks a flush for an address, an attribute or a
 * permission. The other blocks of the window are empty.
 */
static void checker_knows_sequence(struct kunit *test)
{
	const struct bbm_sequence *seq = test->param_value;
	struct contpte_order *o = test->priv;
	struct pte_ctx *f = o->f;
	struct contpte_bbm *bbm = o->bbm;
	pte_t *pte;
	int side, i;

	pte = kunit_kcalloc(test, CONTPTE_WINDOW, sizeof(*pte), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pte);

	for (side = 0; side < 2; side++) {
		enum contpte_bbm_rule want = seq->rule;
		const char *step = seq->steps;

		if (side && seq->not_bbml3)
			want = CONTPTE_BBM_OK;
		memset(pte, 0, CONTPTE_WINDOW * sizeof(*pte));
		if (*step != 'z') {
			for (i = 0; i < CONT_PTES; i++)
				pte[BBM_FIRST + i] = bbm_pte(f, *step, i);
		}
		contpte_bbm_start(bbm, pte, side);
		while (*++step)
			bbm_step(f, bbm, *step);
		KUNIT_EXPECT_STREQ_MSG(test, contpte_bbm_rule_name(bbm->rule),
				       contpte_bbm_rule_name(want),
				       "\"%s\", bbml3=%d: entry %d, step %u",
				       seq->steps, side, bbm->idx, bbm->steps);
	}
}

/*
 * The checker reports the first rule that was broken, and the entry that broke it.
 * Later violations must not hide the first one.
 */
static void checker_names_first_entry(struct kunit *test)
{
	struct contpte_order *o = test->priv;
	struct pte_ctx *f = o->f;
	struct contpte_bbm *bbm = o->bbm;
	int i;

	for (i = 0; i < CONT_PTES; i++)
		pgtable_kunit_table_set(f->table, BBM_FIRST + i,
					bbm_pte(f, 'n', i));
	contpte_bbm_start(bbm, f->table->pte, false);
	contpte_bbm_write(bbm, BBM_FIRST, __pte(0));
	contpte_bbm_flush(bbm, BBM_FIRST);
	contpte_bbm_write(bbm, BBM_FIRST, bbm_pte(f, 'o', 0));
	KUNIT_EXPECT_EQ(test, bbm->rule, CONTPTE_BBM_OK);
	contpte_bbm_write(bbm, BBM_FIRST + 1, bbm_pte(f, 'm', 1));
	contpte_bbm_write(bbm, BBM_FIRST + 2, bbm_pte(f, 'c', 2));
	contpte_bbm_end(bbm, BBM_FIRST, BBM_FIRST + 1);
	KUNIT_EXPECT_EQ(test, bbm->rule, CONTPTE_BBM_IN_PLACE);
	KUNIT_EXPECT_EQ(test, bbm->idx, BBM_FIRST + 1);
	KUNIT_EXPECT_EQ(test, bbm->steps, 4);
}

/* An invalidation in the middle of a fold. @data selects which one. */
struct bbm_flush {
	const char *desc;
	enum contpte_bbm_rule rule;
	unsigned int flags;
	int level;
	unsigned int stride;		/* in pages */
	bool foreign;			/* of another mm */
};

static const struct bbm_flush bbm_flushes[] = {
	{ "complete", CONTPTE_BBM_OK, 0, 3, 1 },
	{ "complete, last level", CONTPTE_BBM_OK, PGTABLE_KUNIT_LAST_LEVEL, 3,
	  1 },
	{ "no hint", CONTPTE_BBM_OK, 0, TLBI_TTL_UNKNOWN, 1 },
	{ "wrong hint", CONTPTE_BBM_CONFLICT, 0, 2, 1 },
	{ "not waited for", CONTPTE_BBM_CONFLICT, PGTABLE_KUNIT_NOSYNC, 3, 1 },
	{ "local", CONTPTE_BBM_CONFLICT, PGTABLE_KUNIT_LOCAL, 3, 1 },
	{ "every other page", CONTPTE_BBM_CONFLICT, 0, 3, 2 },
	{ "by block", CONTPTE_BBM_CONFLICT, 0, 3, CONT_PTES },
	{ "of another mm", CONTPTE_BBM_CONFLICT, 0, 3, 1, true },
};

KUNIT_ARRAY_PARAM_DESC(bbm_flush, bbm_flushes, desc);

static void bbm_raw_write(struct contpte_order *o, pte_t *ptep, pte_t pte)
{
	pgtable_kunit_record_begin(ptep);
	WRITE_ONCE(*ptep, pte);
	pgtable_kunit_record_end(ptep, true);
}

static void bbm_fold(struct contpte_order *o, const struct bbm_flush *flush)
{
	unsigned long addr = contpte_addr(o->f, BBM_FIRST);
	pte_t *ptep = contpte_ptep(o->f, BBM_FIRST);
	unsigned int i, nr = CONT_PTES;

	for (i = 0; i < nr; i++)
		bbm_raw_write(o, ptep + i, __pte(0));
	pgtable_kunit_record_flush(flush->foreign ? NULL : o->f->table->mm, addr,
				   addr + nr * PAGE_SIZE,
				   flush->stride * PAGE_SIZE, flush->level,
				   flush->flags);
	for (i = 0; i < nr; i++)
		bbm_raw_write(o, ptep + i, bbm_pte(o->f, 'c', i));
}

/*
 * The kernel folds a block, but its invalidation is not enough. It does not
 * reach other CPUs, it has not ended, it leaves out pages, or it is for another
 * level or another mm. The checker must reject each of these. The case also
 * checks the recorder, which must pass on each single access with the right
 * entry.
 */
static void checker_knows_flush(struct kunit *test)
{
	const struct bbm_flush *flush = test->param_value;
	struct contpte_order *o = test->priv;

	contpte_order_fill(o, 0, false);
	contpte_order_start(o);
	bbm_fold(o, flush);
	contpte_order_stop(o, BBM_FIRST, BBM_FIRST + CONT_PTES);
	KUNIT_EXPECT_STREQ(test, contpte_bbm_rule_name(o->bbm->rule),
			   contpte_bbm_rule_name(flush->rule));
	KUNIT_EXPECT_EQ(test, o->rec->writes, 2 * CONT_PTES);
	KUNIT_EXPECT_EQ(test, o->rec->flushes, 1);
	KUNIT_EXPECT_EQ(test, o->outside, 0);

	/* CONFIG_PAGE_TABLE_CHECK counts the pages as before. */
	pte_ctx_reset(o->f);
}

/*
 * A call write-protects a block, and the recorder misses no write, one write,
 * or all writes. A record without a write breaks no rule, so the checker has to
 * compare the number of writes with the number of changed entries.
 */
static void checker_misses_no_write(struct kunit *test)
{
	static const unsigned int missing[] = { 0, 1, CONT_PTES };
	const struct pte_step step = {
		.op = PTE_OP_WRPROTECT_PTES, .idx = BBM_FIRST, .nr = CONT_PTES,
	};
	struct contpte_order *o = test->priv;
	unsigned int n, i;

	for (n = 0; n < ARRAY_SIZE(missing); n++) {
		contpte_order_fill(o, 0, false);
		contpte_order_start(o);
		for (i = 0; i < CONT_PTES; i++) {
			pte_t *ptep = contpte_ptep(o->f, BBM_FIRST + i);
			pte_t pte = pte_wrprotect(READ_ONCE(*ptep));

			if (i < missing[n])
				WRITE_ONCE(*ptep, pte);
			else
				bbm_raw_write(o, ptep, pte);
		}
		contpte_order_stop(o, BBM_FIRST, BBM_FIRST + CONT_PTES);
		pte_model_step(&o->f->model, &step);
		KUNIT_EXPECT_EQ(test, o->rec->writes, CONT_PTES - missing[n]);
		KUNIT_EXPECT_TRUE(test, contpte_order_obeys(o, true, "write-protect"));
		KUNIT_EXPECT_EQ_MSG(test, !missing[n],
				    contpte_order_ok(o->f, &step, false, ""),
				    "%u writes are missing", missing[n]);
	}
	pte_ctx_reset(o->f);
}

static struct kunit_case contpte_bbm_cases[] = {
	KUNIT_CASE_PARAM(checker_knows_sequence, bbm_sequence_gen_params),
	KUNIT_CASE_PARAM(checker_knows_flush, bbm_flush_gen_params),
	KUNIT_CASE(checker_names_first_entry),
	KUNIT_CASE(checker_misses_no_write),
	{}
};

static struct kunit_suite contpte_bbm_suite = {
	.name = "contpte_bbm",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_order_init,
	.test_cases = contpte_bbm_cases,
};

kunit_test_suite(contpte_bbm_suite);

MODULE_DESCRIPTION("KUnit tests for the checker of break-before-make");
MODULE_LICENSE("GPL");
