// SPDX-License-Identifier: GPL-2.0
/* mremap() of one page inside a registered range takes the registration from its neighbours. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static void bus(int n) { write(1, "good: SIGBUS, the page is still watched\n", 40); _exit(0); }
int main(void)
{
	long page = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_SIGBUS };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *p = mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q, line[256];
	struct uffdio_register r = { { (long)p, 64 * page }, UFFDIO_REGISTER_MODE_MISSING };
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &r))
		return perror("userfaultfd"), 1;
	/* Page 40 replaces page 20. Nothing is said about pages 0 to 19. */
	q = mremap(p + 40 * page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, p + 20 * page);
	if (q != p + 20 * page)
		return perror("mremap"), 1;
	signal(SIGBUS, bus);
	printf("bad: page 0 reads %d, although it is missing and was registered\n", *(volatile char *)p);
	return 1;
}
