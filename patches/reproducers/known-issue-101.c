// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 101: a demotion must not take hugetlb pages that a process has reserved.
 *
 * A pool has three free pages, and mmap() reserves two of them. Then three pages are to be demoted.
 * One page is available, so two must stay.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and huge pages that can be demoted: of 2M on arm64, of 1G on x86_64.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 3
#define RESERVED 2
#define POOL "/sys/kernel/mm/hugepages/hugepages-%lukB/%s"

static unsigned long get(unsigned long kib, const char *name)
{
	unsigned long value = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), POOL, kib, name);
	file = fopen(path, "r");
	if (file && fscanf(file, "%lu", &value) != 1)
		value = 0;
	if (file)
		fclose(file);
	return value;
}

static void set(unsigned long kib, const char *name, unsigned long value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), POOL, kib, name);
	file = fopen(path, "w");
	if (file) {
		fprintf(file, "%lu", value);
		fclose(file);
	}
}

int main(void)
{
	static const unsigned long sizes[] = { 2UL << 10, 1UL << 20 };
	unsigned long kib = 0, smaller = 0, before, parts, left;
	char *map;

	for (int i = 0; i < 2 && !smaller; i++) {
		kib = sizes[i];
		smaller = get(kib, "demote_size");
	}
	before = get(kib, "nr_hugepages");
	parts = get(smaller, "nr_hugepages");
	if (!smaller || before || get(kib, "nr_overcommit_hugepages")) {
		printf("cannot tell: no huge pages that can be demoted, or their pool is in use\n");
		return 4;
	}
	set(kib, "nr_hugepages", PAGES);
	map = mmap(NULL, RESERVED * (kib << 10), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		   (10 + __builtin_ctzl(kib)) << 26, -1, 0);
	if (map == MAP_FAILED || get(kib, "free_hugepages") != PAGES) {
		set(kib, "nr_hugepages", before);
		printf("cannot tell: not enough huge pages\n");
		return 4;
	}
	set(kib, "demote", PAGES);
	left = get(kib, "free_hugepages");
	munmap(map, RESERVED * (kib << 10));
	set(smaller, "nr_hugepages", parts);
	set(kib, "nr_hugepages", before);
	printf("%d pages of %lu kB, %d reserved; after the demotion %lu\n", PAGES, kib, RESERVED,
	       left);
	if (left < RESERVED) {
		printf("BUG: a reserved page is gone\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
