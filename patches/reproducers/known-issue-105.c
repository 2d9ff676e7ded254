// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 105: mincore() must find hugetlb pages that the file has in memory.
 *
 * Both pages of a file are in memory. A second mapping of the file accesses the first page. Then
 * mincore() of this mapping must find both pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs two free huge pages. If there are none and root starts it, it adds them.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 2
#define POOL "/proc/sys/vm/nr_hugepages"

static unsigned long number(const char *path, const char *name)
{
	unsigned long value = 0;
	char line[128];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtoul(line + strlen(name), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static void set(unsigned long pages)
{
	FILE *file = fopen(POOL, "w");

	if (file) {
		fprintf(file, "%lu", pages);
		fclose(file);
	}
}

int main(void)
{
	unsigned long size = number("/proc/meminfo", "Hugepagesize:") << 10;
	unsigned long small = sysconf(_SC_PAGESIZE), before = number(POOL, "");
	int file = memfd_create("known-issue-105", MFD_HUGETLB), first, second;
	unsigned char *answers = malloc(PAGES * size / small);
	char *one, *other;

	if (!size || file < 0 || !answers || ftruncate(file, PAGES * size))
		return 4;
	set(before + PAGES);
	one = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	other = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (one == MAP_FAILED || other == MAP_FAILED) {
		set(before);
		printf("cannot tell: needs %d huge pages\n", PAGES);
		return 4;
	}
	for (int i = 0; i < PAGES; i++)
		one[i * size] = 1;
	other[0] = 2;
	if (mincore(other, PAGES * size, answers))
		return 4;
	first = answers[0] & 1;
	second = answers[size / small] & 1;
	munmap(one, PAGES * size);
	munmap(other, PAGES * size);
	close(file);
	set(before);
	printf("in memory: first page %d, second page %d\n", first, second);
	if (!first)
		return 4;
	if (!second) {
		printf("BUG: mincore() does not find the second page\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
