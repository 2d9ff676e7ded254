# SPDX-License-Identifier: GPL-2.0-only
#
# An inline function cannot be probed for by the preprocessor. For the Makefiles
# of the page-table suites: where their library is, and what the tree has. What
# is looked for, and where, is in the table "probes".

# The definitions for the compiler. What nobody can tell is said once.
pgtable_kunit_probes := $(shell $(CONFIG_SHELL) \
	$(srctree)/lib/pgtable_kunit/probe.sh -D $(srctree) \
	$(if $(filter %lib/pgtable_kunit,$(obj)),,2>/dev/null))

# Those of them that are named.
pgtable_kunit_has = $(filter $(patsubst %,-DPGTABLE_KUNIT_HAS_%,$(1)), \
		      $(pgtable_kunit_probes))

ccflags-y += -I$(srctree)/lib/pgtable_kunit \
	$(call pgtable_kunit_has,CLEAR_PTES MODIFY_PROT_PTES YOUNG_PTES \
		CLEAR_NONPRESENT ONE_DTOR KEPT_TABLES REUSED_FOLIOS \
		HUGE_ZERO_WP MAYBE_MAPPED_SHARED DUP_RMAP_VMA UNMAP_BATCHES)
