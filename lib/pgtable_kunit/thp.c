// SPDX-License-Identifier: GPL-2.0
/*
 * The choice of folios for anonymous memory.
 */

#include <linux/mm.h>

#include "pgtable_kunit.h"

/* The settings for sizes of anonymous folios before the test. */
struct thp_settings {
	unsigned long flags;
	unsigned long always;
	unsigned long madvise;
	unsigned long inherit;
};

static void thp_restore(void *data)
{
	struct thp_settings *old = data;

	transparent_hugepage_flags = old->flags;
	huge_anon_orders_always = old->always;
	huge_anon_orders_madvise = old->madvise;
	huge_anon_orders_inherit = old->inherit;
}

/**
 * pgtable_kunit_thp_set() - choose which folios anonymous memory gets
 * @test: the test; at its end the settings are restored
 * @orders: a bit for each order
 * @zero_page: a read may map a huge zero page
 */
void pgtable_kunit_thp_set(struct kunit *test, unsigned long orders,
			   bool zero_page)
{
	struct thp_settings *old = kunit_kzalloc(test, sizeof(*old), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, old);
	*old = (struct thp_settings){
		transparent_hugepage_flags, huge_anon_orders_always,
		huge_anon_orders_madvise, huge_anon_orders_inherit,
	};
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, thp_restore, old));
	if (zero_page)
		set_bit(TRANSPARENT_HUGEPAGE_USE_ZERO_PAGE_FLAG,
			&transparent_hugepage_flags);
	else
		clear_bit(TRANSPARENT_HUGEPAGE_USE_ZERO_PAGE_FLAG,
			  &transparent_hugepage_flags);
	huge_anon_orders_always = orders;
	huge_anon_orders_madvise = 0;
	huge_anon_orders_inherit = 0;
}
