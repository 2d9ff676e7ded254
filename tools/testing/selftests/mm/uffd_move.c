// SPDX-License-Identifier: GPL-2.0
/*
 * UFFDIO_MOVE treats a protected page in swap as it treats a protected page in memory.
 *
 * Proves: a protected page that is in swap is protected at its new place only if a page in
 * memory is, and never at a place that is not registered for write protection. The content
 * is the same, a write traps only if the page is protected, and no page becomes protected.
 *
 * How: the first half of a range of single pages is protected against writes. In some
 * variants all pages except the first one go to swap. UFFDIO_MOVE moves all pages one by one
 * to a range that is registered for missing pages, and in some variants for write protection
 * too. The first page shows what the kernel does with a page in memory. The second half was
 * never protected: it is the control.
 *
 * Does not prove: that access tracking (RWP) begins anew at the new place.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_move
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

#define PAGES 16
#define PROTECTED (PAGES / 2)
/* The page that stays in memory, as an example. */
#define EXAMPLE 0

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_UFFD BIT_ULL(57)
#define PM_IN_SWAP BIT_ULL(62)

FIXTURE(uffd_move)
{
	struct memory from;
	struct memory to;
	int uffd;
};

/*
 * @swapped: whether the pages are in swap when they move
 * @tracked: whether the new place is registered for write protection
 */
FIXTURE_VARIANT(uffd_move)
{
	bool swapped;
	bool tracked;
};

FIXTURE_VARIANT_ADD(uffd_move, present)
{
};

FIXTURE_VARIANT_ADD(uffd_move, present_tracked)
{
	.tracked = true,
};

FIXTURE_VARIANT_ADD(uffd_move, swapped)
{
	.swapped = true,
};

FIXTURE_VARIANT_ADD(uffd_move, swapped_tracked)
{
	.swapped = true,
	.tracked = true,
};

FIXTURE_SETUP(uffd_move)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			    UFFD_FEATURE_MOVE,
	};
	const char *why = folio_settings(0);

	self->from.fd = -1;
	self->to.fd = -1;
	self->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (!why && (self->uffd < 0 || ioctl(self->uffd, UFFDIO_API, &api)))
		why = "userfaultfd cannot move pages, or cannot protect them";
	if (!why && variant->swapped && !have_swap())
		why = "no swap";
	if (!why)
		why = memory_map(&self->from, ANON, 0, PAGES);
	if (!why)
		why = memory_map(&self->to, ANON, 0, PAGES);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, madvise(self->to.at, bytes(PAGES), MADV_DONTNEED));
}

FIXTURE_TEARDOWN(uffd_move)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->from);
	memory_free(&self->to);
}

/* Move one page. Returns 0 or -errno. */
static int move(int uffd, char *to, char *from)
{
	struct uffdio_move arguments = {
		.dst = (unsigned long)to,
		.src = (unsigned long)from,
		.len = psize(),
	};

	return ioctl(uffd, UFFDIO_MOVE, &arguments) ? -errno : 0;
}

/* Whether a page of this variant is in swap when it moves. */
static bool in_swap(const FIXTURE_VARIANT(uffd_move) * variant, unsigned int page)
{
	return variant->swapped && page != EXAMPLE;
}

/*
 * 16 pages are enough for both halves and the example.
 *
 * Known issue 37: the entry of a page in swap moves as it is, so each page that was
 * protected still has the bit, and traps if its new place is registered for that.
 */
TEST_F(uffd_move, swap_as_memory)
{
	struct uffdio_register area = {
		.range = { (unsigned long)self->to.at, bytes(PAGES) },
		.mode = UFFDIO_REGISTER_MODE_MISSING |
			(variant->tracked ? UFFDIO_REGISTER_MODE_WP : 0),
	};
	unsigned int page, moved = 0, kept = 0, added = 0;
	bool example = false;

	ASSERT_EQ(0, listen_to(self->uffd, self->from.at, bytes(PAGES)));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &area));
	ASSERT_EQ(0, protect(self->uffd, self->from.at, PROTECTED, true));
	if (variant->swapped)
		ASSERT_EQ(0, madvise(self->from.at + bytes(EXAMPLE + 1),
				     bytes(PAGES - EXAMPLE - 1), MADV_PAGEOUT));
	for (page = 0; page < PAGES; page++) {
		char *at = self->from.at + bytes(page);

		ASSERT_EQ(in_swap(variant, page), pagemap_has(at, PM_IN_SWAP));
		ASSERT_EQ(page < PROTECTED, pagemap_has(at, PM_UFFD));
	}
	for (page = 0; page < PAGES; page++) {
		char *at = self->to.at + bytes(page);
		int error = move(self->uffd, at, self->from.at + bytes(page));
		bool marked = pagemap_has(at, PM_UFFD);

		ASSERT_EQ(0, error) {
			TH_LOG("UFFDIO_MOVE of page %u", page);
		}
		moved++;
		if (page == EXAMPLE)
			example = marked;
		else if (page < PROTECTED)
			kept += marked;
		else
			added += marked;
		EXPECT_EQ(in_swap(variant, page), pagemap_has(at, PM_IN_SWAP));
		EXPECT_TRUE(page_is(at, pattern(page))) {
			TH_LOG("content of page %u", page);
		}
		EXPECT_EQ(marked, pagemap_has(at, PM_UFFD));
		EXPECT_EQ(marked && variant->tracked ? SIGBUS : 0, try_access(at, true)) {
			TH_LOG("write to page %u", page);
		}
	}
	DID(moved, "pages moved");
	EXPECT_EQ(0, added);
	EXPECT_TRUE(variant->tracked || !example);
	if (variant->swapped && !example && kept == PROTECTED - 1)
		KNOWN_ISSUE(37, "a page in swap takes its protection along");
	else
		EXPECT_EQ(example ? PROTECTED - 1 : 0, kept);
	if (variant->swapped && !kept)
		STALE_ISSUE(37);
}

TEST_HARNESS_MAIN
