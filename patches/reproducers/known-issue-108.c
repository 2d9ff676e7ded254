// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 108: mbind() of shared memory returns 0, but does nothing.
 *
 * Map a file twice. Set the policy through the first mapping to MPOL_BIND, through the second to
 * MPOL_PREFERRED, and through the first to MPOL_BIND again. Then it must be MPOL_BIND.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE 65536L

static long set_policy(void *at, long mode)
{
	unsigned long nodes = 1;

	return syscall(SYS_mbind, at, SIZE, mode, &nodes, 8 * sizeof(nodes), 0);
}

static int policy_of(void *at)
{
	int mode = -1;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0, at, MPOL_F_ADDR) ? -1 : mode;
}

int main(void)
{
	int fd = memfd_create("known-issue-108", 0), then, now;
	char *a, *b;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 4;
	a = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* Pages between the two mappings, so that they do not merge. */
	mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a == MAP_FAILED || b == MAP_FAILED)
		return 4;
	if (set_policy(a, MPOL_BIND) || policy_of(b) != MPOL_BIND ||
	    set_policy(b, MPOL_PREFERRED)) {
		printf("cannot tell: needs CONFIG_NUMA=y\n");
		return 4;
	}
	then = policy_of(a);
	if (then != MPOL_PREFERRED || set_policy(a, MPOL_BIND)) {
		printf("cannot tell: mbind() failed\n");
		return 4;
	}
	now = policy_of(a);
	printf("the policy was %d; after mbind(%d) returned 0 it is %d\n", then, MPOL_BIND, now);
	if (now == then) {
		printf("BUG: mbind() did nothing\n");
		return 1;
	}
	if (now != MPOL_BIND)
		return 4;
	printf("OK\n");
	return 0;
}
