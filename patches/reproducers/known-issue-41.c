// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 41: pages keep their protection when their content is discarded,
 * so PAGEMAP_SCAN does not report their new content.
 *
 * Write to eight pages, protect them as an incremental copy does, and discard
 * four of them. MADV_DONTNEED discards them in anonymous memory and in a
 * private mapping of a file, and MADV_REMOVE discards them in a shared mapping.
 * Read the pages, which are zeros now. PAGEMAP_SCAN must report four pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if
 * it cannot tell. Needs root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 8
#define DISCARDED 4

/* How many pages PAGEMAP_SCAN reports as written to. Returns -1 if it cannot scan. */
static int written(const char *at, long size)
{
	struct page_region regions[PAGES];
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.start = (uintptr_t)at,
		.end = (uintptr_t)at + PAGES * size,
		.vec = (uintptr_t)regions,
		.vec_len = PAGES,
		.category_mask = PAGE_IS_WRITTEN,
		.return_mask = PAGE_IS_WRITTEN,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY), found, pages = 0;

	found = ioctl(fd, PAGEMAP_SCAN, &arguments);
	close(fd);
	for (int i = 0; i < found; i++)
		pages += (regions[i].end - regions[i].start) / size;
	return found < 0 ? -1 : pages;
}

/* Returns how many of the discarded pages are reported, or -1. */
static int try(const char *what, int flags, int fd, int advice)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED |
			    UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), reported;
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	long size = sysconf(_SC_PAGESIZE);
	char *at;

	at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED)
		return -1;
	memset(at, 1, PAGES * size);
	where.range = (struct uffdio_range){ (uintptr_t)at, PAGES * size };
	on.range = where.range;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &where) ||
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &on) || written(at, size) ||
	    madvise(at, DISCARDED * size, advice))
		return -1;
	for (int page = 0; page < PAGES; page++)
		if (at[page * size] != (page < DISCARDED ? 0 : 1))
			return -1;
	reported = written(at, size);
	printf("%s: %d of %d pages with new content are reported\n", what, reported, DISCARDED);
	munmap(at, PAGES * size);
	close(uffd);
	return reported;
}

int main(void)
{
	int fd = memfd_create("file", 0), anon, private, shared;

	if (fd < 0 || ftruncate(fd, PAGES * sysconf(_SC_PAGESIZE)))
		return 4;
	anon = try("anonymous", MAP_PRIVATE | MAP_ANONYMOUS, -1, MADV_DONTNEED);
	private = try("private mapping of a file", MAP_PRIVATE, fd, MADV_DONTNEED);
	shared = try("shared mapping of a file", MAP_SHARED, fd, MADV_REMOVE);
	if (anon != DISCARDED || private < 0 || shared < 0) {
		printf("cannot tell: needs root, and PAGEMAP_SCAN\n");
		return 4;
	}
	printf("%s\n", private == DISCARDED && shared == DISCARDED ? "OK" : "BUG");
	return private != DISCARDED || shared != DISCARDED;
}
