// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: functions that work on a range of entries.
 *
 * set_ptes() sets the contiguous bit where a range covers whole blocks. The
 * functions that clear or write-protect a range have to unfold the blocks that
 * it covers in part. Any other unfolding costs a TLB invalidation for nothing; a
 * missing one leaves a contiguous entry over pages that are gone.
 *
 * Each case runs the real function on real entries for all ranges in a window
 * of four blocks, and compares the whole table, the value returned and the TLB
 * invalidations with a model. Where blocks are large (16K and 64K pages), the
 * ranges start and end near the edges and the middle of a block.
 *
 * Not covered: single entries (contpte_fold), readers (contpte_read), real
 * address spaces (contpte_vma), the order of writes and invalidations.
 *
 * Run: ./tools/testing/kunit/kunit.py run --arch=arm64 'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

/*
 * set_ptes() of new entries sets the contiguous bit exactly for the blocks that
 * the range covers, if addresses and PFNs are aligned to a block at the same
 * time, and never invalidates anything [contpte 67, 69-72]. From entry 2 on:
 *
 *	entries	|..2.....|........|........|...	 (a bar each CONT_PTES)
 *	range	    <--------------------->
 *	PTE_CONT	  |cccccccc|cccccccc|
 *
 * The case tries all starts in three blocks, all ends in four, and all offsets
 * of the PFN within a block: a comparison that is off by one shows.
 */
static void set_ptes_range(struct kunit *test)
{
	unsigned int start, end, off, i, ranges = 0, failed = 0;
	struct contpte_fixture *f = test->priv;

	for (start = 0; start < 3 * CONT_PTES; start = contpte_next(start)) {
		for (end = start + 2; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
			for (off = 0; off < CONT_PTES; off = contpte_next(off)) {
				contpte_reset(f);
				set_ptes(f->table->mm, contpte_addr(f, start),
					 contpte_ptep(f, start),
					 contpte_pte(f, off + start),
					 end - start);
				for (i = start; i < end; i++) {
					unsigned int block = ALIGN_DOWN(i, CONT_PTES);
					pte_t pte = contpte_pte(f, off + i);

					if (!off && block >= start &&
					    block + CONT_PTES <= end)
						pte = contpte_mkfolded(pte);
					f->table->want[i] = pte;
				}
				ranges++;
				if (!contpte_check(f, "set_ptes of [%u, %u), PFN off by %u",
						   start, end, off) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/*
 * A range ends at the end of a table, and is as large as the folio allows: with
 * 4K pages the whole table [contpte 68, 84]. Nothing is written after it.
 */
static void set_ptes_to_table_end(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	unsigned int nr = min(PTRS_PER_PTE, 512);
	unsigned int start = PTRS_PER_PTE - nr, i;

	f->folio = pgtable_kunit_folio_alloc(test, ilog2(nr));
	set_ptes(f->table->mm, contpte_addr(f, start), contpte_ptep(f, start),
		 contpte_pte(f, 0), nr);
	for (i = 0; i < nr; i++)
		f->table->want[start + i] = contpte_mkfolded(contpte_pte(f, i));
	contpte_check(f, "set_ptes of the last %u", nr);
}

/*
 * An entry that is present but not valid (PROT_NONE) must not become
 * contiguous, nor valid, even if it comes with a contiguous bit that leaked
 * from a getter [contpte 75, 76]. A valid entry must not keep a leaked bit if
 * the range does not cover its block [74].
 */
static void set_ptes_leaked_bit(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	unsigned int i;
	pte_t pte;

	contpte_skip_unless_folds(test);
	if (contpte_set_none(f))
		pgtable_kunit_known_issue(test, 22, "PROT_NONE entries become contiguous");
	else
		pgtable_kunit_stale_issue(test, 22);
	contpte_check(f, "set_ptes of PROT_NONE with PTE_CONT");

	contpte_reset(f);
	pte = contpte_mkcont(contpte_pte(f, 0));
	set_ptes(f->table->mm, f->table->addr, f->table->pte, pte,
		 CONT_PTES - 1);
	for (i = 0; i < CONT_PTES - 1; i++)
		f->table->want[i] = contpte_pte(f, i);
	contpte_check(f, "set_ptes of less than a block with PTE_CONT");
}

/*
 * set_ptes() never folds mappings of the kernel, since the kernel cannot
 * tolerate the fault that a conversion may cause [contpte 77].
 */
static void set_ptes_kernel_mm(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	unsigned int i;

	set_ptes(&init_mm, f->table->addr, f->table->pte, contpte_pte(f, 0),
		 CONTPTE_WINDOW);
	for (i = 0; i < CONTPTE_WINDOW; i++)
		f->table->want[i] = contpte_pte(f, i);
	contpte_check(f, "set_ptes in init_mm");

	/* The table belongs to another mm. */
	for (i = 0; i < CONTPTE_WINDOW; i++)
		pgtable_kunit_raw_clear(&init_mm, contpte_addr(f, i),
					contpte_ptep(f, i));
}

/*
 * A migration entry remembers whether the page was young, and reads back
 * exactly as it was written [contpte 80]. Known issue 1: with 52-bit physical
 * addresses the young bit is bit 52, which is PTE_CONT in an entry that is
 * present. set_ptes() clears it without checking whether the entry is present.
 */
static void set_pte_at_migration_entry_young(struct kunit *test)
{
#ifdef CONFIG_MIGRATION
	struct contpte_fixture *f = test->priv;
	unsigned long pfn = folio_pfn(f->folio);
	swp_entry_t entry = make_readable_migration_entry(pfn);
	pte_t old, young, got;

	if (!migration_entry_supports_ad())
		kunit_skip(test, "migration entries have no young bit");

	old = swp_entry_to_pte(entry);
	young = swp_entry_to_pte(make_migration_entry_young(entry));

	set_pte_at(f->table->mm, contpte_addr(f, 0), contpte_ptep(f, 0), old);
	got = pgtable_kunit_raw_get(contpte_ptep(f, 0));
	KUNIT_EXPECT_EQ(test, pte_val(got), pte_val(old));
	pgtable_kunit_raw_clear(f->table->mm, contpte_addr(f, 0),
				contpte_ptep(f, 0));

	set_pte_at(f->table->mm, contpte_addr(f, 0), contpte_ptep(f, 0), young);
	got = pgtable_kunit_raw_get(contpte_ptep(f, 0));

	if ((pte_val(old) ^ pte_val(young)) == PTE_CONT && pte_same(got, old)) {
		pgtable_kunit_known_issue(test, 1,
					  "migration entry loses young: wrote %016llx, read %016llx",
					  pte_val(young), pte_val(got));
		return;
	}
	KUNIT_EXPECT_EQ(test, pte_val(got), pte_val(young));
	KUNIT_EXPECT_TRUE(test, pgtable_kunit_migration_young(got));
	if (CONTPTE_FOLDS && (pte_val(old) ^ pte_val(young)) == PTE_CONT)
		pgtable_kunit_stale_issue(test, 1);
#else
	kunit_skip(test, "needs CONFIG_MIGRATION");
#endif
}

/* A function that clears or write-protects entries. */
struct contpte_op {
	const char *desc;
	pte_t (*run)(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		     unsigned int nr);
	bool single;		/* it works on one entry */
	bool clears;
	bool returns;		/* it returns the first entry, with merged bits */
};

static pte_t op_get_and_clear(struct mm_struct *mm, unsigned long addr,
			      pte_t *ptep, unsigned int nr)
{
	return get_and_clear_full_ptes(mm, addr, ptep, nr, 0);
}

static pte_t op_get_and_clear_full(struct mm_struct *mm, unsigned long addr,
				   pte_t *ptep, unsigned int nr)
{
	return get_and_clear_full_ptes(mm, addr, ptep, nr, 1);
}

static pte_t op_clear(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		      unsigned int nr)
{
	clear_full_ptes(mm, addr, ptep, nr, 0);
	return __pte(0);
}

static pte_t op_clear_all(struct mm_struct *mm, unsigned long addr,
			  pte_t *ptep, unsigned int nr)
{
	clear_full_ptes(mm, addr, ptep, nr, 1);
	return __pte(0);
}

static pte_t op_wrprotect(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
			  unsigned int nr)
{
	wrprotect_ptes(mm, addr, ptep, nr);
	return __pte(0);
}

static pte_t op_single_clear(struct mm_struct *mm, unsigned long addr,
			     pte_t *ptep, unsigned int nr)
{
	pte_t old = pgtable_kunit_raw_get(ptep);

	pte_clear(mm, addr, ptep);
	pgtable_kunit_uncount(mm, addr, ptep, old);
	return __pte(0);
}

static pte_t op_single_get_and_clear(struct mm_struct *mm, unsigned long addr,
				     pte_t *ptep, unsigned int nr)
{
	return ptep_get_and_clear(mm, addr, ptep);
}

static pte_t op_single_wrprotect(struct mm_struct *mm, unsigned long addr,
				 pte_t *ptep, unsigned int nr)
{
	ptep_set_wrprotect(mm, addr, ptep);
	return __pte(0);
}

static const struct contpte_op contpte_ops[] = {
	{ .desc = "get_and_clear_full_ptes, full=0", .run = op_get_and_clear,
	  .clears = true, .returns = true },
	{ .desc = "get_and_clear_full_ptes, full=1",
	  .run = op_get_and_clear_full, .clears = true, .returns = true },
	{ .desc = "clear_full_ptes, full=0", .run = op_clear, .clears = true },
	{ .desc = "clear_full_ptes, full=1", .run = op_clear_all,
	  .clears = true },
	{ .desc = "wrprotect_ptes", .run = op_wrprotect },
	{ .desc = "pte_clear", .run = op_single_clear, .single = true,
	  .clears = true },
	{ .desc = "ptep_get_and_clear", .run = op_single_get_and_clear,
	  .single = true, .clears = true, .returns = true },
	{ .desc = "ptep_set_wrprotect", .run = op_single_wrprotect,
	  .single = true },
};

KUNIT_ARRAY_PARAM_DESC(contpte_op, contpte_ops, desc);

static pte_t op_model(struct contpte_fixture *f, const struct contpte_op *op,
		      int start, int end)
{
	pte_t *want = f->table->want, first;
	bool young = false, dirty = false;
	int i;

	contpte_model_unfold_partial(f, start, end);
	first = want[start];
	for (i = start; i < end; i++) {
		young |= pte_young(want[i]);
		dirty |= pte_dirty(want[i]);
		want[i] = op->clears ? __pte(0) : pte_wrprotect(want[i]);
	}
	if (!op->returns)
		return __pte(0);
	if (young)
		first = pte_mkyoung(first);
	if (dirty)
		first = pte_mkdirty(first);
	return first;
}

/* Drop the contiguous bit, which may leak, and use one form of dirty. */
static pte_t op_returned(pte_t pte)
{
	pte = pte_mknoncont(pte);
	return pte_dirty(pte) ? pte_mkdirty(pte) : pte;
}

/*
 * Clearing [contpte 85-87, 89-96, 100-104] and write-protecting [108-112, 120]
 * a range unfolds each block that it covers in part, once. It does not unfold
 * blocks that it covers as a whole or does not touch, and changes nothing else
 * outside of the range. In this example two blocks are unfolded, and one stays
 * folded or vanishes without an invalidation:
 *
 *	entries	|cccccccc|cccccccc|cccccccc|cccccccc|
 *	range	       <------------------->
 *	after	|nnnnnn--|--------|--------|--nnnnnn|	or, write-protected:
 *		|nnnnnnRR|RcRcRcRc|RcRcRcRc|RRnnnnnn|
 *
 * Accessed and dirty bits of an unfolded block spread to all its entries. The
 * value returned has the accessed and dirty bits of all entries that were
 * cleared. The case tries every range in four blocks, folded in every way,
 * since the decision about the first block must not depend on the last. The
 * window is at either end of the table.
 */
static void range_op_matches_model(struct kunit *test)
{
	const struct contpte_op *op = test->param_value;
	unsigned int start, end, mask, ranges = 0, failed = 0;
	struct contpte_fixture *f = test->priv;
	struct pgtable_kunit_pte_diff diff;

	for (mask = 0; mask < BIT(CONTPTE_BLOCKS); mask++) {
		int base = mask & 1 ? 0 : PTRS_PER_PTE - CONTPTE_WINDOW;

		for (start = 0; start < CONTPTE_WINDOW; start = contpte_next(start)) {
			for (end = start + 1; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
				pte_t got, want;
				bool ok;

				if (op->single && end > start + 1)
					break;
				contpte_fill_window(f, base, mask, start + mask,
						    end);
				got = op->run(f->table->mm,
					      contpte_addr(f, base + start),
					      contpte_ptep(f, base + start),
					      end - start);
				want = op_model(f, op, base + start, base + end);

				ranges++;
				ok = contpte_check(f, "%s of [%u, %u), folded blocks %#x",
						   op->desc, start, end, mask);
				got = op_returned(got);
				want = op_returned(want);
				if (!pte_same(got, want)) {
					KUNIT_FAIL(test,
						   "%s of [%u, %u), folded blocks %#x returns %016llx, expected %016llx%s",
						   op->desc, start, end, mask,
						   pte_val(got), pte_val(want),
						   pgtable_kunit_pte_diff(&diff, got, want));
					ok = false;
				}
				if (!ok && ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/*
 * mprotect() takes entries out and puts them back with other bits [contpte
 * 233]. Taking them out unfolds the blocks that the range covers in part. It
 * returns the first entry with the accessed and dirty bits of all entries, and
 * perhaps the contiguous bit. Putting them back gives these two bits to all
 * entries, and the contiguous bit to the blocks that the range covers:
 *
 *	entries	|cccccccc|cccccccc|cccccccc|cccccccc|
 *	range	       <------------------->
 *	after	|nnnnnnRR|RcRcRcRc|RcRcRcRc|RRnnnnnn|
 */
static void modify_prot_range(struct kunit *test)
{
	static const struct contpte_op op = { .clears = true, .returns = true };
	unsigned int start, end, nr, mask, i, ranges = 0, failed = 0;
	struct contpte_fixture *f = test->priv;
	struct vm_area_struct *vma = &f->vma;

	for (mask = 0; mask < BIT(CONTPTE_BLOCKS); mask += BIT(CONTPTE_BLOCKS) - 1) {
		for (start = 0; start < CONTPTE_WINDOW; start = contpte_next(start)) {
			for (end = start + 1; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
				unsigned long addr = contpte_addr(f, start);
				pte_t *ptep = contpte_ptep(f, start), pte, want;

				if (end > start + 1 &&
				    !PGTABLE_KUNIT_MODIFY_PROT_RANGES)
					break;
				contpte_fill_window(f, 0, mask, start, end);
				nr = end - start;
				pte = pgtable_kunit_modify_prot_start(vma, addr,
								      ptep, nr);
				want = pte_wrprotect(pte);
				pgtable_kunit_modify_prot_commit(vma, addr, ptep,
								 pte, want, nr);

				want = pte_wrprotect(op_model(f, &op, start, end));
				for (i = start; i < end; i++) {
					unsigned int block = ALIGN_DOWN(i, CONT_PTES);

					pte = pte_mknoncont(pte_advance_pfn(want, i - start));
					if (block >= start && block + CONT_PTES <= end)
						pte = contpte_mkfolded(pte);
					f->table->want[i] = pte;
				}
				ranges++;
				if (!contpte_check(f, "modify_prot of [%u, %u), folded blocks %#x",
						   start, end, mask) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/* Text with and without read permission, data, and text made PROT_NONE. */
static const struct erratum_prot {
	const char *desc;
	unsigned long vm_flags;
	bool exec;
} erratum_prots[] = {
	{ "text", VM_READ | VM_EXEC, .exec = true },
	{ "writable text", VM_READ | VM_WRITE | VM_EXEC | VM_SHARED,
	  .exec = true },
	{ "data", VM_READ | VM_WRITE | VM_SHARED },
	{ "PROT_NONE", VM_NONE },
};

/*
 * On a CPU with erratum 2645198, mprotect() invalidates executable entries of
 * user space when it has taken them out and not put them back yet: once, for
 * exactly the range. On any other CPU, and for all other entries, it
 * invalidates nothing [contpte 218]. The range is one entry, or if the kernel
 * takes out ranges, a block or a part of a block. The kernel checks only the
 * CPU's ID, so --qemu_args '-cpu max,midr=0x411fd4d0' emulates such a CPU.
 */
static void modify_prot_erratum(struct kunit *test)
{
	bool affected = IS_ENABLED(CONFIG_ARM64_ERRATUM_2645198) &&
			cpus_have_final_cap(ARM64_WORKAROUND_2645198);
	static const unsigned int nrs[] = { 1, 2, CONT_PTES - 1, CONT_PTES };
	struct contpte_fixture *f = test->priv;
	unsigned int n, p, i, calls = 0, flushes = 0;

	for (p = 0; p < ARRAY_SIZE(erratum_prots); p++) {
		const struct erratum_prot *prot = &erratum_prots[p];

		for (n = 0; n < ARRAY_SIZE(nrs); n++) {
			unsigned int nr = nrs[n];
			pte_t pte;

			if (nr > 1 && !PGTABLE_KUNIT_MODIFY_PROT_RANGES)
				break;
			contpte_reset(f);
			for (i = 0; i < nr; i++) {
				pte = pfn_pte(folio_pfn(f->folio) + i,
					      vm_get_page_prot(prot->vm_flags));
				pgtable_kunit_table_set(f->table, i, pte);
			}
			pte = pgtable_kunit_modify_prot_start(&f->vma,
							      contpte_addr(f, 0),
							      contpte_ptep(f, 0), nr);
			memset(f->table->want, 0, nr * sizeof(pte_t));
			if (affected && prot->exec)
				contpte_model_flush(f, 0, nr);
			flushes += f->flushes;
			contpte_check(f, "%u entries of %s taken out", nr,
				      prot->desc);
			pgtable_kunit_modify_prot_commit(&f->vma,
							 contpte_addr(f, 0),
							 contpte_ptep(f, 0),
							 pte, pte, nr);
			calls++;
		}
	}
	contpte_reset(f);
	PGTABLE_KUNIT_DID(test, calls, "calls");
	if (affected)
		PGTABLE_KUNIT_DID(test, flushes, "invalidations for the erratum");
}

static const unsigned long flush_strides[] = { PAGE_SIZE, CONT_PTE_SIZE, PMD_SIZE };

/* Invalidate in each form. Other users of the table must be notified. */
static void flush_tlb_check(struct kunit *test, unsigned long start,
			    unsigned long end, unsigned long stride,
			    unsigned long told_start, unsigned long told_end)
{
	struct contpte_fixture *f = test->priv;
	unsigned int form;

	for (form = 0; form < 4; form++) {
		f->tlb->nr = 0;
		pgtable_kunit_flush_tlb_range(&f->vma, start, end, stride,
					      form & 1, form & 2);
		KUNIT_EXPECT_EQ(test, f->tlb->nr, 1);
		KUNIT_EXPECT_EQ_MSG(test, f->tlb->range[0].start, told_start,
				    "[%lx, %lx) by %lx", start, end, stride);
		KUNIT_EXPECT_EQ_MSG(test, f->tlb->range[0].end, told_end,
				    "[%lx, %lx) by %lx", start, end, stride);
	}
}

/*
 * An invalidation covers whole steps, of a page, a block or a PMD. Other users
 * of the table (an IOMMU, a guest) are notified once, for last levels only or
 * for all, with a wait and without [contpte 210]:
 *
 *	asked	    <--------->
 *	steps	|--------|--------|--------|
 *	notified <----------------->
 */
static void flush_tlb_range_rounds(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	unsigned int start, end, i;

	for (i = 0; i < ARRAY_SIZE(flush_strides); i++) {
		unsigned long stride = flush_strides[i];

		for (start = 0; start < 2 * CONT_PTES; start = contpte_next(start)) {
			for (end = start + 1; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
				unsigned long from = contpte_addr(f, start);
				unsigned long to = contpte_addr(f, end);

				flush_tlb_check(test, from, to, stride,
						round_down(from, stride),
						round_up(to, stride));
			}
		}
	}
}

/*
 * If a range needs too many instructions, the kernel invalidates the whole mm
 * [contpte 210]. If the CPU has instructions for ranges, the limit is the
 * architecture's largest range, 2097152 pages, (31 + 1) << (5 * 3 + 1).
 * Otherwise the kernel's limit is one step less than a table has entries. The
 * case tries the last range up to the limit and the first above it.
 */
static void flush_tlb_range_too_long(struct kunit *test)
{
	struct contpte_fixture *f = test->priv;
	unsigned long start = contpte_addr(f, 0), most;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flush_strides); i++) {
		unsigned long stride = flush_strides[i];

		if (system_supports_tlb_range())
			most = 2097152 * PAGE_SIZE;
		else
			most = (PTRS_PER_PTE - 1) * stride;
		flush_tlb_check(test, start, start + most, stride,
				start, start + most);
		flush_tlb_check(test, start, start + most + stride, stride,
				0, ULONG_MAX);
	}
}

static struct kunit_suite contpte_suite;

static int contpte_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &contpte_suite);

	if (err)
		return err;
	test->priv = contpte_fixture_alloc(test);
	return 0;
}

static struct kunit_case contpte_cases[] = {
	KUNIT_CASE_SLOW(set_ptes_range),
	KUNIT_CASE(set_ptes_to_table_end),
	KUNIT_CASE(set_ptes_leaked_bit),
	KUNIT_CASE(set_ptes_kernel_mm),
	KUNIT_CASE(set_pte_at_migration_entry_young),
	KUNIT_CASE_PARAM_ATTR(range_op_matches_model, contpte_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_SLOW(modify_prot_range),
	KUNIT_CASE(modify_prot_erratum),
	KUNIT_CASE(flush_tlb_range_rounds),
	KUNIT_CASE(flush_tlb_range_too_long),
	{}
};

static struct kunit_suite contpte_suite = {
	.name = "contpte",
	.init = contpte_init,
	.test_cases = contpte_cases,
};

kunit_test_suite(contpte_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: ranges");
MODULE_LICENSE("GPL");
