// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of atomic read-modify-write instructions: more than one page.
 *
 * A read fault may map more than one page: the huge zero page, or the pages of
 * a file around the address. So an atomic gets different memory, depending on
 * whether its first fault is handled as a read or as a write. In most cases it
 * is better to handle the fault as a write. For shared files it is better to
 * handle the fault as a read. Each case counts the faults, with
 * ARM64_ATOMIC_RMW_WRITE_FAULT and without it.
 *
 * Not covered: hugetlb, file systems that must be notified of writes.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'atomic_rmw*'
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/shmem_fs.h>

#include "atomic_rmw_run.h"

/* Two huge pages fit into the memory of the emulated machine. */
#define RMW_HUGE	(2 * PMD_SIZE)
#define RMW_HUGE_MAX	SZ_128M

static void rmw_expect_huge(struct kunit *test, bool huge)
{
	struct rmw_fixture *f = test->priv;
	struct user_run *run = f->run;
	unsigned long addr;

	for (addr = run->addr; addr < run->addr + RMW_HUGE; addr += PMD_SIZE)
		KUNIT_EXPECT_EQ(test, !!pmd_trans_huge(*pmd_off(run->mm, addr)),
				huge);
}

/*
 * In memory that huge pages can back, a read fault maps the huge zero page. On
 * older kernels the write that follows splits this page, so each page needs its
 * own fault, and there is no huge page. Newer kernels replace the huge zero
 * page by a huge page. If the first fault is handled as a write, it is the only
 * fault.
 */
static void huge_page_faults(struct kunit *test)
{
	const unsigned int huge = RMW_HUGE / PMD_SIZE;
	unsigned int writes = huge;

	if (RMW_HUGE > RMW_HUGE_MAX)
		kunit_skip(test, "a huge page is too large for this machine");
	pgtable_kunit_thp_set(test, BIT(HPAGE_PMD_ORDER), true);
	rmw_run(test, RMW_LDADD, RMW_HUGE, PAGE_SIZE);
	if (!RMW_FORCED && !PGTABLE_KUNIT_REPLACES_HUGE_ZERO)
		writes = huge * PTRS_PER_PTE;
	rmw_expect(test, RMW_FORCED ? 0 : huge, writes);
	rmw_expect_huge(test, writes == huge);
}

/* Without a huge zero page, a read fault allocates a writable huge page. */
static void huge_page_without_zero_page(struct kunit *test)
{
	const unsigned int huge = RMW_HUGE / PMD_SIZE;

	if (RMW_HUGE > RMW_HUGE_MAX)
		kunit_skip(test, "a huge page is too large for this machine");
	pgtable_kunit_thp_set(test, BIT(HPAGE_PMD_ORDER), false);
	rmw_run(test, RMW_LDADD, RMW_HUGE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : huge, RMW_FORCED ? huge : 0);
	rmw_expect_huge(test, true);
}

/*
 * The memory gets folios of 64K, or of 16 pages if pages are larger than 4K. No
 * zero page has this size, so a read fault maps the small zero page, and the
 * write that follows allocates a small page. If the first fault is handled as a
 * write, it allocates a folio of this size.
 */
static void mthp_faults(struct kunit *test)
{
	const unsigned int order = 4, pages = 4U << order;

	pgtable_kunit_thp_set(test, BIT(order), true);
	rmw_run(test, RMW_LDADD, pages * PAGE_SIZE, PAGE_SIZE);
	if (RMW_FORCED)
		rmw_expect(test, 0, pages >> order);
	else
		rmw_expect(test, pages, pages);
}

static void rmw_file_put(void *file)
{
	fput(file);
}

/* A file in memory, with all its pages present. */
static void rmw_file(struct kunit *test, unsigned int pages)
{
	struct rmw_fixture *f = test->priv;
	unsigned int i;

	f->file = pgtable_kunit_shmem_file("atomic_rmw", pages * PAGE_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->file));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, rmw_file_put, f->file));
	for (i = 0; i < pages; i++) {
		struct page *page = shmem_read_mapping_page(f->file->f_mapping,
							    i);

		KUNIT_ASSERT_FALSE(test, IS_ERR(page));
		put_page(page);
	}
}

/* The number of pages of a file that one read fault maps. */
#define RMW_AROUND	max(1, (unsigned int)(SZ_64K / PAGE_SIZE))

/*
 * Private pages of a file: a read fault also maps the pages around it. The
 * first write to each page causes another fault, which copies the page.
 */
static void private_file_faults(struct kunit *test)
{
	const unsigned int pages = 4 * RMW_AROUND;
	struct rmw_fixture *f = test->priv;

	rmw_file(test, pages);
	f->flags = MAP_PRIVATE;
	rmw_run(test, RMW_LDADD, pages * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : pages / RMW_AROUND, pages);
}

/*
 * Whether hardware makes an entry dirty. Otherwise the first write needs a
 * fault.
 */
static bool rmw_hardware_dirty(void)
{
	u64 mmfr1 = read_sanitised_ftr_reg(SYS_ID_AA64MMFR1_EL1);

	return IS_ENABLED(CONFIG_ARM64_HW_AFDBM) &&
	       cpuid_feature_extract_unsigned_field(mmfr1, ID_AA64MMFR1_EL1_HAFDBS_SHIFT) >=
	       ID_AA64MMFR1_EL1_HAFDBS_DBM;
}

/*
 * For shared pages of a file in memory, the option costs more faults. Without
 * the option, a read fault also maps the pages around it. A write to these
 * pages then causes a fault for each page, or no fault if hardware sets the
 * dirty state. With the option, each write fault maps only one page.
 */
static void shared_file_faults(struct kunit *test)
{
	const unsigned int pages = 4 * RMW_AROUND;
	struct rmw_fixture *f = test->priv;

	rmw_file(test, pages);
	f->flags = MAP_SHARED;
	rmw_run(test, RMW_LDADD, pages * PAGE_SIZE, PAGE_SIZE);
	if (RMW_FORCED)
		rmw_expect(test, 0, pages);
	else
		rmw_expect(test, pages / RMW_AROUND,
			   rmw_hardware_dirty() ? 0 : pages);
}

/* In memory with tags the faults are the same as in other memory. */
static void tagged_memory_faults(struct kunit *test)
{
	struct rmw_fixture *f = test->priv;
	const unsigned int pages = 18;
	struct vm_area_struct *vma;

	if (!system_supports_mte())
		kunit_skip(test, "needs memory tagging (--qemu_args '-machine mte=on')");
	f->prot |= PROT_MTE;
	rmw_run(test, RMW_LDADD, pages * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, RMW_FORCED ? 0 : pages, pages);

	mmap_read_lock(f->run->mm);
	vma = vma_lookup(f->run->mm, f->run->addr);
	KUNIT_EXPECT_TRUE(test, vma && (vma->vm_flags & VM_MTE));
	mmap_read_unlock(f->run->mm);
}

/*
 * Whether the emulator derives time from the number of instructions. If so, the
 * same code takes the same time, to a tick.
 */
static bool rmw_counts_instructions(void)
{
	cycles_t ticks[3];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		unsigned long flags;
		cycles_t start;

		local_irq_save(flags);
		start = get_cycles();
		for (n = 0; n < 1000000; n++)
			barrier();
		ticks[i] = get_cycles() - start;
		local_irq_restore(flags);
	}
	return abs_diff(ticks[0], ticks[1]) <= 1 &&
	       abs_diff(ticks[1], ticks[2]) <= 1;
}

/* Ticks of a process with a program that loads from @pages pages. */
static u64 rmw_ticks(struct kunit *test, unsigned int pages, bool places)
{
	u64 start = get_cycles();

	/* ldr x6, [x0] */
	if (places)
		rmw_run_places(test, 0xf9400006, pages * PAGE_SIZE, PAGE_SIZE);
	else
		rmw_run(test, 0xf9400006, pages * PAGE_SIZE, PAGE_SIZE);
	rmw_expect(test, pages, 0);
	return get_cycles() - start;
}

#define RMW_COST	4096

/* Ticks of RMW_COST faults, without the fixed cost of the process. */
static u64 rmw_load_cost(struct kunit *test, unsigned long prot, bool places)
{
	struct rmw_fixture *f = test->priv;

	f->prot = prot;
	return rmw_ticks(test, 2 * RMW_COST, places) -
	       rmw_ticks(test, RMW_COST, places);
}

/*
 * The case measures the cost of the decoder for an instruction that is a load.
 * It compares with read-only memory, where the kernel does not decode. The cost
 * is in instructions, relative to the cheapest kind of fault. If one load
 * accesses all memory, the kernel remembers the address of this load: the cost
 * is at most one hundredth. If two loads at different addresses take turns, the
 * kernel decodes each of them, since it remembers only one address: the cost is
 * at most 6 %.
 */
static void load_cost(struct kunit *test)
{
	u64 plain, looked;
	int places;

	if (!rmw_counts_instructions())
		kunit_skip(test, "needs --qemu_args '-icount shift=0', which counts instructions");
	pgtable_kunit_thp_set(test, 0, true);
	for (places = 0; places < 2; places++) {
		rmw_load_cost(test, PROT_READ, places);	/* page tables exist now */
		plain = rmw_load_cost(test, PROT_READ, places);
		looked = rmw_load_cost(test, PROT_READ | PROT_WRITE, places);
		kunit_info(test, "number load_fault_ticks=%llu load_fault_ticks_writable=%llu faults=%u places=%d\n",
			   plain, looked, RMW_COST, 1 + places);
		KUNIT_EXPECT_LE(test, looked,
				plain + plain * (places ? 6 : 1) / 100);
	}
}

static struct kunit_case atomic_rmw_large_cases[] = {
	KUNIT_CASE(huge_page_faults),
	KUNIT_CASE(huge_page_without_zero_page),
	KUNIT_CASE(mthp_faults),
	KUNIT_CASE(private_file_faults),
	KUNIT_CASE(shared_file_faults),
	KUNIT_CASE(tagged_memory_faults),
	KUNIT_CASE(load_cost),
	{}
};

static struct kunit_suite atomic_rmw_large_suite = {
	.name = "atomic_rmw_large",
	.suite_init = pgtable_kunit_suite_init,
	.init = rmw_init,
	.test_cases = atomic_rmw_large_cases,
};

kunit_test_suite(atomic_rmw_large_suite);

MODULE_DESCRIPTION("KUnit tests for page faults of atomic instructions: large folios and files");
MODULE_LICENSE("GPL");
