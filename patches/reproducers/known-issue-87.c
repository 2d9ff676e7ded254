// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 87: a thread reads old content after another thread has written new content.
 *
 * CPU 0 calls MADV_FREE and MADV_PAGEOUT for 32 pages, again and again. A second thread on CPU 0
 * wakes up at random moments. If it stops reclaim after reclaim has removed the first page, it
 * writes to a new page. A third thread, on CPU 1, reads the first page all the time.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs two CPUs. As root it needs fewer rounds, because the second thread gets priority.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES 32
#define SECONDS 30
#define ENOUGH 5

static char *area;
static long size;
static atomic_uint *word, written = 1;
static atomic_bool stop;
static atomic_ulong reclaim_ns;
static unsigned long old;

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(4);
}

static unsigned long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000UL + now.tv_nsec;
}

static void *reader(void *unused)
{
	run_on(1);
	while (!stop) {
		unsigned int least = written, got = *word;
		unsigned long begin = now_ns(), more = 0;

		/* Zero: reclaim has dropped the page, and nothing was written since. */
		if (!got || got >= least)
			continue;
		while (*word == got && !stop)
			more++;
		printf("read %u after %u was written, and %lu more times in %lu us\n", got, least,
		       more, (now_ns() - begin) / 1000);
		old++;
	}
	return NULL;
}

static void *writer(void *unused)
{
	struct sched_param first = { .sched_priority = 1 };

	run_on(0);
	sched_setscheduler(0, SCHED_FIFO, &first);
	while (!stop) {
		struct timespec pause = { .tv_nsec = 1 + random() % (4 * reclaim_ns + 1) };
		unsigned long end;

		nanosleep(&pause, NULL);
		*word = written + 1;
		written++;
		end = now_ns() + 30000;
		while (now_ns() < end)
			;
	}
	return NULL;
}

int main(void)
{
	unsigned long end = now_ns() + SECONDS * 1000000000UL;
	pthread_t threads[2];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return 4;
	size = sysconf(_SC_PAGESIZE);
	area = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(area, PAGES * size, MADV_NOHUGEPAGE);
	word = (void *)area;
	*word = 1;
	reclaim_ns = 100000;
	run_on(0);
	pthread_create(&threads[0], NULL, reader, NULL);
	pthread_create(&threads[1], NULL, writer, NULL);
	while (now_ns() < end && old < ENOUGH) {
		unsigned long begin = now_ns();

		for (int page = 1; page < PAGES; page++)
			area[page * size] = 1;
		madvise(area, PAGES * size, MADV_FREE);
		if (madvise(area, PAGES * size, MADV_PAGEOUT))
			return 4;
		reclaim_ns = now_ns() - begin;
	}
	stop = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%s: %lu old reads, %u writes\n", old ? "BUG" : "OK", old, (unsigned int)written);
	return !!old;
}
