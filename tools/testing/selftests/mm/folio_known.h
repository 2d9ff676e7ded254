/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that are known: faults of the kernel, not of the test.
 */
#ifndef FOLIO_KNOWN_H
#define FOLIO_KNOWN_H

#include <stdbool.h>
#include <stdlib.h>

#include "kselftest_harness.h"

/* Written by known_issues.sh: FOLIO_KNOWN_ISSUES, bit N for issue N. */
#include "folio_known_issues.h"

/**
 * has_issue() - whether the source of the kernel shows a known issue
 * @number: of the issue in KNOWN_ISSUES.md
 *
 * Return: true if its faulty code is there, in a version older than the fix;
 * ISSUES=BITS in the environment says otherwise
 */
static inline bool has_issue(int number)
{
	const char *given = getenv("ISSUES");

	return (given ? strtoul(given, NULL, 0) : FOLIO_KNOWN_ISSUES) >> number & 1;
}

/**
 * KNOWN_ISSUE() - report that a test has met a known issue
 * @number: of the issue in KNOWN_ISSUES.md
 * @what: a few words about it
 *
 * Use it only when what was seen is exactly what the issue predicts, inside of
 * a TEST_F(). The test is skipped if the source of the kernel shows the issue.
 * It fails if the source does not, with STRICT=1, and if it has failed already.
 * It goes on, for a test has more to check than what the issue predicts: a
 * failure after this fails the test.
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
 * @number: of the issue in KNOWN_ISSUES.md
 *
 * For a test that was where the issue predicts a failure, and saw none.
 */
#define STALE_ISSUE(number) do {					\
	const int __number = (number);					\
									\
	if (has_issue(__number) && __test_passed(_metadata))		\
		TH_LOG("known issue %d is stale: the source shows it, the property holds", \
		       __number);					\
} while (0)

#endif /* FOLIO_KNOWN_H */
