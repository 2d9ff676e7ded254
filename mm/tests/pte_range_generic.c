// SPDX-License-Identifier: GPL-2.0
/*
 * The generic functions on ranges of entries, also for an architecture with its
 * own functions. They are cut out of linux/pgtable.h and compiled a second
 * time, with names that begin with generic_. They call functions of the
 * architecture.
 */

#include "pte_range.h"
#include "pte_range_functions.h"

/*
 * The architecture has its own function, so the generic function is a separate
 * one.
 */
static bool generic_own(enum pte_op_id id)
{
	switch (id) {
	default:
		return false;
#ifdef set_ptes
	case PTE_OP_SET_PTES:
#endif
#ifdef get_and_clear_full_ptes
	case PTE_OP_GET_AND_CLEAR_FULL:
#endif
#ifdef clear_full_ptes
	case PTE_OP_CLEAR_FULL:
#endif
#ifdef wrprotect_ptes
	case PTE_OP_WRPROTECT_PTES:
#endif
#ifdef clear_young_dirty_ptes
	case PTE_OP_CLEAR_YOUNG_DIRTY:
#endif
#ifdef test_and_clear_young_ptes
	case PTE_OP_TEST_YOUNG_PTES:
#endif
#ifdef clear_flush_young_ptes
	case PTE_OP_FLUSH_YOUNG_PTES:
#endif
#ifdef modify_prot_start_ptes
	case PTE_OP_MODIFY_PROT:
#endif
		return true;
	}
}

#undef set_ptes
#undef get_and_clear_full_ptes
#undef clear_full_ptes
#undef wrprotect_ptes
#undef clear_young_dirty_ptes
#define set_ptes		generic_set_ptes
#define get_and_clear_full_ptes	generic_get_and_clear_full_ptes
#define clear_full_ptes		generic_clear_full_ptes
#define wrprotect_ptes		generic_wrprotect_ptes
#define clear_young_dirty_ptes	generic_clear_young_dirty_ptes
#ifdef PGTABLE_KUNIT_HAS_MODIFY_PROT_PTES
#undef pgtable_kunit_modify_prot_start
#undef pgtable_kunit_modify_prot_commit
#define pgtable_kunit_modify_prot_start	generic_modify_prot_start_ptes
#define pgtable_kunit_modify_prot_commit	generic_modify_prot_commit_ptes
#endif
#ifdef PGTABLE_KUNIT_HAS_YOUNG_PTES
#undef pgtable_kunit_test_and_clear_young
#undef pgtable_kunit_clear_flush_young
#define pgtable_kunit_test_and_clear_young generic_test_and_clear_young_ptes
#define pgtable_kunit_clear_flush_young	generic_clear_flush_young_ptes
#endif
#define PTE_OP_TABLE		generic_ops
#include "pte_op_table.h"

const struct pte_backend pte_range_generic_backend = {
	.name = "generic ",
	.ops = generic_ops,
	.own = generic_own,
};
