// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 7: clean memory after MADV_FREE becomes swap-backed again when reclaim
 * handles it while another reference exists.
 *
 * Hold references to 16 pages with vmsplice(), call MADV_FREE for the pages, and pass them to
 * reclaim. After that smaps must still count all of them as LazyFree.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs swap.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES 16

/* How many KiB of the mapping at @at smaps counts as LazyFree, or -1. */
static long lazyfree(const char *at)
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
			sscanf(line, "LazyFree: %ld kB", &found);
	}
	if (f)
		fclose(f);
	return found;
}

int main(void)
{
	size_t size = sysconf(_SC_PAGESIZE), length = PAGES * size;
	char *room = mmap(NULL, length + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = room + size;
	struct iovec all = { at, length };
	long before, after;
	int held[2];

	if (room == MAP_FAILED || mprotect(at, length, PROT_READ | PROT_WRITE) ||
	    madvise(at, length, MADV_NOHUGEPAGE) || pipe(held)) {
		perror("cannot tell");
		return 4;
	}
	memset(at, 1, length);
	if (fcntl(held[1], F_SETPIPE_SZ, 2 * length) < 0 ||
	    vmsplice(held[1], &all, 1, SPLICE_F_NONBLOCK) != (ssize_t)length ||
	    madvise(at, length, MADV_FREE)) {
		perror("cannot tell");
		return 4;
	}
	before = lazyfree(at);
	madvise(at, length, MADV_PAGEOUT);
	after = lazyfree(at);
	if (before * 1024 != (long)length) {
		printf("cannot tell: LazyFree is %ld kB after MADV_FREE; is there swap?\n", before);
		return 4;
	}
	printf("LazyFree: %ld kB before reclaim, %ld kB after\n", before, after);
	printf("%s\n", after < before ? "BUG" : "OK");
	return after < before;
}
