// SPDX-License-Identifier: GPL-2.0
/*
 * The rule for changes of live entries of the kernel's page tables.
 *
 * The linear map is in use while parts of it become read-only or lose their
 * contiguous bits. pgattr_change_is_safe() decides which of these changes are
 * safe without an invalid entry and a TLB invalidation in between. If it
 * forbids a change, the builder calls BUG(). Each case checks one change. Not
 * covered: the callers (linear_map_again makes such changes).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	pgattr_change
 */

#include <kunit/test.h>
#include <linux/pgtable.h>

#include "pgtable_kunit.h"

/* A change of a live entry of the kernel. */
static const struct pgattr_change {
	const char *desc;
	u64 from, to;
	bool safe;
} pgattr_changes[] = {
#define PGATTR(attr)	(PTE_TYPE_PAGE | PTE_AF | PTE_NG | PTE_DIRTY | \
			 PTE_ATTRINDX(attr) | PAGE_SIZE)
#define PGATTR_NORMAL	PGATTR(MT_NORMAL)
	{ "nothing to something", 0, PGATTR_NORMAL, true },
	{ "something to nothing", PGATTR_NORMAL, 0, true },
	{ "invalid, another page", PGATTR_NORMAL & ~PTE_VALID,
	  PGATTR_NORMAL + PAGE_SIZE, true },
	{ "none", PGATTR_NORMAL, PGATTR_NORMAL, true },
	{ "another page", PGATTR_NORMAL, PGATTR_NORMAL + PAGE_SIZE, false },
	{ "read-only", PGATTR_NORMAL, PGATTR_NORMAL | PTE_RDONLY, true },
	{ "writable", PGATTR_NORMAL, PGATTR_NORMAL | PTE_WRITE, true },
	{ "not executable", PGATTR_NORMAL, PGATTR_NORMAL | PTE_PXN, true },
	{ "software bits", PGATTR_NORMAL, PGATTR_NORMAL | PTE_SPECIAL, true },
	{ "not executable in user space", PGATTR_NORMAL,
	  PGATTR_NORMAL | PTE_UXN, false },
	{ "accessed", PGATTR_NORMAL & ~PTE_AF, PGATTR_NORMAL, false },
	{ "accessible by user space", PGATTR_NORMAL, PGATTR_NORMAL | PTE_USER,
	  false },
	{ "global to not global", PGATTR_NORMAL & ~PTE_NG, PGATTR_NORMAL,
	  true },
	{ "not global to global", PGATTR_NORMAL, PGATTR_NORMAL & ~PTE_NG,
	  false },
	{ "tagged", PGATTR_NORMAL, PGATTR(MT_NORMAL_TAGGED), true },
	{ "not tagged", PGATTR(MT_NORMAL_TAGGED), PGATTR_NORMAL, true },
	{ "tagged, writable", PGATTR_NORMAL,
	  PGATTR(MT_NORMAL_TAGGED) | PTE_WRITE, true },
	{ "tagged, another page", PGATTR_NORMAL,
	  PGATTR(MT_NORMAL_TAGGED) + PAGE_SIZE, false },
	{ "not cached", PGATTR_NORMAL, PGATTR(MT_NORMAL_NC), false },
	{ "cached, tagged", PGATTR(MT_NORMAL_NC), PGATTR(MT_NORMAL_TAGGED),
	  false },
	{ "contiguous, another page", PGATTR_NORMAL | PTE_CONT,
	  (PGATTR_NORMAL + PAGE_SIZE) | PTE_CONT, false },
	{ "contiguous bit set", PGATTR_NORMAL, PGATTR_NORMAL | PTE_CONT,
	  false },
	{ "contiguous bit cleared", PGATTR_NORMAL | PTE_CONT, PGATTR_NORMAL,
	  false },
	/*
	 * Changes that are allowed because the builder handles the other
	 * entries of the block.
	 */
	{ "contiguous, read-only", PGATTR_NORMAL | PTE_CONT,
	  PGATTR_NORMAL | PTE_CONT | PTE_RDONLY, PGTABLE_KUNIT_KEEPS_TABLES },
};

KUNIT_ARRAY_PARAM_DESC(pgattr_change, pgattr_changes, desc);

/*
 * pgattr_change_is_safe() allows a change of a live entry only if the change
 * needs no invalid entry in between. The builder of kernel page tables follows
 * this rule.
 */
static void pgattr_change_is_safe_rule(struct kunit *test)
{
	const struct pgattr_change *change = test->param_value;

	KUNIT_EXPECT_EQ(test, pgattr_change_is_safe(change->from, change->to),
			change->safe);
}

static struct kunit_case pgattr_change_cases[] = {
	KUNIT_CASE_PARAM(pgattr_change_is_safe_rule, pgattr_change_gen_params),
	{}
};

static struct kunit_suite pgattr_change_suite = {
	.name = "pgattr_change",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = pgattr_change_cases,
};

kunit_test_suite(pgattr_change_suite);

MODULE_DESCRIPTION("KUnit tests for changes of live kernel page-table entries");
MODULE_LICENSE("GPL");
