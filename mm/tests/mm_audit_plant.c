// SPDX-License-Identifier: GPL-2.0
/*
 * The tests of the auditor make these mistakes in a real address space, and
 * correct them again. Each mistake is as small as possible: one number, one
 * bit, or one entry.
 */

#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pgalloc.h>
#include <linux/rmap.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "../../lib/mm_audit/compat.h"
#include "mm_audit_plant.h"

static void plant_atomic(atomic_t *count, bool on)
{
	if (on)
		atomic_inc(count);
	else
		atomic_dec(count);
}

/* The second page, so that the mistake is not in the head page. */
static struct page *plant_page(struct audit_place *p)
{
	return folio_page(p->folio, folio_test_large(p->folio));
}

static pte_t *plant_ptep(struct audit_place *p, unsigned long addr)
{
	return pte_offset_kernel(pmd_off(p->u->mm, addr), addr);
}

static long one(struct audit_place *p)
{
	return 1;
}

static long none(struct audit_place *p)
{
	return 0;
}

static long two(struct audit_place *p)
{
	return 2;
}

static long pages(struct audit_place *p)
{
	return folio_nr_pages(p->folio);
}

static long pages_and_one(struct audit_place *p)
{
	return pages(p) + 1;
}

static long pages_less_one(struct audit_place *p)
{
	return pages(p) - 1;
}

static void freed_page(struct audit_place *p, bool on)
{
	static int refs;

	if (on)
		refs = folio_ref_count(p->folio);
	set_page_count(&p->folio->page, on ? 0 : refs);
}

static void page_mapcount_wrong(struct audit_place *p, bool on)
{
	plant_atomic(&plant_page(p)->_mapcount, on);
}

static void large_mapcount(struct audit_place *p, bool on)
{
	plant_atomic(&p->folio->_large_mapcount, on);
}

static void entire_mapcount(struct audit_place *p, bool on)
{
	plant_atomic(&p->folio->_entire_mapcount, on);
}

static void nr_pages_mapped(struct audit_place *p, bool on)
{
	plant_atomic(&p->folio->_nr_pages_mapped, on);
}

static void mm_id_slot(struct audit_place *p, bool on)
{
#ifdef CONFIG_MM_ID
	p->folio->_mm_id_mapcount[0] += on ? 1 : -1;
#endif
}

static void mm_id_shared(struct audit_place *p, bool on)
{
#ifdef CONFIG_MM_ID
	change_bit(FOLIO_MM_IDS_SHARED_BITNUM, &p->folio->_mm_ids);
#endif
}

static void exclusive(struct audit_place *p, bool on)
{
	struct page *page = plant_page(p);

	if (PageAnonExclusive(page))
		ClearPageAnonExclusive(page);
	else
		SetPageAnonExclusive(page);
}

static void refs_low(struct audit_place *p, bool on)
{
	folio_ref_add(p->folio, on ? -1 : 1);
}

static void refs_high(struct audit_place *p, bool on)
{
	folio_ref_add(p->folio, on ? 1 : -1);
}

static void index_wrong(struct audit_place *p, bool on)
{
	p->folio->index += on ? 1 : -1;
}

static long index_is(struct audit_place *p)
{
	return p->folio->index + 1;
}

static long index_should_be(struct audit_place *p)
{
	return audit_anon_index(p->vma, p->addr);
}

static void mlocked(struct audit_place *p, bool on)
{
	if (on)
		folio_set_mlocked(p->folio);
	else
		folio_clear_mlocked(p->folio);
}

static void vma_rmap(struct audit_place *p, bool on)
{
	struct anon_vma_chain *avc = list_first_entry(&p->vma->anon_vma_chain,
						      struct anon_vma_chain,
						      same_vma);

#ifdef anon_rmap_tree_foreach
	if (on)
		anon_rmap_tree_remove(avc, avc->anon_vma);
	else
		anon_rmap_tree_insert(avc, avc->anon_vma);
#else
	if (on)
		anon_vma_interval_tree_remove(avc, &avc->anon_vma->rb_root);
	else
		anon_vma_interval_tree_insert(avc, &avc->anon_vma->rb_root);
#endif
}

/* A marker refers to no page, so no other rule checks it. */
static void vma_entry(struct audit_place *p, bool on)
{
	pte_t *ptep = plant_ptep(p, p->vma->vm_end);

	if (on)
		set_pte_at(p->u->mm, p->vma->vm_end, ptep,
			   make_pte_marker(PTE_MARKER_POISONED));
	else
		pte_clear(p->u->mm, p->vma->vm_end, ptep);
}

static void flags_change(struct audit_place *p, bool on, unsigned long flags)
{
	unsigned long now = p->vma->vm_flags;

	vm_flags_init(p->vma, on ? now & ~flags : now | flags);
}

static void vma_rights(struct audit_place *p, bool on)
{
	flags_change(p, on, VM_WRITE);
}

static void private_write(struct audit_place *p, bool on)
{
	flags_change(p, on, VM_SHARED | VM_MAYSHARE);
}

/* The second entry of a block loses its contiguous bit. */
static void cont_block(struct audit_place *p, bool on)
{
#ifdef CONFIG_ARM64
	pte_t *ptep = plant_ptep(p, p->addr) + 1;

	WRITE_ONCE(*ptep, __pte(pte_val(__ptep_get(ptep)) ^ PTE_CONT));
#endif
}

static void rss(struct audit_place *p, bool on)
{
	add_mm_counter(p->u->mm, MM_ANONPAGES, on ? 1 : -1);
}

static long rss_is(struct audit_place *p)
{
	return p->u->rss + USER_PAGES + 1;
}

static long rss_should_be(struct audit_place *p)
{
	return rss_is(p) - 1;
}

static void pgtables_bytes(struct audit_place *p, bool on)
{
	if (on)
		mm_inc_nr_ptes(p->u->mm);
	else
		mm_dec_nr_ptes(p->u->mm);
}

static void node_stat(struct audit_place *p, bool on)
{
	mod_node_page_state(folio_pgdat(p->folio), NR_ANON_THPS, on ? 1 : -1);
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
static void mthp_nr_anon(struct audit_place *p, bool on)
{
	mod_mthp_stat(PMD_ORDER, MTHP_STAT_NR_ANON, on ? 1 : -1);
}

static void mthp_partially_mapped(struct audit_place *p, bool on)
{
	mod_mthp_stat(PMD_ORDER, MTHP_STAT_NR_ANON_PARTIALLY_MAPPED, on ? 1 : -1);
}

static void deferred_split(struct audit_place *p, bool on)
{
	if (on)
		folio_set_partially_mapped(p->folio);
	else
		folio_clear_partially_mapped(p->folio);
	mod_mthp_stat(folio_order(p->folio), MTHP_STAT_NR_ANON_PARTIALLY_MAPPED,
		      on ? 1 : -1);
}
#endif

#ifdef CONFIG_HUGETLB_PAGE
static void hugetlb_free(struct audit_place *p, bool on)
{
	default_hstate.free_huge_pages += on ? 1 : -1;
}

static void hugetlb_total(struct audit_place *p, bool on)
{
	default_hstate.nr_huge_pages += on ? 1 : -1;
}
#endif

#ifdef CONFIG_MEMCG
static void memcg_charge(struct audit_place *p, bool on)
{
	static unsigned long was;

	if (on)
		was = p->folio->memcg_data;
	p->folio->memcg_data = on ? 0 : was;
}
#endif

/* The entry is gone, but the slot is still in use. */
static void swap_count(struct audit_place *p, bool on)
{
	pte_t *ptep = plant_ptep(p, p->addr);
	static pte_t was;

	if (on) {
		was = ptep_get(ptep);
		pte_clear(p->u->mm, p->addr, ptep);
	} else {
		set_pte_at(p->u->mm, p->addr, ptep, was);
	}
}

static void swap_exclusive(struct audit_place *p, bool on)
{
	pte_t *ptep = plant_ptep(p, p->addr);
	pte_t pte = ptep_get(ptep);

	set_pte_at(p->u->mm, p->addr, ptep, on ? pte_swp_mkexclusive(pte) :
						 pte_swp_clear_exclusive(pte));
}

#ifdef CONFIG_ARM64_CONTPTE
#define NO_BLOCKS	NULL
#else
#define NO_BLOCKS	"no contiguous blocks"
#endif
#ifdef CONFIG_MM_ID
#define NO_MM_ID	NULL
#else
#define NO_MM_ID	"no CONFIG_MM_ID: folios do not know their owners"
#endif
#ifdef CONFIG_S390
#define NO_DEPOSITS	"page tables that wait are in a list of s390"
#else
#define NO_DEPOSITS	NULL
#endif

#define PLANT(r, n, m, g, w)		PLANT_UNLESS(r, n, m, g, w, NULL)
#define PLANT_UNLESS(r, n, m, g, w, s) {				\
	.desc = #r, .rule = MM_AUDIT_##r, .also = MM_AUDIT_##r,		\
	.needs = n, .make = m, .got = g, .want = w, .skip = s,		\
}

/* One mistake for each rule. */
const struct audit_plant audit_plants[] = {
	{
		.desc = "freed_page", .rule = MM_AUDIT_freed_page,
		.also = MM_AUDIT_folio_refs, .needs = AUDIT_ANON,
		.make = freed_page, .got = one, .want = none,
	},
	PLANT(page_mapcount, AUDIT_ANON, page_mapcount_wrong, two, one),
	PLANT(large_mapcount, AUDIT_LARGE, large_mapcount, pages_and_one, pages),
	PLANT(entire_mapcount, AUDIT_LARGE, entire_mapcount, one, none),
	PLANT(nr_pages_mapped, AUDIT_LARGE, nr_pages_mapped, pages_and_one,
	      pages),
	PLANT_UNLESS(mm_id_slot, AUDIT_LARGE, mm_id_slot, pages_and_one, pages,
		     NO_MM_ID),
	PLANT_UNLESS(mm_id_shared, AUDIT_LARGE, mm_id_shared, one, none,
		     NO_MM_ID),
	PLANT(anon_exclusive, AUDIT_FORKED, exclusive, one, none),
	PLANT(write_exclusive, AUDIT_ANON, exclusive, one, none),
	PLANT(folio_refs, AUDIT_ANON, refs_low, pages_less_one, pages),
	{
		.desc = "folio_leak", .rule = MM_AUDIT_folio_leak,
		.also = MM_AUDIT_folio_leak, .needs = AUDIT_ANON, .quiet = true,
		.make = refs_high, .got = pages_and_one, .want = pages,
	},
	PLANT(cache_index, AUDIT_CACHED, index_wrong, none, one),
	PLANT(mlocked, AUDIT_ANON, mlocked, one, none),
	PLANT(entry_rmap, AUDIT_ANON, index_wrong, index_is, index_should_be),
	PLANT(vma_rmap, AUDIT_ANON, vma_rmap, none, one),
	PLANT(vma_entry, AUDIT_ANON, vma_entry, NULL, none),
	PLANT(vma_rights, AUDIT_ANON, vma_rights, one, none),
	PLANT(private_write, AUDIT_SHMEM, private_write, one, none),
	PLANT_UNLESS(cont_block, AUDIT_FOLDED, cont_block, NULL, NULL, NO_BLOCKS),
	PLANT(rss, AUDIT_ANON, rss, rss_is, rss_should_be),
	PLANT_UNLESS(pgtables_bytes, AUDIT_ANON, pgtables_bytes, NULL, NULL,
		     NO_DEPOSITS),
	{
		.desc = "swap_count", .rule = MM_AUDIT_swap_count,
		.also = MM_AUDIT_rss, .needs = AUDIT_SWAPPED,
		.make = swap_count, .got = one, .want = none,
	},
	PLANT(swap_exclusive, AUDIT_SWAPPED_FORKED, swap_exclusive, one, none),
	PLANT(node_stat, AUDIT_ANON, node_stat, one, none),
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	PLANT(mthp_nr_anon, AUDIT_ANON, mthp_nr_anon, one, none),
	PLANT(mthp_partially_mapped, AUDIT_ANON, mthp_partially_mapped, one,
	      none),
	PLANT(deferred_split, AUDIT_LARGE, deferred_split, one, none),
#endif
#ifdef CONFIG_HUGETLB_PAGE
	PLANT(hugetlb_free, AUDIT_ANON, hugetlb_free, one, none),
	PLANT(hugetlb_total, AUDIT_ANON, hugetlb_total, one, none),
#endif
#ifdef CONFIG_MEMCG
	PLANT(memcg_charge, AUDIT_ANON, memcg_charge, one, none),
#endif
};

const unsigned int audit_nr_plants = ARRAY_SIZE(audit_plants);
