// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 10: after fork() the child finds zeros in a private hugetlb page.
 *
 * The hugetlb page has its entry in a table of PTEs or of PUDs (64K or 1G with 4K pages). Free the
 * pages of a file and call fork(), so that page tables of the child reuse these pages. Then the
 * child must read what the parent wrote to the page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root. On arm64 it adds two pages of 64K to the pool. On other machines, set SIZE to a
 * page size whose pool has two free pages, for example 1073741824.
 * Usage: known-issue-10 [SIZE]
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

/* Pages of the file: more than the page tables of a small process. */
#define PAGES 512
#define TRIES 8

/* No page table below the top level covers this much. */
#define SPAN (4UL << 40)

/* Add @more huge pages of this size to the pool; returns how many it had before, or -1. */
static long pool(size_t size, long more)
{
	char path[128], value[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages",
		 size / 1024);
	fd = open(path, O_RDWR);
	if (fd < 0 || read(fd, value, sizeof(value) - 1) <= 0)
		return -1;
	if (more) {
		char next[32];

		snprintf(next, sizeof(next), "%ld", atol(value) + more);
		if (write(fd, next, strlen(next)) < 0)
			return -1;
	}
	close(fd);
	return atol(value);
}

/* A file of ramfs: its pages come from the same memory as page tables. */
static int ramfs(void)
{
	char folder[] = "/tmp/known-issue-10.XXXXXX";
	int dir, fd = -1;

	if (!mkdtemp(folder))
		return -1;
	if (!mount("none", folder, "ramfs", 0, NULL)) {
		dir = open(folder, O_RDONLY | O_DIRECTORY);
		fd = openat(dir, ".", O_TMPFILE | O_RDWR, 0600);
		close(dir);
		umount2(folder, MNT_DETACH);
	}
	rmdir(folder);
	return fd;
}

/* Free the pages of the file: the next page tables reuse them, with their old index. */
static int free_pages(int fd)
{
	size_t page = sysconf(_SC_PAGESIZE);

	for (int i = 0; i < PAGES; i++)
		if (pwrite(fd, "", 1, i * page) != 1)
			return 0;
	return !ftruncate(fd, 0);
}

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoul(argv[1], NULL, 0) : 0x10000;
	int order = __builtin_ctzl(size), fd = ramfs(), bug = 0, tries = 0;
	char *room = mmap(NULL, 2 * SPAN, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = (char *)(((unsigned long)room + SPAN - 1) & -SPAN);
	long had = pool(size, argc > 1 ? 0 : 2);
	cpu_set_t cpus;

	/* Each CPU keeps the pages that it freed, so stay on this CPU. */
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (room == MAP_FAILED || had < 0 || fd < 0 || sched_setaffinity(0, sizeof(cpus), &cpus)) {
		printf("cannot tell: needs root, ramfs, and huge pages of %zu kB\n", size / 1024);
		return 4;
	}
	if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		 MAP_FIXED | order << MAP_HUGE_SHIFT, -1, 0) != at) {
		printf("cannot tell: no free huge page of %zu kB\n", size / 1024);
		return 4;
	}
	memset(at, 1, 64);
	while (!bug && tries++ < TRIES && free_pages(fd)) {
		int status;
		pid_t child = fork();

		if (!child)
			_exit(at[0] != 1);
		waitpid(child, &status, 0);
		bug = status != 0;
	}
	if (argc <= 1)
		pool(size, -2);
	printf("the parent wrote 1; the child read %s (try %d)\n", bug ? "0" : "1", tries);
	printf("%s\n", bug ? "BUG" : "OK");
	return bug;
}
