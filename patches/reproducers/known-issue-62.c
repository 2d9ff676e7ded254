// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 62: ptrace() cannot access memory tags through a tagged address (arm64).
 *
 * A system call accepts an address with a tag like the same address without a
 * tag. A process with tagged memory has only such addresses. Read and write the
 * tags of its memory with PTRACE_PEEKMTETAGS and PTRACE_POKEMTETAGS, at the
 * address with and without a tag. Prints OK and exits with 0, or prints BUG and
 * exits with 1. Exits with 4 if it cannot tell. Needs a CPU with MTE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MTE 0x20	/* PROT_MTE */
#define PEEK 33		/* PTRACE_PEEKMTETAGS */
#define POKE 34		/* PTRACE_POKEMTETAGS */

/* Returns the error, or 0. */
static int request(int which, pid_t child, uintptr_t at)
{
	unsigned char tags[16];
	struct iovec io = { tags, sizeof(tags) };

	memset(tags, 5, sizeof(tags));
	return ptrace(which, child, (void *)at, &io) ? errno : 0;
}

int main(void)
{
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | MTE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	uintptr_t tagged = (uintptr_t)at | 5UL << 56;
	int plain, peek, poke, data;
	pid_t child;

	if (at == MAP_FAILED) {
		printf("cannot tell: needs MTE\n");
		return 4;
	}
	prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0);
	*at = 1;
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	plain = request(POKE, child, (uintptr_t)at) ?: request(PEEK, child, (uintptr_t)at);
	peek = request(PEEK, child, tagged);
	poke = request(POKE, child, tagged);
	errno = 0;
	data = (ptrace(PTRACE_PEEKDATA, child, (void *)tagged, NULL) & 255) == 1 && !errno;
	kill(child, SIGKILL);
	if (plain || !data) {
		printf("cannot tell: ptrace() fails without a tag, or for data\n");
		return 4;
	}
	printf("%s: with a tag, PTRACE_PEEKMTETAGS says: %s; PTRACE_POKEMTETAGS says: %s\n",
	       peek || poke ? "BUG" : "OK", strerror(peek), strerror(poke));
	return peek || poke;
}
