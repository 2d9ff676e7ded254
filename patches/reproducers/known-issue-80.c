// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 80: if two mappings merge because the name of one changes, guard pages are lost.
 *
 * Give a name to the second half of a shared mapping, make a page of the first half a guard page,
 * and remove the name, so that the halves merge. A child of fork() must have the guard page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static sigjmp_buf caught;

static void catch(int number)
{
	siglongjmp(caught, number);
}

/* Read a byte. Returns 0, or the signal that the read raises. */
static int try_read(const char *at)
{
	int number = sigsetjmp(caught, 1);

	signal(SIGSEGV, catch);
	if (!number)
		asm volatile("" : : "r" (*at));
	return number;
}

/* The signal that the read raises in a child. */
static int in_child(char *at)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(try_read(at));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
	long half = 2 * sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int before, after;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (at == MAP_FAILED)
		return 4;
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at + half, half, "half") ||
	    madvise(at, half / 2, MADV_GUARD_INSTALL)) {
		printf("cannot tell: needs names of mappings, and guard pages\n");
		return 4;
	}
	before = in_child(at);
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at + half, half, NULL)) {
		printf("cannot tell: the name cannot be removed\n");
		return 4;
	}
	after = in_child(at);
	if (before != SIGSEGV || try_read(at) != SIGSEGV) {
		printf("cannot tell: the page is no guard page\n");
		return 4;
	}
	printf("before the merge: signal %d in a child, after the merge: %d\n", before, after);
	if (!after) {
		printf("BUG: the child can read the guard page of its parent\n");
		return 1;
	}
	if (after != SIGSEGV) {
		printf("cannot tell: the child did not run, or did not end\n");
		return 4;
	}
	printf("OK\n");
	return 0;
}
