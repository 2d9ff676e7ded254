// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 95: UFFDIO_COPY after the end of a file must fail with EFAULT.
 *
 * Map a file, cut it to half of its size, and copy a page to the other half. This is done with
 * private and shared mappings of a file in memory and of a file of huge pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and two huge pages of the default size (it adds them).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POOL "/proc/sys/vm/nr_hugepages"

static sigjmp_buf back;

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

static bool can_read(const char *at)
{
	signal(SIGBUS, on_sigbus);
	if (sigsetjmp(back, 1))
		return false;
	asm volatile("" : : "r" (*at) : "memory");
	return true;
}

static long memory(const char *format)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long value = 0;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, format, &value);
	if (file)
		fclose(file);
	return value;
}

static void set_pool(long pages)
{
	FILE *file = fopen(POOL, "w");

	if (file) {
		fprintf(file, "%ld", pages);
		fclose(file);
	}
}

/* Returns 0 if the copy fails with EFAULT and the page raises SIGBUS, 1 if not, or else 4. */
static int copy_after_end(const char *what, unsigned int memfd_flags, int map_flags, size_t size)
{
	const int prot = PROT_READ | PROT_WRITE;
	int fd = memfd_create("known-issue-95", memfd_flags), error = 0;
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_copy copy = {};
	char *source, *at;
	bool after;

	source = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || uffd < 0 || source == MAP_FAILED || ftruncate(fd, 2 * size))
		return 4;
	memset(source, 1, size);
	at = mmap(NULL, 2 * size, prot, map_flags | MAP_NORESERVE, fd, 0);
	where.range.start = (unsigned long)at;
	where.range.len = 2 * size;
	copy.dst = (unsigned long)at;
	copy.src = (unsigned long)source;
	copy.len = size;
	if (at == MAP_FAILED || ftruncate(fd, size) || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &where) || ioctl(uffd, UFFDIO_COPY, &copy) ||
	    can_read(at + size)) {
		printf("%s: cannot tell: %s\n", what, strerror(errno));
		return 4;
	}
	copy.dst += size;
	if (ioctl(uffd, UFFDIO_COPY, &copy))
		error = errno;
	after = can_read(at + size);
	printf("%s: UFFDIO_COPY gives: %s; an access %s\n", what, strerror(error),
	       after ? "succeeds" : "raises SIGBUS");
	munmap(at, 2 * size);
	munmap(source, size);
	close(uffd);
	close(fd);
	return error != EFAULT || after;
}

int main(void)
{
	long before = memory("HugePages_Total: %ld"), unused, huge = memory("Hugepagesize: %ld");
	size_t page = sysconf(_SC_PAGESIZE);
	int result;

	result = copy_after_end("private file", 0, MAP_PRIVATE, page);
	result |= copy_after_end("shared file", 0, MAP_SHARED, page);
	unused = memory("HugePages_Free: %ld") - memory("HugePages_Rsvd: %ld");
	set_pool(before - unused + 2);
	unused = memory("HugePages_Free: %ld") - memory("HugePages_Rsvd: %ld");
	if (huge && unused >= 2) {
		result |= copy_after_end("private huge file", MFD_HUGETLB, MAP_PRIVATE, huge << 10);
		result |= copy_after_end("shared huge file", MFD_HUGETLB, MAP_SHARED, huge << 10);
	} else {
		printf("no huge pages, so only files of small pages were tried\n");
	}
	set_pool(before);
	if (result & 1)
		printf("BUG: a copy after the end of a file does not fail with EFAULT\n");
	else if (!result)
		printf("OK\n");
	return result & 1 ? 1 : result;
}
