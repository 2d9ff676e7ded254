// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 90: a fault on a good page of a large folio maps a poisoned page of the folio.
 *
 * Make a memfd with one folio of 64 KiB, pin a page with vmsplice(), and poison another page. The
 * kernel cannot split the folio. Map the memfd again, store to a good page, and read the bad page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs root. The poisoned page cannot be used until the next boot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define SETTING "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/shmem_enabled"
#define LENGTH 0x10000UL

static sigjmp_buf caught;

static void catch(int number)
{
	siglongjmp(caught, number);
}

static void live_on(int number)
{
	(void)number;
}

static int set(const char *value)
{
	int fd = open(SETTING, O_WRONLY);
	int done = fd >= 0 && write(fd, value, strlen(value)) > 0;

	close(fd);
	return done;
}

/* Read a byte. Returns 0, or the signal that the read raises. */
static int try_read(const char *at)
{
	int number = sigsetjmp(caught, 1);

	signal(SIGBUS, catch);
	if (!number)
		asm volatile("" : : "r" (*at));
	return number;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE;
	long page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("issue", 0), ends[2], alone, after;
	struct iovec pinned;
	char *at, *first, *second;

	if (page > 8192 || pipe(ends) || !set("always")) {
		puts("cannot tell: needs root, and folios of 64 KiB for shared memory");
		return 4;
	}
	at = mmap(NULL, 2 * LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = (char *)(((unsigned long)at + LENGTH - 1) & -LENGTH);
	if (ftruncate(fd, LENGTH) ||
	    mmap(at, LENGTH, prot, MAP_FIXED | MAP_SHARED, fd, 0) == MAP_FAILED)
		return 4;
	memset(at, 1, LENGTH);
	set("never");
	pinned = (struct iovec){ at + 2 * page, page };
	signal(SIGBUS, live_on);
	if (vmsplice(ends[1], &pinned, 1, 0) != page ||
	    !madvise(at + 5 * page, page, MADV_HWPOISON) || errno != EHWPOISON) {
		puts("cannot tell: the page was not poisoned, or the kernel has split the folio");
		return 4;
	}
	munmap(at, LENGTH);

	first = mmap(at, LENGTH, prot, MAP_FIXED | MAP_SHARED, fd, 0);
	alone = try_read(first + 5 * page);
	munmap(first, LENGTH);
	second = mmap(at, LENGTH, prot, MAP_FIXED | MAP_SHARED, fd, 0);
	second[7 * page] = 1;
	after = try_read(second + 5 * page);
	printf("signals of a read of the bad page: %d, and %d after a store to another page\n",
	       alone, after);
	if (alone != SIGBUS)
		return 4;
	puts(after == SIGBUS ? "OK" : "BUG: the store has mapped the bad page");
	return after != SIGBUS;
}
