// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults that find a large folio in the swap cache, and the entries that
 * they change.
 *
 * A fault on one page maps all pages of the folio if their swap entries are
 * consecutive and lie in one page table. Each case maps a folio, moves its
 * parts to other addresses, replaces its entries with swap entries of a swap
 * device of the test, and reads one page. The folio stays in the swap cache, so
 * nothing is written to the device or read from it.
 *
 * Not covered: reads from a device, readahead, faults that write.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	swap_in
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>
#include <asm/pgalloc.h>

#include "../internal.h"
#include "../swap.h"
#include "user_mm.h"

/*
 * The number of tables to allocate, to get two that are neighbours in memory.
 */
#define SWAP_IN_TABLES	64

/**
 * struct swap_in_kind - a folio, and where it is divided
 * @desc: in words
 * @order: of the folio
 * @head: how many of its first pages are moved to another table
 */
static const struct swap_in_kind {
	const char *desc;
	unsigned int order;
	unsigned int head;
} swap_in_kinds[] = {
	{ "1 of 4 pages", 2, 1 },
	{ "8 of 16 pages", 4, 8 },
	{ "15 of 16 pages", 4, 15 },
};

KUNIT_ARRAY_PARAM_DESC(swap_in_kind, swap_in_kinds, desc);

/**
 * struct swap_in - a folio in the swap cache
 * @test: the test
 * @u: the address space
 * @folio: the folio, with a reference of the test
 * @nr: its pages
 * @head: how many of its first pages are moved
 * @head_at: the address of the moved pages
 * @tail_at: the address of the other pages
 */
struct swap_in {
	struct kunit *test;
	struct user_mm *u;
	struct folio *folio;
	unsigned int nr;
	unsigned int head;
	unsigned long head_at;
	unsigned long tail_at;
};

static unsigned long swap_in_addr(struct swap_in *s, unsigned int page)
{
	return page < s->head ? s->head_at + page * PAGE_SIZE :
				s->tail_at + (page - s->head) * PAGE_SIZE;
}

static unsigned int __user *swap_in_word(struct swap_in *s, unsigned int page)
{
	return (unsigned int __user *)swap_in_addr(s, page);
}

static pte_t swap_in_pte(struct swap_in *s, unsigned int page)
{
	return user_mm_pte(s->u, swap_in_addr(s, page));
}

static bool swap_in_is_swapped(struct swap_in *s, unsigned int page)
{
	pte_t pte = swap_in_pte(s, page);

	return !pte_none(pte) && !pte_present(pte);
}

static void swap_in_free(struct mm_struct *mm, pgtable_t table)
{
	if (table)
		pte_free(mm, table);
}

/*
 * Allocate two page tables that are neighbours in memory, the lower one first.
 */
static bool swap_in_neighbours(struct mm_struct *mm, pgtable_t pair[2])
{
	pgtable_t table[SWAP_IN_TABLES] = {};
	unsigned int i, k, nr = 0;
	bool found = false;

	while (!found && nr < SWAP_IN_TABLES) {
		table[nr] = pte_alloc_one(mm);
		if (!table[nr])
			break;
		nr++;
		for (i = 0; i < nr && !found; i++) {
			for (k = 0; k < nr && !found; k++) {
				if (page_to_pfn(table[i]) + 1 !=
				    page_to_pfn(table[k]))
					continue;
				pair[0] = table[i];
				pair[1] = table[k];
				table[i] = NULL;
				table[k] = NULL;
				found = true;
			}
		}
	}
	while (nr)
		swap_in_free(mm, table[--nr]);
	return found;
}

/* Make @table the page table for @addr, which has none yet. */
static bool swap_in_use_table(struct mm_struct *mm, unsigned long addr,
			      pgtable_t table)
{
	p4d_t *p4d = p4d_alloc(mm, pgd_offset(mm, addr), addr);
	pud_t *pud = p4d ? pud_alloc(mm, p4d, addr) : NULL;
	pmd_t *pmd = pud ? pmd_alloc(mm, pud, addr) : NULL;

	if (!pmd || !pmd_none(*pmd))
		return false;
	mm_inc_nr_ptes(mm);
	pmd_populate(mm, pmd, table);
	return true;
}

static void swap_in_use_tables(struct swap_in *s)
{
	struct mm_struct *mm = s->u->mm;
	pgtable_t pair[2] = {};
	bool found, used[2] = {};

	found = swap_in_neighbours(mm, pair);
	if (found) {
		mmap_write_lock(mm);
		used[0] = swap_in_use_table(mm, s->head_at, pair[0]);
		used[1] = swap_in_use_table(mm, s->tail_at, pair[1]);
		mmap_write_unlock(mm);
		if (!used[0])
			swap_in_free(mm, pair[0]);
		if (!used[1])
			swap_in_free(mm, pair[1]);
	}
	KUNIT_ASSERT_TRUE_MSG(s->test, found,
			      "none of %u tables are neighbours in memory",
			      SWAP_IN_TABLES);
	KUNIT_ASSERT_TRUE(s->test, used[0]);
	KUNIT_ASSERT_TRUE(s->test, used[1]);
}

static void swap_in_move(struct swap_in *s, unsigned long from,
			 unsigned int pages, unsigned long to)
{
	unsigned long size = pages * PAGE_SIZE;

	KUNIT_ASSERT_EQ(s->test, to,
			pgtable_kunit_syscall(mremap, from, size, size,
					      MREMAP_MAYMOVE | MREMAP_FIXED,
					      to));
}

/* Replace all entries of the folio with swap entries, as reclaim does. */
static void swap_in_unmap(struct swap_in *s)
{
	unsigned int i;
	bool added;

	folio_lock(s->folio);
#ifdef PGTABLE_KUNIT_HAS_ADD_TO_SWAP
	added = add_to_swap(s->folio);
#else
	added = !folio_alloc_swap(s->folio);
#endif
	if (added) {
		folio_mark_dirty(s->folio);
		try_to_unmap(s->folio, 0);
	}
	folio_unlock(s->folio);
	KUNIT_ASSERT_TRUE(s->test, added);
	KUNIT_ASSERT_FALSE(s->test, folio_mapped(s->folio));
	for (i = 0; i < s->nr; i++)
		KUNIT_ASSERT_TRUE_MSG(s->test, swap_in_is_swapped(s, i),
				      "page %u", i);
}

/* Map a folio, with a number in each page. */
static struct swap_in *swap_in_fixture(struct kunit *test, unsigned int order)
{
	struct swap_in *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	unsigned long size = PAGE_SIZE << order;
	struct page *page;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_THP_SWAP))
		kunit_skip(test, "needs CONFIG_THP_SWAP");
	KUNIT_ASSERT_NOT_NULL(test, s);
	s->test = test;
	s->u = test->priv;
	s->nr = BIT(order);
	s->head = s->nr;
	s->head_at = USER_ADDR;

	pgtable_kunit_thp_set(test, BIT(order), false);
	pgtable_kunit_swap_on(test);
	KUNIT_ASSERT_EQ(test, s->head_at,
			vm_mmap(NULL, s->head_at, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, 0));
	for (i = 0; i < s->nr; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(1000 + i, swap_in_word(s, i)));
	KUNIT_ASSERT_EQ(test, 1, get_user_pages_fast(s->head_at, 1, 0, &page));
	s->folio = page_folio(page);
	KUNIT_ASSERT_EQ(test, order, folio_order(s->folio));
	lru_add_drain_all();
	return s;
}

/* Read a page. The fault maps it. */
static void swap_in_read(struct swap_in *s, unsigned int page)
{
	unsigned int data;

	KUNIT_EXPECT_EQ_MSG(s->test, 0, get_user(data, swap_in_word(s, page)),
			    "page %u", page);
	KUNIT_EXPECT_EQ_MSG(s->test, data, 1000 + page, "page %u", page);
	KUNIT_EXPECT_EQ_MSG(s->test, folio_pfn(s->folio) + page,
			    pte_pfn(swap_in_pte(s, page)), "page %u", page);
}

/* Each page that is not mapped yet is mapped by a separate fault. */
static void swap_in_end(struct swap_in *s)
{
	unsigned int i;

	for (i = 0; i < s->nr; i++)
		swap_in_read(s, i);
	KUNIT_EXPECT_EQ(s->test, s->nr, folio_mapcount(s->folio));
	PGTABLE_KUNIT_DID(s->test, folio_mapcount(s->folio), "pages swapped in");
	folio_put(s->folio);
}

/*
 * The last pages of a folio are at address 0, so its first pages would be below
 * address 0. Instead the first pages are at the end of another page table,
 * which lies in memory right before the table for address 0. Their VMA is
 * read-only. A fault at address 0 maps a page of its own table, and no page of
 * the other table. Known issue 23: the address of the first page wraps, and the
 * kernel treats the entries of both tables as one batch. It maps all of them,
 * writable. With CONFIG_DEBUG_VM the kernel notices the address and dies, so
 * the case skips such a kernel.
 */
static void swap_in_at_lowest_address(struct kunit *test)
{
	const struct swap_in_kind *kind = test->param_value;
	unsigned int i, mapped = 0, writable = 0, head = kind->head;
	unsigned long addr;
	struct swap_in *s;

	if (IS_ENABLED(CONFIG_DEBUG_VM) && pgtable_kunit_source_has_issue(23))
		kunit_skip(test, "known issue 23 with CONFIG_DEBUG_VM kills the kernel");
	s = swap_in_fixture(test, kind->order);
	addr = s->head_at;
	s->head = head;
	s->head_at = addr + 2 * PMD_SIZE - head * PAGE_SIZE;
	s->tail_at = 0;
	swap_in_use_tables(s);
	swap_in_move(s, addr, head, s->head_at);
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(mprotect, s->head_at,
					      head * PAGE_SIZE, PROT_READ));
	swap_in_move(s, addr + head * PAGE_SIZE, s->nr - head, s->tail_at);
	swap_in_unmap(s);

	swap_in_read(s, head);
	for (i = 0; i < head; i++) {
		mapped += pte_present(swap_in_pte(s, i));
		writable += pte_present(swap_in_pte(s, i)) &&
			    pte_write(swap_in_pte(s, i));
	}
	if (mapped == head && writable == head) {
		pgtable_kunit_known_issue(test, 23,
					  "%u pages of another, read-only VMA became writable",
					  writable);
	} else {
		KUNIT_EXPECT_EQ_MSG(test, mapped, 0,
				    "pages of another table, %u of them writable",
				    writable);
		pgtable_kunit_stale_issue(test, 23);
	}
	swap_in_end(s);
}

static const unsigned int swap_in_pages[] = { 0, 7, 8, 15 };

static void swap_in_page_desc(const unsigned int *page, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "page %u of 16", *page);
}

KUNIT_ARRAY_PARAM(swap_in_page, swap_in_pages, swap_in_page_desc);

/*
 * All of a folio lies in one VMA, at consecutive addresses. The first fault
 * maps all of its pages. The case tries faults at the edges and in the middle.
 */
static void swap_in_maps_whole_folio(struct kunit *test)
{
	unsigned int page = *(unsigned int *)test->param_value, i;
	struct swap_in *s = swap_in_fixture(test, 4);

	swap_in_unmap(s);
	swap_in_read(s, page);
	for (i = 0; i < s->nr; i++) {
		pte_t pte = swap_in_pte(s, i);

		KUNIT_EXPECT_TRUE_MSG(test, pte_present(pte), "page %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, pte_write(pte), "page %u", i);
	}
	swap_in_end(s);
}

/*
 * The first half of a folio is in a read-only VMA, the second half in the next
 * VMA. A fault maps the accessed page, and no page of the other VMA.
 */
static void swap_in_stays_in_vma(struct kunit *test)
{
	unsigned int page = *(unsigned int *)test->param_value, i;
	struct swap_in *s = swap_in_fixture(test, 4);

	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(mprotect, s->head_at,
					      s->nr / 2 * PAGE_SIZE, PROT_READ));
	swap_in_unmap(s);
	swap_in_read(s, page);
	for (i = 0; i < s->nr; i++) {
		if (i != page)
			KUNIT_EXPECT_TRUE_MSG(test, swap_in_is_swapped(s, i),
					      "page %u", i);
	}
	KUNIT_EXPECT_EQ(test, pte_write(swap_in_pte(s, page)),
			page >= s->nr / 2);
	swap_in_end(s);
}

static struct kunit_case swap_in_cases[] = {
	KUNIT_CASE_PARAM(swap_in_at_lowest_address, swap_in_kind_gen_params),
	KUNIT_CASE_PARAM(swap_in_maps_whole_folio, swap_in_page_gen_params),
	KUNIT_CASE_PARAM(swap_in_stays_in_vma, swap_in_page_gen_params),
	{}
};

static struct kunit_suite swap_in_suite = {
	.name = "swap_in",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = swap_in_cases,
};

kunit_test_suite(swap_in_suite);

MODULE_DESCRIPTION("KUnit tests for page faults on large folios in the swap cache");
MODULE_LICENSE("GPL");
