// SPDX-License-Identifier: GPL-2.0
/*
 * Known issue 61: a core file has the tags of only the first page of a hugetlb page (arm64).
 *
 * Give each 16 bytes of a tagged huge page the tag 5, and dump core. The core file must have
 * this tag for all of them, as it has for other memory. Without the tags of memory a debugger
 * cannot tell why an access failed.
 * Prints OK and exits with 0, or prints BUG and exits with 1. Exits with 4 if it
 * cannot tell. Needs root, a CPU with MTE, and a file system at /tmp.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/elf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CORE "/tmp/core-of-tags"
#define PATTERN "/proc/sys/kernel/core_pattern"
#define HUGEPAGES "/proc/sys/vm/nr_hugepages"
#define MTE 0x20			/* PROT_MTE */

/* Returns the number in a line of a file, or -1. */
static long number(const char *path, const char *prefix)
{
	FILE *file = fopen(path, "r");
	char line[128];
	long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, prefix, strlen(prefix)) &&
		    sscanf(line + strlen(prefix), "%ld", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

static void put(const char *path, const char *value)
{
	FILE *file = fopen(path, "w");

	if (file) {
		fputs(value, file);
		fclose(file);
	}
}

static void set_tags(char *at, long size, unsigned long tag)
{
#ifdef __aarch64__
	uintptr_t to = (uintptr_t)at | tag << 56;
	long offset;

	for (offset = 0; offset < size; offset += 16)
		asm volatile(".arch armv8.5-a+memtag\n\tstg %0, [%0]"
			     : : "r"(to + offset) : "memory");
#endif
}

/* Returns how many tags at this address are 5 in the core file, or -1. */
static long tags_in_core(char *core, uintptr_t at, long size)
{
	struct elf64_hdr *elf = (struct elf64_hdr *)core;
	struct elf64_phdr *header = (struct elf64_phdr *)(core + elf->e_phoff);
	long i, granule, right = 0;
	unsigned char *tags;

	for (i = 0; i < elf->e_phnum; i++, header++) {
		if (header->p_type != PT_AARCH64_MEMTAG_MTE || header->p_vaddr > at ||
		    header->p_vaddr + header->p_memsz < at + size || !header->p_filesz)
			continue;
		tags = (unsigned char *)core + header->p_offset + (at - header->p_vaddr) / 32;
		for (granule = 0; granule < size / 16; granule++)
			right += (tags[granule / 2] >> (granule % 2 * 4) & 15) == 5;
		return right;
	}
	return -1;
}

int main(void)
{
	long huge = number("/proc/meminfo", "Hugepagesize:") << 10, pool, small = -1, large = -1;
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	char old[128] = "core", text[32], *at, *other;
	struct stat file = { 0 };
	FILE *pattern;
	int fd, status = 0;

	pool = number(HUGEPAGES, "");
	snprintf(text, sizeof(text), "%ld", pool + 1);
	put(HUGEPAGES, text);
	other = mmap(NULL, huge, PROT_READ | PROT_WRITE | MTE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = mmap(NULL, huge, PROT_READ | PROT_WRITE | MTE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (huge <= 0 || at == MAP_FAILED || other == MAP_FAILED) {
		printf("cannot tell: needs MTE, for a huge page too\n");
		return 4;
	}
	munmap(at, huge);
	pattern = fopen(PATTERN, "r");
	if (pattern && fgets(old, sizeof(old), pattern))
		fclose(pattern);
	put(PATTERN, CORE);
	unlink(CORE);
	if (!fork()) {
		setrlimit(RLIMIT_CORE, &limit);
		put("/proc/self/coredump_filter", "0x33");
		prctl(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE | 0xfffe << 3, 0, 0, 0);
		if (mmap(at, huge, PROT_READ | PROT_WRITE | MTE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED, -1, 0) != at)
			_exit(4);
		set_tags(other, huge, 5);
		set_tags(at, huge, 5);
		abort();
	}
	wait(&status);
	put(PATTERN, old);
	snprintf(text, sizeof(text), "%ld", pool);
	put(HUGEPAGES, text);
	fd = open(CORE, O_RDONLY);
	fstat(fd, &file);
	if (fd >= 0 && file.st_size) {
		char *core = mmap(NULL, file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (core != MAP_FAILED) {
			small = tags_in_core(core, (uintptr_t)other, huge);
			large = tags_in_core(core, (uintptr_t)at, huge);
		}
	}
	unlink(CORE);
	/*
	 * Some emulators load only a part of the tags, and do so for all kinds
	 * of memory.
	 */
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || small <= 0 || large < 0) {
		printf("cannot tell: the core file has no tags of other memory\n");
		return 4;
	}
	printf("%s: the core file has %ld tags of a huge page of hugetlb, %ld of other memory\n",
	       large == small ? "OK" : "BUG", large, small);
	return large != small;
}
