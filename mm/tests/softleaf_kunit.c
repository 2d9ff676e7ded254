// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that are not present: their types and their contents.
 *
 * The entry for a swap slot, a migration, a page of a device, a poisoned page
 * or a marker has a type and an offset. The offset is a slot, or a page frame
 * with the bits young and dirty above it, or the bits of a marker. In a page
 * table such an entry also has the bits soft-dirty, exclusive and uffd-wp:
 *
 *	entry of a page table | uffd-wp | exclusive | soft-dirty | type | offset
 *	                                                             |
 *	                                  dirty | young | page frame +
 *
 * A mistake here confuses a page with a swap slot or with another page, or
 * loses the bit that prevents two owners from writing to one page. The suite
 * makes each type with each bit of its offset and each combination of the other
 * bits. It decodes the entry, and calls each function that tests for a kind of
 * entry. A table in softleaf.h lists the types for which the function must
 * return true.
 *
 * The suite tests values only. Not covered: entries in a table (on arm64
 * pte_nonpresent), the code that makes such entries, hugetlb.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests 'softleaf*'
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pgtable.h>

#include "pgtable_kunit.h"
#include "softleaf.h"

#define LEAF_TYPES	BIT(MAX_SWAPFILES_SHIFT)

/* The bits of an entry in addition to type and offset. */
#define LEAF_SOFT	BIT(0)
#define LEAF_UFFD	BIT(1)
#define LEAF_EXCL	BIT(2)
#define LEAF_BITS	BIT(3)		/* the number of combinations */

/* The bits that this architecture has. A PMD has no exclusive bit. */
static unsigned int leaf_bits(void)
{
	return LEAF_EXCL | (leaf_has_soft_dirty() ? LEAF_SOFT : 0) |
	       (leaf_has_uffd() ? LEAF_UFFD : 0);
}

static const struct leaf_type *leaf_named(unsigned int type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(leaf_types); i++) {
		if (leaf_types[i].type == type)
			return &leaf_types[i];
	}
	return NULL;
}

static unsigned int leaf_kind(unsigned int type)
{
	const struct leaf_type *leaf = leaf_named(type);

	return leaf ? leaf->kind : type < MAX_SWAPFILES ? LEAF_SWAP : 0;
}

/* The highest offset that fits into an entry, as swapon() computes it. */
static unsigned long leaf_offset_max(void)
{
	swp_entry_t entry = __pte_to_swp_entry(swp_entry_to_pte(swp_entry(0, ~0UL)));

	return swp_offset(swp_entry(__swp_type(entry), __swp_offset(entry)));
}

/* The highest offset of a type. */
static unsigned long leaf_limit(unsigned int kind)
{
	if (kind == LEAF_MARKER)
		return PTE_MARKER_MASK;
	if (kind & LEAF_MIGRATION && leaf_keeps_young_dirty())
		return BIT(SWP_MIG_TOTAL_BITS) - 1;
	if (kind & LEAF_PFN)
		return min(leaf_offset_max(), SWP_PFN_MASK);
	return leaf_offset_max();
}

/*
 * The offsets of a type, by number: each bit alone, no bit, all bits, all bits
 * except the lowest. Returns false if there are no more.
 */
static bool leaf_offset(unsigned int kind, unsigned int nr,
			unsigned long *offset)
{
	unsigned long limit = leaf_limit(kind);
	unsigned int bits = fls64(limit);

	if (kind == LEAF_MARKER) {
		*offset = nr;
		return nr <= limit;
	}
	*offset = nr < bits ? BIT(nr) : nr == bits ? 0 : limit - (nr - bits - 1);
	return nr < bits + 3;
}

static pte_t leaf_pte(unsigned int type, unsigned long offset,
		      unsigned int bits)
{
	pte_t pte = leaf_to_pte(swp_entry(type, offset));

	if (bits & LEAF_SOFT)
		pte = pte_swp_mksoft_dirty(pte);
	if (bits & LEAF_UFFD)
		pte = pgtable_kunit_swp_mkuffd(pte);
	if (bits & LEAF_EXCL)
		pte = pte_swp_mkexclusive(pte);
	return pte;
}

/*
 * On x86_64 the offset is stored inverted, so type 0 with all bits of the
 * offset is the empty entry. No device is that large. Without another bit,
 * type 0 with offset 0 may also be the empty entry.
 */
static bool leaf_is_empty(unsigned int type, unsigned long offset)
{
	return !type && (!offset || offset == leaf_offset_max());
}

/*
 * Every number of a type has a meaning, and no two types have the same number.
 * The functions that make entries set the right type, and keep the offset.
 */
static void softleaf_types(struct kunit *test)
{
	unsigned long offset, kinds = 0;
	unsigned int type, i, nr;

	for (type = 0; type < LEAF_TYPES; type++) {
		KUNIT_EXPECT_NE_MSG(test, leaf_kind(type), 0, "type %u", type);
		kinds |= leaf_kind(type);
	}
	KUNIT_EXPECT_EQ(test, hweight_long(kinds), ARRAY_SIZE(leaf_types) + 1);

	for (i = 0; i < ARRAY_SIZE(leaf_types); i++) {
		const struct leaf_type *leaf = &leaf_types[i];

		KUNIT_EXPECT_PTR_EQ(test, leaf_named(leaf->type), leaf);
		KUNIT_EXPECT_GE(test, leaf->type, MAX_SWAPFILES);
		for (nr = 0; leaf->make && leaf_offset(leaf->kind, nr, &offset); nr++) {
			swp_entry_t entry = leaf->make(offset);

			pgtable_kunit_tried++;
			if (swp_type(entry) == leaf->type &&
			    swp_offset(entry) == offset)
				continue;
			KUNIT_FAIL(test, "%s, offset %lx: type %u, offset %lx",
				   leaf->desc, offset, swp_type(entry),
				   swp_offset(entry));
			return;
		}
	}
	KUNIT_EXPECT_EQ(test, swp_offset(make_poisoned_swp_entry()),
			PTE_MARKER_POISONED);
#ifdef PTE_MARKER_GUARD
	KUNIT_EXPECT_EQ(test, swp_offset(make_guard_swp_entry()),
			PTE_MARKER_GUARD);
#endif
}

/* Does an entry of a page table contain the values that it was made from? */
static bool leaf_decodes(pte_t pte, unsigned int type, unsigned long offset,
			 unsigned int bits)
{
	swp_entry_t entry = pgtable_kunit_swp_entry(pte);

	return !pte_present(pte) && !pte_none(pte) &&
	       swp_type(entry) == type && swp_offset(entry) == offset &&
	       !!pte_swp_soft_dirty(pte) == !!(bits & LEAF_SOFT) &&
	       !!pgtable_kunit_swp_uffd(pte) == !!(bits & LEAF_UFFD) &&
	       !!pte_swp_exclusive(pte) == !!(bits & LEAF_EXCL);
}

/* Can each bit be removed alone, and can all of them be removed together? */
static bool leaf_clears(pte_t pte, unsigned int type, unsigned long offset,
			unsigned int bits)
{
	return pte_same(pte_swp_clear_soft_dirty(pte),
			leaf_pte(type, offset, bits & ~LEAF_SOFT)) &&
	       pte_same(leaf_pte_clear_uffd(pte),
			leaf_pte(type, offset, bits & ~LEAF_UFFD)) &&
	       pte_same(pte_swp_clear_exclusive(pte),
			leaf_pte(type, offset, bits & ~LEAF_EXCL)) &&
	       pte_same(pte_swp_clear_flags(pte), leaf_pte(type, offset, 0));
}

/*
 * An entry of a page table keeps type and offset, with each combination of the
 * bits soft-dirty, exclusive and uffd-wp. Each bit is set, found and removed
 * alone. The entry is neither present nor empty. The case tries all types, and
 * each bit of the offset alone. If two fields overlap, one of these entries
 * shows it.
 */
static void softleaf_pte_round_trip(struct kunit *test)
{
	unsigned int have = leaf_bits(), type, nr, bits, failed = 0;
	unsigned long offset;

	for (type = 0; type < LEAF_TYPES; type++) {
		unsigned int kind = leaf_kind(type);

		for (nr = 0; leaf_offset(kind, nr, &offset); nr++) {
			for (bits = 0; bits < LEAF_BITS; bits++) {
				pte_t pte = leaf_pte(type, offset, bits);

				if (bits & ~have ||
				    leaf_is_empty(type, offset))
					continue;
				pgtable_kunit_tried++;
				if (leaf_decodes(pte, type, offset, bits) &&
				    leaf_clears(pte, type, offset, bits))
					continue;
				KUNIT_FAIL(test,
					   "type %u, offset %lx, bits %x: %016llx",
					   type, offset, bits,
					   (u64)pte_val(pte));
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
}

KUNIT_ARRAY_PARAM_DESC(leaf_question, leaf_questions, desc);

/*
 * Each function that tests for a kind of entry returns true for the types of
 * this kind and for no other, with each bit of the offset. For a marker it
 * returns true if the marker has one of the function's bits, and only then.
 * Functions on entries of page tables ignore the bits soft-dirty, exclusive and
 * uffd-wp.
 */
static void softleaf_answers(struct kunit *test)
{
	const struct leaf_question *question = test->param_value;
	unsigned int have = leaf_bits(), type, nr, bits, yes = 0, failed = 0;
	unsigned long offset;

	for (type = 0; type < LEAF_TYPES; type++) {
		unsigned int kind = leaf_kind(type);

		for (nr = 0; leaf_offset(kind, nr, &offset); nr++) {
			bool want = question->kinds & kind &&
				    (!question->markers ||
				     question->markers & offset);

			if (leaf_is_empty(type, offset))
				continue;
			for (bits = 0; bits < LEAF_BITS; bits++) {
				bool is;

				if (bits & ~have || (bits && question->ask))
					continue;
				is = question->ask ?
					question->ask(swp_entry(type, offset)) :
					question->ask_pte(leaf_pte(type, offset, bits));
				pgtable_kunit_tried++;
				yes += is;
				if (is == want)
					continue;
				KUNIT_FAIL(test, "type %u, offset %lx, bits %x: %d",
					   type, offset, bits, is);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	kunit_info(test, "yes to %u\n", yes);
}

/*
 * An empty entry and a present entry are of no such type. Newer kernels decode
 * them as none, with any page and protection.
 */
static void softleaf_of_present(struct kunit *test)
{
#ifdef _LINUX_LEAFOPS_H
	unsigned long pfn = page_to_pfn(ZERO_PAGE(0)), flags;

	for (flags = 0; flags <= (VM_READ | VM_WRITE | VM_EXEC | VM_SHARED); flags++) {
		pte_t pte = pfn_pte(pfn, vm_get_page_prot(flags));

		pgtable_kunit_tried++;
		KUNIT_EXPECT_TRUE(test, softleaf_is_none(softleaf_from_pte(pte)));
		pte = pte_mkdirty(pte_mkyoung(pte));
		KUNIT_EXPECT_TRUE(test, softleaf_is_none(softleaf_from_pte(pte)));
	}
	KUNIT_EXPECT_TRUE(test,
			  softleaf_is_none(softleaf_from_pte(pgtable_kunit_none())));
	KUNIT_EXPECT_TRUE(test, softleaf_is_none(softleaf_mk_none()));
	KUNIT_EXPECT_EQ(test, softleaf_type(softleaf_mk_none()), SOFTLEAF_NONE);
	KUNIT_EXPECT_FALSE(test, softleaf_is_swap(softleaf_mk_none()));
	KUNIT_EXPECT_FALSE(test, softleaf_has_pfn(softleaf_mk_none()));
#else
	kunit_skip(test, "needs softleaf_from_pte(), which decodes every entry");
#endif
}

/*
 * A marker keeps its bits, and a slot survives the conversion to an entry of
 * the page cache and back.
 */
static void softleaf_values(struct kunit *test)
{
	unsigned long marker, offset;
	unsigned int nr;

	for (marker = 0; marker <= PTE_MARKER_MASK; marker++) {
		pte_t pte = make_pte_marker(marker);

		KUNIT_EXPECT_EQ(test, leaf_to_marker(make_pte_marker_entry(marker)),
				marker);
		KUNIT_EXPECT_TRUE(test, leaf_decodes(pte, SWP_PTE_MARKER, marker, 0));
		pgtable_kunit_tried++;
	}
	for (nr = 0; leaf_offset(LEAF_SWAP, nr, &offset); nr++) {
		swp_entry_t entry = swp_entry(MAX_SWAPFILES - 1, offset);

		KUNIT_EXPECT_EQ(test, radix_to_swp_entry(swp_to_radix_entry(entry)).val,
				entry.val);
		pgtable_kunit_tried++;
	}
}

/*
 * Each type with a page frame keeps each bit of the page frame. In a migration
 * entry, young and dirty are set and found independently, and change neither
 * the type nor the page frame. An entry without room for these bits stays
 * unchanged, and is neither young nor dirty.
 */
static void softleaf_pfn_young_dirty(struct kunit *test)
{
	bool ad = leaf_keeps_young_dirty();
	unsigned int i, nr, way, failed = 0;

	if (ad)
		KUNIT_EXPECT_GE(test, leaf_offset_max(),
				BIT(SWP_MIG_TOTAL_BITS) - 1);
	for (i = 0; i < ARRAY_SIZE(leaf_types); i++) {
		const struct leaf_type *leaf = &leaf_types[i];
		unsigned int ways = leaf->kind & LEAF_MIGRATION ? 4 : 1;

		for (nr = 0; nr < fls64(leaf_limit(LEAF_HWPOISON)); nr++) {
			for (way = 0; way < ways && leaf->kind & LEAF_PFN; way++) {
				swp_entry_t entry = swp_entry(leaf->type, BIT(nr));
				bool young = way & 1, dirty = way & 2;

				if (young)
					entry = make_migration_entry_young(entry);
				if (dirty)
					entry = make_migration_entry_dirty(entry);
				pgtable_kunit_tried++;
				if (swp_type(entry) == leaf->type &&
				    leaf_to_pfn(entry) == BIT(nr) &&
				    (ways == 1 ||
				     (leaf_young(entry) == (young && ad) &&
				      leaf_dirty(entry) == (dirty && ad))) &&
				    leaf_decodes(leaf_to_pte(entry), leaf->type,
						 swp_offset(entry), 0))
					continue;
				KUNIT_FAIL(test, "%s%s%s, page frame %lx: %lx",
					   leaf->desc, young ? ", young" : "",
					   dirty ? ", dirty" : "", BIT(nr),
					   entry.val);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	kunit_info(test, "young and dirty %s\n", ad ? "kept" : "not kept");
}

/*
 * An entry of each type that has a page frame leads to its page and to its
 * folio, for each page of a large folio. The folio is locked, as it is during
 * a migration.
 */
static void softleaf_pages(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 4);
	unsigned int i, nr;

	folio_lock(folio);
	for (i = 0; i < ARRAY_SIZE(leaf_types); i++) {
		const struct leaf_type *leaf = &leaf_types[i];

		for (nr = 0; leaf->kind & LEAF_PFN && nr < folio_nr_pages(folio); nr++) {
			struct page *page = folio_page(folio, nr);
			swp_entry_t entry = swp_entry(leaf->type, page_to_pfn(page));

			if (leaf->kind & LEAF_MIGRATION)
				entry = make_migration_entry_young(entry);
			KUNIT_EXPECT_PTR_EQ(test, leaf_to_page(entry), page);
			KUNIT_EXPECT_PTR_EQ(test, leaf_to_folio(entry), folio);
			pgtable_kunit_tried++;
		}
	}
#ifdef CONFIG_MEMORY_FAILURE
	KUNIT_EXPECT_EQ(test, make_hwpoison_entry(&folio->page).val,
			swp_entry(SWP_HWPOISON, folio_pfn(folio)).val);
#endif
	folio_unlock(folio);
	if (!pgtable_kunit_tried)
		kunit_skip(test, "this kernel has no entries with a page frame");
}

#ifdef PGTABLE_KUNIT_PMD_SWP

static pmd_t leaf_pmd(unsigned int type, unsigned long offset,
		      unsigned int bits)
{
	pmd_t pmd = leaf_to_pmd(swp_entry(type, offset));

	if (bits & LEAF_SOFT)
		pmd = pmd_swp_mksoft_dirty(pmd);
	if (bits & LEAF_UFFD)
		pmd = leaf_pmd_mkuffd(pmd);
	return pmd;
}

/* Does an entry of the PMD level contain the values that it was made from? */
static bool leaf_pmd_ok(pmd_t pmd, unsigned int type, unsigned long offset,
			unsigned int bits)
{
	swp_entry_t entry = leaf_from_pmd(pmd);
	unsigned int kind = leaf_kind(type);

	return !pmd_present(pmd) && !pmd_none(pmd) && !pmd_trans_huge(pmd) &&
	       swp_type(entry) == type && swp_offset(entry) == offset &&
#ifdef _LINUX_LEAFOPS_H
	       leaf_pmd_valid(pmd) == !!(kind & LEAF_PMD) &&
	       leaf_pmd_device(pmd) ==
			(IS_ENABLED(CONFIG_ZONE_DEVICE) && kind & LEAF_DEVICE) &&
#endif
	       !!leaf_pmd_migration(pmd) == !!(kind & LEAF_MIGRATION) &&
	       !!pmd_swp_soft_dirty(pmd) == !!(bits & LEAF_SOFT) &&
	       !!leaf_pmd_uffd(pmd) == !!(bits & LEAF_UFFD) &&
	       pmd_same(pmd_swp_clear_soft_dirty(pmd),
			leaf_pmd(type, offset, bits & ~LEAF_SOFT)) &&
	       pmd_same(leaf_pmd_clear_uffd(pmd),
			leaf_pmd(type, offset, bits & ~LEAF_UFFD));
}

/*
 * The entry of a huge page keeps type and offset, with each combination of the
 * bits soft-dirty and uffd-wp, and each bit of the offset. It is neither
 * present nor empty nor a huge page. The functions for migration entries, for
 * pages of a device and for valid entries return true for their types and for
 * no other.
 */
static void softleaf_pmd_round_trip(struct kunit *test)
{
	unsigned int have = leaf_bits() & ~LEAF_EXCL, type, nr, bits, failed = 0;
	unsigned long offset;

	for (type = 0; type < LEAF_TYPES; type++) {
		for (nr = 0; leaf_offset(leaf_kind(type), nr, &offset); nr++) {
			for (bits = 0; bits < LEAF_BITS; bits++) {
				pmd_t pmd = leaf_pmd(type, offset, bits);

				if (bits & ~have || leaf_is_empty(type, offset))
					continue;
				pgtable_kunit_tried++;
				if (leaf_pmd_ok(pmd, type, offset, bits))
					continue;
				KUNIT_FAIL(test,
					   "type %u, offset %lx, bits %x: %016llx",
					   type, offset, bits,
					   (u64)pmd_val(pmd));
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
}

/*
 * The entry of a huge page leads to its folio. Migration entries of this level
 * also keep the bits young and dirty.
 */
static void softleaf_pmd_folio(struct kunit *test)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 4);
	bool ad = leaf_keeps_young_dirty();
	unsigned int i;

	folio_lock(folio);
	for (i = 0; i < ARRAY_SIZE(leaf_types); i++) {
		const struct leaf_type *leaf = &leaf_types[i];
		swp_entry_t entry = swp_entry(leaf->type, folio_pfn(folio));

		if (!(leaf->kind & LEAF_PMD))
			continue;
		pgtable_kunit_tried++;
#ifdef _LINUX_LEAFOPS_H
		KUNIT_EXPECT_PTR_EQ(test, leaf_pmd_folio(leaf_to_pmd(entry)),
				    folio);
#endif
		if (!(leaf->kind & LEAF_MIGRATION))
			continue;
		entry = leaf_from_pmd(leaf_to_pmd(make_migration_entry_young(entry)));
		KUNIT_EXPECT_EQ(test, leaf_young(entry), ad);
		KUNIT_EXPECT_FALSE(test, leaf_dirty(entry));
		entry = leaf_from_pmd(leaf_to_pmd(make_migration_entry_dirty(entry)));
		KUNIT_EXPECT_EQ(test, leaf_dirty(entry), ad);
		KUNIT_EXPECT_PTR_EQ(test, leaf_to_folio(entry), folio);
	}
	folio_unlock(folio);
}

/*
 * An empty entry and the entry of a huge page are of no such type. This
 * includes a huge page that pmdp_invalidate() has hidden from the hardware.
 */
static void softleaf_pmd_of_present(struct kunit *test)
{
#ifdef _LINUX_LEAFOPS_H
	unsigned long pfn = ALIGN_DOWN(page_to_pfn(ZERO_PAGE(0)), HPAGE_PMD_NR);
	unsigned long flags;

	for (flags = 0; flags <= (VM_READ | VM_WRITE | VM_EXEC | VM_SHARED); flags++) {
		pmd_t pmd = pmd_mkhuge(pfn_pmd(pfn, vm_get_page_prot(flags)));

		pgtable_kunit_tried++;
		KUNIT_EXPECT_TRUE(test, softleaf_is_none(softleaf_from_pmd(pmd)));
		KUNIT_EXPECT_FALSE(test, leaf_pmd_migration(pmd));
		KUNIT_EXPECT_FALSE(test, leaf_pmd_valid(pmd));
#ifndef CONFIG_S390
		pmd = pmd_mkinvalid(pmd);
		KUNIT_EXPECT_TRUE(test, softleaf_is_none(softleaf_from_pmd(pmd)));
		KUNIT_EXPECT_FALSE(test, leaf_pmd_migration(pmd));
#endif
	}
#else
	kunit_skip(test, "needs softleaf_from_pmd(), which decodes every entry");
#endif
}

#endif /* PGTABLE_KUNIT_PMD_SWP */

static struct kunit_case softleaf_cases[] = {
	KUNIT_CASE(softleaf_types),
	KUNIT_CASE(softleaf_pte_round_trip),
	KUNIT_CASE_PARAM(softleaf_answers, leaf_question_gen_params),
	KUNIT_CASE(softleaf_of_present),
	KUNIT_CASE(softleaf_values),
	KUNIT_CASE(softleaf_pfn_young_dirty),
	KUNIT_CASE(softleaf_pages),
#ifdef PGTABLE_KUNIT_PMD_SWP
	KUNIT_CASE(softleaf_pmd_round_trip),
	KUNIT_CASE(softleaf_pmd_folio),
	KUNIT_CASE(softleaf_pmd_of_present),
#endif
	{}
};

static struct kunit_suite softleaf_suite = {
	.name = "softleaf",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.exit = pgtable_kunit_exit,
	.test_cases = softleaf_cases,
};

kunit_test_suite(softleaf_suite);

MODULE_DESCRIPTION("KUnit tests for entries that are not present");
MODULE_LICENSE("GPL");
