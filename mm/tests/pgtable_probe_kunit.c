// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the suites themselves: whether they could find out which features
 * this kernel has, and whether their messages name the differences between
 * entries.
 *
 * lib/pgtable_kunit/probes lists the features, and where the kernel has them. A
 * feature counts as missing only if its usual place in the source exists. If
 * the place is missing as well, the feature may have moved, and cases that
 * depend on it may expect the wrong behaviour.
 *
 * Not covered: whether a feature that was found behaves as the cases expect.
 *
 * Run: ./tools/testing/kunit/kunit.py run --arch=arm64 pgtable_probe
 */

#include <kunit/test.h>
#include <linux/stringify.h>

#include "pgtable_kunit.h"

/*
 * Each probe found its feature, or the place where the feature would be. The
 * Makefile counts the probes, and names each probe that found neither of them.
 */
static void probe_finds_its_place(struct kunit *test)
{
#ifdef PGTABLE_KUNIT_UNKNOWN
	KUNIT_FAIL(test, "cannot tell whether this kernel has %s: see lib/pgtable_kunit/probes",
		   __stringify(PGTABLE_KUNIT_UNKNOWN));
#endif
	PGTABLE_KUNIT_DID(test, PGTABLE_KUNIT_PROBES, "probes answered");
}

/*
 * A failure message names each property in which an entry differs from the
 * expected entry. In some pairs the entry has the property, and in others the
 * expected entry has it.
 */
static void failure_names_properties(struct kunit *test)
{
	pgprot_t read = vm_get_page_prot(VM_READ);
	pgprot_t write = vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED);
	pte_t old = pte_mkold(pte_mkclean(pfn_pte(1, read)));
	pte_t next = pte_mkold(pte_mkclean(pfn_pte(2, read)));
	pte_t writable = pte_mkold(pfn_pte(1, write));
	struct pgtable_kunit_pte_diff diff;

	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, old, old), "");
	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, pte_mkyoung(old), old),
			   ": +young");
	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, old, pte_mkdirty(old)),
			   ": -dirty");
	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, pte_mkclean(writable), old),
			   ": +writable");
	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, old, next),
			   ": other page");
	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, pgtable_kunit_none(), old),
			   ": -present");
	KUNIT_EXPECT_STREQ(test, pgtable_kunit_pte_diff(&diff, next, pte_mkdirty(pte_mkyoung(old))),
			   ": -young -dirty other page");
}

static struct kunit_case pgtable_probe_cases[] = {
	KUNIT_CASE(probe_finds_its_place),
	KUNIT_CASE(failure_names_properties),
	{}
};

static struct kunit_suite pgtable_probe_suite = {
	.name = "pgtable_probe",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = pgtable_probe_cases,
};

kunit_test_suites(&pgtable_probe_suite);

MODULE_DESCRIPTION("KUnit tests for the probes and messages of the page-table suites");
MODULE_LICENSE("GPL");
