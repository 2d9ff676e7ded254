// SPDX-License-Identifier: GPL-2.0
/* arm64, CONFIG_DEBUG_VM=y: do_wp_page() takes the uffd-wp bit from a valid, old entry by set_pte_at(): a warning. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	long page = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = { .api = UFFD_API, .features = 1 << 15 | 1 << 13 };	/* WP_ASYNC, WP_UNPOPULATED */
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC), refs = open("/proc/self/clear_refs", O_WRONLY);
	char *p = mmap(NULL, 16 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register r = { { (long)p, 16 * page }, UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect w = { { (long)p, 16 * page }, UFFDIO_WRITEPROTECT_MODE_WP };
	memset(p, 1, 16 * page);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r) || ioctl(fd, UFFDIO_WRITEPROTECT, &w))
		return perror("userfaultfd"), 1;
	write(refs, "1", 1);	/* the entries are old now */
	for (int i = 0; i < 16; i++)
		p[i * page] = 2;	/* the kernel's log: "racy access flag clearing" */
	return 0;
}
