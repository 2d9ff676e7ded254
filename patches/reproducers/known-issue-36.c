// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 36: MADV_GUARD_INSTALL never ends if userfaultfd protects the pages of a file.
 *
 * Protect 16 pages of a memory file against writes, and turn them into guard pages. A timer ends
 * the call after three seconds.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
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
#include <unistd.h>

#define PAGES 16
#define SECONDS 3

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static sigjmp_buf back;

static void on_alarm(int signal)
{
	siglongjmp(back, signal);
}

int main(void)
{
	size_t size = PAGES * sysconf(_SC_PAGESIZE);
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	int fd = syscall(__NR_memfd_create, "guards", 0);
	char *at, *plain;

	if (fd < 0 || ftruncate(fd, size))
		return 4;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	plain = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	area.range.start = (unsigned long)at;
	area.range.len = size;
	on.range = area.range;
	if (at == MAP_FAILED || plain == MAP_FAILED || madvise(plain, size, MADV_GUARD_INSTALL)) {
		printf("cannot tell: needs guard pages in files (6.15)\n");
		return 4;
	}
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &area) ||
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &on)) {
		printf("cannot tell: needs write protection by userfaultfd\n");
		return 4;
	}
	signal(SIGALRM, on_alarm);
	if (sigsetjmp(back, 1)) {
		printf("BUG: MADV_GUARD_INSTALL did not end in %d seconds\n", SECONDS);
		return 1;
	}
	alarm(SECONDS);
	if (madvise(at, size, MADV_GUARD_INSTALL)) {
		perror("BUG: MADV_GUARD_INSTALL");
		return 1;
	}
	printf("OK: MADV_GUARD_INSTALL ended\n");
	return 0;
}
