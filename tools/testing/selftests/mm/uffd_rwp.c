// SPDX-License-Identifier: GPL-2.0
/*
 * userfaultfd protects pages of memory files against all accesses (RWP).
 *
 * Proves: an access to a page traps if the page was mapped at the time when
 * UFFDIO_RWPROTECT protected it. This also holds if the page was part of a huge
 * page, if it went to swap, or if another mapping of the file was collapsed. An
 * access to any other page does not trap. After the protection ends, each page
 * still has the content that it had before.
 *
 * How: a file in memory is mapped twice. The first mapping has single pages, or
 * one huge page that MADV_COLLAPSE made. The case registers this mapping, and
 * protects the whole mapping or its first half. In some variants, the pages of
 * the first mapping then go to swap, or the second mapping is collapsed. The
 * variants single and single_half are controls. They have single pages, no swap
 * and no collapse.
 *
 * Does not prove: anything about asynchronous protection, or about anonymous
 * memory (see folio_ksm and the kernel's own uffd-unit-tests).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=uffd_rwp
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "folio_shared.h"

/* Definitions of include/uapi/linux/userfaultfd.h in 7.3, for older headers. */
#define FEATURE_RWP BIT_ULL(17)
#define REGISTER_RWP BIT_ULL(3)
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

enum event { NOTHING, SWAP, COLLAPSE };

FIXTURE(uffd_rwp)
{
	struct shared_file file;
	int uffd;
};

/*
 * @huge: whether a PMD maps the pages; @half: whether only half of them are protected;
 * @event: what happens after that
 */
FIXTURE_VARIANT(uffd_rwp)
{
	bool huge;
	bool half;
	enum event event;
};

FIXTURE_VARIANT_ADD(uffd_rwp, single)
{
};

FIXTURE_VARIANT_ADD(uffd_rwp, single_half)
{
	.half = true,
};

FIXTURE_VARIANT_ADD(uffd_rwp, huge)
{
	.huge = true,
};

FIXTURE_VARIANT_ADD(uffd_rwp, huge_half)
{
	.huge = true,
	.half = true,
};

FIXTURE_VARIANT_ADD(uffd_rwp, swapped)
{
	.half = true,
	.event = SWAP,
};

FIXTURE_VARIANT_ADD(uffd_rwp, collapsed)
{
	.half = true,
	.event = COLLAPSE,
};

FIXTURE_SETUP(uffd_rwp)
{
	const char *why = folio_settings(0);

	self->file.area = NULL;
	self->file.fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | FEATURE_RWP);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot protect against reads";
	if (!why && variant->event == SWAP && !have_swap())
		why = "no swap";
	if (!why)
		why = shared_file_map(&self->file);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(uffd_rwp)
{
	if (self->uffd >= 0)
		close(self->uffd);
	shared_file_free(&self->file);
}

/* Set or clear the protection of @pages pages. Returns 0 or -errno. */
static int rwprotect(int uffd, char *at, unsigned int pages, bool on)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)at, bytes(pages) },
		.mode = on,
	};

	return ioctl(uffd, RWPROTECT, &arguments) ? -errno : 0;
}

/* Let the event happen. Returns 0 or the errno. */
static int happen(enum event event, const struct shared_file *file)
{
	const size_t length = bytes(file->pages);

	switch (event) {
	case SWAP:
		return madvise(file->at, length, MADV_PAGEOUT) ? errno : 0;
	case COLLAPSE:
		return madvise(file->other, length, MADV_COLLAPSE) ? errno : 0;
	default:
		return 0;
	}
}

/*
 * Known issue 42: page-table entries that map a file become empty, and their
 * protection is lost. This happens when a PMD is split, when the pages go to
 * swap, and when another mapping of the pages is collapsed.
 */
TEST_F(uffd_rwp, protection_stays)
{
	const unsigned int pages = self->file.pages;
	const unsigned int kept = variant->half ? pages / 2 : pages;
	const bool issue = variant->huge || variant->event != NOTHING;
	struct uffdio_register where = {
		.range = { (unsigned long)self->file.at, bytes(pages) },
		.mode = REGISTER_RWP,
	};
	char *at = self->file.at;
	unsigned int page, found, beside, gone = 0;

	if (variant->huge)
		ASSERT_EQ(0, madvise(at, bytes(pages), MADV_COLLAPSE));
	ASSERT_EQ(0, traps(at, pages));
	ASSERT_EQ(variant->huge ? pages : 0, smaps_pages(at, "ShmemPmdMapped"));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	ASSERT_EQ(0, rwprotect(self->uffd, at, kept, true));
	ASSERT_EQ(0, happen(variant->event, &self->file));
	if (variant->event != NOTHING) {
		for (page = 0; page < kept; page++)
			gone += !pagemap_has(at + bytes(page), PM_PRESENT);
		DID(gone, "entries that are no longer present");
	}
	found = traps(at, kept);
	beside = traps(at + bytes(kept), pages - kept);
	EXPECT_EQ(0, beside);
	if (issue && found < kept && (variant->event != NOTHING || !found)) {
		TH_LOG("%u of %u protected pages trap", found, kept);
		KNOWN_ISSUE(42, "pages of a file lose their protection against all accesses");
	} else {
		EXPECT_EQ(kept, found);
	}
	if (issue && found == kept)
		STALE_ISSUE(42);
	ASSERT_EQ(0, rwprotect(self->uffd, at, pages, false));
	for (page = 0; page < pages; page++) {
		EXPECT_EQ(0, try_access(at + bytes(page), true));
		EXPECT_TRUE(page_is(at + bytes(page), pattern(page)));
	}
	DID(pages, "pages read after the protection ended");
}

TEST_HARNESS_MAIN
