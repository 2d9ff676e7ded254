// SPDX-License-Identifier: GPL-2.0
/*
 * The entry of a huge page in a PUD table.
 *
 * Memory of a device may be mapped by PUDs. Page faults, mprotect, reclaim and
 * munmap change such an entry with these functions, like the entry of a huge page
 * in a PMD table (pmd_leaf, pmdp_op). A function that loses the dirty state loses
 * data. A helper that leaves the write permission lets a process write to
 * memory that it may only read.
 *
 * The suite makes entries in every combination of young, dirty and writable, and
 * calls each function for each entry. The functions for a table get a table of an
 * address space that no CPU runs on. The suite compares the entry, the returned
 * value and all other entries. x86 counts the invalidations of an address space,
 * and the suite compares this count too. Not covered: the callers.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=x86_64 --kunitconfig=mm/tests \
 *	pud_leaf
 */

#include <asm/pgalloc.h>
#include <asm/tlb.h>
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sched/mm.h>

#include "../internal.h"
#include "pgtable_kunit.h"

#define GIANT_YOUNG	BIT(0)
#define GIANT_DIRTY	BIT(1)
#define GIANT_WRITE	BIT(2)
#define GIANT_STATES	BIT(3)

/* An entry of the table with entries before and after it. */
#define GIANT_INDEX	3

/* Page frames that no machine has; each is aligned to a PUD. */
static pud_t giant_pud(unsigned int nr, unsigned int state)
{
	unsigned long pfn = (BIT_ULL(40) + nr * PUD_SIZE) >> PAGE_SHIFT;
	pud_t pud = pfn_pud(pfn, vm_get_page_prot(VM_READ | VM_WRITE));

	pud = pud_wrprotect(pud_mkold(pud_mkclean(pud_mkhuge(pud))));
	if (state & GIANT_WRITE)
		pud = pud_mkwrite(pud);
	if (state & GIANT_DIRTY)
		pud = pud_mkdirty(pud);
	return state & GIANT_YOUNG ? pud_mkyoung(pud) : pud;
}

static unsigned int giant_state(pud_t pud)
{
	return (pud_young(pud) ? GIANT_YOUNG : 0) |
	       (pud_dirty(pud) ? GIANT_DIRTY : 0) |
	       (pud_write(pud) ? GIANT_WRITE : 0);
}

/* Does the hardware use the entry? */
static bool giant_valid(pud_t pud)
{
	return pud_val(pud) & _PAGE_PRESENT;
}

/**
 * struct giant_call - a table of a private address space, and a call
 * @mm: the address space
 * @vma: for functions that take a VMA; only its mm is set
 * @addr: the address of the entry under test
 * @pudp: this entry
 * @before: its value before the call
 * @entry: the new entry, for functions that take one
 * @ret: the entry that the function returned
 * @number: the number that it returned
 */
struct giant_call {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	unsigned long addr;
	pud_t *pudp;
	pud_t before;
	pud_t entry;
	pud_t ret;
	int number;
};

static void giant_free(void *data)
{
	struct giant_call *c = data;
	struct mmu_gather tlb;
	unsigned int i;

	for (i = 0; c->pudp && i < PTRS_PER_PUD; i++)
		pud_clear(c->pudp - GIANT_INDEX + i);
	tlb_gather_mmu(&tlb, c->mm);
	free_pgd_range(&tlb, c->addr, c->addr + PAGE_SIZE, 0, 0);
	tlb_finish_mmu(&tlb);
	mmput(c->mm);
}

static struct giant_call *giant_alloc(struct kunit *test)
{
	struct giant_call *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	p4d_t *p4d;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->vma = kunit_kzalloc(test, sizeof(*c->vma), GFP_KERNEL);
	c->mm = mm_alloc();
	KUNIT_ASSERT_TRUE(test, c->vma && c->mm);
	c->addr = GIANT_INDEX * PUD_SIZE;
	c->vma->vm_mm = c->mm;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, giant_free, c));
	p4d = p4d_alloc(c->mm, pgd_offset(c->mm, c->addr), c->addr);
	KUNIT_ASSERT_NOT_NULL(test, p4d);
	c->pudp = pud_alloc(c->mm, p4d, c->addr);
	KUNIT_ASSERT_NOT_NULL(test, c->pudp);
	return c;
}

/* The entry after the call. */
enum giant_after {
	GIANT_NONE,
	GIANT_PROTECTED,
	GIANT_OLD,
	GIANT_HIDDEN,
	GIANT_ENTRY,
};

enum giant_returns {
	GIANT_NOTHING,
	GIANT_BEFORE,
	GIANT_WAS_YOUNG,
	GIANT_CHANGED,
};

struct giant_op {
	const char *desc;
	void (*call)(struct giant_call *c);
	enum giant_after after;
	enum giant_returns returns;
	bool flushes;
};

static void call_pudp_huge_get_and_clear(struct giant_call *c)
{
	c->ret = pudp_huge_get_and_clear(c->mm, c->addr, c->pudp);
}

static void call_pudp_huge_get_and_clear_full(struct giant_call *c)
{
	c->ret = pudp_huge_get_and_clear_full(c->vma, c->addr, c->pudp, 0);
}

static void call_pudp_huge_clear_flush(struct giant_call *c)
{
	c->ret = pudp_huge_clear_flush(c->vma, c->addr, c->pudp);
}

static void call_pudp_set_wrprotect(struct giant_call *c)
{
	pudp_set_wrprotect(c->mm, c->addr, c->pudp);
}

static void call_pudp_test_and_clear_young(struct giant_call *c)
{
	c->number = pudp_test_and_clear_young(c->vma, c->addr, c->pudp);
}

static void call_pudp_set_access_flags(struct giant_call *c)
{
	c->number = pudp_set_access_flags(c->vma, c->addr, c->pudp, c->entry, 1);
}

static void call_pudp_invalidate(struct giant_call *c)
{
	c->ret = pudp_invalidate(c->vma, c->addr, c->pudp);
}

#define GIANT_OP(_name, _after, _returns, _flushes)			\
	{ .desc = #_name, .call = call_##_name,				\
	  .after = GIANT_##_after, .returns = GIANT_##_returns,		\
	  .flushes = _flushes }

static const struct giant_op giant_ops[] = {
	GIANT_OP(pudp_huge_get_and_clear, NONE, BEFORE, false),
	GIANT_OP(pudp_huge_get_and_clear_full, NONE, BEFORE, false),
	GIANT_OP(pudp_huge_clear_flush, NONE, BEFORE, true),
	GIANT_OP(pudp_set_wrprotect, PROTECTED, NOTHING, false),
	GIANT_OP(pudp_test_and_clear_young, OLD, WAS_YOUNG, false),
	GIANT_OP(pudp_set_access_flags, ENTRY, CHANGED, false),
	GIANT_OP(pudp_invalidate, HIDDEN, BEFORE, true),
};

KUNIT_ARRAY_PARAM_DESC(giant_op, giant_ops, desc);

/* Is the entry as the row requires? */
static bool giant_op_after(const struct giant_op *op, const struct giant_call *c,
			   pud_t after)
{
	switch (op->after) {
	case GIANT_NONE:
		return pud_none(after);
	case GIANT_PROTECTED:
		return pud_val(after) == pud_val(pud_wrprotect(c->before));
	case GIANT_OLD:
		return pud_val(after) == pud_val(pud_mkold(c->before));
	case GIANT_HIDDEN:
		return !giant_valid(after) && pud_trans_huge(after) &&
		       pud_pfn(after) == pud_pfn(c->before) &&
		       giant_state(after) == giant_state(c->before);
	default:
		return pud_val(after) == pud_val(c->entry);
	}
}

static bool giant_op_returns(const struct giant_op *op,
			     const struct giant_call *c)
{
	switch (op->returns) {
	case GIANT_BEFORE:
		return pud_val(c->ret) == pud_val(c->before);
	case GIANT_WAS_YOUNG:
		return !!c->number == !!pud_young(c->before);
	case GIANT_CHANGED:
		return !!c->number == (pud_val(c->entry) != pud_val(c->before));
	default:
		return true;
	}
}

/*
 * Each function leaves the entry and returns the value that its row requires,
 * and changes no other entry. It invalidates once or not at all, as its row
 * requires. The neighbouring entries map other memory, so a function that
 * changes too much changes one of them.
 */
static void pudp_op_changes_entry(struct kunit *test)
{
	const struct giant_op *op = test->param_value;
	struct giant_call *c = giant_alloc(test);
	pud_t *first = c->pudp - GIANT_INDEX, *want;
	unsigned int state, failed = 0;

	want = kunit_kcalloc(test, PTRS_PER_PUD, sizeof(*want), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	for (state = 0; state < GIANT_STATES; state++) {
		u64 flushes;
		pud_t after;
		int i;

		c->before = giant_pud(0, state);
		c->entry = giant_pud(0, state | GIANT_YOUNG | GIANT_DIRTY | GIANT_WRITE);
		for (i = -1; i <= 1; i++)
			set_pud(c->pudp + i, i ? giant_pud(2 + i, GIANT_STATES - 1) :
						 c->before);
		memcpy(want, first, PTRS_PER_PUD * sizeof(*want));
		flushes = atomic64_read(&c->mm->context.tlb_gen);
		op->call(c);
		flushes = atomic64_read(&c->mm->context.tlb_gen) - flushes;
		after = READ_ONCE(*c->pudp);
		want[GIANT_INDEX] = after;
		pgtable_kunit_tried++;
		if (giant_op_after(op, c, after) && giant_op_returns(op, c) &&
		    flushes == op->flushes &&
		    !memcmp(first, want, PTRS_PER_PUD * sizeof(*want)))
			continue;
		KUNIT_FAIL(test,
			   "state %x, %016llx: %016llx, returned %016llx or %d, %llu flushes",
			   state, (u64)pud_val(c->before), (u64)pud_val(after),
			   (u64)pud_val(c->ret), c->number, flushes);
		if (++failed == PGTABLE_KUNIT_ENOUGH)
			break;
	}
}

static pud_t run_pud_mkinvalid(pud_t pud)
{
	return pud_mkinvalid(pud);
}

static pud_t run_pud_modify_none(pud_t pud)
{
	return pud_modify(pud, vm_get_page_prot(VM_NONE));
}

static pud_t run_pud_modify_read(pud_t pud)
{
	return pud_modify(pud, vm_get_page_prot(VM_READ));
}

static pud_t run_pud_modify_write(pud_t pud)
{
	return pud_modify(pud, vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED));
}

/*
 * The helpers for one value, with the parts of the state that they set and
 * clear, and whether the hardware uses the entry afterwards.
 */
static const struct giant_helper {
	const char *desc;
	pud_t (*run)(pud_t pud);
	unsigned int set, clear;
	bool valid;
} giant_helpers[] = {
	{ "pud_mkinvalid", run_pud_mkinvalid },
	{ "pud_modify_none", run_pud_modify_none, .clear = GIANT_WRITE },
	{ "pud_modify_read", run_pud_modify_read, .clear = GIANT_WRITE,
	  .valid = true },
	{ "pud_modify_write", run_pud_modify_write, .set = GIANT_WRITE,
	  .valid = true },
};

KUNIT_ARRAY_PARAM_DESC(giant_helper, giant_helpers, desc);

/*
 * Each helper changes only the parts that its row names, and keeps the page
 * frame and the rest of the state. The entry still maps a huge page.
 */
static void pud_helper_changes_state(struct kunit *test)
{
	const struct giant_helper *helper = test->param_value;
	unsigned int state;

	for (state = 0; state < GIANT_STATES; state++) {
		unsigned int want = (state & ~helper->clear) | helper->set;
		pud_t before = giant_pud(1, state), after = helper->run(before);

		pgtable_kunit_tried++;
		if (giant_state(before) == state && giant_state(after) == want &&
		    pud_pfn(after) == pud_pfn(before) && pud_trans_huge(after) &&
		    giant_valid(after) == helper->valid)
			continue;
		KUNIT_FAIL(test, "state %x, %016llx: %x, %016llx, expected %x",
			   state, (u64)pud_val(before), giant_state(after),
			   (u64)pud_val(after), want);
	}
}

static struct kunit_case pud_leaf_cases[] = {
	KUNIT_CASE_PARAM(pudp_op_changes_entry, giant_op_gen_params),
	KUNIT_CASE_PARAM(pud_helper_changes_state, giant_helper_gen_params),
	{}
};

static struct kunit_suite pud_leaf_suite = {
	.name = "pud_leaf",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.exit = pgtable_kunit_exit,
	.test_cases = pud_leaf_cases,
};

kunit_test_suite(pud_leaf_suite);

MODULE_DESCRIPTION("KUnit tests for entries of huge pages in PUD tables");
MODULE_LICENSE("GPL");
