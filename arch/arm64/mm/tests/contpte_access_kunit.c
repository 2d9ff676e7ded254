// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: ptep_set_access_flags().
 *
 * The fault handler calls this function to make an entry young, dirty or
 * writable. In a folded block the function gives accessed and dirty bits to all
 * entries, and unfolds the block only if the write bit changes. It may return
 * "nothing to do" only if every entry has the flags. If not, page-table walkers
 * that do not gather the bits of a block, as in some SMMUs, would fault
 * forever.
 *
 * Each case runs the real function on real entries. It compares the table, the
 * returned value and the TLB invalidations with a model. It combines the flags
 * of the block, the flags of one entry in it, the flags that the caller wants,
 * and the positions of the entries. Not covered: hardware that sets flags at
 * the same time.
 *
 * Begin with contpte_fold and contpte.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

/* The states of a readable entry. */
static const struct access_state {
	const char *desc;
	struct pte_model_entry e;
} access_states[] = {
	{ "read-only", {} },
	{ "read-only, young", { .young = true } },
	{ "read-only, dirty", { .sw_dirty = true } },
	{ "read-only, young, dirty", { .young = true, .sw_dirty = true } },
	{ "writable", { .write = true } },
	{ "writable, young", { .write = true, .young = true } },
	{ "writable, dirty in hardware", { .write = true, .hw_dirty = true } },
	{ "writable, young, dirty in hardware",
	  { .write = true, .young = true, .hw_dirty = true } },
	{ "writable, dirty",
	  { .write = true, .hw_dirty = true, .sw_dirty = true } },
	{ "writable, young, dirty",
	  { .write = true, .young = true, .hw_dirty = true, .sw_dirty = true } },
};

KUNIT_ARRAY_PARAM_DESC(access_state, access_states, desc);

static struct pte_model_entry access_entry(const struct access_state *state,
					   unsigned int page)
{
	struct pte_model_entry e = state->e;

	e.kind = MODEL_VALID;
	e.page = page;
	return e;
}

/* The content of the table before the call. */
struct access_block {
	bool folded;
	const struct access_state *state;	/* of all entries except one */
	const struct access_state *odd_state;
	unsigned int odd;
};

static void access_fill(struct pte_ctx *f, const struct access_block *block)
{
	unsigned int i;

	pte_ctx_reset(f);
	for (i = 0; i < 3 * CONT_PTES; i++) {
		bool odd = i == CONT_PTES + block->odd;
		struct pte_model_entry e;

		e = access_entry(odd ? block->odd_state : block->state, i);
		e.cont = block->folded && CONTPTE_FOLDS;
		pte_ctx_fill(f, i, &e);
	}
}

/* Make one call. The entry in the arguments always maps the first page. */
static bool access_try(struct pte_ctx *f, const struct access_block *block,
		       unsigned int at, const struct access_state *state,
		       bool dirty)
{
	unsigned int idx = CONT_PTES + at;
	const struct pte_step step = {
		.op = PTE_OP_ACCESS_FLAGS, .idx = idx, .nr = 1,
		.flags = PTE_STEP_GIVEN | (dirty ? PTE_STEP_FLUSH : 0) |
			 (CONTPTE_FOLDS && at % 2 ? PTE_STEP_LEAK : 0),
		.entry = access_entry(state, block->folded ? 0 : idx),
	};

	access_fill(f, block);
	if (pte_op_run(f, &step, true))
		return true;
	kunit_err(f->test, "entry %u of a block that is %s, but entry %u is %s, must become %s\n",
		  at, block->state->desc, block->odd, block->odd_state->desc,
		  state->desc);
	return false;
}

/*
 * Try all flags in which one entry may differ, and all flags that the caller
 * may want.
 */
static void access_all(struct kunit *test, bool folded)
{
	static const unsigned int places[] = {
		0, CONT_PTES - 1,
#ifndef CONFIG_KASAN	/* as contpte_next() */
		CONT_PTES / 2 + 1,
#endif
	};
	const struct access_state *state = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int calls = 0, failed = 0;
	unsigned int odd, wanted, at, n;
	int dirty;

	for (odd = 0; odd < ARRAY_SIZE(access_states); odd++) {
		struct access_block block = {
			.folded = folded,
			.state = state,
			.odd_state = &access_states[odd],
		};

		/* The entries of a folded block have the same write bit. */
		if (folded && state->e.write != block.odd_state->e.write)
			continue;
		for (n = 0; n < ARRAY_SIZE(places) * ARRAY_SIZE(places); n++) {
			at = places[n % ARRAY_SIZE(places)];
			block.odd = places[n / ARRAY_SIZE(places)];
			for (wanted = 0; wanted < ARRAY_SIZE(access_states); wanted++) {
				for (dirty = 0; dirty <= 1; dirty++) {
					calls++;
					if (!access_try(f, &block, at,
							&access_states[wanted],
							dirty) &&
					    ++failed == PGTABLE_KUNIT_ENOUGH)
						return;
				}
			}
		}
	}
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/*
 * The block is folded. If all entries have the flags already, nothing changes.
 * If any entry lacks a flag, all entries are updated, even if the faulting
 * entry has all flags. The entries keep their pages and the contiguous bit,
 * even if the caller passes an entry with another page or contiguous bit. No
 * flag is cleared. If the write bit has to change, the block is unfolded, and
 * only one entry gets the flags. The blocks on either side do not change.
 */
static void ptep_set_access_flags_folded(struct kunit *test)
{
	contpte_skip_unless_folds(test);
	access_all(test, true);
}

/*
 * In a block that is not folded, only the faulting entry gets the flags. The
 * flags of the other entries make no difference. The function invalidates one
 * page, not the block.
 */
static void ptep_set_access_flags_unfolded(struct kunit *test)
{
	access_all(test, false);
}

/*
 * PROT_NONE entries stand between folded blocks, or in a block that was folded
 * before. They are present but not valid, so each is handled alone, even if it
 * has a leaked contiguous bit.
 */
static void ptep_set_access_flags_protnone(struct kunit *test)
{
	const struct access_block block = {
		.folded = true,
		.state = &access_states[4],
		.odd_state = &access_states[4],
		.odd = CONTPTE_NOWHERE,
	};
	struct pte_ctx *f = test->priv;
	unsigned int i, at = CONT_PTES + 1;
	pte_t pte;

	KUNIT_ASSERT_STREQ(test, block.state->desc, "writable");
	access_fill(f, &block);
	for (i = CONT_PTES; i < 2 * CONT_PTES; i++) {
		pte = pte_modify(contpte_pte(f, i), vm_get_page_prot(VM_NONE));
		pgtable_kunit_table_set(f->table, i, contpte_mkcont(pte));
	}

	pte = pte_mkdirty(pte_mkyoung(f->table->want[at]));
	pte_op_call(f, PTE_OP_ACCESS_FLAGS, at, 1, PTE_STEP_FLUSH, pte);
	KUNIT_EXPECT_EQ(test, f->number, 1);
	f->table->want[at] = pte;
	contpte_model_flush(f, at, 1);
	contpte_check(f, "PROT_NONE");
}

static struct kunit_case contpte_access_cases[] = {
	KUNIT_CASE_PARAM_ATTR(ptep_set_access_flags_folded,
			      access_state_gen_params, PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM_ATTR(ptep_set_access_flags_unfolded,
			      access_state_gen_params, PGTABLE_KUNIT_SLOW),
	KUNIT_CASE(ptep_set_access_flags_protnone),
	{}
};

static struct kunit_suite contpte_access_suite = {
	.name = "contpte_access",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_access_cases,
};

kunit_test_suite(contpte_access_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: access flags");
MODULE_LICENSE("GPL");
