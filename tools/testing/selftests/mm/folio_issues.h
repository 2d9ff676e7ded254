/* SPDX-License-Identifier: GPL-2.0 */
/* Lists of known issues. */
#ifndef FOLIO_ISSUES_H
#define FOLIO_ISSUES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/**
 * issue_listed() - whether a list contains a number
 * @list: numbers with commas between them, such as "1,3,5"
 * @number: the number
 *
 * Return: whether @number is one of them
 */
static inline bool issue_listed(const char *list, int number)
{
	while (*list) {
		if (atoi(list) == number)
			return true;
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return false;
}

#endif /* FOLIO_ISSUES_H */
