// SPDX-License-Identifier: GPL-2.0
/*
 * UFFDIO_MOVE treats a missing page as missing, even if the page is protected.
 *
 * Proves: UFFDIO_MOVE fills a missing page, as UFFDIO_COPY does, even if a
 * monitor has protected the missing page against writes. With
 * UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES, UFFDIO_MOVE skips missing pages at the old
 * place, whether these pages are protected or not. UFFDIO_MOVE replaces no
 * existing page.
 *
 * How: two ranges are registered for missing pages and for write protection. The test protects the
 * first half of each range before any page exists. The test then fills every second page of the
 * first range, and moves all pages of this range one by one. As a control, the second half of each
 * range is not protected.
 *
 * Does not prove: whether a page is protected after it has moved (uffd_move
 * tests this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_move_hole
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

#define PAGES 16
#define PROTECTED (PAGES / 2)

FIXTURE(uffd_move_hole)
{
	char *area;
	char *from;
	char *to;
	char *page;
	int uffd;
};

FIXTURE_SETUP(uffd_move_hole)
{
	const char *why = folio_settings(0);

	self->area = NULL;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_UNPOPULATED |
			      UFFD_FEATURE_MOVE);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot move pages, or cannot protect missing pages";
	if (why)
		SKIP(return, "%s", why);
	/* PROT_NONE pages separate the ranges, so the kernel does not merge the ranges. */
	self->area = mmap(NULL, bytes(2 * PAGES + 4), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->from = self->area + bytes(1);
	self->to = self->from + bytes(PAGES + 1);
	self->page = self->to + bytes(PAGES + 1);
	ASSERT_EQ(0, mprotect(self->from, bytes(PAGES), PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, mprotect(self->to, bytes(PAGES), PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, mprotect(self->page, bytes(1), PROT_READ | PROT_WRITE));
}

FIXTURE_TEARDOWN(uffd_move_hole)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->area)
		munmap(self->area, bytes(2 * PAGES + 4));
}

/* Register a range, and protect its first half. Returns 0 or -errno. */
static int watch(int uffd, char *at)
{
	struct uffdio_register arguments = {
		.range = { (unsigned long)at, bytes(PAGES) },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};

	if (ioctl(uffd, UFFDIO_REGISTER, &arguments))
		return -errno;
	return protect(uffd, at, PROTECTED, true);
}

/* Fill a missing page. Returns 0 or -errno. */
static int copy(int uffd, char *to, char *from)
{
	struct uffdio_copy arguments = {
		.dst = (unsigned long)to,
		.src = (unsigned long)from,
		.len = psize(),
	};

	return ioctl(uffd, UFFDIO_COPY, &arguments) ? -errno : 0;
}

/* Move one page, or skip a hole. Returns 0 or -errno. */
static int move(int uffd, char *to, char *from)
{
	struct uffdio_move arguments = {
		.dst = (unsigned long)to,
		.src = (unsigned long)from,
		.len = psize(),
		.mode = UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES,
	};

	return ioctl(uffd, UFFDIO_MOVE, &arguments) ? -errno : 0;
}

/*
 * 16 pages are enough: each half then has existing and missing pages.
 *
 * Known issue 44: UFFDIO_MOVE treats the marker of a protected missing page as
 * a page. If the new place has such a marker, the call fails with EEXIST, even
 * if the source page is missing too.
 */
TEST_F(uffd_move_hole, missing_protected_pages)
{
	unsigned int page, moved = 0, refused = 0;

	ASSERT_EQ(0, watch(self->uffd, self->from));
	ASSERT_EQ(0, watch(self->uffd, self->to));
	for (page = 0; page < PAGES; page += 2) {
		memset(self->page, pattern(page), bytes(1));
		ASSERT_EQ(0, copy(self->uffd, self->from + bytes(page), self->page));
	}
	memset(self->page, pattern(PAGES), bytes(1));
	for (page = 0; page < PAGES; page++) {
		char *from = self->from + bytes(page), *to = self->to + bytes(page);
		int error = move(self->uffd, to, from);
		bool hole = page % 2;

		if (error == -EEXIST && page < PROTECTED) {
			refused++;
			EXPECT_EQ(SIGBUS, try_access(to, false));
			continue;
		}
		ASSERT_EQ(0, error) {
			TH_LOG("UFFDIO_MOVE of page %u", page);
		}
		moved++;
		EXPECT_EQ(SIGBUS, try_access(from, false));
		EXPECT_EQ(hole ? SIGBUS : 0, try_access(to, false));
		if (!hole) {
			EXPECT_TRUE(page_is(to, pattern(page)));
			/* Another page cannot replace the moved page. */
			ASSERT_EQ(0, copy(self->uffd, from, self->page));
			EXPECT_EQ(-EEXIST, move(self->uffd, to, from));
			EXPECT_TRUE(page_is(to, pattern(page)));
		}
	}
	DID(moved, "pages moved or holes skipped");
	if (refused == PROTECTED && moved == PAGES - PROTECTED)
		KNOWN_ISSUE(44, "UFFDIO_MOVE refuses missing pages that are protected");
	else
		EXPECT_EQ(0, refused);
	if (!refused)
		STALE_ISSUE(44);
}

TEST_HARNESS_MAIN
