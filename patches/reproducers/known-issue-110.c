// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 110: shmdt() of a sealed segment returns 0, but detaches nothing.
 *
 * Attach a segment, seal it with mseal(), and call shmdt(). It must fail, or detach the segment.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs no privileges.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

int main(void)
{
	long size = sysconf(_SC_PAGESIZE);
	int id = shmget(IPC_PRIVATE, size, 0600), error;
	char *at = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
	struct shmid_ds status;

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	if (at == (char *)-1) {
		printf("cannot tell: needs CONFIG_SYSVIPC=y\n");
		return 4;
	}
	if (syscall(SYS_mseal, at, size, 0) || !munmap(at, size)) {
		printf("cannot tell: needs mseal()\n");
		return 4;
	}
	error = shmdt(at) ? errno : 0;
	/* A segment without mappings is gone. */
	if (shmctl(id, IPC_STAT, &status))
		status.shm_nattch = 0;
	printf("shmdt(): %s; the segment has %lu mappings\n", error ? strerror(error) : "0",
	       (unsigned long)status.shm_nattch);
	if (!error && status.shm_nattch) {
		printf("BUG: shmdt() returned 0, but the segment is still attached\n");
		return 1;
	}
	printf("OK\n");
	return 0;
}
