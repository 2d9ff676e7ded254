/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the linear map suites: kernel page tables in a private mm,
 * the tables that the kernel runs on, and models of both.
 */
#ifndef _ARM64_MM_TESTS_LINEAR_MAP_H
#define _ARM64_MM_TESTS_LINEAR_MAP_H

#include <linux/mm_types.h>
#include <linux/pgtable.h>

#include "pgtable_kunit.h"

#define LMAP_MAX_LEVELS	5

/* One level of the page tables that the kernel has at run time. */
struct lmap_level {
	unsigned int shift;	/* log2 of the size that one entry maps */
	unsigned int slot;	/* of the fixmap */
	unsigned long block;	/* size of entries that map memory, or 0 */
	unsigned long cont;	/* size of a block of contiguous entries */
};

/* A call of create_pgd_mapping(), relative to the start of user space. */
struct lmap_range {
	const char *desc;
	unsigned long virt;
	unsigned long phys;
	unsigned long size;
	bool pages_only;
};

/*
 * The number of changes of the fixmap that are kept. Later changes are only
 * counted.
 */
#define LMAP_FIXMAPS	2048

/**
 * struct lmap_fixmap - a record of the fixmap slots of page tables
 * @nr: number of changes
 * @change: the first LMAP_FIXMAPS changes; @phys is 0 for a clear
 */
struct lmap_fixmap {
	unsigned int nr;
	struct {
		unsigned int slot;
		phys_addr_t phys;
	} change[LMAP_FIXMAPS];
};

struct lmap_fixmap *lmap_fixmap_record(struct kunit *test);
void lmap_free_table(void *table, unsigned int shift);

struct lmap_fixture {
	struct kunit *test;
	struct mm_struct *mm;
	struct lmap_fixmap *fixmap;
	struct lmap_level level[LMAP_MAX_LEVELS];	/* from the top */
	unsigned int levels;
	unsigned int tables[LMAP_MAX_LEVELS];	/* existing tables, by level */
	const struct lmap_range *range;
	const struct lmap_range *before;	/* mapped by pages before, or NULL */
	pgprot_t prot;
	unsigned int failed;
};

/*
 * Ranges are relative to an address at which a table of PMDs begins. A range
 * may cross into the next table of PMDs.
 */
#define LMAP_VIRT		(2UL << ARM64_HW_PGTABLE_LEVEL_SHIFT(1))
#define LMAP_PHYS		LMAP_VIRT
#define LMAP_PUD_BLOCK	BIT(ARM64_HW_PGTABLE_LEVEL_SHIFT(1))
#define LMAP_PMD_TABLE	LMAP_PUD_BLOCK
#define LMAP_PTE_TABLE	PMD_SIZE

int lmap_init(struct kunit *test);
void lmap_create(struct lmap_fixture *f, const struct lmap_range *range);
void lmap_check(struct lmap_fixture *f);
void lmap_check_fixmap(struct lmap_fixture *f);

/**
 * struct lmap_leaf - the entry that maps an address
 * @val: the entry, or 0
 * @addr: the first address that it translates
 * @size: how many bytes it translates; for an invalid entry, how many it would
 *	translate
 * @cont: the size of a contiguous block of such entries, or 0
 */
struct lmap_leaf {
	u64 val;
	unsigned long addr;
	unsigned long size;
	unsigned long cont;
};

struct lmap_leaf lmap_leaf(struct mm_struct *mm, unsigned long addr);
phys_addr_t lmap_leaf_phys(const struct lmap_leaf *leaf);
u64 lmap_leaf_attributes(const struct lmap_leaf *leaf);
bool lmap_by_pages(void);

/*
 * Addresses inside a range at which entries must end, too.
 */
#define LMAP_CUTS	4

/**
 * struct lmap_area - a part of the linear map that only one test uses
 * @test: the test
 * @phys: physical address of its memory; the memory does not have to exist
 * @virt: its address
 * @size: its size
 * @cut: no entry extends over one of these addresses
 * @nr_cuts: number of these addresses
 * @invalid: the start of a range that cannot be accessed
 * @invalid_end: the end of this range
 * @valid: the start of a part of the invalid range that can be accessed again
 * @valid_end: the end of this part
 * @leaves: entries that the last check has visited
 */
struct lmap_area {
	struct kunit *test;
	phys_addr_t phys;
	unsigned long virt;
	unsigned long size;
	unsigned long cut[LMAP_CUTS];
	unsigned int nr_cuts;
	unsigned long invalid, invalid_end;
	unsigned long valid, valid_end;
	unsigned long leaves;
};

unsigned long lmap_area_large(void);
void lmap_area_init(struct lmap_area *area, struct kunit *test,
		    unsigned long size);
int lmap_area_plug(struct lmap_area *area);
void lmap_area_unplug(struct lmap_area *area);
bool lmap_area_check(struct lmap_area *area, const char *when);
bool lmap_area_check_empty(struct lmap_area *area, const char *when);

void lmap_alloc_watch(struct kunit *test);
unsigned int lmap_alloc_fail(unsigned int nth);

#endif /* _ARM64_MM_TESTS_LINEAR_MAP_H */
