/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for tests that watch memory with userfaultfd. */
#ifndef FOLIO_LISTEN_H
#define FOLIO_LISTEN_H

#include <linux/userfaultfd.h>

#include "folio_util.h"

/*
 * Open userfaultfd with these features. Returns the descriptor, or -1 if the
 * kernel lacks userfaultfd or one of the features.
 */
static inline int listener(__u64 features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0 || !ioctl(uffd, UFFDIO_API, &api))
		return uffd;
	close(uffd);
	return -1;
}

/* Register a range for write protection. Returns 0 or -errno. */
static inline int listen_to(int uffd, char *at, size_t length)
{
	struct uffdio_register arguments = {
		.range = { (unsigned long)at, length },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(uffd, UFFDIO_REGISTER, &arguments) ? -errno : 0;
}

/* Set or clear the write protection of pages. Returns 0 or -errno. */
static inline int protect(int uffd, char *at, unsigned int pages, bool on)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)at, bytes(pages) },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &arguments) ? -errno : 0;
}

#endif /* FOLIO_LISTEN_H */
