// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 2: after fork() the child has other pages in the ring of a packet socket (UML).
 *
 * The ring has blocks of four pages, each with its number in it.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root and CONFIG_PACKET=y. It can run as the init program.
 * Usage: known-issue-2
 */
#include <linux/if_packet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4
#define PAGES (8 * BLOCK)

/* Stores in @seen the number that the child finds in each page of the ring. */
static pid_t look(const char *ring, long size, int *seen)
{
	int fds[2], got;
	pid_t child;

	if (pipe(fds))
		return -1;
	child = fork();
	if (!child) {
		for (int i = 0; i < PAGES; i++)
			seen[i] = *(const int *)(ring + i * size);
		if (write(fds[1], seen, PAGES * sizeof(*seen)) < 0)
			_exit(1);
		/* The kernel may complain when the child unmaps these pages. */
		pause();
	}
	close(fds[1]);
	got = read(fds[0], seen, PAGES * sizeof(*seen));
	close(fds[0]);
	return got == (int)(PAGES * sizeof(*seen)) ? child : -1;
}

int main(void)
{
	long size = sysconf(_SC_PAGESIZE);
	struct tpacket_req req = {
		.tp_block_size = BLOCK * size,
		.tp_block_nr = PAGES / BLOCK,
		.tp_frame_size = size,
		.tp_frame_nr = PAGES,
	};
	int seen[PAGES], bug = 0, fd = socket(AF_PACKET, SOCK_RAW, 0);
	pid_t child;
	char *ring;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req))) {
		printf("cannot tell: needs root, and CONFIG_PACKET=y\n");
		return 4;
	}
	ring = mmap(NULL, PAGES * size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		printf("cannot tell: no ring\n");
		return 4;
	}
	for (int i = 0; i < PAGES; i++)
		*(int *)(ring + i * size) = i + 1;
	child = look(ring, size, seen);
	if (child < 0) {
		printf("cannot tell: no child\n");
		return 4;
	}
	printf("pages of the parent 1 2 3 4 ..., of the child");
	for (int i = 0; i < PAGES; i++) {
		bug |= seen[i] != i + 1;
		printf(" %d", seen[i]);
	}
	printf("\n%s\n", bug ? "BUG" : "OK");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return bug;
}
