/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The library of the page-table suites: a test uses it to put page tables into
 * a known state, and to define the expected state.
 *
 * All objects of the library belong to the test case. When the case ends, the
 * library checks and frees them. If an object is not in its initial state
 * again, the case fails.
 */
#ifndef _PGTABLE_KUNIT_H
#define _PGTABLE_KUNIT_H

#include <kunit/test.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pgtable.h>

#include "arch.h"
#include "known_issue.h"

/* For KUNIT_CASE_PARAM_ATTR(): a case that may take seconds. */
#define PGTABLE_KUNIT_SLOW \
	((struct kunit_attributes){ .speed = KUNIT_SPEED_SLOW })

/**
 * PGTABLE_KUNIT_DID() - print how often a case did something; fail if never
 * @test: the test
 * @count: the number
 * @what: the things that were counted, in the plural: "folds", "flushes"
 *
 * Use it for each loop, race, flush, swap, migration or fold that a verdict
 * depends on.
 */
#define PGTABLE_KUNIT_DID(test, count, what) do {			\
	struct kunit *__test = (test);					\
	const unsigned long __did = (count);				\
	const char *__what = (what);					\
									\
	kunit_info(__test, "did %lu %s\n", __did, __what);		\
	KUNIT_EXPECT_GT_MSG(__test, __did, 0UL,				\
			    "no %s: this case proves nothing", __what);	\
} while (0)

/* No race runs longer than this. */
#define PGTABLE_KUNIT_RACE_LIMIT	(20 * HZ)

/**
 * pgtable_kunit_race_on() - whether a race is not over yet
 * @start: jiffies when it began
 * @length: how many jiffies it runs at least
 * @met: the threads have met often enough; otherwise the race continues
 */
static inline bool pgtable_kunit_race_on(unsigned long start,
					 unsigned long length, bool met)
{
	unsigned long passed = jiffies - start;

	return passed < length || (!met && passed < PGTABLE_KUNIT_RACE_LIMIT);
}

/* A loop over combinations ends after this many failures. */
#define PGTABLE_KUNIT_ENOUGH	3

/**
 * struct pgtable_kunit_table - a synthetic table of page-table entries
 * @test: the test that owns it
 * @mm: a private mm that belongs to the table; no CPU runs on it
 * @addr: user address that entry 0 translates; aligned to PMD_SIZE
 * @pte: entry 0. Entries -PTRS_PER_PTE to 2 * PTRS_PER_PTE - 1 can be
 *	 accessed: the pages before and after the table are guards
 * @want: the entries that the test expects, with the same indexes
 * @guard_used: the test has written its own entries to the guards
 *
 * The table is a separate page with real entries. It is not part of the page
 * tables of @mm, so no hardware walks it.
 */
struct pgtable_kunit_table {
	struct kunit *test;
	struct mm_struct *mm;
	unsigned long addr;
	pte_t *pte;
	pte_t *want;
	bool guard_used;
	/* private: */
	void *pages;
	void *want_pages;
	struct list_head list;
};

/**
 * struct pgtable_kunit_pte_diff - a text about the difference of two entries
 * @text: of pgtable_kunit_pte_diff()
 */
struct pgtable_kunit_pte_diff {
	char text[64];
};

const char *pgtable_kunit_pte_diff(struct pgtable_kunit_pte_diff *diff, pte_t is,
				   pte_t want);

struct pgtable_kunit_table *pgtable_kunit_table_alloc(struct kunit *test);
void pgtable_kunit_table_reset(struct pgtable_kunit_table *table);
void pgtable_kunit_tables_reset(void);
void pgtable_kunit_table_set(struct pgtable_kunit_table *table, int idx,
			     pte_t pte);
bool pgtable_kunit_table_same(struct pgtable_kunit_table *table);
__printf(2, 3)
bool pgtable_kunit_table_check(struct pgtable_kunit_table *table,
			       const char *fmt, ...);

/**
 * pgtable_kunit_table_addr() - the user address that an entry translates
 * @table: the table
 * @idx: index of the entry
 */
static inline unsigned long
pgtable_kunit_table_addr(struct pgtable_kunit_table *table, int idx)
{
	return table->addr + idx * PAGE_SIZE;
}

/**
 * pgtable_kunit_uncount() - correct CONFIG_PAGE_TABLE_CHECK after pte_clear()
 * @mm: the mm
 * @addr: address of the entry
 * @ptep: the entry, cleared with pte_clear()
 * @old: the entry before pte_clear()
 *
 * pte_clear() is the only function that clears an entry without a report to
 * CONFIG_PAGE_TABLE_CHECK.
 */
static inline void pgtable_kunit_uncount(struct mm_struct *mm,
					 unsigned long addr, pte_t *ptep,
					 pte_t old)
{
	if (IS_ENABLED(CONFIG_PAGE_TABLE_CHECK) &&
	    pte_none(pgtable_kunit_raw_get(ptep))) {
		WRITE_ONCE(*ptep, old);
		pgtable_kunit_raw_clear(mm, addr, ptep);
	}
}

struct folio *pgtable_kunit_folio_alloc(struct kunit *test, unsigned int order);
void pgtable_kunit_folio_alloc_pair(struct kunit *test, unsigned int order,
				    struct folio *pair[2]);

void pgtable_kunit_thp_set(struct kunit *test, unsigned long orders,
			   bool zero_page);

void pgtable_kunit_swap_on(struct kunit *test);

/*
 * The number of flushes that are kept with their range. Later flushes are only
 * counted.
 */
#define PGTABLE_KUNIT_FLUSHES	1024

/**
 * struct pgtable_kunit_tlb - a record of TLB invalidations of one mm
 * @nr: number of invalidations
 * @range: the ranges of the first PGTABLE_KUNIT_FLUSHES invalidations
 * @look: called at each invalidation, possibly with the table locked; or NULL
 * @look_data: the argument of @look
 *
 * An architecture reports each invalidation of user addresses to secondary
 * TLBs. The recorder registers as a secondary TLB.
 */
struct pgtable_kunit_tlb {
	unsigned int nr;
	struct {
		unsigned long start;
		unsigned long end;
	} range[PGTABLE_KUNIT_FLUSHES];
	void (*look)(void *data);
	void *look_data;
	/* private: */
	struct mmu_notifier notifier;
};

struct pgtable_kunit_tlb *pgtable_kunit_tlb_record(struct kunit *test,
						   struct mm_struct *mm);
void pgtable_kunit_tlb_stop(struct kunit *test, struct pgtable_kunit_tlb *tlb);

void pgtable_kunit_compaction_off(struct kunit *test);

long pgtable_kunit_do_syscall(unsigned int nr, const unsigned long *arg);

/* pgtable_kunit_syscall(munmap, addr, size): missing arguments are 0. */
#define pgtable_kunit_syscall(name, ...) ({				\
	const unsigned long __arg[6] = { __VA_ARGS__ };			\
									\
	pgtable_kunit_do_syscall(__NR_##name, __arg);			\
})

/*
 * Each suite has .suite_init = pgtable_kunit_suite_init, and an .init that calls
 * pgtable_kunit_init() first. If a suite counts its combinations in
 * pgtable_kunit_tried, it also has .exit = pgtable_kunit_exit.
 */
extern unsigned int pgtable_kunit_tried;

int pgtable_kunit_suite_init(struct kunit_suite *suite);
int pgtable_kunit_init(struct kunit *test);
int pgtable_kunit_table_init(struct kunit *test);
void pgtable_kunit_exit(struct kunit *test);
int pgtable_kunit_case_init(struct kunit *test, const struct kunit_suite *suite);

#endif /* _PGTABLE_KUNIT_H */
