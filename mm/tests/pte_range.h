/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions on ranges of entries, on every architecture: what the suites share.
 *
 *   pte_range_table.c		how entries are written and compared
 *   pte_range_generic.c	the generic functions, compiled a second time
 *   pte_range_kunit.c		every range in a small window
 *   pte_range_walk_kunit.c	random walks
 */
#ifndef _MM_TESTS_PTE_RANGE_H
#define _MM_TESTS_PTE_RANGE_H

#include "walk.h"

bool pte_range_is_own(enum walk_op op, bool single);

extern const struct walk_functions pte_range_generic_functions;

struct walk *pte_range_walk_alloc(struct kunit *test, const char *name,
				  bool generic);

#endif /* _MM_TESTS_PTE_RANGE_H */
