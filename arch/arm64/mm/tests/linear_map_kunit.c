// SPDX-License-Identifier: GPL-2.0
/*
 * The builder of the kernel's own page tables.
 *
 * create_pgd_mapping() runs the code that makes the linear map. It reaches each
 * table through a slot of the fixmap, and every change of a slot costs a TLB
 * invalidation. It used to change the slot once for every contiguous block,
 * which made up most of the time to boot a machine with much memory; now it is
 * once for each table. Each case maps a range into a private mm, and compares
 *
 *  - every entry of every table with a reference model, which says for an
 *    entry alone what it should be: nothing, a table, or a page or block,
 *    contiguous or not; so that nothing outside of the range is mapped either;
 *  - the changes of the fixmap, which a kprobe records, with the tables: each
 *    is mapped once and unmapped once, inside the time that the table above
 *    is, and no slot is used twice at a time.
 *
 * The addresses that are mapped are never accessed, so they need not exist.
 * Not covered: the linear map itself, its splitting, and attributes.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	linear_map
 */

#include <kunit/test.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <asm/fixmap.h>
#include <asm/mmu.h>

#include "pgtable_kunit.h"

#define MAX_LEVELS	5

/* One level of the page tables that the kernel has at run time. */
struct map_level {
	unsigned int shift;	/* log2 of the size that one entry maps */
	unsigned int slot;	/* of the fixmap */
	unsigned long block;	/* entries that map memory are this large, or 0 */
	unsigned long cont;	/* and contiguous ones form blocks this large */
};

/* A call of create_pgd_mapping(), relative to the start of the user space. */
struct map_range {
	const char *desc;
	unsigned long virt;
	unsigned long phys;
	unsigned long size;
	bool pages_only;
};

struct map_fixture {
	struct kunit *test;
	struct mm_struct *mm;
	struct pgtable_kunit_fixmap *fixmap;
	struct map_level level[MAX_LEVELS];	/* from the top */
	unsigned int levels;
	unsigned int tables[MAX_LEVELS];	/* that exist, for each level */
	const struct map_range *range;
	unsigned int failed;
};

/*
 * Ranges are relative to an address that a table of PMDs begins at, and the
 * next one too, so that a range may cross from one to the other.
 */
#define VIRT		(2UL << ARM64_HW_PGTABLE_LEVEL_SHIFT(1))
#define PHYS		VIRT
#define PUD_BLOCK	BIT(ARM64_HW_PGTABLE_LEVEL_SHIFT(1))
#define PMD_TABLE	PUD_BLOCK
#define PTE_TABLE	PMD_SIZE

static void map_add_level(struct map_fixture *f, unsigned int shift,
			  unsigned int slot, unsigned long block,
			  unsigned long cont)
{
	f->level[f->levels++] = (struct map_level){
		.shift = shift, .slot = slot, .block = block, .cont = cont,
	};
}

/* The levels, without those that are folded. */
static void map_levels(struct map_fixture *f)
{
	unsigned int levels = CONFIG_PGTABLE_LEVELS;

#if CONFIG_PGTABLE_LEVELS > 4
	levels -= !pgtable_l5_enabled();
#elif CONFIG_PGTABLE_LEVELS > 3
	levels -= !pgtable_l4_enabled();
#endif
	if (levels > 4)
		map_add_level(f, ARM64_HW_PGTABLE_LEVEL_SHIFT(-1), FIX_PGD, 0, 0);
	if (levels > 3)
		map_add_level(f, ARM64_HW_PGTABLE_LEVEL_SHIFT(0), FIX_P4D, 0, 0);
	if (levels > 2)
		map_add_level(f, ARM64_HW_PGTABLE_LEVEL_SHIFT(1), FIX_PUD,
			      pud_sect_supported() ? PUD_BLOCK : 0, 0);
	map_add_level(f, PMD_SHIFT, FIX_PMD, PMD_SIZE, CONT_PMD_SIZE);
	map_add_level(f, PAGE_SHIFT, FIX_PTE, PAGE_SIZE, CONT_PTE_SIZE);
}

/* Is the aligned area of that size around @virt mapped, and phys aligned? */
static bool map_covers(const struct map_range *range, unsigned long virt,
		       unsigned long size)
{
	unsigned long start = VIRT + range->virt;

	virt = ALIGN_DOWN(virt, size);
	return size && virt >= start && virt + size <= start + range->size &&
	       IS_ALIGNED(range->phys - range->virt, size);
}

/* The model: what maps @virt at that level; a table is only "a table". */
static u64 map_want(struct map_fixture *f, unsigned int level,
		    unsigned long virt)
{
	const struct map_level *l = &f->level[level];
	const struct map_range *range = f->range;
	unsigned long start = VIRT + range->virt;
	unsigned long size = 1UL << l->shift;
	pgprot_t prot = PAGE_KERNEL;
	phys_addr_t phys;
	bool page = l->shift == PAGE_SHIFT;

	if (virt + size <= start || virt >= start + range->size)
		return 0;
	if (!page && (range->pages_only || !map_covers(range, virt, l->block)))
		return PMD_TYPE_TABLE;

	if (!range->pages_only && map_covers(range, virt, l->cont))
		prot = __pgprot(pgprot_val(prot) | PTE_CONT);
	if (!page)
		prot = mk_pmd_sect_prot(prot);
	phys = PHYS + range->phys + virt - start;
	return pte_val(pfn_pte(__phys_to_pfn(phys), prot));
}

/*
 * Compare all entries of a table with the model, count the tables, and free
 * those below.
 */
static void map_check_table(struct map_fixture *f, unsigned int level,
			    u64 *table, unsigned long virt, unsigned int nr)
{
	const struct map_level *l = &f->level[level];
	unsigned int i;

	for (i = 0; i < nr; i++, virt += 1UL << l->shift) {
		u64 want = map_want(f, level, virt), got = table[i];
		bool is_table = l->shift != PAGE_SHIFT &&
				(got & PMD_TYPE_MASK) == PMD_TYPE_TABLE;
		u64 *next = NULL;

		if (is_table) {
			next = phys_to_virt(__pte_to_phys(__pte(got)));
			got = PMD_TYPE_TABLE;
		}
		if (got != want && f->failed++ < PGTABLE_KUNIT_ENOUGH)
			KUNIT_FAIL(f->test,
				   "%s: entry %u for %lx of size %lx is %016llx, expected %016llx",
				   f->range->desc, i, virt - VIRT,
				   1UL << l->shift, table[i], want);
		if (!is_table)
			continue;

		map_check_table(f, level + 1, next, virt, PTRS_PER_PTE);
		f->tables[level + 1]++;
		table[i] = 0;
		pgtable_kunit_free_table(next, f->level[level + 1].shift);
	}
}

static void map_free(void *data)
{
	mmput(data);
}

/*
 * The changes of slots: a stack of slots, from the highest table downwards.
 * The tables of each level that were mapped, and how often, must agree with
 * the tables that exist.
 */
static void map_check_fixmap(struct map_fixture *f)
{
	unsigned int sets[FIX_PGD - FIX_PTE + 1] = {}, open[MAX_LEVELS];
	struct pgtable_kunit_fixmap *fixmap = f->fixmap;
	struct kunit *test = f->test;
	unsigned int depth = 0, i;

	KUNIT_ASSERT_LE_MSG(test, fixmap->nr, PGTABLE_KUNIT_FIXMAPS,
			    "%s: %u changes of the fixmap, %u tables of PTEs",
			    f->range->desc, fixmap->nr,
			    f->tables[f->levels - 1]);

	for (i = 0; i < fixmap->nr; i++) {
		unsigned int slot = fixmap->change[i].slot;

		if (!fixmap->change[i].phys) {
			KUNIT_ASSERT_TRUE_MSG(test,
					      depth && open[depth - 1] == slot,
					      "%s: change %u clears slot %u, which is not the last one set",
					      f->range->desc, i, slot);
			depth--;
			continue;
		}
		/* Slots are numbered from the PTEs upwards. */
		KUNIT_ASSERT_TRUE_MSG(test, depth < MAX_LEVELS &&
				      (!depth || slot < open[depth - 1]),
				      "%s: change %u sets slot %u inside of slot %u",
				      f->range->desc, i, slot,
				      depth ? open[depth - 1] : 0);
		open[depth++] = slot;
		sets[slot - FIX_PTE]++;
	}
	KUNIT_EXPECT_EQ_MSG(test, depth, 0, "%s: slots that stay set",
			    f->range->desc);

	/* The top level is part of the mm and needs no slot. */
	for (i = 1; i < f->levels; i++)
		KUNIT_EXPECT_EQ_MSG(test, sets[f->level[i].slot - FIX_PTE],
				    f->tables[i],
				    "%s: slot changes for %u tables of %lu byte entries: %u each",
				    f->range->desc, f->tables[i],
				    1UL << f->level[i].shift,
				    f->tables[i] ?
				    sets[f->level[i].slot - FIX_PTE] /
				    f->tables[i] : 0);
}

/*
 * What a page, a contiguous block, a table or a block of the next level can
 * begin or end with. Sizes follow from the page size: with 4K pages, PTE_TABLE
 * is 2M, CONT_PMD_SIZE 32M and PMD_TABLE 1G; with 64K pages 512M, 16G and 4T,
 * which would need as many tables as entries are different, so that ranges that
 * are as large as a table of PMDs are mapped by its blocks.
 */
static const struct map_range map_ranges[] = {
	/* [linear map 1] one page, anywhere in a table */
	{ "one page", 3 * PAGE_SIZE, 3 * PAGE_SIZE, PAGE_SIZE, true },
	{ "last page of a table", PTE_TABLE - PAGE_SIZE,
	  PTE_TABLE - PAGE_SIZE, PAGE_SIZE, true },
	/* [2, 18] a full table, once by pages and once with contiguous ones */
	{ "table by pages", 0, 0, PTE_TABLE, true },
	{ "table, physically out of step with blocks", 0, CONT_PTE_SIZE,
	  PTE_TABLE, false },
	{ "64 tables by pages", 0, 0, 64 * PTE_TABLE, true },
	/* [3] blocks */
	{ "block", 0, 0, PMD_SIZE, false },
	{ "block, phys misaligned", 0, PAGE_SIZE, PMD_SIZE, false },
	{ "block, virt misaligned", PAGE_SIZE, 0, PMD_SIZE - PAGE_SIZE,
	  false },
	{ "block of the level above", 0, 0, PUD_BLOCK, false },
	/* [4-6] contiguous pages where both addresses are aligned */
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
	/* [7, 8] ends of tables */
	{ "two tables, by pages", PTE_TABLE - 2 * PAGE_SIZE,
	  PTE_TABLE - 2 * PAGE_SIZE, 5 * PAGE_SIZE, true },
	{ "two tables, contiguous", PTE_TABLE - CONT_PTE_SIZE,
	  PTE_TABLE - CONT_PTE_SIZE, 2 * CONT_PTE_SIZE, false },
	{ "last contiguous block of a table", PTE_TABLE - CONT_PTE_SIZE,
	  PTE_TABLE - CONT_PTE_SIZE, CONT_PTE_SIZE, false },
	/* [9] ends of tables of the next level */
	{ "two tables of PMDs, by pages", PMD_TABLE - 2 * PAGE_SIZE,
	  PMD_TABLE - 2 * PAGE_SIZE, 5 * PAGE_SIZE, true },
	{ "two tables of PMDs, blocks", PMD_TABLE - PMD_SIZE,
	  PMD_TABLE - PMD_SIZE, 2 * PMD_SIZE, false },
	/* [10] contiguous blocks */
	{ "contiguous blocks", CONT_PMD_SIZE, CONT_PMD_SIZE, CONT_PMD_SIZE,
	  false },
	{ "contiguous blocks but one", CONT_PMD_SIZE, CONT_PMD_SIZE,
	  CONT_PMD_SIZE - PMD_SIZE, false },
	{ "contiguous blocks, phys misaligned", 0, PMD_SIZE, CONT_PMD_SIZE,
	  false },
	{ "contiguous blocks, virt misaligned", PMD_SIZE, 0, CONT_PMD_SIZE,
	  false },
	/* [11] pages, blocks and pages */
	{ "unaligned head and tail", CONT_PMD_SIZE - PMD_SIZE - 3 * PAGE_SIZE,
	  CONT_PMD_SIZE - PMD_SIZE - 3 * PAGE_SIZE,
	  2 * CONT_PMD_SIZE + PMD_SIZE + 7 * PAGE_SIZE, false },
};

KUNIT_ARRAY_PARAM_DESC(map_range, map_ranges, desc);

static void __init map_create(struct map_fixture *f,
			      const struct map_range *range)
{
	create_pgd_mapping(f->mm, PHYS + range->phys, VIRT + range->virt,
			   range->size, PAGE_KERNEL, range->pages_only);
}

/* Look at all tables, and free them. */
static void map_check(struct map_fixture *f)
{
	/* Where the top level is folded at run time, the next takes its page. */
	bool folded = f->level[0].shift != PGDIR_SHIFT;

	memset(f->tables, 0, sizeof(f->tables));
	map_check_table(f, 0, (u64 *)f->mm->pgd, 0,
			folded ? PTRS_PER_PTE : PTRS_PER_PGD);
}

/*
 * One call, for each range: entries, tables, and changes of the fixmap [linear
 * map 1-4, 6-11, 17, 18].
 */
static void __init create_pgd_mapping_range(struct kunit *test)
{
	struct map_fixture *f = test->priv;

	f->range = test->param_value;
	map_create(f, f->range);
	map_check(f);
	map_check_fixmap(f);
	kunit_info(test, "%u changes of the fixmap, %u tables of PTEs\n",
		   f->fixmap->nr, f->tables[f->levels - 1]);
}

/*
 * A second call that finds the tables there maps them once each again, leaves
 * the entries of the first as they are, and adds its own [12]. Behind the
 * first two pages of a table come three more: together they are one range.
 */
static void __init create_pgd_mapping_existing_table(struct kunit *test)
{
	static const struct map_range both = {
		"two calls", 0, 0, 5 * PAGE_SIZE, true
	};
	struct map_range part = both;
	struct map_fixture *f = test->priv;

	f->range = &both;
	part.size = 2 * PAGE_SIZE;
	map_create(f, &part);

	f->fixmap->nr = 0;
	part.virt = part.size;
	part.phys = part.size;
	part.size = both.size - part.size;
	map_create(f, &part);

	map_check(f);
	map_check_fixmap(f);
}

static struct kunit_suite linear_map_suite;

static int linear_map_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &linear_map_suite);
	struct map_fixture *f;

	if (err)
		return err;
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	test->priv = f;
	map_levels(f);

	f->mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, f->mm);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, map_free, f->mm));
	f->fixmap = pgtable_kunit_fixmap_record(test);
	return 0;
}

static struct kunit_case __refdata linear_map_cases[] = {
	KUNIT_CASE_PARAM(create_pgd_mapping_range, map_range_gen_params),
	KUNIT_CASE(create_pgd_mapping_existing_table),
	{}
};

static struct kunit_suite linear_map_suite = {
	.name = "linear_map",
	.init = linear_map_init,
	.test_cases = linear_map_cases,
};

kunit_test_init_section_suites(&linear_map_suite);

MODULE_DESCRIPTION("KUnit tests for the builder of kernel page tables");
MODULE_LICENSE("GPL");
