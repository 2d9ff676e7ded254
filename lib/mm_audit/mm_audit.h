/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An auditor of page tables and folios.
 *
 * It reads every page table of every process and every folio while the machine
 * is stopped, and compares its results with the counters of the kernel.
 */
#ifndef _MM_AUDIT_H
#define _MM_AUDIT_H

#include <linux/sched.h>
#include <linux/types.h>

struct seq_file;

/*
 * The rules. Documentation/mmcheck/mm_audit.rst has a paragraph on each. A rule
 * applies only if the kernel and the architecture have the data that the rule
 * compares.
 */
enum mm_audit_rule {
	MM_AUDIT_freed_page,
	MM_AUDIT_page_mapcount,
	MM_AUDIT_large_mapcount,
	MM_AUDIT_entire_mapcount,
	MM_AUDIT_nr_pages_mapped,
	MM_AUDIT_mm_id_slot,
	MM_AUDIT_mm_id_shared,
	MM_AUDIT_anon_exclusive,
	MM_AUDIT_write_exclusive,
	MM_AUDIT_folio_refs,
	MM_AUDIT_folio_leak,
	MM_AUDIT_cache_index,
	MM_AUDIT_mlocked,
	MM_AUDIT_entry_rmap,
	MM_AUDIT_vma_rmap,
	MM_AUDIT_vma_entry,
	MM_AUDIT_vma_rights,
	MM_AUDIT_private_write,
	MM_AUDIT_cont_block,
	MM_AUDIT_rss,
	MM_AUDIT_pgtables_bytes,
	MM_AUDIT_swap_count,
	MM_AUDIT_swap_exclusive,
	MM_AUDIT_node_stat,
	MM_AUDIT_mthp_nr_anon,
	MM_AUDIT_mthp_partially_mapped,
	MM_AUDIT_deferred_split,
	MM_AUDIT_hugetlb_free,
	MM_AUDIT_hugetlb_total,
	MM_AUDIT_table_share,
	MM_AUDIT_memcg_charge,
	MM_AUDIT_NR_RULES
};

/*
 * The number of violations that an audit keeps. Further violations are only
 * counted.
 */
#define MM_AUDIT_KEEP		128

/* A violation is reported after this many audits in a row have found it. */
#define MM_AUDIT_ROW		3

/**
 * struct mm_audit_violation - two numbers that disagree
 * @rule: the rule
 * @what: a description of the numbers
 * @comm: the process, or an empty string
 * @pid: the process
 * @addr: the address in the process, or 0
 * @pfn: the page, or 0
 * @got: the number that the kernel has
 * @want: the number that follows from the page tables or the folios
 */
struct mm_audit_violation {
	enum mm_audit_rule rule;
	const char *what;
	char comm[TASK_COMM_LEN];
	pid_t pid;
	unsigned long addr;
	unsigned long pfn;
	long got;
	long want;
};

/**
 * struct mm_audit - an audit
 * @quiet: set by the caller if only page tables and caches have references to
 *   folios: then each folio must have exactly the references that the auditor
 *   expects
 * @mms: number of address spaces
 * @entries: number of entries of page tables that map or refer to something
 * @folios: number of folios
 * @violations: number of violations
 * @compared: by rule, number of comparisons
 * @rounds: how many times the machine was stopped
 * @ns: how long the machine was stopped in the first round
 * @nr: number of violations that are kept
 * @violation: these violations
 */
struct mm_audit {
	bool quiet;
	unsigned long mms;
	unsigned long entries;
	unsigned long folios;
	unsigned long violations;
	unsigned long compared[MM_AUDIT_NR_RULES];
	unsigned int rounds;
	u64 ns;
	unsigned int nr;
	struct mm_audit_violation violation[MM_AUDIT_KEEP];
};

int mm_audit_run(struct mm_audit *audit);
const char *mm_audit_rule_name(enum mm_audit_rule rule);
int mm_audit_text(const struct mm_audit_violation *v, char *buf, size_t size);

#endif /* _MM_AUDIT_H */
