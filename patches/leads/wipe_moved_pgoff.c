// SPDX-License-Identifier: GPL-2.0
/* 7.3, CONFIG_DEBUG_VM=y: a child's moved MADV_WIPEONFORK mapping has an offset that is not its address: a warning at a merge. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *p = mmap(NULL, 64 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = p + 48 * page;
	mmap(p, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	*p = 1;
	madvise(p, 3 * page, MADV_WIPEONFORK);
	if (mremap(p, 3 * page, 3 * page, MREMAP_MAYMOVE | MREMAP_FIXED, q) != q)
		return perror("mremap"), 1;
	if (!fork()) {
		/* Split the mapping, and merge it again. */
		mprotect(q + page, page, PROT_READ);
		mprotect(q + page, page, PROT_READ | PROT_WRITE);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
