// SPDX-License-Identifier: GPL-2.0
/*
 * The steps in which arm64 invalidates a range of pages.
 *
 * The instructions that invalidate a range get the number of pages as scale and
 * num. A loop in asm/tlbflush.h cuts each range into such steps. The first case
 * runs the tree's own loop, and functions record each step instead of the
 * instruction. The second case lets a process give up memory of the largest
 * size.
 *
 * Not covered: barriers, and the choice of the invalidation (contpte_order).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'tlbi_range'
 */

#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>
#include <asm/tlbflush.h>

#include "pgtable_kunit.h"

/* The invalidations of a range, as the tree's own loop makes them. */
static struct {
	u64 next;		/* the expected next page */
	unsigned long pages;
	unsigned int steps, wrong;
} tlbi_steps;

static void tlbi_step(u64 first, unsigned long pages)
{
	tlbi_steps.wrong |= first != tlbi_steps.next;
	tlbi_steps.next += pages;
	tlbi_steps.pages += pages;
	tlbi_steps.steps++;
}

/* Bits 43:0 of the operand for one page are its address, in units of 4K. */
static void tlbi_step_page(u64 arg)
{
	tlbi_step((arg & GENMASK_ULL(43, 0)) >> (PAGE_SHIFT - 12), 1);
}

/*
 * For a range, bits 36:0 are the number of its first page, 43:39 num, 45:44
 * scale.
 */
static void tlbi_step_range(u64 arg)
{
	tlbi_step(arg & GENMASK_ULL(36, 0),
		  ((arg >> 39 & 31) + 1) << (5 * (arg >> 44 & 3) + 1));
}

/*
 * The largest range that the kernel invalidates page by page or in steps, if it
 * does not use LPA2.
 */
#define TLBI_LARGEST	2097152UL

#ifdef PGTABLE_KUNIT_HAS_TLBI_FUNCTIONS
#define tlbi_run(start, pages) __flush_tlb_range_op(tlbi_step_page, \
		tlbi_step_range, start, pages, PAGE_SIZE, 0, 3, false)
#else
#undef __tlbi	/* the loop is a macro that calls another macro */
#undef __tlbi_level
#define __tlbi(op, arg) ({						\
	(void)#op;							\
	tlbi_step_range(arg);						\
})
#define __tlbi_level(op, arg, level) ({					\
	(void)#op;							\
	(void)(level);							\
	tlbi_step_page(arg);						\
})
#define tlbi_run(start, pages) __flush_tlb_range_op(vae1is, start, pages, \
						    PAGE_SIZE, 0, 3, false, false)
#endif

/*
 * The kernel invalidates a range in steps of (num + 1) << (5 * scale + 1)
 * pages, for scales from 3 down, and invalidates a last odd page separately.
 * There are at most five steps. The steps, as the instructions encode them,
 * follow each other and cover exactly the range. The case tries every size up
 * to the architecture's largest, 2097152 pages. An earlier kernel treated this
 * largest size as zero pages, because num has one bit too few.
 */
static void flush_tlb_range_op_steps_add_up(struct kunit *test)
{
	unsigned long pages, start = SZ_1G;
	bool ranges = system_supports_tlb_range();
	unsigned int failed = 0;

	/* Without instructions for ranges there are as many steps as pages. */
	for (pages = 1; pages <= (ranges ? TLBI_LARGEST : PTRS_PER_PTE); pages++) {
		if (pages % 4096 == 0)
			cond_resched();
		memset(&tlbi_steps, 0, sizeof(tlbi_steps));
		tlbi_steps.next = start / PAGE_SIZE;
		tlbi_run(start, pages);
		if (!tlbi_steps.wrong && tlbi_steps.pages == pages &&
		    (!ranges || tlbi_steps.steps <= 5))
			continue;
		KUNIT_FAIL(test, "range of %lu pages: %lu are invalidated, in %u steps%s",
			   pages, tlbi_steps.pages, tlbi_steps.steps,
			   tlbi_steps.wrong ? " that do not follow each other" : "");
		if (++failed == PGTABLE_KUNIT_ENOUGH)
			return;
	}
	PGTABLE_KUNIT_DID(test, pages - 1, "ranges invalidated");
}

/*
 * After MADV_DONTNEED of memory of the largest size, every page is new. The
 * first and the last page have content before, so the kernel invalidates a
 * range of 2097152 pages. With the mistake that the case above describes, the
 * last page kept its translation. `make tlb` reports this when the case reads
 * the page after the range. QEMU computes the length of the largest range with
 * 32 bits and gets 0, so it keeps the translation even if the kernel is right.
 * So the case empties the TLB before it reads the range. The sizes are the
 * largest, one page less, and one page more, which the kernel handles in
 * another way.
 */
static void madvise_largest_range(struct kunit *test)
{
	static const int more[] = { -1, 0, 1 };
	unsigned long room = (TLBI_LARGEST + 2) * PAGE_SIZE + SZ_2M, addr;
	unsigned int i, page, value, nr = 0;

	addr = kunit_vm_mmap(test, NULL, 0, room, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	KUNIT_ASSERT_EQ(test, 0, pgtable_kunit_syscall(madvise, addr, room,
						       MADV_NOHUGEPAGE));
	addr = ALIGN(addr, SZ_2M);
	for (i = 0; i < ARRAY_SIZE(more); i++) {
		unsigned long size = (TLBI_LARGEST + more[i]) * PAGE_SIZE;
		unsigned int __user *at[] = {
			(unsigned int __user *)addr,
			(unsigned int __user *)(addr + size / 2),
			(unsigned int __user *)(addr + size - PAGE_SIZE),
		};
		unsigned int __user *after = (unsigned int __user *)(addr + size);

		for (page = 0; page < ARRAY_SIZE(at); page++)
			KUNIT_ASSERT_EQ(test, 0, put_user(1, at[page]));
		KUNIT_ASSERT_EQ(test, 0, put_user(2, after));
		KUNIT_ASSERT_EQ(test, 0, pgtable_kunit_syscall(madvise, addr, size,
							       MADV_DONTNEED));
		KUNIT_ASSERT_EQ(test, 0, get_user(value, after));
		KUNIT_EXPECT_EQ(test, value, 2);
		local_flush_tlb_all();
		for (page = 0; page < ARRAY_SIZE(at); page++) {
			KUNIT_ASSERT_EQ(test, 0, get_user(value, at[page]));
			KUNIT_EXPECT_EQ_MSG(test, value, 0, "size %lx, page %u",
					    size, page);
			nr++;
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "pages freed");
}

static struct kunit_case tlbi_range_cases[] = {
	KUNIT_CASE(flush_tlb_range_op_steps_add_up),
	KUNIT_CASE(madvise_largest_range),
	{}
};

static struct kunit_suite tlbi_range_suite = {
	.name = "tlbi_range",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = tlbi_range_cases,
};

kunit_test_suite(tlbi_range_suite);

MODULE_DESCRIPTION("KUnit tests for the steps of arm64 TLB invalidations");
MODULE_LICENSE("GPL");
