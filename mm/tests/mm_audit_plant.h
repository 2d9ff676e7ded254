/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mistakes that the tests of the auditor make in a real address space.
 */
#ifndef _MM_AUDIT_PLANT_H
#define _MM_AUDIT_PLANT_H

#include <linux/swap.h>

#include "mm_audit.h"
#include "user_mm.h"

/* The memory that a mistake needs. */
enum audit_needs {
	/* Blocks of anonymous memory, in one large folio each if possible. */
	AUDIT_ANON,
	/* The same, but only with large folios. */
	AUDIT_LARGE,
	/* The same, and the blocks are folded. */
	AUDIT_FOLDED,
	/* The same as AUDIT_ANON, and a child has the same memory. */
	AUDIT_FORKED,
	/* Shared memory, one page. */
	AUDIT_SHMEM,
	/* The same, in the page cache and not mapped. */
	AUDIT_CACHED,
	/* Small folios; the first is in the swap cache and not mapped. */
	AUDIT_SWAPPED,
	/* The same, and a child has the same memory. */
	AUDIT_SWAPPED_FORKED,
};

/**
 * struct audit_place - where a mistake is made
 * @u: the address space
 * @vma: the VMA of the memory
 * @folio: a folio of it
 * @addr: where its first page is mapped
 */
struct audit_place {
	struct user_mm *u;
	struct vm_area_struct *vma;
	struct folio *folio;
	unsigned long addr;
};

/**
 * struct audit_plant - a mistake
 * @desc: its name
 * @rule: the rule that notices it
 * @also: another rule that notices it, or the same rule
 * @needs: the memory that it needs
 * @quiet: whether only a quiet audit notices it
 * @skip: why this kernel cannot have the mistake; NULL or an empty text if it
 *	can
 * @make: make the mistake (@on), or correct it
 * @got: the number in the report of the first violation; not checked if it is
 *	less than 0
 * @want: the expected number in this report
 */
struct audit_plant {
	const char *desc;
	enum mm_audit_rule rule;
	enum mm_audit_rule also;
	enum audit_needs needs;
	bool quiet;
	const char *skip;
	void (*make)(struct audit_place *p, bool on);
	long (*got)(struct audit_place *p);
	long (*want)(struct audit_place *p);
};

extern const struct audit_plant audit_plants[];
extern const unsigned int audit_nr_plants;

#endif /* _MM_AUDIT_PLANT_H */
