// SPDX-License-Identifier: GPL-2.0
/*
 * The common end of a case in all suites: the case must have tried a
 * combination.
 */

#include "pgtable_kunit.h"

/* The combinations that the case has tried. */
unsigned int pgtable_kunit_tried;

/**
 * pgtable_kunit_exit() - the exit of a suite that counts combinations
 * @test: the test
 *
 * A case that passes must have tried a combination.
 */
void pgtable_kunit_exit(struct kunit *test)
{
	if (test->status == KUNIT_SUCCESS)
		PGTABLE_KUNIT_DID(test, pgtable_kunit_tried, "combinations");
	pgtable_kunit_tried = 0;
}
