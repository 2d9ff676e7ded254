// SPDX-License-Identifier: GPL-2.0
/*
 * The builder of the kernel's own page tables, if entries exist already.
 *
 * The kernel maps parts of the linear map again to change their permissions. It
 * also adds memory later, next to memory that already has tables. Each case
 * makes two or more calls of create_pgd_mapping() into a private mm, or one
 * call with odd arguments. It compares the entries and the changes of the
 * fixmap with the model, as suite linear_map does for single calls. Not
 * covered: calls that are a BUG.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map_again
 */

#include <kunit/test.h>

#include "linear_map.h"

/*
 * A second call finds the tables of the first one. It maps each of them once,
 * keeps the entries of the first call, and adds its own. The first call maps
 * two pages of a table, and the second call maps the next three pages. The
 * result is the same as for one range.
 */
static void __init create_pgd_mapping_existing_table(struct kunit *test)
{
	static const struct lmap_range both = {
		"two calls", 0, 0, 5 * PAGE_SIZE, true
	};
	struct lmap_range part = both;
	struct lmap_fixture *f = test->priv;

	f->range = &both;
	part.size = 2 * PAGE_SIZE;
	lmap_create(f, &part);

	f->fixmap->nr = 0;
	part.virt = part.size;
	part.phys = part.size;
	part.size = both.size - part.size;
	lmap_create(f, &part);

	lmap_check(f);
	lmap_check_fixmap(f);
}

/*
 * A second call for the same range changes nothing, and a call with other
 * permissions replaces the old permissions. In this way the kernel makes text
 * and data read-only. The range crosses the end of a table, so both calls use
 * both code paths that find a table.
 */
static void __init create_pgd_mapping_same_range(struct kunit *test)
{
	static const struct lmap_range range = {
		"again", LMAP_PTE_TABLE - 2 * PAGE_SIZE, LMAP_PTE_TABLE - 2 * PAGE_SIZE,
		5 * PAGE_SIZE, true
	};
	struct lmap_fixture *f = test->priv;

	f->range = &range;
	lmap_create(f, &range);
	lmap_create(f, &range);
	f->fixmap->nr = 0;
	f->prot = PAGE_KERNEL_RO;
	lmap_create(f, &range);

	lmap_check(f);
	lmap_check_fixmap(f);
}

/* Map @page by pages, and then @block around it by blocks. */
static void __init again_over_table(struct kunit *test,
				    const struct lmap_range *page,
				    const struct lmap_range *block)
{
	struct lmap_fixture *f = test->priv;

	if (!PGTABLE_KUNIT_KEEPS_TABLES)
		kunit_skip(test, "needs create_pgd_mapping() to keep tables");

	f->before = page;
	f->range = block;
	lmap_create(f, page);
	f->fixmap->nr = 0;
	lmap_create(f, block);

	lmap_check(f);
	lmap_check_fixmap(f);
}

/*
 * A call maps a range by blocks where a table exists. The table stays, and the
 * contiguous block around an existing page gets no contiguous bit. Without a
 * TLB invalidation, a block must not replace a live entry, and a live entry
 * must not become part of a contiguous block.
 */
static void __init create_pgd_mapping_block_over_table(struct kunit *test)
{
	static const struct lmap_range page = {
		"page", 3 * CONT_PTE_SIZE + 5 * PAGE_SIZE,
		3 * CONT_PTE_SIZE + 5 * PAGE_SIZE, PAGE_SIZE, true
	};
	static const struct lmap_range block = {
		"block over a table", 0, 0, PMD_SIZE, false
	};

	again_over_table(test, &page, &block);
}

/*
 * The same for a contiguous block of PMDs: one PMD, which is not the first, is
 * already a table. The other blocks lose the contiguous bit, since the CPU may
 * use all of a contiguous block as one entry.
 */
static void __init create_pgd_mapping_blocks_beside_table(struct kunit *test)
{
	static const struct lmap_range page = {
		"page", PMD_SIZE + 3 * CONT_PTE_SIZE + 5 * PAGE_SIZE,
		PMD_SIZE + 3 * CONT_PTE_SIZE + 5 * PAGE_SIZE, PAGE_SIZE, true
	};
	static const struct lmap_range block = {
		"blocks beside a table", 0, 0, CONT_PMD_SIZE, false
	};

	again_over_table(test, &page, &block);
}

/*
 * Addresses inside a page are rounded so that every page in the range is
 * mapped: the size of one page from byte 123 on needs two pages.
 */
static void __init create_pgd_mapping_unaligned(struct kunit *test)
{
	static const struct lmap_range touched = {
		"unaligned", CONT_PTE_SIZE, CONT_PTE_SIZE, 2 * PAGE_SIZE, true
	};
	struct lmap_range odd = touched;
	struct lmap_fixture *f = test->priv;

	f->range = &touched;
	odd.virt += 123;
	odd.phys += 123;
	odd.size = PAGE_SIZE;
	lmap_create(f, &odd);

	lmap_check(f);
	lmap_check_fixmap(f);
}

/*
 * The allocator does not clear a page for a table, so the builder must clear
 * it. Otherwise old content would become entries. The allocator reuses the
 * pages that were freed last, so the case fills such pages with words that look
 * like entries.
 */
static void __init create_pgd_mapping_dirty_pages(struct kunit *test)
{
	static const struct lmap_range range = {
		"dirty pages", LMAP_PTE_TABLE - PAGE_SIZE, LMAP_PTE_TABLE - PAGE_SIZE,
		2 * PAGE_SIZE, true
	};
	struct lmap_fixture *f = test->priv;
	struct page *page[2 * LMAP_MAX_LEVELS];
	unsigned int i, j, dirty = 0;

	for (i = 0; i < ARRAY_SIZE(page); i++) {
		page[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, page[i]);
	}
	for (i = 0; i < ARRAY_SIZE(page); i++) {
		memset(page_address(page[i]), 0xa7, PAGE_SIZE);
		__free_page(page[i]);
	}
	f->range = &range;
	lmap_create(f, &range);

	for (i = 0; i < f->fixmap->nr; i++)
		for (j = 0; j < ARRAY_SIZE(page); j++)
			dirty += ALIGN_DOWN(f->fixmap->change[i].phys,
					    PAGE_SIZE) == page_to_phys(page[j]);
	KUNIT_EXPECT_GT_MSG(test, dirty, 0, "no table was in such a page");
	lmap_check(f);
	lmap_check_fixmap(f);
}

static struct kunit_case __refdata linear_map_again_cases[] = {
	KUNIT_CASE(create_pgd_mapping_existing_table),
	KUNIT_CASE(create_pgd_mapping_same_range),
	KUNIT_CASE(create_pgd_mapping_block_over_table),
	KUNIT_CASE(create_pgd_mapping_blocks_beside_table),
	KUNIT_CASE(create_pgd_mapping_unaligned),
	KUNIT_CASE(create_pgd_mapping_dirty_pages),
	{}
};

static struct kunit_suite linear_map_again_suite = {
	.name = "linear_map_again",
	.suite_init = pgtable_kunit_suite_init,
	.init = lmap_init,
	.test_cases = linear_map_again_cases,
};

kunit_test_init_section_suites(&linear_map_again_suite);

MODULE_DESCRIPTION("KUnit tests for the builder of kernel page tables: again");
MODULE_LICENSE("GPL");
