// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 11: for every page of a huge page, pagemap reports whether the first
 * page is exclusive.
 *
 * A child of fork() unmaps the odd pages of a huge page. Then only the parent
 * maps these pages. pagemap must report them as exclusive, and the other pages
 * as not exclusive.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if
 * it cannot tell.
 * Needs root, unless transparent huge pages are enabled already.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* How many KiB of the mapping at @at are in huge pages, or -1. */
static long huge(const char *at)
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
			sscanf(line, "AnonHugePages: %ld kB", &found);
	}
	if (f)
		fclose(f);
	return found;
}

/* Let huge pages of this size follow transparent_hugepage/enabled, which is "madvise". */
static int huge_pages_on(unsigned long size)
{
	int all = open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY), one;
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/mm/transparent_hugepage/hugepages-%lukB/enabled",
		 size / 1024);
	one = open(path, O_WRONLY);	/* kernels before 6.8 have no such file */
	return (all < 0 || write(all, "madvise", 7) == 7) &&
	       (one < 0 || write(one, "inherit", 7) == 7);
}

int main(void)
{
	unsigned long size = huge_page_size(), page = sysconf(_SC_PAGESIZE);
	unsigned long wrong = 0, entry;
	int fd = open("/proc/self/pagemap", O_RDONLY), ready[2], go[2], bug;
	char *room = MAP_FAILED, *at, c = 0;

	if (size)
		room = mmap(NULL, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || fd < 0 || pipe(ready) || pipe(go)) {
		printf("cannot tell: no huge pages, or no pagemap\n");
		return 4;
	}
	at = (char *)(((unsigned long)room + 2 * size - 1) & -size);
	mprotect(at, size, PROT_READ | PROT_WRITE);
	if (!huge_pages_on(size))
		printf("cannot set transparent_hugepage/enabled\n");
	madvise(at, size, MADV_HUGEPAGE);
	memset(at, 1, size);
	if (huge(at) * 1024 != (long)size) {
		printf("cannot tell: no huge page; is transparent_hugepage/enabled \"never\"?\n");
		return 4;
	}
	if (!fork()) {
		for (unsigned long i = page; i < size; i += 2 * page)
			munmap(at + i, page);
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		close(go[1]);
		_exit(read(go[0], &c, 1) != 0);
	}
	if (read(ready[0], &c, 1) != 1) {
		printf("cannot tell: the child ended\n");
		return 4;
	}
	for (unsigned long i = 0; i < size / page; i++) {
		off_t place = ((unsigned long)at / page + i) * sizeof(entry);

		if (pread(fd, &entry, sizeof(entry), place) != sizeof(entry))
			return 4;
		/* Bit 56: no other process maps the page. */
		wrong += (entry >> 56 & 1) != i % 2;
	}
	bug = wrong != 0;
	close(go[1]);
	wait(NULL);
	printf("%lu of %lu pages have a wrong bit 56 in pagemap\n", wrong, size / page);
	printf("%s\n", bug ? "BUG" : "OK");
	return bug;
}
