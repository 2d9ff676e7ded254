// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 44: UFFDIO_MOVE refuses a missing page that is protected.
 *
 * Protect one of two missing pages against writes, and move a page to each of them. Both moves must
 * succeed. Then move two holes with UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES. One of the holes is
 * protected. The kernel must skip both holes.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root.
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

/* The pages at the old place: two pages, a hole, a protected hole. */
#define PAGES 4
#define HOLES 2

static char *place(int uffd, long size)
{
	struct uffdio_register where = {
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};
	char *at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || madvise(at, PAGES * size, MADV_NOHUGEPAGE))
		return NULL;
	memset(at, 1, HOLES * size);
	where.range = (struct uffdio_range){ (uintptr_t)at, PAGES * size };
	return ioctl(uffd, UFFDIO_REGISTER, &where) ? NULL : at;
}

static int protect(int uffd, char *at, long size)
{
	struct uffdio_writeprotect on = {
		.range = { (uintptr_t)at, size },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &on);
}

static int move(int uffd, char *to, char *from, long size)
{
	struct uffdio_move arguments = {
		.dst = (uintptr_t)to,
		.src = (uintptr_t)from,
		.len = size,
		.mode = UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES,
	};

	return ioctl(uffd, UFFDIO_MOVE, &arguments) ? errno : 0;
}

int main(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_MOVE,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), errors[PAGES], wrong = 0;
	long size = sysconf(_SC_PAGESIZE);
	char *from, *to;

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) {
		printf("cannot tell: needs root, and UFFDIO_MOVE\n");
		return 4;
	}
	from = place(uffd, size);
	to = place(uffd, size);
	if (!from || !to || madvise(to, PAGES * size, MADV_DONTNEED) ||
	    protect(uffd, to + size, size) || protect(uffd, from + 3 * size, size))
		return 4;
	for (int page = 0; page < PAGES; page++)
		errors[page] = move(uffd, to + page * size, from + page * size, size);
	if (errors[0] || errors[2]) {
		printf("cannot tell: UFFDIO_MOVE: %s\n", strerror(errors[0] | errors[2]));
		return 4;
	}
	wrong = errors[1] || errors[3];
	printf("%s: move to a protected missing page: %s; skip a protected hole: %s\n",
	       wrong ? "BUG" : "OK", strerror(errors[1]), strerror(errors[3]));
	return wrong;
}
