/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A worker of folio_walk makes the calls with these functions. Each function
 * returns a result or -errno.
 */
#ifndef FOLIO_WALK_RUN_H
#define FOLIO_WALK_RUN_H

#include "folio_walk.h"

/*
 * A worker returns this value if it skips a call because the kernel's mappings
 * differ from the mappings in the model.
 */
#define NOT_NOW (-EXDEV)

bool run_one_mapping(uint32_t at, uint32_t len);

#define NEW(name) long name(const struct walk_step *s)
NEW(run_map_anon);
NEW(run_map_file);
NEW(run_map_hugetlb);
NEW(run_munmap);
NEW(run_mprotect);
NEW(run_mremap);
NEW(run_write);
NEW(run_write_same);
NEW(run_read);
NEW(run_madvise);
NEW(run_process_madvise);
NEW(run_mlock);
NEW(run_munlock);
NEW(run_msync);
NEW(run_fork);
NEW(run_exit);
NEW(run_split);
NEW(run_move_pages);
NEW(run_mbind);
NEW(run_compact);
NEW(run_drop_caches);
NEW(run_ksm);
NEW(run_thp);
NEW(run_swapoff);
NEW(run_reclaim);
NEW(run_high);
NEW(run_clear_refs);
NEW(run_uffd_register);
NEW(run_uffd_unregister);
NEW(run_uffd_copy);
NEW(run_uffd_zero);
NEW(run_uffd_protect);
NEW(run_uffd_move);
NEW(run_scan);
NEW(run_pin);
NEW(run_unpin);
NEW(run_vmsplice);
NEW(run_drain);
NEW(run_pwrite);
NEW(run_pread);
NEW(run_direct_read);
NEW(run_direct_write);
NEW(run_truncate);
NEW(run_punch);
NEW(run_fsync);
NEW(run_fadvise);
NEW(run_force_write);
NEW(run_vm_write);
NEW(run_vm_read);
#undef NEW

#endif /* FOLIO_WALK_RUN_H */
