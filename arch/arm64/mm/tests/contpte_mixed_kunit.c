// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: entries that differ, and mms that must not change.
 *
 * Batches of entries that are not folded may differ in accessed, dirty and
 * write bits. Clearing such a batch merges the accessed and dirty bits and no
 * other bits. Write-protecting it keeps the accessed and dirty bits. An entry
 * that is not valid is handled alone, whatever its bits are. Only the kernel
 * itself folds and unfolds blocks in its own page tables.
 *
 * Each case runs real functions on real entries, and compares the table, the
 * value returned and the TLB invalidations with the rules in the comments. Not
 * covered: all combinations of four folded blocks (contpte).
 *
 * Begin with contpte_fold and contpte.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>
#include <linux/efi.h>

#include "contpte.h"
#include "contpte_odd.h"

KUNIT_ARRAY_PARAM_DESC(contpte_odd, contpte_odds, desc);

/* The first entry of a batch, and a later entry. */
static const struct mixed_flags {
	const char *desc;
	struct pte_model_entry first;
	struct pte_model_entry other;
} mixed_flags[] = {
	{ "read-only, dirty in hardware", {}, { .write = true, .hw_dirty = true } },
	{ "read-only, dirty in software", {}, { .sw_dirty = true } },
	{ "read-only, young", {}, { .young = true } },
	{ "read-only, writable", {}, { .write = true } },
	{ "writable, read-only", { .write = true }, {} },
	{ "writable, dirty in hardware", { .write = true },
	  { .write = true, .hw_dirty = true } },
	{ "writable, dirty in software", { .write = true },
	  { .write = true, .hw_dirty = true, .sw_dirty = true } },
	{ "writable, young", { .write = true },
	  { .write = true, .young = true } },
	{ "writable, young and dirty", { .write = true },
	  { .write = true, .hw_dirty = true, .young = true } },
	{ "young and dirty, old and clean",
	  { .write = true, .hw_dirty = true, .young = true }, { .write = true } },
};

KUNIT_ARRAY_PARAM_DESC(mixed_flags, mixed_flags, desc);

/*
 * Fill two blocks that are not folded. All entries are like @first, except that
 * entry @at is like @other.
 */
static void mixed_fill(struct pte_ctx *f, const struct mixed_flags *flags,
		       unsigned int at)
{
	unsigned int i;

	pte_ctx_reset(f);
	for (i = 0; i < 2 * CONT_PTES; i++) {
		struct pte_model_entry e = i == at ? flags->other : flags->first;

		e.kind = MODEL_VALID;
		e.page = i;
		pte_ctx_fill(f, i, &e);
	}
}

/*
 * Clearing a batch returns its first entry with the merged accessed and dirty
 * bits of all entries. The value has no other bit of a later entry. A read-only
 * first entry stays read-only even if a later entry is writable; if the later
 * entry is dirty, the value is dirty in software. Dirty does not imply young.
 * Batches start at both ends and in the middle of a block. The odd entry is at
 * each place inside the batch and right after it.
 */
static void get_and_clear_full_ptes_mixed(struct kunit *test)
{
	const unsigned int starts[] = { 0, 1, CONT_PTES - 1 };
	const struct mixed_flags *flags = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int s, at;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		for (at = 0; at < 2 * CONT_PTES; at = contpte_next(at)) {
			mixed_fill(f, flags, at);
			if (contpte_step(f, PTE_OP_GET_AND_CLEAR_FULL, starts[s],
					 CONT_PTES, at % 2 ? PTE_STEP_FULL : 0))
				continue;
			kunit_err(test, "%s at %u\n", flags->desc, at);
			return;
		}
	}
}

/*
 * Write-protect entries. Some are read-only already, and some are dirty in
 * hardware. Each becomes read-only, and keeps its page and its young bit. An
 * entry that was dirty is dirty in software afterwards. A second call changes
 * nothing more.
 */
static void wrprotect_ptes_mixed(struct kunit *test)
{
	const struct mixed_flags *flags = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int at, times;

	for (at = 0; at < 2 * CONT_PTES; at = contpte_next(at)) {
		mixed_fill(f, flags, at);
		for (times = 1; times <= 2; times++) {
			if (contpte_step(f, PTE_OP_WRPROTECT_PTES, 1, CONT_PTES, 0))
				continue;
			kunit_err(test, "%s at %u, %u times\n", flags->desc, at,
				  times);
			return;
		}
	}
}

/*
 * Write-protecting a whole block of entries with unusual bits changes only the
 * write bit. The block is folded if the kernel folds such entries. PROT_NONE
 * entries stay present and not valid.
 */
static void wrprotect_ptes_all_odd(struct kunit *test)
{
	const struct contpte_odd *odd = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int i;

	if (!pte_present(odd->make(contpte_pte(f, 0))))
		kunit_skip(test, "wrprotect_ptes() is for present entries");

	for (i = 0; i < CONT_PTES; i++) {
		pte_t pte = contpte_odd_pte(f, odd, i, true);

		if (odd->folds)
			pte = contpte_mkfolded(pte);
		pgtable_kunit_table_set(f->table, i, pte);
		f->table->want[i] = clear_pte_bit(pte, __pgprot(PTE_WRITE));
	}
	pte_op_call(f, PTE_OP_WRPROTECT_PTES, 0, CONT_PTES, 0, __pte(0));
	contpte_check(f, "all %s", odd->desc);
}

/*
 * A folded block is write-protected entry by entry. The first call unfolds the
 * block, with one invalidation. After the last call all entries are equal
 * again, but this must not fold the block.
 */
static void ptep_set_wrprotect_one_by_one(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	unsigned int i;

	contpte_fill(f, 0, 0, true, 0, CONT_PTES - 1);
	for (i = 0; i < CONT_PTES; i++) {
		if (!contpte_step(f, PTE_OP_SET_WRPROTECT, i, 1, 0))
			return;
	}
}

/*
 * An entry that is not valid is handled alone, even if it has the contiguous
 * bit and its neighbours are contiguous. ptep_get_and_clear() returns it
 * unchanged and leaves an empty entry, and no block is unfolded. This also
 * holds for a valid entry without the contiguous bit.
 */
static void ptep_get_and_clear_one_entry_odd(struct kunit *test)
{
	const struct contpte_odd *odd = test->param_value;
	struct pte_ctx *f = test->priv;
	unsigned int i, at, cont;

	for (at = 0; at < CONT_PTES; at = contpte_next(at)) {
		for (cont = 0; cont <= !odd->valid; cont++) {
			pte_t pte = contpte_odd_pte(f, odd, at, true);

			if (cont)
				pte = contpte_mkcont(pte);
			pte_ctx_reset(f);
			contpte_fill(f, 0, 0, true, 0, 0);
			pgtable_kunit_table_set(f->table, at, pte);

			pte_op_call(f, PTE_OP_GET_AND_CLEAR, at, 1, 0, pte);
			f->table->want[at] = __pte(0);
			contpte_check(f, "%s at %u, PTE_CONT %u", odd->desc, at,
				      cont);
			KUNIT_EXPECT_EQ_MSG(test, pte_val(f->got), pte_val(pte),
					    "%s at %u, PTE_CONT %u", odd->desc,
					    at, cont);

			/* Write a new entry over the odd entry. */
			pgtable_kunit_table_set(f->table, at, pte);
			pte = contpte_pte(f, CONTPTE_WINDOW + at);
			pte_op_call(f, PTE_OP_SET_PTE_AT, at, 1, 0, pte);
			f->table->want[at] = pte;
			contpte_check(f, "set_pte_at over %s at %u, PTE_CONT %u",
				      odd->desc, at, cont);

			for (i = 0; i < CONT_PTES; i++)
				pgtable_kunit_raw_clear(f->table->mm,
							contpte_addr(f, i),
							contpte_ptep(f, i));
		}
	}
}

/* The functions that unfold a block of user space. */
static bool kernel_wanted(const struct pte_case *pc)
{
	return pc->op->finds != PTE_OP_FINDS_NOTHING &&
	       (pc->op->does == PTE_OP_CLEARS || pc->op->does == PTE_OP_PROTECTS);
}

static const struct kernel_mm {
	const char *desc;
	struct mm_struct *mm;
} kernel_mms[] = {
	{ "init_mm", &init_mm },
#ifdef CONFIG_EFI
	{ "efi_mm", &efi_mm },
#else
	{ "efi_mm" },
#endif
};

KUNIT_ARRAY_PARAM_DESC(kernel_mm, kernel_mms, desc);

/*
 * Mappings of the kernel and of firmware are never folded, since the kernel
 * cannot tolerate the fault that a conversion may cause. Entries that the
 * kernel has made contiguous stay contiguous when a neighbour changes.
 */
static void kernel_mm_never_converted(struct kunit *test)
{
	const struct kernel_mm *kernel = test->param_value;
	struct pte_ctx *f = test->priv;
	struct mm_struct *mm = f->table->mm;
	const void *param = NULL;
	char desc[KUNIT_PARAM_DESC_SIZE];
	unsigned int i, calls = 0;

	if (!kernel->mm)
		kunit_skip(test, "needs CONFIG_EFI");

	contpte_kernel_mm(f, kernel->mm);
	for (i = 0; i < CONT_PTES; i++)
		contpte_set(f, i, 1, contpte_entry(i), 0);

	while ((param = pte_case_next(&pte_arch_backend, param, kernel_wanted,
				      desc))) {
		const struct pte_case pc = pte_case_get(&pte_arch_backend, param);

		pte_ctx_reset(f);
		contpte_fill(f, 0, 0, true, 0, CONTPTE_NOWHERE);
		if (!contpte_step(f, pc.id, 1, pc.op->takes_range ? 2 : 1,
				  pc.flags))
			kunit_err(test, "%s in %s\n", desc, kernel->desc);
		calls++;
	}
	pte_ctx_reset(f);
	f->table->mm = mm;
	PGTABLE_KUNIT_DID(test, calls, "functions");
}

static struct kunit_case contpte_mixed_cases[] = {
	KUNIT_CASE_PARAM(get_and_clear_full_ptes_mixed, mixed_flags_gen_params),
	KUNIT_CASE_PARAM(wrprotect_ptes_mixed, mixed_flags_gen_params),
	KUNIT_CASE_PARAM(wrprotect_ptes_all_odd, contpte_odd_gen_params),
	KUNIT_CASE(ptep_set_wrprotect_one_by_one),
	KUNIT_CASE_PARAM(ptep_get_and_clear_one_entry_odd,
			 contpte_odd_gen_params),
	KUNIT_CASE_PARAM(kernel_mm_never_converted, kernel_mm_gen_params),
	{}
};

static struct kunit_suite contpte_mixed_suite = {
	.name = "contpte_mixed",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_mixed_cases,
};

kunit_test_suite(contpte_mixed_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: entries that differ");
MODULE_LICENSE("GPL");
