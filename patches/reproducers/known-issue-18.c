// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 18: PAGEMAP_SCAN without an output buffer protects pages that do not match.
 *
 * Write to two of eight pages. Then let a scan protect only pages that were
 * written to and are in swap. No page is in swap, so both pages must still be
 * reported as written to after the scan. Prints OK and exits with 0, or prints
 * BUG and exits with 1. Exits with 4 if it cannot tell. The build needs headers
 * of Linux 6.7 or newer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 8

static int pagemap;
static char *at;

/* Returns how many pages match, -1 without an output buffer, -2 if the scan fails. */
static int scan(int protect, int report, unsigned long categories)
{
	size_t size = sysconf(_SC_PAGESIZE);
	struct page_region regions[PAGES];
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.flags = (protect ? PM_SCAN_WP_MATCHING : 0) | PM_SCAN_CHECK_WPASYNC,
		.start = (unsigned long)at,
		.end = (unsigned long)at + PAGES * size,
		.vec = report ? (unsigned long)regions : 0,
		.vec_len = report ? PAGES : 0,
		.category_mask = categories,
		.return_mask = PAGE_IS_WRITTEN,
	};
	int count = ioctl(pagemap, PAGEMAP_SCAN, &arguments), pages = 0;

	if (count < 0)
		return -2;
	for (int i = 0; i < count && report; i++)
		pages += (regions[i].end - regions[i].start) / size;
	return report ? pages : -1;
}

int main(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED,
	};
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_WP };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	int before, with, after_with, after;

	pagemap = open("/proc/self/pagemap", O_RDONLY);
	at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (uffd < 0 || pagemap < 0 || at == MAP_FAILED || ioctl(uffd, UFFDIO_API, &api)) {
		printf("cannot tell: needs WP_ASYNC of userfaultfd\n");
		return 4;
	}
	area.range.start = (unsigned long)at;
	area.range.len = PAGES * size;
	if (ioctl(uffd, UFFDIO_REGISTER, &area) || scan(1, 1, PAGE_IS_WRITTEN) < 0) {
		printf("cannot tell: no PAGEMAP_SCAN\n");
		return 4;
	}
	at[0] = 1;
	at[3 * size] = 1;
	before = scan(0, 1, PAGE_IS_WRITTEN);
	with = scan(1, 1, PAGE_IS_WRITTEN | PAGE_IS_SWAPPED);
	after_with = scan(0, 1, PAGE_IS_WRITTEN);
	if (before != 2 || with || after_with != 2) {
		printf("cannot tell: written to: %d before a scan, %d after; %d match\n",
		       before, after_with, with);
		return 4;
	}
	if (scan(1, 0, PAGE_IS_WRITTEN | PAGE_IS_SWAPPED) == -2) {
		printf("cannot tell: the scan without a buffer fails\n");
		return 4;
	}
	after = scan(0, 1, PAGE_IS_WRITTEN);
	if (after != 2)
		printf("2 pages were written to and none matched, but %d are reported\n", after);
	printf("%s\n", after == 2 ? "OK" : "BUG");
	return after != 2;
}
