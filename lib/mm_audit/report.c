// SPDX-License-Identifier: GPL-2.0
/*
 * Functions that keep and print violations.
 */

#include <linux/sched.h>
#include <linux/string.h>

#include "audit.h"

static const char *const rule_names[MM_AUDIT_NR_RULES] = {
	[MM_AUDIT_freed_page] = "freed_page",
	[MM_AUDIT_page_mapcount] = "page_mapcount",
	[MM_AUDIT_large_mapcount] = "large_mapcount",
	[MM_AUDIT_entire_mapcount] = "entire_mapcount",
	[MM_AUDIT_nr_pages_mapped] = "nr_pages_mapped",
	[MM_AUDIT_mm_id_slot] = "mm_id_slot",
	[MM_AUDIT_mm_id_shared] = "mm_id_shared",
	[MM_AUDIT_anon_exclusive] = "anon_exclusive",
	[MM_AUDIT_write_exclusive] = "write_exclusive",
	[MM_AUDIT_folio_refs] = "folio_refs",
	[MM_AUDIT_folio_leak] = "folio_leak",
	[MM_AUDIT_cache_index] = "cache_index",
	[MM_AUDIT_mlocked] = "mlocked",
	[MM_AUDIT_entry_rmap] = "entry_rmap",
	[MM_AUDIT_vma_rmap] = "vma_rmap",
	[MM_AUDIT_vma_entry] = "vma_entry",
	[MM_AUDIT_vma_rights] = "vma_rights",
	[MM_AUDIT_private_write] = "private_write",
	[MM_AUDIT_cont_block] = "cont_block",
	[MM_AUDIT_rss] = "rss",
	[MM_AUDIT_pgtables_bytes] = "pgtables_bytes",
	[MM_AUDIT_swap_count] = "swap_count",
	[MM_AUDIT_swap_exclusive] = "swap_exclusive",
	[MM_AUDIT_node_stat] = "node_stat",
	[MM_AUDIT_mthp_nr_anon] = "mthp_nr_anon",
	[MM_AUDIT_mthp_partially_mapped] = "mthp_partially_mapped",
	[MM_AUDIT_deferred_split] = "deferred_split",
	[MM_AUDIT_hugetlb_free] = "hugetlb_free",
	[MM_AUDIT_hugetlb_total] = "hugetlb_total",
	[MM_AUDIT_table_share] = "table_share",
	[MM_AUDIT_memcg_charge] = "memcg_charge",
};

/**
 * mm_audit_rule_name() - the name of a rule
 * @rule: the rule
 */
const char *mm_audit_rule_name(enum mm_audit_rule rule)
{
	return rule_names[rule];
}

/**
 * audit_report() - keep a violation
 * @a: the audit
 * @rule: the rule
 * @what: a description of the numbers
 * @addr: the address in the current address space; 0 if no process is concerned
 * @pfn: the page, or 0
 * @got: the number that the kernel has
 * @want: the number that follows from the page tables or the folios
 */
void audit_report(struct audit *a, enum mm_audit_rule rule, const char *what,
		  unsigned long addr, unsigned long pfn, long got, long want)
{
	struct mm_audit *out = a->out;
	struct mm_audit_violation *v;

	out->violations++;
	if (out->nr == MM_AUDIT_KEEP)
		return;
	v = &out->violation[out->nr++];
	*v = (struct mm_audit_violation){
		.rule = rule, .what = what, .addr = addr, .pfn = pfn,
		.got = got, .want = want,
	};
	if (a->task) {
		v->pid = a->task->pid;
		memcpy(v->comm, a->task->comm, sizeof(v->comm));
		v->comm[sizeof(v->comm) - 1] = 0;
	}
}

/**
 * mm_audit_text() - write a violation as a line of text
 * @v: the violation
 * @buf: the place for the text, without a newline
 * @size: its size
 *
 * Return: the length of the text.
 */
int mm_audit_text(const struct mm_audit_violation *v, char *buf, size_t size)
{
	int len = scnprintf(buf, size, "%s: %s: %ld, expected %ld",
			    rule_names[v->rule], v->what, v->got, v->want);

	if (v->comm[0])
		len += scnprintf(buf + len, size - len, ", process %s (%d)",
				 v->comm, v->pid);
	if (v->addr)
		len += scnprintf(buf + len, size - len, ", address %lx", v->addr);
	if (v->pfn)
		len += scnprintf(buf + len, size - len, ", pfn %lx", v->pfn);
	return len;
}
