// SPDX-License-Identifier: GPL-2.0
/*
 * The helpers for the entry of a huge page.
 *
 * Page faults, fork, mprotect and the split of a huge page change an entry with
 * these helpers before they write it. A helper that loses the dirty state loses
 * data. A helper that leaves the write permission lets two processes write one
 * page.
 *
 * The suite makes entries in every combination of young, dirty, writable,
 * soft-dirty and uffd-wp, and calls each helper for each entry. It tests values
 * only. Not covered: entries in a table (pmdp_op), entries that are not present
 * (softleaf), PUDs.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	pmd_leaf
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "pmd_leaf.h"

/*
 * The helpers for one value, with the parts of the state that they set, clear,
 * and may set.
 */
struct huge_helper {
	const char *desc;
	pmd_t (*run)(pmd_t pmd);
	unsigned int set, clear, may;
	bool hides;
};

#define HELPER(name)							\
	static pmd_t run_##name(pmd_t pmd)				\
	{								\
		return name(pmd);					\
	}

HELPER(pmd_mkyoung)
HELPER(pmd_mkold)
HELPER(pmd_mkdirty)
HELPER(pmd_mkclean)
HELPER(pmd_mkwrite_novma)
HELPER(pmd_wrprotect)
HELPER(pmd_mkhuge)
HELPER(pmd_mksoft_dirty)
HELPER(pmd_clear_soft_dirty)
HELPER(huge_mkuffd)
HELPER(huge_clear_uffd)
#ifndef CONFIG_S390
HELPER(pmd_mkinvalid)
#endif

static pmd_t run_pmd_modify_none(pmd_t pmd)
{
	return pmd_modify(pmd, vm_get_page_prot(VM_NONE));
}

static pmd_t run_pmd_modify_read(pmd_t pmd)
{
	return pmd_modify(pmd, vm_get_page_prot(VM_READ));
}

static pmd_t run_pmd_modify_write(pmd_t pmd)
{
	return pmd_modify(pmd, vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED));
}

#define HUGE_HELPER(_name, ...) { .desc = #_name, .run = run_##_name, __VA_ARGS__ }

static const struct huge_helper huge_helpers[] = {
	HUGE_HELPER(pmd_mkyoung, .set = HUGE_YOUNG),
	HUGE_HELPER(pmd_mkold, .clear = HUGE_YOUNG),
	/*
	 * On some architectures, a helper that makes an entry dirty also makes
	 * it soft-dirty.
	 */
	HUGE_HELPER(pmd_mkdirty, .set = HUGE_DIRTY, .may = HUGE_SOFT),
	HUGE_HELPER(pmd_mkclean, .clear = HUGE_DIRTY),
	HUGE_HELPER(pmd_mkwrite_novma, .set = HUGE_WRITE),
	HUGE_HELPER(pmd_wrprotect, .clear = HUGE_WRITE),
	/* On s390 a new entry of a huge page is young. */
	HUGE_HELPER(pmd_mkhuge,
		    .may = IS_ENABLED(CONFIG_S390) ? HUGE_YOUNG : 0),
	HUGE_HELPER(pmd_mksoft_dirty, .set = HUGE_SOFT),
	HUGE_HELPER(pmd_clear_soft_dirty, .clear = HUGE_SOFT),
	HUGE_HELPER(huge_mkuffd, .set = HUGE_UFFD, .clear = HUGE_WRITE),
	HUGE_HELPER(huge_clear_uffd, .clear = HUGE_UFFD),
#ifndef CONFIG_S390
	HUGE_HELPER(pmd_mkinvalid, .hides = true),
#endif
	/* The protection may contain the young bit, as on riscv. */
	HUGE_HELPER(pmd_modify_none, .clear = HUGE_WRITE, .may = HUGE_YOUNG),
	HUGE_HELPER(pmd_modify_read, .clear = HUGE_WRITE, .may = HUGE_YOUNG),
	HUGE_HELPER(pmd_modify_write, .set = HUGE_WRITE, .may = HUGE_YOUNG),
};

KUNIT_ARRAY_PARAM_DESC(huge_helper, huge_helpers, desc);

/*
 * Each helper changes only the parts that its row names, and keeps the page
 * frame and the rest of the state. The entry is still present and huge, even if
 * it is hidden from the hardware. The case tries every state, because some bits
 * depend on others, for example dirty on writable.
 */
static void pmd_helper_changes_state(struct kunit *test)
{
	const struct huge_helper *helper = test->param_value;
	unsigned int state, failed = 0;

	if ((helper->set & HUGE_SOFT && !huge_has_soft()) ||
	    (helper->set & HUGE_UFFD && !huge_has_uffd()))
		kunit_skip(test, "no such bit in entries: %s", helper->desc);

	for (state = 0; state < HUGE_STATES; state++) {
		pmd_t before = huge_pmd(0, state), after;
		unsigned int want = (state & ~helper->clear) | helper->set;

		if (!huge_possible(state) ||
		    (helper->set & HUGE_WRITE && state & HUGE_UFFD))
			continue;
		after = helper->run(before);
		pgtable_kunit_tried++;
		if (huge_state(before) == state &&
		    (huge_state(after) & ~(helper->may & ~state)) == want &&
		    pmd_pfn(after) == huge_pfn(0) && pmd_present(after) &&
		    !pmd_none(after) && pmd_trans_huge(after) &&
		    !(helper->hides && huge_valid(after)))
			continue;
		KUNIT_FAIL(test, "state %x, %016llx: %x, %016llx, expected %x",
			   state, (u64)pmd_val(before), huge_state(after),
			   (u64)pmd_val(after), want);
		if (++failed == PGTABLE_KUNIT_ENOUGH)
			return;
	}
}

static struct kunit_case pmd_leaf_cases[] = {
	KUNIT_CASE_PARAM(pmd_helper_changes_state, huge_helper_gen_params),
	{}
};

static struct kunit_suite pmd_leaf_suite = {
	.name = "pmd_leaf",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.exit = pgtable_kunit_exit,
	.test_cases = pmd_leaf_cases,
};

kunit_test_suite(pmd_leaf_suite);

MODULE_DESCRIPTION("KUnit tests for helpers for the entry of a huge page");
MODULE_LICENSE("GPL");
