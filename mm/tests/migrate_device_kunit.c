// SPDX-License-Identifier: GPL-2.0
/*
 * How migrate_vma_setup() and migrate_vma_pages() change entries.
 *
 * A driver calls migrate_vma_setup() to move pages to its device. The function
 * replaces the entries of these pages by migration entries, and invalidates the
 * old translations. As soon as their table is unlocked, another thread may
 * change the same entries. So the invalidation has to be complete before that.
 * The first case checks that the lock is held when the kernel invalidates, and
 * lets another thread try to change an entry. In the second case the driver
 * replaces the zero page with its own page, and the entry must keep its
 * protection by userfaultfd. Not covered: the values that the driver gets
 * (device_memory), huge pages.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--kconfig_add=CONFIG_MEMORY_HOTPLUG=y \
 *	--kconfig_add=CONFIG_MEMORY_HOTREMOVE=y \
 *	--kconfig_add=CONFIG_ZONE_DEVICE=y --qemu_args '-smp 2' migrate_device
 */

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/migrate.h>
#include <linux/mman.h>
#include <linux/mmu_context.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "pgtable_kunit.h"

#define MIGRATE_PAGES	16U
/*
 * The other thread needs only some microseconds, but a busy emulator may delay
 * it.
 */
#define MIGRATE_WAIT_US	50000

/**
 * struct migrate_late - a thread that frees the last page during its migration
 * @mm: the address space
 * @addr: the pages
 * @ptl: the lock of their table
 * @task: the thread, or NULL if there is only one CPU
 * @go: the kernel invalidates now, so the thread may begin
 * @done: the thread has freed the page, and used its other memory
 * @ret: what madvise() returned
 * @unlocked: invalidations while the table was not locked
 * @early: invalidations in which the thread freed the page
 */
struct migrate_late {
	struct mm_struct *mm;
	unsigned long addr;
	spinlock_t *ptl;	/* of the table */
	struct task_struct *task;
	bool go;
	bool done;
	long ret;
	unsigned int unlocked;
	unsigned int early;
};

static int migrate_thread(void *data)
{
	struct migrate_late *late = data;
	unsigned int value;

	kthread_use_mm(late->mm);
	while (!READ_ONCE(late->go) && !kthread_should_stop())
		cond_resched();
	late->ret = pgtable_kunit_syscall(madvise,
					  late->addr + (MIGRATE_PAGES - 1) * PAGE_SIZE,
					  PAGE_SIZE, MADV_DONTNEED);
	if (!late->ret)
		late->ret = get_user(value, (unsigned int __user *)
				     (late->addr + MIGRATE_PAGES * PAGE_SIZE));
	/* Pairs with the load in migrate_look(): @ret comes first. */
	smp_store_release(&late->done, true);
	while (!kthread_should_stop())
		cond_resched();
	kthread_unuse_mm(late->mm);
	return 0;
}

static void migrate_look(void *data)
{
	struct migrate_late *late = data;
	unsigned int us;

	if (spin_trylock(late->ptl)) {
		late->unlocked++;
		spin_unlock(late->ptl);
	}
	WRITE_ONCE(late->go, true);
	for (us = 0; late->task && us < MIGRATE_WAIT_US; us++) {
		/* Pairs with the store in migrate_thread(). */
		if (smp_load_acquire(&late->done)) {
			late->early++;
			break;
		}
		udelay(1);
	}
}

/* The lock of the table of an address, or NULL if there is no table. */
static spinlock_t *migrate_lock(struct mm_struct *mm, unsigned long addr)
{
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep;

	ptep = pte_offset_map_lock(mm, pmd_off(mm, addr), addr, &ptl);
	if (!ptep)
		return NULL;
	pte_unmap_unlock(ptep, ptl);
	return ptl;
}

/*
 * The table is locked when migrate_vma_setup() invalidates the pages of shared
 * memory that it collects. In an earlier kernel the table was not locked
 * (60bae7370896): after an madvise() of another thread, CPUs could still use
 * old translations of the freed page. With two CPUs another thread calls
 * madvise() meanwhile. It gets the lock only after the invalidation, and each
 * page keeps its content. Sixteen pages have one table.
 */
static void migrate_vma_setup_flushes_locked(struct kunit *test)
{
	struct migrate_late *late = kunit_kzalloc(test, sizeof(*late), GFP_KERNEL);
	struct migrate_vma args = {
		.flags = MIGRATE_VMA_SELECT_SYSTEM,
	};
	unsigned int i, value, here = raw_smp_processor_id(), isolated = 0;
	unsigned long size = (MIGRATE_PAGES + 1) * PAGE_SIZE;
	struct pgtable_kunit_tlb *tlb;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, late);
	args.src = kunit_kcalloc(test, MIGRATE_PAGES, sizeof(*args.src), GFP_KERNEL);
	args.dst = kunit_kcalloc(test, MIGRATE_PAGES, sizeof(*args.dst), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, args.src);
	KUNIT_ASSERT_NOT_NULL(test, args.dst);
	late->addr = kunit_vm_mmap(test, NULL, 0, PMD_SIZE + size,
				   PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(late->addr));
	late->addr = ALIGN(late->addr, PMD_SIZE);
	late->mm = current->mm;
	for (i = 0; i <= MIGRATE_PAGES; i++)
		KUNIT_ASSERT_EQ(test, 0,
				put_user(i + 1, (unsigned int __user *)
					 (late->addr + i * PAGE_SIZE)));
	lru_add_drain_all();
	late->ptl = migrate_lock(late->mm, late->addr);
	KUNIT_ASSERT_NOT_NULL(test, late->ptl);
	tlb = pgtable_kunit_tlb_record(test, late->mm);

	if (num_online_cpus() > 1) {
		KUNIT_ASSERT_EQ(test, 0,
				set_cpus_allowed_ptr(current, cpumask_of(here)));
		late->task = kthread_create(migrate_thread, late, "migrate_late");
		KUNIT_ASSERT_FALSE(test, IS_ERR(late->task));
		kthread_bind(late->task, cpumask_any_but(cpu_online_mask, here));
		wake_up_process(late->task);
	}

	mmap_read_lock(late->mm);
	args.vma = vma_lookup(late->mm, late->addr);
	args.start = late->addr;
	args.end = late->addr + MIGRATE_PAGES * PAGE_SIZE;
	tlb->nr = 0;
	tlb->look_data = late;
	WRITE_ONCE(tlb->look, migrate_look);
	ret = migrate_vma_setup(&args);
	WRITE_ONCE(tlb->look, NULL);
	/*
	 * For `make tlb`: this thread accesses memory while pages are isolated.
	 */
	KUNIT_EXPECT_EQ(test, 0,
			copy_from_user_nofault(&value, (void __user *)
					       (args.end), sizeof(value)));
	for (i = 0; !ret && i < MIGRATE_PAGES; i++)
		isolated += !!(args.src[i] & MIGRATE_PFN_MIGRATE);
	if (!ret)
		migrate_vma_finalize(&args);
	mmap_read_unlock(late->mm);
	if (late->task)
		kthread_stop(late->task);

	KUNIT_EXPECT_EQ(test, ret, 0);
	KUNIT_EXPECT_EQ(test, late->ret, 0);
	PGTABLE_KUNIT_DID(test, isolated, "pages isolated");
	PGTABLE_KUNIT_DID(test, tlb->nr, "invalidations");
	KUNIT_EXPECT_EQ(test, late->unlocked, 0);
	KUNIT_EXPECT_EQ(test, late->early, 0);
	for (i = 0; i <= MIGRATE_PAGES; i++) {
		KUNIT_EXPECT_EQ(test, 0,
				get_user(value, (unsigned int __user *)
					 (late->addr + i * PAGE_SIZE)));
		KUNIT_EXPECT_EQ_MSG(test, value, i + 1, "page %u", i);
	}
}

static const struct zero_kind {
	const char *desc;
	bool protect;
} zero_kinds[] = {
	{ "unprotected", false },
	{ "protected", true },
};

KUNIT_ARRAY_PARAM_DESC(zero_kind, zero_kinds, desc);

/*
 * Returns the entry at @addr. With @protect, userfaultfd protects it from now
 * on.
 */
static pte_t device_entry(struct kunit *test, unsigned long addr, bool protect)
{
	struct mm_struct *mm = current->mm;
	pte_t *ptep, pte = __pte(0);
	spinlock_t *ptl;	/* of the table */

	ptep = pte_offset_map_lock(mm, pmd_off(mm, addr), addr, &ptl);
	KUNIT_EXPECT_NOT_NULL(test, ptep);
	if (!ptep)
		return pte;
	if (protect)
		set_pte_at(mm, addr, ptep, pgtable_kunit_mkuffd(ptep_get(ptep)));
	pte = ptep_get(ptep);
	pte_unmap_unlock(ptep, ptl);
	return pte;
}

/*
 * A driver moves the zero page: it supplies its own page in place of the zero
 * page. An entry without protection gets this page. An entry that userfaultfd
 * protects against writes must stay protected, with either page. A page of the
 * system stands for a page of the device, because the kernel handles both in
 * the same way. Known issue 33: the entry gets the driver's page, writable, and
 * is not protected any more.
 */
static void migrate_zero_page(struct kunit *test)
{
	const struct zero_kind *kind = test->param_value;
	unsigned long src = 0, dst = 0, addr;
	struct migrate_vma args = {
		.flags = MIGRATE_VMA_SELECT_SYSTEM,
		.src = &src,
		.dst = &dst,
	};
	struct mm_struct *mm;
	struct page *page;
	pte_t before, after;
	int value, ret;

	if (!pgtable_kunit_uffd(pgtable_kunit_mkuffd(__pte(0))))
		kunit_skip(test, "no write protection by userfaultfd");
	addr = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	mm = current->mm;
	args.start = addr;
	args.end = addr + PAGE_SIZE;
	pgtable_kunit_thp_set(test, 0, false);
	KUNIT_ASSERT_EQ(test, 0, get_user(value, (int __user *)addr));
	page = alloc_page(GFP_HIGHUSER | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, page);

	mmap_write_lock(mm);
	args.vma = vma_lookup(mm, addr);
	if (kind->protect)
		vm_flags_set(args.vma, VM_UFFD_WP);
	before = device_entry(test, addr, kind->protect);
	ret = migrate_vma_setup(&args);
	if (ret) {
		put_page(page);
	} else {
		lock_page(page);
		dst = migrate_pfn(page_to_pfn(page));
		migrate_vma_pages(&args);
		migrate_vma_finalize(&args);
	}
	after = device_entry(test, addr, false);
	vm_flags_clear(args.vma, VM_UFFD_WP);
	mmap_write_unlock(mm);

	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_EXPECT_TRUE(test, is_zero_pfn(pte_pfn(before)));
	KUNIT_EXPECT_TRUE(test, pte_present(after));
	if (!kind->protect) {
		KUNIT_EXPECT_EQ(test, pte_pfn(after), page_to_pfn(page));
		KUNIT_EXPECT_TRUE(test, pte_write(after));
		return;
	}
	KUNIT_EXPECT_TRUE(test, pgtable_kunit_uffd(before));
	if (!pgtable_kunit_uffd(after) && pte_write(after) &&
	    pte_pfn(after) == page_to_pfn(page)) {
		pgtable_kunit_known_issue(test, 33,
					  "the driver's page is not protected");
		return;
	}
	KUNIT_EXPECT_TRUE(test, pgtable_kunit_uffd(after));
	KUNIT_EXPECT_FALSE(test, pte_write(after));
	pgtable_kunit_stale_issue(test, 33);
}

static struct kunit_case migrate_device_cases[] = {
	KUNIT_CASE(migrate_vma_setup_flushes_locked),
	KUNIT_CASE_PARAM(migrate_zero_page, zero_kind_gen_params),
	{}
};

static struct kunit_suite migrate_device_suite = {
	.name = "migrate_device",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = migrate_device_cases,
};

kunit_test_suite(migrate_device_suite);

MODULE_DESCRIPTION("KUnit tests for the entries of pages that a driver migrates");
MODULE_LICENSE("GPL");
