// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 63: ftruncate() of a hugetlb file must remove private pages after its new end.
 *
 * One thread writes to private pages at the start of a hugetlb file and drops them again, in a
 * loop. Another thread writes to the last page of the same private mapping, and cuts the file
 * before this page. After that an access to the page must fail, as it does without the first
 * thread.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, eight free huge pages (it adds them), and two CPUs.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define PAGES 4
#define SECONDS 5

static char *at;
static int stop;

static void *faults(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (int i = 0; i < PAGES - 1; i++)
			at[i * HUGE] = 1;
		madvise(at, (PAGES - 1) * HUGE, MADV_DONTNEED);
	}
	return unused;
}

/* Counts how often the last page can be read after the file was cut before it. */
static int cut(int file, int line[2], long *tries)
{
	time_t end = time(NULL) + SECONDS;
	char *last = at + (PAGES - 1) * HUGE, byte;
	int kept = 0;

	for (*tries = 0; time(NULL) < end; (*tries)++) {
		if (ftruncate(file, PAGES * HUGE))
			return -1;
		*last = 1;
		if (ftruncate(file, (PAGES - 1) * HUGE))
			return -1;
		/* The access of a system call fails with EFAULT, without SIGBUS. */
		if (write(line[1], last, 1) == 1) {
			kept++;
			if (read(line[0], &byte, 1) != 1)
				return -1;
		}
	}
	return kept;
}

int main(void)
{
	FILE *pool = fopen("/proc/sys/vm/nr_hugepages", "r+");
	int file = memfd_create("truncate", MFD_HUGETLB), line[2], alone, kept;
	long before = 0, tries, tries_alone;
	pthread_t thread;

	if (pool && fscanf(pool, "%ld", &before) == 1) {
		rewind(pool);
		fprintf(pool, "%ld", before + 8);
		fflush(pool);
	}
	if (!pool || file < 0 || pipe(line) || ftruncate(file, PAGES * HUGE))
		return 4;
	at = mmap(NULL, PAGES * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	if (at == MAP_FAILED) {
		printf("cannot tell: needs root and huge pages\n");
		return 4;
	}
	alone = cut(file, line, &tries_alone);
	if (pthread_create(&thread, NULL, faults, NULL))
		return 4;
	kept = cut(file, line, &tries);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	munmap(at, PAGES * HUGE);
	close(file);
	rewind(pool);
	fprintf(pool, "%ld", before);
	fclose(pool);
	if (alone < 0 || kept < 0)
		return 4;
	printf("%s: the page after the end was there %d of %ld times, and %d of %ld times alone\n",
	       kept ? "BUG" : "OK", kept, tries, alone, tries_alone);
	return kept ? 1 : 0;
}
