// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 30: in a child, a moved mapping with MADV_WIPEONFORK keeps an old offset.
 *
 * Write to three pages with MADV_WIPEONFORK, which are empty in a child, and
 * move them with mremap(). The child undoes the advice with MADV_KEEPONFORK,
 * and maps one more page right after them. The kernel must merge both mappings,
 * because the child has no page in either mapping. Prints OK and exits with 0,
 * or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 3

static int mappings(char *at, size_t length)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			count += start < (unsigned long)at + length && end > (unsigned long)at;
	return count;
}

static int extend(char *at, size_t size)
{
	char *last = at + PAGES * size;
	int count;

	if (madvise(at, PAGES * size, MADV_KEEPONFORK) || mappings(at, PAGES * size) != 1 ||
	    mmap(last, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) != last) {
		printf("cannot tell: the child cannot map a page\n");
		return 4;
	}
	count = mappings(at, (PAGES + 1) * size);
	if (count != 1)
		printf("the pages are in %d mappings\n", count);
	printf("%s\n", count == 1 ? "OK" : "BUG");
	fflush(stdout);
	return count != 1;
}

int main(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *area = mmap(NULL, 16 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *from = area + size, *to = area + 8 * size;
	int status;

	if (area == MAP_FAILED ||
	    mmap(from, PAGES * size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != from) {
		printf("cannot tell: no memory\n");
		return 4;
	}
	memset(from, 1, PAGES * size);
	if (madvise(from, PAGES * size, MADV_WIPEONFORK) ||
	    mremap(from, PAGES * size, PAGES * size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) {
		printf("cannot tell: no MADV_WIPEONFORK, or mremap() fails\n");
		return 4;
	}
	if (!fork())
		_exit(extend(to, size));
	if (wait(&status) < 0 || !WIFEXITED(status))
		return 4;
	return WEXITSTATUS(status);
}
