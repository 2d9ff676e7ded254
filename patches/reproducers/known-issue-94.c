// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 94: userfaultfd must accept a System V segment of huge pages.
 *
 * Register such a segment for missing pages. As a control, register a memfd of huge pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root for the segment, but no huge page: nothing touches the memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The default size of huge pages, in bytes, or 0. */
static unsigned long huge_size(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[128];

	while (file && !kib && fgets(line, sizeof(line), file))
		sscanf(line, "Hugepagesize: %lu", &kib);
	if (file)
		fclose(file);
	return kib << 10;
}

/* Returns 0, or the error of UFFDIO_REGISTER, or -1. */
static int watch(const char *what, void *at, unsigned long size)
{
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK), error = 0;
	struct uffdio_api api = { .api = UFFD_API };

	where.range.start = (unsigned long)at;
	where.range.len = size;
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
		return -1;
	if (ioctl(uffd, UFFDIO_REGISTER, &where))
		error = errno;
	printf("%s: UFFDIO_REGISTER gives: %s\n", what, strerror(error));
	close(uffd);
	return error;
}

int main(void)
{
	unsigned long size = huge_size();
	int fd, id, control, error;
	void *file, *segment;

	fd = memfd_create("known-issue-94", MFD_HUGETLB);
	id = shmget(IPC_PRIVATE, size, SHM_HUGETLB | SHM_NORESERVE | IPC_CREAT | 0600);
	if (!size || id < 0 || fd < 0 || ftruncate(fd, size)) {
		printf("cannot tell: needs root, and a kernel with hugetlbfs\n");
		return 4;
	}
	segment = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (segment == (void *)-1 || file == MAP_FAILED) {
		printf("cannot tell: cannot map huge pages\n");
		return 4;
	}
	control = watch("memfd", file, size);
	error = watch("System V segment", segment, size);
	shmdt(segment);
	if (control) {
		printf("cannot tell: the control fails\n");
		return 4;
	}
	if (error == EINVAL) {
		printf("BUG: userfaultfd refuses a System V segment of huge pages\n");
		return 1;
	}
	if (error)
		return 4;
	printf("OK\n");
	return 0;
}
