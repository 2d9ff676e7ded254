// SPDX-License-Identifier: GPL-2.0
/*
 * The functions whose order of writes and invalidations is under test.
 */

#include "contpte_order.h"

/* The result of a function that returns whether an entry was young. */
static pte_t op_bool(bool young)
{
	return young ? pte_mkyoung(__pte(0)) : __pte(0);
}

/* The initial entry of the window at that index. */
static pte_t op_pte(struct contpte_order *o, pte_t *ptep)
{
	return contpte_pte(o->f, ptep - o->f->table->pte);
}

static pte_t op_get_and_clear_full(struct contpte_order *o, unsigned long addr,
				   pte_t *ptep, unsigned int nr)
{
	return recorded_get_and_clear_full_ptes(o->f->table->mm, addr, ptep, nr,
						0);
}

static pte_t op_get_and_clear_full1(struct contpte_order *o, unsigned long addr,
				    pte_t *ptep, unsigned int nr)
{
	return recorded_get_and_clear_full_ptes(o->f->table->mm, addr, ptep, nr,
						1);
}

static pte_t op_clear_full(struct contpte_order *o, unsigned long addr,
			   pte_t *ptep, unsigned int nr)
{
	recorded_clear_full_ptes(o->f->table->mm, addr, ptep, nr, 0);
	return __pte(0);
}

static pte_t op_clear_full1(struct contpte_order *o, unsigned long addr,
			    pte_t *ptep, unsigned int nr)
{
	recorded_clear_full_ptes(o->f->table->mm, addr, ptep, nr, 1);
	return __pte(0);
}

static pte_t op_wrprotect(struct contpte_order *o, unsigned long addr,
			  pte_t *ptep, unsigned int nr)
{
	recorded_wrprotect_ptes(o->f->table->mm, addr, ptep, nr);
	return __pte(0);
}

static pte_t op_pte_clear(struct contpte_order *o, unsigned long addr,
			  pte_t *ptep, unsigned int nr)
{
	pte_t old = pgtable_kunit_raw_get(ptep);

	recorded_pte_clear(o->f->table->mm, addr, ptep);
	pgtable_kunit_uncount(o->f->table->mm, addr, ptep, old);
	return __pte(0);
}

static pte_t op_get_and_clear(struct contpte_order *o, unsigned long addr,
			      pte_t *ptep, unsigned int nr)
{
	return recorded_ptep_get_and_clear(o->f->table->mm, addr, ptep);
}

static pte_t op_set_wrprotect(struct contpte_order *o, unsigned long addr,
			      pte_t *ptep, unsigned int nr)
{
	recorded_ptep_set_wrprotect(o->f->table->mm, addr, ptep);
	return __pte(0);
}

static pte_t op_set_swap(struct contpte_order *o, unsigned long addr,
			 pte_t *ptep, unsigned int nr)
{
	recorded_set_ptes(o->f->table->mm, addr, ptep,
			  swp_entry_to_pte(swp_entry(0, nr)), 1);
	return __pte(0);
}

static pte_t op_set_same(struct contpte_order *o, unsigned long addr,
			 pte_t *ptep, unsigned int nr)
{
	recorded_set_ptes(o->f->table->mm, addr, ptep, op_pte(o, ptep), 1);
	return __pte(0);
}

static pte_t op_access_young(struct contpte_order *o, unsigned long addr,
			     pte_t *ptep, unsigned int nr)
{
	recorded_ptep_set_access_flags(&o->f->vma, addr, ptep,
				       pte_mkyoung(op_pte(o, ptep)), 0);
	return __pte(0);
}

static pte_t op_access_write(struct contpte_order *o, unsigned long addr,
			     pte_t *ptep, unsigned int nr)
{
	pte_t pte = pte_wrprotect(pte_mkyoung(op_pte(o, ptep)));

	recorded_ptep_set_access_flags(&o->f->vma, addr, ptep, pte, 0);
	return __pte(0);
}

static pte_t op_test_young(struct contpte_order *o, unsigned long addr,
			   pte_t *ptep, unsigned int nr)
{
	return op_bool(recorded_test_and_clear_young(&o->f->vma, addr, ptep, nr));
}

static pte_t op_flush_young(struct contpte_order *o, unsigned long addr,
			    pte_t *ptep, unsigned int nr)
{
	return op_bool(recorded_clear_flush_young(&o->f->vma, addr, ptep, nr));
}

static pte_t op_clear_young(struct contpte_order *o, unsigned long addr,
			    pte_t *ptep, unsigned int nr)
{
	recorded_clear_young_dirty_ptes(&o->f->vma, addr, ptep, nr,
					CYDP_CLEAR_YOUNG);
	return __pte(0);
}

static pte_t op_clear_dirty(struct contpte_order *o, unsigned long addr,
			    pte_t *ptep, unsigned int nr)
{
	recorded_clear_young_dirty_ptes(&o->f->vma, addr, ptep, nr,
					CYDP_CLEAR_DIRTY);
	return __pte(0);
}

static pte_t op_clear_both(struct contpte_order *o, unsigned long addr,
			   pte_t *ptep, unsigned int nr)
{
	recorded_clear_young_dirty_ptes(&o->f->vma, addr, ptep, nr,
					CYDP_CLEAR_YOUNG | CYDP_CLEAR_DIRTY);
	return __pte(0);
}

static pte_t op_get(struct contpte_order *o, unsigned long addr, pte_t *ptep,
		    unsigned int nr)
{
	return recorded_ptep_get(ptep);
}

static pte_t op_get_lockless(struct contpte_order *o, unsigned long addr,
			     pte_t *ptep, unsigned int nr)
{
	return recorded_ptep_get_lockless(ptep);
}

static pte_t makes_none(pte_t pte)
{
	return __pte(0);
}

/* The value that op_set_swap() writes, which sets only one entry. */
static pte_t makes_swap(pte_t pte)
{
	return swp_entry_to_pte(swp_entry(0, 1));
}

static pte_t makes_read_only(pte_t pte)
{
	return pte_wrprotect(pte);
}

static pte_t makes_young(pte_t pte)
{
	return pte_mkyoung(pte);
}

static pte_t makes_old(pte_t pte)
{
	return pte_mkold(pte);
}

static pte_t makes_clean(pte_t pte)
{
	return pte_mkclean(pte);
}

static pte_t makes_both(pte_t pte)
{
	return pte_mkold(pte_mkclean(pte));
}

#define YOUNG_SINGLE	(PGTABLE_KUNIT_YOUNG_RANGES ? 0 : CONTPTE_OP_SINGLE)
#define GONE		(CONTPTE_OP_UNFOLDS | CONTPTE_OP_WRITES | \
			 CONTPTE_OP_GONE)
#define PROTECTS	(CONTPTE_OP_UNFOLDS | CONTPTE_OP_WRITES)
#define AGES		(CONTPTE_OP_EXPANDS | CONTPTE_OP_WRITES)

const struct contpte_order_op contpte_order_ops[CONTPTE_ORDER_OPS] = {
	{ "get_and_clear_full_ptes, full=0", op_get_and_clear_full,
	  GONE | CONTPTE_OP_RETURNS, makes_none },
	{ "get_and_clear_full_ptes, full=1", op_get_and_clear_full1,
	  GONE | CONTPTE_OP_RETURNS, makes_none },
	{ "clear_full_ptes, full=0", op_clear_full, GONE, makes_none },
	{ "clear_full_ptes, full=1", op_clear_full1, GONE, makes_none },
	{ "wrprotect_ptes", op_wrprotect, PROTECTS, makes_read_only },
	{ "pte_clear", op_pte_clear, GONE | CONTPTE_OP_SINGLE, makes_none },
	{ "ptep_get_and_clear", op_get_and_clear,
	  GONE | CONTPTE_OP_SINGLE | CONTPTE_OP_RETURNS, makes_none },
	{ "ptep_set_wrprotect", op_set_wrprotect,
	  PROTECTS | CONTPTE_OP_SINGLE, makes_read_only },
	{ "set_pte_at of a swap entry", op_set_swap, GONE | CONTPTE_OP_SINGLE,
	  makes_swap },
	{ "set_pte_at of the same page", op_set_same,
	  PROTECTS | CONTPTE_OP_SINGLE | CONTPTE_OP_FOLDS },
	{ "ptep_set_access_flags, young", op_access_young,
	  AGES | CONTPTE_OP_SINGLE, makes_young },
	/* ptep_set_access_flags() never removes the permission to write. */
	{ "ptep_set_access_flags, other write bit", op_access_write,
	  PROTECTS | CONTPTE_OP_SINGLE, makes_young },
	{ "test_and_clear_young", op_test_young,
	  AGES | CONTPTE_OP_YOUNG | YOUNG_SINGLE, makes_old },
	{ "clear_flush_young", op_flush_young,
	  AGES | CONTPTE_OP_YOUNG | CONTPTE_OP_FLUSHES | YOUNG_SINGLE,
	  makes_old },
	{ "clear_young_dirty_ptes, young", op_clear_young,
	  AGES | CONTPTE_OP_OLD, makes_old },
	{ "clear_young_dirty_ptes, dirty", op_clear_dirty,
	  AGES | CONTPTE_OP_CLEAN, makes_clean },
	{ "clear_young_dirty_ptes, both", op_clear_both,
	  AGES | CONTPTE_OP_OLD | CONTPTE_OP_CLEAN, makes_both },
	{ "ptep_get", op_get, CONTPTE_OP_SINGLE | CONTPTE_OP_RETURNS },
	{ "ptep_get_lockless", op_get_lockless,
	  CONTPTE_OP_SINGLE | CONTPTE_OP_RETURNS },
};
