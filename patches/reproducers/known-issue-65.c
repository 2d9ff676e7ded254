// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 65: set_mempolicy_home_node() does not accept a tagged address (arm64).
 *
 * Bind a page to node 0, and set its home node, with a tag in the top byte of the address and
 * without one. Documentation/arch/arm64/tagged-address-abi.rst promises the same result.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs CONFIG_NUMA.
 */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __NR_set_mempolicy_home_node
#define __NR_set_mempolicy_home_node 450
#endif

int main(void)
{
#ifdef __aarch64__
	long size = sysconf(_SC_PAGESIZE);
	unsigned long node = 1;
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return 4;
	if (syscall(__NR_mbind, at, size, MPOL_BIND, &node, 64, 0) ||
	    syscall(__NR_set_mempolicy_home_node, at, size, 0, 0)) {
		perror("mbind or set_mempolicy_home_node");
		return 4;
	}
	at = (char *)((unsigned long)at | 0x5aUL << 56);
	if (syscall(__NR_set_mempolicy_home_node, at, size, 0, 0)) {
		perror("BUG: it works without a tag; with a tag");
		return 1;
	}
	printf("OK: the home node is set, with a tag and without\n");
	return 0;
#else
	printf("needs arm64\n");
	return 4;
#endif
}
