// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that find the entries of a folio, or count them, for real folios.
 *
 * Writeback makes all entries of a page clean and read-only, so that the next
 * write causes a fault. Migration may not take a page that a device writes to.
 * A split or a collapse compares the references of a folio with the references
 * that the kernel knows of. hugetlb counts the mappings of its folios with its
 * own functions.
 *
 * The cases map memory in the address space of the thread, call a function, and
 * check each entry and each count.
 *
 * Not covered: reclaim (folio_reclaim), owners of large folios (folio_mapped_*),
 * real memory of hugetlb (selftests).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	folio_rmap
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#ifdef CONFIG_ARM64
#include <asm/cpufeature.h>
#endif

#include "../internal.h"
#include "user_mm.h"

#define RMAP_PAGES	4

/* Places for mappings, far from each other. */
static unsigned long rmap_place(unsigned int nr)
{
	return ALIGN(USER_ADDR, PMD_SIZE) + nr * 4 * PMD_SIZE;
}

static unsigned int __user *rmap_word(unsigned long addr, unsigned int page)
{
	return (unsigned int __user *)(addr + page * PAGE_SIZE);
}

static pte_t rmap_pte(struct kunit *test, unsigned long addr, unsigned int page)
{
	return user_mm_pte(test->priv, addr + page * PAGE_SIZE);
}

static struct vm_area_struct *rmap_vma(struct kunit *test, unsigned long addr)
{
	struct user_mm *u = test->priv;
	struct vm_area_struct *vma;

	mmap_read_lock(u->mm);
	vma = vma_lookup(u->mm, addr);
	mmap_read_unlock(u->mm);
	KUNIT_ASSERT_NOT_NULL(test, vma);
	return vma;
}

static void rmap_map(struct kunit *test, struct file *file, unsigned long addr,
		     unsigned long size, unsigned long flags)
{
	KUNIT_ASSERT_EQ(test, addr,
			vm_mmap(file, addr, size, PROT_READ | PROT_WRITE,
				flags | MAP_FIXED, 0));
}

/* The folio of a page that is mapped, with a reference. */
static struct folio *rmap_get_folio(struct kunit *test, unsigned long addr)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, 1, get_user_pages_fast(addr, 1, 0, &page));
	return page_folio(page);
}

/* Map a file twice as shared and once as private, and write to all pages. */
struct rmap_file {
	struct file *file;
	unsigned long shared[2];
	unsigned long private;
};

static struct rmap_file rmap_file(struct kunit *test)
{
	struct rmap_file f = {
		.file = pgtable_kunit_shmem_file("folio_rmap", RMAP_PAGES * PAGE_SIZE),
		.shared = { rmap_place(0), rmap_place(1) },
		.private = rmap_place(2),
	};
	unsigned int i, data;

	KUNIT_ASSERT_FALSE(test, IS_ERR(f.file));
	for (i = 0; i < 2; i++)
		rmap_map(test, f.file, f.shared[i], RMAP_PAGES * PAGE_SIZE, MAP_SHARED);
	rmap_map(test, f.file, f.private, RMAP_PAGES * PAGE_SIZE, MAP_PRIVATE);
	for (i = 0; i < RMAP_PAGES; i++) {
		KUNIT_ASSERT_EQ(test, 0, put_user(i + 1, rmap_word(f.shared[0], i)));
		KUNIT_ASSERT_EQ(test, 0, put_user(i + 1, rmap_word(f.shared[1], i)));
		KUNIT_ASSERT_EQ(test, 0, get_user(data, rmap_word(f.private, i)));
		KUNIT_ASSERT_EQ(test, data, i + 1);
	}
	return f;
}

static void rmap_file_end(struct kunit *test, struct rmap_file *f)
{
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(f->shared[0], RMAP_PAGES * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(f->shared[1], RMAP_PAGES * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(f->private, RMAP_PAGES * PAGE_SIZE));
	lru_add_drain_all();
	fput(f->file);
}

static bool rmap_written(struct kunit *test, unsigned long addr, unsigned int page)
{
	pte_t pte = rmap_pte(test, addr, page);

	KUNIT_EXPECT_TRUE(test, pte_present(pte));
	KUNIT_EXPECT_EQ_MSG(test, pte_write(pte), pte_dirty(pte), "page %u", page);
	return pte_dirty(pte);
}

/*
 * Writeback calls folio_mkclean() for a folio. All shared entries of the folio
 * become clean and read-only, and the function returns their number. A second
 * call finds none. Other pages of the file do not change. After a write through
 * one mapping, the next call finds only the entry of this write, so no write is
 * lost.
 */
static void folio_mkclean_every_entry(struct kunit *test)
{
	struct rmap_file f = rmap_file(test);
	unsigned int page, i, cleaned = 0;

	for (page = 0; page < RMAP_PAGES; page++) {
		struct folio *folio = rmap_get_folio(test, rmap_place(0) + page * PAGE_SIZE);

		folio_lock(folio);
		KUNIT_EXPECT_EQ(test, folio_mkclean(folio), 2);
		KUNIT_EXPECT_EQ(test, folio_mkclean(folio), 0);
		folio_unlock(folio);
		for (i = 0; i < RMAP_PAGES; i++) {
			KUNIT_EXPECT_EQ_MSG(test, rmap_written(test, f.shared[0], i),
					    i > page, "page %u of %u", i, page);
			KUNIT_EXPECT_EQ_MSG(test, rmap_written(test, f.shared[1], i),
					    i > page, "page %u of %u", i, page);
		}
		cleaned += 2;
		folio_put(folio);
	}
	KUNIT_ASSERT_EQ(test, 0, put_user(11, rmap_word(f.shared[1], 1)));
	for (page = 0; page < RMAP_PAGES; page++) {
		struct folio *folio = rmap_get_folio(test, rmap_place(0) + page * PAGE_SIZE);

		folio_lock(folio);
		KUNIT_EXPECT_EQ_MSG(test, folio_mkclean(folio), page == 1, "page %u", page);
		folio_unlock(folio);
		folio_put(folio);
	}
	rmap_file_end(test, &f);
	PGTABLE_KUNIT_DID(test, cleaned, "entries made clean");
}

/*
 * A file system with memory that has no struct folio calls pfn_mkclean_range()
 * for page frames and one VMA. Only the entry of this page in this VMA becomes
 * clean and read-only. In a private mapping there is no entry to clean.
 */
static void pfn_mkclean_range_one_page(struct kunit *test)
{
	struct rmap_file f = rmap_file(test);
	struct vm_area_struct *vma = rmap_vma(test, f.shared[0]);
	unsigned int page, i, cleaned = 0;

	for (page = RMAP_PAGES; page-- > 0;) {
		unsigned long pfn = pte_pfn(rmap_pte(test, f.shared[0], page));

		KUNIT_EXPECT_EQ(test, 0, pfn_mkclean_range(pfn, 1, page,
							   rmap_vma(test, f.private)));
		KUNIT_EXPECT_EQ(test, 1, pfn_mkclean_range(pfn, 1, page, vma));
		KUNIT_EXPECT_EQ(test, 0, pfn_mkclean_range(pfn, 1, page, vma));
		for (i = 0; i < RMAP_PAGES; i++) {
			KUNIT_EXPECT_EQ_MSG(test, rmap_written(test, f.shared[0], i),
					    i < page, "page %u of %u", i, page);
			KUNIT_EXPECT_TRUE(test, rmap_written(test, f.shared[1], i));
		}
		cleaned++;
	}
	rmap_file_end(test, &f);
	PGTABLE_KUNIT_DID(test, cleaned, "entries made clean");
}

#define RMAP_HUGE	(-1)

static const int rmap_orders[] = { 0, 2, RMAP_HUGE };

static void rmap_order_desc(const int *order, char *desc)
{
	if (*order == RMAP_HUGE)
		strscpy(desc, "huge page", KUNIT_PARAM_DESC_SIZE);
	else
		snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %d", *order);
}

KUNIT_ARRAY_PARAM(rmap_order, rmap_orders, rmap_order_desc);

/* Map one folio of anonymous memory at place 0. Returns it with a reference. */
static struct folio *rmap_anon(struct kunit *test, unsigned int order)
{
	unsigned long addr = rmap_place(0), i;
	struct folio *folio;

	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, false);
	rmap_map(test, NULL, addr, PAGE_SIZE << order, MAP_PRIVATE | MAP_ANONYMOUS);
	for (i = 0; i < 1UL << order; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(i + 1, rmap_word(addr, i)));
	folio = rmap_get_folio(test, addr);
	KUNIT_ASSERT_EQ(test, order, folio_order(folio));
	lru_add_drain_all();
	return folio;
}

static unsigned int rmap_param_order(struct kunit *test)
{
	int order = *(const int *)test->param_value;

	if (order != RMAP_HUGE)
		return order;
	if (HPAGE_PMD_SIZE > SZ_64M)
		kunit_skip(test, "a huge page is too large for this machine");
	return HPAGE_PMD_ORDER;
}

/*
 * A device writes to a pinned page, so the page must not move. try_to_migrate()
 * leaves all entries of the folio unchanged, and the page still belongs only to
 * the process. After the pin is gone, the folio is unmapped, and mapped again
 * as it was.
 */
static void try_to_migrate_keeps_pinned(struct kunit *test)
{
	unsigned int order = rmap_param_order(test), nr = 1U << order, data, i;
	unsigned long addr = rmap_place(0);
	struct folio *folio = rmap_anon(test, order);
	int mapcount = folio_mapcount(folio), restored;
	pmd_t *pmdp, pmd;
	struct page *page;

#ifndef PGTABLE_KUNIT_PMD_SWP
	if (order == HPAGE_PMD_ORDER)
		kunit_skip(test, "no PMDs that are not present");
#endif
	pmdp = pmd_off(current->mm, addr);
	pmd = READ_ONCE(*pmdp);
	KUNIT_ASSERT_EQ(test, order == HPAGE_PMD_ORDER, !!pmd_trans_huge(pmd));
	KUNIT_ASSERT_EQ(test, 1, pin_user_pages_fast(addr + (nr - 1) * PAGE_SIZE, 1,
						     FOLL_WRITE, &page));
	folio_lock(folio);
	try_to_migrate(folio, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), mapcount);
	KUNIT_EXPECT_TRUE(test, PageAnonExclusive(folio_page(folio, 0)));
	KUNIT_EXPECT_TRUE(test, pmd_same(READ_ONCE(*pmdp), pmd));
	for (i = 0; i < nr && order != HPAGE_PMD_ORDER; i++)
		KUNIT_EXPECT_TRUE_MSG(test, pte_present(rmap_pte(test, addr, i)),
				      "page %u", i);
	remove_migration_ptes(folio, folio, 0);
	unpin_user_page(page);

	try_to_migrate(folio, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	KUNIT_EXPECT_FALSE(test, PageAnonExclusive(folio_page(folio, 0)));
	remove_migration_ptes(folio, folio, 0);
	restored = folio_mapcount(folio);
	KUNIT_EXPECT_TRUE(test, PageAnonExclusive(folio_page(folio, 0)));
	folio_unlock(folio);
	/* A read would wait for ever if the page were still being migrated. */
	KUNIT_ASSERT_EQ(test, restored, mapcount);
	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, 0, get_user(data, rmap_word(addr, i)));
		KUNIT_EXPECT_EQ(test, data, i + 1);
	}
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, PAGE_SIZE << order));
}

static const int defer_orders[] = { 0, 2, USER_BLOCK_ORDER };

KUNIT_ARRAY_PARAM(defer_order, defer_orders, rmap_order_desc);

/* On CPUs with this erratum, older kernels wait for each folio. */
static bool __maybe_unused rmap_repeats_tlbi(void)
{
#ifdef ARM64_WORKAROUND_REPEAT_TLBI
	return cpus_have_final_cap(ARM64_WORKAROUND_REPEAT_TLBI);
#else
	return false;
#endif
}

/*
 * Reclaim asks try_to_unmap() to begin the invalidation of each folio. Reclaim
 * waits for the end only once, for many folios, since a wait for each folio
 * would be slow. The kernel must allow this, and must begin the invalidation of
 * each page before the function returns.
 */
static void try_to_unmap_deferred(struct kunit *test)
{
#if defined(CONFIG_ARM64) && defined(CONFIG_ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH)
	unsigned int order = *(const int *)test->param_value, page, n, nr = 1U << order, begun;
	bool once = !rmap_repeats_tlbi();
	unsigned long addr = rmap_place(0);
	struct folio *folio = rmap_anon(test, order);
	struct pgtable_kunit_tlb *tlb;

	KUNIT_ASSERT_EQ(test, 0, pgtable_kunit_syscall(madvise, addr, nr * PAGE_SIZE,
						       MADV_FREE));
	lru_add_drain_all();
	try_to_unmap_flush();
	tlb = pgtable_kunit_tlb_record(test, current->mm);
	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	folio_put(folio);
	folio_lock(folio);
	try_to_unmap(folio, TTU_BATCH_FLUSH);
	begun = min(tlb->nr, PGTABLE_KUNIT_FLUSHES);
	folio_unlock(folio);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	KUNIT_EXPECT_TRUE(test, current->tlb_ubc.flush_required || !once);
	try_to_unmap_flush();
	folio_putback_lru(folio);
	pgtable_kunit_tlb_stop(test, tlb);
	for (page = 0; page < nr; page++) {
		unsigned long at = addr + page * PAGE_SIZE;
		bool covered = false;

		for (n = 0; n < begun; n++)
			covered |= at >= tlb->range[n].start && at < tlb->range[n].end;
		KUNIT_EXPECT_TRUE_MSG(test, covered, "page %u is not invalidated", page);
	}
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, nr * PAGE_SIZE));
	PGTABLE_KUNIT_DID(test, begun, "invalidations");
#else
	kunit_skip(test, "invalidations are recorded only on arm64");
#endif
}

/*
 * If only page tables and the page cache use a folio, the kernel knows all of
 * its references, and may freeze the folio. Here it knows all references except
 * the reference of the test. The folio is anonymous memory, in each size, or a
 * page of a file that is mapped three times.
 */
static void folio_expected_ref_count_all(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_HAS_EXPECTED_REFS
	unsigned int order = rmap_param_order(test);
	struct folio *folio = rmap_anon(test, order);
	struct rmap_file f;

	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), folio_expected_ref_count(folio) + 1);
	KUNIT_EXPECT_EQ(test, folio_expected_ref_count(folio),
			order == HPAGE_PMD_ORDER ? 1 : 1 << order);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(rmap_place(0), PAGE_SIZE << order));

	pgtable_kunit_thp_set(test, 0, false);
	f = rmap_file(test);
	folio = rmap_get_folio(test, f.shared[0]);
	lru_add_drain_all();
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 3);
	KUNIT_EXPECT_EQ(test, folio_expected_ref_count(folio), 3 + folio_nr_pages(folio));
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), folio_expected_ref_count(folio) + 1);
	folio_put(folio);
	rmap_file_end(test, &f);
#else
	kunit_skip(test, "no folio_expected_ref_count()");
#endif
}

/*
 * After fork and a write, a folio belongs to one process, and
 * folio_move_anon_rmap() lets the kernel search only this process for its
 * entries. The folio is still anonymous, and has the anon_vma of the VMA.
 */
static void folio_move_anon_rmap_to_vma(struct kunit *test)
{
	struct folio *folio = rmap_anon(test, 0);
	struct vm_area_struct *from = rmap_vma(test, rmap_place(0)), *to;
	unsigned long index = folio->index;

	rmap_map(test, NULL, rmap_place(1), PAGE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS);
	KUNIT_ASSERT_EQ(test, 0, put_user(1, rmap_word(rmap_place(1), 0)));
	to = rmap_vma(test, rmap_place(1));
	KUNIT_ASSERT_PTR_NE(test, from->anon_vma, to->anon_vma);

	folio_lock(folio);
	KUNIT_EXPECT_PTR_EQ(test, folio_raw_mapping(folio), (void *)from->anon_vma);
	folio_move_anon_rmap(folio, to);
	KUNIT_EXPECT_PTR_EQ(test, folio_raw_mapping(folio), (void *)to->anon_vma);
	KUNIT_EXPECT_TRUE(test, folio_test_anon(folio));
	KUNIT_EXPECT_EQ(test, folio->index, index);
	folio_move_anon_rmap(folio, from);
	folio_unlock(folio);
	folio_put(folio);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(rmap_place(0), PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(rmap_place(1), PAGE_SIZE));
}

/*
 * Only a device may access the page. Its entry names the page, and the folio
 * must be dirty if the process wrote to the page, because otherwise the content
 * would be lost. An access of the CPU takes the page back, with its content.
 */
static void make_device_exclusive_and_back(struct kunit *test)
{
#ifdef CONFIG_DEVICE_PRIVATE
	unsigned long addr = rmap_place(0);
	struct folio *folio, *mapped = rmap_anon(test, 0);
	unsigned int data;
	pte_t pte;

	KUNIT_ASSERT_TRUE(test, pte_dirty(rmap_pte(test, addr, 0)));
	mmap_read_lock(current->mm);
	folio = pgtable_kunit_make_exclusive(current->mm, addr);
	mmap_read_unlock(current->mm);
	KUNIT_ASSERT_PTR_EQ(test, folio, mapped);
	pte = rmap_pte(test, addr, 0);
	KUNIT_EXPECT_FALSE(test, pte_present(pte));
	KUNIT_EXPECT_FALSE(test, pte_none(pte));
	KUNIT_EXPECT_EQ(test, swp_offset(pgtable_kunit_swp_entry(pte)) & SWP_PFN_MASK,
			folio_pfn(folio));
	KUNIT_EXPECT_TRUE(test, folio_test_dirty(folio));
	folio_unlock(folio);
	folio_put(folio);

	KUNIT_ASSERT_EQ(test, 0, get_user(data, rmap_word(addr, 0)));
	KUNIT_EXPECT_EQ(test, data, 1);
	KUNIT_EXPECT_EQ(test, pte_pfn(rmap_pte(test, addr, 0)), folio_pfn(mapped));
	KUNIT_EXPECT_EQ(test, folio_mapcount(mapped), 1);
	folio_put(mapped);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, PAGE_SIZE));
#else
	kunit_skip(test, "needs CONFIG_DEVICE_PRIVATE");
#endif
}

#ifdef CONFIG_HUGETLB_PAGE
static void huge_rmap_expect(struct kunit *test, struct folio *folio, int nr,
			     bool exclusive, const char *when)
{
	KUNIT_EXPECT_EQ_MSG(test, folio_mapcount(folio), nr, "%s", when);
	KUNIT_EXPECT_EQ_MSG(test, folio_entire_mapcount(folio), nr, "%s", when);
	if (folio_test_anon(folio))
		KUNIT_EXPECT_EQ_MSG(test, !!PageAnonExclusive(&folio->page), exclusive,
				    "%s", when);
}

/* Fork of anonymous memory of hugetlb. */
static int huge_rmap_fork(struct folio *folio, struct vm_area_struct *vma)
{
	int err;

	preempt_disable();
	raw_write_seqcount_begin(&vma->vm_mm->write_protect_seq);
	err = hugetlb_try_dup_anon_rmap(folio, vma);
	raw_write_seqcount_end(&vma->vm_mm->write_protect_seq);
	preempt_enable();
	return err;
}

/*
 * A process maps an anonymous folio. The folio is pinned, forked and migrated.
 */
static void huge_rmap_anon(struct kunit *test, struct folio *folio,
			   struct vm_area_struct *vma)
{
	hugetlb_add_new_anon_rmap(folio, vma, vma->vm_start);
	KUNIT_EXPECT_TRUE(test, folio_test_anon(folio));
	KUNIT_EXPECT_PTR_EQ(test, folio_raw_mapping(folio), (void *)vma->anon_vma);
	huge_rmap_expect(test, folio, 1, true, "new");

	/* As long as the folio is pinned, it must stay with the process. */
	atomic_inc(&folio->_pincount);
	KUNIT_EXPECT_EQ(test, -EBUSY, huge_rmap_fork(folio, vma));
	huge_rmap_expect(test, folio, 1, true, "fork, pinned");
	KUNIT_EXPECT_EQ(test, -EBUSY, hugetlb_try_share_anon_rmap(folio));
	huge_rmap_expect(test, folio, 1, true, "migration, pinned");
	atomic_dec(&folio->_pincount);

	KUNIT_EXPECT_EQ(test, 0, huge_rmap_fork(folio, vma));
	huge_rmap_expect(test, folio, 2, false, "fork");
	hugetlb_remove_rmap(folio);
	huge_rmap_expect(test, folio, 1, false, "the child unmaps it");
	hugetlb_remove_rmap(folio);
	huge_rmap_expect(test, folio, 0, false, "unmapped");
	hugetlb_add_anon_rmap(folio, vma, vma->vm_start, RMAP_EXCLUSIVE);
	huge_rmap_expect(test, folio, 1, true, "mapped again");
	KUNIT_EXPECT_EQ(test, 0, hugetlb_try_share_anon_rmap(folio));
	huge_rmap_expect(test, folio, 1, false, "migration");
	hugetlb_add_anon_rmap(folio, vma, vma->vm_start, RMAP_NONE);
	huge_rmap_expect(test, folio, 2, false, "mapped twice");
	hugetlb_remove_rmap(folio);
	hugetlb_remove_rmap(folio);
	huge_rmap_expect(test, folio, 0, false, "unmapped again");
}
#endif

/*
 * hugetlb counts mappings per folio, not per page. A new anonymous folio
 * belongs to its process alone. It is shared after fork. While a device may
 * write to the folio, it cannot be shared: then the caller must copy it, or
 * leave it where it is. For a folio of a file, the functions only count
 * mappings. No table maps the folio, and a folio of the page allocator stands
 * for a hugetlb folio.
 */
static void hugetlb_rmap_counts(struct kunit *test)
{
#ifdef CONFIG_HUGETLB_PAGE
	struct folio *folio = pgtable_kunit_folio_alloc(test, 2), *small;
	struct vm_area_struct *vma;
	struct page *page;
	int i;

	/* The kernel looks for pins only if the process ever had one. */
	small = rmap_anon(test, 0);
	KUNIT_ASSERT_EQ(test, 1, pin_user_pages_fast(rmap_place(0), 1, FOLL_WRITE, &page));
	unpin_user_page(page);
	vma = rmap_vma(test, rmap_place(0));

	__folio_set_hugetlb(folio);
	for (i = 1; i <= 3; i++) {
		hugetlb_add_file_rmap(folio);
		huge_rmap_expect(test, folio, i, false, "a file");
	}
	while (i-- > 1) {
		hugetlb_remove_rmap(folio);
		huge_rmap_expect(test, folio, i - 1, false, "a file, unmapped");
	}
	huge_rmap_anon(test, folio, vma);
	ClearPageAnonExclusive(&folio->page);
	folio->mapping = NULL;
	__folio_clear_hugetlb(folio);

	folio_put(small);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(rmap_place(0), PAGE_SIZE));
#else
	kunit_skip(test, "no CONFIG_HUGETLB_PAGE");
#endif
}

static struct kunit_case folio_rmap_cases[] = {
	KUNIT_CASE(folio_mkclean_every_entry),
	KUNIT_CASE(pfn_mkclean_range_one_page),
	KUNIT_CASE_PARAM(try_to_migrate_keeps_pinned, rmap_order_gen_params),
	KUNIT_CASE_PARAM(try_to_unmap_deferred, defer_order_gen_params),
	KUNIT_CASE_PARAM(folio_expected_ref_count_all, rmap_order_gen_params),
	KUNIT_CASE(folio_move_anon_rmap_to_vma),
	KUNIT_CASE(make_device_exclusive_and_back),
	KUNIT_CASE(hugetlb_rmap_counts),
	{}
};

static struct kunit_suite folio_rmap_suite = {
	.name = "folio_rmap",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = folio_rmap_cases,
};

kunit_test_suite(folio_rmap_suite);

MODULE_DESCRIPTION("KUnit tests for the mappings of real folios");
MODULE_LICENSE("GPL");
