// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 99: direct I/O that ends early must not leave pinned pages.
 *
 * A loop device has blocks of 4096 bytes. preadv() with O_DIRECT reads into a huge page, one page
 * and 512 bytes, and then to a bad address. The kernel must read only whole blocks by direct I/O.
 * After that, as many pages must be pinned as before.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root for the loop device. Each BUG leaves the memory of one huge page in use until the next
 * boot, so run it in a virtual machine.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/loop.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define BLOCK 4096
#define SECTOR 512

/* The pins of the whole machine. stat_refresh adds the counts of each CPU. */
static long pinned(void)
{
	long acquired = 0, released = 0;
	char line[128];
	FILE *file = fopen("/proc/sys/vm/stat_refresh", "w");

	if (file) {
		fputs("1", file);
		fclose(file);
	}
	file = fopen("/proc/vmstat", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "nr_foll_pin_acquired %ld", &acquired) != 1 &&
		    sscanf(line, "nr_foll_pin_released %ld", &released) != 1)
			continue;
	}
	if (file)
		fclose(file);
	return acquired - released;
}

static int loop_device(int file)
{
	struct loop_config config = {
		.fd = file,
		.block_size = BLOCK,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int control = open("/dev/loop-control", O_RDWR), device;
	char path[32];

	snprintf(path, sizeof(path), "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
	device = open(path, O_RDWR | O_DIRECT);
	return device < 0 || ioctl(device, LOOP_CONFIGURE, &config) ? -1 : device;
}

int main(void)
{
	int file = memfd_create("known-issue-99", 0), device, page = sysconf(_SC_PAGESIZE);
	char *room, *huge, *none;
	struct iovec vectors[2];
	long before, left, done;

	if (ftruncate(file, HUGE))
		return 4;
	device = loop_device(file);
	if (device < 0) {
		printf("cannot tell: no loop device with blocks of %d bytes\n", BLOCK);
		return 4;
	}
	room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	none = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || none == MAP_FAILED)
		return 4;
	huge = (char *)(((uintptr_t)room + HUGE - 1) & -HUGE);
	madvise(huge, HUGE, MADV_HUGEPAGE);
	memset(huge, 1, HUGE);

	vectors[0] = (struct iovec){ huge, page + SECTOR };
	vectors[1] = (struct iovec){ none, BLOCK - SECTOR };
	before = pinned();
	done = preadv(device, vectors, 2, 0);
	left = pinned() - before;
	printf("preadv() read %ld bytes, and %ld pins are left\n", done, left);
	if (done < page || done >= page + BLOCK) {
		printf("cannot tell: the I/O did not end at the bad address\n");
		return 4;
	}
	if (left > 0) {
		printf("BUG: a page of the buffer stays pinned\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
