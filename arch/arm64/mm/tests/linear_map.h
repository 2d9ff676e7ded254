/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel page tables in a private mm, and a model of them: what the suites of
 * the linear map share.
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
	unsigned long block;	/* entries that map memory are this large, or 0 */
	unsigned long cont;	/* and contiguous ones form blocks this large */
};

/* A call of create_pgd_mapping(), relative to the start of the user space. */
struct lmap_range {
	const char *desc;
	unsigned long virt;
	unsigned long phys;
	unsigned long size;
	bool pages_only;
};

struct lmap_fixture {
	struct kunit *test;
	struct mm_struct *mm;
	struct pgtable_kunit_fixmap *fixmap;
	struct lmap_level level[LMAP_MAX_LEVELS];	/* from the top */
	unsigned int levels;
	unsigned int tables[LMAP_MAX_LEVELS];	/* that exist, for each level */
	const struct lmap_range *range;
	const struct lmap_range *before;	/* mapped by pages before, or NULL */
	pgprot_t prot;
	unsigned int failed;
};

/*
 * Ranges are relative to an address that a table of PMDs begins at, and the
 * next one too, so that a range may cross from one to the other.
 */
#define LMAP_VIRT		(2UL << ARM64_HW_PGTABLE_LEVEL_SHIFT(1))
#define LMAP_PHYS		LMAP_VIRT
#define LMAP_PUD_BLOCK	BIT(ARM64_HW_PGTABLE_LEVEL_SHIFT(1))
#define LMAP_PMD_TABLE	LMAP_PUD_BLOCK
#define LMAP_PTE_TABLE	PMD_SIZE

int lmap_init(struct kunit *test, const struct kunit_suite *suite);
void lmap_create(struct lmap_fixture *f, const struct lmap_range *range);
void lmap_check(struct lmap_fixture *f);
void lmap_check_fixmap(struct lmap_fixture *f);

#endif /* _ARM64_MM_TESTS_LINEAR_MAP_H */
