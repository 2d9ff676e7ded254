// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 100: io_uring must not subtract a huge page twice from the locked memory.
 *
 * Two buffers in one huge page are registered with a ring, and one of them is cloned to a second
 * ring. When all buffers are unregistered, VmPin must be 0.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs no privileges. If root starts it, it becomes another user, because nothing counts for root.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define LIMIT (4 * HUGE)
#define USER 54321
#define CLONE_BUFFERS 30

struct clone_buffers {
	__u32 src_fd, flags, src_off, dst_off, nr, pad[3];
};

static int new_ring(void)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof(params));
	return syscall(__NR_io_uring_setup, 4, &params);
}

static int change(int ring, int what, void *argument, int nr)
{
	return syscall(__NR_io_uring_register, ring, what, argument, nr);
}

static long locked_kib(void)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return (long)kib;
}

int main(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	struct clone_buffers clone = { .src_off = 1, .nr = 1 };
	struct iovec vectors[2];
	long registered, left;
	char *room, *huge;
	int first, second;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	if (!getuid() && (setgroups(0, NULL) || setgid(USER) || setuid(USER)))
		return 4;
	first = new_ring();
	second = new_ring();
	room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (first < 0 || second < 0 || room == MAP_FAILED)
		return 4;
	huge = (char *)(((uintptr_t)room + HUGE - 1) & -HUGE);
	madvise(huge, HUGE, MADV_HUGEPAGE);
	memset(huge, 1, HUGE);

	vectors[0] = (struct iovec){ huge, 65536 };
	vectors[1] = (struct iovec){ huge + 65536, 65536 };
	clone.src_fd = first;
	if (change(first, IORING_REGISTER_BUFFERS, vectors, 2) ||
	    change(second, CLONE_BUFFERS, &clone, 1)) {
		printf("cannot tell: this kernel cannot clone one buffer\n");
		return 4;
	}
	registered = locked_kib();
	change(first, IORING_UNREGISTER_BUFFERS, NULL, 0);
	change(second, IORING_UNREGISTER_BUFFERS, NULL, 0);
	left = locked_kib();
	printf("VmPin: %ld kB with all buffers, %ld kB without\n", registered, left);
	if (registered < (long)(HUGE >> 10)) {
		printf("cannot tell: the buffers are not in a huge page\n");
		return 4;
	}
	if (left) {
		printf("BUG: no buffer is registered, but VmPin is not 0\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
