// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 40: MADV_COLLAPSE maps pages that only a monitor of minor faults may map.
 *
 * Fill a file in memory through one mapping, as the receiver of a live migration does, and register
 * the other mapping for minor faults. UFFDIO_CONTINUE maps one page. Then MADV_COLLAPSE collapses
 * this mapping. An access to any other page must fail.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and huge pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#define HUGE (2UL << 20)

/*
 * How many pages write() can read. write() fails for a page that waits for the
 * monitor.
 */
static int readable(const char *at, long size, const int *ends)
{
	int count = 0;
	char byte;

	for (unsigned long page = 0; page < HUGE / size; page++)
		if (write(ends[1], at + page * size, 1) == 1)
			count += read(ends[0], &byte, 1) == 1;
	return count;
}

int main(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_SIGBUS,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MINOR };
	struct uffdio_continue one = {};
	int fd = memfd_create("file", 0), ends[2], before, after, error;
	long size = sysconf(_SC_PAGESIZE);
	char *area, *at, *fill;

	area = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || fd < 0 || ftruncate(fd, HUGE) || pipe(ends))
		return 4;
	at = (char *)(((uintptr_t)area + HUGE - 1) & -HUGE);
	at = mmap(at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	fill = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED || fill == MAP_FAILED)
		return 4;
	memset(fill, 1, HUGE);
	where.range = (struct uffdio_range){ (uintptr_t)at, HUGE };
	one.range = (struct uffdio_range){ (uintptr_t)at, size };
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &where) ||
	    ioctl(uffd, UFFDIO_CONTINUE, &one)) {
		printf("cannot tell: needs root, and minor faults\n");
		return 4;
	}
	before = readable(at, size, ends);
	error = madvise(at, HUGE, MADV_COLLAPSE) ? errno : 0;
	after = readable(at, size, ends);
	if (before != 1 || (error && error != EINVAL && error != EAGAIN)) {
		printf("cannot tell: %d pages are readable, MADV_COLLAPSE: %s\n", before,
		       strerror(error));
		return 4;
	}
	printf("%s: UFFDIO_CONTINUE mapped 1 page, after MADV_COLLAPSE %d pages are readable\n",
	       after > 1 ? "BUG" : "OK", after);
	return after > 1;
}
