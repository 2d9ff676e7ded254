# SPDX-License-Identifier: GPL-2.0
# Commands of this repository. README.md describes each command.

PYTHON ?= python3
export PYTHONPATH := $(CURDIR)/tools/testing
export PYTHONDONTWRITEBYTECODE := 1
export KERNEL KDIR PATCH INSTALL ARCH PAGES O TARGETS TESTS SUITE HOST STRICT KERNEL_ARGS KCONFIG_ADD ORIGIN FROM
export VERSION DRY_RUN CASE GDB GDB_ARGS BASELINE GOOD BAD SERIES SEED SECONDS AUDIT

VERBS := kselftest matrix bisect radar walk audit debug tlb tlb-mutants bundle doctor completion results compare baseline report kcidb \
	mutants known-issues patches patterns functions coverage bench bench-compare bench-launcher graft ungraft series \
	check check-host check-report report-pictures release htmldocs

help:
	@$(PYTHON) tools/testing/mmcheck --help

$(VERBS):
	@$(PYTHON) tools/testing/mmcheck $@

.PHONY: help $(VERBS)
