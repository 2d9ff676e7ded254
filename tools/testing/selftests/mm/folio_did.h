/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much a test did. A verdict that rests on a loop, a race, a fold, a swap
 * or a migration is worth nothing if that did not happen.
 */
#ifndef FOLIO_DID_H
#define FOLIO_DID_H

#include "kselftest_harness.h"

/**
 * DID() - say how much a test did; fail it if it did nothing
 * @count: how often
 * @what: what was counted, a plural: "folds", "pages swapped out"
 *
 * For use inside of a TEST_F().
 */
#define DID(count, what) do {						\
	const unsigned long __did = (count);				\
	const char *__what = (what);					\
									\
	TH_LOG("did %lu %s", __did, __what);				\
	EXPECT_LT(0UL, __did) {						\
		TH_LOG("no %s: this test shows nothing", __what);	\
	}								\
} while (0)

#endif /* FOLIO_DID_H */
