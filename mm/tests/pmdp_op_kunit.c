// SPDX-License-Identifier: GPL-2.0
/*
 * The entry of a huge page in a PMD table.
 *
 * Reclaim, fork, mprotect, page faults and the split of a huge page change such
 * an entry with a few functions. A function that loses the dirty state loses
 * data. A function that leaves the write permission lets two processes write
 * one page, and a function that changes the next entry maps a wrong page.
 *
 * The suite calls each function for each entry of pmd_leaf.h, in a table of an
 * address space that no CPU runs on. It compares the entry, the returned value
 * and all other entries of the table. On arm64 it also compares the TLB
 * invalidations.
 *
 * Not covered: the callers, races with the hardware, entries that are not
 * present (softleaf), PUDs.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	pmdp_op
 */

#include <asm/pgalloc.h>
#include <asm/tlb.h>
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sched/mm.h>

#include "../internal.h"
#include "pmd_leaf.h"

/* The index of the entry under test. */
#define HUGE_INDEX	3

/**
 * struct huge_table - a table of a private address space
 * @mm: the address space
 * @vma: for functions that take a VMA; only its mm is set
 * @addr: the address of the entry under test
 * @pmdp: this entry
 * @first: the first entry of its table
 * @want: the entries that the test expects
 */
struct huge_table {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	unsigned long addr;
	pmd_t *pmdp;
	pmd_t *first;
	pmd_t *want;
};

static void huge_table_free(void *data)
{
	struct huge_table *t = data;
	struct mmu_gather tlb;
	unsigned int i;

	for (i = 0; t->pmdp && i < PTRS_PER_PMD; i++) {
		if (!pmd_none(pmdp_get(t->first + i)))
			pmdp_huge_get_and_clear(t->mm, i * PMD_SIZE, t->first + i);
	}
	tlb_gather_mmu(&tlb, t->mm);
	free_pgd_range(&tlb, t->addr, t->addr + PAGE_SIZE, 0, 0);
	tlb_finish_mmu(&tlb);
	mmput(t->mm);
}

static struct huge_table *huge_table_alloc(struct kunit *test)
{
	struct huge_table *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	p4d_t *p4d;
	pud_t *pud;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->vma = kunit_kzalloc(test, sizeof(*t->vma), GFP_KERNEL);
	t->want = kunit_kcalloc(test, PTRS_PER_PMD, sizeof(pmd_t), GFP_KERNEL);
	t->mm = mm_alloc();
	KUNIT_ASSERT_TRUE(test, t->vma && t->want && t->mm);
	t->addr = HUGE_INDEX * PMD_SIZE;
	t->vma->vm_mm = t->mm;
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, huge_table_free, t));

	p4d = p4d_alloc(t->mm, pgd_offset(t->mm, t->addr), t->addr);
	KUNIT_ASSERT_NOT_NULL(test, p4d);
	pud = pud_alloc(t->mm, p4d, t->addr);
	KUNIT_ASSERT_NOT_NULL(test, pud);
	t->pmdp = pmd_alloc(t->mm, pud, t->addr);
	KUNIT_ASSERT_NOT_NULL(test, t->pmdp);
	t->first = t->pmdp - HUGE_INDEX;
	return t;
}

/* Write the entry under test and its neighbours. */
static void huge_table_set(struct huge_table *t, pmd_t pmd)
{
	int i;

	for (i = -1; i <= 1; i++) {
		unsigned long addr = t->addr + i * PMD_SIZE;

		if (!pmd_none(pmdp_get(t->pmdp + i)))
			pmdp_huge_get_and_clear(t->mm, addr, t->pmdp + i);
		set_pmd_at(t->mm, addr, t->pmdp + i,
			   i ? huge_pmd(2 + i, HUGE_YOUNG | HUGE_WRITE) : pmd);
	}
	memcpy(t->want, t->first, PTRS_PER_PMD * sizeof(pmd_t));
}

/* The arguments of a function, and its result. */
struct huge_call {
	struct mm_struct *mm;
	struct vm_area_struct *vma;
	unsigned long addr;
	pmd_t *pmdp;
	pmd_t before;
	pmd_t entry;
	pmd_t ret;
	int number;
};

/* The entry after the call. */
enum huge_after {
	HUGE_SAME,
	HUGE_NONE,
	HUGE_PROTECTED,
	HUGE_OLD,
	HUGE_HIDDEN,
	HUGE_ENTRY,	/* struct huge_call.entry */
};

enum huge_returns {
	HUGE_NOTHING,
	HUGE_BEFORE,	/* the entry as it was */
	HUGE_WAS_YOUNG,
	HUGE_CHANGED,
};

enum huge_flushes {
	HUGE_NEVER,
	HUGE_ALWAYS,
	HUGE_IF_YOUNG,
	HUGE_ANY,	/* the architecture decides */
};

struct huge_op {
	const char *desc;
	void (*call)(struct huge_call *c);
	enum huge_after after;
	enum huge_returns returns;
	enum huge_flushes flushes;
	unsigned int set;	/* the state that HUGE_ENTRY adds */
};

static void call_set_pmd_at(struct huge_call *c)
{
	pmdp_huge_get_and_clear(c->mm, c->addr, c->pmdp);
	set_pmd_at(c->mm, c->addr, c->pmdp, c->entry);
}

static void call_pmdp_get(struct huge_call *c)
{
	c->ret = pmdp_get(c->pmdp);
}

static void call_pmdp_get_lockless(struct huge_call *c)
{
	c->ret = pmdp_get_lockless(c->pmdp);
}

static void call_pmdp_huge_get_and_clear(struct huge_call *c)
{
	c->ret = pmdp_huge_get_and_clear(c->mm, c->addr, c->pmdp);
}

static void call_pmdp_huge_get_and_clear_full(struct huge_call *c)
{
	c->ret = pmdp_huge_get_and_clear_full(c->vma, c->addr, c->pmdp, 0);
}

static void call_pmdp_huge_get_and_clear_full_exit(struct huge_call *c)
{
	c->ret = pmdp_huge_get_and_clear_full(c->vma, c->addr, c->pmdp, 1);
}

static void call_pmdp_huge_clear_flush(struct huge_call *c)
{
	c->ret = pmdp_huge_clear_flush(c->vma, c->addr, c->pmdp);
}

static void call_pmdp_set_wrprotect(struct huge_call *c)
{
	pmdp_set_wrprotect(c->mm, c->addr, c->pmdp);
}

static void call_pmdp_test_and_clear_young(struct huge_call *c)
{
	c->number = pmdp_test_and_clear_young(c->vma, c->addr, c->pmdp);
}

static void call_pmdp_clear_flush_young(struct huge_call *c)
{
	c->number = pmdp_clear_flush_young(c->vma, c->addr, c->pmdp);
}

static void call_pmdp_set_access_flags(struct huge_call *c)
{
	c->number = pmdp_set_access_flags(c->vma, c->addr, c->pmdp, c->entry, 1);
}

static void call_pmdp_invalidate(struct huge_call *c)
{
	c->ret = pmdp_invalidate(c->vma, c->addr, c->pmdp);
}

static void call_pmdp_invalidate_ad(struct huge_call *c)
{
	c->ret = pmdp_invalidate_ad(c->vma, c->addr, c->pmdp);
}

#ifdef pmdp_establish
static void call_pmdp_establish(struct huge_call *c)
{
	c->ret = pmdp_establish(c->vma, c->addr, c->pmdp, c->entry);
}
#endif

#define HUGE_OP(_name, _after, _returns, _flushes, _set)		\
	{ .desc = #_name, .call = call_##_name,				\
	  .after = HUGE_##_after, .returns = HUGE_##_returns,		\
	  .flushes = HUGE_##_flushes, .set = _set }

static const struct huge_op huge_ops[] = {
	HUGE_OP(set_pmd_at, ENTRY, NOTHING, ANY, HUGE_YOUNG),
	HUGE_OP(pmdp_get, SAME, BEFORE, NEVER, 0),
	HUGE_OP(pmdp_get_lockless, SAME, BEFORE, NEVER, 0),
	HUGE_OP(pmdp_huge_get_and_clear, NONE, BEFORE, NEVER, 0),
	HUGE_OP(pmdp_huge_get_and_clear_full, NONE, BEFORE, NEVER, 0),
	HUGE_OP(pmdp_huge_get_and_clear_full_exit, NONE, BEFORE, NEVER, 0),
	HUGE_OP(pmdp_huge_clear_flush, NONE, BEFORE, ALWAYS, 0),
	HUGE_OP(pmdp_set_wrprotect, PROTECTED, NOTHING, NEVER, 0),
	HUGE_OP(pmdp_test_and_clear_young, OLD, WAS_YOUNG, NEVER, 0),
	HUGE_OP(pmdp_clear_flush_young, OLD, WAS_YOUNG, IF_YOUNG, 0),
	/* s390 calls pmd_mkdirty(), which adds the soft-dirty bit too. */
	HUGE_OP(pmdp_set_access_flags, ENTRY, CHANGED, ANY,
		HUGE_YOUNG | HUGE_DIRTY | HUGE_WRITE | HUGE_SOFT),
	HUGE_OP(pmdp_invalidate, HIDDEN, BEFORE, ALWAYS, 0),
	HUGE_OP(pmdp_invalidate_ad, HIDDEN, BEFORE, ANY, 0),
#ifdef pmdp_establish
	HUGE_OP(pmdp_establish, ENTRY, BEFORE, NEVER, HUGE_DIRTY),
#endif
};

KUNIT_ARRAY_PARAM_DESC(huge_op, huge_ops, desc);

/* Is the entry as the row requires? */
static bool huge_op_after(const struct huge_op *op, const struct huge_call *c,
			  pmd_t after)
{
	switch (op->after) {
	case HUGE_SAME:
		return pmd_same(after, c->before);
	case HUGE_NONE:
		return pmd_none(after);
	case HUGE_PROTECTED:
		return pmd_same(after, pmd_wrprotect(c->before));
	case HUGE_OLD:
		return pmd_same(after, pmd_mkold(c->before));
	case HUGE_HIDDEN:
		return !huge_valid(after) && pmd_present(after) &&
		       pmd_trans_huge(after) &&
		       pmd_pfn(after) == pmd_pfn(c->before) &&
		       huge_state(after) == huge_state(c->before);
	default:
		return pmd_same(after, c->entry);
	}
}

static bool huge_op_returns(const struct huge_op *op, const struct huge_call *c)
{
	switch (op->returns) {
	case HUGE_BEFORE:
		return pmd_same(c->ret, c->before);
	case HUGE_WAS_YOUNG:
		return !!c->number == !!pmd_young(c->before);
	case HUGE_CHANGED:
		/*
		 * riscv always returns this, so that the caller updates the
		 * TLB.
		 */
		return !!c->number == !pmd_same(c->entry, c->before) ||
		       (IS_ENABLED(CONFIG_RISCV) && c->number);
	default:
		return true;
	}
}

/* Was there exactly one invalidation, of this huge page, or none? */
static bool huge_op_flushed(const struct huge_op *op, const struct huge_call *c,
			    const struct pgtable_kunit_tlb *tlb)
{
	bool want = op->flushes == HUGE_ALWAYS ||
		    (op->flushes == HUGE_IF_YOUNG && pmd_young(c->before));

	if (!tlb || op->flushes == HUGE_ANY)
		return true;
	return tlb->nr == want &&
	       (!want || (tlb->range[0].start == c->addr &&
			  tlb->range[0].end == c->addr + PMD_SIZE));
}

/*
 * Each function leaves the entry and returns the value that its row requires,
 * and changes no other entry. The neighbouring entries hold other huge pages,
 * so a function that changes too much changes one of them.
 */
static void pmdp_op_changes_entry(struct kunit *test)
{
	const struct huge_op *op = test->param_value;
	struct huge_table *t = huge_table_alloc(test);
	struct pgtable_kunit_tlb *tlb = NULL;
	unsigned int state, failed = 0;

	if (IS_ENABLED(CONFIG_ARM64))
		tlb = pgtable_kunit_tlb_record(test, t->mm);

	for (state = 0; state < HUGE_STATES; state++) {
		unsigned int set = op->set;
		struct huge_call c = { t->mm, t->vma, t->addr, t->pmdp };
		pmd_t after;

		if (!huge_possible(state))
			continue;
		if (state & HUGE_UFFD)
			set &= ~HUGE_WRITE;
		c.before = huge_pmd(0, state);
		c.entry = huge_pmd(0, state | set);
		huge_table_set(t, c.before);
		if (tlb)
			tlb->nr = 0;
		op->call(&c);
		after = pmdp_get(t->pmdp);
		t->want[HUGE_INDEX] = after;
		pgtable_kunit_tried++;
		if (huge_op_after(op, &c, after) && huge_op_returns(op, &c) &&
		    huge_op_flushed(op, &c, tlb) &&
		    !memcmp(t->first, t->want, PTRS_PER_PMD * sizeof(pmd_t)))
			continue;
		KUNIT_FAIL(test,
			   "state %x, %016llx: %016llx, returned %016llx or %d, %u flushes",
			   state, (u64)pmd_val(c.before), (u64)pmd_val(after),
			   (u64)pmd_val(c.ret), c.number, tlb ? tlb->nr : 0);
		if (++failed == PGTABLE_KUNIT_ENOUGH)
			break;
	}
	if (tlb)
		pgtable_kunit_tlb_stop(test, tlb);
}

#define HUGE_TABLES	3

/*
 * The kernel deposits a page table with each huge page, for its split. Each
 * deposited table is withdrawn once, in any order, and no other table is
 * withdrawn. The entry of the huge page stays unchanged. There are three
 * tables, because a list that loses its middle looks right with two.
 */
static void pgtable_trans_huge_stores(struct kunit *test)
{
	struct huge_table *t = huge_table_alloc(test);
	pgtable_t tables[HUGE_TABLES] = {}, got;
	unsigned int nr, i, k, back;

	for (nr = 1; nr <= HUGE_TABLES; nr++) {
		unsigned long seen = 0;
		spinlock_t *ptl;	/* of the table of entries */

		huge_table_set(t, huge_pmd(0, HUGE_YOUNG));
		for (i = 0; i < nr; i++) {
			tables[i] = pte_alloc_one(t->mm);
			KUNIT_ASSERT_NOT_NULL(test, tables[i]);
		}
		ptl = pmd_lock(t->mm, t->pmdp);
		for (i = 0; i < nr; i++)
			pgtable_trans_huge_deposit(t->mm, t->pmdp, tables[i]);
		back = 0;
		for (i = 0; i < nr; i++) {
			got = pgtable_trans_huge_withdraw(t->mm, t->pmdp);
			for (k = 0; k < nr; k++) {
				if (got == tables[k] && !(seen & BIT(k))) {
					seen |= BIT(k);
					back++;
				}
			}
		}
		got = pmd_huge_pte(t->mm, t->pmdp);
		spin_unlock(ptl);
		KUNIT_EXPECT_NULL(test, got);
		KUNIT_EXPECT_EQ_MSG(test, back, nr, "of %u tables, mask %lx",
				    nr, seen);
		KUNIT_EXPECT_EQ(test, 0, memcmp(t->first, t->want,
						PTRS_PER_PMD * sizeof(pmd_t)));
		for (i = 0; i < nr; i++)
			pte_free(t->mm, tables[i]);
		pgtable_kunit_tried++;
	}
}

/*
 * Before a collapse, the entry points to a page table. pmdp_collapse_flush()
 * clears this entry and returns its old value. The TLB may hold translations of
 * each page, so the invalidation is for the whole range.
 */
static void pmdp_collapse_flush_table(struct kunit *test)
{
	struct huge_table *t = huge_table_alloc(test);
	struct pgtable_kunit_tlb *tlb = NULL;
	pgtable_t table = pte_alloc_one(t->mm);
	pmd_t before, ret;

	KUNIT_ASSERT_NOT_NULL(test, table);
	huge_table_set(t, huge_pmd(0, 0));
	pmdp_huge_get_and_clear(t->mm, t->addr, t->pmdp);
	pmd_populate(t->mm, t->pmdp, table);
	before = pmdp_get(t->pmdp);
	memcpy(t->want, t->first, PTRS_PER_PMD * sizeof(pmd_t));
	if (IS_ENABLED(CONFIG_ARM64))
		tlb = pgtable_kunit_tlb_record(test, t->mm);

	ret = pmdp_collapse_flush(t->vma, t->addr, t->pmdp);
	KUNIT_EXPECT_TRUE(test, pmd_same(ret, before));
	KUNIT_EXPECT_TRUE(test, pmd_none(pmdp_get(t->pmdp)));
	t->want[HUGE_INDEX] = pmdp_get(t->pmdp);
	KUNIT_EXPECT_EQ(test, 0, memcmp(t->first, t->want,
					PTRS_PER_PMD * sizeof(pmd_t)));
	if (tlb) {
		KUNIT_EXPECT_EQ(test, tlb->nr, 1);
		KUNIT_EXPECT_EQ(test, tlb->range[0].start, t->addr);
		KUNIT_EXPECT_EQ(test, tlb->range[0].end, t->addr + PMD_SIZE);
		pgtable_kunit_tlb_stop(test, tlb);
	}
	pte_free(t->mm, table);
	pgtable_kunit_tried++;
}

static struct kunit_case pmdp_op_cases[] = {
	KUNIT_CASE_PARAM(pmdp_op_changes_entry, huge_op_gen_params),
	KUNIT_CASE(pgtable_trans_huge_stores),
	KUNIT_CASE(pmdp_collapse_flush_table),
	{}
};

static struct kunit_suite pmdp_op_suite = {
	.name = "pmdp_op",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.exit = pgtable_kunit_exit,
	.test_cases = pmdp_op_cases,
};

kunit_test_suite(pmdp_op_suite);

MODULE_DESCRIPTION("KUnit tests for functions that change the entry of a huge page");
MODULE_LICENSE("GPL");
