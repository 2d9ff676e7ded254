// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 93: userfaultfd must fill a private mapping of /dev/zero.
 *
 * A thread reads a missing page, and userfaultfd reports this. UFFDIO_COPY must give the thread the
 * page. As a control, the same is done with MAP_ANONYMOUS.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs no privileges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static void *read_byte(void *at)
{
	asm volatile("" : : "r" (*(char *)at) : "memory");
	return NULL;
}

/* Returns 0 if UFFDIO_COPY works, 1 if it fails with EFAULT, or else 4. */
static int fill(const char *what, char *at, char *source, size_t size)
{
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	struct uffdio_copy copy = {};
	struct uffd_msg event;
	pthread_t thread;
	int error = 0;

	where.range.start = (unsigned long)at;
	where.range.len = size;
	copy.dst = (unsigned long)at;
	copy.src = (unsigned long)source;
	copy.len = size;
	if (at == MAP_FAILED || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &where)) {
		printf("%s: cannot register: %s\n", what, strerror(errno));
		return 4;
	}
	if (pthread_create(&thread, NULL, read_byte, at) || poll(&ready, 1, 10000) != 1 ||
	    read(uffd, &event, sizeof(event)) != sizeof(event)) {
		printf("%s: no event\n", what);
		return 4;
	}
	if (ioctl(uffd, UFFDIO_COPY, &copy))
		error = errno;
	printf("%s: the thread waits, and UFFDIO_COPY gives: %s\n", what, strerror(error));
	close(uffd);	/* wakes the thread */
	pthread_join(thread, NULL);
	return error == EFAULT ? 1 : error ? 4 : 0;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE;
	size_t size = sysconf(_SC_PAGESIZE);
	int zero = open("/dev/zero", O_RDWR), bug;
	char *source = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *anonymous = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *private = mmap(NULL, size, prot, MAP_PRIVATE, zero, 0);

	if (source == MAP_FAILED)
		return 4;
	memset(source, 1, size);
	if (fill("MAP_ANONYMOUS", anonymous, source, size)) {
		printf("cannot tell: the control fails\n");
		return 4;
	}
	bug = fill("/dev/zero", private, source, size);
	if (bug == 1)
		printf("BUG: userfaultfd cannot fill a private mapping of /dev/zero\n");
	else if (!bug)
		printf("OK\n");
	return bug;
}
