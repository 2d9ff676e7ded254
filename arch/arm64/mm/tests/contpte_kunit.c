// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs: functions that work on a range of entries.
 *
 * set_ptes() sets the contiguous bit where a range covers whole blocks. The
 * functions that clear or write-protect a range have to unfold the blocks that
 * it covers in part. Any other unfolding costs an unnecessary TLB invalidation.
 * A missing unfolding leaves contiguous entries that cover removed pages.
 *
 * Each case runs the real function on real entries for all ranges in a window
 * of four blocks. It compares the whole table, the returned value and the TLB
 * invalidations with a model. Where blocks are large (16K and 64K pages), the
 * ranges start and end near the edges and the middle of a block.
 *
 * Not covered: single entries (contpte_fold), readers (contpte_read), real
 * address spaces (contpte_vma), the order of writes and invalidations.
 *
 * Begin with contpte_fold, and then read this suite.
 *
 * Run: ./tools/testing/kunit/kunit.py run --arch=arm64 'contpte*'
 */

#include <kunit/test.h>

#include "contpte.h"

/*
 * set_ptes() of new entries sets the contiguous bit for all blocks that the
 * range covers completely, and for no others, if addresses and PFNs have the
 * same alignment to blocks. Otherwise it sets no contiguous bit. It never
 * invalidates anything. An example from entry 2 on:
 *
 *	entries	|..2.....|........|........|...	 (a bar each CONT_PTES)
 *	range	   <---------------------->
 *	PTE_CONT	 |cccccccc|cccccccc|
 *
 * The case tries all starts in three blocks, all ends in four, and all offsets
 * of the PFN within a block. So a comparison that is off by one is noticed.
 */
static void set_ptes_range(struct kunit *test)
{
	unsigned int start, end, off, ranges = 0, failed = 0;
	struct pte_ctx *f = test->priv;

	for (start = 0; start < 3 * CONT_PTES; start = contpte_next(start)) {
		for (end = start + 2; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
			for (off = 0; off < CONT_PTES; off = contpte_next(off)) {
				contpte_empty_window(f);
				ranges++;
				if (!contpte_set(f, start, end - start,
						 contpte_entry(off + start), 0) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, ranges, "ranges");
}

/*
 * A range ends at the end of a table, and is as large as the folio. With 4K
 * pages it is the whole table. Nothing is written after the table.
 */
static void set_ptes_to_table_end(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
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
 * A PROT_NONE entry (present but not valid) must not become contiguous or
 * valid, even if a contiguous bit leaked into it from a getter. A valid entry
 * must not keep a leaked bit if the range does not cover its block.
 */
static void set_ptes_leaked_bit(struct kunit *test)
{
	struct pte_ctx *f = test->priv;

	contpte_skip_unless_folds(test);
	if (contpte_set_none(f))
		pgtable_kunit_known_issue(test, 22, "PROT_NONE entries become contiguous");
	else
		pgtable_kunit_stale_issue(test, 22);
	contpte_check(f, "set_ptes of PROT_NONE with PTE_CONT");

	pte_ctx_reset(f);
	contpte_set(f, 0, CONT_PTES - 1, contpte_entry(0), PTE_STEP_LEAK);
}

/*
 * set_ptes() never folds mappings of the kernel, since the kernel cannot
 * tolerate the fault that a conversion may cause.
 */
static void set_ptes_kernel_mm(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	struct mm_struct *mm = f->table->mm;

	contpte_kernel_mm(f, &init_mm);
	contpte_set(f, 0, CONTPTE_WINDOW, contpte_entry(0), 0);
	pte_ctx_reset(f);
	f->table->mm = mm;
}

/*
 * A migration entry records whether the page was young, and a read must return
 * it unchanged. Known issue 1: with 52-bit physical addresses the young bit is
 * bit 52, which is PTE_CONT in an entry that is present. set_ptes() clears this
 * bit without checking whether the entry is present.
 */
static void set_pte_at_migration_entry_young(struct kunit *test)
{
#ifdef CONFIG_MIGRATION
	struct pte_ctx *f = test->priv;
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

/*
 * The functions that replace, clear or write-protect pages. *_clear_ptes() only
 * call these functions with full=0, and contpte_order tests that. This case
 * leaves them out, since all ranges of one function take a second.
 */
static bool op_wanted(const struct pte_case *pc)
{
	return pc->id != PTE_OP_GET_AND_CLEAR_PTES &&
	       pc->id != PTE_OP_CLEAR_PTES && pc->op->finds != PTE_OP_FINDS_NOTHING &&
	       (pc->op->does == PTE_OP_SETS || pc->op->does == PTE_OP_CLEARS ||
		pc->op->does == PTE_OP_PROTECTS);
}

static PGTABLE_KUNIT_GEN_PARAMS(contpte_op)
{
	return pte_case_next(&pte_arch_backend, prev, op_wanted, desc);
}

/*
 * Clearing and write-protecting a range unfolds each block that it covers in
 * part, once. It does not unfold a block that lies wholly inside or wholly
 * outside of the range. Apart from unfolding, it changes nothing outside of the
 * range. In this example two blocks are unfolded. The blocks between them stay
 * folded, or are cleared without an invalidation:
 *
 *	entries	|cccccccc|cccccccc|cccccccc|cccccccc|
 *	range	       <--------------------->
 *	after	|nnnnnn--|--------|--------|--nnnnnn|	or, write-protected:
 *		|nnnnnnRR|RcRcRcRc|RcRcRcRc|RRnnnnnn|
 *
 * Accessed and dirty bits of an unfolded block spread to all its entries. The
 * value returned has the accessed and dirty bits of all entries that were
 * cleared. mprotect() removes entries and sets them again with other bits. Then
 * all entries get these two bits, and the blocks that the range covers get the
 * contiguous bit.
 *
 * The case tries every range in four blocks, folded in every combination, since
 * the decision about the first block must not depend on the last block. The
 * window is at either end of the table.
 */
static void range_op_matches_model(struct kunit *test)
{
	const struct pte_case pc = pte_case_get(&pte_arch_backend,
						test->param_value);
	unsigned int start, end, mask, ranges = 0, failed = 0;
	struct pte_ctx *f = test->priv;
	struct pte_step step = { .op = pc.id, .flags = pc.flags };

	for (mask = 0; mask < BIT(CONTPTE_BLOCKS); mask++) {
		int base = mask & 1 ? 0 : PTRS_PER_PTE - CONTPTE_WINDOW;

		for (start = 0; start < CONTPTE_WINDOW; start = contpte_next(start)) {
			for (end = start + 1; end < CONTPTE_WINDOW + 1; end = contpte_next(end)) {
				if (!pc.op->takes_range && end > start + 1)
					break;
				contpte_fill_window(f, base, mask, start + mask,
						    end);
				step.idx = start;
				step.nr = end - start;
				step.entry = pte_case_entry(&pc, &f->model.entry[start]);
				ranges++;
				if (pte_op_run(f, &step, true))
					continue;
				kunit_err(test, "%s, folded blocks %#x\n",
					  pc.desc, mask);
				if (++failed == PGTABLE_KUNIT_ENOUGH)
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
 * user space between their removal and the write of the new entries. It does so
 * once, for exactly the range. On any other CPU, and for all other entries, it
 * invalidates nothing. The range is one entry. If the kernel removes whole
 * ranges at once, the case also tries a block and a part of a block. The kernel
 * checks only the ID of the CPU, so this option emulates such a CPU:
 * --qemu_args '-cpu max,midr=0x411fd4d0'.
 */
static void modify_prot_erratum(struct kunit *test)
{
	bool affected = IS_ENABLED(CONFIG_ARM64_ERRATUM_2645198) &&
			cpus_have_final_cap(ARM64_WORKAROUND_2645198);
	static const unsigned int nrs[] = { 1, 2, CONT_PTES - 1, CONT_PTES };
	struct pte_ctx *f = test->priv;
	unsigned int n, p, i, calls = 0, flushes = 0;

	for (p = 0; p < ARRAY_SIZE(erratum_prots); p++) {
		const struct erratum_prot *prot = &erratum_prots[p];

		for (n = 0; n < ARRAY_SIZE(nrs); n++) {
			unsigned int nr = nrs[n];
			pte_t pte;

			if (nr > 1 && !PGTABLE_KUNIT_MODIFY_PROT_RANGES)
				break;
			pte_ctx_reset(f);
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
			flushes += f->model.flushes;
			contpte_check(f, "%u entries of %s taken out", nr,
				      prot->desc);
			pgtable_kunit_modify_prot_commit(&f->vma,
							 contpte_addr(f, 0),
							 contpte_ptep(f, 0),
							 pte, pte, nr);
			calls++;
		}
	}
	pte_ctx_reset(f);
	PGTABLE_KUNIT_DID(test, calls, "calls");
	if (affected)
		PGTABLE_KUNIT_DID(test, flushes, "invalidations for the erratum");
}

/* Entries that mprotect() removes in one call, and sets again in two parts. */
static const struct prot_part {
	const char *desc;
	bool folded;
	unsigned int start;
	unsigned int first;
	unsigned int second;
} prot_parts[] = {
	{ "folded, two halves", true, 0, CONT_PTES / 2, CONT_PTES / 2 },
	{ "folded, first page alone", true, 0, 1, CONT_PTES - 1 },
	{ "folded, last page alone", true, 0, CONT_PTES - 1, 1 },
	{ "folded, one and a half blocks", true, CONT_PTES / 2, CONT_PTES,
	  CONT_PTES / 2 },
	{ "folded, one block", true, 0, CONT_PTES, 0 },
	{ "folded, half a block", true, 0, CONT_PTES / 2, 0 },
	{ "single, one block", false, 0, CONT_PTES, 0 },
	{ "single, one and a half blocks", false, CONT_PTES / 2,
	  CONT_PTES + CONT_PTES / 2, 0 },
	{ "single, two halves", false, 0, CONT_PTES / 2, CONT_PTES / 2 },
};

/* Record which entries were empty when their translations were invalidated. */
struct prot_look {
	struct pte_ctx *f;
	bool broken[2 * CONT_PTES];
};

static void prot_look(void *data)
{
	struct prot_look *look = data;
	struct pte_ctx *f = look->f;
	unsigned int i, last = f->tlb->nr - 1;

	if (last >= PGTABLE_KUNIT_FLUSHES)
		return;
	for (i = 0; i < ARRAY_SIZE(look->broken); i++) {
		if (contpte_addr(f, i) >= f->tlb->range[last].start &&
		    contpte_addr(f, i) < f->tlb->range[last].end &&
		    pte_none(pgtable_kunit_raw_get(contpte_ptep(f, i))))
			look->broken[i] = true;
	}
}

static void prot_commit(struct pte_ctx *f, unsigned int start,
			unsigned int done, unsigned int nr, pte_t old, pte_t pte)
{
	if (nr)
		pgtable_kunit_modify_prot_commit(&f->vma,
						 contpte_addr(f, start + done),
						 contpte_ptep(f, start + done),
						 pte_advance_pfn(old, done),
						 pte_advance_pfn(pte, done), nr);
}

/*
 * mprotect() removes a run of entries, and sets it again in parts if only some
 * pages may become writable. A block that is set in parts is no longer folded,
 * and single entries that are set as a whole block are folded:
 *
 *	out:   |cccccccccccccccc|	|nnnnnnnn nnnnnnnn|
 *	back:  |nnnnnnnn|nnnnnnnn|	|cccccccccccccccc|
 *
 * A TLB that has both an old and a new translation of an address may raise a
 * TLB conflict abort. So if the size of an entry changes, the entry needs an
 * invalidation while it is empty. The case also tries runs that keep their
 * size, which need no invalidation.
 */
static void modify_prot_size_breaks_first(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
	struct prot_look look = { .f = f };
	unsigned int p, i, changed = 0, missed = 0;
	const char *where = "";

	contpte_skip_unless_folds(test);
	if (!PGTABLE_KUNIT_MODIFY_PROT_RANGES)
		kunit_skip(test, "this kernel changes protections one entry at a time");
	if (f->model.quiet)
		kunit_skip(test, "this CPU has BBM level 3");

	for (p = 0; p < ARRAY_SIZE(prot_parts); p++) {
		const struct prot_part *part = &prot_parts[p];
		unsigned int start = part->start, nr = part->first + part->second;
		pte_t old, pte;

		pte_ctx_reset(f);
		for (i = 0; i < 2 * CONT_PTES; i += CONT_PTES)
			contpte_fill(f, i, i, part->folded, CONTPTE_NOWHERE,
				     CONTPTE_NOWHERE);
		memset(look.broken, 0, sizeof(look.broken));
		f->tlb->look_data = &look;
		f->tlb->look = prot_look;
		old = pgtable_kunit_modify_prot_start(&f->vma,
						      contpte_addr(f, start),
						      contpte_ptep(f, start), nr);
		pte = pte_wrprotect(old);
		prot_commit(f, start, 0, part->first, old, old);
		prot_commit(f, start, part->first, part->second, old, pte);
		f->tlb->look = NULL;

		for (i = start; i < start + nr; i++) {
			unsigned int block = ALIGN_DOWN(i, CONT_PTES);
			/*
			 * The removal of a part of a block has unfolded the
			 * block.
			 */
			bool was = part->folded && block >= start &&
				   block + CONT_PTES <= start + nr;

			if (pte_cont(pgtable_kunit_raw_get(contpte_ptep(f, i))) == was)
				continue;
			changed++;
			if (!look.broken[i]) {
				missed++;
				where = part->desc;
			}
		}
	}
	pte_ctx_reset(f);
	PGTABLE_KUNIT_DID(test, changed, "entries of another size");
	if (missed == changed)
		pgtable_kunit_known_issue(test, 35,
					  "%u entries change their size without an invalidation",
					  missed);
	else if (missed)
		KUNIT_FAIL(test, "%s: %u of %u entries change their size without an invalidation",
			   where, missed, changed);
	else
		pgtable_kunit_stale_issue(test, 35);
}

static const unsigned long flush_strides[] = { PAGE_SIZE, CONT_PTE_SIZE, PMD_SIZE };

/* Invalidate in each form. Other users of the table must be notified. */
static void flush_tlb_check(struct kunit *test, unsigned long start,
			    unsigned long end, unsigned long stride,
			    unsigned long told_start, unsigned long told_end)
{
	struct pte_ctx *f = test->priv;
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
 * An invalidation covers whole units of its step size: a page, a block or a
 * PMD. Other users of the table (an IOMMU, a guest) are notified once. The case
 * tries last levels only and all levels, with and without a wait:
 *
 *	asked	    <--------->
 *	steps	|--------|--------|--------|
 *	notified <----------------->
 */
static void flush_tlb_range_rounds(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
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
 * If a range needs too many instructions, the kernel invalidates the whole mm.
 * If the CPU has instructions for ranges, the limit is the architecture's
 * largest range: 2097152 pages, or (31 + 1) << (5 * 3 + 1). Otherwise the limit
 * is one step less than the number of entries of a table. The case tries the
 * largest range within the limit and the smallest range above it.
 */
static void flush_tlb_range_too_long(struct kunit *test)
{
	struct pte_ctx *f = test->priv;
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

static struct kunit_case contpte_cases[] = {
	KUNIT_CASE_SLOW(set_ptes_range),
	KUNIT_CASE(set_ptes_to_table_end),
	KUNIT_CASE(set_ptes_leaked_bit),
	KUNIT_CASE(set_ptes_kernel_mm),
	KUNIT_CASE(set_pte_at_migration_entry_young),
	KUNIT_CASE_PARAM_ATTR(range_op_matches_model, contpte_op_gen_params,
			      PGTABLE_KUNIT_SLOW),
	KUNIT_CASE(modify_prot_erratum),
	KUNIT_CASE(modify_prot_size_breaks_first),
	KUNIT_CASE(flush_tlb_range_rounds),
	KUNIT_CASE(flush_tlb_range_too_long),
	{}
};

static struct kunit_suite contpte_suite = {
	.name = "contpte",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_init,
	.test_cases = contpte_cases,
};

kunit_test_suite(contpte_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs: ranges");
MODULE_LICENSE("GPL");
