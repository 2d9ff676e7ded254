// SPDX-License-Identifier: GPL-2.0
/*
 * The barriers that make a write of a kernel entry visible to the table walker.
 *
 * A new valid entry of the kernel needs two barriers before its address is
 * used. In lazy MMU mode the kernel postpones them until the mode ends, and
 * sets a flag of the thread to say that they are pending. If the flag gets
 * lost, an access to newly mapped memory causes a fault. If the flag is never
 * set, the mode does not reduce the number of barriers.
 *
 * The first case uses a synthetic table and checks the flag, since no emulator
 * shows a missing barrier. The second case writes an entry without a lock.
 * Older kernels postpone no barrier and write no such entry, so they skip the
 * suite. Not covered: the count of nested sections, which the kernel tests in
 * lazy_mmu_mode_kunit.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'pte_barriers'
 */

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/log2.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "pgtable_kunit.h"

#ifdef TIF_LAZY_MMU_PENDING
static bool barriers_owed(void)
{
	return test_thread_flag(TIF_LAZY_MMU_PENDING);
}

/* Ways to write kernel entries, and entries that need no barrier. */
struct barrier_write {
	const char *desc;
	unsigned int nr;
	pgprot_t prot;
	bool pmd;
	bool swap;
	bool owes;
};

/* Write the entries, and expect them in the table at once. */
static void barriers_write(struct kunit *test, const struct barrier_write *write)
{
	struct pgtable_kunit_table *table = test->priv;
	unsigned long pfn = PHYS_PFN(__pa_symbol(_text));
	pte_t pte = pfn_pte(ALIGN(pfn, PTRS_PER_PTE), write->prot);
	unsigned int i;

	if (write->swap)
		pte = swp_entry_to_pte(swp_entry(1, 5));
	memset(table->pte, 0, PAGE_SIZE);
	if (write->pmd)
		set_pmd((pmd_t *)table->pte, pte_pmd(pte));
	else
		set_ptes(&init_mm, table->addr, table->pte, pte, write->nr);
	for (i = 0; i < write->nr; i++)
		KUNIT_EXPECT_FALSE_MSG(test,
				       pte_none(pgtable_kunit_raw_get(table->pte + i)),
				       "%s: entry %u", write->desc, i);
	memset(table->pte, 0, PAGE_SIZE);
}

#define BARRIERS_EXPECT(want, when)					\
	KUNIT_EXPECT_EQ_MSG(test, barriers_owed(), want, "%s: %s",	\
			    write->desc, when)

static unsigned int barriers_of_one(struct kunit *test,
				    const struct barrier_write *write)
{
	barriers_write(test, write);
	BARRIERS_EXPECT(false, "outside of the mode");

	lazy_mmu_mode_enable();
	BARRIERS_EXPECT(false, "at its start");
	barriers_write(test, write);
	BARRIERS_EXPECT(write->owes, "in it");

	lazy_mmu_mode_enable();
	BARRIERS_EXPECT(write->owes, "in it twice");
	lazy_mmu_mode_disable();
	BARRIERS_EXPECT(false, "after the inner end");
	barriers_write(test, write);
	BARRIERS_EXPECT(write->owes, "in it again");

	lazy_mmu_mode_pause();
	BARRIERS_EXPECT(false, "at the pause");
	barriers_write(test, write);
	BARRIERS_EXPECT(false, "in the pause");
	lazy_mmu_mode_resume();

	/*
	 * Pretend to be in an interrupt, which must not leave its barriers to
	 * the task.
	 */
	local_bh_disable();
	barriers_write(test, write);
	BARRIERS_EXPECT(false, "in an interrupt");
	local_bh_enable();

	barriers_write(test, write);
	BARRIERS_EXPECT(write->owes, "after the pause");
	lazy_mmu_mode_disable();
	BARRIERS_EXPECT(false, "after the end");
	return 8;
}

/*
 * The kernel postpones the barriers of valid kernel entries in lazy MMU mode,
 * but not in a pause of the mode or in an interrupt. The end of a section
 * executes the barriers, even the end of a nested section. The entry itself is
 * in the table at once. The case writes one entry, as many entries as a
 * contiguous block has, a full table, and a PMD. User entries and entries that
 * are not valid need no barrier.
 */
static void set_ptes_in_lazy_mode(struct kunit *test)
{
	const struct barrier_write writes[] = {
		{ "one kernel entry", 1, PAGE_KERNEL, .owes = true },
		{ "kernel entries", CONT_PTES, PAGE_KERNEL, .owes = true },
		{ "kernel entries, a table", PTRS_PER_PTE, PAGE_KERNEL_RO,
		  .owes = true },
		{ "a kernel PMD", 1, PAGE_KERNEL, .pmd = true, .owes = true },
		{ "user entries", 2, vm_get_page_prot(VM_READ | VM_SHARED) },
		{ "PROT_NONE", 2, vm_get_page_prot(VM_NONE) },
		{ "a swap entry", 1, .swap = true },
	};
	unsigned int i, nr = 0;

	for (i = 0; i < ARRAY_SIZE(writes); i++)
		nr += barriers_of_one(test, &writes[i]);
	PGTABLE_KUNIT_DID(test, nr, "checks of the flag");
}
#else
static void set_ptes_in_lazy_mode(struct kunit *test)
{
	kunit_skip(test, "this kernel defers no barriers");
}
#endif

#ifdef ptep_try_set
/* The number of rounds. Each round writes an entry, and replaces it. */
#define TRY_ROUNDS	64

static int try_entry(pte_t *ptep, unsigned long addr, void *data)
{
	*(pte_t **)data = ptep;
	return 0;
}

/* The word that the kernel reads at an address, or 0 if it cannot read it. */
static u64 try_read(unsigned long addr)
{
	u64 value = 0;

	if (copy_from_kernel_nofault(&value, (void *)addr, sizeof(value)))
		return 0;
	return value;
}

/*
 * ptep_try_set() writes an entry only if there is none: otherwise it returns
 * false, and the old entry stays. A handler of kernel faults writes entries like
 * this without a lock, so the kernel must be able to use the address at once,
 * even in lazy MMU mode. Before another page replaces the first,
 * flush_tlb_before_set() removes the old translation. The CPU reads through the
 * entry before and after each change, so without an invalidation it would use
 * the old translation. The task keeps the CPU meanwhile, since a switch of
 * tasks may empty the TLB.
 */
static void ptep_try_set_once(struct kunit *test)
{
	struct vm_struct *vm = get_vm_area(PAGE_SIZE, VM_SPARSE);
	unsigned int replaced = 0, failed = 0;
	unsigned long addr;
	struct page *page[2];
	pte_t *ptep = NULL;

	KUNIT_ASSERT_NOT_NULL(test, vm);
	addr = (unsigned long)vm->addr;
	for (int i = 0; i < 2; i++) {
		u64 *word = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, word);
		*word = i + 1;
		page[i] = virt_to_page(word);
	}
	KUNIT_ASSERT_EQ(test, 0, apply_to_page_range(&init_mm, addr, PAGE_SIZE,
						     try_entry, &ptep));
	for (int round = 0; round < TRY_ROUNDS; round++) {
		pte_t first = mk_pte(page[round & 1], PAGE_KERNEL);
		pte_t other = mk_pte(page[!(round & 1)], PAGE_KERNEL);
		u64 want = (round & 1) + 1;

		preempt_disable();
		lazy_mmu_mode_enable();
		failed += !ptep_try_set(ptep, first) || barriers_owed();
		lazy_mmu_mode_disable();
		failed += try_read(addr) != want;
		failed += ptep_try_set(ptep, other);
		failed += !pte_same(__ptep_get(ptep), first) || try_read(addr) != want;
		ptep_get_and_clear(&init_mm, addr, ptep);
		flush_tlb_before_set(addr);
		failed += !ptep_try_set(ptep, other);
		failed += try_read(addr) != 3 - want;
		replaced += pte_same(ptep_get_and_clear(&init_mm, addr, ptep), other);
		flush_tlb_before_set(addr);
		preempt_enable();
	}
	free_vm_area(vm);
	KUNIT_EXPECT_EQ(test, failed, 0);
	KUNIT_EXPECT_EQ(test, replaced, TRY_ROUNDS);
	PGTABLE_KUNIT_DID(test, replaced, "entries replaced");
}
#else
static void ptep_try_set_once(struct kunit *test)
{
	kunit_skip(test, "no ptep_try_set()");
}
#endif

static struct kunit_case pte_barriers_cases[] = {
	KUNIT_CASE(set_ptes_in_lazy_mode),
	KUNIT_CASE(ptep_try_set_once),
	{}
};

static struct kunit_suite pte_barriers_suite = {
	.name = "pte_barriers",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_table_init,
	.test_cases = pte_barriers_cases,
};

kunit_test_suite(pte_barriers_suite);

MODULE_DESCRIPTION("KUnit tests for the barriers after arm64 kernel entries");
MODULE_LICENSE("GPL");
