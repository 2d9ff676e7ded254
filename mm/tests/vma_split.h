/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The calls that the suite on large folios across VMAs makes.
 */
#ifndef _MM_TESTS_VMA_SPLIT_H
#define _MM_TESTS_VMA_SPLIT_H

#include "user_mm.h"

/**
 * struct split_op - a call on mapped pages, and its effect on the model
 * @desc: its name
 * @run: makes it on @nr pages from @first on, and changes the model; returns an
 *	 error
 * @leaves: afterwards no page and no permission is missing
 * @effect: for advice that keeps the contents: whether the advice has reached a
 *	page
 */
struct split_op {
	const char *desc;
	long (*run)(struct user_mm *u, unsigned int first, unsigned int nr);
	bool leaves;
	bool (*effect)(struct folio *folio, pte_t pte);
};

/* The tables of first calls and of second calls. */
#define SPLIT_FIRST	12
#define SPLIT_SECOND	13
extern const struct split_op vma_split_first[SPLIT_FIRST];
extern const struct split_op vma_split_second[SPLIT_SECOND];

#endif /* _MM_TESTS_VMA_SPLIT_H */
