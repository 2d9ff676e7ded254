/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the files of the auditor. All of this code runs while the
 * machine is stopped, so it takes no locks, does not sleep, and allocates no
 * memory.
 */
#ifndef _MM_AUDIT_AUDIT_H
#define _MM_AUDIT_AUDIT_H

#include <linux/mm.h>
#include <linux/mmzone.h>

#include "compat.h"
#include "mm_audit.h"

#define AUDIT_MMS		2048
#define AUDIT_SWAPS		8

/**
 * struct audit_frame - the entries of page tables that refer to a page
 * @ptes: entries that map just this page
 * @entire: entries that map all of its folio (head page)
 * @mappings: entries that map the folio or a part of it (head page)
 * @owners: address spaces that map the folio (head page)
 * @last: number of the address space that was the last to map it (head page)
 * @slot: entries of the address spaces that have their ID in the folio (head
 *   page)
 * @locked: entries in locked VMAs (head page)
 *
 * For a page that is a page table, @ptes counts the entries that point to it.
 */
struct audit_frame {
	u32 ptes;
	u32 entire;
	u32 mappings;
	u32 owners;
	u32 last;
	u32 slot[2];
	u32 locked;
};

/**
 * struct audit_task - an address space, and a task that uses it
 * @mm: the address space
 * @task: the task
 */
struct audit_task {
	struct mm_struct *mm;
	struct task_struct *task;
};

/**
 * struct audit_sum - sums over the entries of one address space
 * @rss: pages and swap entries, by kind
 * @hugetlb: pages of hugetlb folios
 * @tables: bytes of page tables
 * @shared_tables: number of shared tables
 */
struct audit_sum {
	long rss[NR_MM_COUNTERS];
	long hugetlb;
	long tables;
	unsigned long shared_tables;
};

/* The statistics of nodes that are compared. */
enum audit_stat {
	AUDIT_NR_ANON_MAPPED,
	AUDIT_NR_FILE_MAPPED,
	AUDIT_NR_ANON_THPS,
	AUDIT_NR_SHMEM_PMDMAPPED,
	AUDIT_NR_FILE_PMDMAPPED,
	AUDIT_NR_FILE_PAGES,
	AUDIT_NR_SHMEM,
	AUDIT_NR_SHMEM_THPS,
	AUDIT_NR_FILE_THPS,
	AUDIT_NR_STATS
};

/**
 * struct audit_swap - the references of page tables and shmem to a swap device
 * @si: the device
 * @max: number of its slots
 * @room: number of slots that fit into the arrays
 * @ptes: for each slot, the entries that refer to it
 * @shmem: for each slot, whether a file of shmem has it
 * @exclusive: for each slot, whether an exclusive entry refers to it
 */
struct audit_swap {
	struct swap_info_struct *si;
	unsigned long max;
	unsigned long room;
	u16 *ptes;
	u8 *shmem;
	u8 *exclusive;
};

/**
 * struct audit - an audit that is running
 * @out: its results
 * @tasks: the address spaces
 * @nr_tasks: number of address spaces
 * @overflow: there are more address spaces than fit
 * @nr: number of the current address space, from 1
 * @mm: the current address space
 * @task: a task that uses it
 * @vma: its first VMA that ends after the current address
 * @vmi: the iterator of the VMAs
 * @sum: the sums of the current address space
 * @stat: for each node, sums over all folios
 * @nr_anon: by order, number of large anonymous folios
 * @partially_mapped: by order, number of these folios that are partially mapped
 * @charged: mapped pages of anonymous folios that are charged to a memory
 *	cgroup
 * @swap: the swap devices
 * @start_pfn: the first page frame
 * @end_pfn: the page frame after the last
 */
struct audit {
	struct mm_audit *out;
	struct audit_task *tasks;
	unsigned int nr_tasks;
	bool overflow;
	unsigned int nr;
	struct mm_struct *mm;
	struct task_struct *task;
	struct vm_area_struct *vma;
	struct vma_iterator vmi;
	struct audit_sum sum;
	long stat[MAX_NUMNODES][AUDIT_NR_STATS];
	long nr_anon[MAX_PAGE_ORDER + 1];
	long partially_mapped[MAX_PAGE_ORDER + 1];
	long charged;
	struct audit_swap swap[AUDIT_SWAPS];
	unsigned long start_pfn;
	unsigned long end_pfn;
};

/* frame.c */
int audit_frames_prepare(struct audit *a);
void audit_frames_clear(void);
struct audit_frame *audit_frame(struct audit *a, unsigned long pfn);
const struct audit_frame *audit_frame_read(struct audit *a, unsigned long pfn);

/* report.c */
void audit_report(struct audit *a, enum mm_audit_rule rule, const char *what,
		  unsigned long addr, unsigned long pfn, long got, long want);

/* Compare two numbers. The process and @addr are reported if @addr is not 0. */
static inline bool audit_equal(struct audit *a, enum mm_audit_rule rule,
			       const char *what, unsigned long addr,
			       unsigned long pfn, long got, long want)
{
	a->out->compared[rule]++;
	if (likely(got == want))
		return true;
	audit_report(a, rule, what, addr, pfn, got, want);
	return false;
}

/* mm.c */
void audit_mm(struct audit *a);

/* walk.c */
void audit_walk(struct audit *a);

/* entry.c */
bool audit_vma_at(struct audit *a, unsigned long addr);
void audit_pte(struct audit *a, unsigned long addr, pte_t pte);
void audit_pmd(struct audit *a, unsigned long addr, pmd_t pmd);
void audit_hugetlb(struct audit *a, unsigned long addr, pte_t pte);
void audit_cont_ptes(struct audit *a, unsigned long addr, pte_t *ptep);
void audit_cont_pmds(struct audit *a, unsigned long addr, pmd_t *pmdp);

/* folio.c */
void audit_folios(struct audit *a);

/* stat.c */
void audit_stat_folio(struct audit *a, struct folio *folio,
		      const struct audit_frame *head, unsigned long mapped);
void audit_stats(struct audit *a);

#ifdef CONFIG_HUGETLB_PAGE
void audit_hugetlb_state(struct audit *a);
void audit_hugetlb_folio(struct audit *a, struct folio *folio);
void audit_hugetlb_clear(void);
#else
static inline void audit_hugetlb_state(struct audit *a)
{
}

static inline void audit_hugetlb_folio(struct audit *a, struct folio *folio)
{
}

static inline void audit_hugetlb_clear(void)
{
}
#endif

#ifdef CONFIG_SWAP
int audit_swap_prepare(struct audit *a);
void audit_swap_clear(struct audit *a);
void audit_swap_entry(struct audit *a, unsigned long addr, swp_entry_t entry,
		      bool exclusive);
void audit_swaps(struct audit *a);
#else
static inline int audit_swap_prepare(struct audit *a)
{
	return 0;
}

static inline void audit_swap_clear(struct audit *a)
{
}

static inline void audit_swap_entry(struct audit *a, unsigned long addr,
				    swp_entry_t entry, bool exclusive)
{
}

static inline void audit_swaps(struct audit *a)
{
}
#endif

#endif /* _MM_AUDIT_AUDIT_H */
