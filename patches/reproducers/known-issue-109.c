// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 109: with PR_SET_MDWE, brk() still gives writable and executable memory.
 *
 * Set PR_SET_MDWE and the personality READ_IMPLIES_EXEC. Then mmap() of writable memory fails. New
 * memory of brk() must not be writable and executable.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

int main(void)
{
	unsigned long size = sysconf(_SC_PAGESIZE), old, page, start, end;
	char line[300], permissions[5] = "none", found[5];
	FILE *maps = fopen("/proc/self/maps", "r");

	setvbuf(stdout, NULL, _IONBF, 0);
	/* The first read allocates memory, which must not happen after brk(). */
	if (!maps || !fgets(line, sizeof(line), maps))
		return 4;
	rewind(maps);
	if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) ||
	    personality(READ_IMPLIES_EXEC) < 0) {
		printf("cannot tell: needs PR_SET_MDWE and personality()\n");
		return 4;
	}
	if (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED || errno != EACCES) {
		printf("cannot tell: the personality has no effect on mmap()\n");
		return 4;
	}
	old = syscall(SYS_brk, 0);
	page = (old + size - 1) & -size;
	syscall(SYS_brk, page + size);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, found) == 3 && start <= page &&
		    page < end)
			snprintf(permissions, sizeof(permissions), "%s", found);
	syscall(SYS_brk, old);
	printf("permissions of the new memory: %s\n", permissions);
	if (permissions[1] == 'w' && permissions[2] == 'x') {
		printf("BUG: the memory is writable and executable\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
