/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A sequence count that several writers may hold at once.
 *
 * Writers that share the count change the data with atomic operations. A writer
 * that finds no other writer may get exclusive access, and then changes the
 * data with plain loads and stores. A later writer waits until the exclusive
 * writer ends. Readers retry if there was any writer while they read.
 *
 * The state is one word. Bits 0 to 15 are the number of writers that share the
 * count. Bits 16 to 31 are the number of writers that try to get exclusive
 * access or have it. The higher bits are the number of writes.
 *
 * Writers do not sleep, and do not run in interrupts: in an interrupt a writer
 * might wait for the writer that it interrupted.
 */
#ifndef _LIB_ATOMIC_SEQCOUNT_H
#define _LIB_ATOMIC_SEQCOUNT_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/preempt.h>
#include <linux/threads.h>

#define ATOMIC_SEQCOUNT_SHARED		((s64)BIT_ULL(0))
#define ATOMIC_SEQCOUNT_EXCLUSIVE	((s64)BIT_ULL(16))
#define ATOMIC_SEQCOUNT_STEP		((s64)BIT_ULL(32))

#define ATOMIC_SEQCOUNT_SHARED_MASK \
	(ATOMIC_SEQCOUNT_EXCLUSIVE - ATOMIC_SEQCOUNT_SHARED)
#define ATOMIC_SEQCOUNT_EXCLUSIVE_MASK \
	(ATOMIC_SEQCOUNT_STEP - ATOMIC_SEQCOUNT_EXCLUSIVE)
#define ATOMIC_SEQCOUNT_WRITERS_MASK \
	(ATOMIC_SEQCOUNT_SHARED_MASK | ATOMIC_SEQCOUNT_EXCLUSIVE_MASK)

/* Each CPU may have one writer, and a second writer nested in the first. */
static_assert(2 * CONFIG_NR_CPUS <= ATOMIC_SEQCOUNT_SHARED_MASK + 1);

struct atomic_seqcount {
	atomic64_t state;
};

/**
 * atomic_seqcount_init() - initialize a count, without any write
 * @s: the count
 */
static inline void atomic_seqcount_init(struct atomic_seqcount *s)
{
	atomic64_set(&s->state, 0);
}

/**
 * atomic_seqcount_read() - begin to read, even if there are writers
 * @s: the count
 *
 * Return: the state. If it has a bit of ATOMIC_SEQCOUNT_WRITERS_MASK, the data
 * is not consistent, and atomic_seqcount_read_retry() does not notice this.
 */
static inline s64 atomic_seqcount_read(const struct atomic_seqcount *s)
{
	return atomic64_read_acquire(&s->state);
}

/**
 * atomic_seqcount_read_begin() - wait until there is no writer, and begin to
 * read
 * @s: the count
 *
 * Return: the value for atomic_seqcount_read_retry().
 */
static inline s64 atomic_seqcount_read_begin(struct atomic_seqcount *s)
{
	return atomic64_cond_read_acquire(&s->state,
					  !(VAL & ATOMIC_SEQCOUNT_WRITERS_MASK));
}

/**
 * atomic_seqcount_read_retry() - check whether there was a writer
 * @s: the count
 * @start: the result of atomic_seqcount_read_begin()
 */
static inline bool atomic_seqcount_read_retry(const struct atomic_seqcount *s,
					      s64 start)
{
	/* Read the data before the state. */
	smp_rmb();
	return atomic64_read(&s->state) != start;
}

/* A writer in an interrupt may wait for the writer that it interrupted. */
static inline bool atomic_seqcount_may_write(void)
{
	return in_task();
}

/**
 * atomic_seqcount_write_begin() - begin to write
 * @s: the count
 * @exclusive: try to be the only writer
 *
 * Return: whether the caller is the only writer until it calls
 * atomic_seqcount_write_end(). If not, other writers may be active too.
 */
static inline bool atomic_seqcount_write_begin(struct atomic_seqcount *s,
					       bool exclusive)
{
	s64 state;

	if (IS_ENABLED(CONFIG_DEBUG_ATOMIC_SEQCOUNT))
		WARN_ON_ONCE(!atomic_seqcount_may_write());

	preempt_disable();
	if (exclusive) {
		/* A later writer that sees this state waits. */
		state = atomic64_add_return(ATOMIC_SEQCOUNT_EXCLUSIVE,
					    &s->state);
		if ((state & ATOMIC_SEQCOUNT_WRITERS_MASK) ==
		    ATOMIC_SEQCOUNT_EXCLUSIVE)
			return true;
		state = atomic64_add_return(ATOMIC_SEQCOUNT_SHARED -
					    ATOMIC_SEQCOUNT_EXCLUSIVE,
					    &s->state);
	} else {
		state = atomic64_add_return(ATOMIC_SEQCOUNT_SHARED, &s->state);
	}

	/*
	 * Another writer has exclusive access, or tries to get it and will
	 * fail.
	 */
	if (state & ATOMIC_SEQCOUNT_EXCLUSIVE_MASK)
		atomic64_cond_read_acquire(&s->state,
					   !(VAL & ATOMIC_SEQCOUNT_EXCLUSIVE_MASK));
	return false;
}

/**
 * atomic_seqcount_write_end() - end a write: the data is consistent again
 * @s: the count
 * @exclusive: the result of atomic_seqcount_write_begin()
 */
static inline void atomic_seqcount_write_end(struct atomic_seqcount *s,
					     bool exclusive)
{
	/* Write the data before the state. */
	smp_mb__before_atomic();
	atomic64_add(ATOMIC_SEQCOUNT_STEP -
		     (exclusive ? ATOMIC_SEQCOUNT_EXCLUSIVE :
				  ATOMIC_SEQCOUNT_SHARED), &s->state);
	/* Later accesses come after this. */
	smp_mb__after_atomic();
	preempt_enable();
}

#endif /* _LIB_ATOMIC_SEQCOUNT_H */
