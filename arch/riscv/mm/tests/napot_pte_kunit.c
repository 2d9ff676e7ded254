// SPDX-License-Identifier: GPL-2.0
/*
 * A hugetlb page of 64K on riscv. It has 16 entries, which are one translation
 * with Svnapot.
 *
 * hugetlbpage.c writes and clears the 16 entries as one page. The hardware may
 * set accessed and dirty in any of them. The functions only use the bits of an
 * entry, so any riscv CPU can run the cases on synthetic tables. One case needs
 * Svnapot. Not covered: pages of a pool, page faults, and the functions that
 * find the entries by an address.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=riscv \
 *	--qemu_args '-cpu rv64,svnapot=true' napot_pte
 */

#include <kunit/test.h>
#include <linux/hugetlb.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <asm/tlbflush.h>

#include "pgtable_kunit.h"

#if defined(CONFIG_HUGETLB_PAGE) && defined(CONFIG_RISCV_ISA_SVNAPOT)
#define NAPOT_ORDER	NAPOT_CONT64KB_ORDER
#define NAPOT_SIZE	napot_cont_size(NAPOT_ORDER)
#define NAPOT_PTES	((int)napot_pte_num(NAPOT_ORDER))

/* The entries of a page that is not present. */
static const struct napot_kind {
	bool migration;
	bool writable;
} napot_kinds[] = {
	{ .migration = false },
	{ .migration = true, .writable = false },
	{ .migration = true, .writable = true },
};

static pte_t napot_nonpresent(const struct napot_kind *kind, unsigned long pfn)
{
	if (!kind->migration)
		return swp_entry_to_pte(swp_entry(1, 4711));
	if (kind->writable)
		return swp_entry_to_pte(make_writable_migration_entry(pfn));
	return swp_entry_to_pte(make_readable_migration_entry(pfn));
}

static pte_t napot_present(struct folio *folio, bool young, bool dirty)
{
	pte_t pte = pte_mkwrite_novma(pfn_pte(folio_pfn(folio), PAGE_SHARED));

	pte = arch_make_huge_pte(pte, napot_cont_shift(NAPOT_ORDER), 0);
	pte = pte_mkold(pte_mkclean(pte));
	if (young)
		pte = pte_mkyoung(pte);
	return dirty ? pte_mkdirty(pte) : pte;
}

/* Neither the page nor its neighbours are at an end of the table. */
static const int napot_places[] = { 16, 240, PTRS_PER_PTE - 32 };

static void napot_expect(struct pgtable_kunit_table *table, int idx, pte_t pte)
{
	int i;

	for (i = 0; i < NAPOT_PTES; i++)
		table->want[idx + i] = pte;
}

/*
 * Write a page that is not present between two other pages, and clear it: with
 * huge_pte_clear() if @clear, else with huge_ptep_get_and_clear(). Returns
 * whether all entries except the first were left.
 */
static bool napot_stays(struct pgtable_kunit_table *table, int idx, pte_t entry,
			bool clear)
{
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	pte_t *ptep = table->pte + idx, got = entry;

	pgtable_kunit_table_reset(table);
	pgtable_kunit_table_set(table, idx - 1, entry);
	pgtable_kunit_table_set(table, idx + NAPOT_PTES, entry);
	set_huge_pte_at(table->mm, addr, ptep, entry, NAPOT_SIZE);
	napot_expect(table, idx, entry);
	pgtable_kunit_table_check(table, "set_huge_pte_at() at %d", idx);

	if (clear)
		huge_pte_clear(table->mm, addr, ptep, NAPOT_SIZE);
	else
		got = huge_ptep_get_and_clear(table->mm, addr, ptep, NAPOT_SIZE);
	KUNIT_EXPECT_EQ(table->test, pte_val(got), pte_val(entry));

	napot_expect(table, idx, entry);
	table->want[idx] = __pte(0);
	if (pgtable_kunit_table_same(table))
		return true;
	napot_expect(table, idx, __pte(0));
	pgtable_kunit_table_check(table, "%016lx taken at %d", pte_val(entry),
				  idx);
	return false;
}

/*
 * Clear pages of each kind. Returns whether 15 entries of each page were left.
 */
static bool napot_each_stays(struct kunit *test, bool clear)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	struct folio *folio = pgtable_kunit_folio_alloc(test, NAPOT_ORDER);
	unsigned int i, j, pages = 0, stay = 0;

	for (i = 0; i < ARRAY_SIZE(napot_kinds); i++) {
		for (j = 0; j < ARRAY_SIZE(napot_places); j++) {
			stay += napot_stays(table, napot_places[j],
					    napot_nonpresent(&napot_kinds[i],
							     folio_pfn(folio)),
					    clear);
			pages++;
		}
	}
	pgtable_kunit_table_reset(table);
	PGTABLE_KUNIT_DID(test, pages, "pages taken");
	KUNIT_EXPECT_TRUE_MSG(test, !stay || stay == pages,
			      "%u of %u pages stay", stay, pages);
	return stay == pages;
}

/*
 * A page that is not present has as many entries as a page that is present.
 * huge_ptep_get_and_clear() clears all 16 entries and returns the first, and no
 * neighbouring entry changes. mremap() and the end of a mapping call it. The
 * entries are a swap entry and two kinds of migration entries, at three places
 * of a table. Known issue 15: the function clears only one entry.
 */
static void napot_get_and_clear_nonpresent(struct kunit *test)
{
	if (napot_each_stays(test, false))
		pgtable_kunit_known_issue(test, 15,
					  "of each page the first of 16 entries is cleared, the others stay");
	else
		pgtable_kunit_stale_issue(test, 15);
}

/*
 * huge_pte_clear() clears all 16 entries of a page that is not present, and no
 * entry next to them. munmap() calls it for migration entries, for poisoned
 * pages and for the markers of userfaultfd. Known issue 15: the function clears
 * only one entry.
 */
static void napot_clear_nonpresent(struct kunit *test)
{
	if (napot_each_stays(test, true))
		pgtable_kunit_known_issue(test, 15,
					  "of each page the first of 16 entries is cleared, the others stay");
	else
		pgtable_kunit_stale_issue(test, 15);
}

/* Read a page with one young and one dirty entry, then clear it. */
static void napot_read_and_take(struct pgtable_kunit_table *table,
				struct folio *folio, int young, int dirty)
{
	int i, idx = napot_places[1];
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	pte_t *ptep = table->pte + idx, want, got;

	pgtable_kunit_table_reset(table);
	for (i = 0; i < NAPOT_PTES; i++)
		pgtable_kunit_table_set(table, idx + i,
					napot_present(folio, i == young,
						      i == dirty));
	want = napot_present(folio, young < NAPOT_PTES, dirty < NAPOT_PTES);

	got = huge_ptep_get(table->mm, addr, ptep);
	KUNIT_EXPECT_EQ_MSG(table->test, pte_val(got), pte_val(want),
			    "read, entry %d young, %d dirty", young, dirty);
	pgtable_kunit_table_check(table, "huge_ptep_get()");

	got = huge_ptep_get_and_clear(table->mm, addr, ptep, NAPOT_SIZE);
	KUNIT_EXPECT_EQ_MSG(table->test, pte_val(got), pte_val(want),
			    "taken, entry %d young, %d dirty", young, dirty);
	napot_expect(table, idx, __pte(0));
	pgtable_kunit_table_check(table, "huge_ptep_get_and_clear()");
}

/*
 * A page is young if any of its entries is young, and dirty if any of them is
 * dirty. huge_ptep_get() changes no entry, and huge_ptep_get_and_clear() leaves
 * no entry. At most one entry is young, and at most one is dirty, at all pairs
 * of places. This case is the control for napot_get_and_clear_nonpresent and
 * napot_clear_nonpresent: the kernel clears all 16 entries of a present page.
 */
static void napot_get_gathers(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	struct folio *folio = pgtable_kunit_folio_alloc(test, NAPOT_ORDER);
	unsigned int pages = 0;
	int young, dirty;

	for (young = 0; young <= NAPOT_PTES; young++) {
		for (dirty = 0; dirty <= NAPOT_PTES; dirty++) {
			napot_read_and_take(table, folio, young, dirty);
			pages++;
		}
	}
	PGTABLE_KUNIT_DID(test, pages, "pages read and taken");
}

/*
 * set_huge_pte_at() writes the same entry 16 times: over empty entries, over a
 * page that is present, and over a page that is not present. huge_pte_clear()
 * clears all 16 entries of a present page. No neighbouring entry changes.
 */
static void napot_set_and_clear(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	struct folio *folio = pgtable_kunit_folio_alloc(test, NAPOT_ORDER);
	pte_t old[] = {
		__pte(0), napot_present(folio, true, false),
		napot_nonpresent(&napot_kinds[1], folio_pfn(folio)),
	};
	pte_t new = napot_present(folio, true, true);
	unsigned int i, j, pages = 0;

	for (i = 0; i < ARRAY_SIZE(old); i++) {
		for (j = 0; j < ARRAY_SIZE(napot_places); j++) {
			int k, idx = napot_places[j];
			unsigned long addr = pgtable_kunit_table_addr(table, idx);

			pgtable_kunit_table_reset(table);
			for (k = -1; k <= NAPOT_PTES; k++)
				pgtable_kunit_table_set(table, idx + k, old[i]);
			set_huge_pte_at(table->mm, addr, table->pte + idx, new,
					NAPOT_SIZE);
			napot_expect(table, idx, new);
			pgtable_kunit_table_check(table, "%016lx over %016lx",
						  pte_val(new), pte_val(old[i]));
			huge_pte_clear(table->mm, addr, table->pte + idx,
				       NAPOT_SIZE);
			napot_expect(table, idx, __pte(0));
			pgtable_kunit_table_check(table, "huge_pte_clear()");
			pages++;
		}
	}
	PGTABLE_KUNIT_DID(test, pages, "pages written and cleared");
}

/*
 * Read the page at @addr. If @old is not NULL, clear the page and store its
 * entry there. If @new is not NULL, write it.
 */
static pte_t napot_change(struct kunit *test, unsigned long addr, pte_t *old,
			  const pte_t *new)
{
	struct mm_struct *mm = current->mm;
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep, got;

	mmap_read_lock(mm);
	ptep = get_locked_pte(mm, addr, &ptl);
	if (!ptep) {
		mmap_read_unlock(mm);
		KUNIT_FAIL_AND_ABORT(test, "no page table");
	}
	got = huge_ptep_get(mm, addr, ptep);
	if (old)
		*old = huge_ptep_get_and_clear(mm, addr, ptep, NAPOT_SIZE);
	if (new)
		set_huge_pte_at(mm, addr, ptep, *new, NAPOT_SIZE);
	pte_unmap_unlock(ptep, ptl);
	flush_tlb_mm(mm);
	mmap_read_unlock(mm);
	return got;
}

/*
 * The hardware uses the 16 entries that set_huge_pte_at() writes as one page of
 * 64K: each address reads its own page of the folio. A store to one page makes
 * one entry or all entries dirty, and both huge_ptep_get() and
 * huge_ptep_get_and_clear() return a dirty page. The case stores to each of the
 * 16 pages.
 */
static void napot_translates(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, NAPOT_ORDER);
	unsigned long addr, word, bad = 0, pages = 0;
	pte_t pte, taken;
	int i, n;

	if (!has_svnapot())
		kunit_skip(test, "needs a CPU with Svnapot");
	addr = kunit_vm_mmap(test, NULL, 0, 2 * NAPOT_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	addr = ALIGN(addr, NAPOT_SIZE);
	for (i = 0; i < NAPOT_PTES; i++)
		*(unsigned long *)page_address(folio_page(folio, i)) = 4711 + i;

	for (n = 0; n < NAPOT_PTES; n++) {
		unsigned long __user *p = (void __user *)(addr + n * PAGE_SIZE);

		pte = napot_present(folio, true, false);
		napot_change(test, addr, NULL, &pte);
		for (i = 0; i < NAPOT_PTES; i++)
			bad += get_user(word, (unsigned long __user *)
					(addr + i * PAGE_SIZE)) ||
			       word != 4711 + i;
		pte = napot_change(test, addr, NULL, NULL);
		KUNIT_EXPECT_FALSE(test, pte_dirty(pte));
		KUNIT_EXPECT_EQ(test, put_user(4711UL + n, p), 0);
		pte = napot_change(test, addr, &taken, NULL);
		KUNIT_EXPECT_TRUE(test, pte_dirty(pte));
		KUNIT_EXPECT_TRUE(test, pte_dirty(taken));
		pages++;
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	PGTABLE_KUNIT_DID(test, pages, "pages written to");
}
#else
#define NAPOT_SKIPPED(name)						\
static void name(struct kunit *test)					\
{									\
	kunit_skip(test, "needs CONFIG_HUGETLBFS and CONFIG_RISCV_ISA_SVNAPOT"); \
}

NAPOT_SKIPPED(napot_get_and_clear_nonpresent)
NAPOT_SKIPPED(napot_clear_nonpresent)
NAPOT_SKIPPED(napot_get_gathers)
NAPOT_SKIPPED(napot_set_and_clear)
NAPOT_SKIPPED(napot_translates)
#endif

static struct kunit_case napot_pte_cases[] = {
	KUNIT_CASE(napot_get_and_clear_nonpresent),
	KUNIT_CASE(napot_clear_nonpresent),
	KUNIT_CASE(napot_get_gathers),
	KUNIT_CASE(napot_set_and_clear),
	KUNIT_CASE(napot_translates),
	{}
};

static struct kunit_suite napot_pte_suite = {
	.name = "napot_pte",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = napot_pte_cases,
};

kunit_test_suite(napot_pte_suite);

MODULE_DESCRIPTION("KUnit tests for the entries of a hugetlb page of 64K");
MODULE_LICENSE("GPL");
