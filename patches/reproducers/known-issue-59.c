// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 59: writes to a dma-buf of a memfd are lost after the dma-buf is closed.
 *
 * Make a dma-buf (udmabuf) from a memfd, write to the dma-buf, and close it. The memfd has the same
 * memory, so it must keep the written data, even if the kernel reclaims memory. The same steps with
 * a memfd that was written to before are the control.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs CONFIG_UDMABUF=y, and access to /dev/udmabuf.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 64

static long size;

/* Counts the pages that lose a write to the dma-buf. Returns -1 on failure. */
static int check(int write_before)
{
	int memfd = memfd_create("reproducer", MFD_ALLOW_SEALING);
	int dev = open("/dev/udmabuf", O_RDWR), buf, lost = 0, before = 0;
	struct udmabuf_create create = {};
	char *dma, *mem;

	if (memfd < 0 || dev < 0 || ftruncate(memfd, size * PAGES))
		return -1;
	for (int i = 0; write_before && i < PAGES; i++)
		if (pwrite(memfd, "x", 1, i * size) != 1)
			return -1;
	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	create.memfd = memfd;
	create.size = size * PAGES;
	buf = ioctl(dev, UDMABUF_CREATE, &create);
	if (buf < 0)
		return -1;
	dma = mmap(NULL, size * PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	mem = mmap(NULL, size * PAGES, PROT_READ, MAP_SHARED, memfd, 0);
	if (dma == MAP_FAILED || mem == MAP_FAILED)
		return -1;
	for (int i = 0; i < PAGES; i++)
		dma[i * size] = 7;
	for (int i = 0; i < PAGES; i++)
		before += mem[i * size] == 7;
	munmap(dma, size * PAGES);
	close(buf);
	close(dev);
	/* Reclaim the pages, as memory pressure does. */
	madvise(mem, size * PAGES, MADV_PAGEOUT);
	for (int i = 0; i < PAGES; i++)
		lost += mem[i * size] != 7;
	munmap(mem, size * PAGES);
	close(memfd);
	return before == PAGES ? lost : -1;
}

int main(void)
{
	int lost;

	size = sysconf(_SC_PAGESIZE);
	if (check(1)) {
		printf("cannot tell: needs /dev/udmabuf\n");
		return 4;
	}
	lost = check(0);
	if (lost < 0) {
		printf("cannot tell: udmabuf failed\n");
		return 4;
	}
	printf("%s: of %d pages %d lost what was written\n", lost ? "BUG" : "OK", PAGES, lost);
	return lost != 0;
}
