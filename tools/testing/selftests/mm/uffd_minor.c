// SPDX-License-Identifier: GPL-2.0
/*
 * MADV_COLLAPSE must not map pages that only a monitor may map.
 *
 * Proves: in memory that is registered for minor faults, an access to a page traps until
 * UFFDIO_CONTINUE maps this page. This holds even after MADV_COLLAPSE of the whole range. A page
 * that UFFDIO_CONTINUE mapped has the content of the file.
 *
 * How: a file in memory is mapped twice. The test fills the file through the second mapping, as the
 * receiver of a live migration does. The first mapping is registered, and UFFDIO_CONTINUE maps
 * every 64th page. Then the first mapping is collapsed. As a control, the first mapping is not
 * registered, and MADV_COLLAPSE maps all pages.
 *
 * Does not prove: that a mapped page stays mapped. The kernel may report another minor fault for
 * such a page.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_minor
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "folio_shared.h"

/* UFFDIO_CONTINUE maps one of every STEP pages. */
#define STEP 64

FIXTURE(uffd_minor)
{
	struct shared_file file;
	int uffd;
};

/* @registered: whether the first mapping is registered for minor faults */
FIXTURE_VARIANT(uffd_minor)
{
	bool registered;
};

FIXTURE_VARIANT_ADD(uffd_minor, plain)
{
};

FIXTURE_VARIANT_ADD(uffd_minor, registered)
{
	.registered = true,
};

FIXTURE_SETUP(uffd_minor)
{
	const char *why = folio_settings(0);

	self->file.area = NULL;
	self->file.fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MINOR_SHMEM);
	if (!why && self->uffd < 0)
		why = "userfaultfd reports no minor faults";
	if (!why)
		why = shared_file_map(&self->file);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(uffd_minor)
{
	if (self->uffd >= 0)
		close(self->uffd);
	shared_file_free(&self->file);
}

/* Map one page. Returns 0 or -errno. */
static int go_on(int uffd, char *at)
{
	struct uffdio_continue arguments = {
		.range = { (unsigned long)at, psize() },
	};

	return ioctl(uffd, UFFDIO_CONTINUE, &arguments) ? -errno : 0;
}

/*
 * Known issue 40: MADV_COLLAPSE maps the huge page by one PMD. So MADV_COLLAPSE also maps the pages
 * that only the monitor may map.
 */
TEST_F(uffd_minor, collapse)
{
	const unsigned int pages = self->file.pages, mapped = pages / STEP;
	struct uffdio_register where = {
		.range = { (unsigned long)self->file.at, bytes(pages) },
		.mode = UFFDIO_REGISTER_MODE_MINOR,
	};
	char *at = self->file.at;
	unsigned int page, left, again = 0;
	int error;

	if (variant->registered) {
		ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
		for (page = 0; page < pages; page += STEP)
			ASSERT_EQ(0, go_on(self->uffd, at + bytes(page)));
		ASSERT_EQ(pages - mapped, traps(at, pages));
		for (page = 0; page < pages; page += STEP)
			ASSERT_TRUE(page_is(at + bytes(page), pattern(page)));
	}
	error = madvise(at, bytes(pages), MADV_COLLAPSE) ? errno : 0;
	left = traps(at, pages);
	if (!variant->registered) {
		EXPECT_EQ(0, error);
		EXPECT_EQ(0, left);
		DID(smaps_pages(at, "ShmemPmdMapped"), "pages of a huge page");
		return;
	}
	DID(mapped, "pages that UFFDIO_CONTINUE mapped");
	if (!error && !left) {
		KNOWN_ISSUE(40, "MADV_COLLAPSE maps pages that only a monitor may map");
		return;
	}
	EXPECT_NE(0, error);
	EXPECT_LE(pages - mapped, left);
	for (page = 0; page < pages; page++) {
		bool lost = try_access(at + bytes(page), false);

		if (page % STEP)
			EXPECT_TRUE(lost);
		again += lost && !(page % STEP);
		if (lost)
			ASSERT_EQ(0, go_on(self->uffd, at + bytes(page)));
		EXPECT_TRUE(page_is(at + bytes(page), pattern(page)));
	}
	TH_LOG("%u of %u mapped pages trapped again", again, mapped);
	STALE_ISSUE(40);
}

TEST_HARNESS_MAIN
