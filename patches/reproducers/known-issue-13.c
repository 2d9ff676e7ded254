// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 13: PAGEMAP_SCAN misses hugetlb pages that were written to.
 *
 * Write to four hugetlb pages of the default size, and scan them with a limit of one
 * and a half pages. Each scan begins where the last scan ended. Together the scans must
 * find each page once.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell.
 * Needs root, or four free huge pages: echo 4 > /proc/sys/vm/nr_hugepages
 * The build needs headers of Linux 6.7 or newer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 4

static unsigned long huge_page_size(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long size = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Hugepagesize: %lu kB", &size);
	if (f)
		fclose(f);
	return size << 10;
}

int main(void)
{
	unsigned long size = huge_page_size(), begin, end, from;
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_WP };
	int found[PAGES] = {}, scans = 0, missed = 0;
	int pool = open("/proc/sys/vm/nr_hugepages", O_WRONLY);
	char *at = MAP_FAILED;

	if (pool >= 0 && write(pool, "4", 1) != 1)
		printf("cannot set vm.nr_hugepages\n");
	if (size)
		at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (at == MAP_FAILED || uffd < 0 || pagemap < 0 || ioctl(uffd, UFFDIO_API, &api)) {
		printf("cannot tell: needs %d huge pages, and WP_ASYNC of userfaultfd\n", PAGES);
		return 4;
	}
	begin = (unsigned long)at;
	end = begin + PAGES * size;
	area.range.start = begin;
	area.range.len = PAGES * size;
	if (ioctl(uffd, UFFDIO_REGISTER, &area)) {
		printf("cannot tell: userfaultfd does not accept this memory\n");
		return 4;
	}
	for (int page = 0; page < PAGES; page++)
		at[page * size] = 1;

	for (from = begin; from < end && scans < 2 * PAGES; scans++) {
		struct page_region regions[PAGES];
		struct pm_scan_arg scan = {
			.size = sizeof(scan),
			.flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
			.start = from,
			.end = end,
			.vec = (unsigned long)regions,
			.vec_len = PAGES,
			.max_pages = size / sysconf(_SC_PAGESIZE) * 3 / 2,
			.category_mask = PAGE_IS_WRITTEN,
			.return_mask = PAGE_IS_WRITTEN,
		};
		int count = ioctl(pagemap, PAGEMAP_SCAN, &scan);

		if (count < 0) {
			perror("cannot tell: PAGEMAP_SCAN");
			return 4;
		}
		for (int i = 0; i < count; i++)
			for (from = regions[i].start; from < regions[i].end; from += size)
				found[(from - begin) / size]++;
		from = scan.walk_end;
	}
	for (int page = 0; page < PAGES; page++) {
		if (found[page] != 1) {
			printf("page %d was written to, and found %d times\n", page, found[page]);
			missed++;
		}
	}
	printf("%s\n", missed ? "BUG" : "OK");
	return !!missed;
}
