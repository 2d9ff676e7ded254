// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 103: the read of a 1G page with PROT_NONE by a debugger does not end (x86_64).
 *
 * A child calls mprotect(PROT_NONE) for a huge page of 1G. Another child reads the page with
 * ptrace(), and gets SIGKILL after a few seconds if it does not return. As a control, it reads the
 * page before mprotect(). Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4
 * if it cannot tell. Needs a free huge page of 1G:
 *	echo 1 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 0x40000000UL
#define VALUE 0x1234567L
#define AREA ((void *)0x100000000000)	/* free in the address space of a small program */
#define SECONDS 10

static void tracee(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mmap(AREA, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		 MAP_FIXED | 30 << 26, -1, 0) != AREA)
		_exit(4);
	*(long *)AREA = VALUE;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	if (mprotect(AREA, SIZE, PROT_NONE))
		_exit(4);
	raise(SIGSTOP);
	_exit(0);
}

/* Sends a byte before each read, and a byte after it: r(ight) or w(rong). */
static void tracer(int out)
{
	pid_t pid = fork();
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!pid)
		tracee();
	for (int step = 0; step < 2; step++) {
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			_exit(4);
		ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL);
		if (write(out, "s", 1) != 1)
			_exit(4);
		errno = 0;
		if (write(out, ptrace(PTRACE_PEEKDATA, pid, AREA, NULL) == VALUE ? "r" : "w",
			  1) != 1)
			_exit(4);
		ptrace(PTRACE_CONT, pid, NULL, NULL);
	}
	_exit(0);
}

/* The next byte of the pipe, or 't' if there is none for some seconds, or 'x' at the end. */
static char next_byte(int fd, int seconds)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&poll_fd, 1, seconds * 1000) != 1)
		return 't';
	return read(fd, &byte, 1) == 1 ? byte : 'x';
}

int main(void)
{
	char start, before, again, after;
	int out[2];
	pid_t pid;

	if (pipe(out))
		return 4;
	pid = fork();
	if (!pid) {
		close(out[0]);
		tracer(out[1]);
	}
	close(out[1]);
	start = next_byte(out[0], 300);
	before = next_byte(out[0], 300);
	again = next_byte(out[0], 300);
	after = next_byte(out[0], SECONDS);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (start != 's' || before != 'r' || again != 's') {
		printf("cannot tell: no free huge page of 1G, or no ptrace()\n");
		return 4;
	}
	if (after == 'r') {
		printf("OK\n");
		return 0;
	}
	if (after == 't')
		printf("BUG: ptrace() does not return within %d seconds\n", SECONDS);
	else
		printf("BUG: ptrace() does not read the page\n");
	return 1;
}
