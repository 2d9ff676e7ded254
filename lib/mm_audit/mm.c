// SPDX-License-Identifier: GPL-2.0
/*
 * Address spaces: the sums over the entries of each address space, and whether
 * the reverse mapping finds each of its VMAs.
 */

#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/percpu_counter.h>
#include <linux/rmap.h>
#include <linux/sched.h>

#include "audit.h"

static const char *const mm_rss_names[NR_MM_COUNTERS] = {
	[MM_FILEPAGES] = "pages of files",
	[MM_ANONPAGES] = "anonymous pages",
	[MM_SWAPENTS] = "swap entries",
	[MM_SHMEMPAGES] = "pages of shared memory",
};

/*
 * A file's tree of VMAs must have this VMA. A new VMA may not be in the tree
 * yet, but then the lock of the tree is held.
 */
static void mm_check_file(struct audit *a, struct vm_area_struct *vma)
{
	struct address_space *mapping = vma->vm_file->f_mapping;
	struct vm_area_struct *found;
	long nr = 0;

	if (rwsem_is_locked(&mapping->i_mmap_rwsem))
		return;
	audit_file_tree_foreach(found, mapping, vma->vm_pgoff, vma->vm_pgoff)
		nr += found == vma;
	audit_equal(a, MM_AUDIT_vma_rmap, "times the file has the VMA",
		    vma->vm_start, 0, nr, 1);
}

/* The tree of each anon_vma of the VMA must have the VMA. */
static void mm_check_anon(struct audit *a, struct vm_area_struct *vma)
{
	struct anon_vma_chain *avc, *found;

	list_for_each_entry(avc, &vma->anon_vma_chain, same_vma) {
		long nr = 0;

		if (rwsem_is_locked(&avc->anon_vma->root->rwsem))
			continue;
		audit_anon_tree_foreach(found, avc->anon_vma,
					audit_anon_start(vma),
					audit_anon_start(vma))
			nr += found->vma == vma;
		audit_equal(a, MM_AUDIT_vma_rmap, "times an anon_vma has the VMA",
			    vma->vm_start, 0, nr, 1);
	}
	audit_equal(a, MM_AUDIT_vma_rmap, "VMAs with a chain but no anon_vma",
		    vma->vm_start, 0,
		    !vma->anon_vma && !list_empty(&vma->anon_vma_chain), 0);
}

/*
 * The other direction: each VMA that the tree of a file has for these pages is
 * a VMA of this file. The check runs once for each tree, together with the
 * first VMA of the tree.
 */
static void mm_check_tree(struct audit *a, struct vm_area_struct *vma)
{
	struct address_space *mapping = vma->vm_file->f_mapping;
	struct vm_area_struct *found, *first = NULL;

	if (rwsem_is_locked(&mapping->i_mmap_rwsem))
		return;
	audit_file_tree_foreach(found, mapping, 0, ULONG_MAX) {
		first = first ?: found;
		if (first != vma)
			return;
		audit_equal(a, MM_AUDIT_vma_rmap,
			    "VMAs of another file in the tree of a file",
			    vma->vm_start, 0,
			    !found->vm_file ||
			    found->vm_file->f_mapping != mapping, 0);
	}
}

static void mm_check_vmas(struct audit *a)
{
	struct vm_area_struct *vma;

	vma_iter_init(&a->vmi, a->mm, 0);
	for_each_vma(a->vmi, vma) {
		if (vma->vm_file && vma->vm_file->f_mapping) {
			mm_check_file(a, vma);
			mm_check_tree(a, vma);
		}
		mm_check_anon(a, vma);
	}
}

/**
 * audit_mm() - check the current address space
 * @a: the audit
 */
void audit_mm(struct audit *a)
{
	struct mm_struct *mm = a->mm;
	int i;

	memset(&a->sum, 0, sizeof(a->sum));
	vma_iter_init(&a->vmi, mm, 0);
	a->vma = vma_next(&a->vmi);
	audit_walk(a);
	for (i = 0; i < NR_MM_COUNTERS; i++)
		audit_equal(a, MM_AUDIT_rss, mm_rss_names[i], 0, 0,
			    percpu_counter_sum(&mm->rss_stat[i]),
			    a->sum.rss[i]);
#ifdef CONFIG_HUGETLB_PAGE
	/*
	 * If several address spaces share a table, it counts only for the
	 * address space that had the fault.
	 */
	if (!a->sum.shared_tables)
		audit_equal(a, MM_AUDIT_rss, "pages of hugetlb folios", 0, 0,
			    atomic_long_read(&mm->hugetlb_usage),
			    a->sum.hugetlb);
#endif
	if (AUDIT_DEPOSITS)
		audit_equal(a, MM_AUDIT_pgtables_bytes, "bytes of page tables",
			    0, 0, mm_pgtables_bytes(mm), a->sum.tables);
	mm_check_vmas(a);
}
