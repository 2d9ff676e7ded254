// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 71: mmap() makes a hugetlb file larger, even if the file has
 * F_SEAL_GROW, or the process may only read the file.
 *
 * Make a mapping that is longer than a file with F_SEAL_GROW. Then let a user make such a mapping
 * of a hugetlbfs file of root, which this user can only read. The files must keep their sizes.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, to get huge pages and to mount a hugetlbfs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL "/proc/sys/vm/nr_hugepages"
#define USER 1000
#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4
#endif

/* Returns the first number in a file after a prefix, or -1. */
static long number(const char *path, const char *prefix)
{
	FILE *file = fopen(path, "r");
	char line[128];
	long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, prefix, strlen(prefix)) &&
		    sscanf(line + strlen(prefix), "%ld", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

static void set_pool(long pages)
{
	FILE *file = fopen(POOL, "w");

	if (!file)
		return;
	fprintf(file, "%ld", pages);
	fclose(file);
}

static void map(const char *name, int flags, int fd, long size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	printf("%s: mmap(): %s\n", name, at == MAP_FAILED ? strerror(errno) : "ok");
	if (at != MAP_FAILED)
		munmap(at, size);
}

/* Returns 1 if the file has another size, 0 if it does not, or -1. */
static int is_larger(int fd, long size)
{
	struct stat file;

	if (fstat(fd, &file))
		return -1;
	printf("  size: %ld kB, before %ld kB\n", (long)file.st_size >> 10, size >> 10);
	return file.st_size != size;
}

/* Returns 1 if a file of memfd_create() grew, 0 if it did not, or -1. */
static int sealed(const char *name, unsigned int memfd, int flags, long size)
{
	int fd = memfd_create("known-issue-71", memfd | MFD_ALLOW_SEALING), larger;

	if (fd < 0 || ftruncate(fd, size) || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) ||
	    !ftruncate(fd, 2 * size))
		return -1;
	map(name, flags, fd, 2 * size);
	larger = is_larger(fd, size);
	close(fd);
	return larger;
}

/* Returns 1 if a user made a file of root larger, 0 if not, or -1. */
static int of_root(long size)
{
	char folder[] = "/tmp/known-issue-71-XXXXXX";
	int at, fd, reader, status, larger = -1;
	pid_t child;

	if (!mkdtemp(folder))
		return -1;
	if (mount("none", folder, "hugetlbfs", 0, "mode=0755")) {
		rmdir(folder);
		return -1;
	}
	at = open(folder, O_RDONLY | O_DIRECTORY);
	fd = openat(at, "file", O_CREAT | O_RDWR, 0644);
	if (fd >= 0 && !fchmod(fd, 0644) && !ftruncate(fd, size)) {
		child = fork();
		if (!child) {
			if (setgid(USER) || setuid(USER) || openat(at, "file", O_RDWR) >= 0)
				_exit(1);
			reader = openat(at, "file", O_RDONLY);
			if (reader < 0)
				_exit(1);
			map("by a user who may only read", MAP_PRIVATE, reader, 2 * size);
			_exit(0);
		}
		if (waitpid(child, &status, 0) == child && !status)
			larger = is_larger(fd, size);
	}
	if (fd >= 0)
		close(fd);
	if (at >= 0)
		close(at);
	umount(folder);
	rmdir(folder);
	return larger;
}

int main(void)
{
	long before = number(POOL, ""), size = number("/proc/meminfo", "Hugepagesize:") << 10;
	int small, shared, private, root;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (before < 0 || size <= 0)
		return 4;
	set_pool(before + 4);
	small = sealed("F_SEAL_GROW, small pages, shared", 0, MAP_SHARED, size);
	shared = sealed("F_SEAL_GROW, hugetlb, shared", MFD_HUGETLB, MAP_SHARED, size);
	private = sealed("F_SEAL_GROW, hugetlb, private", MFD_HUGETLB, MAP_PRIVATE, size);
	root = of_root(size);
	set_pool(before);
	if (small || shared < 0 || private < 0 || root < 0) {
		printf("cannot tell\n");
		return 4;
	}
	if (shared || private || root) {
		printf("BUG: mmap() made a file larger\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
