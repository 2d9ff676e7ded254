// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 39: UFFDIO_ZEROPAGE refuses a missing page that is protected.
 *
 * Protect a missing page of anonymous memory against writes, and fill it with UFFDIO_ZEROPAGE. As a
 * control, UFFDIO_COPY fills the page next to it. Prints OK and exits with 0, or prints BUG and
 * exits with 1. Exits with 4 if it cannot tell.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_UNPOPULATED };
	struct uffdio_register area = {
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	size_t size = sysconf(_SC_PAGESIZE);
	struct uffdio_zeropage zeros = {};
	struct uffdio_copy copy = {};
	char *at, *page;

	at = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || page == MAP_FAILED)
		return 4;
	memset(page, 1, size);
	area.range.start = (unsigned long)at;
	area.range.len = 2 * size;
	on.range = area.range;
	zeros.range.start = (unsigned long)at;
	zeros.range.len = size;
	copy.dst = (unsigned long)at + size;
	copy.src = (unsigned long)page;
	copy.len = size;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &area) ||
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &on) || ioctl(uffd, UFFDIO_COPY, &copy)) {
		printf("cannot tell: needs protection of missing pages (6.4)\n");
		return 4;
	}
	if (ioctl(uffd, UFFDIO_ZEROPAGE, &zeros)) {
		printf("BUG: UFFDIO_ZEROPAGE of a missing page: %s\n", strerror(errno));
		return 1;
	}
	printf("OK: the page is %s\n", *at ? "not zero" : "zero");
	return !!*at;
}
