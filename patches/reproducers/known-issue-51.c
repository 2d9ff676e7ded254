// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 51: ftruncate() does not end if it cuts a file in memory inside a huge page in swap.
 *
 * Swap out a huge page of a memfd, and cut the file in the middle of this page, at a multiple of
 * the page size. On a kernel with the bug the call never returns. No signal ends it, not even
 * SIGKILL. Only swapoff() of the device with the page ends the call, and the program tries
 * swapoff() of /dev/ram0. So do not run this on a machine that is in use, or that has other swap.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root and swap. If there is no swap, the program tries /dev/ram0.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#define THP "/sys/kernel/mm/transparent_hugepage/"
#define TENTHS 100

/* Returns the number in the first line of a file, or -1. */
static long number(const char *path)
{
	FILE *file = fopen(path, "r");
	long value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &value) != 1)
		value = -1;
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

/* Waits ten seconds. Returns whether the process has ended. */
static int ended(pid_t child)
{
	int tenth;

	for (tenth = 0; tenth < TENTHS; tenth++) {
		if (waitpid(child, NULL, WNOHANG) == child)
			return 1;
		usleep(100000);
	}
	return 0;
}

int main(void)
{
	long huge = number(THP "hpage_pmd_size"), before, at_cut = -1;
	int fd = memfd_create("reproducer", 0);
	char path[128], old[32] = "never";
	char *at;
	pid_t child;

	snprintf(path, sizeof(path), THP "hugepages-%ldkB/stats/swpout", huge >> 10);
	before = number(path);
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
	if (number(path) == before) {
		printf("cannot tell: needs swap, and huge pages of shared memory\n");
		return 4;
	}
	munmap(at, huge);
	child = fork();
	if (!child)
		_exit(ftruncate(fd, huge / 2) ? 1 : 0);
	if (child < 0)
		return 4;
	if (!ended(child)) {
		kill(child, SIGKILL);
		printf("BUG: ftruncate() takes more than ten seconds, and %s with SIGKILL\n",
		       ended(child) ? "ends" : "does not end");
		fflush(stdout);
		/* This reads the page back, which ends the call. */
		swapoff("/dev/ram0");
		_exit(1);
	}
	/* The first half has its content. The second half is zero if the file grows again. */
	if (ftruncate(fd, huge))
		return 4;
	at = mmap(NULL, huge, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		at_cut = at[huge / 2 - 1] * 10 + at[huge / 2];
	printf("%s: ftruncate() returns; the content at the new end is %ld\n",
	       at_cut == 10 ? "OK" : "BUG", at_cut);
	return at_cut != 10;
}
