/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of the functions that work on user entries. See pte_op.h. Each back
 * end defines PTE_OP_TABLE, and includes this file.
 */

static void call_set_ptes(struct pte_call *c)
{
	set_ptes(c->mm, c->addr, c->ptep, c->entry, c->nr);
}

static void call_set_pte_at(struct pte_call *c)
{
	set_pte_at(c->mm, c->addr, c->ptep, c->entry);
}

static void call_pte_clear(struct pte_call *c)
{
	pte_clear(c->mm, c->addr, c->ptep);
}

static void call_ptep_get_and_clear(struct pte_call *c)
{
	c->ret = ptep_get_and_clear(c->mm, c->addr, c->ptep);
}

static void call_ptep_get_and_clear_full(struct pte_call *c)
{
	c->ret = ptep_get_and_clear_full(c->mm, c->addr, c->ptep,
					 !!(c->flags & PTE_STEP_FULL));
}

static void call_get_and_clear_full_ptes(struct pte_call *c)
{
	c->ret = get_and_clear_full_ptes(c->mm, c->addr, c->ptep, c->nr,
					 !!(c->flags & PTE_STEP_FULL));
}

static void call_clear_full_ptes(struct pte_call *c)
{
	clear_full_ptes(c->mm, c->addr, c->ptep, c->nr,
			!!(c->flags & PTE_STEP_FULL));
}

static void call_get_and_clear_ptes(struct pte_call *c)
{
	c->ret = pgtable_kunit_get_and_clear_ptes(c->mm, c->addr, c->ptep,
						  c->nr);
}

static void call_clear_ptes(struct pte_call *c)
{
	pgtable_kunit_clear_ptes(c->mm, c->addr, c->ptep, c->nr);
}

static void call_clear_nonpresent_ptes(struct pte_call *c)
{
	pgtable_kunit_clear_nonpresent(c->mm, c->addr, c->ptep, c->nr,
				       !!(c->flags & PTE_STEP_FULL));
}

static void call_modify_prot_ptes(struct pte_call *c)
{
	c->ret = pgtable_kunit_modify_prot_start(c->vma, c->addr, c->ptep,
						 c->nr);
	pgtable_kunit_modify_prot_commit(c->vma, c->addr, c->ptep, c->ret,
					 c->entry, c->nr);
}

static void call_wrprotect_ptes(struct pte_call *c)
{
	wrprotect_ptes(c->mm, c->addr, c->ptep, c->nr);
}

static void call_ptep_set_wrprotect(struct pte_call *c)
{
	ptep_set_wrprotect(c->mm, c->addr, c->ptep);
}

static void call_ptep_test_and_clear_young(struct pte_call *c)
{
	c->number = !!ptep_test_and_clear_young(c->vma, c->addr, c->ptep);
}

static void call_ptep_clear_flush_young(struct pte_call *c)
{
	c->number = !!ptep_clear_flush_young(c->vma, c->addr, c->ptep);
}

static void call_test_and_clear_young_ptes(struct pte_call *c)
{
	c->number = pgtable_kunit_test_and_clear_young(c->vma, c->addr, c->ptep,
						       c->nr);
}

static void call_clear_flush_young_ptes(struct pte_call *c)
{
	c->number = pgtable_kunit_clear_flush_young(c->vma, c->addr, c->ptep,
						    c->nr);
}

static void call_clear_young_dirty_ptes(struct pte_call *c)
{
	cydp_t flags = 0;

	if (c->flags & PTE_STEP_YOUNG)
		flags |= CYDP_CLEAR_YOUNG;
	if (c->flags & PTE_STEP_DIRTY)
		flags |= CYDP_CLEAR_DIRTY;
	clear_young_dirty_ptes(c->vma, c->addr, c->ptep, c->nr, flags);
}

static void call_ptep_set_access_flags(struct pte_call *c)
{
	c->number = !!ptep_set_access_flags(c->vma, c->addr, c->ptep, c->entry,
					    !!(c->flags & PTE_STEP_FLUSH));
}

static void call_ptep_get(struct pte_call *c)
{
	c->ret = ptep_get(c->ptep);
}

static void call_ptep_get_lockless(struct pte_call *c)
{
	c->ret = ptep_get_lockless(c->ptep);
}

static void call_pte_batch_hint(struct pte_call *c)
{
	c->number = pte_batch_hint(c->ptep, READ_ONCE(*c->ptep));
}

#define FOR_ONE(_does, _finds, _weight, _call, ...)			\
	{ .does = PTE_OP_##_does, .finds = PTE_OP_FINDS_##_finds,	\
	  .weight = _weight, .name = #_call, .call = call_##_call,	\
	  .way = { __VA_ARGS__ } }
#define FOR_RANGE(_does, _finds, _weight, _call, ...)			\
	{ .does = PTE_OP_##_does, .finds = PTE_OP_FINDS_##_finds,	\
	  .weight = _weight, .name = #_call, .call = call_##_call,	\
	  .takes_range = true, .way = { __VA_ARGS__ } }
/*
 * Newer kernels take a range. Older kernels take one entry, or lack the
 * function.
 */
#define FOR_RANGE_IF(_has, _does, _finds, _weight, _call, ...)		\
	{ .does = PTE_OP_##_does, .finds = PTE_OP_FINDS_##_finds,	\
	  .weight = _weight, .name = #_call, .call = call_##_call,	\
	  .takes_range = PGTABLE_KUNIT_##_has, .missing = !PGTABLE_KUNIT_##_has, \
	  .way = { __VA_ARGS__ } }
#define FULL0	{ ", full=0" }
#define FULL1	{ ", full=1", PTE_STEP_FULL }

/* The order of the rows is the order of test cases. */
static const struct pte_op PTE_OP_TABLE[PTE_OPS] = {
	/* id	does	finds	weight	function	flags */
	[PTE_OP_SET_PTES] =
		FOR_RANGE(SETS, NOTHING, 6, set_ptes),
	[PTE_OP_SET_PTE_AT] =
		FOR_ONE(SETS, ANYTHING, 0, set_pte_at, { "" },
			{ " of a swap entry", PTE_STEP_SWAP },
			{ " of the same page", PTE_STEP_SAME }),
	[PTE_OP_PTE_CLEAR] =
		FOR_ONE(CLEARS, ANYTHING, 2, pte_clear),
	[PTE_OP_GET_AND_CLEAR] =
		FOR_ONE(CLEARS, ANYTHING, 1, ptep_get_and_clear),
	[PTE_OP_GET_AND_CLEAR_ONE_FULL] =
		FOR_ONE(CLEARS, ANYTHING, 1, ptep_get_and_clear_full,
			FULL0, FULL1),
	[PTE_OP_GET_AND_CLEAR_FULL] =
		FOR_RANGE(CLEARS, PAGES, 3, get_and_clear_full_ptes,
			  FULL0, FULL1),
	[PTE_OP_CLEAR_FULL] =
		FOR_RANGE(CLEARS, PAGES, 2, clear_full_ptes, FULL0, FULL1),
	[PTE_OP_GET_AND_CLEAR_PTES] =
		FOR_RANGE(CLEARS, PAGES, 1, get_and_clear_ptes),
	[PTE_OP_CLEAR_PTES] =
		FOR_RANGE(CLEARS, PAGES, 1, clear_ptes),
	[PTE_OP_CLEAR_NONPRESENT] =
		FOR_RANGE(CLEARS, NOTHING, 1, clear_nonpresent_ptes,
			  FULL0, FULL1),
	[PTE_OP_MODIFY_PROT] =
		FOR_RANGE_IF(MODIFY_PROT_RANGES, SETS, SAME, 4, modify_prot_ptes,
			     { ", writable", PTE_STEP_WRITE }, { ", read-only" },
			     { ", PROT_NONE", PTE_STEP_NOACCESS }),
	[PTE_OP_WRPROTECT_PTES] =
		FOR_RANGE(PROTECTS, PAGES, 4, wrprotect_ptes),
	[PTE_OP_SET_WRPROTECT] =
		FOR_ONE(PROTECTS, PAGES, 2, ptep_set_wrprotect),
	[PTE_OP_TEST_YOUNG] =
		FOR_ONE(AGES, PAGES, 3, ptep_test_and_clear_young),
	[PTE_OP_FLUSH_YOUNG] =
		FOR_ONE(AGES, PAGES, 3, ptep_clear_flush_young),
	[PTE_OP_TEST_YOUNG_PTES] =
		FOR_RANGE_IF(YOUNG_RANGES, AGES, PAGES, 2,
			     test_and_clear_young_ptes),
	[PTE_OP_FLUSH_YOUNG_PTES] =
		FOR_RANGE_IF(YOUNG_RANGES, AGES, PAGES, 2,
			     clear_flush_young_ptes),
	[PTE_OP_CLEAR_YOUNG_DIRTY] =
		FOR_RANGE(AGES, PAGES, 4, clear_young_dirty_ptes,
			  { ", young", PTE_STEP_YOUNG },
			  { ", dirty", PTE_STEP_DIRTY },
			  { ", both", PTE_STEP_YOUNG | PTE_STEP_DIRTY }),
	[PTE_OP_ACCESS_FLAGS] =
		FOR_ONE(FAULTS, PAGES, 8, ptep_set_access_flags,
			{ ", young", PTE_STEP_YOUNG | PTE_STEP_FLUSH },
			{ ", writable and dirty",
			  PTE_STEP_YOUNG | PTE_STEP_DIRTY | PTE_STEP_WRITE |
			  PTE_STEP_FLUSH },
			{ ", other write bit", PTE_STEP_YOUNG | PTE_STEP_LESS }),
	[PTE_OP_GET] =
		FOR_ONE(READS, ANYTHING, 4, ptep_get),
	[PTE_OP_GET_LOCKLESS] =
		FOR_ONE(READS, ANYTHING, 4, ptep_get_lockless),
	[PTE_OP_HINT] =
		FOR_ONE(READS, ANYTHING, 2, pte_batch_hint),
	/* Not a function: see struct pte_format. */
	[PTE_OP_HARDWARE] = { .name = "hardware", .weight = 12 },
};

#undef FOR_ONE
#undef FOR_RANGE
#undef FOR_RANGE_IF
#undef FULL0
#undef FULL1
