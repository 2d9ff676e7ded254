// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 67: MADV_COLLAPSE maps a huge page of shared memory that was not zeroed.
 *
 * Let one process fill memory and free it. Another process gets a huge page by fallocate(), maps
 * it, and calls MADV_COLLAPSE. The page must be zero, and must keep the data that is written to it.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, to make a tmpfs with huge=always at /mnt.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SIZE (2UL << 20)
#define LEFT 0xa5

/* Keeps the compiler from removing reads. */
unsigned char sink;

/* Fill memory that the next process may get. */
static void leave(size_t length)
{
	pid_t child = fork();

	if (!child) {
		char *at = mmap(NULL, length, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at != MAP_FAILED)
			memset(at, LEFT, length);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(void)
{
	unsigned long i, old = 0, lost = 0;
	unsigned char *at;
	char *other;
	int fd;

	if (mount("none", "/mnt", "tmpfs", 0, "huge=always")) {
		perror("mount");
		return 4;
	}
	leave(32 * SIZE);
	fd = open("/mnt/file", O_CREAT | O_RDWR, 0600);
	at = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || fallocate(fd, 0, 0, SIZE) || at == MAP_FAILED)
		return 4;
	at = (unsigned char *)(((uintptr_t)at + SIZE - 1) & -SIZE);
	at = mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	other = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED || other == MAP_FAILED)
		return 4;
	madvise(at, SIZE, MADV_COLLAPSE);
	for (i = 0; i < SIZE; i++)
		old += at[i] != 0;
	memset(at, 1, SIZE);
	sink += *other;
	for (i = 0; i < SIZE; i++)
		lost += at[i] != 1;
	if (old || lost) {
		printf("BUG: of %lu bytes %lu are not zero, and %lu lost what was written\n",
		       SIZE, old, lost);
		return 1;
	}
	printf("OK: the memory is zero, and keeps what is written\n");
	return 0;
}
