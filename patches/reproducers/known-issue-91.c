// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 91: a thread must not read what only a child has written to its private hugetlb page.
 *
 * A process shares a private huge page with its child, and drops it with MADV_DONTNEED. The range
 * of the call also has many empty page tables, so the call takes long. As soon as the page has one
 * mapping, the child writes to it. A thread of the parent reads all the time. As a control, the
 * child writes after the call.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, three CPUs, and four huge pages of the size that a PMD maps (it adds them).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/types.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENTRIES 32768UL
#define ROUNDS 100
#define CONTROLS 5
#define FIRST 1

enum { WROTE, LATE, FAILED };

static struct shared {
	atomic_uint value;	/* what the child writes */
	atomic_ulong old;	/* how often the thread has read FIRST */
	atomic_ulong leaked;	/* how often it has read the child's value */
	atomic_bool ready, ended, stop;
} *s;

static atomic_uint *word;
static char pool[64];

static long get(const char *name)
{
	char path[128];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", pool, name);
	file = fopen(path, "r");
	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static void set_pages(long value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/nr_hugepages", pool);
	file = fopen(path, "w");
	if (file) {
		fprintf(file, "%ld", value);
		fclose(file);
	}
}

static bool run_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return !sched_setaffinity(0, sizeof(one), &one);
}

static void *read_word(void *unused)
{
	run_on(1);
	while (!s->stop) {
		unsigned int value = *word;

		if (value == FIRST)
			s->old++;
		else if (value && value == s->value)
			s->leaked++;
	}
	return NULL;
}

/* Read one word of a file, or return 0. */
static __u64 entry(int fd, __u64 number)
{
	__u64 value = 0;

	if (pread(fd, &value, sizeof(value), number * sizeof(value)) != sizeof(value))
		return 0;
	return value;
}

static int child(bool control)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	int kpagecount = open("/proc/kpagecount", O_RDONLY);
	__u64 frame;
	bool late;

	if (!run_on(2) || *word != FIRST)
		return FAILED;
	frame = entry(pagemap, (uintptr_t)word / sysconf(_SC_PAGESIZE)) & ((1ULL << 55) - 1);
	if (!frame || entry(kpagecount, frame) != 2)
		return FAILED;
	s->ready = true;
	while (!s->ended && (control || entry(kpagecount, frame) != 1))
		;
	*word = s->value;
	late = s->ended;
	while (!s->ended)
		usleep(100);
	if (control)
		usleep(10000);
	return late ? LATE : WROTE;
}

/* Returns whether the child wrote during the call. *leaks counts the rounds with a leak. */
static bool one_round(size_t length, bool control, int *leaks)
{
	int status = 0;
	pid_t pid;

	*word = FIRST;
	s->value++;
	s->ready = false;
	s->ended = false;
	s->leaked = 0;
	pid = fork();
	if (!pid)
		_exit(child(control));
	while (!s->ready)
		if (pid < 0 || waitpid(pid, &status, WNOHANG))
			return false;
	for (unsigned long before = s->old; s->old < before + 2;)
		sched_yield();
	madvise((void *)word, length, MADV_DONTNEED);
	s->ended = true;
	waitpid(pid, &status, 0);
	*leaks += !!s->leaked;
	return WIFEXITED(status) && WEXITSTATUS(status) == WROTE;
}

int main(void)
{
	size_t page = sysconf(_SC_PAGESIZE), size = page * (page / 8), span = size * (page / 8);
	int controls = 0, leaks = 0, rounds = 0, wrote = 0;
	size_t length = ENTRIES * size;
	pthread_t reader;
	long before;
	char *room;

	snprintf(pool, sizeof(pool), "/sys/kernel/mm/hugepages/hugepages-%zukB", size >> 10);
	before = get("nr_hugepages");
	if (before < 0 || page > 16384 || geteuid() || sysconf(_SC_NPROCESSORS_ONLN) < 3) {
		printf("cannot tell: needs root, three CPUs, and huge pages of %zuK\n", size >> 10);
		return 4;
	}
	set_pages(before - get("free_hugepages") + get("resv_hugepages") + 4);
	s = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	room = mmap(NULL, length + span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	word = (void *)(((uintptr_t)room + span - 1) & -span);
	if (room == MAP_FAILED || s == MAP_FAILED ||
	    mmap((void *)word, length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE | MAP_FIXED |
		 __builtin_ctzl(size) << 26, -1, 0) == MAP_FAILED ||
	    get("free_hugepages") - get("resv_hugepages") < 4) {
		printf("cannot tell: not enough memory\n");
		set_pages(before);
		return 4;
	}
	for (char *at = (char *)word; at < (char *)word + length; at += span) {
		*at = FIRST;
		madvise(at, size, MADV_DONTNEED);
	}
	run_on(0);
	*word = FIRST;
	s->value = FIRST;
	if (pthread_create(&reader, NULL, read_word, NULL))
		return 4;
	for (int i = 0; i < CONTROLS; i++)
		one_round(length, true, &controls);
	for (; rounds < ROUNDS && leaks < 3; rounds++)
		wrote += one_round(length, false, &leaks);
	s->stop = true;
	pthread_join(reader, NULL);
	munmap(room, length + span);
	set_pages(before);
	printf("the child wrote during the call in %d of %d rounds, the thread read this in %d\n",
	       wrote, rounds, leaks);
	if (controls || !wrote) {
		printf("cannot tell: %s\n", controls ? "the control fails" : "no write in time");
		return 4;
	}
	if (leaks) {
		printf("BUG: a thread reads what only another process has written\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
