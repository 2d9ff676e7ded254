// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 81: a split of a huge page loses tags, or shows tags of another process (arm64).
 *
 * Give some pages of a huge page PROT_MTE, and split the huge page: madvise(MADV_COLD) of one page
 * does this. If only the first page has no PROT_MTE, the other pages must keep their tags. If only
 * the first page has PROT_MTE, the other pages must have only tags of value 0 when they get
 * PROT_MTE later.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs a CPU with MTE, and transparent huge pages; no privileges.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RW (PROT_READ | PROT_WRITE)
#define MTE 0x20	/* PROT_MTE */
#define SIZE (64L << 20)
#define TRIES 10

/* Give each granule of 16 bytes a tag. */
static void set(char *at, long size, unsigned long tag)
{
#ifdef __aarch64__
	for (long i = 0; i < size; i += 16)
		asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]"
			     : : "r"((uintptr_t)(at + i) | tag << 56) : "memory");
#endif
}

/* How many granules have the tag. */
static long count(const char *at, long size, unsigned long tag)
{
	long total = 0;

#ifdef __aarch64__
	for (long i = 0; i < size; i += 16) {
		unsigned long found = 0;

		asm volatile(".arch armv8.5-a+memtag\n\tldg %0, [%1]"
			     : "+r"(found) : "r"(at + i) : "memory");
		total += (found >> 56 & 15) == tag;
	}
#endif
	return total;
}

/* Returns the sum of all numbers in a file that stand in lines of the format @format. */
static long number(const char *path, const char *format)
{
	FILE *file = fopen(path, "r");
	long total = 0, value;
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			total += value;
	if (file)
		fclose(file);
	return total;
}

/* Map and fill memory in huge pages of @size bytes. Returns NULL on failure. */
static char *map(long size, long length)
{
	long before = number("/proc/self/smaps", "AnonHugePages: %ld"), after;
	char *at = mmap(NULL, length + size, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)at + size - 1) & -size);
	if (madvise(at, length, MADV_HUGEPAGE))
		return NULL;
	memset(at, 1, length);
	after = number("/proc/self/smaps", "AnonHugePages: %ld");
	return after - before >= length >> 10 ? at : NULL;
}

/*
 * Split a huge page. Returns 0 on success. thp_split_page counts the splits of all processes. So
 * repeat the call until it splits nothing: then this huge page is split.
 */
static int split(char *at)
{
	long start = number("/proc/vmstat", "thp_split_page %ld"), before, after = start;

	for (int i = 0; i < TRIES; i++) {
		before = after;
		if (madvise(at + getpagesize(), getpagesize(), MADV_COLD))
			return -1;
		after = number("/proc/vmstat", "thp_split_page %ld");
		if (after == before && after != start)
			return 0;
	}
	return -1;
}

/* Another process has memory with the tag 10, and exits. */
static void other_process(void)
{
	char *at;

	if (!fork()) {
		at = mmap(NULL, SIZE, RW | MTE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at != MAP_FAILED) {
			madvise(at, SIZE, MADV_HUGEPAGE);
			set(at, SIZE, 10);
		}
		_exit(0);
	}
	wait(NULL);
}

int main(void)
{
	long size = number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "%ld");
	long page = getpagesize(), rest = size - page, kept, zero = 0, stale = 0, tags;
	char *one, *two;

	if (!(getauxval(AT_HWCAP2) & 1UL << 18) || size <= page || size > SIZE) {
		printf("cannot tell: needs MTE and transparent huge pages\n");
		return 4;
	}
	one = map(size, size);
	if (!one || mprotect(one + page, rest, RW | MTE))
		goto cannot;
	set(one + page, rest, 5);
	if (count(one + page, rest, 5) != rest / 16 || split(one))
		goto cannot;
	kept = count(one + page, rest, 5);

	other_process();
	two = map(size, SIZE);
	for (long i = 0; two && i < SIZE; i += size) {
		if (mprotect(two + i, page, RW | MTE) || split(two + i) ||
		    mprotect(two + i + page, rest, RW | MTE))
			goto cannot;
		zero += count(two + i + page, rest, 0);
		stale += count(two + i + page, rest, 10);
	}
	if (!two)
		goto cannot;
	tags = SIZE / size * rest / 16;
	printf("%s: of %ld tags %ld are kept; of %ld new tags %ld are 0, %ld are old\n",
	       kept == rest / 16 && zero == tags ? "OK" : "BUG", rest / 16, kept, tags, zero,
	       stale);
	return kept != rest / 16 || zero != tags;
cannot:
	printf("cannot tell: is there a huge page, and can it be split?\n");
	return 4;
}
