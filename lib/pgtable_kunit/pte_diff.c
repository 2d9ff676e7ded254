// SPDX-License-Identifier: GPL-2.0
/*
 * The names of the properties in which two entries differ, for a message.
 */

#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "arch.h"
#include "pgtable_kunit.h"

/**
 * pgtable_kunit_pte_diff() - name the properties in which two entries differ
 * @diff: gets the text
 * @is: the actual entry
 * @want: the expected entry
 *
 * "+young" is a property that only @is has. "-dirty" is a property that only
 * @want has. Entries that are not present, and bits without a helper, have no
 * word.
 *
 * Return: the text, with a colon and a blank before it; "" if there is none.
 */
const char *pgtable_kunit_pte_diff(struct pgtable_kunit_pte_diff *diff, pte_t is,
				   pte_t want)
{
	bool both = pte_present(is) && pte_present(want);
	const struct {
		const char *name;
		bool is;
		bool want;
	} properties[] = {
		{ "present", pte_present(is), pte_present(want) },
		{ "young", both && pte_young(is), both && pte_young(want) },
		{ "dirty", both && pte_dirty(is), both && pte_dirty(want) },
		{ "writable", both && pte_write(is), both && pte_write(want) },
		{ "contiguous", pgtable_kunit_folded(is), pgtable_kunit_folded(want) },
	};
	unsigned int i, len = 0;

	diff->text[0] = '\0';
	for (i = 0; i < ARRAY_SIZE(properties); i++) {
		if (properties[i].is != properties[i].want)
			len += scnprintf(diff->text + len, sizeof(diff->text) - len,
					 "%s %c%s", len ? "" : ":",
					 properties[i].is ? '+' : '-',
					 properties[i].name);
	}
	if (both && pte_pfn(is) != pte_pfn(want))
		scnprintf(diff->text + len, sizeof(diff->text) - len,
			  "%s other page", len ? "" : ":");
	return diff->text;
}
