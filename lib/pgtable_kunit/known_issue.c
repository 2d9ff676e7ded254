// SPDX-License-Identifier: GPL-2.0
/*
 * Failures that are known: faults of the kernel, not of the test.
 */

#include <linux/module.h>

#include "known_issue.h"

static bool strict;
module_param(strict, bool, 0644);
MODULE_PARM_DESC(strict, "known issues fail a test instead of skipping it");

/**
 * pgtable_kunit_meet_issue() - the verdict of a test that has met a known issue
 * @test: the test
 * @number: number of the issue in the list of known issues
 * @fmt: what was seen, as for printf()
 *
 * Return: what pgtable_kunit_known_issue() throws at to end the test
 */
struct kunit_try_catch *pgtable_kunit_meet_issue(struct kunit *test, int number,
						 const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	if (strict)
		KUNIT_FAIL(test, "known issue %d: %pV", number, &vaf);
	else
		kunit_mark_skipped(test, "known issue %d: %pV", number, &vaf);
	va_end(args);
	return &test->try_catch;
}

/**
 * pgtable_kunit_stale_issue() - report that a known issue was not met
 * @test: the test
 * @number: number of the issue in the list of known issues
 *
 * For a test that passes although the issue predicts that it fails.
 */
void pgtable_kunit_stale_issue(struct kunit *test, int number)
{
	kunit_info(test, "known issue %d is stale: the property holds\n",
		   number);
}
