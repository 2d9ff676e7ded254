// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 32: a copy of the huge zero page is not protected by userfaultfd.
 *
 * Map a huge page of zeros by a read, protect it, and let gup_test take a long-term pin of it for
 * reading. Then write to each page. Each write must fail: this program asked userfaultfd for
 * SIGBUS, so read() into such a page fails with EFAULT.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, debugfs and CONFIG_GUP_TEST=y. Devices pin memory in the same way, for example RDMA
 * devices that only read the memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* mm/gup_test.h */
struct pin_longterm_test {
	__u64 addr;
	__u64 size;
	__u32 flags;
};

#define PIN_LONGTERM_TEST_START _IOW('g', 7, struct pin_longterm_test)

static unsigned long huge_page_size(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r");
	unsigned long size = 0;

	if (f && fscanf(f, "%lu", &size) != 1)
		size = 0;
	if (f)
		fclose(f);
	return size;
}

int main(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	int device = open("/sys/kernel/debug/gup_test", O_RDWR);
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	unsigned long size = huge_page_size(), page = sysconf(_SC_PAGESIZE), i;
	struct pin_longterm_test pin = { .size = size };
	int zeros = open("/dev/zero", O_RDONLY), ends[2];
	unsigned int trapped = 0;
	char *at;

	if (!size || uffd < 0 || device < 0 || ioctl(uffd, UFFDIO_API, &api)) {
		printf("cannot tell: needs root, huge pages, userfaultfd and CONFIG_GUP_TEST=y\n");
		return 4;
	}
	at = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		printf("cannot tell: no memory\n");
		return 4;
	}
	at = (char *)(((uintptr_t)at + size - 1) & -size);
	area.range.start = (uintptr_t)at;
	area.range.len = size;
	on.range = area.range;
	pin.addr = area.range.start;
	/* write() reads the first byte, so the kernel maps the huge zero page. */
	if (pipe(ends) || madvise(at, size, MADV_HUGEPAGE) ||
	    ioctl(uffd, UFFDIO_REGISTER, &area) || write(ends[1], at, 1) != 1 ||
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &on) || ioctl(device, PIN_LONGTERM_TEST_START, &pin)) {
		perror("cannot tell");
		return 4;
	}
	for (i = 0; i < size; i += page)
		trapped += read(zeros, at + i, 1) < 0;
	printf("%s: %u of %lu writes to protected pages trapped\n",
	       trapped == size / page ? "OK" : "BUG", trapped, size / page);
	return trapped != size / page;
}
