// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 1: a page that was migrated is no longer young (arm64, 4K pages, LPA2).
 *
 * Write to 16 pages, so that smaps counts all of them as Referenced, and move them to
 * the other NUMA node. After that smaps must still count all of them as Referenced.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell.
 * Needs root and two NUMA nodes (numa=fake=2 on the kernel's command line is enough).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 16
#define MPOL_MF_MOVE 2

/* How many KiB of the mapping at @at smaps counts as Referenced, or -1. */
static long referenced(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long begin, end;
	char line[256];
	long found = -1;
	int here = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			here = begin == (unsigned long)at;
		if (here)
			sscanf(line, "Referenced: %ld kB", &found);
	}
	if (f)
		fclose(f);
	return found;
}

int main(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *room = mmap(NULL, (PAGES + 2) * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = room + size;
	long before, after;

	if (room == MAP_FAILED || mprotect(at, PAGES * size, PROT_READ | PROT_WRITE) ||
	    madvise(at, PAGES * size, MADV_NOHUGEPAGE)) {
		perror("cannot tell");
		return 4;
	}
	memset(at, 1, PAGES * size);
	before = referenced(at);
	for (int page = 0; page < PAGES; page++) {
		void *one = at + page * size;
		int node = -1, to;

		if (syscall(__NR_move_pages, 0, 1UL, &one, NULL, &node, 0) || node < 0) {
			printf("cannot tell: move_pages() does not say where a page is\n");
			return 4;
		}
		to = !node;
		if (syscall(__NR_move_pages, 0, 1UL, &one, &to, &node, MPOL_MF_MOVE) ||
		    node != to) {
			printf("cannot tell: needs two NUMA nodes\n");
			return 4;
		}
	}
	after = referenced(at);
	if (before * 1024 != (long)(PAGES * size)) {
		printf("cannot tell: %zu kB were written to, but Referenced is %ld kB\n",
		       PAGES * size / 1024, before);
		return 4;
	}
	printf("Referenced: %ld kB before migration, %ld kB after\n", before, after);
	printf("%s\n", after < before ? "BUG" : "OK");
	return after < before;
}
