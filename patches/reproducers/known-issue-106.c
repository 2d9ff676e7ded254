// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 106: Committed_AS stays too high after a mapping with MAP_GROWSDOWN has grown.
 *
 * Map a read-only page with MAP_GROWSDOWN, read a page 1 MiB below, and unmap all. After 8 times,
 * Committed_AS must not be 4 MiB higher. A writable mapping is the control. If the kernel has the
 * bug, Committed_AS stays 8 MiB too high until the next boot.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define TIMES 8
#define GROWTH (1024 * 1024L)
#define ROOM (64 * GROWTH)

/* Committed_AS in KiB, or -1. */
static long committed(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[200];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "Committed_AS: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}

/* By how many KiB Committed_AS is higher after mappings that grew; -1 on failure. */
static long left(char *top, int prot)
{
	long size = sysconf(_SC_PAGESIZE), before = committed(), after;

	for (int i = 0; i < TIMES; i++) {
		char *low = top - GROWTH;

		if (mmap(top, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN |
			 MAP_FIXED_NOREPLACE, -1, 0) != top)
			return -1;
		asm volatile("" : : "r" (*low));
		if (munmap(low, GROWTH + size))
			return -1;
	}
	after = committed();
	if (before < 0 || after < 0)
		return -1;
	return after > before ? after - before : 0;
}

int main(void)
{
	char *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long writable, read_only;

	if (room == MAP_FAILED || munmap(room, ROOM))
		return 4;
	writable = left(room + ROOM / 2, PROT_READ | PROT_WRITE);
	read_only = left(room + ROOM / 2, PROT_READ);
	printf("Committed_AS is higher by %ld KiB after writable mappings\n", writable);
	printf("Committed_AS is higher by %ld KiB after read-only mappings\n", read_only);
	if (writable < 0 || read_only < 0 || writable > TIMES * GROWTH / 2048) {
		printf("cannot tell: other processes allocate memory, or a call failed\n");
		return 4;
	}
	if (read_only > TIMES * GROWTH / 2048) {
		printf("BUG: memory that is unmapped still counts as committed\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
