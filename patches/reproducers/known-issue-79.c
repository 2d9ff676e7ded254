// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 79: a PAGEMAP_SCAN that fails with EPERM forgets that pages were written to.
 *
 * Write to two pages, and register only the first page for asynchronous write protection. A scan
 * of both pages must stop at the second page. The first page must be reported by this scan or by
 * the next scan.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs no privileges if the process may use userfaultfd. The build needs headers of Linux 6.7 or
 * newer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static size_t size;
static int pagemap;
static char *at;

/* Returns the number of ranges of written pages, or -errno. */
static int scan_pages(int protect, int pages)
{
	struct page_region regions[2];
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.flags = (protect ? PM_SCAN_WP_MATCHING : 0) | PM_SCAN_CHECK_WPASYNC,
		.start = (unsigned long)at,
		.end = (unsigned long)at + pages * size,
		.vec = (unsigned long)regions,
		.vec_len = 2,
		.category_mask = PAGE_IS_WRITTEN,
		.return_mask = PAGE_IS_WRITTEN,
	};
	int count = ioctl(pagemap, PAGEMAP_SCAN, &arguments);

	if (count < 0)
		count = -errno;
	printf("%s scan of %d page(s): %d %s, walk_end is page %ld\n",
	       protect ? "protecting" : "reading", pages, count,
	       count < 0 ? strerror(-count) : "range(s)",
	       (long)(arguments.walk_end - arguments.start) / (long)size);
	return count;
}

int main(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED,
	};
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_WP };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	int before, both, after;

	size = sysconf(_SC_PAGESIZE);
	pagemap = open("/proc/self/pagemap", O_RDONLY);
	at = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (uffd < 0 || pagemap < 0 || at == MAP_FAILED || ioctl(uffd, UFFDIO_API, &api)) {
		printf("cannot tell: needs WP_ASYNC of userfaultfd\n");
		return 4;
	}
	area.range.start = (unsigned long)at;
	area.range.len = size;
	at[0] = 1;
	at[size] = 1;
	if (ioctl(uffd, UFFDIO_REGISTER, &area)) {
		printf("cannot tell: no registration\n");
		return 4;
	}
	before = scan_pages(0, 1);
	both = scan_pages(1, 2);
	after = scan_pages(0, 1);
	if (before != 1 || (both != 1 && both != -EPERM) || after < 0) {
		printf("cannot tell: the scans return %d, %d and %d\n", before, both, after);
		return 4;
	}
	if (both != 1 && !after) {
		printf("BUG: no scan reports the page that was written to\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
