// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 37: If a page is in swap, UFFDIO_MOVE also moves the protection of the page.
 *
 * Write to eight pages, protect them as an incremental copy does, swap four of
 * them out, and move all of them to a place that is also watched for writes.
 * PAGEMAP_SCAN must report the same for all pages. Linux 7.3 reports that the
 * pages from memory were written to. Prints OK and exits with 0, or prints BUG
 * and exits with 1. Exits with 4 if it cannot tell. Needs root and swap. If
 * there is no swap, the program tries /dev/ram0.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 8
#define SWAPPED 4

static int in_swap(const char *at, long size)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	unsigned long long entry = 0;

	if (pread(fd, &entry, sizeof(entry), (uintptr_t)at / size * sizeof(entry)) < 0)
		entry = 0;
	close(fd);
	return entry >> 62 & 1;
}

/* Whether PAGEMAP_SCAN reports that a page was written to. Returns -1 if it cannot scan. */
static int written(const char *at, long size)
{
	struct page_region region;
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.start = (uintptr_t)at,
		.end = (uintptr_t)at + size,
		.vec = (uintptr_t)&region,
		.vec_len = 1,
		.category_mask = PAGE_IS_WRITTEN,
		.return_mask = PAGE_IS_WRITTEN,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY), found;

	found = ioctl(fd, PAGEMAP_SCAN, &arguments);
	close(fd);
	return found;
}

int main(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED |
			    UFFD_FEATURE_MOVE,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register from = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_register to = {
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int page, of_memory = 0, of_swap = 0;
	long size = sysconf(_SC_PAGESIZE);
	char *old, *new;

	old = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	new = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (old == MAP_FAILED || new == MAP_FAILED)
		return 4;
	madvise(old, PAGES * size, MADV_NOHUGEPAGE);
	memset(old, 1, PAGES * size);
	from.range = (struct uffdio_range){ (uintptr_t)old, PAGES * size };
	to.range = (struct uffdio_range){ (uintptr_t)new, PAGES * size };
	on.range = from.range;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &from) ||
	    ioctl(uffd, UFFDIO_REGISTER, &to) || ioctl(uffd, UFFDIO_WRITEPROTECT, &on)) {
		printf("cannot tell: needs root, and UFFDIO_MOVE\n");
		return 4;
	}
	swapon("/dev/ram0", 0);
	madvise(old, SWAPPED * size, MADV_PAGEOUT);
	for (page = 0; page < PAGES; page++) {
		int swapped = page < SWAPPED;

		if (in_swap(old + page * size, size) != swapped) {
			printf("cannot tell: needs swap\n");
			return 4;
		}
	}
	for (page = 0; page < PAGES; page++) {
		struct uffdio_move move = {
			.dst = (uintptr_t)new + page * size,
			.src = (uintptr_t)old + page * size,
			.len = size,
		};

		if (ioctl(uffd, UFFDIO_MOVE, &move)) {
			perror("cannot tell: UFFDIO_MOVE");
			return 4;
		}
		if (page < SWAPPED)
			of_swap += written(new + page * size, size) == 1;
		else
			of_memory += written(new + page * size, size) == 1;
	}
	printf("%s: PAGEMAP_SCAN reports %d of %d pages from memory, and %d of %d from swap\n",
	       of_memory == of_swap ? "OK" : "BUG", of_memory, PAGES - SWAPPED, of_swap, SWAPPED);
	return of_memory != of_swap;
}
