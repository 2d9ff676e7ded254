// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 45: MADV_FREE in a child drops pages of its parent.
 *
 * A child shares the pages, while the parent reads them with process_vm_readv(). This pins the
 * pages, and copies them for the parent. The next child calls MADV_FREE and ends. Then the parent
 * lets the kernel reclaim its pages. The parent must still find the data that it wrote.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 16

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

int main(void)
{
	long size = sysconf(_SC_PAGESIZE);
	size_t length = PAGES * size;
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy = malloc(length);
	struct iovec to = { copy, length }, from = { at, length };
	int page, lost = 0, status;
	pid_t child;

	if (at == MAP_FAILED || !copy)
		return 4;
	for (page = 0; page < PAGES; page++)
		memset(at + page * size, page + 1, size);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	if (child < 0 || process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)length) {
		printf("cannot tell: fork() or process_vm_readv() failed\n");
		return 4;
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	child = fork();
	if (!child)
		_exit(madvise(at, length, MADV_FREE) ? 4 : 0);
	if (waitpid(child, &status, 0) < 0 || status || madvise(at, length, MADV_PAGEOUT)) {
		printf("cannot tell: MADV_FREE or MADV_PAGEOUT failed\n");
		return 4;
	}
	for (page = 0; page < PAGES; page++)
		lost += at[page * size] != (char)(page + 1);
	if (lost)
		printf("BUG: %d of %d pages lost what the parent wrote\n", lost, PAGES);
	else
		printf("OK\n");
	return !!lost;
}
