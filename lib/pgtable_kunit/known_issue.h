/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that are known: faults of the kernel, not of the test.
 */
#ifndef _PGTABLE_KUNIT_KNOWN_ISSUE_H
#define _PGTABLE_KUNIT_KNOWN_ISSUE_H

#include <kunit/test.h>

__printf(3, 4)
struct kunit_try_catch *pgtable_kunit_meet_issue(struct kunit *test, int number,
						 const char *fmt, ...);
void pgtable_kunit_stale_issue(struct kunit *test, int number);

/**
 * pgtable_kunit_known_issue() - end a test that has met a known issue
 * @test: the test
 * @number: number of the issue in the list of known issues
 * @...: what was seen, as for printf()
 *
 * Use it only when what was seen is exactly what the issue predicts. The test
 * is skipped with the number of the issue, or fails if the kernel was started
 * with pgtable_kunit.strict=1. Either way, it ends here: a macro, since objtool
 * knows the kernel's functions that do not return by their names.
 */
#define pgtable_kunit_known_issue(test, number, ...) \
	kunit_try_catch_throw(pgtable_kunit_meet_issue(test, number, __VA_ARGS__))

#endif /* _PGTABLE_KUNIT_KNOWN_ISSUE_H */
