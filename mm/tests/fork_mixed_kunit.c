// SPDX-License-Identifier: GPL-2.0
/*
 * Fork of an address space that maps a buffer of a driver.
 *
 * Drivers map their own pages with vm_insert_page(), for example the ring of a
 * packet socket. A page fault cannot bring such pages back, so fork() copies
 * their entries. One call copies all entries of a large folio. Each case maps a
 * folio of the test, forks, and compares child and parent: entries, mappings,
 * references and RSS. The suite needs no huge pages, so it runs on each
 * architecture.
 *
 * Not covered: anonymous memory (fork_batch), pages without a struct page.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests fork_mixed
 */

#include <kunit/test.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/shmem_fs.h>

#include "user_mm.h"

/* The largest folio of the cases. */
#define MIXED_ORDER	6
#define MIXED_PAGES	BIT(MIXED_ORDER)

/* Stands for no page: all pages are mapped. */
#define MIXED_ALL	UINT_MAX

/**
 * struct mixed_kind - how a folio is mapped
 * @desc: in words
 * @order: of the folio
 * @hole: a page that is not mapped, or %MIXED_ALL
 * @below: how many of its pages lie in the first of two page tables, or 0
 */
static const struct mixed_kind {
	const char *desc;
	unsigned int order;
	unsigned int hole;
	unsigned int below;
} mixed_kinds[] = {
	{ "order 0", 0, MIXED_ALL, 0 },
	{ "order 1", 1, MIXED_ALL, 0 },
	{ "order 2", 2, MIXED_ALL, 0 },
	{ "order 2, all but the first page", 2, 0, 0 },
	{ "order 4", 4, MIXED_ALL, 0 },
	{ "order 4, all but one page", 4, 6, 0 },
	{ "order 6", MIXED_ORDER, MIXED_ALL, 0 },
	{ "order 6, in two page tables", MIXED_ORDER, MIXED_ALL, 23 },
};

KUNIT_ARRAY_PARAM_DESC(mixed_kind, mixed_kinds, desc);

/**
 * struct mixed_fixture - a folio in a mapping of a file
 * @u: the address space
 * @kind: how it is mapped
 * @folio: the folio. It belongs to the test and not to the file
 * @nr: its pages
 * @mapped: how many of them are mapped
 * @addr: the address of its first page
 * @parent: the entries before the fork
 * @child: the entries that the child began with
 * @mapcount: how often each page was mapped while the child existed
 * @mapcounts: how often the folio was mapped then
 * @refs: references of the folio while the child existed
 * @rss: the child's RSS of file pages
 */
struct mixed_fixture {
	struct user_mm *u;
	const struct mixed_kind *kind;
	struct folio *folio;
	unsigned int nr;
	unsigned int mapped;
	unsigned long addr;
	pte_t parent[MIXED_PAGES];
	pte_t child[MIXED_PAGES];
	int mapcount[MIXED_PAGES];
	int mapcounts;
	int refs;
	unsigned long rss;
};

static bool mixed_is_mapped(const struct mixed_fixture *f, unsigned int page)
{
	return page < f->nr && page != f->kind->hole;
}

/* Lock the table of a page. Returns the entry, or NULL if there is no table. */
static pte_t *mixed_lock(struct mm_struct *mm, unsigned long addr,
			 spinlock_t **ptl)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	if (pgd_none(*pgd))
		return NULL;
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(*p4d))
		return NULL;
	pud = pud_offset(p4d, addr);
	if (pud_none(*pud))
		return NULL;
	pmd = pmd_offset(pud, addr);
	if (pmd_none(*pmd))
		return NULL;
	return pte_offset_map_lock(mm, pmd, addr, ptl);
}

static pte_t mixed_get(struct mm_struct *mm, unsigned long addr)
{
	pte_t *ptep, pte = pgtable_kunit_none();
	spinlock_t *ptl;	/* of the table */

	ptep = mixed_lock(mm, addr, &ptl);
	if (ptep) {
		pte = ptep_get(ptep);
		pte_unmap_unlock(ptep, ptl);
	}
	return pte;
}

static void mixed_set(struct mm_struct *mm, unsigned long addr, pte_t pte)
{
	spinlock_t *ptl;	/* of the table */
	pte_t *ptep;

	ptep = mixed_lock(mm, addr, &ptl);
	if (!ptep)
		return;
	ptep_get_and_clear(mm, addr, ptep);
	set_pte_at(mm, addr, ptep, pte);
	pte_unmap_unlock(ptep, ptl);
}

/*
 * The entry that the child should have for a page: the entry of the parent, as
 * if it had never been used.
 */
static pte_t mixed_want(const struct mixed_fixture *f, unsigned int page)
{
	return pte_mkold(pte_mkclean(f->parent[page]));
}

/*
 * Known issue 2: UML advances by the number of entries that are left. Each call
 * maps consecutive pages with entries in one table.
 */
static bool mixed_is_issue_2(const struct mixed_fixture *f)
{
	unsigned int i = 0, left;

	if (!IS_ENABLED(CONFIG_UML))
		return false;
	while (i < f->nr) {
		unsigned long pfn = folio_pfn(f->folio) + i;
		unsigned int end = i;

		if (!mixed_is_mapped(f, i)) {
			i++;
			continue;
		}
		do
			end++;
		while (mixed_is_mapped(f, end) && end != f->kind->below);
		for (left = end - i; i < end; i++) {
			if (pte_pfn(f->child[i]) != pfn)
				return false;
			pfn += --left;
		}
	}
	return true;
}

/* Map the folio, with entries that are young and dirty. */
static void mixed_map(struct kunit *test, struct mixed_fixture *f)
{
	struct mm_struct *mm = f->u->mm;
	struct vm_area_struct *vma;
	unsigned int i;
	int err = 0;

	mmap_write_lock(mm);
	vma = vma_lookup(mm, f->addr);
	for (i = 0; vma && i < f->nr; i++) {
		unsigned long addr = f->addr + i * PAGE_SIZE;

		if (!mixed_is_mapped(f, i))
			continue;
		err = vm_insert_page(vma, addr, folio_page(f->folio, i));
		if (err)
			break;
		mixed_set(mm, addr,
			  pte_mkyoung(pte_mkdirty(mixed_get(mm, addr))));
		f->mapped++;
	}
	for (i = 0; i < f->nr; i++)
		f->parent[i] = mixed_get(mm, f->addr + i * PAGE_SIZE);
	mmap_write_unlock(mm);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_GT(test, f->mapped, 0);
	KUNIT_ASSERT_EQ(test, folio_mapcount(f->folio), f->mapped);
}

static struct mixed_fixture *mixed_fixture(struct kunit *test)
{
	struct mixed_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct file *file;
	unsigned long addr;

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->u = user_mm_alloc(test);
	f->kind = test->param_value;
	f->folio = pgtable_kunit_folio_alloc(test, f->kind->order);
	f->nr = folio_nr_pages(f->folio);

	/* Nothing reads the file. */
	file = pgtable_kunit_shmem_file("fork_mixed", PAGE_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	addr = vm_mmap(file, 0, 3 * PMD_SIZE, PROT_READ | PROT_WRITE,
		       MAP_SHARED, 0);
	fput(file);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	f->addr = ALIGN(addr, PMD_SIZE) + PMD_SIZE - f->kind->below * PAGE_SIZE;
	mixed_map(test, f);
	return f;
}

/*
 * In the child: record its entries and counts, and then repair wrong entries so
 * that the child can exit.
 */
static int mixed_child(struct user_mm *u)
{
	struct mixed_fixture *f = u->test->priv;
	unsigned int i;

	f->rss = get_mm_counter_sum(u->mm, MM_FILEPAGES);
	f->refs = folio_ref_count(f->folio);
	f->mapcounts = folio_mapcount(f->folio);
	for (i = 0; i < f->nr; i++) {
		unsigned long addr = f->addr + i * PAGE_SIZE;

		f->mapcount[i] = atomic_read(&folio_page(f->folio, i)->_mapcount) + 1;
		f->child[i] = mixed_get(u->mm, addr);
		if (pte_present(f->child[i]) && mixed_is_mapped(f, i) &&
		    pte_pfn(f->child[i]) != pte_pfn(f->parent[i]))
			mixed_set(u->mm, addr, mixed_want(f, i));
	}
	return 0;
}

/* Compare the entry of one page. Returns true if it maps a wrong page. */
static bool mixed_check(struct kunit *test, const struct mixed_fixture *f,
			unsigned int page, bool skips)
{
	pte_t pte = f->child[page];

	if (!mixed_is_mapped(f, page)) {
		KUNIT_EXPECT_TRUE_MSG(test, pte_none(pte),
				      "page %u, which is not mapped: %016llx",
				      page, (u64)pte_val(pte));
		return false;
	}
	KUNIT_EXPECT_TRUE_MSG(test, pte_present(pte), "page %u is not mapped",
			      page);
	KUNIT_EXPECT_TRUE_MSG(test, pte_write(pte) && !pte_young(pte) &&
			      !pte_dirty(pte),
			      "page %u: %016llx is not writable, old and clean",
			      page, (u64)pte_val(pte));
	if (!skips)
		KUNIT_EXPECT_EQ_MSG(test, pte_pfn(pte), folio_pfn(f->folio) + page,
				    "page %u", page);
	return pte_pfn(pte) != folio_pfn(f->folio) + page;
}

/*
 * The child has the same pages of a driver's folio as the parent. In a shared
 * mapping the entries are old and clean. Each page gets a mapping and a
 * reference. The folio is mapped completely, in part, or by two page tables.
 * Known issue 2: on UML the child maps later pages than it should.
 */
static void fork_inserted_pages(struct kunit *test)
{
	struct mixed_fixture *f = mixed_fixture(test);
	bool skips, mapped_more = PGTABLE_KUNIT_PAGE_MAPCOUNT;
	unsigned int i, wrong = 0;

	KUNIT_ASSERT_EQ(test, 0, user_mm_fork(f->u, mixed_child, NULL));

	KUNIT_EXPECT_EQ(test, f->rss, f->mapped);
	KUNIT_EXPECT_EQ(test, f->refs, 1 + 2 * f->mapped);
	KUNIT_EXPECT_EQ(test, f->mapcounts, 2 * f->mapped);
	skips = mixed_is_issue_2(f);
	for (i = 0; i < f->nr; i++) {
		unsigned long addr = f->addr + i * PAGE_SIZE;

		wrong += mixed_check(test, f, i, skips);
		if (mapped_more)
			KUNIT_EXPECT_EQ_MSG(test, f->mapcount[i],
					    mixed_is_mapped(f, i) ? 2 : 0,
					    "page %u", i);
		KUNIT_EXPECT_TRUE_MSG(test, pte_same(mixed_get(f->u->mm, addr),
						     f->parent[i]),
				      "entry %u of the parent has changed", i);
	}
	/* The child has exited. */
	KUNIT_EXPECT_EQ(test, folio_mapcount(f->folio), f->mapped);
	KUNIT_EXPECT_EQ(test, folio_ref_count(f->folio), 1 + f->mapped);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(f->addr, f->nr * PAGE_SIZE));
	folio_clear_referenced(f->folio);
	folio_clear_dirty(f->folio);

	if (skips && wrong)
		pgtable_kunit_known_issue(test, 2,
					  "the child maps %u of %u pages wrong",
					  wrong, f->mapped);
	else if (IS_ENABLED(CONFIG_UML) && f->kind->order > 1)
		pgtable_kunit_stale_issue(test, 2);
	PGTABLE_KUNIT_DID(test, f->mapped, "pages copied");
}

static struct kunit_case fork_mixed_cases[] = {
	KUNIT_CASE_PARAM(fork_inserted_pages, mixed_kind_gen_params),
	{}
};

static struct kunit_suite fork_mixed_suite = {
	.name = "fork_mixed",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = fork_mixed_cases,
};

kunit_test_suite(fork_mixed_suite);

MODULE_DESCRIPTION("KUnit tests for fork with pages of a driver");
MODULE_LICENSE("GPL");
