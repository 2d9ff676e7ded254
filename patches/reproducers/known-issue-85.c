// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 85: an empty entry before swap entries is taken for a swap entry (arm64, riscv).
 *
 * Pages 1, 2, 3, ... of a block go to swap, to slots 1, 2, 3, ... Page 0 was never used. Then the
 * program reads page 5, while the kernel may bring back a block of 16 pages. The read must end. On
 * some kernels the read never ends, and on others the kernel dies. The program does this with pages
 * that have content, and with pages of zeros.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, pages of 4K, the kernel parameter cgroup_disable=memory (or CONFIG_MEMCG=n), and
 * /dev/ram0, which it overwrites. There must be no other swap area.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DISK "/dev/ram0"
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define PAGES 16
#define SECONDS 3

static char *at;
static long size;

static int allow(const char *folder, const char *text)
{
	char path[128];
	int fd, right;

	snprintf(path, sizeof(path), THP "%senabled", folder);
	fd = open(path, O_WRONLY);
	right = fd >= 0 && write(fd, text, strlen(text)) > 0;
	close(fd);
	return right;
}

/* Make a new swap area. */
static int add_swap(void)
{
	char *header = calloc(1, size);
	int disk = open(DISK, O_RDWR), right;

	((uint32_t *)header)[256] = 1;
	((uint32_t *)header)[257] = 2 * PAGES - 1;
	memcpy(header + size - 10, "SWAPSPACE2", 10);
	right = disk >= 0 && pwrite(disk, header, size, 0) == size && !fsync(disk);
	close(disk);
	free(header);
	return right && !swapon(DISK, 0);
}

/* The slot of a page in the first swap area, or -1. */
static long slot(const char *page)
{
	unsigned long long entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (pread(fd, &entry, 8, (uintptr_t)page / size * 8) != 8)
		entry = 0;
	close(fd);
	return entry >> 62 & 1 && !(entry & 31) ? (long)(entry >> 5 & ((1UL << 50) - 1)) : -1;
}

static char read_byte(const char *from)
{
	char value = *from;

	asm volatile("" : "+r" (value) : : "memory");
	return value;
}

/* In a child: returns 4 if the pages are in other slots, 1 if a page is wrong, else 0. */
static int swap_and_read(bool zeros)
{
	int wrong = 0;

	for (int i = 1; i < PAGES; i++) {
		memset(at + i * size, zeros ? 0 : i, size);
		madvise(at + i * size, size, MADV_PAGEOUT);
		if (slot(at + i * size) != i)
			return 4;
	}
	/* After fork() the entries are not exclusive: an empty entry may look like one of them. */
	if (!fork())
		_exit(0);
	wait(NULL);
	if (!allow("hugepages-64kB/", "always"))
		return 4;
	read_byte(at + 5 * size);
	for (int i = 0; i < PAGES; i++)
		wrong |= at[i * size] != (zeros ? 0 : i);
	return wrong;
}

/* Returns the exit status of the child, or -1 if the child does not end. */
static int round_of(bool zeros)
{
	time_t end = time(NULL) + SECONDS;
	pid_t child = fork();
	int status;

	if (!child)
		_exit(swap_and_read(zeros));
	while (time(NULL) <= end) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

int main(void)
{
	char *room;

	setvbuf(stdout, NULL, _IOLBF, 0);
	size = sysconf(_SC_PAGESIZE);
	if (size != 4096 || !allow("", "always"))
		return 4;
	room = mmap(NULL, 2 * PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	at = (char *)(((uintptr_t)room + PAGES * size - 1) & -(PAGES * size));
	swapoff(DISK);
	for (int zeros = 0; zeros < 2; zeros++) {
		int end;

		if (!allow("hugepages-64kB/", "never") || !add_swap())
			return 4;
		end = round_of(zeros);
		swapoff(DISK);
		if (end == 4) {
			printf("cannot tell: the pages are in other slots\n");
			return 4;
		}
		if (end) {
			printf("BUG: with pages of %s, the read %s\n", zeros ? "zeros" : "content",
			       end < 0 ? "does not end" : "finds wrong content");
			return 1;
		}
	}
	printf("OK\n");
	return 0;
}
