// SPDX-License-Identifier: GPL-2.0
/*
 * Fork and unmapping by batches of pages.
 *
 * Fork and unmapping handle the pages of a large folio at once: one read of the
 * first entry, one change of counters, one call for all the entries. Each case
 * populates three blocks of anonymous memory with a folio each, forks or
 * unmaps, and checks parent and child. The child is a kernel thread with the
 * address space that the child of a program would have. The cases compare
 * entries, contents, mappings and references of folios, and RSS with the model.
 *
 * Not covered: files, swap entries, markers of userfaultfd.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	fork_batch
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "../internal.h"
#include "user_mm.h"

static const unsigned int fork_orders[] = { 0, 2, USER_BLOCK_ORDER };

static void fork_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(fork_order, fork_orders, fork_order_desc);

static struct user_mm *fork_populate(struct kunit *test, unsigned int order)
{
	struct user_mm *u = test->priv;

	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, true);
	user_mm_populate(u, order);
	snprintf(u->what, sizeof(u->what), "order %u", order);
	return u;
}

/* Report an unexpected entry of the child. The child cannot use assertions. */
static int fork_wrong(struct user_mm *u, unsigned int page, pte_t pte,
		      const char *what)
{
	if (u->failed++ < PGTABLE_KUNIT_ENOUGH)
		KUNIT_FAIL(u->test, "%s: page %u of the child is %016llx: %s",
			   u->what, page, (u64)pte_val(pte), what);
	return 1;
}

/*
 * Check the entries that a child begins with: they map the pages of the parent,
 * are old and not writable, and are folded as in the parent. The parent's
 * entries must not be writable either.
 */
static int fork_child_entries(struct user_mm *u)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < USER_PAGES; i++) {
		const struct user_page *p = &u->page[i];
		pte_t pte = user_mm_pte(u, p->addr);
		pte_t parent = user_mm_pte(u->parent, p->addr);

		if (!p->mapped) {
			if (!pte_none(pte))
				wrong += fork_wrong(u, i, pte, "not empty");
			continue;
		}
		if (!pte_present(pte) || pte_pfn(pte) != p->pfn)
			wrong += fork_wrong(u, i, pte, "another page");
		else if (pte_write(pte) || pte_write(parent))
			wrong += fork_wrong(u, i, pte, "writable");
		else if (pte_young(pte))
			wrong += fork_wrong(u, i, pte, "young");
		else if (!pte_dirty(pte))
			wrong += fork_wrong(u, i, pte, "not dirty");
		else if (pgtable_kunit_folded(pte) !=
			 pgtable_kunit_folded(parent))
			wrong += fork_wrong(u, i, pte, "folded in one alone");
	}
	return wrong;
}

/* The child writes to each page, and the parent keeps its pages and content. */
static int fork_child_writes(struct user_mm *u)
{
	unsigned int i, wrong = fork_child_entries(u);

	for (i = 0; i < USER_PAGES; i++) {
		unsigned int data;

		if (!u->page[i].mapped)
			continue;
		if (get_user(data, (unsigned int __user *)u->page[i].addr) ||
		    data != u->page[i].data)
			wrong += fork_wrong(u, i, user_mm_pte(u, u->page[i].addr),
					    "other contents");
		u->page[i].pfn = 0;
		wrong += !!user_mm_write(u, i, 7000 + i);
	}
	user_mm_check(u);
	return wrong;
}

/*
 * fork() shares all pages of whole folios with the child, read-only on both
 * sides, and copies them for the child when it writes. The three folios follow
 * each other in the table.
 */
static void fork_whole_folios(struct kunit *test)
{
	struct user_mm *u = fork_populate(test,
					  *(unsigned int *)test->param_value);

	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(u, fork_child_writes, NULL));
	user_mm_check(u);
	user_mm_unmap(u);
}

/*
 * The parent has unmapped a part of a folio. The part is at every position in
 * turn. The child gets only the other pages, so the entries of this folio are
 * not folded, in the child and in the parent.
 */
static void fork_part_of_folio(struct kunit *test)
{
	unsigned int first, nr;
	struct user_mm *u;

	for (first = USER_BLOCK; first < 2 * USER_BLOCK; first++) {
		unsigned int i, step = max(1U, USER_BLOCK / 16);

		for (nr = 1; first + nr <= 2 * USER_BLOCK; nr += step) {
			u = fork_populate(test, USER_BLOCK_ORDER);
			snprintf(u->what, sizeof(u->what),
				 "%u pages unmapped at %u", nr, first);
			for (i = first; i < first + nr; i++) {
				u->page[i].mapped = false;
				u->page[i].present = false;
			}
			KUNIT_ASSERT_EQ(test, 0,
					vm_munmap(u->page[first].addr,
						  nr * PAGE_SIZE));
			KUNIT_EXPECT_EQ(test, 0,
					user_mm_fork(u, fork_child_writes, NULL));
			user_mm_check(u);
			if (u->failed)
				return;
		}
	}
	user_mm_unmap(u);
}

/*
 * Parent and child both write. The first writer gets a copy, and the second
 * writer keeps the page. The copy is writable at once, so the parent needs only
 * one fault for each page.
 */
static void fork_parent_writes(struct user_mm *u)
{
	unsigned long faults = user_mm_faults();
	unsigned int i;

	for (i = 0; i < USER_PAGES; i++) {
		unsigned long pfn = u->page[i].pfn;

		u->page[i].pfn = 0;
		if (user_mm_write(u, i, 3000 + i) ||
		    pte_pfn(user_mm_pte(u, u->page[i].addr)) == pfn) {
			u->failed++;
			KUNIT_FAIL(u->test, "%s: page %u is not copied while the child has it",
				   u->what, i);
			return;
		}
	}
	if (IS_ENABLED(CONFIG_VM_EVENT_COUNTERS))
		KUNIT_EXPECT_EQ(u->test, user_mm_faults() - faults, USER_PAGES);
}

static int fork_child_reads(struct user_mm *u)
{
	unsigned int i, data, wrong = 0;

	for (i = 0; i < USER_PAGES; i++)
		wrong += get_user(data, (unsigned int __user *)u->page[i].addr) ||
			 data != u->page[i].data;
	return wrong;
}

/* The parent writes first. The child must still have the old content. */
static void fork_child_keeps_contents(struct kunit *test)
{
	struct user_mm *u = fork_populate(test,
					  *(unsigned int *)test->param_value);

	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(u, fork_child_reads,
					      fork_parent_writes));
	user_mm_check(u);
	user_mm_unmap(u);
}

/* The folios are too small to be folded, so that entries can differ. */
#define FORK_ORDER	2

/* The first page of each folio is clean. */
static void fork_clean_first(struct user_mm *u)
{
	unsigned int i;

	for (i = 0; i < USER_PAGES; i += BIT(FORK_ORDER)) {
		unsigned long addr = u->page[i].addr;
		spinlock_t *ptl;	/* of the table */
		pte_t *ptep, pte;

		mmap_read_lock(u->mm);
		ptep = pte_offset_map_lock(u->mm, pmd_off(u->mm, addr), addr,
					   &ptl);
		KUNIT_ASSERT_NOT_NULL(u->test, ptep);
		pte = ptep_get_and_clear(u->mm, addr, ptep);
		set_pte_at(u->mm, addr, ptep, pte_mkclean(pte));
		pte_unmap_unlock(ptep, ptl);
		mmap_read_unlock(u->mm);
	}
}

static int fork_child_dirty(struct user_mm *u)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < USER_PAGES; i++) {
		bool dirty = i % BIT(FORK_ORDER);
		pte_t pte = user_mm_pte(u, u->page[i].addr);
		pte_t parent = user_mm_pte(u->parent, u->page[i].addr);

		if (pte_dirty(pte) != dirty || pte_dirty(parent) != dirty)
			wrong += fork_wrong(u, i, pte, "dirty or not");
	}
	return wrong;
}

/*
 * In private memory the first page of each folio is clean and all others are
 * dirty. All entries of a batch get the dirty bit of the first entry, so a
 * batch must not contain both clean and dirty entries.
 */
static void fork_keeps_dirty(struct kunit *test)
{
	struct user_mm *u = fork_populate(test, FORK_ORDER);

	fork_clean_first(u);
	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(u, fork_child_dirty, NULL));
	user_mm_check(u);
	user_mm_unmap(u);
}

static int fork_child_nothing(struct user_mm *u)
{
	return 0;
}

/*
 * The child has exited when the parent writes. The parent reuses single pages
 * without a copy. Older kernels copy the pages of a large folio. Newer kernels
 * let the parent reuse them, since they know that no other process maps the
 * folio.
 */
static void fork_write_after_child(struct kunit *test)
{
	unsigned int order = *(unsigned int *)test->param_value;
	struct user_mm *u = fork_populate(test, order);
	bool reused = !order || PGTABLE_KUNIT_REUSES_FOLIOS;
	unsigned int i, kept = 0;

	KUNIT_ASSERT_EQ(test, 0, user_mm_fork(u, fork_child_nothing, NULL));
	/* A page looks shared while a CPU still holds references to it. */
	lru_add_drain_all();
	for (i = 0; i < USER_PAGES; i++) {
		unsigned long pfn = u->page[i].pfn;

		u->page[i].pfn = 0;
		KUNIT_ASSERT_EQ(test, 0, user_mm_write(u, i, 3000 + i));
		kept += pte_pfn(user_mm_pte(u, u->page[i].addr)) == pfn;
	}
	KUNIT_EXPECT_EQ(test, kept, reused ? USER_PAGES : 0);
	user_mm_check(u);
	user_mm_unmap(u);
}

/* The child has a copy of the pinned page, and shares all others. */
static int fork_child_pinned(struct user_mm *u)
{
	unsigned int i, data, wrong = 0;

	for (i = 0; i < USER_PAGES; i++) {
		pte_t pte = user_mm_pte(u, u->page[i].addr);
		bool same = pte_present(pte) && pte_pfn(pte) == u->page[i].pfn;

		if (same == u->page[i].locked)
			wrong += fork_wrong(u, i, pte, "shared, or pinned");
		wrong += get_user(data, (unsigned int __user *)u->page[i].addr) ||
			 data != u->page[i].data;
	}
	return wrong;
}

/*
 * A page in the middle of a folio is pinned for a device. The child gets a copy
 * of this page at once. The parent keeps the page, even after a write. The
 * kernel only knows whether some page of a folio is pinned, so it copies all
 * pages of this folio, and none of another folio.
 */
static void fork_pinned_page(struct kunit *test)
{
	unsigned int i, pinned;

	for (pinned = USER_BLOCK; pinned < 2 * USER_BLOCK;
	     pinned += max(1U, USER_BLOCK / 16)) {
		struct user_mm *u = fork_populate(test, USER_BLOCK_ORDER);
		struct page *page;

		snprintf(u->what, sizeof(u->what), "page %u pinned", pinned);
		KUNIT_ASSERT_EQ(test, 1,
				pin_user_pages_fast(u->page[pinned].addr, 1,
						    FOLL_WRITE | FOLL_LONGTERM,
						    &page));
		for (i = USER_BLOCK; i < 2 * USER_BLOCK; i++)
			u->page[i].locked = true;
		KUNIT_EXPECT_EQ(test, 0,
				user_mm_fork(u, fork_child_pinned, NULL));
		KUNIT_EXPECT_EQ(test, 0, user_mm_write(u, pinned, 4711));
		KUNIT_EXPECT_EQ(test, page_to_pfn(page),
				pte_pfn(user_mm_pte(u, u->page[pinned].addr)));
		unpin_user_page(page);
		user_mm_check(u);
		if (u->failed)
			return;
	}
	user_mm_unmap(test->priv);
}

/*
 * Every range of two folios is discarded in one call. Its pages lose one
 * mapping and one reference each, and all other pages keep theirs.
 */
static void zap_every_range(struct kunit *test)
{
	unsigned int i, first, last, step = max(1U, USER_BLOCK / 8), n = 0;
	struct user_mm *u = test->priv;

	for (first = 0; first < 2 * USER_BLOCK; first += step) {
		for (last = first + 1; last <= 2 * USER_BLOCK; last++) {
			if (last - first > 2 && last % step)
				continue;
			fork_populate(test, USER_BLOCK_ORDER);
			snprintf(u->what, sizeof(u->what), "pages %u to %u",
				 first, last);
			for (i = first; i < last; i++) {
				u->page[i].present = false;
				u->page[i].pfn = 0;
			}
			KUNIT_ASSERT_EQ(test, 0,
					pgtable_kunit_syscall(madvise,
							      u->page[first].addr,
							      (last - first) * PAGE_SIZE,
							      MADV_DONTNEED));
			user_mm_check(u);
			if (u->failed)
				return;
			n++;
		}
	}
	user_mm_unmap(u);
	PGTABLE_KUNIT_DID(test, n, "ranges");
}

/* More pages than the kernel frees in one step, or records in one page. */
#define ZAP_PAGES	(3 * 512 + 7)

/*
 * munmap() unmaps so many small pages that the kernel frees them in several
 * steps. Each page loses exactly one mapping and one reference.
 */
static void zap_many_pages(struct kunit *test)
{
	struct page **pages = kunit_kcalloc(test, ZAP_PAGES, sizeof(*pages),
					    GFP_KERNEL);
	unsigned long size = ZAP_PAGES * PAGE_SIZE, addr;
	unsigned int i, wrong = 0;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	pgtable_kunit_thp_set(test, 0, true);
	addr = vm_mmap(NULL, 0, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	KUNIT_ASSERT_EQ(test, ZAP_PAGES,
			get_user_pages_fast(addr, ZAP_PAGES, FOLL_WRITE, pages));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr, size));
	lru_add_drain_all();
	for (i = 0; i < ZAP_PAGES; i++) {
		wrong += page_count(pages[i]) != 1 ||
			 folio_mapcount(page_folio(pages[i]));
		put_page(pages[i]);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

/* The parent gives up its memory before the child begins. */
static void fork_parent_unmaps(struct user_mm *u)
{
	user_mm_unmap(u);
}

/* The pages that the child writes to belong only to the child. */
static int fork_child_takes_over(struct user_mm *u)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < USER_PAGES; i++) {
		struct vm_area_struct *vma;
		struct folio *folio;
		bool own;

		if (user_mm_write(u, i, 7000 + i))
			return fork_wrong(u, i, user_mm_pte(u, u->page[i].addr),
					  "not writable");
		folio = user_mm_folio(u, i);
		mmap_read_lock(u->mm);
		vma = vma_lookup(u->mm, u->page[i].addr);
		own = folio && folio_pfn(folio) == u->page[i].pfn &&
		      folio_anon_vma(folio) == vma->anon_vma;
		mmap_read_unlock(u->mm);
		if (!own)
			wrong += fork_wrong(u, i,
					    user_mm_pte(u, u->page[i].addr),
					    "another page, or found by the parent's anon_vma");
	}
	return wrong;
}

/*
 * If only the child still maps a page, a write of the child reuses the page
 * without a copy. From then on rmap finds the page by the anon_vma of the
 * child, not of the parent. The case uses only small folios, because older
 * kernels copy pages of large folios.
 */
static void fork_child_takes_pages_over(struct kunit *test)
{
	struct user_mm *u = fork_populate(test, 0);

	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(u, fork_child_takes_over,
					      fork_parent_unmaps));
}

static struct kunit_case fork_batch_cases[] = {
	KUNIT_CASE_PARAM(fork_whole_folios, fork_order_gen_params),
	KUNIT_CASE_SLOW(fork_part_of_folio),
	KUNIT_CASE_PARAM(fork_child_keeps_contents, fork_order_gen_params),
	KUNIT_CASE_PARAM(fork_write_after_child, fork_order_gen_params),
	KUNIT_CASE(fork_keeps_dirty),
	KUNIT_CASE(fork_pinned_page),
	KUNIT_CASE(fork_child_takes_pages_over),
	KUNIT_CASE_SLOW(zap_every_range),
	KUNIT_CASE(zap_many_pages),
	{}
};

static struct kunit_suite fork_batch_suite = {
	.name = "fork_batch",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = fork_batch_cases,
};

kunit_test_suite(fork_batch_suite);

MODULE_DESCRIPTION("KUnit tests for fork and unmapping of large folios");
MODULE_LICENSE("GPL");
