// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 92: a page that one process marks as lost must raise SIGBUS only in this process.
 *
 * A process maps a file of huge pages, as large as one page table maps. A child touches the first
 * page, so it shares the page table. Then it marks another page with UFFDIO_POISON. The parent must
 * be able to read this page, and the child must get SIGBUS, even if it has dropped the first page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and four huge pages of the size that a PMD maps (it adds them).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOST 5

static sigjmp_buf back;
static char pool[64];

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

/* Read a byte. Returns 0, or SIGBUS. */
static int try_read(const char *at)
{
	int caught;

	signal(SIGBUS, on_sigbus);
	caught = sigsetjmp(back, 1);
	if (!caught)
		asm volatile("" : : "r" (*at) : "memory");
	return caught;
}

static long get(const char *name)
{
	char path[128];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", pool, name);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static void set_pages(long value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/nr_hugepages", pool);
	file = fopen(path, "w");
	if (file) {
		fprintf(file, "%ld", value);
		fclose(file);
	}
}

/* The child. Each read() of the pipe waits for the parent. Returns 4 if it cannot tell. */
static int poison(char *at, size_t size, size_t span, int to, int from)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_POISON };
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_poison lost = {};
	char byte = 0;

	where.range.start = (unsigned long)at;
	where.range.len = span;
	lost.range.start = (unsigned long)at + LOST * size;
	lost.range.len = size;
	if (try_read(at) || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &where) || ioctl(uffd, UFFDIO_POISON, &lost) ||
	    write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
		return 4;
	if (try_read(at + LOST * size) != SIGBUS || madvise(at, size, MADV_DONTNEED))
		return 4;
	return try_read(at + LOST * size) == SIGBUS ? 0 : 1;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_NORESERVE;
	size_t page = sysconf(_SC_PAGESIZE), size = page * (page / 8), span = size * (page / 8);
	int fd = memfd_create("known-issue-92", MFD_HUGETLB | __builtin_ctzl(size) << 26);
	int to_child[2], to_parent[2], status = 0, parent, child;
	char *room, *at, *second, byte = 0;
	long before;
	pid_t pid;

	snprintf(pool, sizeof(pool), "/sys/kernel/mm/hugepages/hugepages-%zukB", size >> 10);
	before = get("nr_hugepages");
	if (fd < 0 || before < 0 || ftruncate(fd, span) || pipe(to_child) || pipe(to_parent)) {
		printf("cannot tell: no huge pages of %zu kB\n", size >> 10);
		return 4;
	}
	set_pages(before - get("free_hugepages") + get("resv_hugepages") + 4);
	room = mmap(NULL, 3 * span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	at = (char *)(((unsigned long)room + span - 1) & -span);
	second = mmap(at + span, size, prot, flags | MAP_FIXED, fd, LOST * size);
	at = mmap(at, span, prot, flags | MAP_FIXED, fd, 0);
	if (room == MAP_FAILED || at == MAP_FAILED || second == MAP_FAILED || try_read(at)) {
		printf("cannot tell: needs root, and huge pages\n");
		set_pages(before);
		return 4;
	}
	pid = fork();
	if (!pid) {
		close(to_child[1]);
		_exit(poison(at, size, span, to_parent[1], to_child[0]));
	}
	close(to_parent[1]);
	if (pid < 0 || read(to_parent[0], &byte, 1) != 1) {
		printf("cannot tell: UFFDIO_POISON fails\n");
		set_pages(before);
		return 4;
	}
	parent = try_read(at + LOST * size);
	/* From now on the page of the file exists, so no access waits for a monitor. */
	if (try_read(second) || write(to_child[1], &byte, 1) != 1)
		printf("no huge page is left\n");
	close(to_child[1]);
	waitpid(pid, &status, 0);
	child = WIFEXITED(status) ? WEXITSTATUS(status) : 4;
	munmap(room, 3 * span);
	close(fd);
	set_pages(before);
	if (parent)
		printf("BUG: a page that one process marked as lost kills another process\n");
	if (child == 1)
		printf("BUG: a page that is marked as lost can be read\n");
	if (parent || child == 1)
		return 1;
	if (child) {
		printf("cannot tell: the child failed\n");
		return 4;
	}
	printf("OK (or no shared page table)\n");
	return 0;
}
