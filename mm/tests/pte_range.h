/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions on ranges of entries, on every architecture: the common parts of
 * the suites.
 *
 *   pte_range_table.c		how entries are written and compared
 *   pte_range_generic.c	the generic functions, compiled a second time
 *   pte_range_kunit.c		every range in a small window
 *   pte_range_walk_kunit.c	random walks
 */
#ifndef _MM_TESTS_PTE_RANGE_H
#define _MM_TESTS_PTE_RANGE_H

#include "walk.h"

extern const struct pte_backend pte_range_generic_backend;

void pte_range_ctx_init(struct pte_ctx *c, struct kunit *test,
			const struct pte_backend *backend);

#endif /* _MM_TESTS_PTE_RANGE_H */
