// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 58: a dma-buf of fallocated memory shows old content, and loses writes.
 *
 * fallocate() gives a memfd pages without content: the kernel zeroes each page at its first use.
 * Make a dma-buf (udmabuf) from such a memfd. The dma-buf must have zeros, and not the data that
 * another process left in the memory. Write to the dma-buf, and read the memfd, which is the same
 * memory. The same steps with a memfd that has holes are the control.
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

#define PAGES 1024
#define OLD 64

static long size;

/* Leave data in memory, and free the memory. */
static void leave_content(void)
{
	size_t all = (size_t)size * PAGES * OLD;
	char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	memset(at, 0x5a, all);
	munmap(at, all);
}

/* Counts pages with old content, and pages that lose a write. Returns 0 on success. */
static int check(int allocate, int *old, int *lost)
{
	int memfd = memfd_create("reproducer", MFD_ALLOW_SEALING);
	int dev = open("/dev/udmabuf", O_RDWR), buf;
	struct udmabuf_create create = {};
	char *dma, *mem;

	if (memfd < 0 || dev < 0)
		return -1;
	if (allocate ? fallocate(memfd, 0, 0, size * PAGES) : ftruncate(memfd, size * PAGES))
		return -1;
	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	create.memfd = memfd;
	create.size = size * PAGES;
	buf = ioctl(dev, UDMABUF_CREATE, &create);
	if (buf < 0)
		return -1;
	dma = mmap(NULL, size * PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
	mem = mmap(NULL, size * PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (dma == MAP_FAILED || mem == MAP_FAILED)
		return -1;
	*old = 0;
	*lost = 0;
	for (long i = 0; i < PAGES; i++) {
		char *page = dma + i * size;

		for (long j = 0; j < size; j++) {
			if (page[j]) {
				*old += 1;
				break;
			}
		}
		page[0] = 7;
		if (mem[i * size] != 7)
			*lost += 1;
	}
	munmap(dma, size * PAGES);
	munmap(mem, size * PAGES);
	close(buf);
	close(dev);
	close(memfd);
	return 0;
}

int main(void)
{
	int old, lost, control_old, control_lost;

	size = sysconf(_SC_PAGESIZE);
	leave_content();
	if (check(0, &control_old, &control_lost) || control_old || control_lost) {
		printf("cannot tell: needs /dev/udmabuf\n");
		return 4;
	}
	if (check(1, &old, &lost)) {
		printf("cannot tell: fallocate() or udmabuf failed\n");
		return 4;
	}
	printf("%s: of %d pages %d had old content, and %d lost what was written\n",
	       old || lost ? "BUG" : "OK", PAGES, old, lost);
	return old || lost;
}
