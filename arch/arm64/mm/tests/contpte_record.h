/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Recorder of accesses to page-table entries.
 *
 * It is for an object that compiles page-table code of the tree a second time.
 * In that object READ_ONCE(), WRITE_ONCE(), xchg(), cmpxchg() and the TLB
 * invalidations go through the functions below. So the recorder sees what
 * hardware can see: each single access, in order, from any function.
 *
 * This file is included before any header that defines pte_t, and must not use
 * pte_t.
 */
#ifndef _CONTPTE_RECORD_H
#define _CONTPTE_RECORD_H

#include <linux/types.h>

struct kunit;
struct mm_struct;
struct pgtable_kunit_table;

/* The number of steps that are kept. Later steps are only counted. */
#define PGTABLE_KUNIT_STEPS	4096

/* Flags: the limits of an invalidation. */
#define PGTABLE_KUNIT_LAST_LEVEL	0x1	/* only last-level entries */
#define PGTABLE_KUNIT_NOSYNC		0x2	/* does not wait for the end */
#define PGTABLE_KUNIT_LOCAL		0x4	/* only on this CPU */
#define PGTABLE_KUNIT_NONOTIFY		0x8	/* not in secondary TLBs */
#define PGTABLE_KUNIT_KERNEL		0x10	/* of all processes */

enum pgtable_kunit_step_kind {
	PGTABLE_KUNIT_READ,		/* or a cmpxchg() that failed */
	PGTABLE_KUNIT_WRITE,
	PGTABLE_KUNIT_FLUSH,
};

/**
 * struct pgtable_kunit_step - one access to an entry, or one invalidation
 * @kind: the kind of step
 * @idx: the number of the entry in the table; the entry may lie in a guard
 * @old: the entry before the step
 * @new: the entry after it
 * @mm: the mm of the invalidated translations
 * @start: first address of an invalidation
 * @end: the address after the last
 * @stride: the distance between the invalidated addresses
 * @level: the level hint for the entries
 * @flags: PGTABLE_KUNIT_LAST_LEVEL and others
 */
struct pgtable_kunit_step {
	enum pgtable_kunit_step_kind kind;
	int idx;
	union {
		struct {
			u64 old;
			u64 new;
		};
		struct {
			struct mm_struct *mm;
			unsigned long start;
			unsigned long end;
			unsigned long stride;
			int level;
			unsigned int flags;
		};
	};
};

/**
 * struct pgtable_kunit_record - the accesses to a table
 * @nr: number of steps
 * @reads: number of reads among them
 * @writes: number of writes among them
 * @flushes: number of invalidations among them
 * @bbml3: whether the code under test finds that the CPU has BBM level 3
 * @before: called before each step, with the entry or INT_MIN; or NULL
 * @after: called after each step; or NULL
 * @data: for @before and @after
 * @step: the first PGTABLE_KUNIT_STEPS steps
 */
struct pgtable_kunit_record {
	unsigned int nr;
	unsigned int reads;
	unsigned int writes;
	unsigned int flushes;
	bool bbml3;
	void (*before)(struct pgtable_kunit_record *rec, int idx);
	void (*after)(struct pgtable_kunit_record *rec,
		      const struct pgtable_kunit_step *step);
	void *data;
	struct pgtable_kunit_step *step;
	/* private: */
	struct pgtable_kunit_table *table;
	u64 old;
};

struct pgtable_kunit_record *
pgtable_kunit_record_alloc(struct kunit *test,
			   struct pgtable_kunit_table *table);
void pgtable_kunit_record_start(struct pgtable_kunit_record *rec);
void pgtable_kunit_record_stop(void);

/* For the object with the recorded code. */
void pgtable_kunit_record_begin(const void *addr);
void pgtable_kunit_record_end(const void *addr, bool wrote);
void pgtable_kunit_record_flush(struct mm_struct *mm, unsigned long start,
				unsigned long end, unsigned long stride,
				int level, unsigned int flags);
bool pgtable_kunit_record_bbml3(void);

#endif /* _CONTPTE_RECORD_H */
