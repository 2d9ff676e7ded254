// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 42: pages of a file lose their protection against all accesses (RWP).
 *
 * Let MADV_COLLAPSE make a huge page of a file in memory, protect it against all accesses, and read
 * each page. Each read must fail. As a control, do the same with single pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, huge pages, and a kernel with UFFDIO_RWPROTECT (7.3).
 */
#define _GNU_SOURCE
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
/* include/uapi/linux/userfaultfd.h of 7.3; older headers lack these. */
#define FEATURE_RWP 0x20000
#define REGISTER_RWP 0x8
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

/*
 * How many pages write() can read. write() fails for a page that is protected.
 */
static int readable(const char *at, long size)
{
	int ends[2], count = 0;
	char byte;

	if (pipe(ends))
		return -1;
	for (unsigned long page = 0; page < HUGE / size; page++)
		if (write(ends[1], at + page * size, 1) == 1)
			count += read(ends[0], &byte, 1) == 1;
	close(ends[0]);
	close(ends[1]);
	return count;
}

/* Returns how many protected pages are readable, or -1. */
static int try(int huge)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURE_RWP | UFFD_FEATURE_SIGBUS };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register where = { .mode = REGISTER_RWP };
	struct uffdio_writeprotect on = { .mode = 1 };
	int fd = memfd_create("file", 0), found;
	long size = sysconf(_SC_PAGESIZE);
	char *area, *at;

	area = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || fd < 0 || ftruncate(fd, HUGE))
		return -1;
	at = (char *)(((uintptr_t)area + HUGE - 1) & -HUGE);
	at = mmap(at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED)
		return -1;
	memset(at, 1, HUGE);
	where.range = (struct uffdio_range){ (uintptr_t)at, HUGE };
	on.range = where.range;
	if ((huge && madvise(at, HUGE, MADV_COLLAPSE)) || uffd < 0 ||
	    ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &where) ||
	    ioctl(uffd, RWPROTECT, &on))
		return -1;
	found = readable(at, size);
	close(uffd);
	munmap(area, 2 * HUGE);
	close(fd);
	return found;
}

int main(void)
{
	int single = try(0), huge = try(1);

	if (single || huge < 0) {
		printf("cannot tell: needs root, huge pages, and UFFDIO_RWPROTECT\n");
		return 4;
	}
	printf("%s: %d pages of a protected huge page of a file can be read\n",
	       huge ? "BUG" : "OK", huge);
	return huge > 0;
}
