// SPDX-License-Identifier: GPL-2.0
/*
 * Recorder of TLB invalidations.
 */

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "pgtable_kunit.h"

static void tlb_invalidate(struct mmu_notifier *notifier, struct mm_struct *mm,
			   unsigned long start, unsigned long end)
{
	struct pgtable_kunit_tlb *tlb = container_of(notifier, typeof(*tlb),
						     notifier);

	if (tlb->nr < PGTABLE_KUNIT_FLUSHES) {
		tlb->range[tlb->nr].start = start;
		tlb->range[tlb->nr].end = end;
	}
	tlb->nr++;
	if (tlb->look)
		tlb->look(tlb->look_data);
}

static const struct mmu_notifier_ops tlb_ops = {
	.arch_invalidate_secondary_tlbs = tlb_invalidate,
};

static void tlb_stop(void *data)
{
	struct pgtable_kunit_tlb *tlb = data;

	mmu_notifier_unregister(&tlb->notifier, tlb->notifier.mm);
}

/**
 * pgtable_kunit_tlb_record() - record the TLB invalidations of an mm
 * @test: the test that owns the recorder
 * @mm: the mm; the test must keep a reference
 *
 * To start over, set the count of the record to 0.
 */
struct pgtable_kunit_tlb *pgtable_kunit_tlb_record(struct kunit *test,
						   struct mm_struct *mm)
{
	struct pgtable_kunit_tlb *tlb;

	tlb = kunit_kzalloc(test, sizeof(*tlb), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tlb);
	tlb->notifier.ops = &tlb_ops;
	KUNIT_ASSERT_EQ(test, 0, mmu_notifier_register(&tlb->notifier, mm));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, tlb_stop, tlb));
	return tlb;
}

/**
 * pgtable_kunit_tlb_stop() - end a record before the test ends
 * @test: the test
 * @tlb: the record
 */
void pgtable_kunit_tlb_stop(struct kunit *test, struct pgtable_kunit_tlb *tlb)
{
	kunit_release_action(test, tlb_stop, tlb);
}
