/* SPDX-License-Identifier: GPL-2.0 */
/* Known failures, which are bugs of the kernel and not of the test. */
#ifndef _PGTABLE_KUNIT_KNOWN_ISSUE_H
#define _PGTABLE_KUNIT_KNOWN_ISSUE_H

#include <kunit/test.h>

bool pgtable_kunit_source_has_issue(int number);
bool pgtable_kunit_has_issue(int number);
void pgtable_kunit_issue_met(struct kunit *test, int number, bool has,
			     bool fails, struct va_format *vaf);
__printf(3, 4)
void pgtable_kunit_known_issue(struct kunit *test, int number,
			       const char *fmt, ...);
void pgtable_kunit_stale_issue(struct kunit *test, int number);

#endif /* _PGTABLE_KUNIT_KNOWN_ISSUE_H */
