# SPDX-License-Identifier: GPL-2.0-only
#
# For the Makefiles of the page-table suites: the path of their library, and the
# features of the tree. The preprocessor cannot find inline functions, so a
# script searches the tree. The table "probes" has the words and the files.

# The definitions for the compiler. Each unknown feature is reported once.
pgtable_kunit_probes := $(shell $(CONFIG_SHELL) \
	$(srctree)/lib/pgtable_kunit/probe.sh -D $(srctree) \
	$(if $(filter %lib/pgtable_kunit,$(obj)),,2>/dev/null))

# The definitions with the given names.
pgtable_kunit_has = $(filter $(patsubst %,-DPGTABLE_KUNIT_HAS_%,$(1)), \
		      $(pgtable_kunit_probes))

ccflags-y += -I$(srctree)/lib/pgtable_kunit \
	$(call pgtable_kunit_has,CLEAR_PTES MODIFY_PROT_PTES YOUNG_PTES \
		CLEAR_NONPRESENT ONE_DTOR KEPT_TABLES REUSED_FOLIOS \
		HUGE_ZERO_WP MAYBE_MAPPED_SHARED DUP_RMAP_VMA UNMAP_BATCHES)
