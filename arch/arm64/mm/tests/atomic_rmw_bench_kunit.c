// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of filling memory with different kinds of instructions.
 *
 * A program accesses fresh memory page by page with one instruction: a load, a
 * store or an atomic. On CPUs without LSE a pair of exclusive load and store
 * replaces the atomic. Each case prints a line for scripts ("number ...") with
 * the number of page faults, which is exact, and the time for each MiB. Both
 * are differences between runs on 2N and on N MiB, so the fixed cost of the
 * process is subtracted. If the emulator derives time from instructions, one
 * nanosecond is one instruction. The probe that counts the faults adds the same
 * time to each fault.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 atomic_rmw_bench \
 *	--kernel_args atomic_rmw_bench.mib=16 --qemu_args '-icount shift=0'
 *
 * A case fails if a program ends with an error. It makes up to three tries, and
 * also fails if twice as much memory never causes twice as many faults. It
 * never fails because of a time. Not covered: which page a fault maps
 * (atomic_rmw_fault), and the time on real hardware.
 */

#include <kunit/test.h>
#include <linux/sched/clock.h>

#include "atomic_rmw_run.h"

static unsigned int mib;
module_param(mib, uint, 0444);
MODULE_PARM_DESC(mib, "MiB of memory to work on; 0 skips all");

struct rmw_way {
	const char *desc;
	u32 insn;
	u32 next;	/* a second one, or 0 */
};

static const struct rmw_way rmw_ways[] = {
	{ "ldr", 0xf9400006 },			/* ldr	x6, [x0] */
	{ "str", 0xf9000006 },			/* str	x6, [x0] */
	{ "ldadd", RMW_LDADD },
	{ "ldxr_stxr", 0xc85f7c06, 0xc8077c06 }, /* ldxr x6; stxr w7, x6 */
};

KUNIT_ARRAY_PARAM_DESC(rmw_way, rmw_ways, desc);

/* Faults and time of a program on @size bytes of fresh memory. */
static u64 rmw_fill(struct kunit *test, const struct rmw_way *way,
		    unsigned long size, unsigned int *faults)
{
	struct rmw_fixture *f = test->priv;
	u64 start = local_clock();

	if (way->next)
		rmw_run_pair(test, way->insn, way->next, size, PAGE_SIZE);
	else
		rmw_run(test, way->insn, size, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, f->run->status, 0);
	*faults = f->run->nr;
	return local_clock() - start;
}

/*
 * If khugepaged runs meanwhile, it may map a huge page where the case expects a
 * fault.
 */
#define RMW_TRIES	3

static void rmw_fill_orders(struct kunit *test)
{
	static const unsigned int orders[] = { 0, 4, HPAGE_PMD_ORDER };
	const struct rmw_way *way = test->param_value;
	unsigned long size = (unsigned long)mib * SZ_1M;
	unsigned int i, once, twice, try;
	u64 ns;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		if (PAGE_SIZE << orders[i] > size)
			continue;
		pgtable_kunit_thp_set(test, orders[i] ? BIT(orders[i]) : 0, true);
		rmw_fill(test, way, 2 * size, &twice);	/* warms up */
		for (try = 0; try < RMW_TRIES; try++) {
			ns = rmw_fill(test, way, 2 * size, &twice);
			ns -= rmw_fill(test, way, size, &once);
			if (twice == 2 * once)
				break;
		}
		KUNIT_EXPECT_EQ(test, twice, 2 * once);
		kunit_info(test, "number %s order-%u mib=%u faults=%u ns=%llu\n",
			   way->desc, orders[i], mib, once, ns);
	}
}

static int atomic_rmw_bench_init(struct kunit *test)
{
	if (!mib)
		kunit_skip(test, "boot with atomic_rmw_bench.mib=16");
	return rmw_init(test);
}

static struct kunit_case atomic_rmw_bench_cases[] = {
	KUNIT_CASE_PARAM_ATTR(rmw_fill_orders, rmw_way_gen_params,
			      PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite atomic_rmw_bench_suite = {
	.name = "atomic_rmw_bench",
	.suite_init = pgtable_kunit_suite_init,
	.init = atomic_rmw_bench_init,
	.test_cases = atomic_rmw_bench_cases,
};

kunit_test_suite(atomic_rmw_bench_suite);

MODULE_DESCRIPTION("KUnit benchmark of page faults of atomic instructions");
MODULE_LICENSE("GPL");
