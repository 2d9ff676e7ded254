/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for tests that read the core file of a child. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <dirent.h>
#include <sys/stat.h>

#include "folio_util.h"

#define CORE_FOLDER "/tmp/mm_coreXXXXXX"
#define CORE_PATTERN "/proc/sys/kernel/core_pattern"

/* Types of program headers: a range of memory, and the tags of a range (PT_AARCH64_MEMTAG_MTE). */
#define CORE_LOAD 1
#define CORE_MEMTAG 0x70000002

/*
 * The header of a core file, and one of its program headers. <linux/elf.h>
 * cannot be included together with <elf.h>, which <sys/auxv.h> includes.
 */
struct core_start {
	unsigned char ident[16];
	uint16_t type, machine;
	uint32_t version;
	uint64_t entry, headers, sections;
	uint32_t flags;
	uint16_t size, header_size, nr_headers;
};

struct core_header {
	uint32_t type, flags;
	uint64_t offset, vaddr, paddr, filesz, memsz, align;
};

/* A core file that is mapped. */
struct core {
	char *at;
	size_t length;
};

/* Why a core file does not go to the current folder of its process, or NULL if it does. */
static inline const char *core_elsewhere(void)
{
	char pattern[128] = "";

	if (read_file(CORE_PATTERN, pattern, sizeof(pattern)) <= 0 || strpbrk(pattern, "|@/"))
		return "core files do not go to the folder of the process";
	return NULL;
}

/*
 * In a child: let a core file go to this folder. It has anonymous memory and private hugetlb pages.
 * Returns true on success.
 */
static inline bool core_prepare(const char *folder)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	return !chdir(folder) && !setrlimit(RLIMIT_CORE, &limit) &&
	       !write_text("/proc/self/coredump_filter", "0x33");
}

/* End this process with a core file. */
static inline void core_dump(void)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* Whether the status of waitpid() says that core_dump() ended the process. */
static inline bool core_written(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && WCOREDUMP(status);
}

/*
 * Map the core file, which is the only file of the folder, and delete the file. core->at is NULL if
 * there is no file.
 */
static inline void core_take(const char *folder, struct core *core)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat status;
	int fd;

	core->at = NULL;
	while (dir && !core->at && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY);
		if (fd >= 0 && !fstat(fd, &status)) {
			core->length = status.st_size;
			core->at = mmap(NULL, core->length, PROT_READ, MAP_PRIVATE, fd, 0);
		}
		close(fd);
		unlinkat(dirfd(dir), entry->d_name, 0);
		if (core->at == MAP_FAILED)
			core->at = NULL;
	}
	if (dir)
		closedir(dir);
}

static inline void core_free(struct core *core)
{
	if (core->at)
		munmap(core->at, core->length);
	core->at = NULL;
}

/* The program header of this type for a range of memory, or NULL. */
static inline const struct core_header *core_header(const struct core *core, uint32_t type,
						    const char *at, size_t size)
{
	const struct core_start *elf = (const struct core_start *)core->at;
	const struct core_header *header = (const struct core_header *)(core->at + elf->headers);
	unsigned long from = (unsigned long)at;

	for (int i = 0; i < elf->nr_headers; i++, header++)
		if (header->type == type && header->filesz && header->vaddr <= from &&
		    from + size <= header->vaddr + header->memsz)
			return header;
	return NULL;
}

/* The content that a core file has for a range of memory, or NULL. */
static inline const char *core_memory(const struct core *core, const char *at, size_t size)
{
	const struct core_header *header = core_header(core, CORE_LOAD, at, size);
	unsigned long skip = header ? (unsigned long)at - header->vaddr : 0;

	if (!header || skip + size > header->filesz ||
	    header->offset + skip + size > core->length)
		return NULL;
	return core->at + header->offset + skip;
}

#endif /* CORE_FILE_H */
