# SPDX-License-Identifier: GPL-2.0
# Commands of this repository; what each does stands in README.md.

PYTHON ?= python3
export PYTHONPATH := $(CURDIR)/tools/testing
export PYTHONDONTWRITEBYTECODE := 1
export KERNEL KDIR PATCH INSTALL ARCH PAGES O TARGETS TESTS SUITE HOST STRICT KERNEL_ARGS KCONFIG_ADD ORIGIN

help:
	@echo 'make check                       the tests of this repository, all that CI runs'
	@echo 'make check-host                  of these, what needs no kernel (seconds)'
	@echo 'make kselftest TARGETS=mm        the selftests, in a virtual machine'
	@echo 'make results                     one summary of all that ran, as JSON and JUnit XML too'
	@echo 'make kcidb                       the same as a submission to KCIDB, in a file'
	@echo 'make bundle ARCH=arm64           kernel and selftests for a lab: image, initramfs, disk'
	@echo 'make matrix                      kernels x architectures x page sizes x flavours, one table'
	@echo 'make mutants                     does any test notice if the kernel is wrong?'
	@echo 'make known-issues                does each patch of a known issue fix it?'
	@echo 'make coverage                    lines and branches of the code under test that the suites run'
	@echo 'make bench                       counts and ratios: batches, owners, clearing, write faults'
	@echo 'make bench-compare A=out B=...   two results of make bench beside each other'
	@echo 'make report                      one HTML page of all results, failures first'
	@echo 'make htmldocs                    Documentation/ as HTML'
	@echo 'make bench-launcher              times of the launcher beside plain kunit.py'
	@echo 'make graft KDIR=/path/to/linux   lay the overlay over a tree, in place'
	@echo 'make ungraft KDIR=/path/to/linux take it off again, byte for byte'
	@echo 'make series KDIR=/path/to/linux  the overlay as patches for git am, in out/series'
	@echo 'To run the suites: ./tools/testing/kunit/kunit.py run --arch=arm64'
	@echo 'Variables: KERNEL KDIR PATCH ARCH PAGES FEATURES O INSTALL=no; python3 -m mmcheck.VERB --help says more.'
	@echo 'Each failure of these is status 2; python3 tools/testing/mmcheck VERB keeps the exit status.'

check check-host:
	@$(PYTHON) -m mmcheck.check $@

bench bench-compare:
	@$(PYTHON) -m mmcheck.bench $@

bench-launcher:
	@$(PYTHON) -m mmcheck.bench_launcher

kselftest:
	@$(PYTHON) -m mmcheck.kselftest

results:
	@$(PYTHON) -m mmcheck.collect

report:
	@$(PYTHON) -m mmcheck.report

kcidb:
	@$(PYTHON) -m mmcheck.kcidb

bundle:
	@$(PYTHON) -m mmcheck.bundle

matrix:
	@$(PYTHON) -m mmcheck.matrix

mutants:
	@$(PYTHON) -m mmcheck.mutants

known-issues:
	@$(PYTHON) -m mmcheck.patched

coverage:
	@$(PYTHON) -m mmcheck.coverage

htmldocs:
	@$(PYTHON) -m mmcheck.htmldocs

graft ungraft:
	@$(PYTHON) -m mmcheck.graft $@

series:
	@$(PYTHON) -m mmcheck.series

.PHONY: help check check-host kselftest results report kcidb bundle matrix mutants known-issues coverage htmldocs bench bench-compare bench-launcher graft ungraft series
