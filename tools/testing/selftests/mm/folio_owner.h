/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests that need to know which processes map a large folio. They
 * start processes that share memory, and read what the kernel knows about a
 * folio.
 */
#ifndef FOLIO_OWNER_H
#define FOLIO_OWNER_H

#include "folio_util.h"

/* Flags of a folio in /proc/kpageflags. */
#define FOLIO_DIRTY BIT_ULL(4)
#define FOLIO_ACTIVE BIT_ULL(6)
#define FOLIO_SWAPCACHE BIT_ULL(13)
#define FOLIO_MLOCKED BIT_ULL(33)

/* How the kernel finds out whether processes share a large folio. */
static enum { OWNERS_GUESSED, OWNERS_TRACKED, OWNERS_UNKNOWN } folio_owners;

/*
 * Set folio_owners once for all cases, since reading /proc/kallsyms takes long.
 */
static __attribute__((constructor)) void folio_owners_ask(void)
{
	if (kernel_has("mm_ida"))
		folio_owners = OWNERS_TRACKED;
	else if (!kernel_has("init_mm"))
		folio_owners = OWNERS_UNKNOWN;
}

/*
 * The flags in /proc/kpageflags of the page at an address; 0 if they cannot be
 * read.
 */
static inline __u64 kernel_flags(const char *at)
{
	int fd = open("/proc/kpageflags", O_RDONLY);
	__u64 flags;

	if (pread(fd, &flags, sizeof(flags), pfn_of(at) * sizeof(flags)) != sizeof(flags))
		flags = 0;
	close(fd);
	return flags;
}

/*
 * The number of mappings of the page, from /proc/kpagecount; -1 if it cannot be
 * read.
 */
static inline long mappings(const char *at)
{
	int fd = open("/proc/kpagecount", O_RDONLY);
	__u64 count = -1;

	if (pread(fd, &count, sizeof(count), pfn_of(at) * sizeof(count)) != sizeof(count))
		count = -1;
	close(fd);
	return count;
}

/*
 * Start a child that calls @first (if not NULL), and then waits until the pipe
 * @go is closed. waiting_child() returns after @first has returned in the
 * child. Returns the child's PID, or -1.
 */
static inline pid_t waiting_child(int go[2], void (*first)(struct memory *), struct memory *m)
{
	int here[2];
	pid_t child;
	char byte;

	if (pipe(here))
		return -1;
	child = fork();
	if (!child) {
		close(go[1]);
		if (first)
			first(m);
		close(here[0]);
		close(here[1]);
		_exit(read(go[0], &byte, 1));
	}
	close(here[1]);
	if (read(here[0], &byte, 1))
		child = -1;
	close(here[0]);
	return child;
}

/*
 * Kill a child that waiting_child() started. Returns whether the child was
 * still waiting.
 */
static inline bool end_child(pid_t child)
{
	return child > 0 && !kill(child, SIGKILL) && child_of(child) == 128 + SIGKILL;
}

/* Whether each byte of another process's page has this value. */
static inline bool child_has(pid_t child, char *at, unsigned char value)
{
	char *copy = malloc(bytes(1));
	struct iovec to = { copy, bytes(1) }, from = { at, bytes(1) };
	bool right = process_vm_readv(child, &to, 1, &from, 1, 0) == (ssize_t)bytes(1) &&
		     page_is(copy, value);

	free(copy);
	return right;
}

/**
 * ask_third() - call a function in the last of three processes that mapped
 *	memory
 * @go: the pipe on which the second process waits, as in waiting_child()
 * @m: the memory, which this process unmaps
 * @ask: the third process calls it with @m and @with, when the other two
 *	processes no longer map the memory
 * @with: is passed to @ask
 *
 * Return: the result of @ask, which must be below 127; -1 or 127 on failure
 */
static inline int ask_third(int go[2], struct memory *m, int (*ask)(struct memory *, int),
			    int with)
{
	int alone[2];
	pid_t second, third;
	char byte;

	if (pipe(alone))
		return -1;
	second = waiting_child(go, NULL, m);
	third = second < 0 ? -1 : fork();
	if (!third) {
		close(alone[1]);
		close(go[1]);
		_exit(read(alone[0], &byte, 1) ? 127 : ask(m, with));
	}
	if (third < 0 || !end_child(second))
		return -1;
	munmap(m->at, bytes(m->pages));
	close(alone[1]);
	close(alone[0]);
	return child_of(third);
}

/*
 * Fill two pages with the same value, start KSM, and wait until KSM has merged
 * them, but at most for half a minute. Returns whether KSM merged them.
 */
static inline bool ksm_merge(struct memory *m, char *a, char *b, int value)
{
	memset(a, value, bytes(1));
	memset(b, value, bytes(1));
	if (madvise(m->at, bytes(m->pages), MADV_MERGEABLE))
		return false;
	write_num(FOLIO_KSM "pages_to_scan", 1000);
	write_num(FOLIO_KSM "sleep_millisecs", 10);
	write_num(FOLIO_KSM "run", 1);
	for (int i = 0; i < 300 && pfn_of(a) != pfn_of(b); i++)
		usleep(100000);
	write_num(FOLIO_KSM "run", 0);
	return pfn_of(a) == pfn_of(b);
}

/*
 * Write to @pages pages, which begin at @at. The page at @at gets the pattern
 * of page @first, the next page gets the pattern of page @first + 1, and so on.
 * Returns how many of these pages got another frame.
 */
static inline unsigned int copied_part(char *at, unsigned int first, unsigned int pages)
{
	unsigned int page, count = 0;

	for (page = first; page < first + pages; page++, at += bytes(1)) {
		unsigned long before = pfn_of(at);

		*at = pattern(page);
		count += pfn_of(at) != before;
	}
	return count;
}

/*
 * Write to the memory, so that each page gets its pattern. Returns how many of
 * the pages got another frame.
 */
static inline unsigned int copied(struct memory *m)
{
	return copied_part(m->at, 0, m->pages);
}

/*
 * The number of the first page that does not hold its pattern, or -1 if there
 * is none. The page at @at has the number @first.
 */
static inline int foreign_page(const char *at, unsigned int first, unsigned int pages)
{
	for (unsigned int page = first; page < first + pages; page++, at += bytes(1))
		if (!page_is(at, pattern(page)))
			return page;
	return -1;
}

#endif /* FOLIO_OWNER_H */
