// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 96: move_pages() reports -EBUSY for a page that it moves.
 *
 * Move all pages of a huge page to another node with one call, and compare what the call says
 * about each page with the node on which the page is then.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs two NUMA nodes with memory (numa=fake=2 on the kernel's command line is enough).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The size of a huge page, which depends on the size of a page. */
static size_t huge_size(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r");
	size_t size = 0;

	if (file && fscanf(file, "%zu", &size) != 1)
		size = 0;
	if (file)
		fclose(file);
	return size;
}

int main(void)
{
	const size_t huge = huge_size(), page = sysconf(_SC_PAGESIZE), nr = huge / page;
	int *nodes = calloc(nr, sizeof(int)), *status = calloc(nr, sizeof(int));
	int *after = calloc(nr, sizeof(int)), bad = 0, to = 0;
	char **list = calloc(nr, sizeof(*list));
	char *room, *at;

	if (!huge || huge > 64UL << 20) {
		printf("cannot tell: no huge pages, or too large ones\n");
		return 4;
	}
	room = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return 4;
	at = (char *)(((unsigned long)room + huge - 1) & -huge);
	madvise(at, huge, MADV_HUGEPAGE);
	memset(at, 1, huge);
	for (size_t i = 0; i < nr; i++)
		list[i] = at + i * page;
	if (syscall(__NR_move_pages, 0, nr, list, NULL, status, 0)) {
		perror("move_pages");
		return 4;
	}
	to = !status[0];
	for (size_t i = 0; i < nr; i++)
		nodes[i] = to;
	if (syscall(__NR_move_pages, 0, nr, list, nodes, status, MPOL_MF_MOVE) ||
	    syscall(__NR_move_pages, 0, nr, list, NULL, after, 0)) {
		printf("cannot tell: the pages do not move to node %d: %s\n", to, strerror(errno));
		return 4;
	}
	for (size_t i = 0; i < nr; i++) {
		if (after[i] != to) {
			printf("cannot tell: page %zu stayed on its node\n", i);
			return 4;
		}
		if (status[i] == to)
			continue;
		printf("page %zu is on node %d, but its status is %d (%s)\n", i, to, status[i],
		       strerror(-status[i]));
		bad++;
	}
	printf("%s\n", bad ? "BUG: move_pages() reports an error for a page that it moved" : "OK");
	return bad > 0;
}
