// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 49: mremap() of part of a private hugetlb mapping takes the other part's reservation.
 *
 * Map two huge pages, and move the second page elsewhere. The first page must still have its
 * reservation: an access must succeed, and the reservation must end with the mapping.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root. A kernel with the bug keeps one huge page reserved until the next boot.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define POOL "/proc/sys/vm/nr_hugepages"

static sigjmp_buf back;

static void fault(int number)
{
	siglongjmp(back, number);
}

/* Returns the number in a line of /proc/meminfo, or -1. */
static long counted(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128], format[64];
	long value = -1;

	snprintf(format, sizeof(format), "%s: %%ld", name);
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

static void set_pool(long pages)
{
	FILE *file = fopen(POOL, "w");

	if (!file)
		return;
	fprintf(file, "%ld", pages);
	fclose(file);
}

static int can_write(char *at)
{
	if (sigsetjmp(back, 1))
		return 0;
	memset(at, 1, 64);
	return 1;
}

int main(void)
{
	long size = counted("Hugepagesize") << 10, total = counted("HugePages_Total");
	long reserved = counted("HugePages_Rsvd"), used, left;
	int rest, moved;
	char *at, *to;

	/*
	 * Make the pool so large that exactly two pages are free and not
	 * reserved. The mapping reserves both.
	 */
	used = total - counted("HugePages_Free") + reserved;
	if (size <= 0 || total < 0)
		return 4;
	set_pool(used + 2);
	signal(SIGBUS, fault);
	at = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	to = mmap(NULL, size, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED || to == MAP_FAILED ||
	    mremap(at + size, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
		printf("cannot tell: needs root, and two huge pages\n");
		set_pool(total);
		return 4;
	}
	rest = can_write(at);
	moved = can_write(to);
	munmap(at, size);
	munmap(to, size);
	left = counted("HugePages_Rsvd") - reserved;
	set_pool(total);
	printf("%s: a write to the moved page %s, to the rest %s; %ld pages stay reserved\n",
	       rest && moved && !left ? "OK" : "BUG", moved ? "succeeds" : "raises SIGBUS",
	       rest ? "succeeds" : "raises SIGBUS", left);
	return !(rest && moved && !left);
}
