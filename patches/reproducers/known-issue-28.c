// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 28: mremap() of one page removes the userfaultfd registration of
 * its neighbours.
 *
 * Register 64 pages. Then move page 40 over page 20, without UFFD_FEATURE_EVENT_REMAP.
 * Pages 0 to 19 are still missing and were not moved, so a read of page 0 must raise
 * SIGBUS, which UFFD_FEATURE_SIGBUS asks for.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell.
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

#define PAGES 64

static sigjmp_buf back;

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

static int watched(char *at)
{
	if (sigsetjmp(back, 1))
		return 1;
	asm volatile("" : : "r" (*at) : "memory");
	return 0;
}

int main(void)
{
	size_t size = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	char *at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int before, after;

	area.range.start = (unsigned long)at;
	area.range.len = PAGES * size;
	if (uffd < 0 || at == MAP_FAILED || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &area)) {
		printf("cannot tell: needs SIGBUS of userfaultfd\n");
		return 4;
	}
	signal(SIGBUS, on_sigbus);
	before = watched(at);
	if (!before) {
		printf("cannot tell: page 0 is not watched before mremap()\n");
		return 4;
	}
	if (mremap(at + 40 * size, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at + 20 * size) !=
	    at + 20 * size) {
		printf("cannot tell: mremap() fails\n");
		return 4;
	}
	after = watched(at);
	if (!after)
		printf("page 0 was registered and is missing, but a read gives %d\n", *at);
	printf("%s\n", after ? "OK" : "BUG");
	return !after;
}
