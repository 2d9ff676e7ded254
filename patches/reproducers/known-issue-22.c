// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 22: PROT_NONE pages of a large folio change together with their neighbours (arm64).
 *
 * A part of a huge page becomes PROT_NONE, and one half of that part becomes guard pages.
 * The process then clears the accessed bits of its pages. The guard pages must
 * stay guard pages: a read of a guard page ends with SIGSEGV.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Run it in a virtual machine: with the bug the kernel warns when the process ends.
 * Needs Linux 6.13 or newer. Needs root if huge pages are switched off.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static unsigned long huge_page_size(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r");
	unsigned long size = 0;

	if (f) {
		if (fscanf(f, "%lu", &size) != 1)
			size = 0;
		fclose(f);
	}
	return size;
}

/* Write a text to a file; 0, or -1. */
static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), bad = fd < 0 || write(fd, text, strlen(text)) < 0;

	if (fd >= 0)
		close(fd);
	return -bad;
}

static sigjmp_buf back;

static void caught(int signal)
{
	siglongjmp(back, signal);
}

/*
 * The signal that ends a read of the page; SIGALRM if the read does not end. A child cannot make
 * this read, because with the bug fork() does not end either, and no signal ends it.
 */
static int reads(const char *at)
{
	int number = sigsetjmp(back, 1);

	if (number)
		return number;
	alarm(3);
	asm volatile("" : : "r" (*at));
	alarm(0);
	return 0;
}

int main(void)
{
	unsigned long size = huge_page_size(), page = sysconf(_SC_PAGESIZE), block, before, after;
	int fd = open("/proc/self/pagemap", O_RDONLY), first, last;
	char *room = MAP_FAILED, *at;

	/* The contiguous bit covers 16, 128 or 32 pages of 4K, 16K or 64K. */
	block = page == 4096 ? 16 * page : 2UL << 20;
	if (size)
		room = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || fd < 0) {
		printf("cannot tell: no huge pages, or no pagemap\n");
		return 4;
	}
	at = (char *)(((unsigned long)room + 2 * size - 1) & -size);
	mprotect(at, size, PROT_READ | PROT_WRITE);
	if (put("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"))
		printf("transparent_hugepage/enabled stays as it is\n");
	madvise(at, size, MADV_HUGEPAGE);
	memset(at, 1, size);
	if (mprotect(at, block, PROT_NONE) || madvise(at, block / 2, MADV_GUARD_INSTALL)) {
		printf("cannot tell: no guard pages\n");
		return 4;
	}
	if (pread(fd, &before, 8, (unsigned long)at / page * 8) != 8 ||
	    put("/proc/self/clear_refs", "1") ||
	    pread(fd, &after, 8, (unsigned long)at / page * 8) != 8 ||
	    mprotect(at, block, PROT_READ | PROT_WRITE)) {
		printf("cannot tell: no clear_refs\n");
		return 4;
	}
	signal(SIGSEGV, caught);
	signal(SIGALRM, caught);
	first = reads(at);
	last = reads(at + block / 2 - page);
	if (before != after || first != SIGSEGV || last != SIGSEGV) {
		printf("pagemap had %016lx, and has %016lx\n", before, after);
		printf("reads of guard pages end with signals %d and %d\n", first, last);
		printf("BUG\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
