# SPDX-License-Identifier: GPL-2.0
# Tests of runs of page-table entries and of large folios from user space. The Makefile in this folder includes this file.
TEST_GEN_PROGS += call_effect
TEST_GEN_PROGS += collapse_orders
TEST_GEN_PROGS += collapse_shmem
TEST_GEN_PROGS += contpte_fold
TEST_GEN_PROGS += contpte_old
TEST_GEN_PROGS += atomic_fault
TEST_GEN_PROGS += atomic_file
TEST_GEN_PROGS += core_memory
TEST_GEN_PROGS += direct_pin
TEST_GEN_PROGS += fault_around
TEST_GEN_PROGS += file_store
TEST_GEN_PROGS += folio_advice
TEST_GEN_PROGS += folio_clear
TEST_GEN_PROGS += folio_clear_freed
TEST_GEN_PROGS += folio_clear_pool
TEST_GEN_PROGS += folio_clear_race
TEST_GEN_PROGS += folio_clear_tags
TEST_GEN_PROGS += folio_collapse
TEST_GEN_PROGS += folio_counters
TEST_GEN_PROGS += folio_counters_swap
TEST_GEN_PROGS += folio_dirty
TEST_GEN_PROGS += folio_edge
TEST_GEN_PROGS += folio_exclusive
TEST_GEN_PROGS += folio_file
TEST_GEN_PROGS += folio_fork
TEST_GEN_PROGS += folio_hinting
TEST_GEN_PROGS += folio_huge
TEST_GEN_PROGS += folio_ksm
TEST_GEN_PROGS += folio_lazyfree
TEST_GEN_PROGS += folio_mlock
TEST_GEN_PROGS += folio_mremap
TEST_GEN_PROGS += folio_move
TEST_GEN_PROGS += folio_numa
TEST_GEN_PROGS += folio_permission
TEST_GEN_PROGS += folio_race
TEST_GEN_PROGS += folio_reuse
TEST_GEN_PROGS += folio_reuse_race
TEST_GEN_PROGS += folio_ring
TEST_GEN_PROGS += folio_split_tags
TEST_GEN_PROGS += folio_swap
TEST_GEN_PROGS += folio_tables
TEST_GEN_PROGS += folio_twice
TEST_GEN_PROGS += folio_uffd
TEST_GEN_PROGS += folio_unshare
TEST_GEN_PROGS += folio_walk
TEST_GEN_PROGS += fork_wiped
TEST_GEN_PROGS += guard_merge
TEST_GEN_PROGS += hugetlb_address
TEST_GEN_PROGS += hugetlb_block
TEST_GEN_PROGS += hugetlb_cut
TEST_GEN_PROGS += hugetlb_demote
TEST_GEN_PROGS += hugetlb_fork
TEST_GEN_PROGS += hugetlb_limit
TEST_GEN_PROGS += hugetlb_mincore
TEST_GEN_PROGS += hugetlb_move
TEST_GEN_PROGS += hugetlb_mremap
TEST_GEN_PROGS += hugetlb_pinned
TEST_GEN_PROGS += hugetlb_private
TEST_GEN_PROGS += hugetlb_read
TEST_GEN_PROGS += hugetlb_scan
TEST_GEN_PROGS += hugetlb_seal
TEST_GEN_PROGS += hugetlb_sizes
TEST_GEN_PROGS += hugetlb_sparse
TEST_GEN_PROGS += hugetlb_taken
TEST_GEN_PROGS += hugetlb_vmstat
TEST_GEN_PROGS += linear_map_alias
TEST_GEN_PROGS += map_limits
TEST_GEN_PROGS += move_status
TEST_GEN_PROGS += mte_core
TEST_GEN_PROGS += mte_ptrace
TEST_GEN_PROGS += page_poison
TEST_GEN_PROGS += poison_pinned
TEST_GEN_PROGS += pmd_change
TEST_GEN_PROGS += pmd_split
TEST_GEN_PROGS += process_advice
TEST_GEN_PROGS += reclaim_stale
TEST_GEN_PROGS += scan_protect
TEST_GEN_PROGS += shmem_swap
TEST_GEN_PROGS += swap_error
TEST_GEN_PROGS += swapin_empty
TEST_GEN_PROGS += tagged_address
TEST_GEN_PROGS += tlb_stale
TEST_GEN_PROGS += udmabuf_memfd
TEST_GEN_PROGS += uffd_discard
TEST_GEN_PROGS += uffd_guard
TEST_GEN_PROGS += uffd_minor
TEST_GEN_PROGS += uffd_move
TEST_GEN_PROGS += uffd_move_hole
TEST_GEN_PROGS += uffd_mremap
TEST_GEN_PROGS += uffd_poison
TEST_GEN_PROGS += uffd_remove
TEST_GEN_PROGS += uffd_rwp
TEST_GEN_PROGS += uffd_rwp_anon
TEST_GEN_PROGS += uffd_unregister
TEST_GEN_PROGS += uffd_zeropage
TEST_GEN_PROGS += uring_locked

LOCAL_HDRS += $(selfdir)/mm/folio_clear.h $(selfdir)/mm/folio_did.h $(selfdir)/mm/folio_issues.h $(selfdir)/mm/folio_known.h $(selfdir)/mm/folio_ksm.h $(selfdir)/mm/folio_listen.h $(selfdir)/mm/folio_nodes.h $(selfdir)/mm/folio_owner.h $(selfdir)/mm/folio_pmd.h $(selfdir)/mm/folio_shared.h $(selfdir)/mm/folio_state.h $(selfdir)/mm/folio_tags.h $(selfdir)/mm/folio_util.h $(wildcard $(selfdir)/mm/folio_walk*.h) $(selfdir)/mm/hugetlb_pool.h $(selfdir)/mm/hugetlb_tables.h $(selfdir)/mm/tlb_threads.h
LOCAL_HDRS += $(selfdir)/mm/core_file.h $(selfdir)/mm/folio_clear.h $(selfdir)/mm/folio_counters.h $(selfdir)/mm/folio_did.h $(selfdir)/mm/folio_issues.h $(selfdir)/mm/folio_khugepaged.h $(selfdir)/mm/folio_known.h $(selfdir)/mm/folio_listen.h $(selfdir)/mm/folio_nodes.h $(selfdir)/mm/folio_owner.h $(selfdir)/mm/folio_pmd.h $(selfdir)/mm/folio_shared.h $(selfdir)/mm/folio_state.h $(selfdir)/mm/folio_tags.h $(selfdir)/mm/folio_util.h $(wildcard $(selfdir)/mm/folio_walk*.h) $(selfdir)/mm/hugetlb_pool.h $(selfdir)/mm/hugetlb_tables.h
CFLAGS += -I$(top_srcdir)/tools/testing/selftests

# linear_map_alias and fault_around have to know this, and only the kernel's source can tell it.
CFLAGS += $(filter -DPGTABLE_KUNIT_HAS_DATA_ALIAS -DPGTABLE_KUNIT_HAS_WHOLE_FOLIO, \
	$(shell sh ../../../../lib/pgtable_kunit/probe.sh -D ../../../.. 2>/dev/null))

# A header for folio_known.h, with the known issues of this tree. It is written only when they change.
folio_output := $(or $(OUTPUT),$(CURDIR))
folio_issues := $(shell sh ../../../../lib/pgtable_kunit/known_issues.sh ../../../.. $(folio_output)/folio_known_issues.h)
LOCAL_HDRS += $(folio_output)/folio_known_issues.h
EXTRA_CLEAN += $(folio_output)/folio_known_issues.h
CFLAGS += -I$(folio_output)

# folio_walk has several sources. lib.mk, which comes later, defines the default goal.
.DEFAULT_GOAL := all
$(folio_output)/folio_walk: $(wildcard folio_walk_*.c)
