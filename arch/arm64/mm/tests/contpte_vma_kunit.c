// SPDX-License-Identifier: GPL-2.0
/*
 * Contiguous PTEs in a real address space.
 *
 * The other suites call the functions on their own tables. In this suite the
 * kernel calls them. Each case populates anonymous memory with folios of
 * exactly one block, and system calls then unmap, split or protect parts of
 * blocks. A block may span two VMAs, since splitting a VMA does not change
 * entries. Each case states which blocks are folded afterwards, what each entry
 * permits, and that the remaining pages still have their data.
 *
 * Not covered: fork, migration, reclaim, userfaultfd, threads that run in the
 * address space meanwhile.
 *
 * Begin with contpte_fold. This suite uses none of the tables of the other
 * suites.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'contpte*'
 */

#include <kunit/test.h>
#include <linux/kprobes.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "contpte.h"

/**
 * struct vma_fixture - four blocks of memory
 * @test: the test
 * @addr: their address, aligned to a block
 * @model: their entries
 * @may_fold: a mask of blocks that may be folded, although the model says no
 */
struct vma_fixture {
	struct kunit *test;
	unsigned long addr;
	struct pte_model model;
	unsigned long may_fold;
};

static unsigned long vma_addr(struct vma_fixture *f, unsigned int page)
{
	return f->addr + page * PAGE_SIZE;
}

static int vma_write(struct vma_fixture *f, unsigned int page)
{
	return put_user(~page, (unsigned int __user *)vma_addr(f, page));
}

static bool vma_same(struct vma_fixture *f, unsigned int page1,
		     unsigned int page2)
{
	struct mm_struct *mm = current->mm;
	bool same;

	mmap_read_lock(mm);
	same = find_vma(mm, vma_addr(f, page1)) ==
	       find_vma(mm, vma_addr(f, page2));
	mmap_read_unlock(mm);
	return same;
}

/*
 * Compare entries and contents of all pages with the model. Accessed and dirty
 * bits are ignored: reclaim may age pages at any time.
 */
static void vma_check(struct vma_fixture *f, const char *fmt, ...)
{
	struct mm_struct *mm = current->mm;
	bool cont = false, folded;
	struct va_format vaf;
	unsigned int i;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;

	for (i = 0; i < CONTPTE_WINDOW; i++) {
		const struct pte_model_entry *e = &f->model.entry[i];
		bool mapped = e->kind == MODEL_VALID;
		unsigned int data = 0;
		pte_t pte = __pte(0), *ptep;
		spinlock_t *ptl;	/* of the table */

		mmap_read_lock(mm);
		ptep = pte_offset_map_lock(mm, pmd_off(mm, vma_addr(f, i)),
					   vma_addr(f, i), &ptl);
		if (ptep) {
			pte = pgtable_kunit_raw_get(ptep);
			pte_unmap_unlock(ptep, ptl);
		}
		mmap_read_unlock(mm);

		folded = e->cont;
		if (f->may_fold & BIT(i / CONT_PTES))
			folded = i % CONT_PTES ? cont : pte_cont(pte);
		cont = folded;
		if (pte_valid(pte) != mapped ||
		    (mapped && (pte_cont(pte) != folded ||
				pte_write(pte) != e->write))) {
			KUNIT_FAIL(f->test,
				   "%pV: page %u is %016llx, expected valid %d, writable %d, contiguous %d",
				   &vaf, i, pte_val(pte), mapped, e->write, folded);
			break;
		}
		if (mapped &&
		    (get_user(data, (unsigned int __user *)vma_addr(f, i)) ||
		     data != ~i)) {
			KUNIT_FAIL(f->test, "%pV: page %u contains %x, expected %x",
				   &vaf, i, data, ~i);
			break;
		}
	}
	va_end(args);
}

/*
 * Map four blocks, and write to each page its number. The mapping extends
 * beyond the four blocks on both sides, so that the page tables stay when the
 * blocks are unmapped.
 */
static void vma_populate(struct vma_fixture *f)
{
	struct kunit *test = f->test;
	unsigned long addr;
	unsigned int i;

	addr = kunit_vm_mmap(test, NULL, 0,
			     (CONTPTE_BLOCKS + 2) * CONT_PTE_SIZE,
			     PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	f->addr = ALIGN(addr + 1, CONT_PTE_SIZE);

	f->model.folds = CONTPTE_FOLDS;
	for (i = 0; i < CONTPTE_WINDOW; i++) {
		KUNIT_ASSERT_EQ(test, 0, vma_write(f, i));
		f->model.entry[i] = contpte_entry(i);
		f->model.entry[i].cont = CONTPTE_FOLDS;
	}
	vma_check(f, "populated");
}

/* The kernel calls @op for the entries from @start to @end. */
static void vma_model(struct vma_fixture *f, enum pte_op_id op,
		      unsigned int start, unsigned int end, unsigned int flags)
{
	const struct pte_step step = {
		.op = op, .flags = flags, .idx = start, .nr = end - start,
	};

	pte_model_step(&f->model, &step);
}

/* Parts of the window to which a system call is applied. */
static const struct vma_part {
	const char *desc;
	unsigned int start;
	unsigned int end;
} vma_parts[] = {
	{ "first page of a block", CONT_PTES, CONT_PTES + 1 },
	{ "middle page of a block", CONT_PTES + CONT_PTES / 2,
	  CONT_PTES + CONT_PTES / 2 + 1 },
	{ "last page of a block", 2 * CONT_PTES - 1, 2 * CONT_PTES },
	{ "middle of a block", CONT_PTES + CONT_PTES / 4,
	  CONT_PTES + CONT_PTES / 2 },
	{ "one block", CONT_PTES, 2 * CONT_PTES },
	{ "second half and first half", CONT_PTES / 2,
	  CONT_PTES + CONT_PTES / 2 },
	{ "half, two blocks and half", CONT_PTES / 2,
	  3 * CONT_PTES + CONT_PTES / 2 },
	{ "all", 0, CONTPTE_WINDOW },
};

KUNIT_ARRAY_PARAM_DESC(vma_part, vma_parts, desc);

/*
 * Unmapping removes exactly the range, and unfolds the blocks that keep some
 * pages. MADV_DONTNEED does the same, but the VMA stays. For example, if one
 * page of four blocks is unmapped, three blocks stay folded.
 */
static void munmap_part(struct kunit *test)
{
	const struct vma_part *part = test->param_value;
	struct vma_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, 0, vm_munmap(vma_addr(f, part->start),
					   (part->end - part->start) * PAGE_SIZE));
	vma_model(f, PTE_OP_CLEAR_FULL, part->start, part->end, 0);
	vma_check(f, "munmap of %s", part->desc);
}

static void madvise_dontneed_part(struct kunit *test)
{
	const struct vma_part *part = test->param_value;
	struct vma_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, 0, pgtable_kunit_syscall(madvise, vma_addr(f, part->start),
						       (part->end - part->start) * PAGE_SIZE,
						       MADV_DONTNEED));
	vma_model(f, PTE_OP_CLEAR_FULL, part->start, part->end, 0);
	vma_check(f, "MADV_DONTNEED of %s", part->desc);
}

/*
 * Making a part read-only, and writable again, changes only this part. If a
 * part of a block changes, the block is unfolded. If the whole block changes,
 * it is folded afterwards. This also holds if the kernel changes it page by
 * page, since the last page folds the block again. After the permission is
 * restored, each page of the window is writable without a fault, and a write
 * succeeds. If only a part of a block had lost the permission, the whole block
 * may be folded again.
 */
static void mprotect_part(struct kunit *test)
{
	const struct vma_part *part = test->param_value;
	struct vma_fixture *f = test->priv;
	unsigned int i, refused = 0;

	KUNIT_EXPECT_EQ(test, 0, pgtable_kunit_syscall(mprotect, vma_addr(f, part->start),
						       (part->end - part->start) * PAGE_SIZE,
						       PROT_READ));
	vma_model(f, PTE_OP_MODIFY_PROT, part->start, part->end, 0);
	vma_check(f, "mprotect of %s", part->desc);

	/* Read-only entries must not be writable. */
	for (i = 0; i < CONTPTE_WINDOW; i++) {
		bool written = !vma_write(f, i);

		KUNIT_EXPECT_EQ_MSG(test, written, f->model.entry[i].write,
				    "write to page %u, %s read-only", i,
				    part->desc);
		refused += !written;
	}
	vma_check(f, "writes, %s read-only", part->desc);
	PGTABLE_KUNIT_DID(test, refused, "writes that are refused");

	KUNIT_EXPECT_EQ(test, 0, pgtable_kunit_syscall(mprotect, vma_addr(f, part->start),
						       (part->end - part->start) * PAGE_SIZE,
						       PROT_READ | PROT_WRITE));
	for (i = part->start; i < part->end; i++) {
		if (CONTPTE_FOLDS && !f->model.entry[i].cont)
			f->may_fold |= BIT(i / CONT_PTES);
	}
	vma_model(f, PTE_OP_MODIFY_PROT, part->start, part->end, PTE_STEP_WRITE);
	vma_check(f, "%s writable again", part->desc);
	for (i = 0; i < CONTPTE_WINDOW; i++)
		KUNIT_EXPECT_EQ_MSG(test, 0, vma_write(f, i),
				    "write to page %u, %s writable again", i,
				    part->desc);
	vma_check(f, "writes, %s writable again", part->desc);
}

/*
 * A block that becomes read-only in two halves, the second half first, is not
 * folded. When all of it becomes writable, it is folded. Each page still has
 * its content, and a write succeeds. The translations of single pages must
 * leave the TLB before the kernel writes the block. `make tlb` with this suite
 * checks the TLB.
 */
static void mprotect_halves_then_whole(struct kunit *test)
{
	struct vma_fixture *f = test->priv;
	unsigned int first = CONT_PTES, middle = first + CONT_PTES / 2, i;

	KUNIT_EXPECT_EQ(test, 0, pgtable_kunit_syscall(mprotect, vma_addr(f, middle),
						       CONT_PTE_SIZE / 2, PROT_READ));
	KUNIT_EXPECT_EQ(test, 0, pgtable_kunit_syscall(mprotect, vma_addr(f, first),
						       CONT_PTE_SIZE / 2, PROT_READ));
	vma_model(f, PTE_OP_MODIFY_PROT, middle, first + CONT_PTES, 0);
	vma_model(f, PTE_OP_MODIFY_PROT, first, middle, 0);
	vma_check(f, "two halves read-only");

	KUNIT_EXPECT_EQ(test, 0, pgtable_kunit_syscall(mprotect, vma_addr(f, first),
						       CONT_PTE_SIZE, PROT_READ | PROT_WRITE));
	vma_model(f, PTE_OP_MODIFY_PROT, first, first + CONT_PTES, PTE_STEP_WRITE);
	vma_check(f, "one block writable");
	for (i = first; i < first + CONT_PTES; i++)
		KUNIT_EXPECT_EQ_MSG(test, 0, vma_write(f, i), "write to page %u", i);
	vma_check(f, "writes");
}

/*
 * If a VMA is split in the middle of a block, the entries stay: the block spans
 * two VMAs, and is still folded. If one VMA loses its pages, the pages in the
 * other VMA stay mapped, unfolded:
 *
 *	VMAs	|		A |		  B |
 *	blocks	|cccccccc|cccccccc|cccccccc|cccccccc|	split: no change
 *			     ^
 *	blocks	|--------|----nnnn|cccccccc|cccccccc|	A gone
 *
 * MADV_DONTFORK splits a VMA and does nothing else.
 */
static void madvise_splits_vma_in_block(struct kunit *test)
{
	struct vma_fixture *f = test->priv;
	unsigned int split;

	for (split = CONT_PTES + CONT_PTES / 2; split < CONTPTE_WINDOW;
	     split += CONT_PTES) {
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_syscall(madvise, f->addr,
						      split * PAGE_SIZE, MADV_DONTFORK));
		KUNIT_ASSERT_FALSE(test, vma_same(f, split - 1, split));
		vma_check(f, "VMA split at page %u", split);

		KUNIT_EXPECT_EQ(test, 0,
				pgtable_kunit_syscall(madvise, f->addr,
						      split * PAGE_SIZE, MADV_DONTNEED));
		vma_model(f, PTE_OP_CLEAR_FULL, 0, split, 0);
		vma_check(f, "VMA up to page %u gone", split);
	}
}

/* The buffer for the walk of this test, with one byte per page. */
static struct vma_answers {
	struct task_struct *task;
	u8 *bytes;
	unsigned int walks;
} vma_answers;

/*
 * A probe on walk_page_range[_vma](mm or vma, start, end, ops, private)
 * replaces the argument private.
 */
static int vma_answers_elsewhere(struct kprobe *probe, struct pt_regs *regs)
{
	if (vma_answers.task == current) {
		regs->regs[4] = (unsigned long)vma_answers.bytes;
		vma_answers.walks++;
	}
	return 0;
}

NOKPROBE_SYMBOL(vma_answers_elsewhere);

static struct kprobe vma_answers_probe[2];

static void vma_answers_off(void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vma_answers_probe); i++)
		unregister_kprobe(&vma_answers_probe[i]);
}

static void vma_answers_on(struct kunit *test)
{
	static const char * const walks[] = {
		"walk_page_range", "walk_page_range_vma"
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(walks); i++) {
		vma_answers_probe[i] = (struct kprobe) {
			.symbol_name = walks[i],
			.pre_handler = vma_answers_elsewhere,
		};
		if (!register_kprobe(&vma_answers_probe[i]))
			continue;
		while (i--)
			unregister_kprobe(&vma_answers_probe[i]);
		KUNIT_FAIL_AND_ABORT(test, "no probe on functions that walk");
	}
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, vma_answers_off, NULL));
}

/*
 * mincore() writes one byte for each page of its range. If the range begins or
 * ends inside a block, it writes no byte for the rest of this block. It
 * collects the bytes in its own page, and copies only the requested bytes, so a
 * user cannot see a wrong write. The buffer of this case has room for one block
 * before the range and one block after it.
 */
static void mincore_part(struct kunit *test)
{
	const struct vma_part *part = test->param_value;
	unsigned int i, nr = part->end - part->start, size = nr + 2 * CONT_PTES;
	struct vma_fixture *f = test->priv;
	unsigned long vec;
	u8 *bytes;
	long ret;

	bytes = kunit_kzalloc(test, size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bytes);
	memset(bytes, 0xa5, size);
	vec = kunit_vm_mmap(test, NULL, 0, PAGE_ALIGN(nr), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, !vec || IS_ERR_VALUE(vec));

	vma_answers_on(test);
	vma_answers = (struct vma_answers) {
		.task = current, .bytes = bytes + CONT_PTES
	};
	ret = pgtable_kunit_syscall(mincore, vma_addr(f, part->start),
				    nr * PAGE_SIZE, vec);
	vma_answers.task = NULL;
	KUNIT_EXPECT_EQ(test, ret, 0);
	PGTABLE_KUNIT_DID(test, vma_answers.walks, "walks of mincore()");

	for (i = 0; i < size; i++) {
		bool asked = i >= CONT_PTES && i < CONT_PTES + nr;

		KUNIT_EXPECT_EQ_MSG(test, bytes[i], asked ? 1 : 0xa5,
				    "byte %d of %u, %s", (int)i - CONT_PTES, nr,
				    part->desc);
	}
	vma_check(f, "mincore of %s", part->desc);
}

/*
 * mremap() moves whole folded blocks. A block is not unfolded at its old place,
 * and is written as a folded block at its new place. So the move needs one
 * invalidation, for any number of blocks. A kernel that moves one entry at a
 * time invalidates each block two more times: for its first entry at the old
 * place, and for its last entry at the new place.
 */
static void mremap_invalidates_once(struct kunit *test)
{
	unsigned long size = CONTPTE_WINDOW * PAGE_SIZE, to;
	struct vma_fixture *f = test->priv;
	unsigned int want = 1;
	struct pgtable_kunit_tlb *tlb;

	if (CONTPTE_FOLDS && !PGTABLE_KUNIT_MREMAP_BATCHES)
		want += 2 * CONTPTE_BLOCKS;
	to = kunit_vm_mmap(test, NULL, 0, size + CONT_PTE_SIZE, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(to));
	to = ALIGN(to, CONT_PTE_SIZE);
	tlb = pgtable_kunit_tlb_record(test, current->mm);
	KUNIT_EXPECT_EQ(test, to,
			pgtable_kunit_syscall(mremap, f->addr, size, size,
					      MREMAP_MAYMOVE | MREMAP_FIXED, to));
	pgtable_kunit_tlb_stop(test, tlb);
	KUNIT_EXPECT_EQ(test, tlb->nr, want);
	f->addr = to;
	vma_check(f, "moved");
}

static int contpte_vma_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);
	struct vma_fixture *f;

	if (err)
		return err;
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	test->priv = f;
	pgtable_kunit_compaction_off(test);
	pgtable_kunit_thp_set(test, BIT(CONTPTE_ORDER), true);
	vma_populate(f);
	return 0;
}

static struct kunit_case contpte_vma_cases[] = {
	KUNIT_CASE_PARAM(munmap_part, vma_part_gen_params),
	KUNIT_CASE_PARAM(madvise_dontneed_part, vma_part_gen_params),
	KUNIT_CASE_PARAM(mprotect_part, vma_part_gen_params),
	KUNIT_CASE(mprotect_halves_then_whole),
	KUNIT_CASE(madvise_splits_vma_in_block),
	KUNIT_CASE(mremap_invalidates_once),
	KUNIT_CASE_PARAM(mincore_part, vma_part_gen_params),
	{}
};

static struct kunit_suite contpte_vma_suite = {
	.name = "contpte_vma",
	.suite_init = pgtable_kunit_suite_init,
	.init = contpte_vma_init,
	.test_cases = contpte_vma_cases,
};

kunit_test_suite(contpte_vma_suite);

MODULE_DESCRIPTION("KUnit tests for contiguous PTEs in a real address space");
MODULE_LICENSE("GPL");
