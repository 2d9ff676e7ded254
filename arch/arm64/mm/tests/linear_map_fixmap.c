// SPDX-License-Identifier: GPL-2.0
/*
 * Recorder of the fixmap slots for page tables. arm64 uses these slots because
 * the linear map may not contain a table yet.
 */

#include <linux/kprobes.h>
#include <linux/slab.h>
#include <asm/fixmap.h>

#include "linear_map.h"

static struct lmap_fixmap *fixmap_record;

/* __set_fixmap(slot, phys, prot): no prot means clear */
static int fixmap_change(struct kprobe *probe, struct pt_regs *regs)
{
	struct lmap_fixmap *fixmap = fixmap_record;
	unsigned int slot = regs_get_kernel_argument(regs, 0);

	if (slot < FIX_PTE || slot > FIX_PGD)
		return 0;
	if (fixmap->nr < LMAP_FIXMAPS) {
		fixmap->change[fixmap->nr].slot = slot;
		fixmap->change[fixmap->nr].phys =
			regs_get_kernel_argument(regs, 2) ?
			regs_get_kernel_argument(regs, 1) : 0;
	}
	fixmap->nr++;
	return 0;
}

NOKPROBE_SYMBOL(fixmap_change);

static struct kprobe fixmap_probe;

static void fixmap_stop(void *data)
{
	unregister_kprobe(&fixmap_probe);
}

/**
 * lmap_fixmap_record() - record the fixmap slots of page tables
 * @test: the test that owns the recorder
 *
 * To start over, set the count of the record to 0.
 */
struct lmap_fixmap *lmap_fixmap_record(struct kunit *test)
{
	fixmap_record = kunit_kzalloc(test, sizeof(*fixmap_record), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fixmap_record);

	fixmap_probe = (struct kprobe) {
		.symbol_name = "__set_fixmap",
		.pre_handler = fixmap_change,
	};
	KUNIT_ASSERT_EQ(test, 0, register_kprobe(&fixmap_probe));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fixmap_stop,
							   NULL));
	return fixmap_record;
}

/**
 * lmap_free_table() - free a table that create_pgd_mapping() made
 * @table: the table
 * @shift: log2 of the size that one of its entries maps
 */
void lmap_free_table(void *table, unsigned int shift)
{
	pgtable_kunit_table_dtor_free(virt_to_ptdesc(table), shift);
}
