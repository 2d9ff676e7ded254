// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 66: a process with a reserved hugetlb page must get its page.
 *
 * A pool has two free pages. One process maps a page and writes to it, and another process only
 * maps a page, so both pages of the pool are taken. The first process puts its page into a pipe,
 * drops the mapped page by MADV_DONTNEED, and writes again. The page in the pipe is still in use,
 * so this write must fail: the last page of the pool is reserved for the other process. Then the
 * other process writes to its page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and two huge pages of 2M (it adds them).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static long get(const char *path)
{
	FILE *file = fopen(path, "r");
	long value = -1;

	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static void set_pages(long value)
{
	FILE *file = fopen(POOL "nr_hugepages", "w");

	if (file) {
		fprintf(file, "%ld", value);
		fclose(file);
	}
}

static char *map(void)
{
	return mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
}

/* Returns the status of the process that has a reservation, or -1. @again: the second write. */
static int run(int pin, int *again)
{
	int line[2], ready[2], go[2], zero = open("/dev/zero", O_RDONLY), status = -1;
	struct iovec part = { .iov_len = 4096 };
	char *at, byte = 0;
	pid_t other;

	if (zero < 0 || pipe(line) || pipe(ready) || pipe(go))
		return -1;
	other = fork();
	if (!other) {
		at = map();
		if (at == MAP_FAILED || write(ready[1], &byte, 1) != 1 ||
		    read(go[0], &byte, 1) != 1)
			_exit(2);
		*at = 1;
		_exit(0);
	}
	at = map();
	if (other < 0 || at == MAP_FAILED)
		return -1;
	*at = 1;
	part.iov_base = at;
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1 && (!pin || vmsplice(line[1], &part, 1, 0) == 4096) &&
	    !madvise(at, HUGE, MADV_DONTNEED)) {
		/* A system call writes here, so an error is EFAULT, without SIGBUS. */
		*again = read(zero, at, 1) == 1;
		if (write(go[1], &byte, 1) == 1)
			waitpid(other, &status, 0);
	}
	if (status == -1)
		kill(other, SIGKILL);
	munmap(at, HUGE);
	close(line[0]);
	close(line[1]);
	close(ready[0]);
	close(go[0]);
	close(go[1]);
	close(zero);
	return status;
}

int main(void)
{
	long before = get(POOL "nr_hugepages"), unused;
	int alone, pinned, again_alone = 0, again = 0;

	unused = get(POOL "free_hugepages") - get(POOL "resv_hugepages");
	if (before < 0 || get(POOL "nr_overcommit_hugepages")) {
		printf("cannot tell: needs huge pages of 2M, and no overcommit of them\n");
		return 4;
	}
	set_pages(before - unused + 2);
	if (get(POOL "free_hugepages") - get(POOL "resv_hugepages") != 2) {
		printf("cannot tell: needs root and two huge pages\n");
		set_pages(before);
		return 4;
	}
	alone = run(0, &again_alone);
	pinned = run(1, &again);
	set_pages(before);
	if (alone || !again_alone || pinned < 0) {
		printf("cannot tell: the other process ended with %d, and with %d with the pipe\n",
		       alone, pinned);
		return 4;
	}
	if (WIFSIGNALED(pinned) && WTERMSIG(pinned) == SIGBUS) {
		printf("BUG: the process with a reserved page got SIGBUS\n");
		return 1;
	}
	if (again) {
		/* The other process got a page that a third process has reserved. */
		printf("BUG: the first process got a second page, but all pages were reserved\n");
		return 1;
	}
	if (pinned) {
		printf("cannot tell: the process with a reserved page ended with %d\n", pinned);
		return 4;
	}
	printf("OK: only the process with a reserved page got a page\n");
	return 0;
}
