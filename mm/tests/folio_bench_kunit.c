// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of system calls and of writes to a large amount of memory: page
 * faults, copied pages, TLB invalidations, and time.
 *
 * Each case fills memory with folios of one kind, does one operation on all of
 * it, and prints a line that tools parse ("number ..."). Counts are exact. If
 * the emulator derives time from instructions, one nanosecond is one
 * instruction, and each run gives the same time:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 folio_bench \
 *	--kernel_args folio_bench.mib=64 --qemu_args '-icount shift=0'
 *
 * A case fails if memory has wrong content or a wrong number of pages
 * afterwards, but never because of a cost. Not covered: threads that run
 * meanwhile, files.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "user_mm.h"

/* Page-table entries that were written, in kernels that count them. */
#ifdef PGTABLE_KUNIT_COUNTS_WRITES
#define BENCH_COUNTS_WRITES	1
unsigned long pgtable_kunit_writes;
#else
#define BENCH_COUNTS_WRITES	0
#define pgtable_kunit_writes	0UL
#endif

static unsigned int mib;
module_param(mib, uint, 0444);
MODULE_PARM_DESC(mib, "MiB of memory to work on; 0 skips all");

/* How memory is mapped, always by page-table entries. */
struct bench_layout {
	const char *desc;
	unsigned int order;
	bool huge;		/* a huge page; the table maps each of its pages */
};

struct bench {
	struct user_mm *u;
	struct pgtable_kunit_tlb *tlb;	/* NULL: do not record */
	const struct bench_layout *layout;
	unsigned long size;
	unsigned long *pfn;
	struct completion exit;
	pid_t child;
};

/* The operation to measure, and functions to call before and after it. */
struct bench_op {
	const char *desc;
	int (*before)(struct bench *b);
	int (*run)(struct bench *b);
	int (*after)(struct bench *b);
	unsigned long pages;	/* pages that are left in memory; ~0UL is all */
	bool counts_copies;
	u8 byte;		/* the content at the start of each page */
};

static int bench_populate(struct bench *b)
{
	unsigned long offset;

	for (offset = 0; offset < b->size; offset += PAGE_SIZE)
		if (put_user(1, (u8 __user *)(USER_ADDR + offset)))
			return -EFAULT;
	return 0;
}

/* With one page that differs, a PMD can no longer map the huge page. */
static int bench_remap(struct bench *b)
{
	unsigned long addr;
	int err;

	for (addr = USER_ADDR; addr < USER_ADDR + b->size; addr += PMD_SIZE) {
		err = pgtable_kunit_syscall(mprotect, addr, PAGE_SIZE,
					    PROT_READ);
		if (err)
			return err;
	}
	return 0;
}

static int bench_whole_again(struct bench *b)
{
	return pgtable_kunit_syscall(mprotect, USER_ADDR, b->size,
				     PROT_READ | PROT_WRITE);
}

static int bench_child(void *data)
{
	wait_for_completion(data);
	do_exit(0);
}

static int bench_fork(struct bench *b)
{
	struct kernel_clone_args args = {
		.fn = bench_child,
		.fn_arg = &b->exit,
		.exit_signal = SIGCHLD,
	};

	b->child = kernel_clone(&args);
	return min(b->child, 0);
}

static int bench_reap(struct bench *b)
{
	int status;

	complete(&b->exit);
	kernel_wait(b->child, &status);
	return status;
}

static int bench_fork_before(struct bench *b)
{
	init_completion(&b->exit);
	return 0;
}

/* The child lives while the parent writes to memory. */
static int bench_shared(struct bench *b)
{
	return bench_fork_before(b) ?: bench_fork(b);
}

/*
 * The child has exited. References that a CPU still holds make pages look
 * shared.
 */
static int bench_was_shared(struct bench *b)
{
	int err = bench_shared(b) ?: bench_reap(b);

	lru_add_drain_all();
	return err;
}

/* Write to all bytes of each page, not to only one byte. */
static int bench_fill(struct bench *b)
{
	return clear_user((void __user *)USER_ADDR, b->size) ? -EFAULT : 0;
}

static int bench_munmap(struct bench *b)
{
	return pgtable_kunit_syscall(munmap, USER_ADDR, b->size);
}

static int bench_dontneed(struct bench *b)
{
	unsigned long addr;
	int err = 0;

	for (addr = USER_ADDR; addr < USER_ADDR + b->size && !err;
	     addr += PAGE_SIZE)
		err = pgtable_kunit_syscall(madvise, addr, PAGE_SIZE,
					    MADV_DONTNEED);
	return err;
}

static const struct bench_op bench_ops[] = {
	{ "populate", NULL, bench_populate, NULL, ~0UL, false, 1 },
	{ "remap", NULL, bench_remap, bench_whole_again, ~0UL, false, 1 },
	{ "fork", bench_fork_before, bench_fork, bench_reap, ~0UL, false, 1 },
	{ "cow", bench_shared, bench_fill, bench_reap, ~0UL, true, 0 },
	{ "cow_byte", bench_shared, bench_populate, bench_reap, ~0UL, true, 1 },
	{ "cow_reuse", bench_was_shared, bench_fill, NULL, ~0UL, true, 0 },
	{ "cow_reuse_byte", bench_was_shared, bench_populate, NULL, ~0UL, true, 1 },
	{ "munmap", NULL, bench_munmap, NULL, 0 },
	{ "pte_dontneed", NULL, bench_dontneed, NULL, 0 },
};

KUNIT_ARRAY_PARAM_DESC(bench_ops, bench_ops, desc);

/* New memory of the layout, unless the case measures how it is made. */
static int bench_prepare(struct kunit *test, struct bench *b,
			 const struct bench_op *op)
{
	unsigned int order = b->layout->huge ? HPAGE_PMD_ORDER : b->layout->order;
	unsigned long addr;
	int err = 0;

	vm_munmap(USER_ADDR, b->size);
	addr = vm_mmap(NULL, USER_ADDR, b->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0);
	if (addr != USER_ADDR)
		return -ENOMEM;
	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, true);
	if (op->run == bench_populate && !op->before)
		return 0;
	err = bench_populate(b);
	if (!err && b->layout->huge && op->run != bench_remap)
		err = bench_remap(b) ?: bench_whole_again(b);
	if (!err && op->before)
		err = op->before(b);
	return err;
}

/* With @record, count pages that have moved. */
static unsigned long bench_copies(struct bench *b, bool record)
{
	unsigned long i, copies = 0;

	for (i = 0; i < b->size / PAGE_SIZE; i++) {
		pte_t pte = user_mm_pte(b->u, USER_ADDR + i * PAGE_SIZE);

		copies += b->pfn[i] != pte_pfn(pte);
		if (record)
			b->pfn[i] = pte_pfn(pte);
	}
	return copies;
}

/* The first page with wrong content; the number of pages if there is none. */
static unsigned long bench_good(struct bench *b, const struct bench_op *op)
{
	unsigned long i;
	u8 byte;

	for (i = 0; i < b->size / PAGE_SIZE; i++) {
		unsigned long addr = USER_ADDR + i * PAGE_SIZE;

		if (get_user(byte, (u8 __user *)addr) || byte != op->byte)
			break;
	}
	return i;
}

/*
 * The cost of one operation. It includes TLB invalidations only if they are
 * recorded.
 */
struct bench_cost {
	u64 ns;
	unsigned long faults;
	unsigned long copies;
	unsigned long writes;
	unsigned int invalidations;
};

static struct bench_cost bench_once(struct kunit *test, struct bench *b,
				    const struct bench_op *op)
{
	unsigned long pages = min(op->pages, b->size / PAGE_SIZE);
	unsigned long faults, writes;
	struct bench_cost cost = {};
	u64 start;

	KUNIT_ASSERT_EQ(test, 0, bench_prepare(test, b, op));
	if (op->counts_copies)
		bench_copies(b, true);
	if (b->tlb)
		b->tlb->nr = 0;
	faults = user_mm_faults();
	writes = pgtable_kunit_writes;
	start = local_clock();
	KUNIT_ASSERT_EQ(test, 0, op->run(b));
	cost.ns = local_clock() - start;
	cost.faults = user_mm_faults() - faults;
	cost.writes = pgtable_kunit_writes - writes;
	if (b->tlb)
		cost.invalidations = b->tlb->nr;
	if (op->counts_copies)
		cost.copies = bench_copies(b, false);
	if (op->after)
		KUNIT_ASSERT_EQ(test, 0, op->after(b));
	KUNIT_EXPECT_EQ(test, get_mm_counter_sum(b->u->mm, MM_ANONPAGES),
			b->u->rss + pages);
	if (op->pages)
		KUNIT_EXPECT_EQ(test, bench_good(b, op), b->size / PAGE_SIZE);
	return cost;
}

/*
 * Measure one operation on memory of one layout. The recorder of invalidations
 * slows down the kernel, so the time is measured in another run without the
 * recorder. The very first run warms up caches and page tables. Times are not
 * meaningful in a kernel that counts its writes.
 */
static void bench_layout(struct kunit *test, const struct bench_layout *layout)
{
	const struct bench_op *op = test->param_value;
	struct bench *b = test->priv;
	struct bench_cost cost;

	b->layout = layout;
	if (op->run == bench_remap && !layout->huge)
		kunit_skip(test, "only huge pages can be mapped by a PMD or by PTEs");
	if (layout->huge && b->size < PMD_SIZE)
		kunit_skip(test, "a huge page is larger than %u MiB", mib);
	cost = bench_once(test, b, op);
	if (BENCH_COUNTS_WRITES) {
		kunit_info(test, "number %s %s mib=%u writes=%lu\n", op->desc,
			   layout->desc, mib, cost.writes);
		goto out;
	}
	cost = bench_once(test, b, op);
	if (IS_ENABLED(CONFIG_ARM64)) {
		b->tlb = pgtable_kunit_tlb_record(test, b->u->mm);
		cost.invalidations = bench_once(test, b, op).invalidations;
		pgtable_kunit_tlb_stop(test, b->tlb);
		b->tlb = NULL;
	}
	kunit_info(test, "number %s %s mib=%u ns=%llu faults=%lu copies=%lu invalidations=%u\n",
		   op->desc, layout->desc, mib, cost.ns, cost.faults,
		   cost.copies, cost.invalidations);
out:
	vm_munmap(USER_ADDR, b->size);
}

/*
 * The cost of each operation on single pages: support for contiguous blocks
 * must not make them slower. There is one case for each layout, since KUnit
 * limits the time of a case.
 */
static void bench_single_pages(struct kunit *test)
{
	bench_layout(test, &(struct bench_layout){ "single" });
}

/*
 * The cost of each operation on folded blocks. The cost of fork, of munmap, and
 * of MADV_DONTNEED page by page is the number of invalidations and of
 * instructions.
 */
static void bench_blocks(struct kunit *test)
{
	bench_layout(test, &(struct bench_layout){ "block", .order = USER_BLOCK_ORDER });
}

/* The cost of each operation on huge pages after a split of their PMD. */
static void bench_huge_pages(struct kunit *test)
{
	bench_layout(test, &(struct bench_layout){ "huge", .huge = true });
}

static void bench_free(void *pfn)
{
	kvfree(pfn);
}

static int folio_bench_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);
	struct bench *b;

	if (err)
		return err;
	if (!mib)
		kunit_skip(test, "boot with folio_bench.mib=64");
	b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b);
	b->u = user_mm_alloc(test);
	b->size = (unsigned long)mib * SZ_1M;
	b->pfn = kvcalloc(b->size / PAGE_SIZE, sizeof(*b->pfn), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b->pfn);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, bench_free, b->pfn));
	kernel_sigaction(SIGCHLD, SIG_DFL);
	test->priv = b;
	return 0;
}

static void folio_bench_exit(struct kunit *test)
{
	kernel_sigaction(SIGCHLD, SIG_IGN);
}

static struct kunit_case folio_bench_cases[] = {
	KUNIT_CASE_PARAM_ATTR(bench_single_pages, bench_ops_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM_ATTR(bench_blocks, bench_ops_gen_params, PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM_ATTR(bench_huge_pages, bench_ops_gen_params, PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite folio_bench_suite = {
	.name = "folio_bench",
	.suite_init = pgtable_kunit_suite_init,
	.init = folio_bench_init,
	.exit = folio_bench_exit,
	.test_cases = folio_bench_cases,
};

kunit_test_suite(folio_bench_suite);

MODULE_DESCRIPTION("KUnit benchmark of system calls on large folios");
MODULE_LICENSE("GPL");
