// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 52: MADV_HWPOISON and MADV_SOFT_OFFLINE handle only the first page of a huge page.
 *
 * Poison four pages of a huge page, and four single pages. All eight pages must raise SIGBUS.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root. Up to eight pages of memory are lost until the next boot.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_HWPOISON
#define MADV_HWPOISON 100
#endif

#define PAGES 4
#define THP "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"

static sigjmp_buf back;
static int reading;

/* madvise() itself raises the signal, too. */
static void fault(int number)
{
	if (__atomic_load_n(&reading, __ATOMIC_SEQ_CST))
		siglongjmp(back, number);
}

static int lost(const char *at)
{
	char content;

	if (sigsetjmp(back, 1)) {
		__atomic_store_n(&reading, 0, __ATOMIC_SEQ_CST);
		return 1;
	}
	__atomic_store_n(&reading, 1, __ATOMIC_SEQ_CST);
	memcpy(&content, at, 1);
	__asm__ volatile("" : : "r" (content) : "memory");
	__atomic_store_n(&reading, 0, __ATOMIC_SEQ_CST);
	return 0;
}

/* Returns how many of the first pages are lost after MADV_HWPOISON, or -1 if it fails. */
static int poison(char *at, long huge, long size, int advice)
{
	int page, found = 0;

	if (mmap(at, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) == MAP_FAILED)
		return -1;
	madvise(at, huge, advice);
	memset(at, 1, huge);
	if (madvise(at, PAGES * size, MADV_HWPOISON))
		return -1;
	for (page = 0; page < PAGES; page++)
		found += lost(at + page * size);
	return found;
}

int main(void)
{
	long size = sysconf(_SC_PAGESIZE), huge = 0;
	FILE *file = fopen(THP, "r");
	int of_huge, single;
	char *at;

	if (!file || fscanf(file, "%ld", &huge) != 1) {
		printf("cannot tell: needs huge pages\n");
		return 4;
	}
	fclose(file);
	signal(SIGBUS, fault);
	at = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 4;
	at += -(uintptr_t)at & (huge - 1);
	single = poison(at, huge, size, MADV_NOHUGEPAGE);
	of_huge = poison(at, huge, size, MADV_HUGEPAGE);
	if (single != PAGES || of_huge < 1) {
		printf("cannot tell: needs root, and CONFIG_MEMORY_FAILURE=y\n");
		return 4;
	}
	printf("%s: MADV_HWPOISON of %d pages poisons %d single pages, %d of a huge page\n",
	       of_huge == PAGES ? "OK" : "BUG", PAGES, single, of_huge);
	return of_huge != PAGES;
}
