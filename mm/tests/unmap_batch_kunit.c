// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to a folio while a batch of its pages is unmapped. Zapping
 * removes the entries of a large file folio at once. It has to mark the folio
 * as used, once for all entries. It has to keep the folio mapped until no CPU
 * can write to a dirty page any more. Each case inserts its own folio into a
 * mapping of a file, as drivers do, so that every order is possible. It writes
 * accessed and dirty bits into the entries. Two cases test the split of a PMD.
 * For anonymous memory the split writes many entries at once into a table that
 * the kernel had deposited. For a file it only removes the PMD.
 *
 * Not covered: anonymous memory (fork_batch), writeback to the file.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	unmap_batch
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "../internal.h"
#include "user_mm.h"

static const unsigned int unmap_orders[] = { 0, 2, USER_BLOCK_ORDER };

static void unmap_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(unmap_order, unmap_orders, unmap_order_desc);

/**
 * struct unmap_fixture - a folio in a mapping of a file
 * @test: the test
 * @u: the address space
 * @folio: the folio. It belongs to the test and not to the file
 * @nr: its pages
 * @addr: where its first page is mapped
 * @looks: number of TLB invalidations during which the folio was checked
 * @least: the fewest mappings of the folio in one of these checks
 */
struct unmap_fixture {
	struct kunit *test;
	struct user_mm *u;
	struct folio *folio;
	unsigned int nr;
	unsigned long addr;
	unsigned int looks;
	int least;
};

static struct unmap_fixture *unmap_fixture(struct kunit *test,
					   unsigned int order)
{
	struct unmap_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned long size = USER_BLOCK * PAGE_SIZE;
	struct file *file;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->u = test->priv;
	f->folio = pgtable_kunit_folio_alloc(test, order);
	f->nr = folio_nr_pages(f->folio);

	file = pgtable_kunit_shmem_file("unmap_batch", size);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	f->addr = vm_mmap(file, USER_ADDR, size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, 0);
	fput(file);
	KUNIT_ASSERT_EQ(test, f->addr, USER_ADDR);
	return f;
}

static void unmap_end(struct unmap_fixture *f)
{
	KUNIT_EXPECT_EQ(f->test, 0, vm_munmap(f->addr, USER_BLOCK * PAGE_SIZE));
	folio_clear_referenced(f->folio);
	folio_clear_dirty(f->folio);
}

/* No page, or all pages. */
#define UNMAP_NONE	(-1)
#define UNMAP_ALL	(-2)

static bool unmap_is(int which, unsigned int page)
{
	return which == UNMAP_ALL || which == (int)page;
}

/*
 * Make one entry young and dirty, or neither. Returns false if there is no
 * table.
 */
static bool unmap_set(struct unmap_fixture *f, unsigned int page, bool young,
		      bool dirty)
{
	unsigned long addr = f->addr + page * PAGE_SIZE;
	struct mm_struct *mm = f->u->mm;
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep, pte;

	ptep = pte_offset_map_lock(mm, pmd_off(mm, addr), addr, &ptl);
	if (!ptep)
		return false;
	pte = pte_mkold(pte_mkclean(ptep_get_and_clear(mm, addr, ptep)));
	if (young)
		pte = pte_mkyoung(pte);
	if (dirty)
		pte = pte_mkdirty(pte);
	set_pte_at(mm, addr, ptep, pte);
	pte_unmap_unlock(ptep, ptl);
	return true;
}

/*
 * Map the whole folio anew, with these entries young and dirty. The entries
 * become young after all entries are set, since folding would make the whole
 * block young.
 */
static void unmap_map(struct unmap_fixture *f, int young, int dirty)
{
	struct mm_struct *mm = f->u->mm;
	struct vm_area_struct *vma;
	unsigned int i, set;

	mmap_write_lock(mm);
	vma = vma_lookup(mm, f->addr);
	for (i = 0; vma && i < f->nr; i++) {
		if (vm_insert_page(vma, f->addr + i * PAGE_SIZE,
				   folio_page(f->folio, i)))
			break;
	}
	for (set = 0; set < i; set++) {
		if (!unmap_set(f, set, unmap_is(young, set),
			       unmap_is(dirty, set)))
			break;
	}
	mmap_write_unlock(mm);
	KUNIT_ASSERT_EQ(f->test, set, f->nr);
	KUNIT_ASSERT_EQ(f->test, folio_mapcount(f->folio), f->nr);
	folio_clear_referenced(f->folio);
}

static void unmap_zap(struct unmap_fixture *f, unsigned int first,
		      unsigned int last)
{
	KUNIT_ASSERT_EQ(f->test, 0,
			pgtable_kunit_syscall(madvise,
					      f->addr + first * PAGE_SIZE,
					      (last - first) * PAGE_SIZE,
					      MADV_DONTNEED));
}

/*
 * If any entry of a folio was young when it was unmapped, the folio counts as
 * used, once for a batch. If no entry was young, it does not. A second use
 * moves the folio to the active list, which clears the flag. So the case can
 * distinguish two zaps of half a folio from one zap. The young entry is at each
 * place in turn.
 */
static void zap_marks_used_once(struct kunit *test)
{
	struct unmap_fixture *f = unmap_fixture(test,
						*(unsigned int *)test->param_value);
	unsigned int zaps = 0;
	int young;

	if (lru_gen_enabled())
		kunit_skip(test, "multi-generational LRU: use is counted elsewhere");
	for (young = UNMAP_ALL; young < (int)f->nr; young++) {
		unmap_map(f, young, UNMAP_NONE);
		unmap_zap(f, 0, f->nr);
		KUNIT_EXPECT_EQ_MSG(test, folio_test_referenced(f->folio),
				    young != UNMAP_NONE, "entry %d young", young);
		zaps++;
	}
	if (f->nr > 1) {
		unmap_map(f, UNMAP_ALL, UNMAP_NONE);
		unmap_zap(f, 0, f->nr / 2);
		KUNIT_EXPECT_TRUE(test, folio_test_referenced(f->folio));
		unmap_zap(f, f->nr / 2, f->nr);
		KUNIT_EXPECT_FALSE(test, folio_test_referenced(f->folio));
	}
	unmap_end(f);
	PGTABLE_KUNIT_DID(test, zaps, "zaps of a folio");
}

#ifdef CONFIG_MMU_NOTIFIER
static void unmap_look(void *data)
{
	struct unmap_fixture *f = data;

	f->least = min(f->least, folio_mapcount(f->folio));
	f->looks++;
}

/*
 * Dirty pages of a file lose their mappings only after the TLB invalidation.
 * Until then another CPU may write to them. After the kernel has cleaned a
 * folio without mappings, it does not notice such a write. During each
 * invalidation all pages of the batch still count as mapped, and after the zap
 * none. All entries are dirty, or only one. The ranges begin and end at each
 * quarter of the folio.
 */
static void zap_dirty_mapped_till_flush(struct kunit *test)
{
	struct unmap_fixture *f = unmap_fixture(test,
						*(unsigned int *)test->param_value);
	unsigned int step = max(1U, f->nr / 4), first, last, dirty, looks = 0;
	struct pgtable_kunit_tlb *tlb;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "the kernel delays no rmap removal: CONFIG_SMP=n");
	tlb = pgtable_kunit_tlb_record(test, f->u->mm);
	tlb->look_data = f;
	for (first = 0; first < f->nr; first += step) {
		for (last = first + step; last <= f->nr; last += step) {
			for (dirty = 0; dirty <= 1; dirty++) {
				unmap_map(f, UNMAP_ALL,
					  dirty ? (int)first : UNMAP_ALL);
				f->least = INT_MAX;
				f->looks = 0;
				tlb->look = unmap_look;
				unmap_zap(f, first, last);
				tlb->look = NULL;

				KUNIT_EXPECT_GT(test, f->looks, 0);
				KUNIT_EXPECT_EQ_MSG(test, f->least, f->nr,
						    "pages %u to %u of %u, %s dirty",
						    first, last, f->nr,
						    dirty ? "one" : "all");
				KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio),
						f->nr - (last - first));
				looks += f->looks;
				unmap_zap(f, 0, f->nr);
			}
		}
	}
	pgtable_kunit_tlb_stop(test, tlb);
	unmap_end(f);
	PGTABLE_KUNIT_DID(test, looks, "invalidations checked");
}
#else
static void zap_dirty_mapped_till_flush(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MMU_NOTIFIER");
}
#endif

/*
 * A huge page with a PMD that will be split, and an entry that is in the
 * deposited table.
 */
struct unmap_split {
	unsigned long addr;
	int err;
};

static void unmap_split(void *data)
{
	struct unmap_split *split = data;

	split->err = pgtable_kunit_syscall(mprotect, split->addr, PAGE_SIZE,
					   PROT_READ);
}

/*
 * When the kernel maps a huge page, it deposits a table for the split of the
 * PMD. This table must be empty, since the split overwrites its entries. The
 * kernel warns once for each entry that is not empty. With and without such an
 * entry, the split maps all pages of the huge page. The entry is a marker,
 * which has no page.
 */
static void split_into_filled_table(struct kunit *test)
{
	static const int filled[] = { -1, 0, 7, HPAGE_PMD_NR - 1 };
	unsigned long size = 2 * HPAGE_PMD_SIZE, splits = 0;
	struct user_mm *u = test->priv;
	unsigned int n, i, data;

	if (!IS_ENABLED(CONFIG_DEBUG_VM))
		kunit_skip(test, "no CONFIG_DEBUG_VM: nothing is checked");
	if (HPAGE_PMD_SIZE > SZ_64M)
		kunit_skip(test, "a huge page is too large for this machine");
	pgtable_kunit_thp_set(test, BIT(HPAGE_PMD_ORDER), false);
	for (n = 0; n < ARRAY_SIZE(filled); n++) {
		struct unmap_split split = {
			.addr = ALIGN(USER_ADDR, HPAGE_PMD_SIZE),
		};
		int warnings;
		pmd_t *pmd;

		KUNIT_ASSERT_EQ(test, split.addr,
				vm_mmap(NULL, split.addr, size,
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
					0));
		KUNIT_ASSERT_EQ(test, 0,
				put_user(4711, (unsigned int __user *)split.addr));
		mmap_write_lock(u->mm);
		pmd = pmd_off(u->mm, split.addr);
		if (pmd_trans_huge(*pmd) && filled[n] >= 0) {
			pte_t *ptep = page_address(pmd_huge_pte(u->mm, pmd));

			ptep[filled[n]] = make_pte_marker(PTE_MARKER_POISONED);
		}
		i = pmd_trans_huge(*pmd);
		mmap_write_unlock(u->mm);
		KUNIT_ASSERT_TRUE_MSG(test, i, "no huge page");

		warnings = pgtable_kunit_count_warnings(test, unmap_split,
							&split);
		if (warnings < 0)
			kunit_skip(test, "no kunit_warning_suppress()");
		KUNIT_ASSERT_EQ(test, 0, split.err);
		KUNIT_EXPECT_EQ_MSG(test, warnings, filled[n] >= 0, "entry %d",
				    filled[n]);
		for (i = 0; i < HPAGE_PMD_NR; i++) {
			if (pte_present(user_mm_pte(u, split.addr + i * PAGE_SIZE)))
				continue;
			KUNIT_FAIL(test, "page %u is not mapped", i);
			break;
		}
		KUNIT_EXPECT_EQ(test, 0,
				get_user(data, (unsigned int __user *)split.addr));
		KUNIT_EXPECT_EQ(test, data, 4711);
		KUNIT_EXPECT_EQ(test, 0, vm_munmap(split.addr, size));
		splits++;
	}
	PGTABLE_KUNIT_DID(test, splits, "PMDs split");
}

#ifdef PGTABLE_KUNIT_PMD_SWP
/*
 * A huge page of a file is being migrated: its PMD is a migration entry. If
 * another call splits this PMD, the process no longer has the pages. So its
 * number of pages of files decreases, and the migration maps no page. The next
 * access maps the huge page again, with its content.
 */
static void split_migrating_file_pmd(struct kunit *test)
{
	unsigned int __user *word = (unsigned int __user *)USER_ADDR;
	struct user_mm *u = test->priv;
	struct vm_area_struct *vma;
	unsigned int data, kind;
	struct folio *folio;
	unsigned long before;
	struct file *file;
	pmd_t *pmd;

	if (HPAGE_PMD_SIZE > SZ_64M)
		kunit_skip(test, "a huge page is too large for this machine");
	folio = pgtable_kunit_folio_alloc(test, HPAGE_PMD_ORDER);
	*(unsigned int *)folio_address(folio) = 4711;
	kind = mm_counter_file(folio);
	before = get_mm_counter_sum(u->mm, kind);
	file = pgtable_kunit_shmem_file("unmap_batch", HPAGE_PMD_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_ASSERT_EQ(test, 0, filemap_add_folio(file->f_mapping, folio, 0,
						   GFP_KERNEL));
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, USER_ADDR,
			vm_mmap(file, USER_ADDR, HPAGE_PMD_SIZE, PROT_READ,
				MAP_SHARED | MAP_FIXED, 0));
	KUNIT_EXPECT_EQ(test, 0, get_user(data, word));
	pmd = pmd_off(u->mm, USER_ADDR);
	KUNIT_EXPECT_TRUE(test, pmd_trans_huge(*pmd));
	KUNIT_EXPECT_EQ(test, get_mm_counter_sum(u->mm, kind), before + HPAGE_PMD_NR);

	folio_lock(folio);
	try_to_migrate(folio, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	KUNIT_EXPECT_FALSE(test, pmd_present(*pmd) || pmd_none(*pmd));
	KUNIT_EXPECT_EQ(test, get_mm_counter_sum(u->mm, kind), before + HPAGE_PMD_NR);
	mmap_read_lock(u->mm);
	vma = vma_lookup(u->mm, USER_ADDR);
	if (vma)
		split_huge_pmd(vma, pmd, USER_ADDR);
	mmap_read_unlock(u->mm);
	KUNIT_EXPECT_TRUE(test, pmd_none(*pmd));
	KUNIT_EXPECT_EQ(test, get_mm_counter_sum(u->mm, kind), before);
	remove_migration_ptes(folio, folio, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	folio_unlock(folio);

	KUNIT_EXPECT_EQ(test, 0, get_user(data, word));
	KUNIT_EXPECT_EQ(test, data, 4711);
	PGTABLE_KUNIT_DID(test, folio_mapcount(folio), "PMDs mapped again");
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(USER_ADDR, HPAGE_PMD_SIZE));
	KUNIT_EXPECT_EQ(test, get_mm_counter_sum(u->mm, kind), before);
	folio_lock(folio);
	filemap_remove_folio(folio);
	folio_unlock(folio);
	lru_add_drain_all();
	fput(file);
}
#else
static void split_migrating_file_pmd(struct kunit *test)
{
	kunit_skip(test, "no PMDs that are not present");
}
#endif

#if defined(CONFIG_ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH) && defined(CONFIG_MMU_NOTIFIER)
/* The half of the counter that counts the completed invalidations. */
#define UNMAP_MADE_SHIFT	16

/*
 * Each time that reclaim defers an invalidation, it increments a count of the
 * address space. A later system call that changes entries must invalidate the
 * whole address space if this count differs from a second count, which it then
 * sets to the first. Otherwise it invalidates nothing. In the case the counts
 * are equal, or differ by one or more.
 */
static void flush_tlb_batched_pending_once(struct kunit *test)
{
	static const unsigned int counts[][2] = {
		{ 0, 0 }, { 1, 0 }, { 7, 0 }, { 7, 6 }, { 7, 7 }, { 1, 7 },
	};
	struct user_mm *u = test->priv;
	struct pgtable_kunit_tlb *tlb = pgtable_kunit_tlb_record(test, u->mm);
	unsigned int i, round, made = 0;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		unsigned int put_off = counts[i][0], before = counts[i][1];
		bool want = put_off != before;

		atomic_set(&u->mm->tlb_flush_batched,
			   put_off | before << UNMAP_MADE_SHIFT);
		for (round = 0; round < 2; round++) {
			tlb->nr = 0;
			flush_tlb_batched_pending(u->mm);
			KUNIT_EXPECT_EQ_MSG(test, tlb->nr, want && !round,
					    "%u put off, %u made, call %u",
					    put_off, before, round);
			if (tlb->nr)
				KUNIT_EXPECT_GE(test, tlb->range[0].end,
						TASK_SIZE);
			made += tlb->nr;
			KUNIT_EXPECT_EQ(test,
					atomic_read(&u->mm->tlb_flush_batched),
					put_off | put_off << UNMAP_MADE_SHIFT);
		}
	}
	atomic_set(&u->mm->tlb_flush_batched, 0);
	pgtable_kunit_tlb_stop(test, tlb);
	PGTABLE_KUNIT_DID(test, made, "invalidations of the address space");
}
#endif

static struct kunit_case unmap_batch_cases[] = {
#if defined(CONFIG_ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH) && defined(CONFIG_MMU_NOTIFIER)
	KUNIT_CASE(flush_tlb_batched_pending_once),
#endif
	KUNIT_CASE_PARAM(zap_marks_used_once, unmap_order_gen_params),
	KUNIT_CASE_PARAM(zap_dirty_mapped_till_flush, unmap_order_gen_params),
	KUNIT_CASE(split_into_filled_table),
	KUNIT_CASE(split_migrating_file_pmd),
	{}
};

static struct kunit_suite unmap_batch_suite = {
	.name = "unmap_batch",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = unmap_batch_cases,
};

kunit_test_suite(unmap_batch_suite);

MODULE_DESCRIPTION("KUnit tests for unmapping of large folios by batches");
MODULE_LICENSE("GPL");
