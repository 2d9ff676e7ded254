// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 46: MADV_UNMERGEABLE stops at the first page that is protected against all
 * accesses (RWP).
 *
 * Let KSM merge sixteen equal pages, protect the first page by UFFDIO_RWPROTECT, and call
 * MADV_UNMERGEABLE. Each page must then have its own frame. Prints OK and exits with 0, or prints
 * BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, CONFIG_KSM=y, and a kernel with UFFDIO_RWPROTECT (7.3). It restores the settings of
 * KSM.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 16
/* include/uapi/linux/userfaultfd.h of 7.3; older headers lack these. */
#define FEATURE_RWP 0x20000
#define REGISTER_RWP 0x8
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)
#define KSM "/sys/kernel/mm/ksm/"

static const struct {
	const char *path, *value;
} settings[] = {
	{ KSM "use_zero_pages", "0" },
	{ KSM "sleep_millisecs", "10" },
	{ KSM "pages_to_scan", "1000" },
	{ KSM "run", "1" },
};

#define NR (sizeof(settings) / sizeof(*settings))

static char saved[NR][32];

static int set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY), done = fd >= 0 && write(fd, value, strlen(value)) > 0;

	close(fd);
	return done;
}

static void restore(void)
{
	for (unsigned int i = 0; i < NR; i++)
		set(settings[i].path, saved[i]);
}

static unsigned long long frame(const char *at, long size)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	unsigned long long entry = 0;

	if (pread(fd, &entry, sizeof(entry), (uintptr_t)at / size * sizeof(entry)) < 0)
		entry = 0;
	close(fd);
	return entry & ((1ULL << 55) - 1);
}

/* How many pages share their frame with another page. */
static int merged(const char *at, long size)
{
	int page, other, shared = 0;

	for (page = 0; page < PAGES; page++)
		for (other = 0; other < PAGES; other++)
			if (other != page &&
			    frame(at + other * size, size) == frame(at + page * size, size)) {
				shared++;
				break;
			}
	return shared;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | FEATURE_RWP };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register area = { .mode = REGISTER_RWP };
	struct uffdio_writeprotect on = { .mode = 1 };
	long size = sysconf(_SC_PAGESIZE);
	int page, left;
	char *at;

	at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (page = 0; page < PAGES && at != MAP_FAILED; page++)
		memset(at + page * size, 0x5a, size);
	area.range = (struct uffdio_range){ (uintptr_t)at, PAGES * size };
	on.range = (struct uffdio_range){ (uintptr_t)at, size };
	if (at == MAP_FAILED || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &area) || !frame(at, size)) {
		printf("cannot tell: needs root, and UFFDIO_RWPROTECT\n");
		return 4;
	}
	for (unsigned int i = 0; i < NR; i++) {
		int fd = open(settings[i].path, O_RDONLY);

		if (fd < 0 || read(fd, saved[i], sizeof(saved[i]) - 1) <= 0) {
			printf("cannot tell: needs CONFIG_KSM=y\n");
			return 4;
		}
		close(fd);
	}
	atexit(restore);
	madvise(at, PAGES * size, MADV_MERGEABLE);
	for (unsigned int i = 0; i < NR; i++)
		set(settings[i].path, settings[i].value);
	for (int i = 0; i < 600 && merged(at, size) < PAGES; i++)
		usleep(100000);
	if (merged(at, size) < PAGES) {
		printf("cannot tell: KSM does not merge the pages within a minute\n");
		return 4;
	}
	set(KSM "run", "0");
	if (ioctl(uffd, RWPROTECT, &on) || madvise(at, PAGES * size, MADV_UNMERGEABLE)) {
		printf("cannot tell: UFFDIO_RWPROTECT or MADV_UNMERGEABLE failed\n");
		return 4;
	}
	left = merged(at, size);
	printf("%s: %d of %d pages are still merged\n", left ? "BUG" : "OK", left, PAGES);
	return left != 0;
}
