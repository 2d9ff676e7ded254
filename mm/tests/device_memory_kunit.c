// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a device shares with a process.
 *
 * A driver mirrors page tables with hmm_range_fault(), and moves memory to its
 * device with migrate_vma_setup(). Both functions fill an array of the driver
 * with one value for each page of a range. Each value must belong to its page,
 * and no value may be written past the end of the array.
 *
 * There is no device here: the test itself writes the entry of a huge page of
 * device memory. The entry refers to a folio of the test. Not covered: faults
 * on such memory, migration back from the device, ranges with more than one
 * VMA.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--kconfig_add=CONFIG_MEMORY_HOTPLUG=y \
 *	--kconfig_add=CONFIG_MEMORY_HOTREMOVE=y \
 *	--kconfig_add=CONFIG_ZONE_DEVICE=y \
 *	--kconfig_add=CONFIG_DEVICE_PRIVATE=y device_memory
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/hmm.h>
#include <linux/kthread.h>
#include <linux/memremap.h>
#include <linux/migrate.h>
#include <linux/mman.h>
#include <linux/mmu_context.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "pgtable_kunit.h"

static unsigned long device_mmap(struct kunit *test)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, 4 * PMD_SIZE,
					   PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	return ALIGN(addr, 2 * PMD_SIZE);
}

static const struct huge_kind {
	const char *desc;
	bool write;
} huge_kinds[] = {
	{ "read-only", false },
	{ "writable", true },
};

KUNIT_ARRAY_PARAM_DESC(huge_kind, huge_kinds, desc);

static bool mirror_invalidate(struct mmu_interval_notifier *mirror,
			      const struct mmu_notifier_range *range,
			      unsigned long seq)
{
	mmu_interval_set_seq(mirror, seq);
	return true;
}

static const struct mmu_interval_notifier_ops mirror_ops = {
	.invalidate = mirror_invalidate,
};

/**
 * struct mirror - a huge page of device memory, as a driver sees it
 * @notifier: reports to the driver that it must read the page tables again
 * @addr: where the huge page is mapped
 * @pfn: its first page frame
 * @flags: the flags that each value must have
 * @pgmap: the device
 * @values: the values that the driver gets
 */
struct mirror {
	struct mmu_interval_notifier notifier;
	unsigned long addr;
	unsigned long pfn;
	unsigned long flags;
	struct dev_pagemap pgmap;
	unsigned long values[PTRS_PER_PMD];
};

/*
 * Call hmm_range_fault() for a part of the huge page. Returns how many values
 * are wrong. @as_first counts the values that would be right for the start of
 * the huge page.
 */
static unsigned int mirror_part(struct kunit *test, struct mirror *m,
				unsigned int first, unsigned int nr,
				unsigned int *as_first)
{
	struct hmm_range range = {
		.notifier = &m->notifier,
		.start = m->addr + first * PAGE_SIZE,
		.end = m->addr + (first + nr) * PAGE_SIZE,
		.hmm_pfns = m->values,
		.dev_private_owner = m,
	};
	unsigned int i, wrong = 0;
	int ret;

	memset(m->values, 0, sizeof(m->values));
	range.notifier_seq = mmu_interval_read_begin(&m->notifier);
	mmap_read_lock(current->mm);
	ret = hmm_range_fault(&range);
	mmap_read_unlock(current->mm);
	KUNIT_EXPECT_EQ(test, ret, 0);

	for (i = 0; i < nr; i++) {
		if (m->values[i] == ((m->pfn + first + i) | m->flags))
			continue;
		if (m->values[i] == ((m->pfn + i) | m->flags))
			(*as_first)++;
		else if (!wrong)
			KUNIT_FAIL(test, "page %u and the %u pages after it: value %u is %016lx",
				   first, nr - 1, i, m->values[i]);
		wrong++;
	}
	return wrong;
}

static void mirror_remove(void *data)
{
	struct mirror *m = data;

	mmu_interval_notifier_remove(&m->notifier);
}

/*
 * A driver calls hmm_range_fault() for parts of a huge page of its own memory.
 * It must get the page frames of these parts. Known issue 20: it gets the page
 * frames at the beginning of the huge page.
 */
static void hmm_part_of_huge_page(struct kunit *test)
{
	static const unsigned int parts[][2] = {
		{ 0, PTRS_PER_PMD }, { 0, 1 }, { 1, 1 }, { 1, 16 }, { 16, 16 },
		{ PTRS_PER_PMD / 2, PTRS_PER_PMD / 2 }, { PTRS_PER_PMD - 1, 1 },
	};
	const struct huge_kind *kind = test->param_value;
	struct mirror *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	unsigned int i, wrong = 0, as_first = 0;
	struct mm_struct *mm;
	struct folio *folio;
	struct dev_pagemap *old;
	swp_entry_t entry;
	pmd_t *pmdp;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->addr = device_mmap(test);
	mm = current->mm;
	/* Populate the next page, so that there is a table of PMDs. */
	KUNIT_ASSERT_EQ(test, 0,
			put_user(1, (int __user *)(m->addr + PMD_SIZE)));
	pmdp = pmd_off(mm, m->addr);
	KUNIT_ASSERT_TRUE(test, pmd_none(READ_ONCE(*pmdp)));

	folio = pgtable_kunit_folio_alloc(test, HPAGE_PMD_ORDER);
	m->pfn = folio_pfn(folio);
	m->flags = HMM_PFN_VALID | (kind->write ? HMM_PFN_WRITE : 0) |
		   (unsigned long)HPAGE_PMD_ORDER << HMM_PFN_ORDER_SHIFT;
	m->pgmap.owner = m;
	KUNIT_ASSERT_EQ(test, 0,
			mmu_interval_notifier_insert(&m->notifier, mm, m->addr,
						     PMD_SIZE, &mirror_ops));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, mirror_remove, m));

	old = folio->pgmap;
	folio->pgmap = &m->pgmap;
	entry = kind->write ? make_writable_device_private_entry(m->pfn) :
			      make_readable_device_private_entry(m->pfn);
	set_pmd_at(mm, m->addr, pmdp, swp_entry_to_pmd(entry));

	KUNIT_EXPECT_EQ(test, 0, mirror_part(test, m, parts[0][0], parts[0][1],
					     &as_first));
	for (i = 1; i < ARRAY_SIZE(parts); i++)
		wrong += mirror_part(test, m, parts[i][0], parts[i][1],
				     &as_first);

	pmdp_huge_get_and_clear(mm, m->addr, pmdp);
	folio->pgmap = old;

	if (wrong && wrong == as_first)
		pgtable_kunit_known_issue(test, 20,
					  "%u values name pages at the beginning of the huge page",
					  wrong);
	else
		KUNIT_EXPECT_EQ(test, wrong, 0);
	if (!wrong)
		pgtable_kunit_stale_issue(test, 20);
}

#define COLLECT_ORDER		4
#define COLLECT_PAGES		BIT(COLLECT_ORDER)
#define COLLECT_UNUSED		0xdeadUL

static const struct collect_kind {
	const char *desc;
	unsigned int block;
} collect_kinds[] = {
	{ "first block", 0 },
	{ "second block", 1 },
	{ "last block", PTRS_PER_PTE / COLLECT_PAGES - 1 },
};

KUNIT_ARRAY_PARAM_DESC(collect_kind, collect_kinds, desc);

/**
 * struct emptier - a thread that frees memory while a folio in it is split
 * @notifier: is called when a folio is about to be unmapped
 * @mm: the address space
 * @addr: the memory, of %PMD_SIZE
 * @armed: free the memory at the next folio
 * @go: completed when the thread must free the memory
 * @done: completed when the thread has freed the memory
 * @times: how often the thread had to free the memory
 * @ret: what madvise() returned
 */
struct emptier {
	struct mmu_notifier notifier;
	struct mm_struct *mm;
	unsigned long addr;
	bool armed;
	struct completion go;
	struct completion done;
	unsigned int times;
	long ret;
};

static int emptier_thread(void *data)
{
	struct emptier *e = data;

	kthread_use_mm(e->mm);
	wait_for_completion(&e->go);
	if (e->times)
		e->ret = pgtable_kunit_syscall(madvise, e->addr, PMD_SIZE,
					       MADV_DONTNEED);
	kthread_unuse_mm(e->mm);
	complete(&e->done);
	return 0;
}

static int emptier_start(struct mmu_notifier *notifier,
			 const struct mmu_notifier_range *range)
{
	struct emptier *e = container_of(notifier, typeof(*e), notifier);

	/* migrate_vma_setup() itself sends MMU_NOTIFY_MIGRATE. */
	if (range->event == MMU_NOTIFY_CLEAR && xchg(&e->armed, false)) {
		e->times++;
		complete(&e->go);
		wait_for_completion(&e->done);
	}
	return 0;
}

static const struct mmu_notifier_ops emptier_ops = {
	.invalidate_range_start = emptier_start,
};

/*
 * Start the thread. It ends when it has freed the memory, or when
 * emptier_finish() stops it.
 */
static void emptier_prepare(struct kunit *test, struct emptier *e)
{
	struct task_struct *thread;

	init_completion(&e->go);
	init_completion(&e->done);
	e->notifier.ops = &emptier_ops;
	KUNIT_ASSERT_EQ(test, 0, mmu_notifier_register(&e->notifier, e->mm));
	thread = kthread_run(emptier_thread, e, "emptier");
	if (IS_ERR(thread)) {
		mmu_notifier_unregister(&e->notifier, e->mm);
		KUNIT_FAIL_AND_ABORT(test, "the thread did not start: %ld", PTR_ERR(thread));
	}
	e->armed = true;
}

static void emptier_finish(struct emptier *e)
{
	if (xchg(&e->armed, false)) {
		complete(&e->go);
		wait_for_completion(&e->done);
	}
	mmu_notifier_unregister(&e->notifier, e->mm);
}

/*
 * migrate_vma_setup() writes one value for each page of its range, even if
 * another thread frees all of the memory and its page table meanwhile. This can
 * happen while the function splits a large folio, because it does not hold the
 * lock of the table then. Known issue 19: it collects all pages of the table a
 * second time, past the end of the array.
 */
static void migrate_collect_once(struct kunit *test)
{
	const struct collect_kind *kind = test->param_value;
	unsigned int room = 2 * PTRS_PER_PTE, first, i, past = 0, holes = 0;
	struct emptier *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	struct migrate_vma args = {
		.flags = MIGRATE_VMA_SELECT_SYSTEM,
	};
	unsigned long addr;
	bool no_table;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, e);
	args.src = kunit_kcalloc(test, room, sizeof(*args.src), GFP_KERNEL);
	args.dst = kunit_kcalloc(test, room, sizeof(*args.dst), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, args.src);
	KUNIT_ASSERT_NOT_NULL(test, args.dst);
	for (i = PTRS_PER_PTE; i < room; i++)
		args.src[i] = COLLECT_UNUSED;

	pgtable_kunit_thp_set(test, BIT(COLLECT_ORDER), true);
	addr = device_mmap(test);
	first = kind->block * COLLECT_PAGES;
	KUNIT_ASSERT_EQ(test, 0,
			put_user(1, (int __user *)(addr + first * PAGE_SIZE)));
	/*
	 * Drop the references of the CPUs' LRU batches, which would prevent a
	 * split.
	 */
	lru_add_drain_all();

	e->mm = current->mm;
	e->addr = addr;
	emptier_prepare(test, e);
	mmap_read_lock(e->mm);
	args.vma = vma_lookup(e->mm, addr);
	args.start = addr;
	args.end = addr + PMD_SIZE;
	ret = migrate_vma_setup(&args);
	if (!ret)
		migrate_vma_finalize(&args);
	no_table = pmd_none(READ_ONCE(*pmd_off(e->mm, addr)));
	mmap_read_unlock(e->mm);
	emptier_finish(e);

	KUNIT_EXPECT_EQ(test, ret, 0);
	PGTABLE_KUNIT_DID(test, e->times, "splits");
	KUNIT_EXPECT_EQ(test, e->ret, 0);
	if (IS_ENABLED(CONFIG_PT_RECLAIM))
		KUNIT_EXPECT_TRUE_MSG(test, no_table,
				      "the table is still there: this proves nothing");

	for (i = 0; i < PTRS_PER_PTE; i++)
		holes += args.src[i] == MIGRATE_PFN_MIGRATE;
	for (; i < room; i++)
		past += args.src[i] != COLLECT_UNUSED;
	KUNIT_EXPECT_EQ(test, holes, PTRS_PER_PTE);
	if (past && past == first &&
	    args.npages == PTRS_PER_PTE + first)
		pgtable_kunit_known_issue(test, 19,
					  "%u values past the end of an array of %u",
					  past, (unsigned int)PTRS_PER_PTE);
	else
		KUNIT_EXPECT_EQ(test, args.npages, PTRS_PER_PTE);
	if (!past && first && no_table)
		pgtable_kunit_stale_issue(test, 19);
}

static struct kunit_case device_memory_cases[] = {
	KUNIT_CASE_PARAM(hmm_part_of_huge_page, huge_kind_gen_params),
	KUNIT_CASE_PARAM(migrate_collect_once, collect_kind_gen_params),
	{}
};

static struct kunit_suite device_memory_suite = {
	.name = "device_memory",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = device_memory_cases,
};

kunit_test_suite(device_memory_suite);

MODULE_DESCRIPTION("KUnit tests for memory that a device shares with a process");
MODULE_LICENSE("GPL");
