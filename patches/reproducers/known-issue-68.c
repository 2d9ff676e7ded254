// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 68: MADV_COLLAPSE of shared memory forgets that pages were written to.
 *
 * Put a huge page into a file by a read, map it by PTEs, and write to all of it. After
 * MADV_COLLAPSE and MADV_PAGEOUT the memory must have the written data. Needs no swap. Prints OK
 * and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell. Needs root, to
 * make a tmpfs with huge=always at /mnt.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SIZE (2UL << 20)

/* Keeps the compiler from removing reads. */
unsigned char sink;

static char *map(int fd)
{
	char *at = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return MAP_FAILED;
	at = (char *)(((uintptr_t)at + SIZE - 1) & -SIZE);
	return mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
}

int main(void)
{
	char *first, *at;
	unsigned long i, lost = 0;
	int fd;

	if (mount("none", "/mnt", "tmpfs", 0, "huge=always")) {
		perror("mount");
		return 4;
	}
	fd = open("/mnt/file", O_CREAT | O_RDWR, 0600);
	if (fd < 0 || ftruncate(fd, SIZE))
		return 4;
	first = map(fd);
	at = map(fd);
	if (first == MAP_FAILED || at == MAP_FAILED)
		return 4;
	sink += *first;
	munmap(first, SIZE);
	madvise(at, SIZE, MADV_NOHUGEPAGE);
	for (i = 0; i < SIZE; i += 4096)
		sink += at[i];
	for (i = 0; i < SIZE; i++)
		at[i] = 1;
	madvise(at, SIZE, MADV_HUGEPAGE);
	if (madvise(at, SIZE, MADV_COLLAPSE)) {
		perror("MADV_COLLAPSE");
		return 4;
	}
	for (i = 0; i < 3; i++)
		madvise(at, SIZE, MADV_PAGEOUT);
	for (i = 0; i < SIZE; i++)
		lost += at[i] != 1;
	if (lost) {
		printf("BUG: %lu of %lu bytes lost what was written\n", lost, SIZE);
		return 1;
	}
	printf("OK: the memory keeps what is written\n");
	return 0;
}
