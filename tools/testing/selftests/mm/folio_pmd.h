/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for huge pages. One PMD maps a whole huge page. */
#ifndef FOLIO_PMD_H
#define FOLIO_PMD_H

#include "folio_util.h"

/* include/uapi/asm-generic/mman-common.h; older headers lack this constant. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* If pmd_pages() is 0, a test that needs a huge page is skipped for this reason. */
#define NO_HUGE_PAGES "no huge pages that fit into this machine"

/**
 * pmd_pages() - the number of pages in a huge page
 *
 * Return: the number of pages, or 0 if there are no huge pages, or if they are
 * larger than 64 MiB. With base pages of 64K, huge pages have 512 MiB, which is
 * too much for a small machine.
 */
static inline unsigned int pmd_pages(void)
{
	size_t size = read_pmd_pagesize();

	return size > 64UL << 20 ? 0 : size / psize();
}

/**
 * huge_page_map() - map one anonymous huge page, with its pattern
 * @m: the function fills it in; memory_free() frees it, also after an error
 *
 * Return: NULL, or the reason for a failure
 */
static inline const char *huge_page_map(struct memory *m)
{
	unsigned int pages = pmd_pages();
	const char *why;

	m->fd = -1;
	if (!pages)
		return NO_HUGE_PAGES;
	why = folio_settings(order_of(pages));
	return why ?: memory_map(m, ANON, order_of(pages), 1);
}

#endif /* FOLIO_PMD_H */
