// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 38: a page of a file that UFFDIO_POISON marked as lost can be read in a child.
 *
 * Mark one page of a file in memory as lost. A read must raise SIGBUS, in a child too.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

/* Whether a page can be read. */
static int readable(const char *at)
{
	if (sigsetjmp(back, 1))
		return 0;
	asm volatile("" : : "r" (*at) : "memory");
	return 1;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_POISON };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	int fd = syscall(__NR_memfd_create, "lost", 0), status = -1;
	size_t size = sysconf(_SC_PAGESIZE);
	struct uffdio_poison mark = {};
	char *at;
	pid_t child;

	if (fd < 0 || ftruncate(fd, size) || write(fd, "stale", 5) != 5)
		return 4;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	area.range.start = (unsigned long)at;
	area.range.len = size;
	mark.range = area.range;
	if (at == MAP_FAILED || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &area) || ioctl(uffd, UFFDIO_POISON, &mark)) {
		printf("cannot tell: needs UFFDIO_POISON\n");
		return 4;
	}
	signal(SIGBUS, on_sigbus);
	if (readable(at)) {
		printf("cannot tell: the mark has no effect\n");
		return 4;
	}
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(readable(at));
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 4;
	if (WEXITSTATUS(status))
		printf("BUG: the child can read the lost page\n");
	else
		printf("OK: the page is lost in the child, too\n");
	return WEXITSTATUS(status);
}
