// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 78: UFFDIO_UNREGISTER does not wake a thread that waits for a protected page.
 *
 * Protect a page against writes with userfaultfd. A thread writes to this page, and waits. When the
 * memory is unregistered, the thread must end. On a kernel with the bug, the thread waits until
 * UFFDIO_WAKE.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs no privileges.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECONDS 5

static int id;

static void *writer(void *at)
{
	__atomic_store_n(&id, syscall(__NR_gettid), __ATOMIC_RELEASE);
	*(char *)at = 2;
	return NULL;
}

/* Whether the thread sleeps before the time is over. wchan is "0" while a thread runs. */
static int sleeps(void)
{
	char path[64], where;

	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan",
		 __atomic_load_n(&id, __ATOMIC_ACQUIRE));
	for (int i = 0; i < SECONDS * 100; i++) {
		int fd = open(path, O_RDONLY), found = read(fd, &where, 1) == 1 && where != '0';

		close(fd);
		if (found)
			return 1;
		usleep(10000);
	}
	return 0;
}

/* Whether the thread ends before the time is over. */
static int ends(pthread_t thread)
{
	for (int i = 0; i < SECONDS * 100; i++) {
		if (!pthread_tryjoin_np(thread, NULL))
			return 1;
		usleep(10000);
	}
	return 0;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	long size = sysconf(_SC_PAGESIZE);
	pthread_t thread;
	char *at;

	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 4;
	memset(at, 1, size);
	where.range = (struct uffdio_range){ (uintptr_t)at, size };
	on.range = where.range;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &where) ||
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &on)) {
		printf("cannot tell: needs write protection by userfaultfd\n");
		return 4;
	}
	if (pthread_create(&thread, NULL, writer, at))
		return 4;
	if (poll(&ready, 1, SECONDS * 1000) != 1 || !sleeps() ||
	    ioctl(uffd, UFFDIO_UNREGISTER, &where.range)) {
		printf("cannot tell: the thread does not wait\n");
		return 4;
	}
	if (ends(thread)) {
		printf("OK: the thread ended\n");
		return 0;
	}
	if (ioctl(uffd, UFFDIO_WAKE, &where.range) || !ends(thread)) {
		printf("cannot tell: the thread waits even after UFFDIO_WAKE\n");
		return 4;
	}
	printf("BUG: the thread waited for %d seconds, until UFFDIO_WAKE\n", SECONDS);
	return 1;
}
