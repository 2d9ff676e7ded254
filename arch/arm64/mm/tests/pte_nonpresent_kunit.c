// SPDX-License-Identifier: GPL-2.0
/*
 * arm64 entries that are not present.
 *
 * Hardware ignores an entry that is not present. So swap and migration entries,
 * poisoned pages, device pages and markers use its bits in their own way, even
 * the contiguous bit. The public functions for page-table entries must write
 * and read them unchanged.
 *
 * Each case writes entries to a synthetic table with set_pte_at(), reads them
 * back with every getter, decodes them, and clears them. It tries the bits of
 * an offset one by one, up to the highest bit that a kind of entry can have.
 * Not covered: the code that makes such entries (migration, reclaim, hugetlb);
 * batches of such entries; whether a function treats such an entry as a part of
 * a contiguous block (pte_cont).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'pte_nonpresent'
 */

#include <kunit/test.h>
#include <linux/log2.h>
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "pgtable_kunit.h"

/* The header of a swap device has 32 bits for the number of its last page. */
#define SWAP_OFFSET_BITS	32

/* Bit 52 of an entry, as a bit of the offset. */
#define OFFSET_CONT_BIT		(ilog2(PTE_CONT) - __SWP_OFFSET_SHIFT)

static const struct nonpresent_kind {
	const char *desc;
	unsigned int type, end;
	unsigned int offset_bits;	/* 0: the bits of a PFN */
} nonpresent_kinds[] = {
	{ "swap", 0, MAX_SWAPFILES, SWAP_OFFSET_BITS },
	{ "marker", SWP_PTE_MARKER, SWP_PTE_MARKER + 1,
	  ilog2(PTE_MARKER_MASK) + 1 },
#ifdef CONFIG_MIGRATION
	{ "migration, old and clean", SWP_MIGRATION_READ,
	  SWP_MIGRATION_READ + SWP_MIGRATION_NUM },
#endif
#ifdef CONFIG_MEMORY_FAILURE
	{ "hwpoison", SWP_HWPOISON, SWP_HWPOISON + 1 },
#endif
#ifdef CONFIG_DEVICE_PRIVATE
	{ "device", SWP_DEVICE_WRITE, SWP_DEVICE_WRITE + SWP_DEVICE_NUM },
#endif
};

KUNIT_ARRAY_PARAM_DESC(nonpresent_kind, nonpresent_kinds, desc);

/*
 * Write an entry to a place where the kernel tries to fold, read it back with
 * each getter, and clear it. Returns the bits that the write has lost or added.
 * This function checks the reads itself.
 */
static pteval_t round_trip(struct pgtable_kunit_table *table, pte_t pte)
{
	struct kunit *test = table->test;
	unsigned int idx = CONT_PTES - 1;
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	pte_t *ptep = table->pte + idx, raw, got;

	set_pte_at(table->mm, addr, ptep, pte);
	raw = pgtable_kunit_raw_get(ptep);
	got = ptep_get(ptep);
	KUNIT_EXPECT_EQ_MSG(test, pte_val(got), pte_val(raw), "ptep_get()");
	got = ptep_get_lockless(ptep);
	KUNIT_EXPECT_EQ_MSG(test, pte_val(got), pte_val(raw),
			    "ptep_get_lockless()");
	KUNIT_EXPECT_FALSE_MSG(test, pte_present(got), "%016llx", pte_val(got));

	table->want[idx] = raw;
	pgtable_kunit_table_check(table, "set_pte_at of %016llx", pte_val(pte));
	table->want[idx] = __pte(0);

	got = ptep_get_and_clear(table->mm, addr, ptep);
	KUNIT_EXPECT_EQ_MSG(test, pte_val(got), pte_val(raw),
			    "ptep_get_and_clear()");
	pgtable_kunit_table_check(table, "ptep_get_and_clear of %016llx",
				  pte_val(raw));
	return pte_val(raw) ^ pte_val(pte);
}

/* Whether the entry can be decoded to the values that it was made from. */
static bool decodes(pte_t pte, unsigned int type, unsigned long offset,
		    unsigned int flags)
{
	swp_entry_t entry = pgtable_kunit_swp_entry(pte);

	return swp_type(entry) == type && swp_offset(entry) == offset &&
	       !!pte_swp_exclusive(pte) == !!(flags & BIT(0)) &&
	       !pte_swp_exclusive(pte_swp_clear_exclusive(pte)) &&
	       !!pgtable_kunit_swp_uffd(pte) == !!(flags & BIT(1));
}

/*
 * An entry of every type can be read back unchanged, and decoded to the values
 * that it was made from. Its offset has no bit, each single bit, or all bits.
 * It is exclusive or not, and write-protected by userfaultfd or not. The number
 * of offset bits depends on the kind of entry: the bits of a swap offset, of a
 * PFN, or of the flags of a marker.
 */
static void set_pte_at_nonpresent(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	const struct nonpresent_kind *kind = test->param_value;
	unsigned int max = kind->offset_bits ?: SWP_PFN_BITS;
	unsigned int type, bit, flags, entries = 0;

	for (type = kind->type; type < kind->end; type++) {
		for (bit = 0; bit < max + 2; bit++) {
			unsigned long offset = bit < max ? BIT(bit) :
					       bit == max ? 0 : BIT(max) - 1;

			for (flags = 0; flags < 4; flags++) {
				swp_entry_t entry = swp_entry(type, offset);
				pte_t pte = swp_entry_to_pte(entry);

				if (flags & BIT(0))
					pte = pte_swp_mkexclusive(pte);
				if (flags & BIT(1))
					pte = pgtable_kunit_swp_mkuffd(pte);
				/*
				 * No entry is both write-protected and
				 * writable.
				 */
				if (flags & BIT(1) &&
				    (!pgtable_kunit_swp_uffd(pte) ||
				     pgtable_kunit_swp_writable(type)))
					continue;
				/* Offset 0 of type 0 is an empty entry. */
				if (pte_none(swp_entry_to_pte(entry)))
					continue;

				entries++;
				if (decodes(pte, type, offset, flags) &&
				    !round_trip(table, pte))
					continue;
				KUNIT_FAIL(test,
					   "%s: type %u, offset %#lx, flags %u, entry %016llx does not come back",
					   kind->desc, type, offset, flags,
					   pte_val(pte));
				return;
			}
		}
		cond_resched();
	}
	PGTABLE_KUNIT_DID(test, entries, "entries");
}

/*
 * A setter must keep each offset bit that the architecture has and that
 * swapon() would allow, since some kind of entry could use it. Known issue 1:
 * one of these bits is PTE_CONT, and set_ptes() clears it. Today only migration
 * entries have such large offsets.
 */
static void set_pte_at_offset_bits(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	pteval_t lost = 0, cont = 0;
	unsigned int bit;

	for (bit = 0; bit < __SWP_OFFSET_BITS; bit++) {
		pte_t pte = swp_entry_to_pte(swp_entry(1, BIT(bit)));
		pteval_t diff;

		KUNIT_EXPECT_TRUE_MSG(test, decodes(pte, 1, BIT(bit), 0),
				      "offset bit %u, %016llx", bit,
				      pte_val(pte));
		diff = round_trip(table, pte);
		if (bit == OFFSET_CONT_BIT && diff == PTE_CONT)
			cont = diff;
		else
			lost |= diff;
	}
	KUNIT_EXPECT_EQ(test, lost, 0);
	if (cont)
		pgtable_kunit_known_issue(test, 1,
					  "an offset loses bit %u, which is PTE_CONT in the entry",
					  OFFSET_CONT_BIT);
	else if (IS_ENABLED(CONFIG_ARM64_CONTPTE))
		pgtable_kunit_stale_issue(test, 1);
}

static const struct migration_kind {
	const char *desc;
	bool young;
	bool dirty;
} migration_kinds[] = {
	{ "young", true, false },
	{ "dirty", false, true },
	{ "young and dirty", true, true },
};

KUNIT_ARRAY_PARAM_DESC(migration_kind, migration_kinds, desc);

#ifdef CONFIG_MIGRATION

static swp_entry_t migration_entry(const struct migration_kind *kind,
				   unsigned int type, unsigned long pfn)
{
	swp_entry_t entry = swp_entry(type, pfn);

	if (kind->young)
		entry = make_migration_entry_young(entry);
	if (kind->dirty)
		entry = make_migration_entry_dirty(entry);
	return entry;
}

/*
 * A migration entry of each type records whether the page was young and dirty,
 * with any PFN. Known issue 1: the young bit may be PTE_CONT.
 */
static void set_pte_at_migration_young_dirty(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	const struct migration_kind *kind = test->param_value;
	bool shared = kind->young && SWP_MIG_YOUNG_BIT == OFFSET_CONT_BIT;
	pteval_t lost = 0, kept = shared ? PTE_CONT : 0;
	unsigned int i, n;

	if (!migration_entry_supports_ad())
		kunit_skip(test, "migration entries have no young bit");

	for (i = 0; i < SWP_MIGRATION_NUM; i++) {
		for (n = 0; n < SWP_PFN_BITS + 1; n++) {
			unsigned int type = SWP_MIGRATION_READ + i;
			unsigned long pfn = n < SWP_PFN_BITS ? BIT(n) :
							       SWP_PFN_MASK;
			swp_entry_t entry = migration_entry(kind, type, pfn);
			unsigned long offset = pfn;
			pte_t pte = swp_entry_to_pte(entry);
			pteval_t diff;

			if (kind->young)
				offset |= SWP_MIG_YOUNG;
			if (kind->dirty)
				offset |= SWP_MIG_DIRTY;
			KUNIT_EXPECT_TRUE_MSG(test, decodes(pte, type, offset, 0),
					      "type %u, offset %#lx, entry %016llx",
					      type, offset, pte_val(pte));
			diff = round_trip(table, pte);
			lost |= diff;
			kept &= diff;
		}
	}
	/* Every entry lost PTE_CONT, and none lost another bit. */
	if (kept && lost == PTE_CONT) {
		pgtable_kunit_known_issue(test, 1, "%s migration entries lose the young bit",
					  kind->desc);
		return;
	}
	KUNIT_EXPECT_EQ_MSG(test, lost, 0, "%s", kind->desc);
	if (shared && IS_ENABLED(CONFIG_ARM64_CONTPTE))
		pgtable_kunit_stale_issue(test, 1);
}

/*
 * A migration entry of a huge page (PMD) has its own functions. It also records
 * whether the page was young and dirty. Some PFNs here are not the PFN of a
 * huge page, but nothing checks the PFN.
 */
static void set_pmd_at_migration_young_dirty(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_PMD_SWP
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	const struct migration_kind *kind = test->param_value;
	pmd_t *pmdp = (pmd_t *)table->pte;
	unsigned int i, n;

	if (!migration_entry_supports_ad())
		kunit_skip(test, "migration entries have no young bit");

	for (i = 0; i < SWP_MIGRATION_NUM; i++) {
		for (n = 0; n < SWP_PFN_BITS; n++) {
			unsigned int type = SWP_MIGRATION_READ + i;
			swp_entry_t entry = migration_entry(kind, type, BIT(n));
			pmd_t pmd = swp_entry_to_pmd(entry), got;
			swp_entry_t back;

			set_pmd_at(table->mm, table->addr, pmdp, pmd);
			got = READ_ONCE(*pmdp);
			back = pgtable_kunit_pmd_swp_entry(got);
			KUNIT_EXPECT_EQ(test, pmd_val(got), pmd_val(pmd));
			KUNIT_EXPECT_EQ(test, back.val, entry.val);
			KUNIT_EXPECT_FALSE(test, pmd_present(got));
			KUNIT_EXPECT_FALSE(test, pmd_trans_huge(got));
			got = pmdp_huge_get_and_clear(table->mm, table->addr,
						      pmdp);
			KUNIT_EXPECT_EQ(test, pmd_val(got), pmd_val(pmd));
			KUNIT_EXPECT_TRUE(test, pmd_none(READ_ONCE(*pmdp)));
		}
	}
#else
	kunit_skip(test, "no migration entries of huge pages");
#endif
}

#else /* CONFIG_MIGRATION */

static void set_pte_at_migration_young_dirty(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MIGRATION");
}

static void set_pmd_at_migration_young_dirty(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_MIGRATION");
}

#endif /* CONFIG_MIGRATION */

#define EXCLUSIVE_ORDER		4
#define EXCLUSIVE_PAGES		BIT(EXCLUSIVE_ORDER)

static const struct exclusive_kind {
	const char *desc;
	unsigned int order;
} exclusive_kinds[] = {
	{ "single page", 0 },
	{ "folio, all but one page", EXCLUSIVE_ORDER },
};

KUNIT_ARRAY_PARAM_DESC(exclusive_kind, exclusive_kinds, desc);

#ifdef CONFIG_DEVICE_PRIVATE

static pte_t exclusive_entry(unsigned long addr, pte_t *set)
{
	struct mm_struct *mm = current->mm;
	pte_t pte = __pte(0), *ptep;
	spinlock_t *ptl;	/* of the table */

	mmap_read_lock(mm);
	ptep = pte_offset_map_lock(mm, pmd_off(mm, addr), addr, &ptl);
	if (ptep) {
		pte = pgtable_kunit_raw_get(ptep);
		if (set)
			pgtable_kunit_raw_set(mm, addr, ptep, *set);
		pte_unmap_unlock(ptep, ptl);
	}
	mmap_read_unlock(mm);
	return pte;
}

/*
 * Give a device exclusive access to all pages of a range except the last page.
 * Returns the locked folio.
 */
static struct folio *exclusive_folio(struct kunit *test, unsigned long addr,
				     unsigned int nr)
{
	unsigned long last = addr + (nr - 1) * PAGE_SIZE;
	unsigned long end = nr > 1 ? last : addr + PAGE_SIZE;
	struct mm_struct *mm = current->mm;
	struct folio *folio = NULL;

	for (; addr < end; addr += PAGE_SIZE) {
		/*
		 * The older kernel makes all pages of a folio exclusive at
		 * once.
		 */
		if (!pte_present(exclusive_entry(addr, NULL)))
			continue;
		if (folio) {
			folio_unlock(folio);
			folio_put(folio);
		}
		mmap_read_lock(mm);
		folio = pgtable_kunit_make_exclusive(mm, addr);
		mmap_read_unlock(mm);
		KUNIT_ASSERT_NOT_NULL(test, folio);
	}
	if (nr > 1) {
		folio_unlock(folio);
		KUNIT_EXPECT_EQ(test, 0, put_user(1, (int __user *)last));
		folio_lock(folio);
	}
	return folio;
}

/*
 * A page that only a device may access has an entry that is not present.
 * Reclaim checks whether such a page was in use, as for any other page. The
 * entry has no accessed bit, so it must not change; otherwise the page is lost.
 * Known issue 4: the kernel clears the bit all the same. On arm64 this bit is
 * the highest bit of the entry's type. The older kernel does not count such a
 * page as mapped, so it does not search for the entry of a single page. It
 * searches if another page of the folio is mapped: in this case the last page.
 */
static void folio_referenced_device_exclusive(struct kunit *test)
{
	const struct exclusive_kind *kind = test->param_value;
	unsigned int nr = 1U << kind->order, marked = nr > 1 ? nr - 1 : 1, i;
	unsigned int lost = 0, differ = 0;
	pte_t before[EXCLUSIVE_PAGES], after[EXCLUSIVE_PAGES];
	unsigned long vm_flags[8] = {}, addr;
	struct folio *folio;
	bool mapped;

	if (kind->order) {
		if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
			kunit_skip(test, "needs CONFIG_TRANSPARENT_HUGEPAGE");
		if (IS_ENABLED(CONFIG_DEBUG_VM) && pgtable_kunit_source_has_issue(4))
			kunit_skip(test, "with known issue 4 the kernel may warn");
		pgtable_kunit_thp_set(test, BIT(kind->order), true);
	}
	addr = kunit_vm_mmap(test, NULL, 0, 2 * nr * PAGE_SIZE,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	addr = ALIGN(addr, nr * PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, 0, put_user(0x1234, (int __user *)addr));

	folio = exclusive_folio(test, addr, nr);
	KUNIT_EXPECT_EQ(test, folio_order(folio), kind->order);
	mapped = folio_mapped(folio);
	for (i = 0; i < marked; i++) {
		before[i] = exclusive_entry(addr + i * PAGE_SIZE, NULL);
		KUNIT_EXPECT_FALSE(test, pte_present(before[i]));
		KUNIT_EXPECT_FALSE(test, pte_none(before[i]));
	}
	folio_referenced(folio, 1, NULL, (void *)vm_flags);
	for (i = 0; i < marked; i++) {
		after[i] = exclusive_entry(addr + i * PAGE_SIZE, &before[i]);
		if (pte_same(before[i], after[i]))
			continue;
		differ++;
		if (pte_val(before[i]) & PTE_AF &&
		    (pte_val(before[i]) ^ pte_val(after[i])) == PTE_AF)
			lost++;
		else
			KUNIT_FAIL(test, "page %u: %016llx is %016llx", i,
				   pte_val(before[i]), pte_val(after[i]));
	}
	folio_unlock(folio);
	folio_put(folio);

	KUNIT_EXPECT_TRUE(test, mapped || !kind->order);
	if (lost == marked)
		pgtable_kunit_known_issue(test, 4,
					  "folio_referenced() makes %016llx %016llx, type %u has become %u, in %u entries",
					  pte_val(before[0]), pte_val(after[0]),
					  swp_type(pgtable_kunit_swp_entry(before[0])),
					  swp_type(pgtable_kunit_swp_entry(after[0])),
					  lost);
	else
		KUNIT_EXPECT_EQ(test, differ, 0);
	if (!differ && mapped)
		pgtable_kunit_stale_issue(test, 4);
}

#else

static void folio_referenced_device_exclusive(struct kunit *test)
{
	kunit_skip(test, "needs CONFIG_DEVICE_PRIVATE");
}

#endif /* CONFIG_DEVICE_PRIVATE */

static struct kunit_case pte_nonpresent_cases[] = {
	KUNIT_CASE_PARAM(set_pte_at_nonpresent, nonpresent_kind_gen_params),
	KUNIT_CASE(set_pte_at_offset_bits),
	KUNIT_CASE_PARAM(set_pte_at_migration_young_dirty,
			 migration_kind_gen_params),
	KUNIT_CASE_PARAM(set_pmd_at_migration_young_dirty,
			 migration_kind_gen_params),
	KUNIT_CASE_PARAM(folio_referenced_device_exclusive,
			 exclusive_kind_gen_params),
	{}
};

static struct kunit_suite pte_nonpresent_suite = {
	.name = "pte_nonpresent",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = pte_nonpresent_cases,
};

kunit_test_suite(pte_nonpresent_suite);

MODULE_DESCRIPTION("KUnit tests for arm64 entries that are not present");
MODULE_LICENSE("GPL");
