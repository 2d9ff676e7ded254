// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 104: a failing mmap() of hugetlb pages must not change nr_hugetlb in /proc/vmstat.
 *
 * All pages of the pool are in use, and two more may be allocated. mmap() of three pages fails.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root to change the pool. After BUG the count stays wrong until the next boot.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define USED 4
#define BEYOND 2
#define POOL "/proc/sys/vm/nr_hugepages"
#define OVERCOMMIT "/proc/sys/vm/nr_overcommit_hugepages"

static long number(const char *path, const char *name)
{
	char line[256];
	long value = -1;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static void set(const char *path, long value)
{
	FILE *file = fopen(path, "w");

	if (file) {
		fprintf(file, "%ld", value);
		fclose(file);
	}
}

static void *map_pages(long size, int pages, int flags)
{
	return mmap(NULL, pages * size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);
}

int main(void)
{
	long size = number("/proc/meminfo", "Hugepagesize:") << 10, before, after;
	void *used, *more;

	if (size <= 0 || number("/proc/vmstat", "nr_hugetlb ") < 0 ||
	    number("/proc/meminfo", "HugePages_Total:") || number(OVERCOMMIT, "")) {
		printf("cannot tell: no counter nr_hugetlb, or hugetlb pages are in use\n");
		return 4;
	}
	set(POOL, USED);
	used = map_pages(size, USED, MAP_POPULATE);
	set(OVERCOMMIT, BEYOND);
	/* The kernel adds the counts of each CPU. */
	set("/proc/sys/vm/stat_refresh", 1);
	before = number("/proc/vmstat", "nr_hugetlb ");
	more = map_pages(size, BEYOND + 1, 0);
	set("/proc/sys/vm/stat_refresh", 1);
	after = number("/proc/vmstat", "nr_hugetlb ");
	set(OVERCOMMIT, 0);
	if (used != MAP_FAILED)
		munmap(used, USED * size);
	set(POOL, 0);
	if (used == MAP_FAILED || more != MAP_FAILED) {
		printf("cannot tell: mmap() does not do what it should\n");
		return 4;
	}
	printf("nr_hugetlb: %ld, after a failing mmap() %ld\n", before, after);
	if (before != after) {
		printf("BUG: the failing mmap() changes the count\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
