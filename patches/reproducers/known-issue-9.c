// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 9: the first fault in a page table maps one page of the last folio of
 * a file, not the pages around it.
 *
 * Map the second half of a 64K file at an address that has no page table yet, and read one byte. Do
 * this once for a file with one more page after the 64K, and once for a file without this page.
 * Both reads must map the same number of pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * The folder must be on a file system with large folios, for example XFS.
 * Usage: known-issue-9 FOLDER
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 0x10000UL

/* How many KiB of the mapping at @at are mapped, or -1. */
static long mapped(const char *at)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long begin, end;
	char line[4096];
	long found = -1;
	int here = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			here = begin == (unsigned long)at;
		if (here)
			sscanf(line, "Rss: %ld kB", &found);
	}
	if (f)
		fclose(f);
	return found;
}

/* How many KiB of the file's second half the first fault in a page table maps. */
static long first_fault(int fd, size_t table)
{
	char *room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)(((unsigned long)room + table - 1) & -table);
	long found = -1;

	if (room != MAP_FAILED &&
	    mmap(at, SIZE / 2, PROT_READ, MAP_SHARED | MAP_FIXED, fd, SIZE / 2) == at) {
		asm volatile("" : : "r" (*at));
		found = mapped(at);
		munmap(room, 3 * table);
	}
	return found;
}

int main(int argc, char **argv)
{
	size_t page = sysconf(_SC_PAGESIZE), table = page * page / 8;
	/* The virtual machine of the selftests has XFS at /mnt. */
	int fd = open(argc > 1 ? argv[1] : "/mnt", O_TMPFILE | O_RDWR, 0600);
	static char data[SIZE];
	long inner, last;

	memset(data, 1, sizeof(data));
	if (fd < 0 || pwrite(fd, data, SIZE, 0) != (ssize_t)SIZE || fsync(fd) ||
	    ftruncate(fd, SIZE + page)) {
		perror("cannot tell");
		return 4;
	}
	inner = first_fault(fd, table);
	if (ftruncate(fd, SIZE)) {
		perror("cannot tell");
		return 4;
	}
	last = first_fault(fd, table);
	printf("the first fault maps %ld kB; %ld kB with one more page in the file\n", last, inner);
	if (inner <= (long)page / 1024) {
		printf("cannot tell: a fault maps only one page here\n");
		return 4;
	}
	printf("%s\n", last < inner ? "BUG" : "OK");
	return last < inner;
}
