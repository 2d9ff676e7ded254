// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 69: MADV_DOFORK refuses hugetlb memory, so MADV_DONTFORK cannot be undone.
 *
 * Call MADV_DONTFORK and then MADV_DOFORK, and let a child of fork() read the memory: small
 * pages, and private and shared hugetlb pages. The child must have the content each time.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs root, to get a huge page.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL "/proc/sys/vm/nr_hugepages"
#define CONTENT 7

/* Returns the first number in a file after a prefix, or -1. */
static long number(const char *path, const char *prefix)
{
	FILE *file = fopen(path, "r");
	char line[128];
	long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, prefix, strlen(prefix)) &&
		    sscanf(line + strlen(prefix), "%ld", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

static void set_pool(long pages)
{
	FILE *file = fopen(POOL, "w");

	if (!file)
		return;
	fprintf(file, "%ld", pages);
	fclose(file);
}

/* Returns 1 if a child has the content after both calls, 0 if it does not, or -1. */
static int child_has(const char *name, int flags, long size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	int error, status, has;
	pid_t child;

	if (at == MAP_FAILED)
		return -1;
	at[0] = CONTENT;
	if (madvise(at, size, MADV_DONTFORK))
		return -1;
	error = madvise(at, size, MADV_DOFORK) ? errno : 0;
	child = fork();
	if (!child)
		_exit(at[0] != CONTENT);
	if (waitpid(child, &status, 0) != child)
		return -1;
	has = WIFEXITED(status) && !WEXITSTATUS(status);
	printf("%s: MADV_DOFORK: %s; child: %s\n", name, error ? strerror(error) : "ok",
	       WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) :
	       has ? "has the content" : "has other content");
	munmap(at, size);
	return has;
}

int main(void)
{
	long before = number(POOL, ""), size = number("/proc/meminfo", "Hugepagesize:") << 10;
	int small, private, shared;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (before < 0 || size <= 0)
		return 4;
	set_pool(before + 1);
	small = child_has("small pages", MAP_PRIVATE, sysconf(_SC_PAGESIZE));
	private = child_has("private hugetlb", MAP_PRIVATE | MAP_HUGETLB, size);
	shared = child_has("shared hugetlb", MAP_SHARED | MAP_HUGETLB, size);
	set_pool(before);
	if (small != 1 || private < 0 || shared < 0) {
		printf("cannot tell\n");
		return 4;
	}
	if (!private || !shared) {
		printf("BUG: children do not have the hugetlb memory after MADV_DOFORK\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
