/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much a test did. If a test checks the result of a loop, race, fold, swap
 * or migration that never happened, its pass means nothing.
 */
#ifndef FOLIO_DID_H
#define FOLIO_DID_H

#include "kselftest_harness.h"

/**
 * DID() - print how much a test did, and fail the test if it did nothing
 * @count: how often
 * @what: what was counted, in the plural: "folds", "pages swapped out"
 *
 * Use it inside TEST_F().
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
