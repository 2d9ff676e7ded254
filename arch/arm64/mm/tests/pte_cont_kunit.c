// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous bit of one arm64 entry.
 *
 * The bit has a meaning only in a valid entry. Only the functions that work on
 * entries in a table may use it: the getters may return the bit, but a setter
 * ignores it in the caller's value. In an entry that is not valid, bit 52 may
 * mean something else, and the entry is not a part of a block.
 *
 * The suite uses synthetic tables and values. It also runs without
 * CONFIG_ARM64_CONTPTE, where no function uses the bit. Not covered: folding
 * and unfolding of blocks (contpte_fold), ranges (contpte).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'pte_cont'
 */

#include <kunit/test.h>
#include <linux/log2.h>
#include <linux/sizes.h>

#include "pte_run.h"

/*
 * The first part of a range ends at the end of its block, or at the end of the
 * range if that comes first. The case tries all starts in a block, and all ends
 * up to one page past the next block. The block is the first block, a block in
 * the middle, or one of the last three blocks of the address space. At the end
 * of the address space both ends can wrap to 0.
 */
static void pte_cont_addr_end_of_block(struct kunit *test)
{
	const unsigned long blocks[] = {
		0, 7 * CONT_PTE_SIZE, -3 * CONT_PTE_SIZE, -2 * CONT_PTE_SIZE,
		-CONT_PTE_SIZE,
	};
	unsigned int n, start, nr, failed = 0;

	for (n = 0; n < ARRAY_SIZE(blocks); n++) {
		for (start = 0; start < CONT_PTES; start++) {
			unsigned long addr = blocks[n] + start * PAGE_SIZE;
			unsigned int left = CONT_PTES - start;

			for (nr = 1; nr <= left + CONT_PTES + 1; nr++) {
				unsigned long end = addr + nr * PAGE_SIZE, got;
				unsigned long want = addr + min(nr, left) * PAGE_SIZE;

				/* There is no address after the last one. */
				if (end && end < addr)
					break;
				got = pte_cont_addr_end(addr, end);
				KUNIT_EXPECT_EQ_MSG(test, got, want,
						    "from %#lx to %#lx", addr, end);
				if (got != want && ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
		cond_resched();
	}
}

/*
 * The architecture defines the size of a block for each page size, and a table
 * contains whole blocks.
 */
static void cont_pte_geometry(struct kunit *test)
{
	unsigned long want = SZ_2M;

	if (PAGE_SIZE == SZ_4K)
		want = SZ_64K;
	KUNIT_EXPECT_EQ(test, CONT_PTE_SIZE, want);
	KUNIT_EXPECT_EQ(test, CONT_PTES * PAGE_SIZE, CONT_PTE_SIZE);
	KUNIT_EXPECT_EQ(test, ~(CONT_PTE_SIZE - 1), CONT_PTE_MASK);
	KUNIT_EXPECT_TRUE(test, is_power_of_2(CONT_PTES));
	KUNIT_EXPECT_EQ(test, PTRS_PER_PTE % CONT_PTES, 0);
}

/*
 * An entry with the contiguous bit maps a part of a block, and the profiler
 * reports the size of the block. An entry without it maps a page or a huge page.
 */
static void leaf_size_of_block(struct kunit *test)
{
	pte_t pte = pfn_pte(0, PAGE_KERNEL);
	pmd_t pmd = pmd_mkhuge(pfn_pmd(0, PAGE_KERNEL));

	KUNIT_EXPECT_EQ(test, pte_leaf_size(pte), PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, pte_leaf_size(pte_mkcont(pte)), CONT_PTE_SIZE);
	KUNIT_EXPECT_EQ(test, pmd_leaf_size(pmd), PMD_SIZE);
	KUNIT_EXPECT_EQ(test, pmd_leaf_size(pmd_mkcont(pmd)), CONT_PMD_SIZE);
}

/*
 * set_pte() and set_pte_at() do not write a contiguous bit that leaked from a
 * getter, whether the entry is valid or PROT_NONE. The private function
 * __set_ptes(), for mappings that manage the contiguous bit themselves, writes
 * its argument unchanged. Without CONFIG_ARM64_CONTPTE the public functions are
 * the private functions.
 */
static void set_pte_leaked_bit(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	struct folio *folio = pgtable_kunit_folio_alloc(test, 0);
	pte_t pte, cont;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pte = pfn_pte(folio_pfn(folio),
			      vm_get_page_prot(i ? VM_NONE : VM_READ));
		pte = pte_mkspecial(pte);
		cont = set_pte_bit(pte, __pgprot(PTE_CONT));
		pgtable_kunit_table_reset(table);

		set_pte_at(table->mm, pgtable_kunit_table_addr(table, 0),
			   table->pte, cont);
		set_pte(table->pte + 1, cont);
		__set_ptes(table->mm, pgtable_kunit_table_addr(table, 2),
			   table->pte + 2, cont, 1);

		if (!IS_ENABLED(CONFIG_ARM64_CONTPTE))
			pte = cont;
		table->want[0] = pte;
		table->want[1] = pte;
		table->want[2] = cont;
		pgtable_kunit_table_check(table, "%s with PTE_CONT",
					  i ? "PROT_NONE" : "a valid entry");
	}
}

/*
 * From entry i of a contiguous block a batch may continue to the end of the
 * block: CONT_PTES - i entries, not CONT_PTES. For any other entry the hint is
 * 1, even if an entry that is not valid has the bit. Without
 * CONFIG_ARM64_CONTPTE the hint is 1 for all entries. The case tries all places
 * in a table.
 */
static void pte_batch_hint_to_block_end(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	unsigned int i, n, want;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		pte_t valid = pfn_pte(PHYS_PFN(SZ_1G), vm_get_page_prot(VM_READ));
		pte_t none = pte_modify(valid, vm_get_page_prot(VM_NONE));
		pgprot_t cont = __pgprot(PTE_CONT);
		const pte_t single[] = {
			__pte(0), valid, none, set_pte_bit(none, cont),
			swp_entry_to_pte(swp_entry(1, BIT(52 - 12))),
		};

		want = IS_ENABLED(CONFIG_ARM64_CONTPTE) ?
		       CONT_PTES - i % CONT_PTES : 1;
		KUNIT_EXPECT_EQ_MSG(test, want,
				    pte_batch_hint(table->pte + i,
						   set_pte_bit(valid, cont)),
				    "entry %u", i);
		for (n = 0; n < ARRAY_SIZE(single); n++)
			KUNIT_EXPECT_EQ_MSG(test, 1,
					    pte_batch_hint(table->pte + i,
							   single[n]),
					    "entry %u, %016llx", i,
					    pte_val(single[n]));
	}
}

/* Functions that a caller may use for an entry that is not valid. */
static bool nonvalid_wanted(const struct pte_case *pc)
{
	return pc->id != PTE_OP_HINT && pc->op->finds != PTE_OP_FINDS_NOTHING &&
	       !pc->op->missing &&
	       (pc->op->does == PTE_OP_READS || pc->op->does == PTE_OP_CLEARS ||
		(pc->id == PTE_OP_SET_PTE_AT && !pc->flags));
}

static PGTABLE_KUNIT_GEN_PARAMS(nonvalid_op)
{
	return pte_case_next(&pte_arch_backend, prev, nonvalid_wanted, desc);
}

/* The only entry that a function sets is none. */
static pte_t nonvalid_encode(const struct pte_ctx *c,
			     const struct pte_model_entry *e)
{
	return __pte(0);
}

static const struct pte_format nonvalid_format = { .encode = nonvalid_encode };

/*
 * An entry that is not valid and has bit 52 is not a part of a block. A
 * function that reads or clears such an entry does not change the neighbours,
 * and returns exactly the bits of the entry. In this case the neighbours are
 * valid, and some are young, so an unfold would change them. The entry is a
 * swap entry or PROT_NONE, at each place of a block.
 */
static void nonvalid_cont_is_no_block(struct kunit *test)
{
	const struct pte_case pc = pte_case_get(&pte_arch_backend,
						test->param_value);
	struct pte_ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct pte_step step = { .op = pc.id, .flags = pc.flags, .nr = 1 };
	unsigned int kind, i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	pte_ctx_init(c, test, &nonvalid_format, ilog2(CONT_PTES));
	for (kind = 0; kind < 2; kind++) {
		for (step.idx = 0; step.idx < CONT_PTES; step.idx++) {
			struct pte_model_entry *e = &c->model.entry[step.idx];
			pte_t *want = c->table->want + step.idx;

			pte_ctx_reset(c);
			for (i = 0; i < CONT_PTES; i++) {
				pte_t pte = pfn_pte(c->pfn + i,
						    vm_get_page_prot(VM_READ));

				if (i == step.idx && kind)
					pte = pte_modify(pte, vm_get_page_prot(VM_NONE));
				else if (i == step.idx)
					pte = swp_entry_to_pte(swp_entry(1, i));
				else
					pte = i % 2 ? pte_mkold(pte) : pte;
				if (i == step.idx)
					pte = set_pte_bit(pte, __pgprot(PTE_CONT));
				pgtable_kunit_table_set(c->table, i, pte);
			}
			e->kind = kind ? MODEL_PROTNONE : MODEL_SWAP;
			pte_op_make(c, &step);
			if (c->model.returns == MODEL_RETURNS_ENTRY)
				KUNIT_EXPECT_EQ_MSG(test, pte_val(c->got),
						    pte_val(*want), "%s of entry %u",
						    pc.desc, step.idx);
			if (e->kind == MODEL_NONE)
				*want = __pte(0);
			if (!pgtable_kunit_table_check(c->table, "%s of entry %u, %s with bit 52",
						       pc.desc, step.idx,
						       kind ? "PROT_NONE" : "swap"))
				return;
		}
	}
}

/* The entries of the block, and the entry that set_pte() writes into it. */
struct set_over {
	pte_t *ptep;
	pte_t pte;
};

static void set_over(void *data)
{
	struct set_over *over = data;

	set_pte(over->ptep, over->pte);
}

/*
 * set_pte() knows neither mm nor address, so it cannot unfold a block. If
 * set_pte() replaces an entry of a block, it warns, and writes its argument
 * without the contiguous bit. The neighbours do not change. If it replaces any
 * other entry, it does not warn. The case replaces the first, an inner and the
 * last entry of a block.
 */
static void set_pte_over_block(struct kunit *test)
{
	static const unsigned int places[] = { 0, 3, CONT_PTES - 1 };
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	struct folio *folio = pgtable_kunit_folio_alloc(test, ilog2(CONT_PTES));
	unsigned int cont, n, i, warned = 0;

	for (cont = 0; cont <= 1; cont++) {
		for (n = 0; n < ARRAY_SIZE(places); n++) {
			struct set_over over;
			int warnings;

			pgtable_kunit_table_reset(table);
			for (i = 0; i < CONT_PTES; i++) {
				over.pte = pfn_pte(folio_pfn(folio) + i,
						   vm_get_page_prot(VM_READ));
				if (cont)
					over.pte = set_pte_bit(over.pte,
							       __pgprot(PTE_CONT));
				pgtable_kunit_table_set(table, i, over.pte);
			}
			over.ptep = table->pte + places[n];
			over.pte = pte_mkdirty(pgtable_kunit_raw_get(over.ptep));
			warnings = pgtable_kunit_count_warnings(test, set_over,
								&over);
			if (warnings < 0)
				kunit_skip(test, "no kunit_warning_suppress()");
			KUNIT_EXPECT_EQ_MSG(test, warnings,
					    cont && IS_ENABLED(CONFIG_ARM64_CONTPTE),
					    "entry %u of %s", places[n],
					    cont ? "a block" : "no block");
			warned += warnings;
			if (IS_ENABLED(CONFIG_ARM64_CONTPTE))
				over.pte = clear_pte_bit(over.pte,
							 __pgprot(PTE_CONT));
			table->want[places[n]] = over.pte;
			pgtable_kunit_table_check(table, "set_pte of entry %u",
						  places[n]);
		}
	}
	if (IS_ENABLED(CONFIG_ARM64_CONTPTE))
		PGTABLE_KUNIT_DID(test, warned, "warnings");
}

/*
 * contpte.c does not make blocks of contiguous PMDs. So when such a PMD is made
 * old, only this entry loses the accessed bit. The neighbours and all
 * contiguous bits do not change. The case tries each entry of a block, young
 * and old.
 */
static void pmdp_test_and_clear_young_alone(struct kunit *test)
{
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	struct vm_area_struct vma = { .vm_mm = table->mm };
	unsigned int young, idx, i, aged = 0;

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no ageing of PMDs");
	for (young = 0; young <= 1; young++) {
		for (idx = 0; idx < CONT_PMDS; idx++) {
			pmd_t *pmdp = (pmd_t *)table->pte;
			pmd_t pmd;
			int got;

			/*
			 * The entries map no page, since
			 * CONFIG_PAGE_TABLE_CHECK has not recorded these PMDs.
			 */
			for (i = 0; i < CONT_PMDS; i++) {
				pmd = pfn_pmd(i << (PMD_SHIFT - PAGE_SHIFT),
					      PAGE_KERNEL_RO);
				pmd = pmd_mkcont(pmd_mkyoung(pmd_mkhuge(pmd)));
				if (i == idx && !young)
					pmd = pmd_mkold(pmd);
				pmdp[i] = pmd;
				table->want[i] = pmd_pte(pmd);
			}
			got = pmdp_test_and_clear_young(&vma,
							table->addr + idx * PMD_SIZE,
							pmdp + idx);
			KUNIT_EXPECT_EQ_MSG(test, got, young, "entry %u", idx);
			table->want[idx] = pte_mkold(table->want[idx]);
			if (!pgtable_kunit_table_check(table, "ageing of PMD %u",
						       idx))
				return;
			memset(table->pte, 0, PAGE_SIZE);
			aged++;
		}
	}
	PGTABLE_KUNIT_DID(test, aged, "PMDs aged");
}

static struct kunit_case pte_cont_cases[] = {
	KUNIT_CASE(pte_cont_addr_end_of_block),
	KUNIT_CASE(cont_pte_geometry),
	KUNIT_CASE(leaf_size_of_block),
	KUNIT_CASE(set_pte_leaked_bit),
	KUNIT_CASE(pte_batch_hint_to_block_end),
	KUNIT_CASE_PARAM(nonvalid_cont_is_no_block, nonvalid_op_gen_params),
	KUNIT_CASE(set_pte_over_block),
	KUNIT_CASE(pmdp_test_and_clear_young_alone),
	{}
};

static struct kunit_suite pte_cont_suite = {
	.name = "pte_cont",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = pte_cont_cases,
};

kunit_test_suite(pte_cont_suite);

MODULE_DESCRIPTION("KUnit tests for the contiguous bit of one arm64 entry");
MODULE_LICENSE("GPL");
