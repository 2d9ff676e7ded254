/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tests report how much work they did. A test that passes proves nothing if its
 * loop, race, fold, swap or migration never happened.
 */
#ifndef FOLIO_DID_H
#define FOLIO_DID_H

#include "kselftest_harness.h"

/**
 * DID() - print how much a test did, and fail the test if it did nothing
 * @count: the number of things that the test did
 * @what: the name of these things, in the plural: "folds", "pages swapped out"
 *
 * Use this macro inside TEST_F().
 */
#define DID(count, what) do {						\
	const unsigned long __did = (count);				\
	const char *__what = (what);					\
									\
	TH_LOG("did %lu %s", __did, __what);				\
	EXPECT_LT(0UL, __did) {						\
		TH_LOG("no %s: this test proves nothing", __what);	\
	}								\
} while (0)

#endif /* FOLIO_DID_H */
