/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random walks over contiguous PTEs: walks over a table of arm64 entries that
 * compare every bit of each entry. walk.h has everything else.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_WALK_H
#define _ARM64_MM_TESTS_CONTPTE_WALK_H

#include "contpte.h"
#include "walk.h"

struct walk *contpte_walk_alloc(struct kunit *test);

#endif /* _ARM64_MM_TESTS_CONTPTE_WALK_H */
