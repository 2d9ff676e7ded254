// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 98: a core file has zeros instead of memory that is protected against all accesses.
 *
 * A child fills memory, protects it with UFFDIO_RWPROTECT (7.3), and dumps core. The core file must
 * have the content. As a control, the same with memory that is not protected.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it cannot tell.
 * Needs root, and core files that go to the folder of the process (core_pattern: core).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <linux/elf.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 0x100000UL
#define VALUE 0x5a

/* From the kernel's headers in 7.3, for older headers. */
#define FEATURE_RWP 0x20000
#define REGISTER_RWP 8
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

/* In the child: fill memory, protect it, and dump core. */
static void dump(char *at, int protect)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &limit);
	memset(at, VALUE, SIZE);
	if (protect) {
		struct uffdio_api api = { .api = UFFD_API, .features = FEATURE_RWP };
		struct uffdio_register area = { .mode = REGISTER_RWP };
		struct uffdio_writeprotect how = { .mode = 1 };
		int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

		area.range.start = (unsigned long)at;
		area.range.len = SIZE;
		how.range = area.range;
		if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
		    ioctl(uffd, UFFDIO_REGISTER, &area) || ioctl(uffd, RWPROTECT, &how))
			_exit(4);
	}
	abort();
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
static long dumped(char *at, int protect)
{
	glob_t names = {};
	long count = -1;
	int status = 0;
	pid_t child = fork();

	if (!child)
		dump(at, protect);
	waitpid(child, &status, 0);
	if (!glob("core*", 0, NULL, &names) && names.gl_pathc == 1) {
		count = right_bytes(names.gl_pathv[0], at);
		unlink(names.gl_pathv[0]);
	}
	globfree(&names);
	return count;
}

int main(void)
{
	char folder[] = "/tmp/known-issue-98.XXXXXX";
	long control, found;
	char *at;

	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || !mkdtemp(folder) || chdir(folder))
		return 4;
	control = dumped(at, 0);
	found = dumped(at, 1);
	rmdir(folder);
	if (control != (long)SIZE || found < 0) {
		printf("cannot tell: no core file here, or no UFFDIO_RWPROTECT\n");
		return 4;
	}
	printf("the core file has %ld of %lu bytes of protected memory\n", found, SIZE);
	if (found == (long)SIZE)
		printf("OK\n");
	else
		printf("BUG: protected memory is not in the core file\n");
	return found != (long)SIZE;
}
