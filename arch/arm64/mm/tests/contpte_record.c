// SPDX-License-Identifier: GPL-2.0
/*
 * Recorder of accesses to page-table entries.
 */

#include "contpte_record.h"
#include "pgtable_kunit.h"

/* Entries in the table and in the guards on either side of it. */
#define FIRST		(-(int)PTRS_PER_PTE)
#define END		(2 * (int)PTRS_PER_PTE)

/* KUnit runs one case at a time. */
static struct pgtable_kunit_record *recording;

/**
 * pgtable_kunit_record_alloc() - make a recorder
 * @test: the test that owns it
 * @table: the table with the recorded entries
 */
struct pgtable_kunit_record *
pgtable_kunit_record_alloc(struct kunit *test,
			   struct pgtable_kunit_table *table)
{
	struct pgtable_kunit_record *rec;

	rec = kunit_kzalloc(test, sizeof(*rec), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rec);
	rec->step = kunit_kcalloc(test, PGTABLE_KUNIT_STEPS, sizeof(*rec->step),
				  GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rec->step);
	rec->table = table;
	return rec;
}

/**
 * pgtable_kunit_record_start() - begin a new record
 * @rec: the recorder; only one can be active
 *
 * Between start and stop the test may only call the functions to be recorded.
 */
void pgtable_kunit_record_start(struct pgtable_kunit_record *rec)
{
	rec->nr = 0;
	rec->reads = 0;
	rec->writes = 0;
	rec->flushes = 0;
	recording = rec;
}

/**
 * pgtable_kunit_record_stop() - end a record
 */
void pgtable_kunit_record_stop(void)
{
	recording = NULL;
}

static bool entry_of(const void *addr, int *idx)
{
	pte_t *pte;

	if (!recording)
		return false;
	pte = recording->table->pte;
	if (addr < (void *)(pte + FIRST) || addr >= (void *)(pte + END))
		return false;
	*idx = (const pte_t *)addr - pte;
	return true;
}

static void record_step(const struct pgtable_kunit_step *step)
{
	struct pgtable_kunit_record *rec = recording;

	if (rec->nr < PGTABLE_KUNIT_STEPS)
		rec->step[rec->nr] = *step;
	rec->nr++;
	if (rec->after)
		rec->after(rec, step);
}

/**
 * pgtable_kunit_record_begin() - the code will access an address now
 * @addr: the address
 */
void pgtable_kunit_record_begin(const void *addr)
{
	int idx;

	if (!entry_of(addr, &idx))
		return;
	if (recording->before)
		recording->before(recording, idx);
	recording->old = READ_ONCE(*(const u64 *)addr);
}

/**
 * pgtable_kunit_record_end() - the code has accessed an address
 * @addr: the address
 * @wrote: the access was a write
 */
void pgtable_kunit_record_end(const void *addr, bool wrote)
{
	struct pgtable_kunit_step step = {};

	if (!entry_of(addr, &step.idx))
		return;
	step.kind = wrote ? PGTABLE_KUNIT_WRITE : PGTABLE_KUNIT_READ;
	step.old = recording->old;
	step.new = READ_ONCE(*(const u64 *)addr);
	if (wrote)
		recording->writes++;
	else
		recording->reads++;
	record_step(&step);
}

/**
 * pgtable_kunit_record_flush() - the code invalidates translations
 * @mm: the mm of these translations
 * @start: first address
 * @end: the address after the last
 * @stride: the distance between the invalidated addresses
 * @level: the level hint for the entries
 * @flags: PGTABLE_KUNIT_LAST_LEVEL and others
 *
 * Nothing is invalidated: no hardware walks the table.
 */
void pgtable_kunit_record_flush(struct mm_struct *mm, unsigned long start,
				unsigned long end, unsigned long stride,
				int level, unsigned int flags)
{
	const struct pgtable_kunit_step step = {
		.kind = PGTABLE_KUNIT_FLUSH, .idx = INT_MIN,
		.mm = mm, .start = start, .end = end, .stride = stride,
		.level = level, .flags = flags,
	};

	if (!recording)
		return;
	if (recording->before)
		recording->before(recording, INT_MIN);
	recording->flushes++;
	record_step(&step);
}

/**
 * pgtable_kunit_record_bbml3() - the code checks the CPU's BBM level
 */
bool pgtable_kunit_record_bbml3(void)
{
	return recording && recording->bbml3;
}
