/* SPDX-License-Identifier: GPL-2.0 */
/* Let khugepaged scan the memory of a test. */
#ifndef FOLIO_KHUGEPAGED_H
#define FOLIO_KHUGEPAGED_H

#include "folio_util.h"

/* The number of times that khugepaged has scanned all memory. */
static inline unsigned long khugepaged_scans(void)
{
	return read_num(FOLIO_THP "/khugepaged/full_scans");
}

/**
 * khugepaged_run() - let khugepaged make folios, and wait until it has scanned the memory
 * @m: the memory; it gets MADV_HUGEPAGE
 * @orders: the orders of the new folios, one bit for each order
 * @limits: the max_ptes_* settings of khugepaged
 *
 * The function waits for four scans, but at most ten seconds. khugepaged needs recent accesses to
 * the memory, so the function reads the first byte again and again.
 */
static inline void khugepaged_run(const struct memory *m, unsigned long orders,
				  struct khugepaged_settings limits)
{
	unsigned long until = khugepaged_scans() + 4;
	struct thp_settings settings;

	thp_read_settings(&settings);
	for (int i = 0; i < NR_ORDERS; i++)
		settings.hugepages[i].enabled = orders & (1UL << i) ? THP_MADVISE : THP_NEVER;
	limits.defrag = true;
	limits.alloc_sleep_millisecs = 10;
	limits.scan_sleep_millisecs = 10;
	limits.pages_to_scan = 8 * m->pages;
	settings.khugepaged = limits;
	thp_write_settings(&settings);
	madvise(m->at, bytes(m->pages), MADV_HUGEPAGE);
	for (int i = 0; i < 1000 && khugepaged_scans() < until; i++) {
		read_byte(m->at);
		usleep(10000);
	}
	folio_settings(0);
}

#endif /* FOLIO_KHUGEPAGED_H */
