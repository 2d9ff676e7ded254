// SPDX-License-Identifier: GPL-2.0
/*
 * Large folios across VMAs.
 *
 * After a system call on part of a folio, or if a VMA ends inside a folio, the
 * rest of the folio stays mapped. If the architecture folds entries, the folded
 * block may have to be unfolded, or may continue across two VMAs. Each case
 * populates three blocks of anonymous memory with a folio each. The first call
 * is for the pages from one page of the second block on. The case tries every
 * page of this block. The second call is for the pages below that page, above
 * it, or across it. The case then compares with a model:
 *
 *	|........|...11111|11111111|	1 the first call
 *	|        |22222222|        |	2 the second: below, above, or across
 *
 *  - that all pages have the right entries and contents, and that no other page
 *    is mapped;
 *  - that contiguous blocks are complete and of one kind;
 *  - that the folios' mappings and references and the RSS agree with the model;
 *  - that every entry that lost a page or a permission was invalidated (arm64).
 *
 * Not covered: files, swap (there is no device), threads that run meanwhile.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	vma_split
 */

#include <kunit/test.h>
#include <linux/swap.h>

#include "vma_split.h"

struct split_fixture {
	struct user_mm *u;
	struct pgtable_kunit_tlb *tlb;	/* or NULL */
	unsigned long addr[USER_PAGES];	/* before the second call */
	pte_t pte[USER_PAGES];
	unsigned long invalidated;	/* entries to invalidate */
	unsigned long effects;		/* pages reached by the advice */
};

KUNIT_ARRAY_PARAM_DESC(vma_split_second, vma_split_second, desc);

/* Remember which entries the TLB may hold. */
static void split_remember(struct split_fixture *f)
{
	unsigned int i;

	if (!f->tlb)
		return;
	for (i = 0; i < USER_PAGES; i++) {
		f->addr[i] = f->u->page[i].addr;
		f->pte[i] = user_mm_pte(f->u, f->addr[i]);
	}
	f->tlb->nr = 0;
}

static bool split_invalidated(struct pgtable_kunit_tlb *tlb, unsigned long addr)
{
	unsigned int i;

	for (i = 0; i < tlb->nr; i++)
		if (tlb->range[i].start <= addr && addr < tlb->range[i].end)
			return true;
	return false;
}

static void split_check_tlb(struct kunit *test, struct split_fixture *f)
{
	unsigned int i;

	if (!f->tlb)
		return;
	if (f->tlb->nr > PGTABLE_KUNIT_FLUSHES) {
		KUNIT_FAIL(test, "%s: %u invalidations, more than the test can record",
			   f->u->what, f->tlb->nr);
		return;
	}
	for (i = 0; i < USER_PAGES; i++) {
		pte_t old = f->pte[i], pte = user_mm_pte(f->u, f->addr[i]);

		if (!pte_present(old) ||
		    (pte_present(pte) && pte_pfn(pte) == pte_pfn(old) &&
		     pte_write(pte) >= pte_write(old)))
			continue;
		if (!split_invalidated(f->tlb, f->addr[i])) {
			KUNIT_FAIL(test, "%s: page %u: %016llx to %016llx, %u invalidations",
				   f->u->what, i, (u64)pte_val(old),
				   (u64)pte_val(pte), f->tlb->nr);
			return;
		}
		f->invalidated++;
	}
}

/*
 * Choose the pages of the second call. Returns whether all of them are still
 * mapped, at consecutive addresses.
 */
static bool split_side(struct user_mm *u, unsigned int side, unsigned int at,
		       unsigned int *first, unsigned int *nr)
{
	static const char * const names[] = { "below", "above", "across" };
	unsigned int i;

	*first = side == 0 ? USER_BLOCK : side == 1 ? at : at - 1;
	*nr = side == 0 ? at - USER_BLOCK : side == 1 ? 2 * USER_BLOCK - at : 2;
	strlcat(u->what, names[side], sizeof(u->what));
	for (i = 0; i < *nr; i++) {
		const struct user_page *p = &u->page[*first + i];

		if (!p->mapped || p->addr != u->page[*first].addr + i * PAGE_SIZE)
			return false;
	}
	return true;
}

/* In large blocks, only the positions near the ends and the middle. */
static bool split_position(unsigned int i)
{
	return USER_BLOCK <= 16 || i <= 2 || i >= USER_BLOCK - 2 ||
	       abs_diff(i, USER_BLOCK / 2) <= 1;
}

static void split_call(struct user_mm *u, const struct split_op *op,
		       unsigned int first, unsigned int nr)
{
	long err = op->run(u, first, nr);

	if (err) {
		u->failed++;
		KUNIT_FAIL(u->test, "%s: %s fails: %ld", u->what, op->desc, err);
	}
}

/*
 * The kernel may ignore advice without any change of data. So the case checks
 * the effect: the folio is split if the call is for a part of it, and the
 * advice has reached each page.
 */
static void split_check_effect(struct kunit *test, struct split_fixture *f,
			       const struct split_op *op, unsigned int first,
			       unsigned int nr)
{
	struct user_mm *u = f->u;
	unsigned int i;

	if (!op->effect)
		return;
	lru_add_drain_all();
	for (i = first; i < first + nr; i++) {
		pte_t pte = user_mm_pte(u, u->page[i].addr);
		struct folio *folio = user_mm_folio(u, i);

		if (!folio || u->page[first].locked || u->page[first + nr - 1].locked)
			continue;
		if (!folio_test_large(folio) && op->effect(folio, pte)) {
			f->effects++;
			continue;
		}
		KUNIT_FAIL(test, "%s: page %u: %016llx, order %u, flags %lx", u->what,
			   i, (u64)pte_val(pte), folio_order(folio),
			   *(unsigned long *)&folio->flags);
		u->failed++;
		return;
	}
}

static bool split_once(struct kunit *test, const struct split_op *one,
		       const struct split_op *two, unsigned int at,
		       unsigned int side)
{
	struct split_fixture *f = test->priv;
	struct user_mm *u = f->u;
	unsigned int first, nr;

	user_mm_populate(u, USER_BLOCK_ORDER);
	snprintf(u->what, sizeof(u->what), "%s from page %u on, %s ", one->desc,
		 at, two->desc);
	split_call(u, one, at, USER_PAGES - at);
	if (!split_side(u, side, at, &first, &nr))
		return false;
	if (two->effect)
		lru_add_drain_all();
	split_remember(f);
	split_call(u, two, first, nr);
	split_check_effect(test, f, two, first, nr);
	split_check_tlb(test, f);
	user_mm_check(u);
	return true;
}

/*
 * The case makes each first call at every page of the block, and the second
 * call on each side of that page and across it. So it covers the rest of a
 * block in two VMAs, and the part of a block that a child gets.
 */
static void vma_split_and_call(struct kunit *test)
{
	const struct split_op *two = test->param_value;
	struct split_fixture *f = test->priv;
	unsigned int i, at, side, n = 0;

	for (i = 0; i < ARRAY_SIZE(vma_split_first); i++)
		for (at = USER_BLOCK + 1; at < 2 * USER_BLOCK; at++) {
			if (!split_position(at - USER_BLOCK))
				continue;
			for (side = 0; side < 3 && !f->u->failed; side++)
				n += split_once(test, &vma_split_first[i], two, at,
						side);
		}
	user_mm_unmap(f->u);
	PGTABLE_KUNIT_DID(test, n, "combinations");
	if (f->tlb && !two->leaves)
		PGTABLE_KUNIT_DID(test, f->invalidated, "entries invalidated");
	if (two->effect)
		PGTABLE_KUNIT_DID(test, f->effects, "pages that the advice reached");
}

static int vma_split_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);
	struct split_fixture *f;

	if (err)
		return err;
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	pgtable_kunit_thp_set(test, BIT(USER_BLOCK_ORDER), true);
	f->u = user_mm_alloc(test);
	if (IS_ENABLED(CONFIG_ARM64))
		f->tlb = pgtable_kunit_tlb_record(test, f->u->mm);
	return 0;
}

static struct kunit_case vma_split_cases[] = {
	KUNIT_CASE_PARAM_ATTR(vma_split_and_call, vma_split_second_gen_params,
			      PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite vma_split_suite = {
	.name = "vma_split",
	.suite_init = pgtable_kunit_suite_init,
	.init = vma_split_init,
	.test_cases = vma_split_cases,
};

kunit_test_suite(vma_split_suite);

MODULE_DESCRIPTION("KUnit tests for large folios across VMAs");
MODULE_LICENSE("GPL");
