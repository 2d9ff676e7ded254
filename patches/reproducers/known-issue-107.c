// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 107: a process can have more data than RLIMIT_DATA allows.
 *
 * With an RLIMIT_DATA of 16 MiB, replace 64 MiB of read-only memory by writable memory. In another
 * process, make 64 MiB of read-only memory writable with mprotect(), when the process has almost
 * reached RLIMIT_AS. Both must fail.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALLOWED (16L << 20)
#define SIZE (64L << 20)
#define RW (PROT_READ | PROT_WRITE)

/* The value of a line of /proc/self/status, in KiB; -1 on failure. */
static long kib_of(const char *format)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[200];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		sscanf(line, format, &kib);
	if (file)
		fclose(file);
	return kib;
}

static int limit(int resource, rlim_t value)
{
	struct rlimit limit = { value, value };

	return setrlimit(resource, &limit);
}

/* Map private memory: at @at, or anywhere if @at is NULL. */
static char *map(char *at, int prot)
{
	return mmap(at, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		    (at ? MAP_FIXED : 0), -1, 0);
}

/* Try to get more data. Returns 1 if the limit is exceeded, 0 if not, or 4. */
static int try_it(int by_mprotect)
{
	/* The first call allocates memory for the next ones, which may not get any. */
	long data = kib_of("VmData: %ld");
	char *at;

	if (data < 0 || limit(RLIMIT_DATA, ALLOWED) || map(NULL, RW) != MAP_FAILED)
		return 4;
	at = map(NULL, PROT_READ);
	if (at == MAP_FAILED || !mprotect(at, SIZE, RW))
		return 4;
	if (by_mprotect) {
		if (limit(RLIMIT_AS, kib_of("VmSize: %ld") * 1024 + ALLOWED))
			return 4;
		errno = 0;
		mprotect(at, SIZE, RW);
	} else {
		errno = 0;
		map(at, RW);
	}
	data = kib_of("VmData: %ld");
	printf("%s: %s; VmData is %ld KiB, the limit is %ld KiB\n",
	       by_mprotect ? "mprotect()" : "mmap()", strerror(errno), data, ALLOWED / 1024);
	return data < 0 ? 4 : data > ALLOWED / 1024;
}

int main(void)
{
	int bad = 0;

	setvbuf(stdout, NULL, _IONBF, 0);
	for (int by_mprotect = 0; by_mprotect < 2; by_mprotect++) {
		int result = -1;
		pid_t child = fork();

		if (!child)
			_exit(try_it(by_mprotect));
		if (waitpid(child, &result, 0) != child || !WIFEXITED(result) ||
		    WEXITSTATUS(result) > 1) {
			printf("cannot tell: a call failed, or a control did not fail\n");
			return 4;
		}
		bad += WEXITSTATUS(result);
	}
	if (bad) {
		printf("BUG: the process has more data than RLIMIT_DATA allows\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
