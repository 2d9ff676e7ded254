/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From here on, the macros that access an entry report to the recorder.
 *
 * An object that compiles page-table code a second time must include this file
 * before any header that accesses an entry, and then contpte_recorded.h.
 */
#ifndef _CONTPTE_RECORD_ACCESS_H
#define _CONTPTE_RECORD_ACCESS_H

#include <linux/atomic.h>
#include <linux/compiler.h>

#include "contpte_record.h"

#undef READ_ONCE
#define READ_ONCE(x)							\
({									\
	__auto_type __rec_p = &(x);					\
	__auto_type __rec_v = (pgtable_kunit_record_begin((const void *)__rec_p),	\
			       __READ_ONCE(*__rec_p));			\
									\
	pgtable_kunit_record_end((const void *)__rec_p, false);			\
	__rec_v;							\
})

#undef WRITE_ONCE
#define WRITE_ONCE(x, val)						\
do {									\
	__auto_type __rec_p = &(x);					\
	typeof(*__rec_p) __rec_v = (val);				\
									\
	pgtable_kunit_record_begin((const void *)__rec_p);				\
	__WRITE_ONCE(*__rec_p, __rec_v);				\
	pgtable_kunit_record_end((const void *)__rec_p, true);			\
} while (0)

#define RECORDED_XCHG(xchg, ptr, val)					\
({									\
	__auto_type __rec_p = (ptr);					\
	typeof(*__rec_p) __rec_v = (val);				\
	typeof(*__rec_p) __rec_got;					\
									\
	pgtable_kunit_record_begin((const void *)__rec_p);				\
	__rec_got = xchg(__rec_p, __rec_v);				\
	pgtable_kunit_record_end((const void *)__rec_p, true);			\
	__rec_got;							\
})

#define RECORDED_CMPXCHG(cmpxchg, ptr, old, val)			\
({									\
	__auto_type __rec_p = (ptr);					\
	typeof(*__rec_p) __rec_old = (old);				\
	typeof(*__rec_p) __rec_v = (val);				\
	typeof(*__rec_p) __rec_got;					\
									\
	pgtable_kunit_record_begin((const void *)__rec_p);				\
	__rec_got = cmpxchg(__rec_p, __rec_old, __rec_v);		\
	pgtable_kunit_record_end((const void *)__rec_p, __rec_got == __rec_old);	\
	__rec_got;							\
})

#undef xchg
#undef xchg_relaxed
#undef cmpxchg
#undef cmpxchg_relaxed
#undef try_cmpxchg
#define xchg(ptr, val)		RECORDED_XCHG(raw_xchg, ptr, val)
#define xchg_relaxed(ptr, val)	RECORDED_XCHG(raw_xchg_relaxed, ptr, val)
#define cmpxchg(ptr, old, val)	RECORDED_CMPXCHG(raw_cmpxchg, ptr, old, val)
#define cmpxchg_relaxed(ptr, old, val) \
	RECORDED_CMPXCHG(raw_cmpxchg_relaxed, ptr, old, val)
#define try_cmpxchg(ptr, oldp, val)					\
({									\
	__auto_type __rec_oldp = (oldp);				\
	typeof(*__rec_oldp) __rec_want = *__rec_oldp;			\
									\
	*__rec_oldp = cmpxchg(ptr, __rec_want, val);			\
	*__rec_oldp == __rec_want;					\
})

#endif /* _CONTPTE_RECORD_ACCESS_H */
