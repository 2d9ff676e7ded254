// SPDX-License-Identifier: GPL-2.0
/*
 * Folios: compare each folio with the entries that the walk has found.
 */

#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rmap.h>

#include "audit.h"

static bool folio_in_cache(struct folio *folio)
{
	return folio->mapping && !folio_test_anon(folio) &&
	       !((unsigned long)folio->mapping & 3);
}

/* The mapcounts of the pages. Return: how many pages are mapped. */
static unsigned long folio_pages(struct audit *a, struct folio *folio,
				 const struct audit_frame *head)
{
	unsigned long i, nr = folio_nr_pages(folio), pfn = folio_pfn(folio);
	unsigned long mapped = 0, by_pte = 0;
	bool anon = folio_test_anon(folio);

	for (i = 0; i < nr; i++) {
		const struct audit_frame *frame = audit_frame_read(a, pfn + i);
		struct page *page = folio_page(folio, i);

		by_pte += frame->ptes != 0;
		mapped += frame->ptes || head->entire;
		if (AUDIT_PAGE_MAPCOUNT || !folio_test_large(folio))
			audit_equal(a, MM_AUDIT_page_mapcount,
				    "mappings of the page", 0, pfn + i,
				    atomic_read(&page->_mapcount) + 1,
				    frame->ptes);
		if (anon && PageAnonExclusive(page))
			audit_equal(a, MM_AUDIT_anon_exclusive,
				    "more than one mapping of an exclusive page",
				    0, pfn + i,
				    frame->ptes + head->entire > 1, 0);
	}
	if (folio_test_large(folio) && AUDIT_PAGE_MAPCOUNT)
		audit_equal(a, MM_AUDIT_nr_pages_mapped, "mapped pages of a folio",
			    0, pfn, atomic_read(&folio->_nr_pages_mapped),
			    by_pte + (head->entire ? ENTIRELY_MAPPED : 0));
	return mapped;
}

/* The IDs of two address spaces that map a large folio. */
static void folio_owners(struct audit *a, struct folio *folio,
			 const struct audit_frame *head)
{
	unsigned long pfn = folio_pfn(folio);
	long slots[2], i;

	for (i = 0; i < 2; i++) {
		slots[i] = audit_slot_count(folio, i);
		/*
		 * A slot may lack mappings that were made while both slots were
		 * in use. It never counts more mappings than there are.
		 */
		a->out->compared[MM_AUDIT_mm_id_slot]++;
		if (slots[i] > (long)head->slot[i] || slots[i] < 0)
			audit_report(a, MM_AUDIT_mm_id_slot,
				     "mappings of an address space", 0, pfn,
				     slots[i], head->slot[i]);
		if (!audit_folio_mm_id(folio, i))
			audit_equal(a, MM_AUDIT_mm_id_slot,
				    "mappings in an empty slot", 0, pfn,
				    slots[i], 0);
	}
	if (head->owners > 1)
		audit_equal(a, MM_AUDIT_mm_id_shared,
			    "folio of several address spaces is shared", 0, pfn,
			    audit_shared_bit(folio), 1);
	else if (head->mappings && (slots[0] == (long)head->mappings ||
				    slots[1] == (long)head->mappings))
		audit_equal(a, MM_AUDIT_mm_id_shared,
			    "folio of one address space is shared", 0, pfn,
			    audit_shared_bit(folio), 0);
}

/* Each mapping, each page in a cache, and private data have a reference. */
static void folio_refs(struct audit *a, struct folio *folio,
		       const struct audit_frame *head)
{
	long refs = folio_ref_count(folio), want = head->mappings;
	unsigned long pfn = folio_pfn(folio);
	bool cached = folio_in_cache(folio) || folio_test_swapcache(folio);

	if (cached)
		want += folio_test_hugetlb(folio) ? 1 : folio_nr_pages(folio);
	want += folio_test_private(folio);
	a->out->compared[MM_AUDIT_folio_refs]++;
	if (refs < want)
		audit_report(a, MM_AUDIT_folio_refs, "references are too few", 0,
			     pfn, refs, want);
	if (!a->out->quiet || !folio_test_lru(folio))
		return;
	/* If a folio has neither mappings nor a cache, no task can find it. */
	audit_equal(a, MM_AUDIT_folio_leak,
		    want ? "references" : "references of a lost folio", 0, pfn,
		    refs, want);
}

static void folio_cache(struct audit *a, struct folio *folio)
{
	unsigned long i, nr = folio_nr_pages(folio);

	if (!folio_in_cache(folio))
		return;
	for (i = 0; i < nr; i += max(nr - 1, 1UL))
		audit_equal(a, MM_AUDIT_cache_index,
			    "times the file has the page at its index", 0,
			    folio_pfn(folio) + i,
			    xa_load(&folio->mapping->i_pages,
				    folio->index + i) == folio, 1);
}

static void folio_large(struct audit *a, struct folio *folio,
			const struct audit_frame *head)
{
	unsigned long pfn = folio_pfn(folio);

	audit_equal(a, MM_AUDIT_large_mapcount, "mappings of the folio", 0, pfn,
		    atomic_read(&folio->_large_mapcount) + 1, head->mappings);
	if (folio_order(folio) > 1 || folio_test_hugetlb(folio))
		audit_equal(a, MM_AUDIT_entire_mapcount,
			    "mappings of the whole folio", 0, pfn,
			    atomic_read(&folio->_entire_mapcount) + 1,
			    head->entire);
}

static void folio_other(struct audit *a, struct folio *folio,
			const struct audit_frame *head, unsigned long mapped)
{
	unsigned long pfn = folio_pfn(folio);

	if (folio_test_mlocked(folio) && head->mappings)
		audit_equal(a, MM_AUDIT_mlocked,
			    "locked folios that no locked VMA maps", 0, pfn,
			    !head->locked, 0);
#ifdef CONFIG_MEMCG
	if (mapped && folio_test_anon(folio) && !mem_cgroup_disabled()) {
		audit_equal(a, MM_AUDIT_memcg_charge,
			    "anonymous folios without a memory cgroup", 0, pfn,
			    !folio->memcg_data, 0);
		a->charged += folio->memcg_data ? mapped : 0;
	}
#endif
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	if (folio_order(folio) > 1 && folio_test_large_rmappable(folio) &&
	    folio_test_partially_mapped(folio))
		audit_equal(a, MM_AUDIT_deferred_split,
			    "partially mapped folios that are not queued", 0,
			    pfn, list_empty(&folio->_deferred_list), 0);
#endif
	audit_stat_folio(a, folio, head, mapped);
}

static void folio_check(struct audit *a, struct folio *folio)
{
	const struct audit_frame *head = audit_frame_read(a, folio_pfn(folio));
	unsigned long mapped;

	a->out->folios++;
	if (folio_test_hugetlb(folio)) {
		audit_hugetlb_folio(a, folio);
		folio_large(a, folio, head);
		if (folio_test_anon(folio) && PageAnonExclusive(&folio->page))
			audit_equal(a, MM_AUDIT_anon_exclusive,
				    "more than one mapping of an exclusive page",
				    0, folio_pfn(folio), head->entire > 1, 0);
		if (folio_ref_count(folio))
			folio_refs(a, folio, head);
		return;
	}
	mapped = folio_pages(a, folio, head);
	if (folio_test_large(folio)) {
		folio_large(a, folio, head);
		if (AUDIT_HAS_MM_ID)
			folio_owners(a, folio, head);
	}
	folio_refs(a, folio, head);
	folio_cache(a, folio);
	folio_other(a, folio, head, mapped);
}

/*
 * Pages that only the kernel uses: they are not mapped and not counted. The
 * pages of the vDSO are reserved too, but they are mapped.
 */
static bool folio_is_kernel(struct audit *a, struct folio *folio)
{
	if (folio_test_hugetlb(folio))
		return false;
	if (page_has_type(&folio->page) || is_zero_folio(folio))
		return true;
	return folio_test_reserved(folio) &&
	       !audit_frame_read(a, folio_pfn(folio))->mappings &&
	       atomic_read(&folio->_mapcount) == -1;
}

/*
 * The share count of a table of hugetlb pages is the number of address spaces
 * that use the table.
 */
static void folio_table(struct audit *a, struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	const struct audit_frame *frame = audit_frame_read(a, pfn);

	if (AUDIT_TABLE_SHARE && PageTable(page) && frame->ptes)
		audit_equal(a, MM_AUDIT_table_share,
			    "address spaces that use a table", 0, pfn,
			    audit_table_share(page_to_virt(page)) + 1,
			    frame->ptes);
}

/**
 * audit_folios() - check all folios
 * @a: the audit, which has walked all page tables
 */
void audit_folios(struct audit *a)
{
	unsigned long pfn = a->start_pfn;

	while (pfn < a->end_pfn) {
		struct page *page = pfn_to_online_page(pfn);
		struct folio *folio;

		if (!page) {
			pfn = ALIGN(pfn + 1, pageblock_nr_pages);
			continue;
		}
		if (PageBuddy(page)) {
			pfn += 1UL << buddy_order(page);
			continue;
		}
		if (PageTail(page)) {
			pfn++;
			continue;
		}
		folio = page_folio(page);
		if (folio_is_kernel(a, folio)) {
			folio_table(a, page);
			pfn += page_has_type(page) ? 1 : folio_nr_pages(folio);
			continue;
		}
		if (folio_ref_count(folio) || folio_test_hugetlb(folio) ||
		    audit_frame_read(a, pfn)->mappings)
			folio_check(a, folio);
		/* A task that was stopped while it freed a folio: no pages. */
		pfn += max(folio_nr_pages(folio), 1UL);
	}
}
