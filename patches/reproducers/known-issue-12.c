// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 12: mprotect(), madvise() and munmap() skip a 1G page of hugetlb
 * (arm64, 4K pages, a kernel with five levels of page tables).
 *
 * The mapping has no page in its first 512G range, and one page in the next range.
 * Calls for the whole mapping must act on this page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell.
 * Needs one free 1G page: hugepagesz=1G hugepages=1 on the kernel's command line.
 *
 * With the argument "lose" the program unmaps the whole mapping at the end. A kernel with the bug
 * then loses the page until the next boot.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* How much memory a page table with entries for 1G maps. */
#define SPAN 0x8000000000UL
#define POOL "/sys/kernel/mm/hugepages/hugepages-1048576kB/"

static sigjmp_buf caught;

static void handler(int number)
{
	siglongjmp(caught, number);
}

/* Write one byte; returns 0, or the signal that the write caused. */
static int try_write(char *at)
{
	int number = sigsetjmp(caught, 1);

	if (!number) {
		*at = 2;
		asm volatile("" : : : "memory");
	}
	return number;
}

static long free_pages(void)
{
	FILE *f = fopen(POOL "free_hugepages", "r");
	long count = -1;

	if (f) {
		if (fscanf(f, "%ld", &count) != 1)
			count = -1;
		fclose(f);
	}
	return count;
}

int main(int argc, char **argv)
{
	unsigned long room = (unsigned long)mmap(NULL, 4 * SPAN, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *begin = (char *)((room + 2 * SPAN - 1) & -SPAN), *page = begin + SPAN;
	long before = free_pages(), after;
	int bugs = 0;

	if (sysconf(_SC_PAGESIZE) != 4096 || before < 1 || (void *)room == MAP_FAILED ||
	    mmap(begin, 2 * SPAN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE | MAP_FIXED |
		 30 << MAP_HUGE_SHIFT, -1, 0) != begin) {
		printf("cannot tell: needs 4K pages and a free 1G page\n");
		return 4;
	}
	signal(SIGSEGV, handler);
	signal(SIGBUS, handler);
	if (try_write(page)) {
		printf("cannot tell: got no 1G page\n");
		return 4;
	}

	mprotect(begin, 2 * SPAN, PROT_READ);
	if (!try_write(page)) {
		printf("mprotect(PROT_READ): the page can be written to\n");
		bugs++;
	}
	mprotect(begin, 2 * SPAN, PROT_READ | PROT_WRITE);

	madvise(begin, 2 * SPAN, MADV_DONTNEED);
	after = free_pages();
	if (after != before) {
		printf("madvise(MADV_DONTNEED): %ld free pages, should be %ld\n", after, before);
		bugs++;
	}

	if (argc > 1 && !strcmp(argv[1], "lose")) {
		if (try_write(page))
			return 4;
		munmap(begin, 2 * SPAN);
	} else {
		/*
		 * Unmap only the range with a page table: no kernel skips it.
		 */
		munmap(page, SPAN);
	}
	after = free_pages();
	if (after != before) {
		printf("munmap(): %ld free pages, should be %ld\n", after, before);
		bugs++;
	}
	printf("%s\n", bugs ? "BUG" : "OK");
	return !!bugs;
}
