// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 76: after a complete PAGEMAP_SCAN of more than 512 ranges, walk_end is too low.
 *
 * Scan memory in which every second page is present. The scan finds all ranges, so walk_end must
 * be the end of the memory.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANGES 600

int main(void)
{
	long size = sysconf(_SC_PAGESIZE), length = 2 * RANGES * size;
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct page_region *regions = calloc(RANGES, sizeof(*regions));
	int fd = open("/proc/self/pagemap", O_RDONLY);
	struct pm_scan_arg scan = {
		.size = sizeof(scan),
		.start = (uintptr_t)at,
		.end = (uintptr_t)at + length,
		.vec = (uintptr_t)regions,
		.vec_len = RANGES,
		.category_mask = PAGE_IS_PRESENT,
		.return_mask = PAGE_IS_PRESENT,
	};
	int found;

	if (at == MAP_FAILED || !regions || fd < 0)
		return 4;
	/* Fails if the kernel has no huge pages, which is right too. */
	madvise(at, length, MADV_NOHUGEPAGE);
	for (long i = 0; i < RANGES; i++)
		at[2 * i * size] = 1;
	found = ioctl(fd, PAGEMAP_SCAN, &scan);
	if (found != RANGES) {
		printf("cannot tell: the scan returns %d\n", found);
		return 4;
	}
	printf("%d ranges, walk_end is page %lld of %d\n", found,
	       (long long)(scan.walk_end - scan.start) / size, 2 * RANGES);
	if (scan.walk_end != scan.end) {
		printf("BUG: the scan is complete, but walk_end is before the end\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
