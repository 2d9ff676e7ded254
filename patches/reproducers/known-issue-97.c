// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 97: a core file has zeros instead of a huge page that is migrating.
 *
 * A child fills huge pages and dumps core, while another process moves these pages to another node
 * and back. The core file must have the content. As a control, nobody moves the pages.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs two NUMA nodes with memory (numa=fake=2 is enough), and core files that go to the folder
 * of the process (core_pattern: core). Two CPUs help.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <linux/elf.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2UL << 20)
#define PAGES 8
#define SIZE (PAGES * HUGE)
#define VALUE 0x5a
#define ROUNDS 10

/* In the child: fill huge pages, tell the parent, wait for it, and dump core. */
static void dump(char *at)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &limit);
	madvise(at, SIZE, MADV_HUGEPAGE);
	memset(at, VALUE, SIZE);
	raise(SIGSTOP);
	abort();
}

/* Move the huge pages of a process until it has ended. */
static void move(char *at, pid_t child)
{
	int nodes[PAGES], status[PAGES];
	void *list[PAGES];

	for (int to = 0;; to = !to) {
		for (int i = 0; i < PAGES; i++) {
			list[i] = at + i * HUGE;
			nodes[i] = to;
		}
		if (syscall(__NR_move_pages, child, PAGES, list, nodes, status, MPOL_MF_MOVE) < 0)
			_exit(0);
	}
}

/* The number of bytes in the core file that have the value, or -1. */
static long right_bytes(const char *name, const char *at)
{
	int fd = open(name, O_RDONLY);
	struct elf64_phdr header;
	struct elf64_hdr elf;
	long count = -1;

	if (fd < 0 || pread(fd, &elf, sizeof(elf), 0) != sizeof(elf))
		return -1;
	for (int i = 0; i < elf.e_phnum; i++) {
		unsigned long from = (unsigned long)at;
		char *content = malloc(SIZE);

		if (pread(fd, &header, sizeof(header), elf.e_phoff + i * sizeof(header)) ==
		    sizeof(header) && header.p_type == PT_LOAD && header.p_vaddr <= from &&
		    from + SIZE <= header.p_vaddr + header.p_filesz &&
		    pread(fd, content, SIZE, header.p_offset + from - header.p_vaddr) == SIZE) {
			count = 0;
			for (unsigned long j = 0; j < SIZE; j++)
				count += content[j] == VALUE;
		}
		free(content);
	}
	close(fd);
	return count;
}

/* The number of bytes that a core file has of the memory, or -1. */
static long dumped(char *at, int moved)
{
	glob_t names = {};
	pid_t child, mover = 0;
	long count = -1;
	int status = 0;

	child = fork();
	if (!child)
		dump(at);
	waitpid(child, &status, WUNTRACED);
	if (moved) {
		mover = fork();
		if (!mover)
			move(at, child);
		usleep(20000);
	}
	kill(child, SIGCONT);
	waitpid(child, &status, 0);
	if (mover) {
		kill(mover, SIGKILL);
		waitpid(mover, &status, 0);
	}
	if (!glob("core*", 0, NULL, &names) && names.gl_pathc == 1) {
		count = right_bytes(names.gl_pathv[0], at);
		unlink(names.gl_pathv[0]);
	}
	globfree(&names);
	return count;
}

int main(void)
{
	char folder[] = "/tmp/known-issue-97.XXXXXX";
	char *room, *at, *page;
	int node = 1, status = -1;
	long found = SIZE;

	room = mmap(NULL, SIZE + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || !mkdtemp(folder) || chdir(folder))
		return 4;
	page = room;
	*page = 1;
	at = (char *)(((unsigned long)room + HUGE - 1) & -HUGE);
	if (at == room)
		at += HUGE;
	if (syscall(__NR_move_pages, 0, 1, &page, &node, &status, MPOL_MF_MOVE)) {
		printf("cannot tell: needs two NUMA nodes\n");
		rmdir(folder);
		return 4;
	}
	if (dumped(at, 0) != (long)SIZE) {
		printf("cannot tell: no core file here\n");
		rmdir(folder);
		return 4;
	}
	for (int i = 0; i < ROUNDS && found == (long)SIZE; i++)
		found = dumped(at, 1);
	rmdir(folder);
	if (found < 0) {
		printf("cannot tell: no core file\n");
		return 4;
	}
	printf("the core file has %ld of %lu bytes of the memory\n", found, SIZE);
	if (found == (long)SIZE)
		printf("OK\n");
	else
		printf("BUG: a huge page is not in the core file\n");
	return found != (long)SIZE;
}
