// SPDX-License-Identifier: GPL-2.0
/*
 * Guard pages (MADV_GUARD_INSTALL) in memory that userfaultfd protects.
 *
 * Proves: MADV_GUARD_INSTALL returns. After that, each page of the call's range is a guard page,
 * and each page outside the range is as before. This holds for all kinds of entries: an empty
 * entry, a page, a protected page, and the marker that userfaultfd leaves where a protected page is
 * missing. After MADV_GUARD_REMOVE each page can be read.
 *
 * How: a range of single pages is protected against writes by userfaultfd, and half of it becomes
 * guard pages. Some variants touch the pages first. A timer ends the call if the call does not end
 * by itself. As controls, one variant protects nothing, and two variants have anonymous memory.
 *
 * Does not prove: whether a page is protected after MADV_GUARD_REMOVE.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=uffd_guard
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

#define PAGES 16
#define GUARDED (PAGES / 2)
/*
 * The time after which the call counts as endless. MADV_GUARD_INSTALL normally
 * takes less than a millisecond.
 */
#define SECONDS 5

/* include/uapi/asm-generic/mman-common.h; older headers lack these constants. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_GUARD_REMOVE
#define MADV_GUARD_REMOVE 103
#endif

FIXTURE(uffd_guard)
{
	char *area;
	char *at;
	int uffd;
	int fd;
};

/*
 * @file: whether the memory is a file in memory
 * @shared: whether the mapping is shared
 * @touched: whether the pages exist before they are protected
 * @bare: whether no page is protected
 */
FIXTURE_VARIANT(uffd_guard)
{
	bool file;
	bool shared;
	bool touched;
	bool bare;
};

FIXTURE_VARIANT_ADD(uffd_guard, anon)
{
	.touched = true,
};

FIXTURE_VARIANT_ADD(uffd_guard, anon_empty)
{
};

FIXTURE_VARIANT_ADD(uffd_guard, shared)
{
	.file = true,
	.shared = true,
	.touched = true,
};

FIXTURE_VARIANT_ADD(uffd_guard, shared_empty)
{
	.file = true,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_guard, shared_bare)
{
	.file = true,
	.shared = true,
	.touched = true,
	.bare = true,
};

FIXTURE_VARIANT_ADD(uffd_guard, private)
{
	.file = true,
	.touched = true,
};

FIXTURE_SETUP(uffd_guard)
{
	const char *why = folio_settings(0);
	int flags = MAP_FIXED | (variant->shared ? MAP_SHARED : MAP_PRIVATE);

	self->area = NULL;
	self->fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_UNPOPULATED |
			      UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot protect the pages of files in memory";
	if (why)
		SKIP(return, "%s", why);
	/* Inaccessible pages before and after the memory keep its VMA separate. */
	self->area = mmap(NULL, bytes(PAGES + 2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->at = self->area + bytes(1);
	if (variant->file) {
		self->fd = memory_file(SHMEM, PAGES);
		ASSERT_LE(0, self->fd);
	} else {
		flags |= MAP_ANONYMOUS;
	}
	ASSERT_EQ(self->at, mmap(self->at, bytes(PAGES), PROT_READ | PROT_WRITE, flags,
				 self->fd, 0));
	for (unsigned int page = 0; variant->touched && page < PAGES; page++)
		memset(self->at + bytes(page), pattern(page), bytes(1));
	ASSERT_EQ(0, listen_to(self->uffd, self->at, bytes(PAGES)));
	if (!variant->bare)
		ASSERT_EQ(0, protect(self->uffd, self->at, PAGES, true));
}

FIXTURE_TEARDOWN(uffd_guard)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->area)
		munmap(self->area, bytes(PAGES + 2));
	if (self->fd >= 0)
		close(self->fd);
}

/* Make guard pages. Returns 0, -errno, or -ETIMEDOUT if the call does not end. */
static int install_guards(char *at, unsigned int pages)
{
	struct sigaction action = { .sa_handler = signal_catch }, old;
	int result;

	sigaction(SIGALRM, &action, &old);
	if (sigsetjmp(signal_caught, 1)) {
		result = -ETIMEDOUT;
	} else {
		alarm(SECONDS);
		result = madvise(at, bytes(pages), MADV_GUARD_INSTALL) ? -errno : 0;
	}
	alarm(0);
	sigaction(SIGALRM, &old, NULL);
	return result;
}

/*
 * The guard pages raise SIGSEGV. All other pages can be read. A write to a protected page raises
 * SIGBUS. After MADV_GUARD_REMOVE a shared mapping has the content of its file, and a private
 * mapping has zeros.
 *
 * Known issue 36: userfaultfd leaves a marker when a protected page of a file
 * is removed. The call removes the marker, but the kernel puts a new one there,
 * and so on without end.
 */
TEST_F(uffd_guard, protected_pages)
{
	int result = install_guards(self->at, GUARDED);
	unsigned int page, guards = 0;

	if (result == -EINVAL)
		SKIP(return, "no guard pages, or none in files");
	if (result == -ETIMEDOUT) {
		KNOWN_ISSUE(36, "MADV_GUARD_INSTALL does not end");
		ASSERT_TRUE(variant->file && !variant->bare);
		return;
	}
	ASSERT_EQ(0, result);
	for (page = 0; page < PAGES; page++) {
		char *at = self->at + bytes(page);

		if (page < GUARDED) {
			guards += try_access(at, false) == SIGSEGV;
			continue;
		}
		EXPECT_EQ(variant->bare ? 0 : SIGBUS, try_access(at, true)) {
			TH_LOG("write to page %u", page);
		}
		EXPECT_EQ(0, try_access(at, false));
		EXPECT_TRUE(page_is(at, variant->touched ? pattern(page) : 0)) {
			TH_LOG("content of page %u", page);
		}
	}
	DID(guards, "guard pages");
	EXPECT_EQ(GUARDED, guards);
	ASSERT_EQ(0, madvise(self->at, bytes(GUARDED), MADV_GUARD_REMOVE));
	for (page = 0; page < GUARDED; page++) {
		char *at = self->at + bytes(page);

		ASSERT_EQ(0, try_access(at, false)) {
			TH_LOG("page %u after MADV_GUARD_REMOVE", page);
		}
		EXPECT_TRUE(page_is(at, variant->shared && variant->touched ? pattern(page) : 0));
	}
	if (variant->file && !variant->bare)
		STALE_ISSUE(36);
}

TEST_HARNESS_MAIN
