/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of page clearing. The helpers map memory that is not
 * faulted in yet, and check that the frames of this memory held other data
 * before.
 *
 * A frame is a physical page. Its number is in /proc/self/pagemap.
 */
#ifndef FOLIO_CLEAR_H
#define FOLIO_CLEAR_H

#include "folio_util.h"

/* The offset of a byte within a page. This byte is neither the first nor the last. */
#define FOLIO_CLEAR_INSIDE 1234

/* A test tries at most this many times to get back the frames that it filled before. */
#define TRIES 20

/* The size of the folios that a test uses. */
enum folio_size { SINGLE_PAGES, BLOCKS, HUGE_PAGES };

static inline int order_of_size(enum folio_size size)
{
	if (size == HUGE_PAGES)
		return order_of(read_pmd_pagesize() / psize());
	return size == BLOCKS ? order_of(cont_ptes()) : 0;
}

/*
 * clear_settings() - call folio_settings(), and check that the next allocation
 *	is likely to get the freed frames again
 *
 * Each CPU keeps freed huge pages in a list, and the next allocation of a huge
 * page takes one from this list. A freed folio that is larger than 8 MiB, but
 * smaller than a huge page, is merged with the free memory around it. The next
 * allocation then gets other frames. Folios of this size exist only with base
 * pages larger than 4K. The virtual machine has too little memory for huge
 * pages of 512 MiB.
 */
static inline const char *clear_settings(int order)
{
	const char *why = folio_settings(order);
	size_t size = bytes(1UL << order);

	if (!why && (size > 64UL << 20 || (size > 8UL << 20 && size != read_pmd_pagesize())))
		why = "such large folios hardly ever get the same frames again";
	return why;
}

/* The number of folios that fit into @room bytes, but at least 1. */
static inline unsigned int folios_in(unsigned long room, int order)
{
	return bytes(1UL << order) < room ? room / bytes(1UL << order) : 1;
}

/*
 * Make a memory file of @pages pages, and write nothing to it. Returns its
 * descriptor, or -1.
 */
static inline int fresh_file(unsigned int pages)
{
	int fd = syscall(__NR_memfd_create, "folio_clear", 0);

	if (fd < 0 || !ftruncate(fd, bytes(pages)))
		return fd;
	close(fd);
	return -1;
}

/* Write a zero. The compiler cannot drop this write. */
static inline void write_zero(char *address)
{
	*address = 0;
	asm volatile("" : : : "memory");
}

/**
 * struct filled - frames that a test filled with nonzero bytes
 * @frame: the numbers of the frames, sorted
 * @nr: how many frames
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

/*
 * Returns an array with the frame numbers of pages, or NULL if a page has no
 * frame. The caller frees the array.
 */
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
 * fill_more() - overwrite each byte of the pages, and note their frames
 * @filled: the frames are added to it
 * @at: the first page
 * @pages: how many pages
 *
 * A test that fills all memory that it allocates may count the frames of all
 * its rounds. In some states of the free lists, the kernel allocates two sets of
 * large folios in turn, and a round gets few frames of the round before it.
 *
 * Return: whether all pages have frames
 */
static inline bool fill_more(struct filled *filled, char *at, unsigned int pages)
{
	unsigned int nr = filled->nr;
	unsigned long *frame, *all;

	for (unsigned int i = 0; i < pages; i++)
		memset(at + bytes(i), pattern(i), bytes(1));
	frame = frames_of(at, pages);
	all = frame ? realloc(filled->frame, (nr + pages) * sizeof(*all)) : NULL;
	if (all)
		filled->frame = all;
	for (unsigned int i = 0; all && i < pages; i++) {
		if (!bsearch(&frame[i], all, nr, sizeof(*all), filled_order))
			all[filled->nr++] = frame[i];
	}
	free(frame);
	if (all)
		qsort(all, filled->nr, sizeof(*all), filled_order);
	return all;
}

/* Like fill_more(), but first forget the frames of earlier rounds. */
static inline bool fill(struct filled *filled, char *at, unsigned int pages)
{
	filled_free(filled);
	return fill_more(filled, at, pages);
}

/* How many of the pages are in frames that @filled contains. */
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

/*
 * Whether the frames of the pages are consecutive and aligned, as folios of
 * this order require.
 */
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
 * fresh_map() - map memory that is aligned to its folios and not faulted in yet
 * @m: is filled in
 * @order: the order of the folios; see folio_settings()
 * @folios: how many folios
 * @prot: as in mmap()
 * @flags: as in mmap(): MAP_PRIVATE or MAP_SHARED, and others
 * @fd: the file, which memory_free() closes, or -1
 *
 * Return: whether the mapping succeeded
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
