// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics: sums over all folios, compared with the counters of the kernel.
 */

#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pagemap.h>
#include <linux/vmstat.h>

#include "audit.h"

static const struct {
	const char *name;
	enum node_stat_item item;
} stats[AUDIT_NR_STATS] = {
	[AUDIT_NR_ANON_MAPPED] = { "NR_ANON_MAPPED", NR_ANON_MAPPED },
	[AUDIT_NR_FILE_MAPPED] = { "NR_FILE_MAPPED", NR_FILE_MAPPED },
	[AUDIT_NR_ANON_THPS] = { "NR_ANON_THPS", NR_ANON_THPS },
	[AUDIT_NR_SHMEM_PMDMAPPED] = { "NR_SHMEM_PMDMAPPED", NR_SHMEM_PMDMAPPED },
	[AUDIT_NR_FILE_PMDMAPPED] = { "NR_FILE_PMDMAPPED", NR_FILE_PMDMAPPED },
	[AUDIT_NR_FILE_PAGES] = { "NR_FILE_PAGES", NR_FILE_PAGES },
	[AUDIT_NR_SHMEM] = { "NR_SHMEM", NR_SHMEM },
	[AUDIT_NR_SHMEM_THPS] = { "NR_SHMEM_THPS", NR_SHMEM_THPS },
	[AUDIT_NR_FILE_THPS] = { "NR_FILE_THPS", NR_FILE_THPS },
};

static void stat_cached(long *stat, struct folio *folio)
{
	long nr = folio_nr_pages(folio);
	bool huge = folio_test_pmd_mappable(folio);

	stat[AUDIT_NR_FILE_PAGES] += nr;
	if (folio_test_swapcache(folio))
		return;
	if (folio_test_swapbacked(folio)) {
		stat[AUDIT_NR_SHMEM] += nr;
		stat[AUDIT_NR_SHMEM_THPS] += huge ? nr : 0;
	} else {
		stat[AUDIT_NR_FILE_THPS] += huge ? nr : 0;
	}
}

/**
 * audit_stat_folio() - add a folio to the sums
 * @a: the audit
 * @folio: the folio, not of hugetlb
 * @head: the record of its head page
 * @mapped: how many of its pages are mapped
 */
void audit_stat_folio(struct audit *a, struct folio *folio,
		      const struct audit_frame *head, unsigned long mapped)
{
	long *stat = a->stat[folio_nid(folio)];
	long nr = folio_nr_pages(folio);
	bool anon = folio_test_anon(folio);

	if (anon)
		stat[AUDIT_NR_ANON_MAPPED] += mapped;
	else
		stat[AUDIT_NR_FILE_MAPPED] += mapped;
	if (head->entire) {
		if (anon)
			stat[AUDIT_NR_ANON_THPS] += nr;
		else if (folio_test_swapbacked(folio))
			stat[AUDIT_NR_SHMEM_PMDMAPPED] += nr;
		else
			stat[AUDIT_NR_FILE_PMDMAPPED] += nr;
	}
	if (folio_test_swapcache(folio) ||
	    (folio->mapping && !anon && !((unsigned long)folio->mapping & 3)))
		stat_cached(stat, folio);
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	if (anon && folio_test_large(folio)) {
		a->nr_anon[folio_order(folio)]++;
		if (folio_order(folio) > 1)
			a->partially_mapped[folio_order(folio)] +=
				folio_test_partially_mapped(folio);
	}
#endif
}

static long stat_of_node(pg_data_t *pgdat, enum node_stat_item item)
{
	long sum = atomic_long_read(&pgdat->vm_stat[item]);
#ifdef CONFIG_SMP
	int cpu;

	for_each_online_cpu(cpu)
		sum += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
#endif
	return sum;
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
static long stat_mthp(int order, enum mthp_stat_item item)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(mthp_stats, cpu).stats[order][item];
	return sum;
}

static void stat_sizes(struct audit *a)
{
	int order;

	for (order = 1; order <= min(PMD_ORDER, MAX_PAGE_ORDER); order++) {
		audit_equal(a, MM_AUDIT_mthp_nr_anon,
			    "large anonymous folios of this many pages",
			    0, BIT(order), stat_mthp(order, MTHP_STAT_NR_ANON),
			    a->nr_anon[order]);
		audit_equal(a, MM_AUDIT_mthp_partially_mapped,
			    "partially mapped folios of this many pages",
			    0, BIT(order),
			    stat_mthp(order, MTHP_STAT_NR_ANON_PARTIALLY_MAPPED),
			    a->partially_mapped[order]);
	}
}
#else
static void stat_sizes(struct audit *a)
{
}
#endif

/**
 * audit_stats() - compare the sums
 * @a: the audit, which has seen all folios
 */
void audit_stats(struct audit *a)
{
	int nid, i;

	for_each_online_node(nid)
		for (i = 0; i < AUDIT_NR_STATS; i++)
			audit_equal(a, MM_AUDIT_node_stat, stats[i].name, 0, 0,
				    stat_of_node(NODE_DATA(nid), stats[i].item),
				    a->stat[nid][i]);
	stat_sizes(a);
#ifdef CONFIG_MEMCG
	if (!mem_cgroup_disabled())
		audit_equal(a, MM_AUDIT_memcg_charge,
			    "mapped anonymous pages of all memory cgroups", 0, 0,
			    memcg_page_state(root_mem_cgroup, NR_ANON_MAPPED),
			    a->charged);
#endif
}
