// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 50: If no huge page is left, UFFDIO_COPY says that a hugetlb page exists.
 *
 * Register a missing huge page, and call UFFDIO_COPY while the pool is empty. The error must be
 * ENOMEM. EEXIST says that the page exists. So the monitor lets the thread try again, and the
 * thread meets the missing page again.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and a pool without free huge pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns the number in a line of a file, or -1. */
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

int main(void)
{
	long size = number("/proc/meminfo", "Hugepagesize:") << 10;
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), error;
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_copy copy = { .len = size };
	unsigned char present = 1;
	char *at, *from;

	if (size <= 0 || number("/proc/sys/vm/nr_overcommit_hugepages", "") ||
	    number("/proc/meminfo", "HugePages_Free:") !=
	    number("/proc/meminfo", "HugePages_Rsvd:")) {
		printf("cannot tell: needs a pool without free huge pages\n");
		return 4;
	}
	at = mmap(NULL, size, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	from = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || from == MAP_FAILED)
		return 4;
	memset(from, 1, size);
	where.range = (struct uffdio_range){ (uintptr_t)at, size };
	copy.dst = (uintptr_t)at;
	copy.src = (uintptr_t)from;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) || ioctl(uffd, UFFDIO_REGISTER, &where)) {
		printf("cannot tell: needs root\n");
		return 4;
	}
	error = ioctl(uffd, UFFDIO_COPY, &copy) ? errno : 0;
	mincore(at, sysconf(_SC_PAGESIZE), &present);
	if (!error || present & 1) {
		printf("cannot tell: there was a huge page\n");
		return 4;
	}
	printf("%s: no huge page is left, no page is mapped, and UFFDIO_COPY fails with %s\n",
	       error == EEXIST ? "BUG" : "OK", strerror(error));
	return error == EEXIST;
}
