// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 8: after a migration a large folio looks partially mapped, and the next
 * migration splits it.
 *
 * Move a folio of 64K to the other NUMA node and back. The kernel must not split it.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root and two NUMA nodes (numa=fake=2 on the kernel's command line is enough).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE 0x10000UL
#define FOLDER "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/"
#define MPOL_BIND 2
#define MPOL_MF_STRICT 1
#define MPOL_MF_MOVE 2

static int enable(const char *value, char *old, size_t length)
{
	int fd = open(FOLDER "enabled", O_RDWR);
	int good = fd >= 0 && (!old || read(fd, old, length - 1) > 0) &&
		   write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

static long in_part(void)
{
	FILE *f = fopen(FOLDER "stats/nr_anon_partially_mapped", "r");
	long count = -1;

	if (f) {
		if (fscanf(f, "%ld", &count) != 1)
			count = -1;
		fclose(f);
	}
	return count;
}

/* Whether all pages are contiguous and aligned in memory, like the pages of one folio. */
static int whole(char *at)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY), good = fd >= 0;
	unsigned long first = 0, entry;

	for (size_t i = 0; i < SIZE / page && good; i++) {
		off_t place = ((unsigned long)at / page + i) * sizeof(entry);

		good = pread(fd, &entry, sizeof(entry), place) == sizeof(entry);
		entry &= (1UL << 55) - 1;
		if (!i)
			first = entry;
		good = good && entry == first + i && !(first % (SIZE / page));
	}
	if (fd >= 0)
		close(fd);
	return good;
}

static int move(char *at, int node)
{
	unsigned long mask = 1UL << node;

	return !syscall(__NR_mbind, at, SIZE, MPOL_BIND, &mask, 8 * sizeof(mask),
			MPOL_MF_MOVE | MPOL_MF_STRICT);
}

int main(void)
{
	char old[64] = "", *word, *room, *at;
	long before, after;
	void *here;
	int node = -1, bug;

	room = mmap(NULL, 3 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = (char *)(((unsigned long)room + 2 * SIZE - 1) & -SIZE);
	if (room == MAP_FAILED || !enable("always", old, sizeof(old))) {
		printf("cannot tell: needs root, and large folios of 64K\n");
		return 4;
	}
	mprotect(at, SIZE, PROT_READ | PROT_WRITE);
	memset(at, 1, SIZE);
	word = strtok(strchr(old, '[') ? strchr(old, '[') + 1 : old, "]");
	enable(word, NULL, 0);
	here = at;
	syscall(__NR_move_pages, 0, 1UL, &here, NULL, &node, 0);
	before = in_part();
	if (node < 0 || before < 0 || !whole(at)) {
		printf("cannot tell: no folio of 64K\n");
		return 4;
	}
	if (!move(at, !node)) {
		printf("cannot tell: needs two NUMA nodes\n");
		return 4;
	}
	after = in_part();
	printf("moved once: %ld more folios count as partially mapped\n", after - before);
	if (!move(at, node)) {
		printf("cannot tell: the folio does not move back\n");
		return 4;
	}
	bug = !whole(at);
	printf("moved twice: the folio is %s\n", bug ? "split" : "whole");
	printf("%s\n", bug ? "BUG" : "OK");
	return bug;
}
