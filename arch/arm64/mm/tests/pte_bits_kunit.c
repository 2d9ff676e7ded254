// SPDX-License-Identifier: GPL-2.0
/*
 * The bits of one arm64 entry.
 *
 * The functions for runs of entries compare, merge and rebuild entries with a
 * few helpers. Each helper changes some bits of a value, and must leave all
 * other bits unchanged. Tables in this file list the bits that a helper
 * changes. They follow the rules for the dirty and the writable state:
 *
 *	dirty writable | PTE_RDONLY PTE_WRITE PTE_DIRTY
 *	  no     no    |     1          0         0
 *	  no     yes   |     1          1         0
 *	  yes    no    |     1          0         1
 *	  yes    yes   |     0          1         any
 *
 * Each helper runs on every combination of these bits. The positions of address
 * bits in an entry are taken from the architecture, not from the macros under
 * test.
 *
 * The suite tests values only. Not covered: entries in a table (pte_cont),
 * entries that are not present (pte_nonpresent), ranges (contpte), the use of
 * the bits by the hardware.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'pte_bits'
 */

#include <kunit/test.h>
#include <linux/sizes.h>

#include "pgtable_kunit.h"

/*
 * The bits that a helper reads or changes, except the address and the memory
 * type.
 */
static const pteval_t bits[] = {
	PTE_VALID, PTE_USER, PTE_RDONLY, PTE_AF, PTE_NG, PTE_GP, PTE_WRITE,
	PTE_CONT, PTE_PXN, PTE_UXN, PTE_DIRTY, PTE_SPECIAL,
	PGTABLE_KUNIT_PTE_UFFD, PTE_PO_IDX_0,
};

#define BITS_COMBINATIONS	BIT(ARRAY_SIZE(bits))

static pteval_t bits_combination(unsigned int nr)
{
	pteval_t val = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bits); i++) {
		if (nr & BIT(i))
			val |= bits[i];
	}
	return val;
}

/*
 * The PFN of a page with many bits set in its address, up to the highest bit.
 */
static unsigned long bits_pfn(void)
{
	phys_addr_t phys = PHYS_MASK & ~(phys_addr_t)0x5a5a5a5a5a5a5a5aULL;

	return phys >> PAGE_SHIFT;
}

/*
 * All entries here map pages, so bit 1 is set, even if the entry is not valid.
 */
static pte_t bits_pte(unsigned int nr)
{
	pteval_t val = PTE_MAYBE_SHARED | (PTE_TYPE_PAGE & ~PTE_VALID) |
		       PTE_ATTRINDX(MT_NORMAL_TAGGED) | bits_combination(nr);

	return pfn_pte(bits_pfn(), __pgprot(val));
}

static void bits_yield(unsigned int i)
{
	if (i % 1024 == 0)
		cond_resched();
}

/*
 * If an entry has the bits @mask equal to @value, the helper sets and clears
 * these bits.
 */
struct helper_rule {
	pteval_t mask;
	pteval_t value;
	pteval_t set;
	pteval_t clear;
};

struct helper {
	const char *desc;
	pte_t (*run)(pte_t pte);
	struct helper_rule rules[3];
	bool valid;		/* only for valid entries */
};

/* Some helpers are macros, so each helper gets a function. */
#define HELPER(name)							\
	static pte_t run_##name(pte_t pte)				\
	{								\
		return name(pte);					\
	}

HELPER(pte_mkclean)
HELPER(pte_mkdirty)
HELPER(pte_wrprotect)
HELPER(pte_mkwrite_novma)
HELPER(pte_mkold)
HELPER(pte_mkyoung)
HELPER(pte_mkspecial)
HELPER(pte_mkcont)
HELPER(pte_mknoncont)
HELPER(pte_mkinvalid)
HELPER(pgtable_kunit_mkuffd)
HELPER(pgtable_kunit_clear_uffd)

#define ALWAYS		.mask = 0
#define HW_DIRTY	.mask = PTE_WRITE | PTE_RDONLY, .value = PTE_WRITE

static const struct helper helpers[] = {
	{ "pte_mkclean", run_pte_mkclean,
	  { { ALWAYS, .set = PTE_RDONLY, .clear = PTE_DIRTY } } },
	{ "pte_mkdirty", run_pte_mkdirty,
	  { { ALWAYS, .set = PTE_DIRTY },
	    { .mask = PTE_WRITE, .value = PTE_WRITE, .clear = PTE_RDONLY } } },
	{ "pte_wrprotect", run_pte_wrprotect,
	  { { ALWAYS, .set = PTE_RDONLY, .clear = PTE_WRITE },
	    { HW_DIRTY, .set = PTE_DIRTY } } },
	{ "pte_mkwrite_novma", run_pte_mkwrite_novma,
	  { { ALWAYS, .set = PTE_WRITE },
	    { .mask = PTE_DIRTY, .value = PTE_DIRTY, .clear = PTE_RDONLY } } },
	{ "pte_mkold", run_pte_mkold, { { ALWAYS, .clear = PTE_AF } } },
	{ "pte_mkyoung", run_pte_mkyoung, { { ALWAYS, .set = PTE_AF } } },
	{ "pte_mkspecial", run_pte_mkspecial,
	  { { ALWAYS, .set = PTE_SPECIAL } } },
	{ "pte_mkcont", run_pte_mkcont, { { ALWAYS, .set = PTE_CONT } },
	  .valid = true },
	{ "pte_mknoncont", run_pte_mknoncont,
	  { { ALWAYS, .clear = PTE_CONT } } },
	{ "pte_mkinvalid", run_pte_mkinvalid,
	  { { ALWAYS, .set = PTE_PRESENT_INVALID, .clear = PTE_VALID } } },
	{ "pte_mkuffd", run_pgtable_kunit_mkuffd,
	  { { ALWAYS, .set = PTE_RDONLY | PGTABLE_KUNIT_PTE_UFFD,
	      .clear = PTE_WRITE },
	    { HW_DIRTY, .set = PTE_DIRTY } } },
	{ "pte_clear_uffd", run_pgtable_kunit_clear_uffd,
	  { { ALWAYS, .clear = PGTABLE_KUNIT_PTE_UFFD } } },
};

KUNIT_ARRAY_PARAM_DESC(helper, helpers, desc);

static pteval_t helper_want(const struct helper *helper, pteval_t val)
{
	pteval_t want = val;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(helper->rules); i++) {
		const struct helper_rule *rule = &helper->rules[i];

		if ((val & rule->mask) == rule->value)
			want = (want & ~rule->clear) | rule->set;
	}
	return want;
}

/*
 * Each helper changes the bits that its rules name and no other bits,
 * especially no bits of the address. For example, a clean entry must stay clean
 * when it is made writable. An earlier kernel broke this rule. The case tries
 * every combination of bits, because the dirty state depends on three bits. A
 * helper that tests or changes a wrong bit fails for some combination.
 */
static void pte_helper_changes_bits(struct kunit *test)
{
	const struct helper *helper = test->param_value;
	unsigned int i, failed = 0;

	if (!IS_ENABLED(CONFIG_HAVE_ARCH_USERFAULTFD_WP) &&
	    strstr(helper->desc, "uffd"))
		kunit_skip(test, "needs CONFIG_HAVE_ARCH_USERFAULTFD_WP");

	for (i = 0; i < BITS_COMBINATIONS; i++) {
		pte_t pte = bits_pte(i), got;
		pteval_t want;

		bits_yield(i);
		if (helper->valid && !(pte_val(pte) & PTE_VALID))
			continue;
		got = helper->run(pte);
		want = helper_want(helper, pte_val(pte));
		KUNIT_EXPECT_EQ_MSG(test, pte_val(got), want, "%s(%016llx)",
				    helper->desc, pte_val(pte));
		if (pte_val(got) != want && ++failed == PGTABLE_KUNIT_ENOUGH)
			return;
	}
}

struct predicate {
	const char *desc;
	bool (*run)(pte_t pte);
	bool (*want)(pteval_t val);
};

#define PREDICATE(name, expression)					\
	static bool run_##name(pte_t pte)				\
	{								\
		return name(pte);					\
	}								\
	static bool want_##name(pteval_t val)				\
	{								\
		return expression;					\
	}

PREDICATE(pte_valid, val & PTE_VALID)
PREDICATE(pte_present, val & (PTE_VALID | PTE_PRESENT_INVALID))
PREDICATE(pte_cont, val & PTE_CONT)
PREDICATE(pte_valid_cont, (val & PTE_VALID) && (val & PTE_CONT))
PREDICATE(pte_young, val & PTE_AF)
PREDICATE(pte_write, val & PTE_WRITE)
PREDICATE(pte_special, val & PTE_SPECIAL)
PREDICATE(pte_hw_dirty, (val & PTE_WRITE) && !(val & PTE_RDONLY))
PREDICATE(pte_dirty, (val & PTE_DIRTY) ||
	  ((val & PTE_WRITE) && !(val & PTE_RDONLY)))
PREDICATE(pgtable_kunit_uffd, val & PGTABLE_KUNIT_PTE_UFFD)
PREDICATE(pte_none, !val)

#define A_PREDICATE(name)	{ #name, run_##name, want_##name }

static const struct predicate predicates[] = {
	A_PREDICATE(pte_valid),
	A_PREDICATE(pte_present),
	A_PREDICATE(pte_cont),
	A_PREDICATE(pte_valid_cont),
	A_PREDICATE(pte_young),
	A_PREDICATE(pte_write),
	A_PREDICATE(pte_special),
	A_PREDICATE(pte_hw_dirty),
	A_PREDICATE(pte_dirty),
	A_PREDICATE(pgtable_kunit_uffd),
	A_PREDICATE(pte_none),
};

KUNIT_ARRAY_PARAM_DESC(predicate, predicates, desc);

/*
 * Each predicate of an entry depends only on the bits that its rule names. An
 * entry is part of a contiguous block only if it is valid and has bit 52. An
 * entry that is present but not valid is not part of a block, with or without
 * bit 52.
 */
static void pte_predicate_reads_bits(struct kunit *test)
{
	const struct predicate *predicate = test->param_value;
	unsigned int i, failed = 0;

	for (i = 0; i < BITS_COMBINATIONS; i++) {
		pte_t pte = bits_pte(i);
		bool got = predicate->run(pte);
		bool want = predicate->want(pte_val(pte));

		bits_yield(i);
		KUNIT_EXPECT_EQ_MSG(test, got, want, "%s(%016llx)",
				    predicate->desc, pte_val(pte));
		if (got != want && ++failed == PGTABLE_KUNIT_ENOUGH)
			return;
	}
	KUNIT_EXPECT_EQ(test, predicate->run(__pte(0)), predicate->want(0));
}

/* The bits that mprotect() may change. All other bits belong to the page. */
#define MODIFY_MASK	(PTE_VALID | PTE_PRESENT_INVALID | PTE_USER | PTE_PXN | \
			 PTE_UXN | PTE_RDONLY | PTE_WRITE | PTE_GP |		\
			 PTE_ATTRINDX_MASK | PTE_PO_IDX_MASK)

static pteval_t modify_want(pteval_t old, pteval_t newprot)
{
	pteval_t want = (old & ~MODIFY_MASK) | (newprot & MODIFY_MASK);

	if (!want_pte_dirty(old))
		return want;
	want |= PTE_DIRTY;
	return want & PTE_WRITE ? want & ~PTE_RDONLY : want;
}

/*
 * pte_modify() takes the permissions, the validity and the memory type from the
 * new protection. It keeps address, young, special, contiguous, uffd and the
 * dirty state. The dirty state may change its form. An entry that becomes
 * writable is dirty only if it was dirty before. The case tries every
 * combination of bits with every protection that a mapping can have, including
 * PROT_NONE. No protection may have a bit that the mask would drop.
 */
static void pte_modify_keeps_and_takes(struct kunit *test)
{
	unsigned int i, flags, failed = 0;

	for (flags = 0; flags < 16; flags++) {
		pgprot_t prot = vm_get_page_prot(flags);

		for (i = 0; i < BITS_COMBINATIONS; i++) {
			pte_t pte = bits_pte(i);
			pteval_t got = pte_val(pte_modify(pte, prot));
			pteval_t want = modify_want(pte_val(pte),
						    pgprot_val(prot));

			bits_yield(i);
			if (got == want)
				continue;
			KUNIT_FAIL(test,
				   "pte_modify(%016llx, %016llx), VM flags %#x: %016llx, expected %016llx",
				   pte_val(pte), pgprot_val(prot), flags, got,
				   want);
			if (++failed == PGTABLE_KUNIT_ENOUGH)
				return;
		}
	}
}

/*
 * An entry that is made from the PFN and the protection of another entry is the
 * same entry. Folding, unfolding and every batch rely on that. One address has
 * all bits set, so the case notices a bit in the wrong part.
 */
static void pte_pgprot_identity(struct kunit *test)
{
	const unsigned long pfns[] = { 0, bits_pfn(), PHYS_MASK >> PAGE_SHIFT };
	unsigned int i, n, failed = 0;

	for (n = 0; n < ARRAY_SIZE(pfns); n++) {
		for (i = 0; i < BITS_COMBINATIONS; i++) {
			pteval_t prot = pte_val(bits_pte(i)) ^
					pte_val(pfn_pte(bits_pfn(), __pgprot(0)));
			pte_t pte = pfn_pte(pfns[n], __pgprot(prot));

			bits_yield(i);
			if (pte_pfn(pte) == pfns[n] &&
			    pgprot_val(pte_pgprot(pte)) == prot &&
			    pte_same(pfn_pte(pte_pfn(pte), pte_pgprot(pte)), pte))
				continue;
			KUNIT_FAIL(test,
				   "PFN %#lx and protection %016llx are PFN %#lx and protection %016llx in %016llx",
				   pfns[n], prot, (unsigned long)pte_pfn(pte),
				   pgprot_val(pte_pgprot(pte)), pte_val(pte));
			if (++failed == PGTABLE_KUNIT_ENOUGH)
				return;
		}
	}
}

/*
 * The bits of an entry that hold the address, as the architecture defines them.
 * If addresses have 52 bits, an entry for a 64K page has bits 48 to 51 of the
 * address in bits 12 to 15. An entry for another page size has bits 50 and 51
 * of the address in bits 8 and 9.
 */
static pteval_t phys_in_entry(phys_addr_t phys)
{
	if (!IS_ENABLED(CONFIG_ARM64_PA_BITS_52))
		return phys;
	if (PAGE_SIZE == SZ_64K)
		return (phys & GENMASK_ULL(47, PAGE_SHIFT)) |
		       ((phys >> 48) << 12);
	return (phys & GENMASK_ULL(49, PAGE_SHIFT)) | ((phys >> 50) << 8);
}

/*
 * pte_advance_pfn() increases the address of an entry by n pages, and does not
 * change the other bits. The case makes the address carry into each higher bit,
 * up to the last. Above 48 bits, a plain addition to the entry would give a
 * wrong address. The case tries each of the other bits alone, none of them, and
 * all of them. Known issue 5: in an entry for a 64K page, bits 48 and 49 of the
 * address are also in bits 48 and 49 of the entry. The architecture requires 0
 * there.
 */
static void pte_advance_pfn_all_address_bits(struct kunit *test)
{
	unsigned int bit, i, n, failed = 0;
	pteval_t twice = 0;

	for (bit = PAGE_SHIFT + 2; bit < PHYS_MASK_SHIFT; bit++) {
		unsigned long pfn = BIT(bit - PAGE_SHIFT) - 2;

		for (i = 0; i < ARRAY_SIZE(bits) + 2; i++) {
			unsigned int nr = i < ARRAY_SIZE(bits) ? BIT(i) :
					  i == ARRAY_SIZE(bits) ? 0 :
					  BITS_COMBINATIONS - 1;
			pteval_t prot = PTE_MAYBE_SHARED | PTE_TYPE_PAGE |
					bits_combination(nr);
			pte_t pte = pfn_pte(pfn, __pgprot(prot));

			for (n = 0; n < 4; n++) {
				phys_addr_t phys = (phys_addr_t)(pfn + n) << PAGE_SHIFT;
				pteval_t want = phys_in_entry(phys) | prot;
				pte_t got = pte_advance_pfn(pte, n);
				pte_t next = n ? pte_next_pfn(pte_advance_pfn(pte, n - 1)) :
						 got;

				if (pte_val(got) == want &&
				    pte_val(next) == want &&
				    pte_pfn(got) == pfn + n)
					continue;
				if (pte_val(got) == (want | (phys & GENMASK_ULL(49, 48))) &&
				    pte_same(next, got) && pte_pfn(got) == pfn + n &&
				    IS_ENABLED(CONFIG_ARM64_64K_PAGES)) {
					twice = pte_val(got);
					continue;
				}
				KUNIT_FAIL(test,
					   "%u after %016llx (PFN %#lx): %016llx, one by one %016llx, expected %016llx",
					   n, pte_val(pte), pfn, pte_val(got),
					   pte_val(next), want);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	if (twice)
		pgtable_kunit_known_issue(test, 5,
					  "bits 48 and 49 of the address are in %016llx twice",
					  twice);
	else if (IS_ENABLED(CONFIG_ARM64_64K_PAGES) && PHYS_MASK_SHIFT > 48)
		pgtable_kunit_stale_issue(test, 5);
}

static const struct kernel_prot {
	const char *desc;
	pteval_t val;
	bool write;
} kernel_prots[] = {
	{ "PAGE_KERNEL", 1, true },
	{ "PAGE_KERNEL_EXEC", 2, true },
	{ "PAGE_KERNEL_EXEC_CONT", 3, true },
	{ "PAGE_KERNEL_RO", 4, false },
	{ "PAGE_KERNEL_ROX", 5, false },
};

KUNIT_ARRAY_PARAM_DESC(kernel_prot, kernel_prots, desc);

/*
 * The protections depend on the CPU, so a constant table cannot contain them.
 */
static pgprot_t kernel_prot(const struct kernel_prot *kernel)
{
	switch (kernel->val) {
	case 1:
		return PAGE_KERNEL;
	case 2:
		return PAGE_KERNEL_EXEC;
	case 3:
		return PAGE_KERNEL_EXEC_CONT;
	case 4:
		return PAGE_KERNEL_RO;
	default:
		return PAGE_KERNEL_ROX;
	}
}

/*
 * The kernel's own pages must not need a fault to become dirty. Writable pages
 * can be written to at once, and read-only pages as soon as they are made
 * writable. This holds for entries that are read-only from the start. It also
 * holds for entries that became read-only in the way of set_memory_ro(), which
 * clears one bit and sets another. pte_mkwrite_novma() leaves a clean entry
 * read-only for the hardware, so all these entries must be dirty.
 */
static void page_kernel_is_dirty(struct kunit *test)
{
	const struct kernel_prot *kernel = test->param_value;
	pte_t pte = pfn_pte(bits_pfn(), kernel_prot(kernel)), ro;

	KUNIT_EXPECT_EQ(test, !!pte_write(pte), kernel->write);
	KUNIT_EXPECT_EQ(test, !!pte_hw_dirty(pte), kernel->write);
	KUNIT_EXPECT_EQ(test, !!pte_rdonly(pte), !kernel->write);
	KUNIT_EXPECT_TRUE(test, pte_valid(pte));

	ro = clear_pte_bit(pte, __pgprot(PTE_WRITE));
	ro = set_pte_bit(ro, __pgprot(PTE_RDONLY));
	KUNIT_EXPECT_TRUE_MSG(test, pte_hw_dirty(pte_mkwrite_novma(ro)),
			      "%016llx, made read-only %016llx, made writable %016llx",
			      pte_val(pte), pte_val(ro),
			      pte_val(pte_mkwrite_novma(ro)));
}

/*
 * The argument of pte_present() is often a read of an entry in a table that
 * other CPUs may write, so the macro must evaluate it only once. In this case
 * the first read gives a PROT_NONE entry, and the second read a valid entry. So
 * the page is present both times. Known issue 3: the older kernel checks the
 * first value for a valid entry and the second for PROT_NONE, and concludes
 * that there is no page.
 */
static void pte_present_evaluates_once(struct kunit *test)
{
	pte_t valid = pfn_pte(bits_pfn(), vm_get_page_prot(VM_READ));
	const pte_t entries[] = {
		pte_modify(valid, vm_get_page_prot(VM_NONE)), valid,
	};
	unsigned int reads = 0;
	bool present;

	KUNIT_ASSERT_TRUE(test, pte_present(entries[0]));
	KUNIT_ASSERT_TRUE(test, pte_present(entries[1]));

	present = pte_present(entries[reads++]);
	if (reads == ARRAY_SIZE(entries) && !present) {
		pgtable_kunit_known_issue(test, 3,
					  "pte_present() reads %u times: %016llx, then %016llx, and says no",
					  reads, pte_val(entries[0]),
					  pte_val(entries[1]));
		return;
	}
	KUNIT_EXPECT_EQ(test, reads, 1);
	KUNIT_EXPECT_TRUE(test, present);
	pgtable_kunit_stale_issue(test, 3);
}

static struct kunit_case pte_bits_cases[] = {
	KUNIT_CASE_PARAM(pte_helper_changes_bits, helper_gen_params),
	KUNIT_CASE_PARAM(pte_predicate_reads_bits, predicate_gen_params),
	KUNIT_CASE(pte_modify_keeps_and_takes),
	KUNIT_CASE(pte_pgprot_identity),
	KUNIT_CASE(pte_advance_pfn_all_address_bits),
	KUNIT_CASE_PARAM(page_kernel_is_dirty, kernel_prot_gen_params),
	KUNIT_CASE(pte_present_evaluates_once),
	{}
};

static struct kunit_suite pte_bits_suite = {
	.name = "pte_bits",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = pte_bits_cases,
};

kunit_test_suite(pte_bits_suite);

MODULE_DESCRIPTION("KUnit tests for single arm64 page-table entries");
MODULE_LICENSE("GPL");
