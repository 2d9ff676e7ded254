// SPDX-License-Identifier: GPL-2.0
/*
 * UFFDIO_ZEROPAGE fills a missing page with zeros, even if the page is
 * protected.
 *
 * Proves: a monitor can fill a missing page with UFFDIO_ZEROPAGE, just as with
 * UFFDIO_COPY, even if the monitor has protected this page against writes. The
 * page is then full of zeros, and a read does not trap. UFFDIO_ZEROPAGE
 * replaces no page that exists. In a private mapping of a file, neither
 * UFFDIO_ZEROPAGE nor UFFDIO_COPY changes the file.
 *
 * How: a range is registered for missing pages and for write protection, and the test protects the
 * first half before any page exists. UFFDIO_COPY fills one of the protected pages, and all other
 * pages get zeros. The controls are the page that UFFDIO_COPY fills, and the second half, which is
 * not protected.
 *
 * Does not prove: whether a page of zeros is protected. UFFDIO_ZEROPAGE has no flag for protection.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_zeropage
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

#define PAGES 16
#define PROTECTED (PAGES / 2)
/* The protected page that UFFDIO_COPY fills. */
#define COPIED 0

FIXTURE(uffd_zeropage)
{
	char *area;
	char *at;
	char *page;
	int uffd;
	int fd;
};

/* @file: whether the memory is a file in memory; @shared: whether its mapping is shared */
FIXTURE_VARIANT(uffd_zeropage)
{
	bool file;
	bool shared;
};

FIXTURE_VARIANT_ADD(uffd_zeropage, anon)
{
};

FIXTURE_VARIANT_ADD(uffd_zeropage, shared)
{
	.file = true,
	.shared = true,
};

FIXTURE_VARIANT_ADD(uffd_zeropage, private)
{
	.file = true,
};

FIXTURE_SETUP(uffd_zeropage)
{
	int flags = MAP_FIXED | (variant->shared ? MAP_SHARED : MAP_PRIVATE);
	const char *why = folio_settings(0);

	self->area = NULL;
	self->fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_UNPOPULATED |
			      UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot protect missing pages";
	if (why)
		SKIP(return, "%s", why);
	self->area = mmap(NULL, bytes(PAGES + 3), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->at = self->area + bytes(1);
	self->page = self->area + bytes(PAGES + 2);
	ASSERT_EQ(0, mprotect(self->page, bytes(1), PROT_READ | PROT_WRITE));
	memset(self->page, pattern(COPIED), bytes(1));
	if (variant->file) {
		self->fd = memory_file(SHMEM, PAGES);
		ASSERT_LE(0, self->fd);
	} else {
		flags |= MAP_ANONYMOUS;
	}
	ASSERT_EQ(self->at, mmap(self->at, bytes(PAGES), PROT_READ | PROT_WRITE, flags,
				 self->fd, 0));
}

FIXTURE_TEARDOWN(uffd_zeropage)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->area)
		munmap(self->area, bytes(PAGES + 3));
	if (self->fd >= 0)
		close(self->fd);
}

/* Fill a page with zeros. Returns 0 or -errno. */
static int give_zeros(int uffd, char *at)
{
	struct uffdio_zeropage arguments = {
		.range = { (unsigned long)at, psize() },
	};

	return ioctl(uffd, UFFDIO_ZEROPAGE, &arguments) ? -errno : 0;
}

/*
 * The calls fill each missing page, and a second call for the same page fails.
 *
 * Known issue 39: in a private mapping UFFDIO_ZEROPAGE treats the marker of a
 * protected page as a page, and fails with EEXIST. The page is still missing.
 */
TEST_F(uffd_zeropage, missing_protected_pages)
{
	struct uffdio_register area = {
		.range = { (unsigned long)self->at, bytes(PAGES) },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_copy copy = {
		.dst = (unsigned long)self->at + bytes(COPIED),
		.src = (unsigned long)self->page,
		.len = psize(),
	};
	unsigned int page, given = 0, refused = 0;

	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &area));
	ASSERT_EQ(0, protect(self->uffd, self->at, PROTECTED, true));
	for (page = 0; page < PAGES; page++)
		ASSERT_EQ(SIGBUS, try_access(self->at + bytes(page), false));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_COPY, &copy));
	EXPECT_EQ(0, try_access(self->at + bytes(COPIED), false));
	EXPECT_TRUE(page_is(self->at + bytes(COPIED), pattern(COPIED)));
	EXPECT_EQ(EEXIST, ioctl(self->uffd, UFFDIO_COPY, &copy) ? errno : 0);
	EXPECT_EQ(-EEXIST, give_zeros(self->uffd, self->at + bytes(COPIED)));
	for (page = COPIED + 1; page < PAGES; page++) {
		char *at = self->at + bytes(page);
		int error = give_zeros(self->uffd, at);

		if (error == -EEXIST && page < PROTECTED && !variant->shared) {
			refused++;
			EXPECT_EQ(SIGBUS, try_access(at, false));
			continue;
		}
		EXPECT_EQ(0, error) {
			TH_LOG("UFFDIO_ZEROPAGE of page %u", page);
		}
		given += !error;
		ASSERT_EQ(0, try_access(at, false));
		EXPECT_TRUE(page_is(at, 0));
		EXPECT_EQ(-EEXIST, give_zeros(self->uffd, at));
	}
	DID(given, "pages of zeros");
	if (variant->file) {
		EXPECT_EQ(variant->shared ? 0 : -1, lseek(self->fd, 0, SEEK_DATA)) {
			TH_LOG("the file must have pages if and only if the mapping is shared");
		}
	}
	if (refused == PROTECTED - 1)
		KNOWN_ISSUE(39, "UFFDIO_ZEROPAGE refuses missing pages that are protected");
	else
		EXPECT_EQ(0, refused);
	if (!variant->shared && !refused)
		STALE_ISSUE(39);
}

TEST_HARNESS_MAIN
