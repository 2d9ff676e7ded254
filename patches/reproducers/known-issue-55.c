// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 55: fork() counts zero pages of KSM that the child does not get.
 *
 * Let KSM merge pages of zeros in a mapping with MADV_DONTFORK, and fork. The child maps none of
 * these pages, so ksm_zero_pages must not change, and must have its first value
 * again after both processes have ended. Prints OK and exits with 0, or prints
 * BUG and exits with 1. Exits with 4 if it cannot tell. Needs root, and no
 * other use of KSM at the same time.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 64
#define KSM "/sys/kernel/mm/ksm/"

/* Returns the number in a file, or -1. */
static long get(const char *path)
{
	FILE *file = fopen(path, "r");
	long value = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &value) != 1)
		value = -1;
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

/* Lets KSM merge pages of zeros, and forks. Returns 0 if all pages were merged. */
static int merge_and_fork(long before)
{
	long size = sysconf(_SC_PAGESIZE);
	int tenth;
	pid_t child;
	char *at;

	at = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 1;
	madvise(at, PAGES * size, MADV_NOHUGEPAGE);
	memset(at, 1, PAGES * size);
	memset(at, 0, PAGES * size);
	if (madvise(at, PAGES * size, MADV_MERGEABLE) ||
	    madvise(at, PAGES * size, MADV_DONTFORK))
		return 1;
	for (tenth = 0; tenth < 100 && get(KSM "ksm_zero_pages") < before + PAGES; tenth++)
		usleep(100000);
	if (get(KSM "ksm_zero_pages") != before + PAGES)
		return 1;
	child = fork();
	if (!child)
		_exit(0);
	return waitpid(child, NULL, 0) != child;
}

int main(void)
{
	long run = get(KSM "run"), zero = get(KSM "use_zero_pages");
	long pages = get(KSM "pages_to_scan"), sleep_for = get(KSM "sleep_millisecs");
	long before = get(KSM "ksm_zero_pages"), after;
	int status = -1;
	pid_t child;

	if (run || before < 0) {
		printf("cannot tell: needs root, and KSM that is not running\n");
		return 4;
	}
	set(KSM "use_zero_pages", 1);
	set(KSM "pages_to_scan", 10000);
	set(KSM "sleep_millisecs", 10);
	set(KSM "run", 1);
	child = fork();
	if (!child)
		_exit(merge_and_fork(before));
	if (child > 0)
		waitpid(child, &status, 0);
	set(KSM "run", run);
	set(KSM "sleep_millisecs", sleep_for);
	set(KSM "pages_to_scan", pages);
	set(KSM "use_zero_pages", zero);
	after = get(KSM "ksm_zero_pages");
	if (status) {
		printf("cannot tell: KSM merged no pages\n");
		return 4;
	}
	printf("%s: ksm_zero_pages was %ld, and is %ld after all processes ended\n",
	       after == before ? "OK" : "BUG", before, after);
	return after != before;
}
