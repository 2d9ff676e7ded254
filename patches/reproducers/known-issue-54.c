// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 54: smaps counts a whole huge page in swap for each part of it that is mapped.
 *
 * Write to shared memory that has huge pages. Swap it out, and map one page of
 * it a second time. smaps must report at most one page in swap for this
 * mapping. Prints OK and exits with 0, or prints BUG and exits with 1. Exits
 * with 4 if it cannot tell. Needs root and swap. If there is no swap, the
 * program tries /dev/ram0.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
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

/* Returns a number of smaps in bytes. */
static long in_smaps(const void *at, const char *name)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[256], start[32];
	long value = -1;
	int found = 0;

	snprintf(start, sizeof(start), "%lx-", (unsigned long)at);
	while (file && fgets(line, sizeof(line), file)) {
		found |= !strncmp(line, start, strlen(start));
		if (found && !strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), "%ld", &value) == 1)
			break;
	}
	if (file)
		fclose(file);
	return value << 10;
}

/* Selects a value of shmem_enabled. Stores the old value in @old. */
static void shmem_enabled(const char *value, char *old, size_t size)
{
	FILE *file = fopen(THP "shmem_enabled", "r+");
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

int main(void)
{
	long huge = number(THP "hpage_pmd_size", ""), size = sysconf(_SC_PAGESIZE), whole, part;
	int fd = memfd_create("reproducer", 0);
	char path[128], old[32] = "never";
	char *at, *second;
	long before;

	snprintf(path, sizeof(path), THP "hugepages-%ldkB/stats/swpout", huge >> 10);
	before = number(path, "");
	if (huge <= 0 || before < 0 || fd < 0 || ftruncate(fd, huge)) {
		printf("cannot tell: needs huge pages\n");
		return 4;
	}
	at = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 4;
	at += -(uintptr_t)at & (huge - 1);
	at = mmap(at, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED)
		return 4;
	madvise(at, huge, MADV_HUGEPAGE);
	shmem_enabled("advise", old, sizeof(old));
	memset(at, 1, huge);
	shmem_enabled(old, NULL, 0);
	swapon("/dev/ram0", 0);
	madvise(at, huge, MADV_PAGEOUT);
	second = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, size);
	whole = in_smaps(at, "Swap:");
	if (second == MAP_FAILED || whole != huge || number(path, "") == before) {
		printf("cannot tell: needs swap, and huge pages of shared memory\n");
		return 4;
	}
	part = in_smaps(second, "Swap:");
	printf("%s: %ld bytes are mapped, and smaps counts %ld of them as swapped\n",
	       part > size ? "BUG" : "OK", size, part);
	return part > size;
}
