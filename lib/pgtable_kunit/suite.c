// SPDX-License-Identifier: GPL-2.0
/*
 * The common end of a case in all suites. It checks that the case has tried a
 * combination.
 */

#include "pgtable_kunit.h"

/* The number of combinations that the case has tried. */
unsigned int pgtable_kunit_tried;

/**
 * pgtable_kunit_exit() - the exit of a suite that counts combinations
 * @test: the test
 *
 * A case may pass only if it has tried a combination.
 */
void pgtable_kunit_exit(struct kunit *test)
{
	if (test->status == KUNIT_SUCCESS)
		PGTABLE_KUNIT_DID(test, pgtable_kunit_tried, "combinations");
	pgtable_kunit_tried = 0;
}
