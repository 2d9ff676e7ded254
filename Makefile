# SPDX-License-Identifier: GPL-2.0
# Commands of this repository. README.md says what each does.

PYTHON ?= python3
export PYTHONPATH := $(CURDIR)/tools/testing
export PYTHONDONTWRITEBYTECODE := 1
export KERNEL KDIR PATCH INSTALL ARCH PAGES O TARGETS TESTS SUITE HOST STRICT KERNEL_ARGS KCONFIG_ADD ORIGIN FROM

help:
	@echo 'Test a kernel'
	@echo '  the KUnit suites: ./tools/testing/kunit/kunit.py run --arch=arm64'
	@echo '  make kselftest TARGETS=mm        the selftests, in a virtual machine'
	@echo '  make matrix                      kernels x architectures x page sizes x flavours, one table'
	@echo '  make bundle ARCH=arm64           kernel and selftests for a lab: image, initramfs, disk'
	@echo 'Read the results'
	@echo '  make results                     one summary of all runs, as JSON and JUnit XML too'
	@echo '  make report                      one HTML page of all results, failures first'
	@echo '  make kcidb                       the results as a submission to KCIDB, in a file'
	@echo 'Judge the tests'
	@echo '  make mutants                     does any test notice if the kernel is wrong?'
	@echo '  make known-issues                do the tests of each known issue fail without its patch, and pass with it?'
	@echo '  make patches                     these patches as mails, checked with git am and checkpatch.pl'
	@echo '  make patterns                    what looks like a bug that was one before, each place with its verdict'
	@echo '  make coverage                    lines and branches of the code under test that the suites run'
	@echo 'Measure'
	@echo '  make bench                       counts and ratios: batches, owners, clearing, write faults'
	@echo '  make bench-compare A=out B=...   two results of make bench side by side'
	@echo '  make bench-launcher              times of the launcher beside plain kunit.py'
	@echo 'Take the suites along'
	@echo '  make graft KDIR=/path/to/linux   copy the overlay into a tree'
	@echo '  make ungraft KDIR=/path/to/linux remove it again, byte for byte'
	@echo '  make series KDIR=/path/to/linux  the overlay as patches for git am, in out/series'
	@echo 'This repository'
	@echo '  make check                       its tests, all that CI runs'
	@echo '  make check-host                  those that need no kernel'
	@echo '  make check-report                the page of make report in Chromium: looks, keyboard, accessibility'
	@echo '  make report-pictures             the pictures of that page in Documentation/'
	@echo '  make htmldocs                    Documentation/ as HTML'
	@echo 'Variables: KERNEL=6.12|7.3|latest  KDIR=your tree  PATCH=a patch  ARCH=arm64|x86_64|...  PAGES=4K|16K|64K'
	@echo '           FEATURES=atomic_rmw  O=out  INSTALL=no; python3 -m mmcheck.VERB --help says more'
	@echo 'A failure is status 2; python3 tools/testing/mmcheck VERB keeps the exit status.'

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

check-report report-pictures:
	@$(PYTHON) -m mmcheck.look $@

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

patches:
	@$(PYTHON) -m mmcheck.sendable

patterns:
	@$(PYTHON) -m mmcheck.patterns

coverage:
	@$(PYTHON) -m mmcheck.coverage

htmldocs:
	@$(PYTHON) -m mmcheck.htmldocs

graft ungraft:
	@$(PYTHON) -m mmcheck.graft $@

series:
	@$(PYTHON) -m mmcheck.series

.PHONY: help check check-host check-report report-pictures kselftest results report kcidb bundle matrix mutants known-issues patches patterns coverage htmldocs bench bench-compare bench-launcher graft ungraft series
