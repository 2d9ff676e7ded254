/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers that read the state of a sequence count with several writers. */
#ifndef _LIB_ATOMIC_SEQCOUNT_TEST_H
#define _LIB_ATOMIC_SEQCOUNT_TEST_H

#include "atomic_seqcount.h"
#include "pgtable_kunit.h"

static inline unsigned long cnt_shared(const struct atomic_seqcount *s)
{
	return atomic64_read(&s->state) & 0xffff;
}

static inline unsigned long cnt_exclusive(const struct atomic_seqcount *s)
{
	return atomic64_read(&s->state) >> 16 & 0xffff;
}

static inline u32 cnt_writes(const struct atomic_seqcount *s)
{
	return (u64)atomic64_read(&s->state) >> 32;
}

static inline void cnt_expect(struct kunit *test,
			      const struct atomic_seqcount *s,
			      unsigned long shared, unsigned long exclusive,
			      u32 writes)
{
	KUNIT_EXPECT_EQ(test, cnt_shared(s), shared);
	KUNIT_EXPECT_EQ(test, cnt_exclusive(s), exclusive);
	KUNIT_EXPECT_EQ(test, cnt_writes(s), writes);
}

#endif /* _LIB_ATOMIC_SEQCOUNT_TEST_H */
