/* SPDX-License-Identifier: GPL-2.0 */
/* folio_walk: pagemap, and the checks that look at all processes. */
#ifndef FOLIO_WALK_SEE_H
#define FOLIO_WALK_SEE_H

#include "folio_walk.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_PRESENT BITS(63)
#define PM_SWAP BITS(62)
#define PM_FILE BITS(61)
#define PM_GUARD BITS(58)
#define PM_UFFD_WP BITS(57)
#define PM_EXCLUSIVE BITS(56)
#define PM_SOFT_DIRTY BITS(55)
#define PM_PFN ((1ULL << 55) - 1)

int walk_pagemap(int proc);
bool walk_entries(int proc, uint32_t at, uint32_t len, uint64_t *entries);
void walk_check_frames(void);
void walk_check_smaps(int proc);

#endif /* FOLIO_WALK_SEE_H */
