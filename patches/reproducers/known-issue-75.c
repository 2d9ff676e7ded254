// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 75: mremap() of a shared hugetlb mapping never returns.
 *
 * Map 1 GiB of a hugetlb file, touch one page of 2 MiB, and move the mapping to an address that is
 * aligned to 1 GiB. On a kernel with the bug, the call waits for a lock that it holds itself. No
 * signal ends the call, not even SIGKILL. The process stays until the next boot, so do not run
 * this on a machine that is in use.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs one hugetlb page of 2 MiB. As root, it adds this page to the pool.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
#define PAGE_SHIFT_2M (21U << 26)
#define SPAN ((size_t)1 << 30)
#define TENTHS 50

/* Moves the mapping. Returns 0 if the page has its content at the new place. */
static int move(void)
{
	int fd = memfd_create("known-issue-75", MFD_HUGETLB | PAGE_SHIFT_2M);
	char *room = mmap(NULL, 4 * SPAN, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at, *to;

	if (fd < 0 || room == MAP_FAILED || ftruncate(fd, SPAN))
		return 4;
	at = (char *)(((uintptr_t)room + SPAN - 1) & -SPAN);
	to = at + 2 * SPAN;
	if (mmap(at, SPAN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		 fd, 0) != at)
		return 4;
	at[0] = 7;
	if (mremap(at, SPAN, SPAN, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return 4;
	return to[0] == 7 ? 0 : 1;
}

int main(void)
{
	FILE *pool = fopen(POOL, "r+");
	int status, pages = 0;
	pid_t child;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (pool && fscanf(pool, "%d", &pages) == 1) {
		rewind(pool);
		fprintf(pool, "%d", pages + 1);
		fclose(pool);
	}
	child = fork();
	if (!child)
		_exit(move());
	for (int i = 0; child > 0 && i < TENTHS; i++) {
		if (waitpid(child, &status, WNOHANG) == child) {
			if (WIFEXITED(status) && !WEXITSTATUS(status)) {
				printf("OK\n");
				return 0;
			}
			printf("cannot tell: is there a free page of 2 MiB?\n");
			return 4;
		}
		usleep(100000);
	}
	if (child < 0)
		return 4;
	kill(child, SIGKILL);
	sleep(1);
	if (waitpid(child, &status, WNOHANG) == child) {
		printf("cannot tell: SIGKILL ended the call\n");
		return 4;
	}
	printf("BUG: mremap() does not return, and SIGKILL does not end the process\n");
	return 1;
}
