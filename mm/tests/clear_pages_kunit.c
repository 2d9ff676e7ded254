// SPDX-License-Identifier: GPL-2.0
/*
 * clear_pages() and its relatives: clear a number of pages in a row.
 *
 * A page for user space must not contain another process's data, and clearing
 * one more page destroys data. Each case fills pages with known neighbours,
 * clears some pages, and checks every byte of these pages and of the pages
 * around them. Kernels without functions for ranges clear page by page. One
 * case checks stacks of threads, which fork clears with these functions. x86_64
 * chooses one of three ways by the CPU. To test the other two ways:
 *
 *   ./tools/testing/kunit/kunit.py run --arch=x86_64 --kunitconfig=mm/tests \
 *	clear_pages --kernel_args clearcpuid=erms
 *   ./tools/testing/kunit/kunit.py run --arch=x86_64 --kunitconfig=mm/tests \
 *	clear_pages --kernel_args clearcpuid=erms,rep_good
 *
 * The benchmark runs with clear_pages.bench=N, N times for each size. Not
 * covered: exceptions, which cannot occur, and a count of 0, which is not
 * allowed.
 */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/highmem.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "clear_extent.h"

static unsigned int bench;
module_param(bench, uint, 0444);
MODULE_PARM_DESC(bench, "how often the benchmark clears each size");

static unsigned int bench_mib = 64;
module_param(bench_mib, uint, 0444);
MODULE_PARM_DESC(bench_mib, "the largest size of the benchmark, a power of 2; needs four times as much memory");

#define BENCH_MAX	101U

/*
 * A window of pages in which the case tries all ranges. It has 528 ranges. It
 * has only 136 if pages are larger than 16K, because larger pages take longer.
 */
#define WINDOW_ORDER	(PAGE_SHIFT > 14 ? 4 : 5)
#define WINDOW		((unsigned int)BIT(WINDOW_ORDER))

/**
 * struct clear_op - a way to clear pages
 * @desc: its name
 * @ranges: whether it clears a range; only newer kernels have such functions
 * @clear: clears @nr pages, to be mapped at @vaddr
 */
struct clear_op {
	const char *desc;
	bool ranges;
	void (*clear)(struct page *page, unsigned long vaddr, unsigned int nr);
};

static void op_clear_page(struct page *page, unsigned long vaddr,
			  unsigned int nr)
{
	void *addr = page_address(page);

	for (; nr; nr--, addr += PAGE_SIZE)
		clear_page(addr);
}

static void op_clear_highpage(struct page *page, unsigned long vaddr,
			      unsigned int nr)
{
	for (; nr; nr--, page++)
		clear_highpage(page);
}

static void op_clear_user_page(struct page *page, unsigned long vaddr,
			       unsigned int nr)
{
	for (; nr; nr--, page++, vaddr += PAGE_SIZE)
		clear_user_page(page_address(page), vaddr, page);
}

static void op_clear_user_highpage(struct page *page, unsigned long vaddr,
				   unsigned int nr)
{
	for (; nr; nr--, page++, vaddr += PAGE_SIZE)
		clear_user_highpage(page, vaddr);
}

static void op_clear_pages(struct page *page, unsigned long vaddr,
			   unsigned int nr)
{
	pgtable_kunit_clear_pages(page_address(page), nr);
}

static void op_clear_user_pages(struct page *page, unsigned long vaddr,
				unsigned int nr)
{
	pgtable_kunit_clear_user_pages(page_address(page), vaddr, page, nr);
}

static void op_clear_user_highpages(struct page *page, unsigned long vaddr,
				    unsigned int nr)
{
	pgtable_kunit_clear_user_highpages(page, vaddr, nr);
}

static const struct clear_op clear_ops[] = {
	{ "clear_page", false, op_clear_page },
	{ "clear_highpage", false, op_clear_highpage },
	{ "clear_user_page", false, op_clear_user_page },
	{ "clear_user_highpage", false, op_clear_user_highpage },
	{ "clear_pages", true, op_clear_pages },
	{ "clear_user_pages", true, op_clear_user_pages },
	{ "clear_user_highpages", true, op_clear_user_highpages },
};

KUNIT_ARRAY_PARAM_DESC(clear_op, clear_ops, desc);

static const struct clear_op *clear_op_get(struct kunit *test)
{
	const struct clear_op *op = test->param_value;

	if (op->ranges && !PGTABLE_KUNIT_CLEAR_RANGES)
		kunit_skip(test, "this kernel has no %s()", op->desc);
	return op;
}

static const char *const clear_fill_names[] = {
	[CLEAR_ONES] = "ones",
	[CLEAR_WORDS] = "different words",
	[CLEAR_LAST_BYTE] = "last bytes",
};

/*
 * Every range in a window of 32 pages is cleared to its last byte. No byte of
 * another page changes, in the window or next to it. The ranges cover each
 * number of pages up to 32, and each alignment that an implementation may
 * handle specially. The pages are full of ones, full of different words, or
 * zero except for their last byte.
 */
static void clear_every_range(struct kunit *test)
{
	const struct clear_op *op = clear_op_get(test);
	struct clear_extent *extent = clear_extent_alloc(test, WINDOW_ORDER);
	unsigned int fill, first, nr, ranges = 0;

	for (fill = 0; fill < ARRAY_SIZE(clear_fill_names); fill++) {
		for (first = 0; first < WINDOW; first++) {
			for (nr = 1; nr <= WINDOW - first; nr++) {
				clear_extent_fill(extent, fill);
				op->clear(extent->page + first, first * PAGE_SIZE,
					  nr);
				if (!clear_extent_check(extent, first, nr,
							"%s of [%u, %u), %s",
							op->desc, first, first + nr,
							clear_fill_names[fill]))
					return;
				ranges++;
				cond_resched();
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/*
 * The user's address makes no difference on architectures with caches that do
 * not depend on it. The addresses are 0, aligned, unaligned, beyond user space,
 * and in the last page. The run has an odd length and crosses the middle of a
 * block.
 */
static void clear_any_user_address(struct kunit *test)
{
	static const unsigned long vaddrs[] = {
		0, 123, PAGE_SIZE, PAGE_SIZE - 1, SZ_2M, SZ_1G + 7 * PAGE_SIZE,
		LONG_MAX, ULONG_MAX, ULONG_MAX << PAGE_SHIFT,
	};
	const struct clear_op *op = clear_op_get(test);
	struct clear_extent *extent = clear_extent_alloc(test, WINDOW_ORDER);
	const unsigned int first = WINDOW / 4 - 1, nr = WINDOW / 2 + 1;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vaddrs); i++) {
		clear_extent_fill(extent, CLEAR_WORDS);
		op->clear(extent->page + first, vaddrs[i], nr);
		if (!clear_extent_check(extent, first, nr, "%s at %lx",
					op->desc, vaddrs[i]))
			return;
	}
	PGTABLE_KUNIT_DID(test, i, "addresses");
}

/*
 * Long runs are cleared to their ends: the pages of 2M, of the largest block of
 * the page allocator, and of two such blocks. Each end is tried with one page
 * more and with one page less. So some runs cross from one block to the next.
 * The lengths in bytes do not fit into 16 bits, and the largest number of pages
 * does not fit into 8 bits.
 */
static void clear_long_range(struct kunit *test)
{
	const struct clear_op *op = clear_op_get(test);
	unsigned int order = max_t(unsigned int, MAX_PAGE_ORDER,
				   ilog2(SZ_2M) - PAGE_SHIFT) + 1;
	unsigned int sizes[] = {
		SZ_2M >> PAGE_SHIFT, MAX_ORDER_NR_PAGES, 2 * MAX_ORDER_NR_PAGES,
	};
	struct clear_extent *extent;
	unsigned int size, odd, ranges = 0;

	while (!clear_extent_fits(order))
		order--;
	extent = clear_extent_alloc(test, order);
	for (size = 0; size < ARRAY_SIZE(sizes); size++) {
		unsigned int middle = extent->nr / 2;
		unsigned int half = min(sizes[size], extent->nr) / 2;

		/* Move each end by -1, 0 and 1 page. */
		for (odd = 0; odd < 9; odd++) {
			unsigned int first = middle - half + odd % 3;
			unsigned int end = middle + half + odd / 3;

			first -= !!first;
			end = min(end - 1, extent->nr);
			if (first >= end)
				continue;
			clear_extent_fill(extent, CLEAR_MARKS);
			op->clear(extent->page + first, first * PAGE_SIZE,
				  end - first);
			if (!clear_extent_check(extent, first, end - first,
						"%s of [%u, %u)", op->desc, first,
						end))
				return;
			ranges++;
		}
	}
	/* Clear all pages once more, and check every byte. */
	clear_extent_fill(extent, CLEAR_WORDS);
	op->clear(extent->page, 0, extent->nr);
	clear_extent_check(extent, 0, extent->nr, "%s of all %u", op->desc,
			   extent->nr);
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/* How many threads run. A CPU keeps two stacks of earlier threads. */
#define STACK_THREADS	32U

/* A word that no other code leaves on a stack. */
#define STACK_MARK	0x5ca1ab1eUL

/**
 * struct stack_look - a thread, and the marks on its stack
 * @stack: the lowest address
 * @page: the page there
 * @marked: how many words of @stack the thread has marked
 * @found: how many words were marked before the thread ran
 * @done: completed when the thread has checked
 */
struct stack_look {
	void *stack;
	struct page *page;
	unsigned long marked;
	unsigned long found;
	struct completion done;
};

/*
 * Check and mark the stack below the frame of this function, which calls
 * nothing meanwhile. Interrupts are off, since an interrupt would save a
 * register with the mark on the stack.
 */
static noinline __no_sanitize_address __no_kcsan
void stack_look_and_mark(struct stack_look *look)
{
	unsigned long *end = (void *)((unsigned long)__builtin_frame_address(0) -
				      SZ_256);
	unsigned long *word;

	/* The lowest word has a mark of the kernel. */
	for (word = end_of_stack(current) + 1; word < end; word++) {
		look->found += READ_ONCE(*word) == STACK_MARK;
		look->marked++;
		WRITE_ONCE(*word, STACK_MARK);
	}
}

static int stack_thread(void *data)
{
	struct stack_look *look = data;
	unsigned long flags;

	look->stack = task_stack_page(current);
	look->page = vmalloc_to_page(look->stack);
	local_irq_save(flags);
	stack_look_and_mark(look);
	local_irq_restore(flags);
	complete(&look->done);
	return 0;
}

/*
 * The stack of a new thread has no content of an earlier thread. The kernel
 * keeps the stack of a thread that has ended for the next thread. The test runs
 * 32 threads one after the other, and most of them get such a stack. Each
 * thread searches its stack for marks, except the few frames in use, and then
 * marks it. A CPU keeps two stacks, so three threads would be enough on one
 * CPU. With 32 threads the case also works if two CPUs take turns.
 */
static void reused_stack_is_clear(struct kunit *test)
{
	struct stack_look *look;
	unsigned int i, j, reused = 0;

	if (!IS_ENABLED(CONFIG_VMAP_STACK))
		kunit_skip(test, "the kernel keeps no unused stacks: CONFIG_VMAP_STACK=n");
	look = kunit_kcalloc(test, STACK_THREADS, sizeof(*look), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, look);
	for (i = 0; i < STACK_THREADS; i++) {
		struct task_struct *task;

		init_completion(&look[i].done);
		task = kthread_create(stack_thread, &look[i], "stack_thread");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		get_task_struct(task);
		wake_up_process(task);
		wait_for_completion(&look[i].done);
		kthread_stop_put(task);
		/*
		 * The kernel takes the stack back after the thread has ended.
		 */
		schedule_timeout_uninterruptible(1);

		for (j = 0; j < i; j++) {
			if (look[j].stack == look[i].stack &&
			    look[j].page == look[i].page)
				break;
		}
		reused += j < i;
		KUNIT_ASSERT_GT(test, look[i].marked,
				THREAD_SIZE / 2 / sizeof(long));
		KUNIT_EXPECT_EQ_MSG(test, look[i].found, 0,
				    "thread %u found marks in a stack of %lu words", i,
				    look[i].marked);
	}
	PGTABLE_KUNIT_DID(test, reused, "reused stacks");
}

static int bench_cmp(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Print one line that tools parse, with the median and the spread of the middle
 * half.
 */
static void bench_report(struct kunit *test, const char *desc,
			 unsigned long bytes, u64 *ns, unsigned int nr)
{
	unsigned long kib = bytes / SZ_1K;
	bool mib = kib >= SZ_1K;

	sort(ns, nr, sizeof(*ns), bench_cmp, NULL);
	kunit_info(test,
		   "number %s %lu%c ns_median=%llu spread=%llu ns_min=%llu ns_max=%llu runs=%u\n",
		   desc, mib ? kib / SZ_1K : kib, mib ? 'M' : 'K', ns[nr / 2],
		   ns[nr * 3 / 4] - ns[nr / 4], ns[0], ns[nr - 1], nr);
}

/* Early in a boot the clock may tick rarely. */
static u64 bench_clock_step(void)
{
	u64 start = local_clock(), now;

	do {
		now = local_clock();
	} while (now == start);
	return now - start;
}

/*
 * The time to clear one page, two, four and so on up to 64M or more, page by
 * page and as one range. Each run clears all of a large extent in pieces of one
 * size, so that the caches are in the same state for all sizes. Each printed
 * number is the time for one piece. Page by page and one range take turns, so
 * that a disturbance affects both. The case fails if memory is not clear
 * afterwards, but never because of a time.
 */
static void clear_bench(struct kunit *test)
{
	static const struct clear_op ways[] = {
		{ "clear_page", false, op_clear_page },
		{ "clear_pages", true, op_clear_pages },
	};
	unsigned int order = get_order((size_t)bench_mib * SZ_1M), nr, run, way, i;
	unsigned int runs = min(bench, BENCH_MAX);
	struct clear_extent *extent;
	u64 *ns[ARRAY_SIZE(ways)];

	if (!runs)
		kunit_skip(test, "boot with clear_pages.bench=25");
	KUNIT_ASSERT_TRUE(test, clear_extent_fits(order));
	extent = clear_extent_alloc(test, order);
	for (way = 0; way < ARRAY_SIZE(ways); way++) {
		ns[way] = kunit_kcalloc(test, runs, sizeof(u64), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, ns[way]);
	}
	clear_extent_fill(extent, CLEAR_WORDS);
	kunit_info(test, "number clock_step ns=%llu\n", bench_clock_step());

	for (nr = 1; nr <= extent->nr; nr *= 2) {
		for (run = 0; run < runs; run++) {
			for (way = 0; way < ARRAY_SIZE(ways); way++) {
				u64 start = local_clock();

				if (ways[way].ranges && !PGTABLE_KUNIT_CLEAR_RANGES)
					continue;
				for (i = 0; i < extent->nr; i += nr)
					ways[way].clear(extent->page + i, 0, nr);
				ns[way][run] = div_u64(local_clock() - start,
						       extent->nr / nr);
				cond_resched();
			}
		}
		for (way = 0; way < ARRAY_SIZE(ways); way++) {
			if (!ways[way].ranges || PGTABLE_KUNIT_CLEAR_RANGES)
				bench_report(test, ways[way].desc, nr * PAGE_SIZE,
					     ns[way], runs);
		}
	}
	clear_extent_check(extent, 0, extent->nr, "the benchmark");
}

static struct kunit_case clear_pages_cases[] = {
	KUNIT_CASE_PARAM_ATTR(clear_every_range, clear_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM(clear_any_user_address, clear_op_gen_params),
	KUNIT_CASE_PARAM_ATTR(clear_long_range, clear_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE(reused_stack_is_clear),
	KUNIT_CASE_SLOW(clear_bench),
	{}
};

static struct kunit_suite clear_pages_suite = {
	.name = "clear_pages",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = clear_pages_cases,
};

kunit_test_suite(clear_pages_suite);

MODULE_DESCRIPTION("KUnit tests for clear_pages()");
MODULE_LICENSE("GPL");
