// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel page tables in a private mm, and a model of them.
 */

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <asm/fixmap.h>
#include <asm/mmu.h>

#include "linear_map.h"

static void lmap_add_level(struct lmap_fixture *f, unsigned int shift,
			   unsigned int slot, unsigned long block,
			   unsigned long cont)
{
	f->level[f->levels++] = (struct lmap_level){
		.shift = shift, .slot = slot, .block = block, .cont = cont,
	};
}

/* Find the levels of the page tables, without folded levels. */
static void lmap_levels(struct lmap_fixture *f)
{
	unsigned int levels = CONFIG_PGTABLE_LEVELS;

#if CONFIG_PGTABLE_LEVELS > 4
	levels -= !pgtable_l5_enabled();
#elif CONFIG_PGTABLE_LEVELS > 3
	levels -= !pgtable_l4_enabled();
#endif
	if (levels > 4)
		lmap_add_level(f, ARM64_HW_PGTABLE_LEVEL_SHIFT(-1), FIX_PGD, 0, 0);
	if (levels > 3)
		lmap_add_level(f, ARM64_HW_PGTABLE_LEVEL_SHIFT(0), FIX_P4D, 0, 0);
	if (levels > 2)
		lmap_add_level(f, ARM64_HW_PGTABLE_LEVEL_SHIFT(1), FIX_PUD,
			       pud_sect_supported() ? LMAP_PUD_BLOCK : 0, 0);
	lmap_add_level(f, PMD_SHIFT, FIX_PMD, PMD_SIZE, CONT_PMD_SIZE);
	lmap_add_level(f, PAGE_SHIFT, FIX_PTE, PAGE_SIZE, CONT_PTE_SIZE);
}

/*
 * Whether the range maps all of the aligned area of this size around @virt, to
 * an aligned physical address.
 */
static bool lmap_covers(const struct lmap_range *range, unsigned long virt,
			unsigned long size)
{
	unsigned long start = LMAP_VIRT + range->virt;

	virt = ALIGN_DOWN(virt, size);
	return size && virt >= start && virt + size <= start + range->size &&
	       IS_ALIGNED(range->phys - range->virt, size);
}

/* Whether an earlier call mapped a page of the aligned area around @virt. */
static bool lmap_met(struct lmap_fixture *f, unsigned long virt,
		     unsigned long size)
{
	unsigned long start;

	if (!f->before)
		return false;
	start = LMAP_VIRT + f->before->virt;
	virt = ALIGN_DOWN(virt, size);
	return virt + size > start && virt < start + f->before->size;
}

/*
 * The model: the entry for @virt at this level. For a table it says only that
 * the table exists.
 */
static u64 lmap_want(struct lmap_fixture *f, unsigned int level,
		     unsigned long virt)
{
	const struct lmap_level *l = &f->level[level];
	const struct lmap_range *range = f->range;
	unsigned long start = LMAP_VIRT + range->virt;
	unsigned long size = 1UL << l->shift;
	pgprot_t prot = f->prot;
	phys_addr_t phys;
	bool page = l->shift == PAGE_SHIFT;

	if (virt + size <= start || virt >= start + range->size)
		return 0;
	if (!page && (range->pages_only || !lmap_covers(range, virt, l->block) ||
		      lmap_met(f, virt, l->block)))
		return PMD_TYPE_TABLE | PMD_TABLE_UXN | PGTABLE_KUNIT_TABLE_AF;

	if (!range->pages_only && lmap_covers(range, virt, l->cont) &&
	    !lmap_met(f, virt, l->cont))
		prot = __pgprot(pgprot_val(prot) | PTE_CONT);
	if (!page)
		prot = mk_pmd_sect_prot(prot);
	phys = LMAP_PHYS + range->phys + virt - start;
	return pte_val(pfn_pte(__phys_to_pfn(phys), prot));
}

/*
 * Compare all entries of a table with the model, count the tables, and free the
 * tables below it.
 */
static void lmap_check_table(struct lmap_fixture *f, unsigned int level,
			     u64 *table, unsigned long virt, unsigned int nr)
{
	const struct lmap_level *l = &f->level[level];
	unsigned int i;

	for (i = 0; i < nr; i++, virt += 1UL << l->shift) {
		u64 want = lmap_want(f, level, virt), got = table[i];
		bool is_table = l->shift != PAGE_SHIFT &&
				(got & PMD_TYPE_MASK) == PMD_TYPE_TABLE;
		u64 *next = NULL;

		if (is_table) {
			phys_addr_t phys = __pte_to_phys(__pte(got));

			next = phys_to_virt(phys);
			got ^= __phys_to_pte_val(phys);
		}
		if (got != want && f->failed++ < PGTABLE_KUNIT_ENOUGH)
			KUNIT_FAIL(f->test,
				   "%s: entry %u for %lx of size %lx is %016llx, expected %016llx",
				   f->range->desc, i, virt - LMAP_VIRT,
				   1UL << l->shift, table[i], want);
		if (!is_table)
			continue;

		lmap_check_table(f, level + 1, next, virt, PTRS_PER_PTE);
		f->tables[level + 1]++;
		table[i] = 0;
		lmap_free_table(next, f->level[level + 1].shift);
	}
}

static void lmap_free(void *data)
{
	mmput(data);
}

/**
 * lmap_check_fixmap() - compare the changes of the fixmap with the tables
 * @f: the fixture, after lmap_check()
 *
 * The slots that are set form a stack, from the highest table downwards. The
 * number of tables that were mapped at each level must agree with the number of
 * tables that exist.
 */
void lmap_check_fixmap(struct lmap_fixture *f)
{
	unsigned int sets[FIX_PGD - FIX_PTE + 1] = {}, open[LMAP_MAX_LEVELS];
	struct lmap_fixmap *fixmap = f->fixmap;
	struct kunit *test = f->test;
	unsigned int depth = 0, i;

	KUNIT_ASSERT_LE_MSG(test, fixmap->nr, LMAP_FIXMAPS,
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
		KUNIT_ASSERT_TRUE_MSG(test, depth < LMAP_MAX_LEVELS &&
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

/**
 * lmap_create() - map a range into the mm of the fixture
 * @f: the fixture; its @prot are the attributes
 * @range: the range
 */
void __init lmap_create(struct lmap_fixture *f,
			const struct lmap_range *range)
{
	create_pgd_mapping(f->mm, LMAP_PHYS + range->phys, LMAP_VIRT + range->virt,
			   range->size, f->prot, range->pages_only);
}

/**
 * lmap_check() - compare all tables with the model, count them, and free them
 * @f: the fixture; its @range is what all calls together must have mapped
 */
void lmap_check(struct lmap_fixture *f)
{
	/*
	 * If the top level is folded at run time, the next level uses its page.
	 */
	bool folded = f->level[0].shift != PGDIR_SHIFT;

	memset(f->tables, 0, sizeof(f->tables));
	lmap_check_table(f, 0, (u64 *)f->mm->pgd, 0,
			 folded ? PTRS_PER_PTE : PTRS_PER_PGD);
}

/**
 * lmap_init() - begin a case: an empty mm, and a record of the fixmap
 * @test: the test
 *
 * Return: 0 or -errno.
 */
int lmap_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);
	struct lmap_fixture *f;

	if (err)
		return err;
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->prot = PAGE_KERNEL;
	test->priv = f;
	lmap_levels(f);

	f->mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, f->mm);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, lmap_free, f->mm));
	f->fixmap = lmap_fixmap_record(test);
	return 0;
}
