// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: ptep_set_access_flags().
 *
 * The fault handler calls this function to make an entry young, dirty or
 * writable. In a folded block the function gives accessed and dirty bits to all
 * entries, and unfolds the block only if the write bit changes. It may return
 * that there was nothing to do only if every entry has the flags. Otherwise
 * page-table walkers that do not gather the bits of a block, as in some SMMUs,
 * would fault forever.
 *
 * Each case runs the real function on real entries. It compares the table, the
 * value returned and the TLB invalidations with a model, for combinations of
 * the block's flags, the flags of one entry in it, the flags that the caller
 * wants, and their places. Not covered: hardware that sets flags at the same
 * time.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

#define ACCESS_FLAGS	(PTE_RDONLY | PTE_AF | PTE_WRITE | PTE_DIRTY)

/* The states of a readable entry, by its flags. */
static const struct access_state {
	const char *desc;
	pteval_t flags;
} access_states[] = {
	{ "read-only", PTE_RDONLY },
	{ "read-only, young", PTE_RDONLY | PTE_AF },
	{ "read-only, dirty", PTE_RDONLY | PTE_DIRTY },
	{ "read-only, young, dirty", PTE_RDONLY | PTE_DIRTY | PTE_AF },
	{ "writable", PTE_WRITE | PTE_RDONLY },
	{ "writable, young", PTE_WRITE | PTE_RDONLY | PTE_AF },
	{ "writable, dirty in hardware", PTE_WRITE },
	{ "writable, young, dirty in hardware", PTE_WRITE | PTE_AF },
	{ "writable, dirty", PTE_WRITE | PTE_DIRTY },
	{ "writable, young, dirty", PTE_WRITE | PTE_DIRTY | PTE_AF },
};

KUNIT_ARRAY_PARAM_DESC(access_state, access_states, desc);

static pte_t access_pte(struct contpte_fixture *f, unsigned int page,
			pteval_t flags)
{
	return __pte((pte_val(contpte_pte(f, page)) & ~ACCESS_FLAGS) | flags);
}

/* The entry, with the more permissive of its own flags and @flags. */
static pte_t access_merge(pte_t pte, pteval_t flags)
{
	pteval_t rdonly = pte_val(pte) & flags & PTE_RDONLY;
	pteval_t others = (pte_val(pte) | flags) & ~PTE_RDONLY;

	return __pte(others | rdonly);
}

/* What the table has before the call. */
struct access_block {
	bool folded;
	pteval_t flags;		/* of all entries of the block but one */
	pteval_t odd_flags;
	unsigned int odd;
};

static void access_fill(struct contpte_fixture *f,
			const struct access_block *block)
{
	unsigned int i;

	contpte_reset(f);
	for (i = 0; i < 3 * CONT_PTES; i++) {
		bool odd = i == CONT_PTES + block->odd;
		pte_t pte = access_pte(f, i, odd ? block->odd_flags :
						   block->flags);

		if (block->folded)
			pte = contpte_mkfolded(pte);
		pgtable_kunit_table_set(f->table, i, pte);
	}
}

static bool access_model(struct contpte_fixture *f, unsigned int idx,
			 pteval_t flags, bool dirty)
{
	unsigned int first = ALIGN_DOWN(idx, CONT_PTES), nr = CONT_PTES, i;
	pte_t *want = f->table->want;
	bool noop = true;

	if (!pte_valid_cont(want[idx])) {
		first = idx;
		nr = 1;
	}
	for (i = first; i < first + nr; i++)
		noop &= (pte_val(want[i]) & ACCESS_FLAGS) == flags;
	if (noop)
		return false;

	if ((pte_val(want[idx]) ^ flags) & PTE_WRITE && nr > 1) {
		contpte_model_unfold(f, idx);
		first = idx;
		nr = 1;
	}
	for (i = first; i < first + nr; i++)
		want[i] = access_merge(want[i], flags);
	if (dirty)
		contpte_model_flush(f, first, nr);
	return true;
}

/* Make one call. The entry that is passed always maps the first page. */
static bool access_try(struct contpte_fixture *f,
		       const struct access_block *block, unsigned int at,
		       pteval_t flags, int dirty)
{
	unsigned int idx = CONT_PTES + at;
	pte_t entry = access_pte(f, block->folded ? 0 : idx, flags);
	bool got, want;

	access_fill(f, block);
	if (CONTPTE_FOLDS && at % 2)
		entry = contpte_mkcont(entry);
	got = ptep_set_access_flags(&f->vma, contpte_addr(f, idx),
				    contpte_ptep(f, idx), entry, dirty);
	want = access_model(f, idx, flags, dirty);

	if (contpte_check(f, "flags %llx of entry %u, dirty=%d, block %llx, entry %u of it %llx",
			  flags, at, dirty, block->flags, block->odd,
			  block->odd_flags) && got == want)
		return true;
	KUNIT_EXPECT_EQ_MSG(f->test, got, want,
			    "flags %llx of entry %u, dirty=%d, block %llx, entry %u of it %llx",
			    flags, at, dirty, block->flags, block->odd,
			    block->odd_flags);
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
	struct contpte_fixture *f = test->priv;
	unsigned int calls = 0, failed = 0;
	unsigned int odd, flags, at, n;
	int dirty;

	for (odd = 0; odd < ARRAY_SIZE(access_states); odd++) {
		struct access_block block = {
			.folded = folded,
			.flags = state->flags,
			.odd_flags = access_states[odd].flags,
		};

		/* The entries of a folded block agree on the write bit. */
		if (folded && (block.flags ^ block.odd_flags) & PTE_WRITE)
			continue;
		for (n = 0; n < ARRAY_SIZE(places) * ARRAY_SIZE(places); n++) {
			at = places[n % ARRAY_SIZE(places)];
			block.odd = places[n / ARRAY_SIZE(places)];
			for (flags = 0; flags < ARRAY_SIZE(access_states); flags++) {
				for (dirty = 0; dirty <= 1; dirty++) {
					calls++;
					if (!access_try(f, &block, at,
							access_states[flags].flags,
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
 * The block is folded [contpte 128-138]. If all entries have the flags already,
 * nothing changes. If any entry lacks a flag, all entries are updated, even if
 * the faulting entry lacks none [137]. The entries keep their pages and the
 * contiguous bit, even if the caller passes an entry with another page [132] or
 * contiguous bit [131]. No flag is cleared [136]. If the write bit has to
 * change, the block is unfolded, and only one entry gets the flags [134]. The
 * blocks on either side do not change.
 */
static void ptep_set_access_flags_folded(struct kunit *test)
{
	contpte_skip_unless_folds(test);
	access_all(test, true);
}

/*
 * In a block that is not folded, only the faulting entry gets the flags
 * [contpte 139], whatever flags the other entries have. One page is
 * invalidated, not the block.
 */
static void ptep_set_access_flags_unfolded(struct kunit *test)
{
	access_all(test, false);
}

/*
 * PROT_NONE entries stand between folded blocks, or in a block that was folded
 * before. They are present but not valid, so each is handled alone, even if it
 * has a leaked contiguous bit [contpte 139].
 */
static void ptep_set_access_flags_protnone(struct kunit *test)
{
	const struct access_block block = {
		.folded = true,
		.flags = PTE_WRITE | PTE_RDONLY,
		.odd = CONTPTE_NOWHERE,
	};
	struct contpte_fixture *f = test->priv;
	unsigned int i, at = CONT_PTES + 1;
	pte_t pte, entry;

	access_fill(f, &block);
	for (i = CONT_PTES; i < 2 * CONT_PTES; i++) {
		pte = pte_modify(contpte_pte(f, i), vm_get_page_prot(VM_NONE));
		pgtable_kunit_table_set(f->table, i, contpte_mkcont(pte));
	}

	pte = f->table->want[at];
	entry = pte_mkdirty(pte_mkyoung(pte));
	KUNIT_EXPECT_TRUE(test,
			  ptep_set_access_flags(&f->vma, contpte_addr(f, at),
						contpte_ptep(f, at), entry, 1));
	f->table->want[at] = access_merge(pte, pte_val(entry) & ACCESS_FLAGS);
	contpte_model_flush(f, at, 1);
	contpte_check(f, "PROT_NONE");
}

static struct kunit_suite contpte_access_suite;

static int contpte_access_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_access_suite);

	if (err)
		return err;
	test->priv = contpte_fixture_alloc(test);
	return 0;
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
	.init = contpte_access_init,
	.test_cases = contpte_access_cases,
};

kunit_test_suite(contpte_access_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: access flags");
MODULE_LICENSE("GPL");
