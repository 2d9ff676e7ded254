/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checker of break-before-make for a window of page-table entries.
 */
#ifndef _ARM64_MM_TESTS_CONTPTE_BBM_H
#define _ARM64_MM_TESTS_CONTPTE_BBM_H

#include <linux/minmax.h>

#include "contpte.h"

/* Blocks of the window: a block of another level has fewer entries. */
#define CONTPTE_BBM_BLOCKS	(CONTPTE_WINDOW / MIN(CONT_PTES, CONT_PMDS))

/* Translations of one page that a TLB may hold at the same time. */
#define CONTPTE_BBM_CACHED	6

enum contpte_bbm_rule {
	CONTPTE_BBM_OK,
	CONTPTE_BBM_IN_PLACE,
	CONTPTE_BBM_MIXED,
	CONTPTE_BBM_MISALIGNED,
	CONTPTE_BBM_CONFLICT,
	CONTPTE_BBM_PARTIAL,
	CONTPTE_BBM_STALE,
	CONTPTE_BBM_CHANGED,
	CONTPTE_BBM_TOO_MANY,
};

/**
 * struct contpte_bbm - the entries of a window, and all that a TLB may hold
 * @block: number of entries in a contiguous block
 * @pages: number of pages that an entry maps
 * @bbml3: the CPUs have BBM level 3
 * @rule: the first rule that was broken
 * @idx: the entry that broke it
 * @steps: the number of writes and invalidations until the rule was broken
 * @was: the entries at the start
 * @pte: the entries
 * @valid: of each block, the number of entries that are valid
 * @cont: of each block, the number of valid entries that are contiguous
 * @walked: for each block, the translation of its first page by a contiguous
 *   entry, if all pages of the block were checked; otherwise 0
 * @tlb: the translations of each page that some TLB may hold
 */
struct contpte_bbm {
	unsigned int block;
	unsigned int pages;
	bool bbml3;
	enum contpte_bbm_rule rule;
	int idx;
	unsigned int steps;
	pte_t was[CONTPTE_WINDOW];
	pte_t pte[CONTPTE_WINDOW];
	unsigned int valid[CONTPTE_BBM_BLOCKS];
	unsigned int cont[CONTPTE_BBM_BLOCKS];
	pteval_t walked[CONTPTE_BBM_BLOCKS];
	struct {
		unsigned int nr;
		pteval_t cached[CONTPTE_BBM_CACHED];
	} tlb[CONTPTE_WINDOW];
};

void contpte_bbm_start(struct contpte_bbm *bbm, const pte_t *pte, bool bbml3);
void contpte_bbm_start_level(struct contpte_bbm *bbm, const pte_t *pte,
			     unsigned int block, unsigned int pages);
void contpte_bbm_write(struct contpte_bbm *bbm, int idx, pte_t pte);
void contpte_bbm_flush(struct contpte_bbm *bbm, int idx);
void contpte_bbm_end(struct contpte_bbm *bbm, int start, int end);
const char *contpte_bbm_rule_name(enum contpte_bbm_rule rule);

#endif /* _ARM64_MM_TESTS_CONTPTE_BBM_H */
