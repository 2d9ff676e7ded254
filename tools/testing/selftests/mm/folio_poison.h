/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers that poison pages: the kernel then treats a page as if its memory were bad. */
#ifndef FOLIO_POISON_H
#define FOLIO_POISON_H

#include "folio_util.h"

/* A flag in /proc/kpageflags that marks a poisoned page. */
#define FRAME_BAD BIT_ULL(19)

/* The flags of a frame in /proc/kpageflags; 0 if they cannot be read. */
static inline __u64 frame_flags(unsigned long frame)
{
	int fd = open("/proc/kpageflags", O_RDONLY);
	__u64 flags;

	if (pread(fd, &flags, sizeof(flags), frame * sizeof(flags)) != sizeof(flags))
		flags = 0;
	close(fd);
	return flags;
}

/* madvise() itself raises SIGBUS when it poisons a page. */
static inline void on_poison(int number)
{
	(void)number;
}

/**
 * poison() - poison pages
 * @at: the first page
 * @pages: the number of pages
 *
 * The process loses data, so the kernel may send SIGBUS to it at once, and not
 * only at the next access.
 *
 * Return: 0, or the error
 */
static inline int poison(char *at, unsigned int pages)
{
	struct sigaction action = { .sa_handler = on_poison }, old;
	int result;

	sigaction(SIGBUS, &action, &old);
	result = madvise(at, bytes(pages), MADV_HWPOISON) ? errno : 0;
	sigaction(SIGBUS, &old, NULL);
	return result;
}

#endif /* FOLIO_POISON_H */
