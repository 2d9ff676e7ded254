// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 70: a hugetlb file of memfd_create() becomes executable in spite of F_SEAL_EXEC.
 *
 * Call fchmod(0700) for two files with MFD_NOEXEC_SEAL: a file of small pages, which refuses the
 * call, and a file of hugetlb pages. Prints OK and exits with 0, or prints BUG and exits with 1.
 * Exits with 4 if it cannot tell. Needs no huge page and no privileges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8
#endif
#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4
#endif

/* Returns 1 if the file became executable, 0 if it did not, or -1. */
static int becomes_executable(const char *name, unsigned int flags)
{
	int fd = memfd_create("known-issue-70", flags | MFD_NOEXEC_SEAL), error;
	struct stat before, after;

	if (fd < 0 || fstat(fd, &before) || (before.st_mode & 0111) ||
	    !(fcntl(fd, F_GET_SEALS) & F_SEAL_EXEC))
		return -1;
	error = fchmod(fd, 0700) ? errno : 0;
	if (fstat(fd, &after))
		return -1;
	printf("%s: mode %o, fchmod(0700): %s, mode %o\n", name, before.st_mode & 0777,
	       error ? strerror(error) : "ok", after.st_mode & 0777);
	close(fd);
	return !!(after.st_mode & 0111);
}

int main(void)
{
	int small = becomes_executable("small pages", 0);
	int huge = becomes_executable("hugetlb", MFD_HUGETLB);

	if (small || huge < 0) {
		printf("cannot tell\n");
		return 4;
	}
	if (huge) {
		printf("BUG: a file with F_SEAL_EXEC became executable\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
