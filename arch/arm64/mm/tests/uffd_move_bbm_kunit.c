// SPDX-License-Identifier: GPL-2.0
/*
 * Break-before-make in UFFDIO_MOVE.
 *
 * UFFDIO_MOVE clears the entries of pages at their old place, and sets entries
 * for these pages at their new place. If both places overlap, the kernel sets
 * an entry that it has just cleared. Arm64 requires a TLB invalidation between
 * both writes, because the new entry maps another page.
 *
 * How: a process moves pages down by one page within a range. At each
 * invalidation the case looks at the entries of the old place. An entry that
 * already maps another page, although the kernel has not yet invalidated its
 * address, breaks the rule.
 *
 * Not covered: huge pages, contents and counters (the selftest uffd_move).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	uffd_move_bbm
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/unistd.h>
#include <linux/userfaultfd.h>

#include "known_issue.h"
#include "user_mm.h"

/* The number of pages that move: enough for several entries in one batch. */
#define MOVE_PAGES	8U

/**
 * struct move_watch - the entries of the range, during the move
 * @tlb: the invalidations so far
 * @ptep: the first entry
 * @pfn: the page of each entry before the move
 * @early: entries that mapped another page before their address was invalidated
 * @flushed: entries whose address was invalidated
 */
struct move_watch {
	struct pgtable_kunit_tlb *tlb;
	pte_t *ptep;
	unsigned long pfn[MOVE_PAGES + 1];
	unsigned long early;
	unsigned long flushed;
};

static unsigned long move_addr(unsigned int page)
{
	return USER_ADDR + page * PAGE_SIZE;
}

/* Look at the entries of the old place, and then record the invalidation. */
static void move_look(void *data)
{
	struct move_watch *w = data;
	unsigned int i, last = w->tlb->nr - 1;

	for (i = 1; i <= MOVE_PAGES; i++) {
		pte_t pte = pgtable_kunit_raw_get(w->ptep + i);

		if (!(w->flushed & BIT(i)) && pte_present(pte) &&
		    pte_pfn(pte) != w->pfn[i])
			w->early |= BIT(i);
	}
	if (last >= PGTABLE_KUNIT_FLUSHES)
		return;
	for (i = 1; i <= MOVE_PAGES; i++)
		if (move_addr(i) >= w->tlb->range[last].start &&
		    move_addr(i) < w->tlb->range[last].end)
			w->flushed |= BIT(i);
}

/* The argument of an ioctl() is copied to the page after all other pages. */
static int move_ioctl(struct file *file, unsigned int cmd, void *arg, size_t size)
{
	return user_mm_ioctl(file, cmd, (void __user *)move_addr(MOVE_PAGES + 1), arg, size);
}

/* Map all pages, and register them. The first page is missing. */
static struct file *move_prepare(struct kunit *test, struct move_watch *w)
{
	struct mm_struct *mm = current->mm;
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_MOVE };
	struct uffdio_register memory = {
		.range = { USER_ADDR, (MOVE_PAGES + 1) * PAGE_SIZE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct file *file;
	spinlock_t *ptl;	/* of the table */
	unsigned int i;

	pgtable_kunit_thp_set(test, 0, false);
	KUNIT_ASSERT_EQ(test, USER_ADDR,
			vm_mmap(NULL, USER_ADDR, (MOVE_PAGES + 2) * PAGE_SIZE,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, 0));
	w->ptep = pte_offset_map_lock(mm, pmd_off(mm, USER_ADDR), USER_ADDR, &ptl);
	KUNIT_ASSERT_NOT_NULL(test, w->ptep);
	for (i = 0; i <= MOVE_PAGES; i++)
		w->pfn[i] = pte_pfn(pgtable_kunit_raw_get(w->ptep + i));
	pte_unmap_unlock(w->ptep, ptl);
	file = user_mm_uffd(test);
	KUNIT_ASSERT_EQ(test, 0, move_ioctl(file, UFFDIO_API, &api, sizeof(api)));
	KUNIT_ASSERT_EQ(test, 0, move_ioctl(file, UFFDIO_REGISTER, &memory, sizeof(memory)));
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(madvise, USER_ADDR, PAGE_SIZE, MADV_DONTNEED));
	return file;
}

/*
 * Pages 1 to 8 move down by one page. Entry 1 gets page 2, and so on:
 *
 *	entry	0  1  2  3  4  5  6  7  8
 *	before	-  1  2  3  4  5  6  7  8
 *	after	1  2  3  4  5  6  7  8  -
 *
 * Known issue 74: one batch moves all pages, and the kernel invalidates the
 * TLB only after the batch. So it clears entries 1 to 7, and sets them without
 * an invalidation in between.
 */
static void move_down_invalidates_first(struct kunit *test)
{
	struct uffdio_move move = {
		.dst = move_addr(0),
		.src = move_addr(1),
		.len = MOVE_PAGES * PAGE_SIZE,
	};
	struct move_watch *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct file *file;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	file = move_prepare(test, w);
	w->tlb = pgtable_kunit_tlb_record(test, current->mm);
	w->tlb->look_data = w;
	w->tlb->look = move_look;
	KUNIT_EXPECT_EQ(test, 0, move_ioctl(file, UFFDIO_MOVE, &move, sizeof(move)));
	pgtable_kunit_tlb_stop(test, w->tlb);
	fput(file);

	for (i = 0; i < MOVE_PAGES; i++)
		KUNIT_EXPECT_EQ_MSG(test, pte_pfn(pgtable_kunit_raw_get(w->ptep + i)),
				    w->pfn[i + 1], "entry %u", i);
	KUNIT_EXPECT_TRUE(test, pte_none(pgtable_kunit_raw_get(w->ptep + MOVE_PAGES)));
	PGTABLE_KUNIT_DID(test, w->tlb->nr, "invalidations");
	KUNIT_EXPECT_EQ_MSG(test, w->flushed, GENMASK(MOVE_PAGES, 1),
			    "invalidated addresses");
	if (w->early == GENMASK(MOVE_PAGES - 1, 1)) {
		pgtable_kunit_known_issue(test, 74,
					  "entries map another page before the invalidation");
		return;
	}
	KUNIT_EXPECT_EQ_MSG(test, w->early, 0UL, "entries that were set too early");
	if (!w->early)
		pgtable_kunit_stale_issue(test, 74);
}

static struct kunit_case uffd_move_bbm_cases[] = {
	KUNIT_CASE(move_down_invalidates_first),
	{}
};

static struct kunit_suite uffd_move_bbm_suite = {
	.name = "uffd_move_bbm",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = uffd_move_bbm_cases,
};

kunit_test_suite(uffd_move_bbm_suite);

MODULE_DESCRIPTION("KUnit tests for break-before-make in UFFDIO_MOVE");
MODULE_LICENSE("GPL");
