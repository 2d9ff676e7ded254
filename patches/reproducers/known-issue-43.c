// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 43: MADV_GUARD_INSTALL removes pages without notice to a monitor of userfaultfd.
 *
 * Register a page for missing pages, as the receiver of a lazy migration does, and write to it.
 * Then discard its content twice: with MADV_DONTNEED, and with a guard page that is removed again.
 * The monitor must get the event UFFD_EVENT_REMOVE each time. Without the event, the monitor fills
 * the page with the old content at the next access.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root.
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

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

struct call {
	char *at;
	long size;
	int advice;
	int failed;
};

static void *advise(void *arguments)
{
	struct call *call = arguments;

	call->failed = madvise(call->at, call->size, call->advice);
	return NULL;
}

/* Returns whether the call sends an event, or -1 if the call fails. */
static int notifies(int uffd, char *at, long size, int advice)
{
	struct call call = { .at = at, .size = size, .advice = advice };
	struct pollfd ready = { .fd = uffd, .events = POLLIN };
	struct uffd_msg event;
	pthread_t thread;
	int found;

	if (pthread_create(&thread, NULL, advise, &call))
		return -1;
	found = poll(&ready, 1, 2000) == 1 && read(uffd, &event, sizeof(event)) > 0 &&
		event.event == UFFD_EVENT_REMOVE;
	pthread_join(thread, NULL);
	return call.failed ? -1 : found;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), discard, guard;
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	long size = sysconf(_SC_PAGESIZE);
	struct uffdio_copy fill = { .len = size };
	char *at, *old;

	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	old = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || old == MAP_FAILED)
		return 4;
	memset(old, 1, size);
	where.range = (struct uffdio_range){ (uintptr_t)at, size };
	fill.dst = (uintptr_t)at;
	fill.src = (uintptr_t)old;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &where) ||
	    ioctl(uffd, UFFDIO_COPY, &fill)) {
		printf("cannot tell: needs root\n");
		return 4;
	}
	discard = notifies(uffd, at, size, MADV_DONTNEED);
	if (ioctl(uffd, UFFDIO_COPY, &fill))
		return 4;
	guard = notifies(uffd, at, size, MADV_GUARD_INSTALL);
	if (discard != 1 || guard < 0 || madvise(at, size, MADV_GUARD_REMOVE)) {
		printf("cannot tell: needs guard pages\n");
		return 4;
	}
	/* The page is missing now. A monitor that got no event fills it again. */
	if (ioctl(uffd, UFFDIO_COPY, &fill))
		return 4;
	printf("%s: MADV_DONTNEED sends an event, MADV_GUARD_INSTALL sends %s\n",
	       guard ? "OK" : "BUG", guard ? "one" : "none");
	return !guard;
}
