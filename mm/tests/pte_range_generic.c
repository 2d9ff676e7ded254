// SPDX-License-Identifier: GPL-2.0
/*
 * The generic functions on ranges of entries, also for an architecture with its
 * own functions. They are cut out of linux/pgtable.h and compiled a second
 * time, with names that begin with generic_. They call functions of the
 * architecture.
 */

#define PGTABLE_KUNIT_GENERIC
#include "pte_range.h"

const struct walk_functions pte_range_generic_functions = {
	.set_ptes = generic_set_ptes,
	.get_and_clear_full_ptes = generic_get_and_clear_full_ptes,
	.clear_full_ptes = generic_clear_full_ptes,
	.wrprotect_ptes = generic_wrprotect_ptes,
	.clear_young_dirty_ptes = generic_clear_young_dirty_ptes,
	.test_and_clear_young_ptes = generic_test_and_clear_young_ptes,
	.clear_flush_young_ptes = generic_clear_flush_young_ptes,
	.modify_prot_start_ptes = generic_modify_prot_start_ptes,
	.modify_prot_commit_ptes = generic_modify_prot_commit_ptes,
};

/**
 * pte_range_is_own() - whether an architecture has a function of its own
 * @op: the function
 * @single: the form for one entry is meant
 *
 * Return: whether the architecture does not use the generic function.
 */
bool pte_range_is_own(enum walk_op op, bool single)
{
	if (single)
		return false;
	switch (op) {
	default:
		return false;
#ifdef set_ptes
	case WALK_SET:
#endif
#ifdef get_and_clear_full_ptes
	case WALK_GET_AND_CLEAR_FULL:
#endif
#ifdef clear_full_ptes
	case WALK_CLEAR_FULL:
#endif
#ifdef wrprotect_ptes
	case WALK_WRPROTECT:
#endif
#ifdef clear_young_dirty_ptes
	case WALK_CLEAR_YOUNG_DIRTY:
#endif
#ifdef test_and_clear_young_ptes
	case WALK_TEST_YOUNG_PTES:
#endif
#ifdef clear_flush_young_ptes
	case WALK_FLUSH_YOUNG_PTES:
#endif
#ifdef modify_prot_start_ptes
	case WALK_MODIFY_PROT:
#endif
		return true;
	}
}
