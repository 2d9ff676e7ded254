// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: the cost of entries that are never folded, and of a single
 * entry that has to be unfolded.
 *
 * Most entries that the kernel writes are never folded. For these entries the
 * checks for contiguous blocks must not read other entries: fork() and page
 * faults on single pages pay for each read.
 *
 * The recorded copy of the tree's own code (contpte_recorded.c) counts each
 * access to an entry. The cases compare exact numbers; contpte_order has upper
 * bounds for ranges.
 *
 * Not covered: instructions that access no entry, and time. With
 * CONFIG_DEBUG_VM the kernel reads more, and the counts are upper bounds.
 *
 * Begin with contpte_fold. Read contpte_order before this suite.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte_cost'
 */

#include <kunit/test.h>

#include "contpte_order.h"

/*
 * Pages that are not aligned like their addresses can never be folded. Each
 * call reads the entry that it replaces, since this entry may be folded, and
 * then writes the new entry. The call reads no other entry, even at the last
 * address of a block, or with the last page of an aligned block of pages. The
 * pages are off by 1 page, by half a block, and by a block minus 1 page.
 */
static void set_pte_at_out_of_step_reads_itself(struct kunit *test)
{
	static const int offsets[] = { 1, CONT_PTES / 2, CONT_PTES - 1 };
	struct contpte_order *o = test->priv;
	unsigned int i, idx, sets = 0;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		pte_ctx_reset(o->f);
		for (idx = 0; idx < CONTPTE_WINDOW - CONT_PTES; idx++) {
			if (!contpte_set(o->f, idx, 1,
					 contpte_entry(idx + offsets[i]), 0) ||
			    !contpte_order_accesses(o, 1, 1, true, "set_pte_at"))
				return;
			sets += o->rec->writes;
		}
	}
	PGTABLE_KUNIT_DID(test, sets, "entries set");
}

/*
 * fork() write-protects entries one by one if folios are small. If the entry is
 * in a folded block, the call reads it once and unfolds the block. Then it
 * replaces the entry at the first try, without a second read. If the entry is
 * not folded, the call reads and writes it once. The case tries each entry of
 * two blocks, since the place in the block must not matter.
 */
static void wrprotect_ptes_of_one_reads_once(struct kunit *test)
{
	struct contpte_order *o = test->priv;
	unsigned int mask, idx, writes, calls = 0;

	for (idx = 0; idx < 2 * CONT_PTES; idx++) {
		for (mask = 0; mask <= CONTPTE_ORDER_ALL;
		     mask += CONTPTE_ORDER_ALL) {
			contpte_order_fill(o, mask, false);
			writes = mask ? 2 * CONT_PTES + 1 : 1;
			if (!contpte_step(o->f, PTE_OP_WRPROTECT_PTES, idx, 1, 0) ||
			    !contpte_order_accesses(o, 1, writes, true,
						    "wrprotect_ptes"))
				return;
			KUNIT_EXPECT_EQ(test, o->rec->writes, writes);
			calls++;
		}
	}
	PGTABLE_KUNIT_DID(test, calls, "entries write-protected");
}

static struct kunit_case contpte_cost_cases[] = {
	KUNIT_CASE(set_pte_at_out_of_step_reads_itself),
	KUNIT_CASE(wrprotect_ptes_of_one_reads_once),
	{}
};

static struct kunit_suite contpte_cost_suite = {
	.name = "contpte_cost",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_order_init,
	.test_cases = contpte_cost_cases,
};

kunit_test_suite(contpte_cost_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: accesses to entries");
MODULE_LICENSE("GPL");
