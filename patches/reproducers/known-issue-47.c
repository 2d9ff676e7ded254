// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 47: After UFFDIO_MOVE of zero pages of KSM, ksm_zero_pages is too high.
 *
 * Let KSM map sixteen pages of zeros to the zero page, move eight of them by UFFDIO_MOVE, and unmap
 * all pages. The process then maps no page that KSM placed, so its ksm_zero_pages must be 0.
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

/* include/uapi/linux/userfaultfd.h of 6.8; older headers lack these. */
#ifndef UFFDIO_MOVE
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};

#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#define UFFD_FEATURE_MOVE 0x10000
#endif

#define PAGES 16
#define MOVED 8
#define KSM "/sys/kernel/mm/ksm/"

static const struct {
	const char *path, *value;
} settings[] = {
	{ KSM "use_zero_pages", "1" },
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

/* How many pages of zeros of this process KSM mapped to the zero page, or -1. */
static long zero_pages(void)
{
	FILE *file = fopen("/proc/self/ksm_stat", "r");
	char line[128];
	long count = -1;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "ksm_zero_pages %ld", &count);
	if (file)
		fclose(file);
	return count;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_MOVE };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_move move = { .mode = 0 };
	long size = sysconf(_SC_PAGESIZE), left;
	char *at, *to;

	at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mmap(NULL, MOVED * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || to == MAP_FAILED || madvise(at, PAGES * size, MADV_MERGEABLE)) {
		printf("cannot tell: needs memory and CONFIG_KSM=y\n");
		return 4;
	}
	memset(at, 0, PAGES * size);
	area.range = (struct uffdio_range){ (uintptr_t)to, MOVED * size };
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &area)) {
		printf("cannot tell: needs root, and UFFDIO_MOVE\n");
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
	for (unsigned int i = 0; i < NR; i++)
		set(settings[i].path, settings[i].value);
	for (int i = 0; i < 600 && zero_pages() < PAGES; i++)
		usleep(100000);
	set(KSM "run", "0");
	if (zero_pages() != PAGES) {
		printf("cannot tell: KSM maps %ld of %d pages to the zero page\n", zero_pages(),
		       PAGES);
		return 4;
	}
	move.src = (uintptr_t)at;
	move.dst = (uintptr_t)to;
	move.len = MOVED * size;
	if (ioctl(uffd, UFFDIO_MOVE, &move)) {
		printf("cannot tell: UFFDIO_MOVE failed\n");
		return 4;
	}
	munmap(at, PAGES * size);
	munmap(to, MOVED * size);
	left = zero_pages();
	printf("%s: without any memory of KSM, ksm_zero_pages is %ld\n", left ? "BUG" : "OK", left);
	return left != 0;
}
