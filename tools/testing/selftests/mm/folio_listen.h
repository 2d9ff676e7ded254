/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for tests that write-protect pages by userfaultfd. */
#ifndef FOLIO_LISTEN_H
#define FOLIO_LISTEN_H

#include <linux/userfaultfd.h>

#include "folio_util.h"

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
