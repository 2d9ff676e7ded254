// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 57: MADV_FREE of a page merged by KSM drops the pages of other processes.
 *
 * Let KSM merge two pages, and write to one of them. Now only the other page maps the KSM page.
 * Call MADV_FREE on it. Then let KSM merge a page of a child with the same content, and reclaim
 * this page. The child never calls MADV_FREE, so it must still read its content.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root and KSM. It lets KSM scan for at most 20 seconds.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KSM "/sys/kernel/mm/ksm/"

static long size;

static long get(const char *path)
{
	FILE *file = fopen(path, "r");
	long value = -1;

	if (file && fscanf(file, "%ld", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

static void set(const char *path, long value)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return;
	fprintf(file, "%ld", value);
	fclose(file);
}

/* Returns the page frame of an address, or 0. */
static unsigned long long frame(char *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	unsigned long long entry = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &entry, 8, (unsigned long)at / size * 8) != 8 || !(entry >> 63))
		entry = 0;
	close(fd);
	return entry & ((1ULL << 55) - 1);
}

/* Makes a page that KSM may merge. All pages have the same content. */
static char *new_page(void)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	for (long i = 0; i < size; i++)
		at[i] = 1 + i * 7 % 101;
	return madvise(at, size, MADV_MERGEABLE) ? NULL : at;
}

/* Waits until a page has a page frame. */
static int wait_for(char *at, unsigned long long wanted)
{
	for (int i = 0; i < 1000; i++) {
		if (frame(at) == wanted)
			return 1;
		usleep(10000);
	}
	return 0;
}

/*
 * The process that never calls MADV_FREE. Its exit code is 0 if it still has
 * its content.
 */
static int other_process(unsigned long long shared, int ready, int go)
{
	char *at = new_page(), byte;
	int lost = 0;

	if (!at || !wait_for(at, shared))
		return 4;
	if (write(ready, "", 1) != 1 || read(go, &byte, 1) != 1)
		return 4;
	/* Reclaim the page, as memory pressure does. */
	madvise(at, size, MADV_PAGEOUT);
	for (long i = 0; i < size; i++)
		lost += at[i] != 1 + i * 7 % 101;
	return lost ? 1 : 0;
}

static int run(void)
{
	char *first = new_page(), *second = new_page(), byte;
	int ready[2], go[2], status = -1;
	unsigned long long shared = 0;
	pid_t child;

	if (!first || !second || pipe(ready) || pipe(go))
		return 4;
	for (int i = 0; i < 1000; i++) {
		shared = frame(first);
		if (shared && shared == frame(second))
			break;
		usleep(10000);
		shared = 0;
	}
	if (!shared)
		return 4;
	second[0] = 0;
	/* The second call empties the queue of this CPU. */
	if (madvise(first, size, MADV_FREE) || madvise(first, size, MADV_FREE))
		return 4;
	child = fork();
	if (!child) {
		close(ready[0]);
		munmap(first, size);
		munmap(second, size);
		_exit(other_process(shared, ready[1], go[0]));
	}
	close(ready[1]);
	if (child > 0 && read(ready[0], &byte, 1) == 1) {
		/* MADV_PAGEOUT works if only one process maps the page. */
		munmap(first, size);
		if (write(go[1], "", 1) != 1)
			return 4;
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 4;
	return WEXITSTATUS(status);
}

int main(void)
{
	long was_run = get(KSM "run"), was_sleep = get(KSM "sleep_millisecs");
	cpu_set_t cpu;
	int result;

	size = sysconf(_SC_PAGESIZE);
	/*
	 * Stay on one CPU, so that this process can empty the queue of the CPU.
	 */
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	if (was_run < 0) {
		printf("cannot tell: needs KSM\n");
		return 4;
	}
	set(KSM "sleep_millisecs", 10);
	set(KSM "run", 1);
	result = run();
	set(KSM "run", was_run == 1);
	set(KSM "sleep_millisecs", was_sleep);
	if (result == 4)
		printf("cannot tell: needs root, and KSM did not merge the pages\n");
	else
		printf("%s: another process called MADV_FREE on its own page; my page %s\n",
		       result ? "BUG" : "OK", result ? "lost its content" : "has its content");
	return result;
}
