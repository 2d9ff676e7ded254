// SPDX-License-Identifier: GPL-2.0
/* Known failures, which are bugs of the kernel and not of the test. */

#include <linux/kernel.h>
#include <linux/module.h>

#include "known_issue.h"

static bool strict;
module_param(strict, bool, 0644);
MODULE_PARM_DESC(strict, "known issues fail a test instead of skipping it");

/* The known issues that known_issues.sh found in the source of this kernel. */
#define FOUND	PGTABLE_KUNIT_ISSUES

static char *issues = FOUND;
module_param(issues, charp, 0444);
MODULE_PARM_DESC(issues, "known issues that this kernel has, as 1,3,5");

/* Whether a list such as "1,3,5" contains a number. */
static bool listed(char *list, int number)
{
	int one;

	while (get_option(&list, &one))
		if (one == number)
			return true;
	return false;
}

/**
 * pgtable_kunit_source_has_issue() - whether this kernel's source has an issue
 * @number: number of the issue in the list of known issues
 *
 * Use this if a test must know how the code behaves, but not for a verdict.
 *
 * Return: true if the source has the faulty code, and is older than the fix
 */
bool pgtable_kunit_source_has_issue(int number)
{
	return listed(FOUND, number);
}

/**
 * pgtable_kunit_has_issue() - whether tests assume that this kernel has an
 * issue
 * @number: number of the issue in the list of known issues
 *
 * Return: the same as pgtable_kunit_source_has_issue(), unless the parameter
 * issues= overrides it
 */
bool pgtable_kunit_has_issue(int number)
{
	return listed(issues, number);
}

/**
 * pgtable_kunit_issue_met() - the verdict on a test that has met a known issue
 * @test: the test
 * @number: number of the issue in the list of known issues
 * @has: whether this kernel has the issue
 * @fails: whether a known issue fails a test
 * @vaf: a description of the failure
 *
 * Tests call pgtable_kunit_known_issue().
 */
void pgtable_kunit_issue_met(struct kunit *test, int number, bool has,
			     bool fails, struct va_format *vaf)
{
	if (!has)
		KUNIT_FAIL(test,
			   "as known issue %d, which the source does not show: %pV",
			   number, vaf);
	else if (fails)
		KUNIT_FAIL(test, "known issue %d: %pV", number, vaf);
	else if (READ_ONCE(test->status) == KUNIT_FAILURE)
		kunit_info(test, "besides, known issue %d: %pV\n", number, vaf);
	else
		kunit_mark_skipped(test, "known issue %d: %pV", number, vaf);
}

/**
 * pgtable_kunit_known_issue() - report that a test has met a known issue
 * @test: the test
 * @number: number of the issue in the list of known issues
 * @fmt: a description of the failure, as for printf()
 *
 * Call this only if the issue predicts exactly this failure. If the source of
 * this kernel shows the issue, the test is skipped with the number of the
 * issue. The test fails if the source does not show the issue, if
 * pgtable_kunit.strict=1, or if the test has failed already. The test then
 * continues, because it also checks other properties. A later failure still
 * fails the test.
 */
void pgtable_kunit_known_issue(struct kunit *test, int number,
			       const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	pgtable_kunit_issue_met(test, number, pgtable_kunit_has_issue(number),
				strict, &vaf);
	va_end(args);
}

/**
 * pgtable_kunit_stale_issue() - report that a known issue was not met
 * @test: the test
 * @number: number of the issue in the list of known issues
 *
 * Call this at a point where the issue predicts a failure, if there was no
 * failure.
 */
void pgtable_kunit_stale_issue(struct kunit *test, int number)
{
	if (pgtable_kunit_has_issue(number) &&
	    READ_ONCE(test->status) != KUNIT_FAILURE)
		kunit_info(test,
			   "known issue %d is stale: the source has the bug, but the property holds\n",
			   number);
}
