// SPDX-License-Identifier: GPL-2.0
/*
 * Entries of a hugetlb page that is as large as a contiguous block.
 *
 * hugetlbpage.c makes and removes the entries of the page as a block, and
 * contpte.c never handles them. Hardware treats the block like any other: it
 * may set accessed and dirty in one entry alone, so a reader of the page has to
 * read all entries.
 *
 * The cases use real tables of an address space, and write entries into them as
 * hardware may leave them. Not covered: pages of a pool, page faults, larger
 * sizes (the selftests hugetlb_block and hugetlb_fork).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--kconfig_add CONFIG_HUGETLBFS=y hugetlb_pte
 */

#include <kunit/test.h>
#include <linux/hugetlb.h>
#include <linux/log2.h>
#include <linux/mman.h>
#include <linux/sizes.h>

#include "pgtable_kunit.h"

#ifdef CONFIG_HUGETLB_PAGE
/**
 * struct huge_fixture - the entries of one huge page
 * @test: the test
 * @mm: the address space of the thread of the test
 * @folio: a folio as large as the page
 * @addr: where it is mapped
 * @ptep: the first of its entries, with the table locked
 * @ptl: the lock
 */
struct huge_fixture {
	struct kunit *test;
	struct mm_struct *mm;
	struct folio *folio;
	unsigned long addr;
	pte_t *ptep;
	spinlock_t *ptl;	/* of the table */
};

static void huge_fixture(struct kunit *test, struct huge_fixture *f)
{
	unsigned long addr;

	addr = kunit_vm_mmap(test, NULL, 0, 2 * CONT_PTE_SIZE, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	f->test = test;
	f->mm = current->mm;
	f->folio = pgtable_kunit_folio_alloc(test, ilog2(CONT_PTES));
	f->addr = ALIGN(addr, CONT_PTE_SIZE);
}

static bool huge_lock(struct huge_fixture *f)
{
	mmap_read_lock(f->mm);
	f->ptep = get_locked_pte(f->mm, f->addr, &f->ptl);
	if (!f->ptep)
		mmap_read_unlock(f->mm);
	return f->ptep;
}

static void huge_unlock(struct huge_fixture *f)
{
	pte_unmap_unlock(f->ptep, f->ptl);
	mmap_read_unlock(f->mm);
}

/* The value for "no entry of the block" as a place. */
#define HUGE_NONE	CONT_PTES

/*
 * The next place in a block: in a small block any place, in a large block the
 * ends and the middle.
 */
static unsigned int huge_next(unsigned int i)
{
	if (CONT_PTES <= 16)
		return i + 1;
	return i == 0 ? 1 : i == 1 ? CONT_PTES / 2 :
	       i == CONT_PTES / 2 ? CONT_PTES - 1 : i + 1;
}

static pte_t huge_entry(struct huge_fixture *f, unsigned int i, bool young,
			bool dirty)
{
	pte_t pte = pfn_pte(folio_pfn(f->folio) + i,
			    vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED));

	pte = pte_mkold(pte_mkclean(pte));
	pte = set_pte_bit(pte, __pgprot(PTE_CONT));
	if (young)
		pte = pte_mkyoung(pte);
	/* A write access makes the entry dirty in the way of the hardware. */
	if (dirty)
		pte = clear_pte_bit(pte, __pgprot(PTE_RDONLY));
	return pte;
}

/* An entry may be dirty in two forms. */
static pteval_t huge_plain(pte_t pte)
{
	return pte_val(pte_dirty(pte) ? pte_mkdirty(pte) : pte);
}

/*
 * The number of entries that differ from the written ones, or that are not
 * empty.
 */
static unsigned int huge_count(struct huge_fixture *f, const pte_t *want)
{
	unsigned int i, nr = 0;

	for (i = 0; i < CONT_PTES; i++)
		nr += !pte_same(pgtable_kunit_raw_get(f->ptep + i),
				want ? want[i] : __pte(0));
	return nr;
}

/*
 * Write @entry into the table, read the page, and clear it. Afterwards the
 * table must be empty.
 */
static void huge_read_and_take(struct huge_fixture *f, const pte_t *entry,
			       pte_t want, const char *what)
{
	unsigned int i, changed, left;
	pte_t read, taken;

	KUNIT_ASSERT_TRUE(f->test, huge_lock(f));
	for (i = 0; i < CONT_PTES; i++)
		pgtable_kunit_raw_set(f->mm, f->addr + i * PAGE_SIZE,
				      f->ptep + i, entry[i]);
	read = huge_ptep_get(f->mm, f->addr, f->ptep);
	changed = huge_count(f, entry);
	taken = huge_ptep_get_and_clear(f->mm, f->addr, f->ptep, CONT_PTE_SIZE);
	left = huge_count(f, NULL);
	for (i = 0; i < CONT_PTES; i++)
		pgtable_kunit_raw_clear(f->mm, f->addr + i * PAGE_SIZE,
					f->ptep + i);
	huge_unlock(f);
	/* huge_ptep_get_and_clear() leaves the invalidation to its caller. */
	flush_tlb_mm(f->mm);

	KUNIT_EXPECT_EQ_MSG(f->test, huge_plain(read), huge_plain(want),
			    "%s: read", what);
	KUNIT_EXPECT_EQ_MSG(f->test, huge_plain(taken), huge_plain(want),
			    "%s: taken", what);
	KUNIT_EXPECT_EQ_MSG(f->test, changed, 0, "%s: entries changed", what);
	KUNIT_EXPECT_EQ_MSG(f->test, left, 0, "%s: entries left", what);
}

/*
 * huge_ptep_get() and huge_ptep_get_and_clear() return a young page if any of
 * its entries is young, and a dirty page if any entry is dirty. huge_ptep_get()
 * changes no entry, and huge_ptep_get_and_clear() leaves no entry. At most one
 * entry is young, and at most one is dirty. The case tries all pairs of places.
 */
static void huge_ptep_get_gathers(struct kunit *test)
{
	pte_t *entry = kunit_kcalloc(test, CONT_PTES, sizeof(*entry), GFP_KERNEL);
	unsigned int young, dirty, i, nr = 0;
	struct huge_fixture f;
	char what[64];

	KUNIT_ASSERT_NOT_NULL(test, entry);
	huge_fixture(test, &f);
	for (young = 0; young <= HUGE_NONE; young = huge_next(young)) {
		for (dirty = 0; dirty <= HUGE_NONE; dirty = huge_next(dirty)) {
			for (i = 0; i < CONT_PTES; i++)
				entry[i] = huge_entry(&f, i, i == young,
						      i == dirty);
			snprintf(what, sizeof(what), "entry %u young, %u dirty",
				 young, dirty);
			huge_read_and_take(&f, entry,
					   huge_entry(&f, 0, young != HUGE_NONE,
						      dirty != HUGE_NONE),
					   what);
			nr++;
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "pages read and taken");
}

/*
 * A page that is not present has as many entries as a page that is present.
 * huge_ptep_get_and_clear() clears all of them and returns the first. Before
 * commit 49c87f767774 it cleared only the first entry, and the other entries
 * stayed when a page was migrated. The case tries a readable and a writable
 * migration entry, and a swap entry, which hugetlb uses for a poisoned page.
 */
static void huge_ptep_get_and_clear_nonpresent(struct kunit *test)
{
	pte_t *entry = kunit_kcalloc(test, CONT_PTES, sizeof(*entry), GFP_KERNEL);
	unsigned int kind, i, nr = 0;
	struct huge_fixture f;

	KUNIT_ASSERT_NOT_NULL(test, entry);
	huge_fixture(test, &f);
	for (kind = 0; kind < 3; kind++) {
		unsigned long pfn = folio_pfn(f.folio);
		swp_entry_t swp = swp_entry(1, 4711);

		if (kind == 1)
			swp = make_readable_migration_entry(pfn);
		else if (kind == 2)
			swp = make_writable_migration_entry(pfn);
		for (i = 0; i < CONT_PTES; i++)
			entry[i] = swp_entry_to_pte(swp);
		huge_read_and_take(&f, entry, entry[0],
				   kind ? "migration entry" : "swap entry");
		nr++;
	}
	PGTABLE_KUNIT_DID(test, nr, "pages read and taken");
}
#else
static void huge_ptep_get_gathers(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_HUGETLBFS");
}

static void huge_ptep_get_and_clear_nonpresent(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_HUGETLBFS");
}
#endif

static struct kunit_suite hugetlb_pte_suite;

static int hugetlb_pte_init(struct kunit *test)
{
	return pgtable_kunit_case_init(test, &hugetlb_pte_suite);
}

static struct kunit_case hugetlb_pte_cases[] = {
	KUNIT_CASE(huge_ptep_get_gathers),
	KUNIT_CASE(huge_ptep_get_and_clear_nonpresent),
	{}
};

static struct kunit_suite hugetlb_pte_suite = {
	.name = "hugetlb_pte",
	.init = hugetlb_pte_init,
	.test_cases = hugetlb_pte_cases,
};

kunit_test_suite(hugetlb_pte_suite);

MODULE_DESCRIPTION("KUnit tests for the entries of a huge page of hugetlb");
MODULE_LICENSE("GPL");
