// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 53: MADV_WILLNEED reads one page of a shared huge page, and mincore() reports all.
 *
 * Swap out a huge page of shared memory. MADV_WILLNEED must read all of its pages, as it does in
 * private memory, and mincore() must report no page that still has to be read.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root and swap. If there is no swap, the program tries /dev/ram0.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#define THP "/sys/kernel/mm/transparent_hugepage/"

/*
 * Returns the number in the first line that begins with @prefix in a file, or
 * -1.
 */
static long number(const char *path, const char *prefix)
{
	FILE *file = fopen(path, "r");
	char line[256];
	long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, prefix, strlen(prefix)) &&
		    sscanf(line + strlen(prefix), "%ld", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

/* Selects a value of shmem_enabled. Stores the old value in @old. */
static void shmem_enabled(const char *value, char *old, size_t size)
{
	FILE *file = fopen(THP "shmem_enabled", "r");
	char line[128] = "", *from, *to;

	if (file && old && fgets(line, sizeof(line), file)) {
		from = strchr(line, '[');
		to = strchr(line, ']');
		if (from && to)
			snprintf(old, size, "%.*s", (int)(to - from - 1), from + 1);
	}
	if (file)
		fclose(file);
	file = fopen(THP "shmem_enabled", "w");
	if (file) {
		fprintf(file, "%s", value);
		fclose(file);
	}
}

/* Returns how many pages mincore() reports. */
static long resident(char *at, long pages, long size)
{
	unsigned char *vector = calloc(pages, 1);
	long page, found = 0;

	if (!vector || mincore(at, pages * size, vector))
		return -1;
	for (page = 0; page < pages; page++)
		found += vector[page] & 1;
	free(vector);
	return found;
}

int main(void)
{
	long huge = number(THP "hpage_pmd_size", ""), size = sysconf(_SC_PAGESIZE);
	long pages = huge / size, before, out, in, reported, read, page;
	char path[128], old[32] = "never";
	char *at;

	snprintf(path, sizeof(path), THP "hugepages-%ldkB/stats/swpout", huge >> 10);
	out = number(path, "");
	at = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (huge <= 0 || out < 0 || at == MAP_FAILED) {
		printf("cannot tell: needs huge pages\n");
		return 4;
	}
	at += -(uintptr_t)at & (huge - 1);
	at = mmap(at, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0);
	if (at == MAP_FAILED)
		return 4;
	madvise(at, huge, MADV_HUGEPAGE);
	shmem_enabled("advise", old, sizeof(old));
	memset(at, 1, huge);
	shmem_enabled(old, NULL, 0);
	swapon("/dev/ram0", 0);
	madvise(at, huge, MADV_PAGEOUT);
	if (resident(at, pages, size) || number(path, "") == out) {
		printf("cannot tell: needs swap, and huge pages of shared memory\n");
		return 4;
	}
	before = number("/proc/vmstat", "pswpin ");
	madvise(at, huge, MADV_WILLNEED);
	sleep(1);
	in = number("/proc/vmstat", "pswpin ") - before;
	reported = resident(at, pages, size);
	for (page = 0; page < pages; page++)
		if (at[page * size] != 1)
			return 4;
	read = number("/proc/vmstat", "pswpin ") - before - in;
	printf("%s: MADV_WILLNEED reads %ld of %ld pages; mincore() reports %ld; later reads %ld\n",
	       reported == pages && !read ? "OK" : "BUG", in, pages, reported, read);
	return reported != pages || read;
}
