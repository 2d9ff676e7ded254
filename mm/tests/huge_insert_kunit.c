// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages that a driver maps. In a page fault a driver may map its own huge
 * page with vmf_insert_folio_pmd(), or memory without a struct page with
 * vmf_insert_pfn_pmd(). A wrong entry shows a process other memory. A wrong
 * number of mappings frees memory that is in use. The suite calls the functions
 * for a folio of the test, and looks at the entry, at the folio, and at what
 * user space reads.
 *
 * The test machines are too small for a folio that a PUD maps. So the case for
 * this size uses struct pages without memory, and only calls the functions that
 * count mappings. Not covered: page faults on memory of DAX.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	huge_insert
 */

#include <asm/pgalloc.h>
#include <kunit/test.h>
#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../internal.h"
#include "user_mm.h"

#ifdef PGTABLE_KUNIT_HAS_INSERT_FOLIO
static const struct insert_kind {
	const char *desc;
	bool pfn;
	bool write;
} insert_kinds[] = {
	{ "a folio, to read", false, false },
	{ "a folio, to write", false, true },
	{ "page frames, to read", true, false },
	{ "page frames, to write", true, true },
};

KUNIT_ARRAY_PARAM_DESC(insert_kind, insert_kinds, desc);

/* The entry for an address, with all tables above it, or NULL. */
static pmd_t *insert_table(struct mm_struct *mm, unsigned long addr)
{
	p4d_t *p4d = p4d_alloc(mm, pgd_offset(mm, addr), addr);
	pud_t *pud = p4d ? pud_alloc(mm, p4d, addr) : NULL;

	return pud ? pmd_alloc(mm, pud, addr) : NULL;
}

static vm_fault_t insert_now(struct vm_area_struct *vma, unsigned long addr,
			     pmd_t *pmd, struct folio *folio, bool pfn, bool write)
{
	struct vm_fault vmf = { .vma = vma, .address = addr, .pmd = pmd };

	return pfn ? vmf_insert_pfn_pmd(&vmf, folio_pfn(folio), write) :
		     vmf_insert_folio_pmd(&vmf, folio, write);
}

static void insert_expect_entry(struct kunit *test, pmd_t pmd,
				struct folio *folio, bool dirty)
{
	KUNIT_EXPECT_TRUE(test, pmd_present(pmd) && pmd_leaf(pmd));
	KUNIT_EXPECT_EQ(test, pmd_pfn(pmd), folio_pfn(folio));
	KUNIT_EXPECT_EQ(test, !!pmd_dirty(pmd), dirty);
	KUNIT_EXPECT_TRUE(test, !dirty || (pmd_write(pmd) && pmd_young(pmd)));
}

/*
 * The fault is at any address in the huge page. The entry maps the whole huge
 * page, and is dirty and writable if the fault is a write. A folio gets one
 * mapping and one reference, and page frames get neither. A later write makes
 * the same entry dirty. An address outside of the VMA is refused. User space
 * reads each page, and after munmap() the folio is not mapped.
 */
static void vmf_insert_pmd_maps(struct kunit *test)
{
	const struct insert_kind *kind = test->param_value;
	unsigned int i, value, wrong = 0, owned = !kind->pfn;
	struct user_mm *u = test->priv;
	struct vm_area_struct *vma;
	vm_fault_t ret, again, outside;
	unsigned long room, addr;
	struct folio *folio;
	pmd_t *pmd, first, last;

	if (HPAGE_PMD_SIZE > SZ_64M)
		kunit_skip(test, "a huge page is too large for this machine");
	folio = pgtable_kunit_folio_alloc(test, HPAGE_PMD_ORDER);
	for (i = 0; i < HPAGE_PMD_NR; i++)
		*(unsigned int *)page_address(folio_page(folio, i)) = i + 1;
	room = vm_mmap(NULL, 0, 3 * HPAGE_PMD_SIZE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(room));
	addr = ALIGN(room, HPAGE_PMD_SIZE);

	mmap_write_lock(u->mm);
	vma = vma_lookup(u->mm, addr);
	pmd = insert_table(u->mm, addr);
	if (vma && pmd) {
		if (kind->pfn)
			vm_flags_set(vma, VM_PFNMAP);
		outside = insert_now(vma, vma->vm_end + HPAGE_PMD_SIZE, pmd,
				     folio, kind->pfn, kind->write);
		ret = insert_now(vma, addr + 5 * PAGE_SIZE, pmd, folio, kind->pfn,
				 kind->write);
		first = pmdp_get(pmd);
		again = insert_now(vma, addr, pmd, folio, kind->pfn, true);
		last = pmdp_get(pmd);
	}
	mmap_write_unlock(u->mm);
	KUNIT_ASSERT_TRUE(test, vma && pmd);

	KUNIT_EXPECT_EQ(test, outside, VM_FAULT_SIGBUS);
	KUNIT_EXPECT_EQ(test, ret, VM_FAULT_NOPAGE);
	KUNIT_EXPECT_EQ(test, again, VM_FAULT_NOPAGE);
	insert_expect_entry(test, first, folio, kind->write);
	insert_expect_entry(test, last, folio, true);
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), owned);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1 + owned);
	for (i = 0; i < HPAGE_PMD_NR; i++)
		wrong += get_user(value, (unsigned int __user *)
				  (addr + i * PAGE_SIZE)) || value != i + 1;
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "pages with other contents");
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(room, 3 * HPAGE_PMD_SIZE));
	KUNIT_EXPECT_EQ(test, folio_mapcount(folio), 0);
	KUNIT_EXPECT_EQ(test, folio_ref_count(folio), 1);
	folio_clear_dirty(folio);
	folio_clear_referenced(folio);
	PGTABLE_KUNIT_DID(test, i, "pages read");
}

#ifdef CONFIG_HAVE_ARCH_TRANSPARENT_HUGEPAGE_PUD
/* Each CPU keeps changes of up to some hundreds of pages to itself. */
#define INSERT_NOISE	(HPAGE_PUD_NR / 8)

/* Expect the statistic to be @want pages higher than @before. */
static void insert_expect_stat(struct kunit *test, enum node_stat_item item,
			       long before, long want)
{
	long more = (long)node_page_state(NODE_DATA(0), item) - before;

	KUNIT_EXPECT_LE_MSG(test, abs(more - want), INSERT_NOISE,
			    "statistic %d: %ld pages more, expected %ld", item,
			    more, want);
}

/*
 * A PUD maps a folio. Each mapping counts once, as a mapping of the whole
 * folio. All pages count as mapped until the last mapping is removed, and no
 * page counts as mapped by a PMD.
 */
static void folio_file_rmap_pud_counts(struct kunit *test)
{
	size_t size = HPAGE_PUD_NR * sizeof(struct page);
	struct user_mm *u = test->priv;
	struct vm_area_struct *vma;
	unsigned long addr;
	struct folio *folio;
	struct page *page;
	void *room;
	long mapped, huge;
	int i;

	room = vzalloc(2 * size);
	if (!room)
		kunit_skip(test, "no memory for the structs of a gigantic folio");
	page = PTR_ALIGN((struct page *)room, roundup_pow_of_two(size));
	for (i = 0; i < HPAGE_PUD_NR; i++)
		atomic_set(&page[i]._mapcount, -1);
	prep_compound_page(page, PUD_ORDER);
	folio = page_folio(page);
	addr = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, 0);
	KUNIT_EXPECT_FALSE(test, IS_ERR_VALUE(addr));
	mapped = node_page_state(NODE_DATA(0), NR_FILE_MAPPED);
	huge = node_page_state(NODE_DATA(0), NR_FILE_PMDMAPPED);

	mmap_write_lock(u->mm);
	vma = vma_lookup(u->mm, addr);
	for (i = 1; vma && i <= 2; i++) {
		folio_add_file_rmap_pud(folio, page, vma);
		KUNIT_EXPECT_EQ(test, folio_mapcount(folio), i);
		KUNIT_EXPECT_EQ(test, folio_entire_mapcount(folio), i);
		insert_expect_stat(test, NR_FILE_MAPPED, mapped, HPAGE_PUD_NR);
		insert_expect_stat(test, NR_FILE_PMDMAPPED, huge, 0);
	}
	for (i = 1; vma && i >= 0; i--) {
		folio_remove_rmap_pud(folio, page, vma);
		KUNIT_EXPECT_EQ(test, folio_mapcount(folio), i);
		KUNIT_EXPECT_EQ(test, folio_entire_mapcount(folio), i);
		insert_expect_stat(test, NR_FILE_MAPPED, mapped,
				   i ? HPAGE_PUD_NR : 0);
		insert_expect_stat(test, NR_FILE_PMDMAPPED, huge, 0);
	}
	mmap_write_unlock(u->mm);
	KUNIT_EXPECT_NOT_NULL(test, vma);
	vfree(room);
}
#endif
#else
static void vmf_insert_pmd_maps(struct kunit *test)
{
	kunit_skip(test, "no vmf_insert_folio_pmd()");
}
#endif

static struct kunit_case huge_insert_cases[] = {
#ifdef PGTABLE_KUNIT_HAS_INSERT_FOLIO
	KUNIT_CASE_PARAM(vmf_insert_pmd_maps, insert_kind_gen_params),
#ifdef CONFIG_HAVE_ARCH_TRANSPARENT_HUGEPAGE_PUD
	KUNIT_CASE(folio_file_rmap_pud_counts),
#endif
#else
	KUNIT_CASE(vmf_insert_pmd_maps),
#endif
	{}
};

static struct kunit_suite huge_insert_suite = {
	.name = "huge_insert",
	.suite_init = pgtable_kunit_suite_init,
	.init = user_mm_init,
	.test_cases = huge_insert_cases,
};

kunit_test_suite(huge_insert_suite);

MODULE_DESCRIPTION("KUnit tests for huge pages that a driver maps");
MODULE_LICENSE("GPL");
