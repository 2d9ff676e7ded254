// SPDX-License-Identifier: GPL-2.0
/*
 * The auditor of page tables and folios (lib/mm_audit).
 *
 * The suite shows that each rule of the auditor notices its mistake, and that
 * no other rule does. A case corrupts one number, bit or entry of a real
 * address space, runs an audit, and checks the rule and the numbers of the
 * violation. Then it corrects the mistake, and runs an audit again. Other cases
 * bring an address space into the states that large folios have in practice,
 * and expect no violation.
 *
 * Not covered: mistakes in the kernel's own code (the mutants for the selftests
 * test these), several CPUs, and hugetlb.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	mm_audit
 */

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/rmap.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "../internal.h"
#include "../swap.h"
#include "mm_audit_plant.h"

/* The size of a buffer for the line of a violation. */
#define AUDIT_LINE	200

static void audit_now(struct kunit *test, struct mm_audit *audit, bool quiet)
{
	audit->quiet = quiet;
	KUNIT_ASSERT_EQ(test, 0, mm_audit_run(audit));
	KUNIT_ASSERT_GT(test, audit->mms, 0UL);
	KUNIT_ASSERT_GT(test, audit->entries, 0UL);
	KUNIT_ASSERT_GT(test, audit->folios, 0UL);
}

/* Expect that an audit finds no violation. */
static void audit_none(struct kunit *test, struct mm_audit *audit, bool quiet,
		       const char *when)
{
	char line[AUDIT_LINE];
	unsigned int i;

	audit_now(test, audit, quiet);
	for (i = 0; i < min_t(unsigned int, audit->nr, PGTABLE_KUNIT_ENOUGH); i++) {
		mm_audit_text(&audit->violation[i], line, sizeof(line));
		KUNIT_FAIL(test, "%s: %s", when, line);
	}
	KUNIT_EXPECT_EQ_MSG(test, audit->violations, 0UL, "%s", when);
}

static struct mm_audit *audit_alloc(struct kunit *test)
{
	struct mm_audit *audit = kunit_kzalloc(test, sizeof(*audit), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, audit);
	return audit;
}

static unsigned int audit_order(void)
{
	return IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) ? USER_BLOCK_ORDER : 0;
}

/* Anonymous memory in large folios, if the kernel has them. */
static struct user_mm *audit_anon(struct kunit *test, unsigned int order)
{
	struct user_mm *u = user_mm_alloc(test);

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	pgtable_kunit_thp_set(test, order ? BIT(order) : 0, false);
#endif
	user_mm_populate(u, order);
	return u;
}

#ifdef CONFIG_SWAP_IN_KUNIT_TEST
/* Give the folio of the first page a slot of the swap device, and unmap it. */
static void audit_swap_out(struct kunit *test, struct audit_place *p)
{
	bool added;

	pgtable_kunit_swap_on(test);
	p->u->rss = get_mm_counter_sum(p->u->mm, MM_ANONPAGES) - USER_PAGES;
	lru_add_drain_all();
	folio_lock(p->folio);
#ifdef PGTABLE_KUNIT_HAS_ADD_TO_SWAP
	added = add_to_swap(p->folio);
#else
	added = !folio_alloc_swap(p->folio);
#endif
	if (added) {
		folio_mark_dirty(p->folio);
		try_to_unmap(p->folio, 0);
	}
	folio_unlock(p->folio);
	KUNIT_ASSERT_TRUE(test, added);
	KUNIT_ASSERT_FALSE(test, folio_mapped(p->folio));
}
#else
static void audit_swap_out(struct kunit *test, struct audit_place *p)
{
	kunit_skip(test, "no swap device for tests");
}
#endif

/* Two pages of shared memory, both with content. */
static unsigned long audit_shmem(struct kunit *test)
{
	unsigned long addr;

	addr = kunit_vm_mmap(test, NULL, 0, 2 * PAGE_SIZE,
			     PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	KUNIT_ASSERT_EQ(test, 0, put_user(1, (unsigned int __user *)addr));
	KUNIT_ASSERT_EQ(test, 0,
			put_user(2, (unsigned int __user *)(addr + PAGE_SIZE)));
	return addr;
}

static void audit_place_at(struct kunit *test, struct audit_place *p,
			   unsigned long addr)
{
	pte_t pte = user_mm_pte(p->u, addr);

	KUNIT_ASSERT_TRUE(test, pte_present(pte));
	p->addr = addr;
	p->folio = pfn_folio(pte_pfn(pte));
	mmap_read_lock(p->u->mm);
	p->vma = vma_lookup(p->u->mm, addr);
	mmap_read_unlock(p->u->mm);
	KUNIT_ASSERT_NOT_NULL(test, p->vma);
}

static void audit_place_init(struct kunit *test, struct audit_place *p,
			     enum audit_needs needs)
{
	unsigned long addr;

	if (needs == AUDIT_SHMEM || needs == AUDIT_CACHED) {
		p->u = user_mm_alloc(test);
		addr = audit_shmem(test);
	} else {
		p->u = audit_anon(test, needs >= AUDIT_SWAPPED ? 0 : audit_order());
		addr = p->u->page[0].addr;
	}
	audit_place_at(test, p, addr);
	if (needs >= AUDIT_SWAPPED)
		audit_swap_out(test, p);
	if (needs == AUDIT_CACHED)
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_syscall(madvise, addr, PAGE_SIZE,
						      MADV_DONTNEED));
	if (needs == AUDIT_FOLDED)
		KUNIT_ASSERT_TRUE(test,
				  pgtable_kunit_folded(user_mm_pte(p->u, addr)));
}

/* Make a mistake, expect its report, and correct it. */
static void audit_plant_one(struct kunit *test, const struct audit_plant *plant,
			    struct audit_place *p)
{
	struct mm_audit *audit = audit_alloc(test);
	long got = plant->got ? plant->got(p) : 0;
	long want = plant->want ? plant->want(p) : 0;
	char line[AUDIT_LINE];
	unsigned int i, nr = 0;

	audit_none(test, audit, plant->quiet, "before the mistake");
	plant->make(p, true);
	audit_now(test, audit, plant->quiet);
	plant->make(p, false);

	for (i = 0; i < audit->nr; i++) {
		struct mm_audit_violation *v = &audit->violation[i];

		mm_audit_text(v, line, sizeof(line));
		if (v->rule == plant->rule && !nr++) {
			kunit_info(test, "%s", line);
			if (plant->got)
				KUNIT_EXPECT_EQ_MSG(test, v->got, got, "%s", line);
			if (plant->want)
				KUNIT_EXPECT_EQ_MSG(test, v->want, want, "%s",
						    line);
		} else if (v->rule != plant->rule && v->rule != plant->also) {
			KUNIT_FAIL(test, "another rule noticed it: %s", line);
		}
	}
	KUNIT_EXPECT_EQ(test, audit->rounds, MM_AUDIT_ROW);
	PGTABLE_KUNIT_DID(test, nr, "violations of the rule");
	audit_none(test, audit, plant->quiet, "after the mistake");
}

static const struct audit_plant *audit_forked_plant;
static struct audit_place *audit_forked_place;

static void audit_forked_parent(struct user_mm *u)
{
	audit_plant_one(u->test, audit_forked_plant, audit_forked_place);
}

static int audit_forked_child(struct user_mm *u)
{
	return 0;
}

static PGTABLE_KUNIT_GEN_PARAMS(audit_plant)
{
	const struct audit_plant *plant = prev;

	plant = plant ? plant + 1 : audit_plants;
	if (plant == audit_plants + audit_nr_plants)
		return NULL;
	strscpy(desc, plant->desc, KUNIT_PARAM_DESC_SIZE);
	return plant;
}

/*
 * The case makes one mistake for each rule. Only this rule reports it, with the
 * right numbers, and there is no report before and after the mistake. The
 * memory is three blocks in large folios, so that each rule has more than one
 * folio to compare.
 */
static void rule_notices(struct kunit *test)
{
	const struct audit_plant *plant = test->param_value;
	struct audit_place p = {};

	if (plant->skip)
		kunit_skip(test, "%s", plant->skip);
	if (plant->needs == AUDIT_LARGE && !audit_order())
		kunit_skip(test, "no large folios");
	audit_place_init(test, &p, plant->needs);
	if (plant->needs != AUDIT_FORKED && plant->needs != AUDIT_SWAPPED_FORKED) {
		audit_plant_one(test, plant, &p);
		return;
	}
	audit_forked_plant = plant;
	audit_forked_place = &p;
	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(p.u, audit_forked_child,
					      audit_forked_parent));
}

/* Change the memory, or the state of its pages. */
static void state_fresh(struct kunit *test, struct user_mm *u)
{
}

static void state_unmap_part(struct kunit *test, struct user_mm *u)
{
	KUNIT_ASSERT_EQ(test, 0, vm_munmap(u->page[1].addr, PAGE_SIZE));
}

static void state_protect_part(struct kunit *test, struct user_mm *u)
{
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(mprotect, u->page[1].addr,
					      PAGE_SIZE, PROT_READ));
}

static void state_none_part(struct kunit *test, struct user_mm *u)
{
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(mprotect, u->page[1].addr,
					      PAGE_SIZE, PROT_NONE));
}

static void state_move_part(struct kunit *test, struct user_mm *u)
{
	KUNIT_ASSERT_EQ(test, USER_ADDR + USER_PLACE_SIZE,
			pgtable_kunit_syscall(mremap, u->page[1].addr, PAGE_SIZE,
					      PAGE_SIZE,
					      MREMAP_MAYMOVE | MREMAP_FIXED,
					      USER_ADDR + USER_PLACE_SIZE));
}

static void state_discard_part(struct kunit *test, struct user_mm *u)
{
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(madvise, u->page[1].addr,
					      PAGE_SIZE, MADV_DONTNEED));
}

static void state_lock_part(struct kunit *test, struct user_mm *u)
{
	KUNIT_ASSERT_EQ(test, 0,
			pgtable_kunit_syscall(mlock, u->page[1].addr,
					      PAGE_SIZE));
}

static void state_shared_file(struct kunit *test, struct user_mm *u)
{
	audit_shmem(test);
}

/* The order of a folio that is being freed. */
#define AUDIT_FREED_ORDER	2

static void audit_freed_end(void *data)
{
	struct folio *folio = data;

#ifdef NR_PAGES_IN_LARGE_FOLIO
	folio->_nr_pages = 1U << AUDIT_FREED_ORDER;
#endif
	folio_ref_unfreeze(folio, 1);
	folio_put(folio);
}

/*
 * The audit stops all other tasks, so a task may be stopped while it frees a
 * folio. Then the folio has neither references nor a number of pages.
 */
static void state_being_freed(struct kunit *test, struct user_mm *u)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, AUDIT_FREED_ORDER);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_TRUE(test, folio_ref_freeze(folio, 1));
#ifdef NR_PAGES_IN_LARGE_FOLIO
	folio->_nr_pages = 0;
#endif
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, audit_freed_end, folio));
}

static const struct audit_state {
	const char *desc;
	void (*make)(struct kunit *test, struct user_mm *u);
	bool locks;
} audit_states[] = {
	{ "fresh", state_fresh },
	{ "one page unmapped", state_unmap_part },
	{ "one page read-only", state_protect_part },
	{ "one page inaccessible", state_none_part },
	{ "one page moved", state_move_part },
	{ "one page discarded", state_discard_part },
	{ "one page locked", state_lock_part, true },
	{ "shared memory", state_shared_file },
	{ "a folio is being freed", state_being_freed },
};

KUNIT_ARRAY_PARAM_DESC(audit_state, audit_states, desc);

static void audit_state_parent(struct user_mm *u)
{
	struct mm_audit *audit = audit_alloc(u->test);

	audit_none(u->test, audit, true, "with a child");
	KUNIT_EXPECT_GT(u->test, audit->mms, 1UL);
	PGTABLE_KUNIT_DID(u->test, audit->entries, "entries with a child");
}

/*
 * The auditor reports nothing for anonymous memory with large folios that are
 * mapped in part, split over VMAs, or shared with a child. The audit is a quiet
 * one: it also expects the exact number of references of each folio.
 */
static void state_is_fine(struct kunit *test)
{
	const struct audit_state *state = test->param_value;
	struct mm_audit *audit = audit_alloc(test);
	struct user_mm *u = audit_anon(test, audit_order());

	state->make(test, u);
	audit_none(test, audit, true, state->desc);
	PGTABLE_KUNIT_DID(test, audit->entries, "entries");
	PGTABLE_KUNIT_DID(test, audit->folios, "folios");
	/*
	 * The child returns at once, and the case does not compare it with the
	 * model.
	 */
	KUNIT_EXPECT_EQ(test, 0, user_mm_fork(u, audit_forked_child,
					      audit_state_parent));
	audit_none(test, audit, true, "after the child");
}

static struct kunit_case audit_cases[] = {
	KUNIT_CASE_PARAM(rule_notices, audit_plant_gen_params),
	KUNIT_CASE_PARAM(state_is_fine, audit_state_gen_params),
	{}
};

static struct kunit_suite audit_suite = {
	.name = "mm_audit",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = audit_cases,
};

kunit_test_suite(audit_suite);

MODULE_DESCRIPTION("KUnit tests for the auditor of page tables and folios");
MODULE_LICENSE("GPL");
