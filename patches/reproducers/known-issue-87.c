// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 87: a thread reads old content after another thread has written new content.
 *
 * CPU 0 calls MADV_FREE and MADV_PAGEOUT for 32 pages, again and again. A thread on CPU 1 reads the
 * first page all the time. A third thread writes to the first page while reclaim runs. If there are
 * three CPUs, it runs on CPU 2, and waits with mincore() until reclaim has taken the page. If there
 * are two CPUs, it runs on CPU 0, and wakes up at random moments, so that it interrupts reclaim.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
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
static atomic_bool stop, reclaim;
static long cpus;
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

/* Wait for the moment to write. */
static void wait_for_reclaim(void)
{
	struct timespec pause = { .tv_nsec = 1 + random() % (4 * reclaim_ns + 1) };
	unsigned char resident = 1;

	if (cpus < 3) {
		nanosleep(&pause, NULL);
		return;
	}
	while (!stop && (!reclaim || mincore(area, size, &resident) || resident & 1))
		;
}

static void *writer(void *unused)
{
	struct sched_param first = { .sched_priority = 1 };

	run_on(cpus < 3 ? 0 : 2);
	if (cpus < 3)
		sched_setscheduler(0, SCHED_FIFO, &first);
	while (!stop) {
		unsigned long end;

		wait_for_reclaim();
		*word = written + 1;
		written++;
		/* The new page is in a list of this CPU. Reclaim cannot take it before this. */
		madvise(area + PAGES * size, size, MADV_COLD);
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
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus < 2)
		return 4;
	size = sysconf(_SC_PAGESIZE);
	area = mmap(NULL, (PAGES + 1) * size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	madvise(area, (PAGES + 1) * size, MADV_NOHUGEPAGE);
	word = (void *)area;
	*word = 1;
	reclaim_ns = 100000;
	run_on(0);
	pthread_create(&threads[0], NULL, reader, NULL);
	pthread_create(&threads[1], NULL, writer, NULL);
	while (now_ns() < end && old < ENOUGH) {
		unsigned long begin = now_ns();

		/* A page that was only read after reclaim is the shared page of zeros. */
		for (int page = 1; page < PAGES; page++)
			area[page * size] = 1;
		*word += 0;
		madvise(area, PAGES * size, MADV_FREE);
		reclaim = true;
		if (madvise(area, PAGES * size, MADV_PAGEOUT))
			return 4;
		reclaim = false;
		reclaim_ns = now_ns() - begin;
	}
	stop = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	printf("%s: %lu old reads, %u writes\n", old ? "BUG" : "OK", old, (unsigned int)written);
	return !!old;
}
