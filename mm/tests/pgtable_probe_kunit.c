// SPDX-License-Identifier: GPL-2.0
/*
 * Whether the suites could find out which features this kernel has.
 *
 * lib/pgtable_kunit/probes lists what they look for, and where. A feature
 * counts as missing only if its usual place is there. If the place is gone as
 * well, the feature may have moved, and cases that depend on it may expect the
 * wrong behaviour.
 *
 * Run: ./tools/testing/kunit/kunit.py run --arch=arm64 pgtable_probe
 */

#include <kunit/test.h>
#include <linux/stringify.h>

#include "pgtable_kunit.h"

/*
 * Each probe found its feature, or the place where it would be. The Makefile
 * counts the probes, and names those that found neither.
 */
static void probe_finds_its_place(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_UNKNOWN
	KUNIT_FAIL(test, "cannot tell whether this kernel has %s: see lib/pgtable_kunit/probes",
		   __stringify(PGTABLE_KUNIT_UNKNOWN));
#endif
	PGTABLE_KUNIT_DID(test, PGTABLE_KUNIT_PROBES, "probes answered");
}

static struct kunit_suite pgtable_probe_suite;

static int pgtable_probe_init(struct kunit *test)
{
	return pgtable_kunit_case_init(test, &pgtable_probe_suite);
}

static struct kunit_case pgtable_probe_cases[] = {
	KUNIT_CASE(probe_finds_its_place),
	{}
};

static struct kunit_suite pgtable_probe_suite = {
	.name = "pgtable_probe",
	.init = pgtable_probe_init,
	.test_cases = pgtable_probe_cases,
};

kunit_test_suites(&pgtable_probe_suite);

MODULE_DESCRIPTION("KUnit test of what the page-table suites know of the kernel");
MODULE_LICENSE("GPL");
