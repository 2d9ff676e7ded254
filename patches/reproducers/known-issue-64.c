// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 64: move_pages() without a list of nodes does not accept a tagged address (arm64).
 *
 * Ask for the node of a page, with a tag in the top byte of its address and without one.
 * Documentation/arch/arm64/tagged-address-abi.rst promises the same result.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
#ifdef __aarch64__
	int plain = -1, tagged = -1;
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *page;

	if (at == MAP_FAILED)
		return 4;
	*at = 1;
	page = at;
	if (syscall(__NR_move_pages, 0, 1, &page, NULL, &plain, 0) || plain < 0) {
		perror("move_pages");
		return 4;
	}
	page = (void *)((unsigned long)at | 0x5aUL << 56);
	if (syscall(__NR_move_pages, 0, 1, &page, NULL, &tagged, 0)) {
		printf("BUG: move_pages() of an address with a tag fails\n");
		return 1;
	}
	if (tagged != plain) {
		printf("BUG: the page is on node %d; with a tag: %s\n", plain, strerror(-tagged));
		return 1;
	}
	printf("OK: node %d, with a tag and without\n", plain);
	return 0;
#else
	printf("needs arm64\n");
	return 4;
#endif
}
