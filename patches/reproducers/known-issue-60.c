// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 60: ptrace() reads tags of another process, and writes tags that get lost (arm64).
 *
 * PROT_MTE promises that all tags are 0 at first. The kernel clears the tags of a page when it
 * maps the page as readable. Map memory as tagged but not as readable, read its tags by
 * PTRACE_PEEKMTETAGS, write other tags by PTRACE_POKEMTETAGS, and make the memory readable.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs a CPU with MTE.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MTE 0x20	/* PROT_MTE */
#define PEEK 33		/* PTRACE_PEEKMTETAGS */
#define POKE 34		/* PTRACE_POKEMTETAGS */
#define SIZE (64L << 20)

static unsigned char tags[SIZE / 16];

/* Returns how many tags are equal to @tag, or -1 if they cannot be read. */
static long count(pid_t child, char *at, int tag)
{
	struct iovec io = { tags, sizeof(tags) };
	long i, found = 0;

	memset(tags, 0xff, sizeof(tags));
	if (ptrace(PEEK, child, at, &io) || io.iov_len != sizeof(tags))
		return -1;
	for (i = 0; i < (long)sizeof(tags); i++)
		found += tags[i] == tag;
	return found;
}

/* Another process has memory with the tag 10, and exits. */
static void other_process(void)
{
#ifdef __aarch64__
	uintptr_t at;
	long offset;

	if (!fork()) {
		at = (uintptr_t)mmap(NULL, SIZE, PROT_READ | PROT_WRITE | MTE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (offset = 0; offset < SIZE; offset += 16)
			asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]"
				     : : "r"((at + offset) | 10UL << 56) : "memory");
		_exit(0);
	}
	wait(NULL);
#endif
}

int main(void)
{
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec io = { tags, sizeof(tags) };
	long stale, zero, kept;
	pid_t child;

	if (at == MAP_FAILED)
		return 4;
	other_process();
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		memset(at, 1, SIZE);
		if (mprotect(at, SIZE, PROT_NONE | MTE))
			_exit(4);
		raise(SIGSTOP);
		mprotect(at, SIZE, PROT_READ | MTE);
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(child, NULL, 0) != child)
		return 4;
	zero = count(child, at, 0);
	stale = count(child, at, 10);
	memset(tags, 5, sizeof(tags));
	if (zero < 0 || ptrace(POKE, child, at, &io) || io.iov_len != sizeof(tags)) {
		printf("cannot tell: needs MTE\n");
		kill(child, SIGKILL);
		return 4;
	}
	ptrace(PTRACE_CONT, child, 0, 0);
	waitpid(child, NULL, 0);
	kept = count(child, at, 5);
	kill(child, SIGKILL);
	printf("%s: %ld of %ld tags are 0, %ld have the tag of another process; "
	       "%ld keep what ptrace() wrote\n", zero == SIZE / 16 && kept == zero ? "OK" : "BUG",
	       zero, SIZE / 16, stale, kept);
	return zero != SIZE / 16 || kept != SIZE / 16;
}
