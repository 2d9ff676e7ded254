// SPDX-License-Identifier: GPL-2.0
/*
 * How reclaim and migration change the entries of one folio.
 *
 * folio_referenced(), try_to_unmap() and try_to_migrate() find all entries of a
 * folio, and handle runs of entries at once. Each case maps a folio of
 * anonymous memory, gives its entries the needed bits, and calls the function
 * as reclaim does, with the folio locked and with one more reference. Then it
 * checks every entry.
 *
 * Not covered: files and swap (selftests folio_file, folio_move), hugetlb, the
 * multi-generational LRU.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	folio_reclaim
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "../internal.h"
#include "user_mm.h"

/**
 * struct reclaim_fixture - a folio in the address space of the test's thread
 * @test: the test
 * @u: the address space
 * @addr: where the folio begins
 * @nr: its pages
 * @folio: the folio, with a reference of the test
 */
struct reclaim_fixture {
	struct kunit *test;
	struct user_mm *u;
	unsigned long addr;
	unsigned int nr;
	struct folio *folio;
};

static unsigned int __user *reclaim_word(struct reclaim_fixture *f,
					 unsigned int page)
{
	return (unsigned int __user *)(f->addr + page * PAGE_SIZE);
}

static pte_t reclaim_pte(struct reclaim_fixture *f, unsigned int page)
{
	return user_mm_pte(f->u, f->addr + page * PAGE_SIZE);
}

/* Map one folio, each page with its number in it, and put it on an LRU list. */
static struct reclaim_fixture *reclaim_fixture(struct kunit *test,
					       unsigned int order)
{
	struct reclaim_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned long size = PAGE_SIZE << order;
	unsigned int i;
	struct page *page;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->u = test->priv;
	f->nr = 1U << order;
	f->addr = ALIGN(USER_ADDR, size);
	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, false);
	KUNIT_ASSERT_EQ(test, f->addr,
			vm_mmap(NULL, f->addr, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0));
	for (i = 0; i < f->nr; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(i, reclaim_word(f, i)));
	KUNIT_ASSERT_EQ(test, 1, get_user_pages_fast(f->addr, 1, 0, &page));
	f->folio = page_folio(page);
	KUNIT_ASSERT_EQ(test, order, folio_order(f->folio));
	lru_add_drain_all();
	return f;
}

static void reclaim_end(struct reclaim_fixture *f)
{
	folio_put(f->folio);
	KUNIT_EXPECT_EQ(f->test, 0, vm_munmap(f->addr, f->nr * PAGE_SIZE));
}

/*
 * The number of uses of the folio that folio_referenced() finds, and whether it
 * reports a VMA that is locked.
 */
static int reclaim_referenced_locked(struct reclaim_fixture *f, bool *locked)
{
	unsigned long vm_flags[8] = {};
	int used;

	folio_lock(f->folio);
	used = folio_referenced(f->folio, 1, NULL, (void *)vm_flags);
	folio_unlock(f->folio);
	*locked = vm_flags[0] & (unsigned long)VM_LOCKED;
	return used;
}

static int reclaim_referenced(struct reclaim_fixture *f)
{
	bool locked;

	return reclaim_referenced_locked(f, &locked);
}

/**
 * struct reclaim_pattern - which entries of a folio are PROT_NONE
 * @name: its name
 * @mask: the entries, counted modulo 16
 */
struct reclaim_pattern {
	const char *name;
	unsigned int mask;
};

static const struct reclaim_pattern reclaim_patterns[] = {
	{ "none", 0 },
	{ "the first", 0x0001 },
	{ "the last", 0x8000 },
	{ "every other", 0x5555 },
	{ "pairs", 0x3333 },
	{ "runs of 1, 2 and 3", 0xc632 },
};

static void reclaim_pattern_desc(const struct reclaim_pattern *pattern,
				 char *desc)
{
	strscpy(desc, pattern->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reclaim_pattern, reclaim_patterns, reclaim_pattern_desc);

/*
 * As NUMA balancing does, make entries PROT_NONE: such an entry ends a batch.
 */
static bool reclaim_hint(struct reclaim_fixture *f, unsigned int i)
{
	unsigned long addr = f->addr + i * PAGE_SIZE;
	struct mm_struct *mm = f->u->mm;
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep, pte;

	mmap_read_lock(mm);
	ptep = pte_offset_map_lock(mm, pmd_off(mm, addr), addr, &ptl);
	if (ptep) {
		pte = ptep_get_and_clear(mm, addr, ptep);
		set_pte_at(mm, addr, ptep, pte_modify(pte, PAGE_NONE));
		pte_unmap_unlock(ptep, ptl);
	}
	mmap_read_unlock(mm);
	return ptep;
}

/*
 * folio_referenced() finds that a folio was in use, and makes all its entries
 * old. The next call finds no use. Entries with another protection divide the
 * folio into several batches, so the walk has to continue right after each
 * batch. In 16 entries there are runs of each length up to 3, or one run of 16.
 */
static void folio_referenced_ages_every_entry(struct kunit *test)
{
	const struct reclaim_pattern *pattern = test->param_value;
	struct reclaim_fixture *f = reclaim_fixture(test, 4);
	unsigned int i, old = 0;

	for (i = 0; i < f->nr; i++) {
		if (pattern->mask & BIT(i))
			KUNIT_ASSERT_TRUE(test, reclaim_hint(f, i));
	}
	for (i = 0; i < f->nr; i++)
		KUNIT_ASSERT_TRUE_MSG(test, pte_young(reclaim_pte(f, i)),
				      "entry %u", i);
	KUNIT_EXPECT_EQ(test, 1, reclaim_referenced(f));
	for (i = 0; i < f->nr; i++) {
		pte_t pte = reclaim_pte(f, i);

		KUNIT_EXPECT_TRUE(test, pte_present(pte));
		if (!pte_young(pte))
			old++;
		else
			KUNIT_FAIL(test, "entry %u is still young: %016llx", i,
				   (u64)pte_val(pte));
	}
	KUNIT_EXPECT_EQ(test, 0, reclaim_referenced(f));
	reclaim_end(f);
	PGTABLE_KUNIT_DID(test, old, "entries made old");
}

/*
 * A huge page that one PMD maps counts as used once, and not again until the
 * next access. The huge page has the smallest size that a PMD maps.
 */
static void folio_referenced_huge_page(struct kunit *test)
{
	struct reclaim_fixture *f;
	unsigned int round, data;

	if (HPAGE_PMD_SIZE > SZ_64M)
		kunit_skip(test, "a huge page is too large for this machine");
	f = reclaim_fixture(test, HPAGE_PMD_ORDER);
	for (round = 0; round < 3; round++) {
		pmd_t *pmd = pmd_off(f->u->mm, f->addr);

		KUNIT_ASSERT_TRUE(test, pmd_trans_huge(*pmd));
		KUNIT_EXPECT_EQ_MSG(test, 1, reclaim_referenced(f), "round %u",
				    round);
		KUNIT_EXPECT_FALSE(test, pmd_young(*pmd));
		KUNIT_EXPECT_EQ_MSG(test, 0, reclaim_referenced(f), "round %u",
				    round);
		KUNIT_ASSERT_EQ(test, 0, get_user(data, reclaim_word(f, round)));
		KUNIT_EXPECT_EQ(test, data, round);
	}
	reclaim_end(f);
}

static const unsigned int reclaim_orders[] = { 0, 2, USER_BLOCK_ORDER };

static void reclaim_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(reclaim_order, reclaim_orders, reclaim_order_desc);

/*
 * Reclaim keeps locked memory, which it finds with folio_referenced(). This
 * function reports a locked VMA, counts no use, and makes no entry old. It does
 * not report a VMA that maps half of the folio, since reclaim has to try the
 * other half.
 */
static void folio_referenced_reports_lock(struct kunit *test)
{
	struct reclaim_fixture *f = reclaim_fixture(test,
						    *(unsigned int *)test->param_value);
	unsigned long size = f->nr * PAGE_SIZE;
	unsigned int i;
	bool locked;

	KUNIT_ASSERT_EQ(test, 0, pgtable_kunit_syscall(mlock, f->addr, size));
	KUNIT_EXPECT_EQ(test, 0, reclaim_referenced_locked(f, &locked));
	KUNIT_EXPECT_TRUE(test, locked);
	for (i = 0; i < f->nr; i++)
		KUNIT_EXPECT_TRUE(test, pte_young(reclaim_pte(f, i)));
	if (f->nr > 1) {
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_syscall(munlock, f->addr, size / 2));
		KUNIT_EXPECT_EQ(test, 1, reclaim_referenced_locked(f, &locked));
		KUNIT_EXPECT_FALSE(test, locked);
	}
	KUNIT_ASSERT_EQ(test, 0, pgtable_kunit_syscall(munlock, f->addr, size));
	KUNIT_ASSERT_EQ(test, 0, put_user(0, reclaim_word(f, 0)));
	KUNIT_EXPECT_EQ(test, 1, reclaim_referenced_locked(f, &locked));
	KUNIT_EXPECT_FALSE(test, locked);
	reclaim_end(f);
}

/*
 * Give the memory up: reclaim may drop it until the next write.
 */
static void reclaim_free(struct reclaim_fixture *f)
{
	KUNIT_ASSERT_EQ(f->test, 0,
			pgtable_kunit_syscall(madvise, f->addr,
					      f->nr * PAGE_SIZE, MADV_FREE));
	lru_add_drain_all();
	KUNIT_ASSERT_FALSE(f->test, folio_test_swapbacked(f->folio));
	KUNIT_ASSERT_EQ(f->test, folio_ref_count(f->folio), f->nr + 1);
}

/*
 * Take the folio off its LRU list as reclaim does, with one reference that is
 * not from an entry, and unmap it.
 */
static void reclaim_unmap(struct reclaim_fixture *f, enum ttu_flags flags)
{
	KUNIT_ASSERT_TRUE(f->test, folio_isolate_lru(f->folio));
	folio_put(f->folio);
	folio_lock(f->folio);
	try_to_unmap(f->folio, flags);
	folio_unlock(f->folio);
	folio_get(f->folio);
	folio_putback_lru(f->folio);
}

#ifdef CONFIG_MMU_NOTIFIER
/**
 * struct reclaim_listener - a user of the page tables other than the CPUs
 * @notifier: its notifier
 * @range: the range of the last change that began
 * @starts: how many changes began
 * @ends: how many of them ended, with the same range
 */
struct reclaim_listener {
	struct mmu_notifier notifier;
	struct mmu_notifier_range range;
	unsigned int starts;
	unsigned int ends;
};

static int reclaim_range_start(struct mmu_notifier *notifier,
			       const struct mmu_notifier_range *range)
{
	struct reclaim_listener *l = container_of(notifier, typeof(*l), notifier);

	l->starts++;
	l->range = *range;
	return 0;
}

static void reclaim_range_end(struct mmu_notifier *notifier,
			      const struct mmu_notifier_range *range)
{
	struct reclaim_listener *l = container_of(notifier, typeof(*l), notifier);

	l->ends += l->range.start == range->start && l->range.end == range->end;
}

static const struct mmu_notifier_ops reclaim_listener_ops = {
	.invalidate_range_start = reclaim_range_start,
	.invalidate_range_end = reclaim_range_end,
};

/*
 * A device that uses the page tables must stop from the start of a change to
 * its end. try_to_unmap() and try_to_migrate() report the start and the end,
 * for the whole folio.
 */
static void try_to_unmap_reports_end(struct kunit *test)
{
	struct reclaim_fixture *f = reclaim_fixture(test,
						    *(unsigned int *)test->param_value);
	struct reclaim_listener *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	reclaim_free(f);
	l->notifier.ops = &reclaim_listener_ops;
	KUNIT_ASSERT_EQ(test, 0, mmu_notifier_register(&l->notifier, f->u->mm));
	folio_lock(f->folio);
	try_to_migrate(f->folio, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), 0);
	remove_migration_ptes(f->folio, f->folio, 0);
	folio_unlock(f->folio);
	KUNIT_EXPECT_EQ(test, l->ends, 1);
	reclaim_unmap(f, 0);
	mmu_notifier_unregister(&l->notifier, f->u->mm);

	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), 0);
	KUNIT_EXPECT_EQ(test, l->starts, 2);
	KUNIT_EXPECT_EQ(test, l->ends, 2);
	KUNIT_EXPECT_EQ(test, l->range.start, f->addr);
	KUNIT_EXPECT_EQ(test, l->range.end, f->addr + f->nr * PAGE_SIZE);
	reclaim_end(f);
	PGTABLE_KUNIT_DID(test, l->ends, "changes that ended");
}

/*
 * try_to_unmap() removes all entries of a folio that its owner gave up, and
 * invalidates their translations. If the kernel unmaps by batches, one
 * invalidation covers all. Otherwise each entry has its own invalidation. The
 * removal of the first entry unfolds the block, and this invalidates the whole
 * block.
 */
static void try_to_unmap_invalidates_once(struct kunit *test)
{
	struct reclaim_fixture *f = reclaim_fixture(test,
						    *(unsigned int *)test->param_value);
	bool unfolds = !PGTABLE_KUNIT_UNMAPS_BATCHES &&
		       pgtable_kunit_folded(reclaim_pte(f, 0));
	unsigned int want = PGTABLE_KUNIT_UNMAPS_BATCHES ? 1 : f->nr + unfolds;
	unsigned long covered = 0;
	struct pgtable_kunit_tlb *tlb;
	unsigned int i, n;

	reclaim_free(f);
	tlb = pgtable_kunit_tlb_record(test, f->u->mm);
	reclaim_unmap(f, 0);
	pgtable_kunit_tlb_stop(test, tlb);

	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), 0);
	for (i = 0; i < f->nr; i++)
		KUNIT_EXPECT_TRUE_MSG(test, pte_none(reclaim_pte(f, i)),
				      "entry %u", i);
	KUNIT_EXPECT_EQ(test, tlb->nr, want);
	for (n = 0; n < min(tlb->nr, PGTABLE_KUNIT_FLUSHES); n++)
		covered += tlb->range[n].end - tlb->range[n].start;
	KUNIT_EXPECT_EQ(test, covered, (1 + unfolds) * f->nr * PAGE_SIZE);
	reclaim_end(f);
	PGTABLE_KUNIT_DID(test, tlb->nr, "invalidations");
}
#else
static void try_to_unmap_reports_end(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MMU_NOTIFIER");
}

static void try_to_unmap_invalidates_once(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MMU_NOTIFIER");
}
#endif

/*
 * With TTU_BATCH_FLUSH the kernel may wait for the end of the invalidation
 * later, once for many folios: try_to_unmap() records this for its caller.
 * Without the flag it must record nothing, because the caller frees the pages
 * right away.
 */
static void try_to_unmap_defers_on_request(struct kunit *test)
{
#ifdef CONFIG_ARCH_WANT_BATCHED_UNMAP_TLB_FLUSH
	unsigned int order = *(unsigned int *)test->param_value;
	struct reclaim_fixture *f;

	try_to_unmap_flush();
	f = reclaim_fixture(test, order);
	reclaim_free(f);
	reclaim_unmap(f, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), 0);
	KUNIT_EXPECT_FALSE(test, current->tlb_ubc.flush_required);
	reclaim_end(f);

	f = reclaim_fixture(test, order);
	reclaim_free(f);
	reclaim_unmap(f, TTU_BATCH_FLUSH);
	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), 0);
	KUNIT_EXPECT_EQ(test, current->tlb_ubc.flush_required,
			arch_tlbbatch_should_defer(f->u->mm));
	try_to_unmap_flush();
	KUNIT_EXPECT_FALSE(test, current->tlb_ubc.flush_required);
	reclaim_end(f);
#else
	kunit_skip(test, "this architecture never defers");
#endif
}

/*
 * If the owner gives a page up and then writes to it, the page is in use again.
 * Reclaim finds its dirty entry among clean entries, and must keep the page.
 * The page is at each place of the folio in turn.
 */
static void try_to_unmap_keeps_written_page(struct kunit *test)
{
	unsigned int order = *(unsigned int *)test->param_value, page, data;
	unsigned int kept = 0;

	for (page = 0; page < 1U << order; page++) {
		struct reclaim_fixture *f = reclaim_fixture(test, order);

		reclaim_free(f);
		KUNIT_ASSERT_EQ(test, 0, put_user(4711, reclaim_word(f, page)));
		KUNIT_ASSERT_TRUE(test, pte_dirty(reclaim_pte(f, page)));
		reclaim_unmap(f, 0);
		KUNIT_EXPECT_TRUE_MSG(test, pte_present(reclaim_pte(f, page)),
				      "page %u", page);
		KUNIT_EXPECT_TRUE_MSG(test, folio_test_dirty(f->folio),
				      "page %u", page);
		KUNIT_EXPECT_TRUE_MSG(test, folio_test_swapbacked(f->folio),
				      "page %u", page);
		KUNIT_ASSERT_EQ(test, 0, get_user(data, reclaim_word(f, page)));
		KUNIT_EXPECT_EQ_MSG(test, data, 4711, "page %u", page);
		kept += data == 4711;
		reclaim_end(f);
	}
	PGTABLE_KUNIT_DID(test, kept, "pages kept");
}

#ifdef PGTABLE_KUNIT_PMD_SWP
/*
 * How many migration entries a huge page has, and how many of them are writable
 * or protected by userfaultfd.
 */
static void reclaim_migrating(struct reclaim_fixture *f, unsigned int *entries,
			      unsigned int *writable, unsigned int *protected)
{
	unsigned int i;

	*entries = 0;
	*writable = 0;
	*protected = 0;
	for (i = 0; i < f->nr; i++) {
		pte_t pte = reclaim_pte(f, i);

		if (pte_none(pte) || pte_present(pte))
			continue;
		(*entries)++;
		*writable += pgtable_kunit_swp_writable(swp_type(pgtable_kunit_swp_entry(pte)));
		*protected += !!pgtable_kunit_swp_uffd(pte);
	}
}

/*
 * A huge page is being migrated: its PMD is a migration entry. If another call
 * splits this PMD, each page gets a migration entry, which is writable only if
 * the huge page was writable. When the migration ends, each page is mapped as
 * before, and its content is unchanged. The huge page is writable or read-only.
 */
static void split_huge_pmd_of_migration(struct kunit *test)
{
	bool write = *(bool *)test->param_value;
	unsigned int i, data, entries, writable, protected;
	struct vm_area_struct *vma;
	struct reclaim_fixture *f;
	pmd_t *pmd;

	if (HPAGE_PMD_SIZE > SZ_64M)
		kunit_skip(test, "a huge page is too large for this machine");
	f = reclaim_fixture(test, HPAGE_PMD_ORDER);
	if (!write)
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_syscall(mprotect, f->addr,
						      HPAGE_PMD_SIZE,
						      PROT_READ));
	pmd = pmd_off(f->u->mm, f->addr);
	KUNIT_ASSERT_TRUE(test, pmd_trans_huge(*pmd));
	folio_lock(f->folio);
	try_to_migrate(f->folio, 0);
	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), 0);
	KUNIT_EXPECT_FALSE(test, pmd_present(*pmd));
	mmap_read_lock(f->u->mm);
	vma = vma_lookup(f->u->mm, f->addr);
	if (vma)
		split_huge_pmd(vma, pmd, f->addr);
	mmap_read_unlock(f->u->mm);

	reclaim_migrating(f, &entries, &writable, &protected);
	KUNIT_EXPECT_EQ(test, entries, f->nr);
	KUNIT_EXPECT_EQ(test, writable, write ? f->nr : 0);
	KUNIT_EXPECT_EQ(test, protected, 0);
	remove_migration_ptes(f->folio, f->folio, 0);
	folio_unlock(f->folio);

	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), f->nr);
	for (i = 0; i < f->nr; i++) {
		pte_t pte = reclaim_pte(f, i);

		KUNIT_EXPECT_TRUE_MSG(test, pte_present(pte), "page %u", i);
		KUNIT_EXPECT_EQ_MSG(test, pte_write(pte), write, "page %u", i);
		KUNIT_EXPECT_FALSE_MSG(test, pgtable_kunit_uffd(pte), "page %u", i);
		KUNIT_ASSERT_EQ(test, 0, get_user(data, reclaim_word(f, i)));
		KUNIT_EXPECT_EQ(test, data, i);
	}
	reclaim_end(f);
}
#else
static void split_huge_pmd_of_migration(struct kunit *test)
{
	kunit_skip(test, "no PMDs that are not present");
}
#endif

static const bool reclaim_writes[] = { true, false };

static void reclaim_write_desc(const bool *write, char *desc)
{
	strscpy(desc, *write ? "writable" : "read-only", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reclaim_write, reclaim_writes, reclaim_write_desc);

static struct kunit_case folio_reclaim_cases[] = {
	KUNIT_CASE_PARAM(folio_referenced_ages_every_entry,
			 reclaim_pattern_gen_params),
	KUNIT_CASE(folio_referenced_huge_page),
	KUNIT_CASE_PARAM(folio_referenced_reports_lock,
			 reclaim_order_gen_params),
	KUNIT_CASE_PARAM(try_to_unmap_reports_end, reclaim_order_gen_params),
	KUNIT_CASE_PARAM(try_to_unmap_invalidates_once,
			 reclaim_order_gen_params),
	KUNIT_CASE_PARAM(try_to_unmap_defers_on_request,
			 reclaim_order_gen_params),
	KUNIT_CASE_PARAM(try_to_unmap_keeps_written_page,
			 reclaim_order_gen_params),
	KUNIT_CASE_PARAM(split_huge_pmd_of_migration, reclaim_write_gen_params),
	{}
};

static struct kunit_suite folio_reclaim_suite = {
	.name = "folio_reclaim",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = folio_reclaim_cases,
};

kunit_test_suite(folio_reclaim_suite);

MODULE_DESCRIPTION("KUnit tests for the entries of folios in reclaim and migration");
MODULE_LICENSE("GPL");
