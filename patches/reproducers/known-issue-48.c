// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 48: punching a hole in a hugetlb file destroys the private pages
 * of processes.
 *
 * Map a file privately, write to a page, and punch a hole into the file there. The written page
 * belongs to the process, so it must keep its content. It keeps its content in a memory file, and
 * in all other files.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POOL "/proc/sys/vm/nr_hugepages"

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

/* Returns the content of a private page after a hole was punched, or -1. */
static int after_hole(unsigned int flags, long size)
{
	int fd = memfd_create("reproducer", flags), content = -1;
	char *at;

	if (fd < 0 || ftruncate(fd, size))
		return -1;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (at != MAP_FAILED) {
		*at = 7;
		if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size))
			content = *at;
		munmap(at, size);
	}
	close(fd);
	return content;
}

int main(void)
{
	long size = number("/proc/meminfo", "Hugepagesize:") << 10, pool = number(POOL, "");
	int small, huge;

	if (size <= 0 || pool < 0) {
		printf("cannot tell: needs huge pages\n");
		return 4;
	}
	/*
	 * Add a huge page for the file, and another huge page in case a write
	 * needs a copy.
	 */
	set_pool(pool + 2);
	small = after_hole(0, sysconf(_SC_PAGESIZE));
	huge = after_hole(MFD_HUGETLB, size);
	set_pool(pool);
	if (small != 7 || huge < 0) {
		printf("cannot tell: needs root, and two huge pages\n");
		return 4;
	}
	printf("%s: 7 was written; after the hole a small page has %d, a huge page has %d\n",
	       huge == 7 ? "OK" : "BUG", small, huge);
	return huge != 7;
}
