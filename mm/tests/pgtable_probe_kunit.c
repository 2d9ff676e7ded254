// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the suites themselves: whether they could find out which features
 * this kernel has, whether their messages name the differences between entries,
 * and whether a known issue excuses only the failures that it may excuse.
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

/* Let a test that has a status meet a known issue. Returns the new status. */
static __printf(5, 6) enum kunit_status
status_after_issue(struct kunit *test, enum kunit_status before, bool has, bool strict,
		   const char *fmt, ...)
{
	struct kunit *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	struct va_format vaf = { .fmt = fmt };
	enum kunit_status after;
	va_list args;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	kunit_init_test(fake, "meant_to_fail", NULL);
	fake->status = before;
	va_start(args, fmt);
	vaf.va = &args;
	pgtable_kunit_issue_met(fake, 1000, has, strict, &vaf);
	va_end(args);
	after = fake->status;
	kunit_kfree(test, fake);
	return after;
}

/*
 * A known issue turns a test without a failure into a skip, if the kernel has
 * the issue. A failure before stays a failure. On a kernel without the issue,
 * and with strict=1, the test fails. Three tests called "meant_to_fail" print a
 * failure.
 */
static void known_issue_excuses(struct kunit *test)
{
	const struct {
		enum kunit_status before;
		bool has;
		bool strict;
		enum kunit_status after;
	} rows[] = {
		{ KUNIT_SUCCESS, true, false, KUNIT_SKIPPED },
		{ KUNIT_SKIPPED, true, false, KUNIT_SKIPPED },
		{ KUNIT_FAILURE, true, false, KUNIT_FAILURE },
		{ KUNIT_SUCCESS, true, true, KUNIT_FAILURE },
		{ KUNIT_SUCCESS, false, false, KUNIT_FAILURE },
		{ KUNIT_SUCCESS, false, true, KUNIT_FAILURE },
	};

	KUNIT_EXPECT_FALSE(test, pgtable_kunit_source_has_issue(1000));
	for (int i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, rows[i].after,
				    status_after_issue(test, rows[i].before, rows[i].has,
						       rows[i].strict, "row %d", i),
				    "row %d", i);
	PGTABLE_KUNIT_DID(test, ARRAY_SIZE(rows), "tests that met a known issue");
}

static struct kunit_case pgtable_probe_cases[] = {
	KUNIT_CASE(probe_finds_its_place),
	KUNIT_CASE(failure_names_properties),
	KUNIT_CASE(known_issue_excuses),
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
