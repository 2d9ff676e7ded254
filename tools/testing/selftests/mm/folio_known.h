/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for test failures that are caused by known bugs of the kernel. */
#ifndef FOLIO_KNOWN_H
#define FOLIO_KNOWN_H

#include "kselftest_harness.h"

#include "folio_issues.h"
/* known_issues.sh writes this header. The header defines FOLIO_KNOWN_ISSUES, a list of numbers. */
#include "folio_known_issues.h"

/**
 * has_issue() - whether the kernel's source has the bug of a known issue
 * @number: the number in KNOWN_ISSUES.md
 *
 * Return: true if the kernel's source has the faulty code and is older than the
 * fix. If ISSUES is set in the environment, such as ISSUES=1,3,5, it replaces
 * FOLIO_KNOWN_ISSUES.
 */
static inline bool has_issue(int number)
{
	return issue_listed(getenv("ISSUES") ?: FOLIO_KNOWN_ISSUES, number);
}

/**
 * KNOWN_ISSUE() - report that a test has met a known issue
 * @number: the number in KNOWN_ISSUES.md
 * @what: a few words about the issue
 *
 * Use this macro inside TEST_F(), and only if the test saw exactly the failure
 * that the issue predicts. If the kernel's source has the bug, the test is
 * skipped. The test fails if the source does not have the bug, if STRICT=1 is
 * set, or if the test has failed already. The test continues after this macro,
 * since it may have other things to check. A later failure still fails the
 * test.
 */
#define KNOWN_ISSUE(number, what) do {					\
	const char *__what = (what);					\
	const int __number = (number);					\
	const bool __has = has_issue(__number);				\
									\
	if (!__has || getenv("STRICT")) {				\
		EXPECT_TRUE(__has && !getenv("STRICT")) {		\
			TH_LOG("known issue %d: %s%s", __number, __what,	\
			       __has ? "" : ", but the source does not show it"); \
		}							\
	} else if (__test_passed(_metadata)) {				\
		SKIP(break, "known issue %d: %s", __number, __what);	\
	} else {							\
		TH_LOG("besides, known issue %d: %s", __number, __what); \
	}								\
} while (0)

/**
 * STALE_ISSUE() - report that a test has not met a known issue
 * @number: the number in KNOWN_ISSUES.md
 *
 * Use this macro if the issue predicts a failure, but the test saw no failure.
 */
#define STALE_ISSUE(number) do {					\
	const int __number = (number);					\
									\
	if (has_issue(__number) && __test_passed(_metadata))		\
		TH_LOG("known issue %d is stale: the source has the bug, but the property holds", \
		       __number);					\
} while (0)

#endif /* FOLIO_KNOWN_H */
