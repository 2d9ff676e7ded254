// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: readers.
 *
 * The hardware may set the accessed and the dirty bit in any entry of a folded
 * block, not only in the entry of the accessed page. ptep_get() and
 * ptep_get_lockless() return these bits for every entry of the block, and no
 * bits of other blocks.
 *
 * Each case writes entries as hardware leaves them, reads through the public
 * functions, and compares the results with the entries. Not covered: ageing and
 * access flags, blocks that other CPUs change (contpte_race).
 *
 * Begin with contpte_fold and contpte.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

/* How the dirty bit is stored. */
static const struct read_kind {
	const char *desc;
	bool write;
	bool sw;
} read_kinds[] = {
	{ "writable, dirty in hardware", true, false },
	{ "writable, dirty in software", true, true },
	{ "read-only, dirty in software", false, true },
};

KUNIT_ARRAY_PARAM_DESC(read_kind, read_kinds, desc);

static pte_t read_pte(struct pte_ctx *f, const struct read_kind *kind,
		      unsigned int page)
{
	pte_t pte = contpte_pte(f, page);

	return kind->write ? pte : pte_wrprotect(pte);
}

static void read_fill(struct pte_ctx *f, const struct read_kind *kind,
		      bool folded, unsigned int young, unsigned int dirty)
{
	unsigned int i;

	for (i = 0; i < 3 * CONT_PTES; i++) {
		bool outside = i / CONT_PTES != 1;
		pte_t pte = read_pte(f, kind, i);

		/* The blocks on either side have both bits in all entries. */
		if (outside || i % CONT_PTES == young)
			pte = pte_mkyoung(pte);
		if (outside || i % CONT_PTES == dirty)
			pte = kind->sw ?
			      set_pte_bit(pte, __pgprot(PTE_DIRTY)) :
			      contpte_mkhwdirty(pte);
		if (folded)
			pte = contpte_mkcont(pte);
		pgtable_kunit_table_set(f->table, i, pte);
	}
}

/*
 * One entry of a folded block is young and one is dirty. The case tries all
 * pairs of places, also with one entry for both, and with no such entry. Every
 * entry of the block reads with its own page, as young if some entry is young,
 * and as dirty if some entry is dirty. The table does not change. The
 * neighbouring blocks have both bits, which are ignored. The case needs all
 * pairs: newer kernels stop the search after they have found both bits, with a
 * separate loop for each order of the two bits.
 */
static void ptep_get_folded(struct kunit *test)
{
	const struct read_kind *kind = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int young, dirty, i, reads = 0;

	contpte_skip_unless_folds(test);
	for (young = 0; young < CONT_PTES + 1; young = contpte_next(young)) {
		for (dirty = 0; dirty < CONT_PTES + 1; dirty = contpte_next(dirty)) {
			pgtable_kunit_table_reset(f->table);
			read_fill(f, kind, true, young, dirty);

			for (i = CONT_PTES; i < 2 * CONT_PTES; i = contpte_next(i)) {
				pte_t *ptep = contpte_ptep(f, i), got[2], want;

				want = pgtable_kunit_raw_get(ptep);
				if (young != CONTPTE_NOWHERE)
					want = pte_mkyoung(want);
				if (dirty != CONTPTE_NOWHERE)
					want = pte_mkdirty(want);

				got[0] = ptep_get(ptep);
				got[1] = ptep_get_lockless(ptep);
				reads++;
				if (pte_same(got[0], want) &&
				    pte_same(got[1], want))
					continue;
				KUNIT_FAIL(test,
					   "%s: entry %u, young %u, dirty %u of %u: read %016llx, lockless %016llx, expected %016llx",
					   kind->desc, i % CONT_PTES, young,
					   dirty, CONT_PTES, pte_val(got[0]),
					   pte_val(got[1]), pte_val(want));
				return;
			}
			if (!contpte_check(f, "young %u, dirty %u", young, dirty))
				return;
		}
	}
	PGTABLE_KUNIT_DID(test, reads, "reads");
}

/*
 * In a block that is not folded, each entry reads with only its own bits,
 * although its neighbours are young and dirty.
 */
static void ptep_get_unfolded(struct kunit *test)
{
	const struct read_kind *kind = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int i;

	read_fill(f, kind, false, 0, CONT_PTES - 1);
	for (i = 0; i < 3 * CONT_PTES; i++) {
		pte_t *ptep = contpte_ptep(f, i);
		pte_t want = pgtable_kunit_raw_get(ptep);

		KUNIT_EXPECT_EQ_MSG(test, pte_val(ptep_get(ptep)),
				    pte_val(want), "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, pte_val(ptep_get_lockless(ptep)),
				    pte_val(want), "lockless, entry %u", i);
	}
	contpte_check(f, "unfolded");
}

static struct kunit_case contpte_read_cases[] = {
	KUNIT_CASE_PARAM(ptep_get_folded, read_kind_gen_params),
	KUNIT_CASE_PARAM(ptep_get_unfolded, read_kind_gen_params),
	{}
};

static struct kunit_suite contpte_read_suite = {
	.name = "contpte_read",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_read_cases,
};

kunit_test_suite(contpte_read_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: readers");
MODULE_LICENSE("GPL");
