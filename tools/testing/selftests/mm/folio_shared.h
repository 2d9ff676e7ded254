/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A memory file that is mapped twice. MADV_COLLAPSE can turn the file into one huge page.
 */
#ifndef FOLIO_SHARED_H
#define FOLIO_SHARED_H

#include "folio_util.h"

/* With base pages of 64K, the size of a huge page is 512 MiB, which is too much for these tests. */
#define SHARED_MOST_BYTES (64UL << 20)

/* From include/uapi/asm-generic/mman-common.h, since older headers lack this constant. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/*
 * struct shared_file - a file of the size of a huge page, and two mappings of it
 * @at: the first mapping, aligned to a huge page; it has no entries at first
 * @other: the second mapping, which is aligned too
 * @pages: how many pages the file has
 */
struct shared_file {
	char *area;
	char *at;
	char *other;
	unsigned int pages;
	int fd;
};

static inline void shared_file_free(struct shared_file *file)
{
	if (file->area)
		munmap(file->area, 3 * bytes(file->pages));
	if (file->fd >= 0)
		close(file->fd);
}

/**
 * shared_file_map() - make a file of single pages with a pattern, and map it twice
 * @file: the function fills it in; shared_file_free() needs it
 *
 * The file gets single pages, because the mapping that fills it has MADV_NOHUGEPAGE.
 * This function changes the shmem_enabled setting; the next call of folio_settings() resets it.
 *
 * Return: NULL, or the reason why there is no such file
 */
static inline const char *shared_file_map(struct shared_file *file)
{
	const int flags = MAP_FIXED | MAP_SHARED, prot = PROT_READ | PROT_WRITE;
	size_t length = read_pmd_pagesize();
	char path[128], *fill;

	file->area = NULL;
	file->fd = -1;
	if (!length || length > SHARED_MOST_BYTES)
		return "no huge pages, or too large ones";
	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/shmem_enabled", length / 1024);
	if (write_text(path, "always"))
		return "no huge pages of files in memory";
	file->pages = length / psize();
	file->fd = memory_file(SHMEM, file->pages);
	fill = mmap(NULL, 3 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file->fd < 0 || fill == MAP_FAILED)
		return "no memory";
	file->area = fill;
	file->at = (char *)(((unsigned long)file->area + length - 1) & -length);
	file->other = file->at + length;
	fill = mmap(file->other, length, prot, flags, file->fd, 0);
	if (fill == MAP_FAILED || madvise(fill, length, MADV_NOHUGEPAGE))
		return "no memory";
	for (unsigned int page = 0; page < file->pages; page++)
		memset(fill + bytes(page), pattern(page), bytes(1));
	if (mmap(file->other, length, prot, flags, file->fd, 0) == MAP_FAILED ||
	    mmap(file->at, length, prot, flags, file->fd, 0) == MAP_FAILED)
		return "no memory";
	return NULL;
}

/* The number of pages that raise SIGBUS when they are read. */
static inline unsigned int traps(char *at, unsigned int pages)
{
	unsigned int found = 0;

	for (unsigned int page = 0; page < pages; page++)
		found += try_access(at + bytes(page), false) == SIGBUS;
	return found;
}

#endif /* FOLIO_SHARED_H */
