// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 84: a process must not lose its own hugetlb page when it takes the page back from a
 * child.
 *
 * Map a page of a hugetlb file twice, share it with a child, and write to its first byte while the
 * pool is empty. The rest of the page must keep its content.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and one huge page of 2M (it adds the page).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static sigjmp_buf back;

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

/* Read a byte. Returns it, or -1 for SIGBUS. */
static int try_read(const char *at)
{
	signal(SIGBUS, on_sigbus);
	if (sigsetjmp(back, 1))
		return -1;
	asm volatile("" : : "r" (*at) : "memory");
	return *at;
}

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

static long unused(void)
{
	return get(POOL "free_hugepages") - get(POOL "resv_hugepages");
}

/* Returns the exit status. */
static int run(void)
{
	int fd = memfd_create("known-issue-84", MFD_HUGETLB | 21 << MAP_HUGE_SHIFT);
	int go[2], ready[2], status = -1;
	char *at, *second, byte, has = 0;
	pid_t child;

	if (fd < 0 || ftruncate(fd, HUGE) || pipe(go) || pipe(ready))
		return 4;
	at = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	second = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED || second == MAP_FAILED)
		return 4;
	memset(at, 1, HUGE);
	/* With known issue 10, a child may not have the page of its parent. */
	for (int i = 0; i < 20; i++) {
		child = fork();
		if (!child) {
			close(go[1]);
			has = try_read(at) == 1;
			if (write(ready[1], &has, 1) != 1 || !has || read(go[0], &byte, 1))
				_exit(3);
			_exit(try_read(at) == -1 ? 0 : 2);
		}
		if (read(ready[0], &has, 1) != 1 || has)
			break;
		waitpid(child, &status, 0);
	}
	if (!has || unused())
		return 4;
	at[0] = 2;	/* takes the page from the child */
	close(go[1]);
	if (waitpid(child, &status, 0) != child || status)
		return 4;
	return at[0] == 2 && at[1] == 1 && at[HUGE - 1] == 1 ? 0 : 1;
}

int main(void)
{
	long before = get(POOL "nr_hugepages"), used = before - unused();
	int status;

	if (before < 0 || get(POOL "nr_overcommit_hugepages")) {
		printf("cannot tell: needs huge pages of 2M, and no overcommit of them\n");
		return 4;
	}
	set_pages(used + 1);
	status = run();
	set_pages(before);
	if (status == 4)
		printf("cannot tell: needs root, a huge page, and no other user of the pool\n");
	else if (status)
		printf("BUG: after a write to one byte, the rest of the huge page is lost\n");
	else
		printf("OK\n");
	return status;
}
