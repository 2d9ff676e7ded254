// SPDX-License-Identifier: GPL-2.0
/*
 * The pools of hugetlb folios.
 */

#include <linux/hugetlb.h>
#include <linux/mm.h>

#include "audit.h"

/* By size: the number of all folios, and the number of free folios. */
static struct {
	long total;
	long free;
} hugetlb_found[HUGE_MAX_HSTATE];

/**
 * audit_hugetlb_clear() - clear the results of an earlier round
 */
void audit_hugetlb_clear(void)
{
	memset(hugetlb_found, 0, sizeof(hugetlb_found));
}

/**
 * audit_hugetlb_folio() - add a folio to the sums of its pool
 * @a: the audit
 * @folio: a hugetlb folio
 */
void audit_hugetlb_folio(struct audit *a, struct folio *folio)
{
	struct hstate *h = size_to_hstate(folio_size(folio));

	if (!h)
		return;
	hugetlb_found[hstate_index(h)].total++;
	hugetlb_found[hstate_index(h)].free += folio_test_hugetlb_freed(folio);
}

/**
 * audit_hugetlb_state() - compare the pools
 * @a: the audit, which has seen all folios
 */
void audit_hugetlb_state(struct audit *a)
{
	struct hstate *h;
	int nid;

	for_each_hstate(h) {
		long total = 0, free = 0, surplus = 0;
		unsigned long size = 1UL << h->order;

		for_each_online_node(nid) {
			total += h->nr_huge_pages_node[nid];
			free += h->free_huge_pages_node[nid];
			surplus += h->surplus_huge_pages_node[nid];
		}
		audit_equal(a, MM_AUDIT_hugetlb_total,
			    "hugetlb folios of this many pages", 0, size,
			    h->nr_huge_pages, hugetlb_found[hstate_index(h)].total);
		audit_equal(a, MM_AUDIT_hugetlb_free,
			    "free hugetlb folios of this many pages", 0, size,
			    h->free_huge_pages, hugetlb_found[hstate_index(h)].free);
		audit_equal(a, MM_AUDIT_hugetlb_total,
			    "hugetlb folios of all nodes", 0, size,
			    h->nr_huge_pages, total);
		audit_equal(a, MM_AUDIT_hugetlb_free,
			    "free hugetlb folios of all nodes", 0, size,
			    h->free_huge_pages, free);
		audit_equal(a, MM_AUDIT_hugetlb_total,
			    "surplus hugetlb folios of all nodes", 0, size,
			    h->surplus_huge_pages, surplus);
		audit_equal(a, MM_AUDIT_hugetlb_free,
			    "hugetlb folios that are promised, but not there",
			    0, size, h->resv_huge_pages > h->free_huge_pages, 0);
	}
}
