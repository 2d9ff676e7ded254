// SPDX-License-Identifier: GPL-2.0
/*
 * set_ptes(): map a number of pages in a row with one call.
 *
 * Most architectures use the generic loop. If an architecture has its own loop,
 * both set_ptes() and pte_advance_pfn() advance the page frame number, and they
 * have to agree. A mistake maps pages of another owner. The case calls the real
 * function on a synthetic table. It compares each entry with an entry that it
 * makes from the page frame number of this page, without either function. It
 * does the same with pte_advance_pfn(), for pages that no machine has. Another
 * case calls functions on single entries that the tables of functions do not
 * contain.
 *
 * Not covered: contiguous entries (contpte), entries that are not empty.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests set_ptes
 */

#include <kunit/test.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/preempt.h>

#include "pgtable_kunit.h"

/*
 * Number of pages to map: more than the largest batch that is handled
 * specially.
 */
#define SET_ORDER	6

static const struct set_kind {
	const char *desc;
	unsigned long vm_flags;
	bool young;
	bool dirty;
} set_kinds[] = {
	{ "read-only, old, clean", VM_READ, false, false },
	{ "writable, young, dirty", VM_READ | VM_WRITE, true, true },
	/* Some architectures store the inverse of the page frame number. */
	{ "PROT_NONE, young", VM_NONE, true, false },
};

KUNIT_ARRAY_PARAM_DESC(set_kind, set_kinds, desc);

static pte_t set_pte_for(unsigned long pfn, const struct set_kind *kind)
{
	pte_t pte = pfn_pte(pfn, vm_get_page_prot(kind->vm_flags | VM_SHARED));

	pte = pte_mkold(pte_mkclean(pte));
	if (kind->young)
		pte = pte_mkyoung(pte);
	if (kind->dirty)
		pte = pte_mkdirty(pte);
	return pte;
}

/* Known issue 2: UML advances by the number of entries that are left. */
static bool set_is_issue_2(pte_t *ptep, unsigned long pfn, unsigned int nr)
{
	unsigned int i;

	if (!IS_ENABLED(CONFIG_UML) || nr < 3)
		return false;
	for (i = 0; i < nr; i++) {
		if (pte_pfn(ptep_get(ptep + i)) != pfn)
			return false;
		pfn += nr - 1 - i;
	}
	return true;
}

/*
 * Known issue 22 (arm64): set_ptes() makes whole blocks of PROT_NONE entries
 * contiguous. In 6.12 this also makes the entries valid.
 */
#ifdef CONFIG_ARM64_CONTPTE
#define SET_SHOWS_ISSUE_22	(BIT(SET_ORDER) >= CONT_PTES)

static bool set_is_issue_22(pte_t pte, pte_t want)
{
	return !pte_valid(want) && pte_same(pte, pte_mkcont(want));
}
#else
#define SET_SHOWS_ISSUE_22	false

static bool set_is_issue_22(pte_t pte, pte_t want)
{
	return false;
}
#endif

/*
 * set_ptes() maps each number of pages, at the start, inside and at the end of
 * a table. Entry i maps page i, with all bits of the first entry except the
 * contiguous bit. No other entry changes.
 */
static void set_ptes_consecutive_pages(struct kunit *test)
{
	const struct set_kind *kind = test->param_value;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *folio = pgtable_kunit_folio_alloc(test, SET_ORDER);
	unsigned int nr, place, i, skipped = 0, folded = 0;
	bool skips;

	for (nr = 1; nr <= folio_nr_pages(folio); nr++) {
		const unsigned int places[] = { 0, 3, PTRS_PER_PTE - nr };

		for (place = 0; place < ARRAY_SIZE(places); place++) {
			unsigned long pfn = folio_pfn(folio);
			unsigned int idx = places[place];

			pgtable_kunit_table_reset(table);
			set_ptes(table->mm,
				 pgtable_kunit_table_addr(table, idx),
				 table->pte + idx, set_pte_for(pfn, kind), nr);

			skips = set_is_issue_2(table->pte + idx, pfn, nr);
			if (skips)
				skipped++;
			for (i = 0; i < nr; i++) {
				pte_t pte = ptep_get(table->pte + idx + i);
				pte_t want = set_pte_for(skips ? pte_pfn(pte) :
							 pfn + i, kind);

				if (set_is_issue_22(pte, want)) {
					folded++;
					continue;
				}
				if (pte_present(pte) &&
				    pte_same(pgtable_kunit_plain(pte),
					     pgtable_kunit_plain(want)))
					continue;
				KUNIT_FAIL(test,
					   "%s: set_ptes of %u at %u: entry %u is %llx, expected %llx",
					   kind->desc, nr, idx, i,
					   (u64)pte_val(pte),
					   (u64)pte_val(want));
				return;
			}
			memcpy(table->want + idx, table->pte + idx,
			       nr * sizeof(pte_t));
			if (!pgtable_kunit_table_check(table, "set_ptes of %u at %u",
						       nr, idx))
				return;
		}
	}
	if (skipped)
		pgtable_kunit_known_issue(test, 2,
					  "set_ptes skips pages in %u calls",
					  skipped);
	else if (IS_ENABLED(CONFIG_UML))
		pgtable_kunit_stale_issue(test, 2);
	if (folded)
		pgtable_kunit_known_issue(test, 22,
					  "%u PROT_NONE entries become contiguous",
					  folded);
	else if (SET_SHOWS_ISSUE_22 && kind->vm_flags == VM_NONE)
		pgtable_kunit_stale_issue(test, 22);
}

/*
 * State that a caller may have switched off, and that set_ptes() must not
 * change.
 */
struct set_context {
	int preempt;
	bool irqs_off;
	bool lazy;
};

static struct set_context set_context(void)
{
	return (struct set_context) {
		.preempt = preempt_count(),
		.irqs_off = irqs_disabled(),
#ifdef CONFIG_ARCH_HAS_LAZY_MMU_MODE
		.lazy = is_lazy_mmu_mode_active(),
#endif
	};
}

/*
 * set_ptes() must not sleep, and must not switch preemption or interrupts on if
 * its caller has switched them off. Its callers hold a spinlock, have
 * interrupts off, or are vmalloc() and ioremap(). On powerpc it once entered
 * lazy MMU mode, which disabled preemption and enabled it again although the
 * caller had disabled it. The case sets one page, and more pages than a block
 * has. CONFIG_DEBUG_ATOMIC_SLEEP=y makes a sleep visible.
 */
static void set_ptes_atomic(struct kunit *test)
{
	const struct set_kind *kind = test->param_value;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *folio = pgtable_kunit_folio_alloc(test, SET_ORDER);
	static const unsigned int nrs[] = { 1, BIT(SET_ORDER) };
	unsigned int irqs_off, i, calls = 0;

	for (irqs_off = 0; irqs_off <= 1; irqs_off++) {
		for (i = 0; i < ARRAY_SIZE(nrs); i++) {
			struct set_context before, after;
			unsigned long flags = 0;

			pgtable_kunit_table_reset(table);
			preempt_disable();
			if (irqs_off)
				local_irq_save(flags);
			before = set_context();
			set_ptes(table->mm, table->addr, table->pte,
				 set_pte_for(folio_pfn(folio), kind), nrs[i]);
			after = set_context();
			if (irqs_off)
				local_irq_restore(flags);
			preempt_enable();

			KUNIT_EXPECT_EQ(test, before.irqs_off, irqs_off);
			KUNIT_EXPECT_EQ(test, after.irqs_off, irqs_off);
			KUNIT_EXPECT_EQ(test, after.preempt, before.preempt);
			KUNIT_EXPECT_EQ(test, after.lazy, before.lazy);
			KUNIT_EXPECT_TRUE(test,
					  pte_present(ptep_get(table->pte + nrs[i] - 1)));
			calls++;
		}
	}
	pgtable_kunit_table_reset(table);
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/**
 * struct set_one - a function that changes one entry
 * @desc: its name
 * @call: calls it. Returns the entry that the function returned, or the entry
 *	that the caller had read before
 * @sets: it writes the new entry; otherwise it clears the entry
 * @flushes: it invalidates the translation
 */
struct set_one {
	const char *desc;
	pte_t (*call)(struct vm_area_struct *vma, unsigned long addr, pte_t *ptep,
		      pte_t new);
	bool sets;
	bool flushes;
};

static pte_t one_clear(struct vm_area_struct *vma, unsigned long addr,
		       pte_t *ptep, pte_t new)
{
	pte_t pte = ptep_get(ptep);

	ptep_clear(vma->vm_mm, addr, ptep);
	return pte;
}

static pte_t one_clear_flush(struct vm_area_struct *vma, unsigned long addr,
			     pte_t *ptep, pte_t new)
{
	return ptep_clear_flush(vma, addr, ptep);
}

static pte_t one_modify_prot(struct vm_area_struct *vma, unsigned long addr,
			     pte_t *ptep, pte_t new)
{
	pte_t pte = ptep_modify_prot_start(vma, addr, ptep);

	ptep_modify_prot_commit(vma, addr, ptep, pte, new);
	return pte;
}

static const struct set_one set_ones[] = {
	{ "ptep_clear", one_clear },
	{ "ptep_clear_flush", one_clear_flush, .flushes = true },
	{ "ptep_modify_prot_commit", one_modify_prot, .sets = true },
};

/*
 * Did the last call invalidate exactly the page if it must, and otherwise
 * nothing?
 */
static bool set_one_flushed(const struct pgtable_kunit_tlb *tlb, bool must,
			    unsigned long addr)
{
	if (!tlb)
		return true;
	return tlb->nr == must && (!must || (tlb->range[0].start == addr &&
					     tlb->range[0].end == addr + PAGE_SIZE));
}

/*
 * The functions for one entry, called as page faults, khugepaged and writeback
 * call them: each returns the old entry, and leaves the entry empty or writes
 * the new one. The entries before and after it stay unchanged. Only
 * ptep_clear_flush() invalidates the translation, and only if the CPU may use
 * the entry, so not for PROT_NONE. The invalidations are compared on arm64.
 */
static void ptep_changes_one_entry(struct kunit *test)
{
	const struct set_kind *kind = test->param_value;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *folio = pgtable_kunit_folio_alloc(test, SET_ORDER);
	struct vm_area_struct *vma = kunit_kzalloc(test, sizeof(*vma), GFP_KERNEL);
	unsigned int places[] = { 0, 3, PTRS_PER_PTE - 1 }, i, place, calls = 0;
	struct pgtable_kunit_tlb *tlb = NULL;

	KUNIT_ASSERT_NOT_NULL(test, vma);
	vma->vm_mm = table->mm;
	if (IS_ENABLED(CONFIG_ARM64))
		tlb = pgtable_kunit_tlb_record(test, table->mm);
	for (i = 0; i < ARRAY_SIZE(set_ones); i++) {
		const struct set_one *one = &set_ones[i];

		for (place = 0; place < ARRAY_SIZE(places); place++) {
			int idx = places[place];
			unsigned long addr = pgtable_kunit_table_addr(table, idx);
			pte_t before, after, ret, new;

			pgtable_kunit_table_reset(table);
			if (idx)
				pgtable_kunit_table_set(table, idx - 1,
							set_pte_for(folio_pfn(folio), kind));
			pgtable_kunit_table_set(table, idx,
						set_pte_for(folio_pfn(folio) + 1, kind));
			if (idx < PTRS_PER_PTE - 1)
				pgtable_kunit_table_set(table, idx + 1,
							set_pte_for(folio_pfn(folio) + 2, kind));
			before = ptep_get(table->pte + idx);
			new = pte_mkold(pte_wrprotect(before));
			if (tlb)
				tlb->nr = 0;
			ret = one->call(vma, addr, table->pte + idx, new);
			calls++;
			after = ptep_get(table->pte + idx);
			KUNIT_EXPECT_TRUE_MSG(test, one->sets ?
					      pte_same(pgtable_kunit_plain(after),
						       pgtable_kunit_plain(new)) :
					      pte_none(after), "%s at %d: %llx",
					      one->desc, idx, (u64)pte_val(after));
			table->want[idx] = table->pte[idx];
			KUNIT_EXPECT_TRUE_MSG(test, pte_same(pgtable_kunit_plain(ret),
							     pgtable_kunit_plain(before)),
					      "%s at %d", one->desc, idx);
			KUNIT_EXPECT_TRUE_MSG(test,
					      set_one_flushed(tlb, one->flushes &&
							      kind->vm_flags != VM_NONE, addr),
					      "%s at %d: %u invalidations", one->desc,
					      idx, tlb ? tlb->nr : 0);
			if (!pgtable_kunit_table_check(table, "%s at %d", one->desc, idx))
				return;
		}
	}
	pgtable_kunit_table_reset(table);
	if (tlb)
		pgtable_kunit_tlb_stop(test, tlb);
	PGTABLE_KUNIT_DID(test, calls, "calls");
}

/* The first bit that a page frame number cannot have. */
static unsigned int set_pfn_bits(void)
{
	pgprot_t prot = vm_get_page_prot(VM_READ);
	unsigned int bit = 0;

	while (bit < BITS_PER_LONG - 1 &&
	       pte_pfn(pfn_pte(BIT(bit), prot)) == BIT(bit))
		bit++;
	return bit;
}

/*
 * Advancing an entry gives the same result as making the entry for the later
 * page. The addition carries into each bit of the page frame number, even if
 * these bits are not contiguous in the entry, and changes no other bit. The
 * steps are 1, odd numbers, and the sizes of a contiguous block and of folios.
 */
static void pte_advance_pfn_carries(struct kunit *test)
{
	static const unsigned int steps[] = { 1, 2, 3, 16, 31, 128, 512 };
	const struct set_kind *kind = test->param_value;
	unsigned int bits = set_pfn_bits(), bit, i, back;

	KUNIT_ASSERT_GT(test, bits, 20);
	for (bit = 10; bit < bits; bit++) {
		for (i = 0; i < ARRAY_SIZE(steps); i++) {
			for (back = 0; back <= steps[i]; back++) {
				unsigned long pfn = BIT(bit) - back;
				pte_t pte = set_pte_for(pfn, kind), got, want;

				want = set_pte_for(pfn + steps[i], kind);
				got = pte_advance_pfn(pte, steps[i]);
				if (steps[i] == 1 &&
				    !pte_same(pte_next_pfn(pte), got))
					got = pte_next_pfn(pte);
				if (pte_same(got, want))
					continue;
				KUNIT_FAIL(test,
					   "%s: page frame %#lx and %u more: %016llx becomes %016llx, expected %016llx",
					   kind->desc, pfn, steps[i],
					   (u64)pte_val(pte), (u64)pte_val(got),
					   (u64)pte_val(want));
				return;
			}
		}
	}
	kunit_info(test, "page frame numbers of %u bits\n", bits);
}

static struct kunit_case set_ptes_cases[] = {
	KUNIT_CASE_PARAM(set_ptes_consecutive_pages, set_kind_gen_params),
	KUNIT_CASE_PARAM(set_ptes_atomic, set_kind_gen_params),
	KUNIT_CASE_PARAM(ptep_changes_one_entry, set_kind_gen_params),
	KUNIT_CASE_PARAM(pte_advance_pfn_carries, set_kind_gen_params),
	{}
};

static struct kunit_suite set_ptes_suite = {
	.name = "set_ptes",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_table_init,
	.test_cases = set_ptes_cases,
};

kunit_test_suite(set_ptes_suite);

MODULE_DESCRIPTION("KUnit tests for set_ptes()");
MODULE_LICENSE("GPL");
