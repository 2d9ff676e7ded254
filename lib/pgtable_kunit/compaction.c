// SPDX-License-Identifier: GPL-2.0
/* Compaction, which moves pages while a test checks them. */

#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/swap.h>

/* In older kernels, other headers must come before this one. */
#include <linux/compaction.h>

#include "pgtable_kunit.h"

/*
 * After boot the kernel may have freed the code that starts the compaction
 * thread. Then the test could not restart the thread, so it does not stop it.
 */
static bool compaction_stoppable(void)
{
	return IS_ENABLED(CONFIG_MEMORY_HOTPLUG) ||
	       system_state < SYSTEM_FREEING_INITMEM;
}

static void __ref compaction_on(void *unused)
{
	int nid;

	for_each_node_state(nid, N_MEMORY)
		kcompactd_run(nid);
}

/**
 * pgtable_kunit_compaction_off() - stop moving pages while a test runs
 * @test: the test; at its end compaction starts again
 *
 * With pages of 64K a huge page is half of the memory. Then compaction runs
 * most of the time, and its counters change only at the end of a zone.
 */
void __ref pgtable_kunit_compaction_off(struct kunit *test)
{
	int nid;

	if (!compaction_stoppable())
		return;
	for_each_node_state(nid, N_MEMORY)
		kcompactd_stop(nid);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, compaction_on,
							   NULL));
}
