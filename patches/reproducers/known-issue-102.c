// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 102: a system call reads a hugetlb page of 1G that is protected against all accesses.
 *
 * Protect a page of each size with UFFDIO_RWPROTECT (7.3). A load of the CPU raises SIGBUS, and
 * process_vm_readv() must fail, too: get_user_pages() has to take a fault for such a page.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs arm64 with pages of 4K, and a free huge page of each size to test, for example:
 *	echo 1 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define VALUE 0x1234567UL

/* From the kernel's headers in 7.3, for older headers. */
#define FEATURE_RWP 0x20000
#define REGISTER_RWP 8
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

static sigjmp_buf back;

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

/* Whether a load raises SIGBUS. */
static int traps(unsigned long *at)
{
	signal(SIGBUS, on_sigbus);
	if (sigsetjmp(back, 1))
		return 1;
	asm volatile("" : : "r" (*at) : "memory");
	return 0;
}

/* Returns 0, 1 for the bug, or 4. */
static int run(unsigned long size)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | FEATURE_RWP };
	struct uffdio_register area = { .mode = REGISTER_RWP };
	struct uffdio_writeprotect how = { .mode = 1 };
	unsigned long value = 0, *at;
	struct iovec to = { &value, sizeof(value) }, from = { NULL, sizeof(value) };
	int uffd, ret = 4;

	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		  __builtin_ctzl(size) << 26, -1, 0);
	if (at == MAP_FAILED)
		return 4;
	*at = VALUE;
	area.range.start = (unsigned long)at;
	area.range.len = size;
	how.range = area.range;
	from.iov_base = at;
	uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api) &&
	    !ioctl(uffd, UFFDIO_REGISTER, &area) && !ioctl(uffd, RWPROTECT, &how) && traps(at)) {
		ret = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(value);
		printf("%lu kB: a load raises SIGBUS, process_vm_readv() %s\n", size >> 10,
		       ret ? "reads the page" : "fails");
	}
	if (uffd >= 0)
		close(uffd);
	munmap(at, size);
	return ret;
}

int main(void)
{
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	struct dirent *entry;
	int tested = 0, bug = 0;
	unsigned long kb;

	while (dir && (entry = readdir(dir))) {
		int ret;

		if (sscanf(entry->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		ret = run(kb << 10);
		tested |= ret != 4 && kb == 1UL << 20;
		bug |= ret == 1;
	}
	if (!tested && !bug) {
		printf("cannot tell: needs a free huge page of 1G, and UFFDIO_RWPROTECT\n");
		return 4;
	}
	printf("%s\n", bug ? "BUG: a system call reads a protected page" : "OK");
	return bug;
}
