// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 31: a page that KSM replaces loses its write protection by userfaultfd.
 *
 * Protect eight of sixteen equal pages, let KSM merge all pages, and write to the eight pages. Each
 * write must fail: this program asked userfaultfd for SIGBUS, so read() into such a page fails with
 * EFAULT.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root and CONFIG_KSM=y. It restores the settings of KSM.
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
#define PROTECTED 8
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

static int merged(const char *at, long size)
{
	int page, same = 0;

	for (page = 0; page < PAGES; page++)
		same += frame(at + page * size, size) == frame(at, size);
	return same == PAGES;
}

int main(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int page, trapped = 0, zeros = open("/dev/zero", O_RDONLY);
	long size = sysconf(_SC_PAGESIZE);
	char *at;

	at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (page = 0; page < PAGES && at != MAP_FAILED; page++)
		memset(at + page * size, 0x5a, size);
	area.range.start = (uintptr_t)at;
	area.range.len = PROTECTED * size;
	on.range = area.range;
	if (at == MAP_FAILED || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &area) || ioctl(uffd, UFFDIO_WRITEPROTECT, &on) ||
	    !frame(at, size)) {
		printf("cannot tell: needs root, and write protection by userfaultfd\n");
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
	for (int i = 0; i < 600 && !merged(at, size); i++)
		usleep(100000);
	if (!merged(at, size)) {
		printf("cannot tell: KSM does not merge the pages within a minute\n");
		return 4;
	}
	for (page = 0; page < PROTECTED; page++)
		trapped += read(zeros, at + page * size, 1) < 0;
	printf("%s: %d of %d writes to protected pages trapped\n",
	       trapped == PROTECTED ? "OK" : "BUG", trapped, PROTECTED);
	return trapped != PROTECTED;
}
