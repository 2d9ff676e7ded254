/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the selftests of clearing share: memory that nobody has touched yet, and
 * the proof that what it is made of was full of something else before.
 *
 * Frames are the pages of the machine, by number: what /proc/self/pagemap says.
 */
#ifndef FOLIO_CLEAR_H
#define FOLIO_CLEAR_H

#include "folio_util.h"

/* A byte of each page that is neither its first nor its last. */
#define FOLIO_CLEAR_INSIDE 1234

/* Tries to get the very memory that was filled before. */
#define TRIES 10

/* What folios memory is to come in. */
enum folio_size { SINGLE_PAGES, BLOCKS, HUGE_PAGES };

static inline int order_of_size(enum folio_size size)
{
	if (size == HUGE_PAGES)
		return order_of(read_pmd_pagesize() / psize());
	return size == BLOCKS ? order_of(cont_ptes()) : 0;
}

/* How many folios are so many bytes: one where it is larger than that. */
static inline unsigned int folios_in(unsigned long room, int order)
{
	return bytes(1UL << order) < room ? room / bytes(1UL << order) : 1;
}

/* A memory file of so many pages, none of which is there yet; or -1. */
static inline int fresh_file(unsigned int pages)
{
	int fd = syscall(__NR_memfd_create, "folio_clear", 0);

	if (fd < 0 || !ftruncate(fd, bytes(pages)))
		return fd;
	close(fd);
	return -1;
}

/* Write to a byte, for the access itself. */
static inline void write_zero(char *address)
{
	*address = 0;
	asm volatile("" : : : "memory");
}

/**
 * struct filled - frames each byte of which was overwritten with what is not zero
 * @frame: their numbers, in order
 * @nr: how many
 */
struct filled {
	unsigned long *frame;
	unsigned int nr;
};

static inline int filled_order(const void *one, const void *other)
{
	unsigned long a = *(const unsigned long *)one, b = *(const unsigned long *)other;

	return a < b ? -1 : a > b;
}

/* The frames of pages, to be freed; NULL where one of them has none. */
static inline unsigned long *frames_of(const char *at, unsigned int pages)
{
	ssize_t length = pages * sizeof(unsigned long);
	unsigned long *frame = malloc(length);
	int fd = open("/proc/self/pagemap", O_RDONLY);
	bool right = frame && pread(fd, frame, length,
				    (unsigned long)at / psize() * sizeof(*frame)) == length;

	for (unsigned int i = 0; i < pages && right; i++) {
		right = frame[i] & PM_PRESENT;
		frame[i] &= BIT_ULL(55) - 1;
		right = right && frame[i];
	}
	close(fd);
	if (right)
		return frame;
	free(frame);
	return NULL;
}

static inline void filled_free(struct filled *filled)
{
	free(filled->frame);
	*filled = (struct filled){};
}

/**
 * fill() - overwrite each byte of pages, and note their frames in place of others
 * @filled: is set
 * @at: the first page
 * @pages: how many
 *
 * Return: whether they have frames
 */
static inline bool fill(struct filled *filled, char *at, unsigned int pages)
{
	for (unsigned int i = 0; i < pages; i++)
		memset(at + bytes(i), pattern(i), bytes(1));
	filled_free(filled);
	filled->frame = frames_of(at, pages);
	if (!filled->frame)
		return false;
	filled->nr = pages;
	qsort(filled->frame, pages, sizeof(*filled->frame), filled_order);
	return true;
}

/* How many of the pages stand in frames that were filled. */
static inline unsigned int were_filled(const struct filled *filled, const char *at,
				       unsigned int pages)
{
	unsigned long *frame = frames_of(at, pages);
	unsigned int count = 0;

	for (unsigned int i = 0; frame && i < pages; i++)
		count += !!bsearch(&frame[i], filled->frame, filled->nr, sizeof(*frame),
				   filled_order);
	free(frame);
	return count;
}

/* How many of the pages have a byte that is not zero. */
static inline unsigned int not_zero(const char *at, unsigned int pages)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < pages; i++)
		count += !page_is(at + bytes(i), 0);
	return count;
}

/* Whether the pages are folios of an order: each the frames of one, in a row. */
static inline bool are_folios(const char *at, unsigned int pages, int order)
{
	unsigned long *frame = frames_of(at, pages);
	bool right = frame;

	for (unsigned int i = 0; i < pages && right; i++)
		right = frame[i] % (1UL << order) == i % (1UL << order) &&
			(i % (1UL << order) == 0 || frame[i] == frame[i - 1] + 1);
	free(frame);
	return right;
}

/**
 * fresh_map() - memory that is aligned to its folios, and has no page yet
 * @m: is filled in
 * @order: of the folios; see folio_settings()
 * @folios: how many
 * @prot: as in mmap()
 * @flags: as in mmap(), MAP_PRIVATE or MAP_SHARED and what belongs to it
 * @fd: the file, which is closed by memory_free(), or -1
 *
 * Return: whether there is such memory
 */
static inline bool fresh_map(struct memory *m, int order, unsigned int folios, int prot,
			     int flags, int fd)
{
	unsigned int size = 1U << order;

	*m = (struct memory){ .pages = folios * size, .order = order, .fd = fd };
	m->room_bytes = bytes(m->pages + 3 * size);
	m->room = mmap(NULL, m->room_bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->room == MAP_FAILED) {
		m->room = NULL;
		return false;
	}
	m->at = (char *)(((unsigned long)m->room + 2 * bytes(size) - 1) & -bytes(size));
	m->at = mmap(m->at, bytes(m->pages), prot, flags | MAP_FIXED, fd, 0);
	return m->at != MAP_FAILED;
}

#endif /* FOLIO_CLEAR_H */
