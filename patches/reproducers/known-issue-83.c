// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 83: a lost hugetlb page must not become a page of zeros.
 *
 * Fork two children. One shares a hugetlb page with its parent, the other marks the page as lost.
 * The parent writes to the page while the pool is empty. The mark must still raise SIGBUS.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and two huge pages of 2M (it adds them).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

/* Mark a page as lost. Returns 0 on success. */
static int mark(char *at)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_POISON };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), failed;
	struct uffdio_poison poison = {};

	area.range.start = (unsigned long)at;
	area.range.len = HUGE;
	poison.range = area.range;
	failed = uffd < 0 || madvise(at, HUGE, MADV_DONTNEED) || ioctl(uffd, UFFDIO_API, &api) ||
		 ioctl(uffd, UFFDIO_REGISTER, &area) || ioctl(uffd, UFFDIO_POISON, &poison);
	close(uffd);
	return failed;
}

/* In a child: wait until the parent has closed the pipe, and read. Returns 0 for SIGBUS. */
static int wait_and_read(const char *at, int go[2][2], int number)
{
	char byte;

	close(go[0][1]);
	close(go[1][1]);
	return read(go[number][0], &byte, 1) ? 3 : try_read(at) == -1 ? 0 : 1;
}

static int end_of(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int main(void)
{
	long before = get(POOL "nr_hugepages"), used = before - unused();
	int go[2][2], ready[2], first_end, second_end;
	pid_t first, second;
	char *at, has = 0;

	if (before < 0 || get(POOL "nr_overcommit_hugepages") || pipe(go[0]) || pipe(go[1]) ||
	    pipe(ready)) {
		printf("cannot tell: needs huge pages of 2M, and no overcommit of them\n");
		return 4;
	}
	set_pages(used + 1);
	at = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
	if (at == MAP_FAILED) {
		printf("cannot tell: needs root, and a huge page\n");
		set_pages(before);
		return 4;
	}
	memset(at, 1, HUGE);
	second = fork();
	if (!second) {
		has = !mark(at) && try_read(at) == -1;
		_exit(write(ready[1], &has, 1) == 1 ? wait_and_read(at, go, 1) : 3);
	}
	if (read(ready[0], &has, 1) != 1 || !has || unused()) {
		printf("cannot tell: needs UFFDIO_POISON, and no other user of the pool\n");
		set_pages(before);
		return 4;
	}
	/* With known issue 10, a child may not have the page of its parent. */
	for (int i = 0; i < 20; i++) {
		first = fork();
		if (!first) {
			has = try_read(at) == 1;
			_exit(write(ready[1], &has, 1) == 1 && has ? wait_and_read(at, go, 0) : 3);
		}
		if (read(ready[0], &has, 1) != 1 || has)
			break;
		end_of(first);
	}
	if (!has) {
		printf("cannot tell: no child has the page of its parent\n");
		set_pages(before);
		return 4;
	}
	at[0] = 2;	/* takes the page from the first child */
	close(go[0][1]);
	first_end = end_of(first);
	set_pages(used + 2);
	if (first_end || unused() != 1) {
		printf("cannot tell: the child did not lose the page, or the pool cannot grow\n");
		set_pages(before);
		return 4;
	}
	close(go[1][1]);
	second_end = end_of(second);
	munmap(at, HUGE);
	set_pages(before);
	if (second_end == 1) {
		printf("BUG: a child can read the page that it marked as lost\n");
		return 1;
	}
	if (second_end) {
		printf("cannot tell: the child did not end\n");
		return 4;
	}
	printf("OK\n");
	return 0;
}
