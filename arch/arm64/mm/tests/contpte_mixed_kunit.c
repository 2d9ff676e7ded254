// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: entries that are not alike, and mms that are left alone.
 *
 * Batches of entries that are not folded may differ in accessed, dirty and
 * write bits. Clearing such a batch merges the accessed and dirty bits and no
 * other bits, and write-protecting it loses none of them. Each entry that is
 * not valid is handled alone, whatever bits it has. Only the kernel itself
 * folds and unfolds blocks in its own page tables.
 *
 * Each case runs real functions on real entries, and compares the table, the
 * value returned and the TLB invalidations with what the comments say. Not
 * covered: all combinations of four folded blocks (contpte).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>
#include <linux/efi.h>

#include "contpte.h"
#include "contpte_odd.h"

KUNIT_ARRAY_PARAM_DESC(contpte_odd, contpte_odds, desc);

/* Flags of the first entry of a batch, and of one other. */
static const struct mixed_flags {
	const char *desc;
	pteval_t first;
	pteval_t other;
} mixed_flags[] = {
	{ "read-only, dirty in hardware", PTE_RDONLY, PTE_WRITE },
	{ "read-only, dirty in software", PTE_RDONLY, PTE_RDONLY | PTE_DIRTY },
	{ "read-only, young", PTE_RDONLY, PTE_RDONLY | PTE_AF },
	{ "read-only, writable", PTE_RDONLY, PTE_RDONLY | PTE_WRITE },
	{ "writable, read-only", PTE_RDONLY | PTE_WRITE, PTE_RDONLY },
	{ "writable, dirty in hardware", PTE_RDONLY | PTE_WRITE, PTE_WRITE },
	{ "writable, dirty in software", PTE_RDONLY | PTE_WRITE,
	  PTE_WRITE | PTE_DIRTY },
	{ "writable, young", PTE_RDONLY | PTE_WRITE,
	  PTE_RDONLY | PTE_WRITE | PTE_AF },
	{ "writable, young and dirty", PTE_RDONLY | PTE_WRITE,
	  PTE_WRITE | PTE_AF },
	{ "young and dirty, old and clean", PTE_WRITE | PTE_AF,
	  PTE_RDONLY | PTE_WRITE },
};

KUNIT_ARRAY_PARAM_DESC(mixed_flags, mixed_flags, desc);

#define MIXED_MASK	(PTE_RDONLY | PTE_WRITE | PTE_DIRTY | PTE_AF)

static pte_t mixed_pte(struct contpte_fixture *f, unsigned int page,
		       pteval_t flags)
{
	return __pte((pte_val(contpte_pte(f, page)) & ~MIXED_MASK) | flags);
}

/*
 * Fill two blocks that are not folded. All entries have the flags @first,
 * except that entry @at has the flags @other.
 */
static void mixed_fill(struct contpte_fixture *f,
		       const struct mixed_flags *flags, unsigned int at)
{
	unsigned int i;

	contpte_reset(f);
	for (i = 0; i < 2 * CONT_PTES; i++)
		pgtable_kunit_table_set(f->table, i,
					mixed_pte(f, i, i == at ? flags->other :
								  flags->first));
}

/*
 * Clearing a batch returns its first entry with the merged accessed and dirty
 * bits of all entries [contpte 97]. The value has no other bit of a later
 * entry. A read-only first entry stays read-only even if a later entry is
 * writable [99]; if the later entry is dirty, the value is dirty in software
 * [98]. Dirty does not imply young. Batches start at both ends and in the
 * middle of a block; the odd entry is at each place inside the batch and next
 * to it.
 */
static void get_and_clear_full_ptes_mixed(struct kunit *test)
{
	const unsigned int starts[] = { 0, 1, CONT_PTES - 1 };
	const struct mixed_flags *flags = test->param_value;
	struct contpte_fixture *f = test->priv;
	unsigned int s, start, end, at, i;

	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		start = starts[s];
		end = start + CONT_PTES;
		for (at = 0; at < 2 * CONT_PTES; at = contpte_next(at)) {
			pte_t *want = f->table->want, first, got;

			mixed_fill(f, flags, at);
			got = get_and_clear_full_ptes(f->table->mm,
						      contpte_addr(f, start),
						      contpte_ptep(f, start),
						      end - start, at % 2);
			first = want[start];
			for (i = start; i < end; i++) {
				if (i > start && pte_young(want[i]))
					first = pte_mkyoung(first);
				if (i > start && pte_dirty(want[i]))
					first = pte_mkdirty(first);
				want[i] = __pte(0);
			}
			if (contpte_check(f, "%s at %u of [%u, %u)",
					  flags->desc, at, start, end) &&
			    pte_same(got, first))
				continue;
			KUNIT_EXPECT_EQ_MSG(test, pte_val(got), pte_val(first),
					    "%s at %u of [%u, %u)",
					    flags->desc, at, start, end);
			return;
		}
	}
}

/*
 * Write-protect entries. Some are read-only already, and some are dirty in
 * hardware. Each becomes read-only, and keeps its page and its young bit. An
 * entry that was dirty is dirty in software afterwards [contpte 113, 114]. A
 * second call changes nothing more.
 */
static void wrprotect_ptes_mixed(struct kunit *test)
{
	const struct mixed_flags *flags = test->param_value;
	struct contpte_fixture *f = test->priv;
	unsigned int at, i, times;

	for (at = 0; at < 2 * CONT_PTES; at = contpte_next(at)) {
		pte_t *want = f->table->want;

		mixed_fill(f, flags, at);
		for (i = 1; i < CONT_PTES + 1; i++) {
			pteval_t val = pte_val(want[i]);

			if (!(val & PTE_RDONLY))
				val |= PTE_DIRTY;
			want[i] = __pte((val & ~PTE_WRITE) | PTE_RDONLY);
		}
		for (times = 1; times <= 2; times++) {
			wrprotect_ptes(f->table->mm, contpte_addr(f, 1),
				       contpte_ptep(f, 1), CONT_PTES);
			if (!contpte_check(f, "%s at %u, %u times", flags->desc,
					   at, times))
				return;
		}
	}
}

/*
 * Write-protecting a whole block of entries with unusual bits changes only the
 * write bit [contpte 114]. The block is folded if such entries can be folded.
 * PROT_NONE entries stay present and not valid [116].
 */
static void wrprotect_ptes_all_odd(struct kunit *test)
{
	const struct contpte_odd *odd = test->param_value;
	struct contpte_fixture *f = test->priv;
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
	wrprotect_ptes(f->table->mm, contpte_addr(f, 0), contpte_ptep(f, 0),
		       CONT_PTES);
	contpte_check(f, "all %s", odd->desc);
}

/*
 * A folded block is write-protected entry by entry. The first call unfolds the
 * block, with one invalidation. After the last call all entries are equal
 * again, but this must not fold the block [contpte 115].
 */
static void ptep_set_wrprotect_one_by_one(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	unsigned int i;

	contpte_fill(f, 0, 0, true, 0, CONT_PTES - 1);
	contpte_model_unfold(f, 0);
	for (i = 0; i < CONT_PTES; i++) {
		ptep_set_wrprotect(f->table->mm, contpte_addr(f, i),
				   contpte_ptep(f, i));
		f->table->want[i] = pte_wrprotect(f->table->want[i]);
		if (!contpte_check(f, "after entry %u", i))
			return;
	}
}

/*
 * An entry that is not valid is handled alone, even if it has the contiguous
 * bit and its neighbours are contiguous [contpte 39, 40, 88].
 * ptep_get_and_clear() returns it unchanged, the place is empty afterwards, and
 * no block is unfolded. This also holds for a valid entry without the
 * contiguous bit.
 */
static void ptep_get_and_clear_one_entry_odd(struct kunit *test)
{
	const struct contpte_odd *odd = test->param_value;
	struct contpte_fixture *f = test->priv;
	unsigned int i, at, cont;

	for (at = 0; at < CONT_PTES; at = contpte_next(at)) {
		for (cont = 0; cont <= !odd->valid; cont++) {
			pte_t pte = contpte_odd_pte(f, odd, at, true), got;

			if (cont)
				pte = contpte_mkcont(pte);
			contpte_reset(f);
			contpte_fill(f, 0, 0, true, 0, 0);
			pgtable_kunit_table_set(f->table, at, pte);

			got = ptep_get_and_clear(f->table->mm,
						 contpte_addr(f, at),
						 contpte_ptep(f, at));
			f->table->want[at] = __pte(0);
			contpte_check(f, "%s at %u, PTE_CONT %u", odd->desc, at,
				      cont);
			KUNIT_EXPECT_EQ_MSG(test, pte_val(got), pte_val(pte),
					    "%s at %u, PTE_CONT %u", odd->desc,
					    at, cont);

			/* Write a new entry over the odd entry. */
			pgtable_kunit_table_set(f->table, at, pte);
			pte = contpte_pte(f, CONTPTE_WINDOW + at);
			set_pte_at(f->table->mm, contpte_addr(f, at),
				   contpte_ptep(f, at), pte);
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

/* Functions that unfold a block of user space, called for its entry 1. */
static void kernel_clear(struct mm_struct *mm, unsigned long addr, pte_t *ptep)
{
	pte_t old = pgtable_kunit_raw_get(ptep);

	pte_clear(mm, addr, ptep);
	if (mm != &init_mm)
		pgtable_kunit_uncount(mm, addr, ptep, old);
}

static void kernel_get_and_clear(struct mm_struct *mm, unsigned long addr,
				 pte_t *ptep)
{
	ptep_get_and_clear(mm, addr, ptep);
}

static void kernel_clear_full(struct mm_struct *mm, unsigned long addr,
			      pte_t *ptep)
{
	clear_full_ptes(mm, addr, ptep, 2, 0);
}

static void kernel_get_and_clear_full(struct mm_struct *mm, unsigned long addr,
				      pte_t *ptep)
{
	get_and_clear_full_ptes(mm, addr, ptep, 2, 0);
}

static void kernel_wrprotect(struct mm_struct *mm, unsigned long addr,
			     pte_t *ptep)
{
	ptep_set_wrprotect(mm, addr, ptep);
}

static void kernel_wrprotect_range(struct mm_struct *mm, unsigned long addr,
				   pte_t *ptep)
{
	wrprotect_ptes(mm, addr, ptep, 2);
}

static const struct kernel_op {
	const char *desc;
	void (*run)(struct mm_struct *mm, unsigned long addr, pte_t *ptep);
	unsigned int nr;
	bool wrprotects;
} kernel_ops[] = {
	{ "pte_clear", kernel_clear, 1 },
	{ "ptep_get_and_clear", kernel_get_and_clear, 1 },
	{ "clear_full_ptes", kernel_clear_full, 2 },
	{ "get_and_clear_full_ptes", kernel_get_and_clear_full, 2 },
	{ "ptep_set_wrprotect", kernel_wrprotect, 1, true },
	{ "wrprotect_ptes", kernel_wrprotect_range, 2, true },
};

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
 * cannot tolerate the fault that a conversion may cause [contpte 31, 32].
 * Entries that the kernel has made contiguous stay contiguous when a neighbour
 * changes [41, 106, 118].
 */
static void kernel_mm_never_converted(struct kunit *test)
{
	const struct kernel_mm *kernel = test->param_value;
	struct contpte_fixture *f = test->priv;
	struct mm_struct *mm = f->table->mm;
	const struct kernel_op *op;
	unsigned int i;

	if (!kernel->mm)
		kunit_skip(test, "needs CONFIG_EFI");

	/* Entries are accounted to the mm in which they are set and cleared. */
	f->table->mm = kernel->mm;

	for (i = 0; i < CONT_PTES; i++) {
		set_pte_at(kernel->mm, contpte_addr(f, i), contpte_ptep(f, i),
			   contpte_pte(f, i));
		f->table->want[i] = contpte_pte(f, i);
	}
	contpte_check(f, "set_pte_at in %s, ascending", kernel->desc);

	for (op = kernel_ops; op < kernel_ops + ARRAY_SIZE(kernel_ops); op++) {
		contpte_reset(f);
		contpte_fill(f, 0, 0, true, 0, CONTPTE_NOWHERE);
		op->run(kernel->mm, contpte_addr(f, 1), contpte_ptep(f, 1));
		for (i = 1; i < 1 + op->nr; i++) {
			pte_t *want = f->table->want + i;

			*want = op->wrprotects ? pte_wrprotect(*want) : __pte(0);
		}
		contpte_check(f, "%s in %s", op->desc, kernel->desc);
	}
	contpte_reset(f);
	f->table->mm = mm;
}

static struct kunit_suite contpte_mixed_suite;

static int contpte_mixed_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_mixed_suite);

	if (err)
		return err;
	test->priv = contpte_fixture_alloc(test);
	return 0;
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
	.init = contpte_mixed_init,
	.test_cases = contpte_mixed_cases,
};

kunit_test_suite(contpte_mixed_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: entries that are not alike");
MODULE_LICENSE("GPL");
