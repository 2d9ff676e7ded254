// SPDX-License-Identifier: GPL-2.0
/*
 * What page faults change, in addition to the entry that they set.
 *
 * A fault on a file tells readahead whether the page was cached. A fault that
 * fails frees its folio. MADV_FREE keeps markers, and the next fault depends on
 * them. A fault that removes a protection keeps the access flag. Each case
 * makes faults in its own address space. Most cases check counters of the
 * kernel.
 *
 * Not covered: the entries themselves (folio_reclaim, swap_in, and the selftests
 * folio_file and folio_tables).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	fault_state
 */

#include <kunit/test.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/swapops.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>
#include <linux/userfaultfd.h>
#include <linux/vmstat.h>

#include "user_mm.h"

/*
 * The number of pages of the file. One fault maps them all, if pages are not
 * too large.
 */
#define FAULT_PAGES	4U
#define FAULT_AROUND	(PAGE_SIZE < SZ_64K)

static unsigned int __user *fault_word(unsigned int page)
{
	return (unsigned int __user *)(USER_ADDR + page * PAGE_SIZE);
}

/**
 * struct miss_kind - a mapping of a file
 * @desc: in words
 * @prot: its protection
 * @advice: of madvise()
 * @workingset: reclaim has evicted the pages not long ago
 * @counts: whether a fault changes the counter, in a kernel that counts each
 *	fault once
 */
static const struct miss_kind {
	const char *desc;
	unsigned long prot;
	int advice;
	bool workingset;
	bool counts;
} miss_kinds[] = {
	{ "data", PROT_READ, MADV_NORMAL, false, true },
	{ "MADV_SEQUENTIAL", PROT_READ, MADV_SEQUENTIAL, false, false },
	{ "PROT_EXEC", PROT_READ | PROT_EXEC, MADV_NORMAL, false, false },
	{ "evicted before", PROT_READ, MADV_NORMAL, true, false },
};

KUNIT_ARRAY_PARAM_DESC(miss_kind, miss_kinds, desc);

/* Map the file, and do something with each page. */
static void miss_map(struct kunit *test, struct file *file, unsigned long prot)
{
	KUNIT_ASSERT_EQ(test, USER_ADDR,
			vm_mmap(file, USER_ADDR, FAULT_PAGES * PAGE_SIZE, prot,
				MAP_SHARED | MAP_FIXED, 0));
}

static void miss_unmap(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, vm_munmap(USER_ADDR, FAULT_PAGES * PAGE_SIZE));
}

/*
 * Write all pages of the file, and mark them as in or out of the working set.
 */
static void miss_fill(struct kunit *test, struct file *file, bool workingset)
{
	struct user_mm *u = test->priv;
	unsigned int i;

	miss_map(test, file, PROT_READ | PROT_WRITE);
	for (i = 0; i < FAULT_PAGES; i++) {
		struct folio *folio;

		KUNIT_ASSERT_EQ(test, 0, put_user(i, fault_word(i)));
		folio = pfn_folio(pte_pfn(user_mm_pte(u, (unsigned long)fault_word(i))));
		KUNIT_ASSERT_EQ(test, 0, folio_order(folio));
		if (workingset)
			folio_set_workingset(folio);
		else
			folio_clear_workingset(folio);
	}
	miss_unmap(test);
}

/*
 * Readahead for page faults stops if it misses too often, and begins again if
 * faults find their pages. So a fault that finds its page decreases the counter
 * of misses, but never below 0. It must not decrease the counter if readahead
 * does not count misses of this mapping, or if the page was evicted not long
 * ago. An older kernel decreases the counter for each page that a fault maps,
 * in every mapping. The counter starts at 0, at 1, and at more than the number
 * of pages.
 */
static void fault_around_counts_hits(struct kunit *test)
{
	static const unsigned int before[] = { 0, 1, 100 };
	const struct miss_kind *kind = test->param_value;
	unsigned int k, data, hits, faults = 0;
	struct file *file;

	file = pgtable_kunit_shmem_file("fault_state", FAULT_PAGES * PAGE_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	miss_fill(test, file, kind->workingset);
	if (PGTABLE_KUNIT_MISSES_PER_PAGE)
		hits = kind->workingset ? 0 : FAULT_PAGES;
	else
		hits = kind->counts;
	if (!FAULT_AROUND)
		hits = 0;
	for (k = 0; k < ARRAY_SIZE(before); k++) {
		unsigned int want = before[k] - min(before[k], hits);

		miss_map(test, file, kind->prot);
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_syscall(madvise, USER_ADDR,
						      FAULT_PAGES * PAGE_SIZE,
						      kind->advice));
		file->f_ra.mmap_miss = before[k];
		KUNIT_EXPECT_EQ(test, 0, get_user(data, fault_word(1)));
		KUNIT_EXPECT_EQ(test, data, 1);
		KUNIT_EXPECT_EQ_MSG(test, file->f_ra.mmap_miss, want,
				    "%u misses before", before[k]);
		miss_unmap(test);
		faults++;
	}
	fput(file);
	PGTABLE_KUNIT_DID(test, faults, "faults");
}

/*
 * Make a fault on a page of the file. The caller repeats it if the fault mapped
 * nothing.
 */
static vm_fault_t around_fault(struct user_mm *u, unsigned int page)
{
	unsigned long addr = (unsigned long)fault_word(page);
	vm_fault_t ret = VM_FAULT_SIGSEGV;
	struct vm_area_struct *vma;

	mmap_read_lock(u->mm);
	vma = vma_lookup(u->mm, addr);
	if (vma)
		ret = handle_mm_fault(vma, addr, FAULT_FLAG_REMOTE, NULL);
	mmap_read_unlock(u->mm);
	return ret;
}

/*
 * The page cache has a folio of four pages, and not the pages after it. A fault
 * on one of the pages after it must map this page. If the fault mapped only
 * pages of the folio, the program would fault for ever. The first fault finds
 * no entry. For the second, only the last page of the folio is mapped:
 *
 *	folio	   after it		folio	   after it
 *	. . . .	   x			. . . P	   P x
 */
static void fault_around_after_folio(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 2);
	unsigned long size = 2 * FAULT_PAGES * PAGE_SIZE;
	struct user_mm *u = test->priv;
	unsigned int page, mapped = 0;
	struct file *file;

	file = pgtable_kunit_shmem_file("fault_state", size);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, 0, filemap_add_folio(file->f_mapping, folio, 0,
						   GFP_KERNEL));
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, USER_ADDR,
			vm_mmap(file, USER_ADDR, size, PROT_READ,
				MAP_SHARED | MAP_FIXED, 0));
	for (page = FAULT_PAGES; page < FAULT_PAGES + 2; page++) {
		vm_fault_t ret = around_fault(u, page);

		KUNIT_EXPECT_EQ(test, 0,
				pgtable_kunit_syscall(madvise, USER_ADDR,
						      (FAULT_PAGES - 1) * PAGE_SIZE,
						      MADV_DONTNEED));
		KUNIT_EXPECT_FALSE(test, ret & VM_FAULT_ERROR);
		if (pte_present(user_mm_pte(u, (unsigned long)fault_word(page))))
			mapped++;
		else
			KUNIT_FAIL(test, "page %u is not mapped", page);
	}
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(USER_ADDR, size));
	folio_lock(folio);
	filemap_remove_folio(folio);
	folio_unlock(folio);
	lru_add_drain_all();
	fput(file);
	PGTABLE_KUNIT_DID(test, mapped, "pages mapped");
}

/*
 * The number of pages that the faults of a case allocate. The case notices a
 * leak if half of them are lost.
 */
#define DYING_PAGES	2048U

static const unsigned int dying_orders[] = { 0, USER_BLOCK_ORDER };

static void dying_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(dying_order, dying_orders, dying_order_desc);

static long dying_free(void)
{
	lru_add_drain_all();
	return global_zone_page_state(NR_FREE_PAGES);
}

/*
 * The OOM killer takes memory away from a process that still runs. Then a fault
 * must not map a new page of zeros in place of old data: it must fail, and free
 * the folio that it has allocated. The case makes so many faults that lost
 * folios would outnumber the folios that other tasks allocate meanwhile.
 */
static void fault_in_dying_mm_frees_folio(struct kunit *test)
{
	unsigned int order = *(unsigned int *)test->param_value;
	unsigned int i, faults = max(DYING_PAGES >> order, 16U);
	unsigned long size = PAGE_SIZE << order;
	struct user_mm *u = test->priv;
	long were;

	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, false);
	KUNIT_ASSERT_EQ(test, USER_ADDR,
			vm_mmap(NULL, USER_ADDR, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0));
	set_bit(MMF_UNSTABLE, (unsigned long *)&u->mm->flags);
	KUNIT_EXPECT_EQ(test, -EFAULT, put_user(1, fault_word(0)));
	were = dying_free();
	for (i = 0; i < faults; i++)
		KUNIT_ASSERT_EQ(test, -EFAULT, put_user(1, fault_word(0)));
	KUNIT_EXPECT_GT_MSG(test, dying_free() - were, -(long)(faults << order) / 2,
			    "free pages, after %u faults", faults);
	KUNIT_EXPECT_TRUE(test, pte_none(user_mm_pte(u, USER_ADDR)));
	clear_bit(MMF_UNSTABLE, (unsigned long *)&u->mm->flags);
	KUNIT_EXPECT_EQ(test, 0, put_user(1, fault_word(0)));
	KUNIT_EXPECT_EQ(test, order,
			folio_order(pfn_folio(pte_pfn(user_mm_pte(u, USER_ADDR)))));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(USER_ADDR, size));
	PGTABLE_KUNIT_DID(test, faults, "faults that fail");
}

/**
 * struct free_marker - an entry that refers to no page
 * @desc: in words
 * @marker: the marker in it
 * @stays: MADV_FREE must keep it
 */
static const struct free_marker {
	const char *desc;
	unsigned int marker;
	bool stays;
} free_markers[] = {
	{ "poisoned", PTE_MARKER_POISONED, false },
	{ "userfaultfd", PTE_MARKER_UFFD_WP, true },
#ifdef PTE_MARKER_GUARD
	{ "guard", PTE_MARKER_GUARD, true },
#endif
};

KUNIT_ARRAY_PARAM_DESC(free_marker, free_markers, desc);

static bool free_set(struct user_mm *u, unsigned long addr, pte_t pte)
{
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep;

	mmap_write_lock(u->mm);
	ptep = pte_offset_map_lock(u->mm, pmd_off(u->mm, addr), addr, &ptl);
	if (ptep) {
		set_pte_at(u->mm, addr, ptep, pte);
		pte_unmap_unlock(ptep, ptl);
	}
	mmap_write_unlock(u->mm);
	return ptep;
}

/*
 * MADV_FREE tells the kernel that it may drop the content of pages. It removes
 * the marker of a poisoned page, because the lost content does not matter any
 * more. It keeps other markers, because they say what has to happen at the next
 * access: a guard must continue to catch accesses. The marker is at each place
 * among three pages.
 */
static void madvise_free_keeps_markers(struct kunit *test)
{
	const struct free_marker *kind = test->param_value;
	unsigned int page, i, data, markers = 0;
	struct user_mm *u = test->priv;

	for (page = 0; page < FAULT_PAGES; page++) {
		unsigned long addr = (unsigned long)fault_word(page);
		pte_t pte = make_pte_marker(kind->marker);

		KUNIT_ASSERT_EQ(test, USER_ADDR,
				vm_mmap(NULL, USER_ADDR, FAULT_PAGES * PAGE_SIZE,
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
					0));
		for (i = 0; i < FAULT_PAGES; i++) {
			if (i != page)
				KUNIT_ASSERT_EQ(test, 0, put_user(i, fault_word(i)));
		}
		KUNIT_ASSERT_TRUE(test, free_set(u, addr, pte));
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_syscall(madvise, USER_ADDR,
						      FAULT_PAGES * PAGE_SIZE,
						      MADV_FREE));
		KUNIT_EXPECT_EQ_MSG(test, pte_val(user_mm_pte(u, addr)),
				    kind->stays ? pte_val(pte) :
						  pte_val(pgtable_kunit_none()),
				    "page %u", page);
		for (i = 0; i < FAULT_PAGES; i++) {
			if (i == page)
				continue;
			KUNIT_EXPECT_EQ(test, 0, get_user(data, fault_word(i)));
			KUNIT_EXPECT_EQ(test, data, i);
		}
		KUNIT_EXPECT_EQ(test, 0,
				vm_munmap(USER_ADDR, FAULT_PAGES * PAGE_SIZE));
		markers++;
	}
	PGTABLE_KUNIT_DID(test, markers, "markers");
}

#ifdef CONFIG_ARM64
/*
 * The task that faults, the address, and the entry as the fault makes it
 * writable.
 */
static struct {
	struct task_struct *task;
	unsigned long addr;
	unsigned int calls;
	pte_t pte;
} async_seen;

static int async_access_flags(struct kprobe *kprobe, struct pt_regs *regs)
{
	pte_t *ptep = (pte_t *)regs_get_kernel_argument(regs, 2);

	if (current == async_seen.task &&
	    regs_get_kernel_argument(regs, 1) == async_seen.addr) {
		async_seen.pte = __ptep_get(ptep);
		async_seen.calls++;
	}
	return 0;
}

/*
 * An ioctl() of userfaultfd. Its argument is copied to the page after all other
 * pages.
 */
static int async_ioctl(struct file *file, unsigned int cmd, void *arg, size_t size)
{
	return user_mm_ioctl(file, cmd, fault_word(FAULT_PAGES), arg, size);
}

/* Map all pages, make their entries old, and protect them against writes. */
static struct file *async_protect(struct kunit *test)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC,
	};
	struct uffdio_register memory = {
		.range = { USER_ADDR, FAULT_PAGES * PAGE_SIZE },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect protect = {
		.range = memory.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	struct file *file;

	KUNIT_ASSERT_EQ(test, USER_ADDR,
			vm_mmap(NULL, USER_ADDR, (FAULT_PAGES + 1) * PAGE_SIZE,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, 0));
	file = user_mm_uffd(test);
	KUNIT_ASSERT_EQ(test, 0, async_ioctl(file, UFFDIO_API, &api, sizeof(api)));
	KUNIT_ASSERT_EQ(test, 0, async_ioctl(file, UFFDIO_REGISTER, &memory, sizeof(memory)));
	KUNIT_ASSERT_EQ(test, 0,
			async_ioctl(file, UFFDIO_WRITEPROTECT, &protect, sizeof(protect)));
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(madvise, USER_ADDR, FAULT_PAGES * PAGE_SIZE,
					      MADV_COLD));
	return file;
}

/**
 * struct async_run - writes to pages with asynchronous protection
 * @test: the test
 * @u: the mm of the pages
 * @old: how many entries were old when the fault made them writable
 */
struct async_run {
	struct kunit *test;
	struct user_mm *u;
	unsigned int old;
};

static void async_write(void *data)
{
	struct async_run *run = data;
	struct kunit *test = run->test;
	unsigned int i;

	for (i = 0; i < FAULT_PAGES; i++) {
		unsigned long addr = (unsigned long)fault_word(i);
		pte_t pte = user_mm_pte(run->u, addr);

		KUNIT_EXPECT_TRUE(test, pgtable_kunit_uffd(pte));
		KUNIT_EXPECT_FALSE(test, pte_young(pte));
		async_seen.addr = addr;
		KUNIT_EXPECT_EQ(test, 0, put_user(i, fault_word(i)));
		KUNIT_EXPECT_EQ(test, i + 1, async_seen.calls);
		KUNIT_EXPECT_TRUE(test, pte_valid(async_seen.pte));
		KUNIT_EXPECT_FALSE(test, pgtable_kunit_uffd(async_seen.pte));
		run->old += !pte_young(async_seen.pte);
		pte = user_mm_pte(run->u, addr);
		KUNIT_EXPECT_TRUE(test, pte_write(pte));
		KUNIT_EXPECT_TRUE(test, pte_young(pte));
	}
}

/*
 * A write to a page with asynchronous protection removes the protection by
 * itself. The entry stays valid meanwhile, so the CPU may set its access flag
 * at any time, and the kernel must not overwrite it with an old entry. A write
 * is an access, so the new entry must be young. The case looks at the entry
 * when the same fault makes it writable. Known issue 29: it is old there. With
 * CONFIG_DEBUG_VM=y the kernel itself warns of the old entry, once per boot.
 */
static void fault_removes_async_protection(struct kunit *test)
{
	struct kprobe kprobe = {
		.symbol_name = "__ptep_set_access_flags",
		.pre_handler = async_access_flags,
	};
	struct async_run run = { .test = test, .u = test->priv };
	struct file *file = async_protect(test);
	int err = register_kprobe(&kprobe), warnings = 0;

	if (err == -ENOENT) {
		memset(&kprobe, 0, sizeof(kprobe));
		kprobe.symbol_name = "__ptep_set_access_flags_anysz";
		kprobe.pre_handler = async_access_flags;
		err = register_kprobe(&kprobe);
	}
	KUNIT_ASSERT_EQ(test, 0, err);
	memset(&async_seen, 0, sizeof(async_seen));
	async_seen.task = current;
	if (IS_ENABLED(CONFIG_DEBUG_VM))
		warnings = pgtable_kunit_count_warnings(test, async_write, &run);
	else
		async_write(&run);
	unregister_kprobe(&kprobe);
	fput(file);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(USER_ADDR, (FAULT_PAGES + 1) * PAGE_SIZE));
	if (warnings < 0)
		kunit_skip(test, "no kunit_warning_suppress()");
	PGTABLE_KUNIT_DID(test, async_seen.calls, "entries made writable");
	KUNIT_EXPECT_LE(test, warnings, run.old ? 1 : 0);
	if (run.old == FAULT_PAGES) {
		pgtable_kunit_known_issue(test, 29,
					  "a fault writes an old entry over a valid one");
	} else {
		KUNIT_EXPECT_EQ(test, 0, run.old);
		pgtable_kunit_stale_issue(test, 29);
	}
}
#endif /* CONFIG_ARM64 */

/*
 * A write fault sets an entry that is young and dirty. MADV_POPULATE_WRITE
 * makes the fault, so no CPU uses the entry, and hardware that manages the
 * access flag does not make it young.
 */
static void new_page_is_young(struct kunit *test)
{
	struct user_mm *u = test->priv;
	pte_t pte;

	KUNIT_ASSERT_EQ(test, USER_ADDR,
			vm_mmap(NULL, USER_ADDR, PAGE_SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0));
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(madvise, USER_ADDR, PAGE_SIZE,
					      MADV_POPULATE_WRITE));
	pte = user_mm_pte(u, USER_ADDR);
	KUNIT_EXPECT_TRUE(test, pte_present(pte));
	KUNIT_EXPECT_TRUE(test, pte_young(pte));
	KUNIT_EXPECT_TRUE(test, pte_dirty(pte));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(USER_ADDR, PAGE_SIZE));
}

static struct kunit_case fault_state_cases[] = {
	KUNIT_CASE_PARAM(fault_around_counts_hits, miss_kind_gen_params),
	KUNIT_CASE(fault_around_after_folio),
	KUNIT_CASE_PARAM(fault_in_dying_mm_frees_folio, dying_order_gen_params),
	KUNIT_CASE_PARAM(madvise_free_keeps_markers, free_marker_gen_params),
#ifdef CONFIG_ARM64
	KUNIT_CASE(fault_removes_async_protection),
#endif
	KUNIT_CASE(new_page_is_young),
	{}
};

static struct kunit_suite fault_state_suite = {
	.name = "fault_state",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = fault_state_cases,
};

kunit_test_suite(fault_state_suite);

MODULE_DESCRIPTION("KUnit tests for state that page faults change in addition to entries");
MODULE_LICENSE("GPL");
