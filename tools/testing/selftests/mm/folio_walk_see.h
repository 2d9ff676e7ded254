/* SPDX-License-Identifier: GPL-2.0 */
/* folio_walk: pagemap, and the checks that look at all processes. */
#ifndef FOLIO_WALK_SEE_H
#define FOLIO_WALK_SEE_H

#include "folio_walk.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_PRESENT (1ULL << 63)
#define PM_SWAP (1ULL << 62)
#define PM_FILE (1ULL << 61)
#define PM_GUARD (1ULL << 58)
#define PM_UFFD_WP (1ULL << 57)
#define PM_EXCLUSIVE (1ULL << 56)
#define PM_PFN ((1ULL << 55) - 1)

int walk_pagemap(int proc);
bool walk_entries(int proc, uint32_t at, uint32_t len, uint64_t *entries);
void walk_check_frames(void);
void walk_check_smaps(int proc);

#endif /* FOLIO_WALK_SEE_H */
