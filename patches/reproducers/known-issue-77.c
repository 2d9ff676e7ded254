// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 77: an allocation that fails must not lower the limit of a hugetlbfs mount.
 *
 * Mount hugetlbfs with a limit of two pages. The pool has no page, so fallocate() fails twice. Then
 * the pool gets two pages. fallocate() must succeed now.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and two huge pages of 2M (it adds them).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define LIMIT 2

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

int main(void)
{
	char folder[] = "/tmp/known-issue-77.XXXXXX";
	long before = get(POOL "nr_hugepages"), used = before - unused();
	int root, fd, failures = 0, after;
	struct statfs about;

	if (before < 0 || get(POOL "nr_overcommit_hugepages") || !mkdtemp(folder) ||
	    mount("none", folder, "hugetlbfs", 0, "pagesize=2M,size=4M")) {
		printf("cannot tell: needs root, huge pages of 2M, and no overcommit of them\n");
		return 4;
	}
	root = open(folder, O_RDONLY | O_DIRECTORY);
	fd = openat(root, ".", O_TMPFILE | O_RDWR, 0600);
	umount2(folder, MNT_DETACH);
	rmdir(folder);

	set_pages(used);
	for (int i = 0; i < LIMIT && !unused(); i++)
		failures += !!fallocate(fd, 0, 0, HUGE);
	set_pages(used + LIMIT);
	if (fd < 0 || failures != LIMIT || unused() != LIMIT || fstatfs(root, &about)) {
		printf("cannot tell: another process uses the pool, or the pool cannot grow\n");
		set_pages(before);
		return 4;
	}
	after = fallocate(fd, 0, 0, LIMIT * HUGE);
	close(fd);
	set_pages(before);
	printf("%d failures, then statfs reports %ld free pages of %d\n", failures,
	       (long)about.f_bfree, LIMIT);
	if (about.f_bfree == LIMIT && !after) {
		printf("OK\n");
		return 0;
	}
	printf("BUG: the limit is lower after failures, although the mount has no page\n");
	return 1;
}
