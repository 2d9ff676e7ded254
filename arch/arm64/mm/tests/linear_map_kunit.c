// SPDX-License-Identifier: GPL-2.0
/*
 * The builder of the kernel's own page tables.
 *
 * create_pgd_mapping() runs the code that builds the linear map. It maps each
 * table in a slot of the fixmap to write to it, and every change of a slot
 * costs a TLB invalidation. Older kernels changed the slot once for every
 * contiguous block, which took most of the boot time of a machine with much
 * memory. Newer kernels change the slot once for each table. Each case maps a
 * range into a private mm, and compares
 *
 * - every entry of every table with a reference model. For each entry the model
 *   says whether it is empty, a table, a page or a block, whether it is
 *   contiguous, and which attributes it has. So the test also finds mappings
 *   outside of the range;
 * - the changes of the fixmap (a kprobe records them) with the tables: each
 *   table is mapped once and unmapped once, while the table above it is mapped,
 *   and no slot is used twice at a time.
 *
 * The tables are empty before each call; suite linear_map_again has calls that
 * find entries. No test accesses the mapped memory, so the memory does not have
 * to exist. Not covered: the linear map itself (linear_map_booted), its
 * splitting (linear_map_split), failing allocations (linear_map_plug).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map
 */

#include <kunit/test.h>

#include "linear_map.h"

/*
 * Sizes at which a page, a contiguous block, a table or a block of the next
 * level can begin or end. They depend on the page size. With 4K pages
 * LMAP_PTE_TABLE is 2M, CONT_PMD_SIZE 32M and LMAP_PMD_TABLE 1G. With 64K pages
 * they are 512M, 16G and 4T. Ranges as large as a table of PMDs are then mapped
 * by blocks, since pages would need too many tables.
 */
static const struct lmap_range lmap_ranges[] = {
	/* one page, anywhere in a table */
	{ "one page", 3 * PAGE_SIZE, 3 * PAGE_SIZE, PAGE_SIZE, true },
	{ "last page of a table", LMAP_PTE_TABLE - PAGE_SIZE,
	  LMAP_PTE_TABLE - PAGE_SIZE, PAGE_SIZE, true },
	/* a full table, once by pages and once by contiguous pages */
	{ "table by pages", 0, 0, LMAP_PTE_TABLE, true },
	{ "table, physically out of step with blocks", 0, CONT_PTE_SIZE,
	  LMAP_PTE_TABLE, false },
	{ "64 tables by pages", 0, 0, 64 * LMAP_PTE_TABLE, true },
#ifdef CONFIG_ARM64_4K_PAGES
	{ "table of PMDs by pages", 0, 0, LMAP_PMD_TABLE, true },
#endif
	/* blocks */
	{ "block", 0, 0, PMD_SIZE, false },
	{ "block, phys misaligned", 0, PAGE_SIZE, PMD_SIZE, false },
	{ "block, virt misaligned", PAGE_SIZE, 0, PMD_SIZE - PAGE_SIZE,
	  false },
	{ "block of the level above", 0, 0, LMAP_PUD_BLOCK, false },
	/* contiguous pages where both addresses are aligned */
	{ "contiguous block", 5 * CONT_PTE_SIZE, 5 * CONT_PTE_SIZE,
	  CONT_PTE_SIZE, false },
	{ "contiguous block but one page", CONT_PTE_SIZE, CONT_PTE_SIZE,
	  CONT_PTE_SIZE - PAGE_SIZE, false },
	{ "contiguous block, phys misaligned", 0, PAGE_SIZE, CONT_PTE_SIZE,
	  false },
	{ "contiguous block, virt misaligned", PAGE_SIZE, 0, CONT_PTE_SIZE,
	  false },
	{ "from and to the middle of contiguous blocks",
	  CONT_PTE_SIZE + 5 * PAGE_SIZE, CONT_PTE_SIZE + 5 * PAGE_SIZE,
	  3 * CONT_PTE_SIZE, false },
	/* ends of tables */
	{ "two tables, by pages", LMAP_PTE_TABLE - 2 * PAGE_SIZE,
	  LMAP_PTE_TABLE - 2 * PAGE_SIZE, 5 * PAGE_SIZE, true },
	{ "two tables, contiguous", LMAP_PTE_TABLE - CONT_PTE_SIZE,
	  LMAP_PTE_TABLE - CONT_PTE_SIZE, 2 * CONT_PTE_SIZE, false },
	{ "last contiguous block of a table", LMAP_PTE_TABLE - CONT_PTE_SIZE,
	  LMAP_PTE_TABLE - CONT_PTE_SIZE, CONT_PTE_SIZE, false },
	/* ends of tables of the next level */
	{ "two tables of PMDs, by pages", LMAP_PMD_TABLE - 2 * PAGE_SIZE,
	  LMAP_PMD_TABLE - 2 * PAGE_SIZE, 5 * PAGE_SIZE, true },
	{ "two tables of PMDs, blocks", LMAP_PMD_TABLE - PMD_SIZE,
	  LMAP_PMD_TABLE - PMD_SIZE, 2 * PMD_SIZE, false },
	/* contiguous blocks */
	{ "contiguous blocks", CONT_PMD_SIZE, CONT_PMD_SIZE, CONT_PMD_SIZE,
	  false },
	{ "contiguous blocks but one", CONT_PMD_SIZE, CONT_PMD_SIZE,
	  CONT_PMD_SIZE - PMD_SIZE, false },
	{ "contiguous blocks, phys misaligned", 0, PMD_SIZE, CONT_PMD_SIZE,
	  false },
	{ "contiguous blocks, virt misaligned", PMD_SIZE, 0, CONT_PMD_SIZE,
	  false },
	/* pages, blocks and pages */
	{ "unaligned head and tail", CONT_PMD_SIZE - PMD_SIZE - 3 * PAGE_SIZE,
	  CONT_PMD_SIZE - PMD_SIZE - 3 * PAGE_SIZE,
	  2 * CONT_PMD_SIZE + PMD_SIZE + 7 * PAGE_SIZE, false },
#if CONFIG_ARM64_PA_BITS > 48
	/* address bits that have another place in an entry */
	{ "physical address of 51 bits", LMAP_PTE_TABLE - CONT_PTE_SIZE,
	  BIT(50) + LMAP_PTE_TABLE - CONT_PTE_SIZE, 2 * CONT_PTE_SIZE, false },
#endif
};

KUNIT_ARRAY_PARAM_DESC(lmap_range, lmap_ranges, desc);

/*
 * create_pgd_mapping() is called once for each range. Every entry of every
 * table agrees with the model. This includes entries for tables, any folded
 * levels, and large addresses. Each table, even a new table, is mapped in the
 * fixmap once and unmapped once, and these calls nest properly.
 */
static void __init create_pgd_mapping_range(struct kunit *test)
{
	struct lmap_fixture *f = test->priv;

	f->range = test->param_value;
	lmap_create(f, f->range);
	lmap_check(f);
	lmap_check_fixmap(f);
	PGTABLE_KUNIT_DID(test, f->fixmap->nr, "changes of the fixmap");
}

static struct kunit_case __refdata linear_map_cases[] = {
	KUNIT_CASE_PARAM(create_pgd_mapping_range, lmap_range_gen_params),
	{}
};

static struct kunit_suite linear_map_suite = {
	.name = "linear_map",
	.suite_init = pgtable_kunit_suite_init,
	.init = lmap_init,
	.test_cases = linear_map_cases,
};

kunit_test_init_section_suites(&linear_map_suite);

MODULE_DESCRIPTION("KUnit tests for the builder of kernel page tables");
MODULE_LICENSE("GPL");
