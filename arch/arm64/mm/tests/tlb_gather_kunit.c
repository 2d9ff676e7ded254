// SPDX-License-Identifier: GPL-2.0
/*
 * Which TLB entries arm64 invalidates after the kernel has unmapped a range.
 *
 * The kernel collects the entries that it unmaps in a struct mmu_gather. It
 * records the range, the levels of the cleared entries, and whether it freed
 * page tables. It also records whether it gave up a table of hugetlb entries
 * that it shared with another process. From this, tlb_flush() makes an
 * invalidation. The suite compiles the tree's own tlb_flush() a second time,
 * with functions that record the invalidation.
 *
 * Not covered: the instructions (tlbi_range), and the code that fills the
 * structure.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'tlb_gather'
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <asm/tlbflush.h>

#include "pgtable_kunit.h"

/* The last invalidation, and the number of invalidations. */
static struct {
	unsigned int nr;
	bool all;
	bool tables;
	unsigned long start, end, stride;
	int level;
} gather_seen;

static inline void gather_record(unsigned long start, unsigned long end,
				 unsigned long stride, bool tables, int level)
{
	gather_seen.nr++;
	gather_seen.start = start;
	gather_seen.end = end;
	gather_seen.stride = stride;
	gather_seen.tables = tables;
	gather_seen.level = level;
}

#ifdef TLBF_NONE
static inline void gather_flush_range(struct vm_area_struct *vma,
				      unsigned long start, unsigned long end,
				      unsigned long stride, int level,
				      tlbf_t flags)
{
	gather_record(start, end, stride, !(flags & TLBF_NOWALKCACHE), level);
}
#else
static inline void gather_flush_range(struct vm_area_struct *vma,
				      unsigned long start, unsigned long end,
				      unsigned long stride, bool last_level,
				      int level)
{
	gather_record(start, end, stride, !last_level, level);
}
#endif

static inline void gather_flush_mm(struct mm_struct *mm)
{
	gather_seen.nr++;
	gather_seen.all = true;
}

#ifdef __ASM_TLB_H
#error "asm/tlb.h was included before its invalidations could be recorded"
#endif
#define __flush_tlb_range	gather_flush_range
#define flush_tlb_mm		gather_flush_mm
#include <asm/tlb.h>

#define GATHER_ADDR		((unsigned long)SZ_1G)

/* The bits of a combination: four levels, freed tables, unshared tables. */
#ifdef PGTABLE_KUNIT_HAS_UNSHARED_TABLES
#define GATHER_BITS		64
#else
#define GATHER_BITS		32
#endif

/* The size that an entry of each level maps, from the last level up. */
static const unsigned long gather_size[] = {
	PAGE_SIZE, PMD_SIZE, PUD_SIZE, P4D_SIZE,
};

/*
 * The kernel has cleared entries of some levels. The invalidation
 * covers the range in steps of the smallest size. It includes page tables if the
 * kernel freed or unshared any. It may have a hint about the level of the
 * entries only if all cleared entries have one level. The hint names the level
 * of the entries that map memory. It is also right for a table that the kernel
 * unshares, because the PMDs in this table count as cleared entries.
 */
static void tlb_flush_level_of_entries(struct kunit *test)
{
	unsigned int bits, did = 0;

	for (bits = 0; bits < GATHER_BITS; bits++) {
		unsigned int levels = bits & 15;
		struct mmu_gather tlb = {
			.mm = current->active_mm,
			.start = GATHER_ADDR,
			.end = GATHER_ADDR + 2 * PMD_SIZE,
			.cleared_ptes = !!(bits & 1),
			.cleared_pmds = !!(bits & 2),
			.cleared_puds = !!(bits & 4),
			.cleared_p4ds = !!(bits & 8),
			.freed_tables = !!(bits & 16),
#ifdef PGTABLE_KUNIT_HAS_UNSHARED_TABLES
			.unshared_tables = !!(bits & 32),
#endif
		};
		unsigned int smallest = levels ? __ffs(levels) : 0;
		bool one = hweight8(levels) == 1;

		memset(&gather_seen, 0, sizeof(gather_seen));
		tlb_flush(&tlb);
		did += gather_seen.nr;
		KUNIT_EXPECT_EQ_MSG(test, gather_seen.nr, 1, "bits %x", bits);
		KUNIT_EXPECT_FALSE_MSG(test, gather_seen.all, "bits %x", bits);
		KUNIT_EXPECT_EQ_MSG(test, gather_seen.start, tlb.start,
				    "bits %x", bits);
		KUNIT_EXPECT_EQ_MSG(test, gather_seen.end, tlb.end, "bits %x",
				    bits);
		KUNIT_EXPECT_EQ_MSG(test, gather_seen.stride,
				    gather_size[smallest], "bits %x", bits);
		KUNIT_EXPECT_EQ_MSG(test, gather_seen.tables, !!(bits & 48),
				    "bits %x", bits);
		if (gather_seen.level == TLBI_TTL_UNKNOWN)
			continue;
		KUNIT_EXPECT_TRUE_MSG(test, one, "bits %x, level %d", bits,
				      gather_seen.level);
		KUNIT_EXPECT_EQ_MSG(test, gather_seen.level, 3 - (int)smallest,
				    "bits %x", bits);
		/* The freed tables had entries of other levels. */
		KUNIT_EXPECT_FALSE_MSG(test, tlb.freed_tables, "bits %x", bits);
	}
	PGTABLE_KUNIT_DID(test, did, "invalidations");
}

/*
 * The kernel records a batch of entries that it cleared, and later a batch at a
 * higher or lower address. The range to invalidate begins with the lowest page
 * of both batches and ends with the highest. A batch has at most as many
 * entries as a table.
 */
static void tlb_remove_tlb_entries_range(struct kunit *test)
{
	static const unsigned int sizes[] = {
		1, 2, CONT_PTES - 1, CONT_PTES, CONT_PTES + 1, PTRS_PER_PTE,
	};
	unsigned int i, k, did = 0;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (k = 0; k < ARRAY_SIZE(sizes); k++) {
			unsigned long end = GATHER_ADDR + sizes[i] * PAGE_SIZE;
			unsigned long low = GATHER_ADDR - 2 * PMD_SIZE;
			struct mmu_gather tlb = {
				.mm = current->active_mm,
				.start = TASK_SIZE,
			};
			pte_t none = __pte(0);

			tlb_remove_tlb_entries(&tlb, &none, sizes[i],
					       GATHER_ADDR);
			KUNIT_EXPECT_EQ(test, tlb.start, GATHER_ADDR);
			KUNIT_EXPECT_EQ_MSG(test, tlb.end, end, "%u entries",
					    sizes[i]);
			KUNIT_EXPECT_TRUE(test, tlb.cleared_ptes);
			tlb_remove_tlb_entries(&tlb, &none, sizes[k], low);
			KUNIT_EXPECT_EQ(test, tlb.start, low);
			KUNIT_EXPECT_EQ(test, tlb.end, end);
			tlb_remove_tlb_entries(&tlb, &none, sizes[k], end);
			KUNIT_EXPECT_EQ(test, tlb.start, low);
			KUNIT_EXPECT_EQ(test, tlb.end,
					end + sizes[k] * PAGE_SIZE);
			did += 3;
		}
	}
	PGTABLE_KUNIT_DID(test, did, "batches noted");
}

static const bool gather_full[] = { false, true };

static void gather_full_desc(const bool *full, char *desc)
{
	strscpy(desc, *full ? "the process exits" : "the process goes on",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(gather_full, gather_full, gather_full_desc);

#ifdef PGTABLE_KUNIT_HAS_UNSHARED_TABLES
/*
 * The work of huge_pmd_unshare() and huge_pmd_unshare_flush(), without the
 * count of owners and the locks.
 */
static void gather_unshare(struct mmu_gather *tlb, unsigned long addr)
{
	tlb_flush_pmd_range(tlb, addr & PUD_MASK, PUD_SIZE);
	tlb->unshared_tables = true;
	tlb_flush_mmu_tlbonly(tlb);
}
#endif

/*
 * A process gives up a table of PMDs that it shares with another process, as
 * hugetlb does. When the function returns, the other process may change the
 * table or free it. So no CPU may reach the table through the first process any
 * more. Before the function returns, there must be an invalidation that
 * includes page tables, even if the process is about to exit. Known issue 25:
 * if the process exits, the invalidation comes too late. Known issue 26: with
 * 16K and 64K pages PUD_SIZE has more than 32 bits, and the range is empty.
 */
static void tlb_flush_unshared_table(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_HAS_UNSHARED_TABLES
	bool full = *(bool *)test->param_value;
	unsigned long addr = GATHER_ADDR + PMD_SIZE;
	struct mm_struct *mm = mm_alloc();
	struct mmu_gather tlb;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	memset(&gather_seen, 0, sizeof(gather_seen));
	if (full)
		tlb_gather_mmu_fullmm(&tlb, mm);
	else
		tlb_gather_mmu(&tlb, mm);
	gather_unshare(&tlb, addr);

	if (!full) {
		unsigned long size = PUD_SIZE;
		unsigned long start = ALIGN_DOWN(addr, size);

		KUNIT_EXPECT_EQ(test, gather_seen.nr, 1);
		KUNIT_EXPECT_TRUE(test, gather_seen.tables);
		KUNIT_EXPECT_LE(test, gather_seen.start, start);
		if (size > UINT_MAX && gather_seen.end == start + (u32)size) {
			pgtable_kunit_known_issue(test, 26, "the invalidated range is empty");
		} else {
			KUNIT_EXPECT_GE(test, gather_seen.end, start + size);
			if (size > UINT_MAX)
				pgtable_kunit_stale_issue(test, 26);
		}
		if (gather_seen.level != TLBI_TTL_UNKNOWN)
			KUNIT_EXPECT_EQ(test, gather_seen.level, 2);
	} else if (!gather_seen.nr) {
		pgtable_kunit_known_issue(test, 25,
					  "no invalidation before the table can be used by others");
	} else {
		KUNIT_EXPECT_TRUE(test, gather_seen.all || gather_seen.tables);
		pgtable_kunit_stale_issue(test, 25);
	}
	tlb_finish_mmu(&tlb);
	mmput(mm);
#else
	kunit_skip(test, "this kernel does not remember unshared tables");
#endif
}

static struct kunit_case tlb_gather_cases[] = {
	KUNIT_CASE(tlb_flush_level_of_entries),
	KUNIT_CASE(tlb_remove_tlb_entries_range),
	KUNIT_CASE_PARAM(tlb_flush_unshared_table, gather_full_gen_params),
	{}
};

static struct kunit_suite tlb_gather_suite = {
	.name = "tlb_gather",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = tlb_gather_cases,
};

kunit_test_suite(tlb_gather_suite);

MODULE_DESCRIPTION("KUnit tests for arm64 invalidations after unmapping");
MODULE_LICENSE("GPL");
