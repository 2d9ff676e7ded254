// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 72: after a read error of swap, swapoff() does not end.
 *
 * A file in memory has two pages in swap. The first page cannot be read, and a hole removes it.
 * swapoff() must still find the second page. The swap area is a partition of /dev/ram0. While the
 * partition is shorter, reads fail.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and /dev/ram0, which it overwrites.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/blkpg.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DISK "/dev/ram0"
#define AREA "/dev/ram0p1"
#define SECONDS 5

static int partition(int disk, int op, long long length)
{
	struct blkpg_partition part = { .length = length, .pno = 1 };
	struct blkpg_ioctl_arg arg = { .op = op, .datalen = sizeof(part), .data = &part };

	return ioctl(disk, BLKPG, &arg);
}

/* Make a swap area and use it before others. Returns the descriptor of the disk, or -1. */
static int add_swap(unsigned long long *size)
{
	const long page = sysconf(_SC_PAGESIZE);
	char *header = calloc(1, page);
	int disk, i;

	swapoff(DISK);
	disk = open(DISK, O_RDWR);
	if (disk < 0 || ioctl(disk, BLKGETSIZE64, size) || *size < 1 << 20)
		return -1;
	((uint32_t *)header)[256] = 1;
	((uint32_t *)header)[257] = *size / page - 1;
	memcpy(header + page - 10, "SWAPSPACE2", 10);
	if (pwrite(disk, header, page, 0) != page || fsync(disk))
		return -1;
	free(header);
	if (partition(disk, BLKPG_ADD_PARTITION, *size))
		return -1;
	for (i = 0; i < 20 && access(AREA, F_OK); i++)
		usleep(100000);
	if (!swapon(AREA, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK))
		return disk;
	partition(disk, BLKPG_DEL_PARTITION, 0);
	return -1;
}

/* Lets swap read 2^@to pages at once. Returns the old value of page-cluster. */
static int set_cluster(int to)
{
	FILE *file = fopen("/proc/sys/vm/page-cluster", "r+");
	int old = -1;

	if (file) {
		if (fscanf(file, "%d", &old) != 1)
			old = -1;
		rewind(file);
		fprintf(file, "%d", to);
		fclose(file);
	}
	return old;
}

/* Returns whether swapoff() ends. If it does not, a signal ends it. */
static int swapoff_ends(void)
{
	time_t end = time(NULL) + SECONDS;
	pid_t child = fork();
	int status;

	if (!child)
		_exit(swapoff(AREA) ? errno : 0);
	while (time(NULL) <= end) {
		if (waitpid(child, &status, WNOHANG) == child)
			return !status;
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return 0;
}

int main(void)
{
	const long page = sysconf(_SC_PAGESIZE);
	int file = memfd_create("file", 0), disk, cluster, failed, end;
	unsigned long long size;
	unsigned char there[2] = { 1, 1 };
	char *at, byte;

	disk = add_swap(&size);
	if (disk < 0) {
		printf("cannot tell: no swap area on %s: %s\n", DISK, strerror(errno));
		return 4;
	}
	if (file < 0 || ftruncate(file, 2 * page))
		return 4;
	at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		return 4;
	memset(at, 1, 2 * page);
	madvise(at, 2 * page, MADV_PAGEOUT);
	mincore(at, 2 * page, there);

	/* Only the page with the header is left. The kernel must not read the second page too. */
	cluster = set_cluster(0);
	partition(disk, BLKPG_RESIZE_PARTITION, page);
	failed = pread(file, &byte, 1, 0) == -1 && errno == EIO;
	partition(disk, BLKPG_RESIZE_PARTITION, size);
	set_cluster(cluster);

	fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page);
	end = swapoff_ends();
	if (at[page] != 1)
		printf("the second page has lost its content\n");
	if (!end)
		swapoff(AREA);
	partition(disk, BLKPG_DEL_PARTITION, 0);
	if (there[0] & 1 || there[1] & 1 || !failed) {
		printf("cannot tell: %s\n", failed ? "the file is not in swap" : "no read error");
		return 4;
	}
	printf("%s: after a read error swapoff() %s\n", end ? "OK" : "BUG",
	       end ? "ends" : "does not end");
	return !end;
}
