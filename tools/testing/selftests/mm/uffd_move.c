// SPDX-License-Identifier: GPL-2.0
/*
 * UFFDIO_MOVE of memory that is protected against writes and may be in swap.
 *
 * Proves: UFFDIO_MOVE treats a protected page in swap in the same way as a
 * protected page in memory. If the page in memory stays protected, the page in
 * swap stays protected too. At a new place that is not registered for write
 * protection, no moved page is protected. Each page keeps its content, a write
 * traps only if the page is protected, and no unprotected page becomes
 * protected.
 *
 * How: the first half of a range of single pages is protected against writes. In some variants all
 * pages except the first page go to swap. UFFDIO_MOVE moves all pages one by one to a range that is
 * registered for missing pages, and in some variants for write protection too. The first page shows
 * what the kernel does with a page in memory. The second half was never protected: it is the
 * control.
 *
 * In further cases one call moves single pages, pages of zeros, a block, or a huge page. These
 * cases prove that exactly these pages move, that reclaim finds them at the new place, and that no
 * existing page is replaced.
 *
 * Does not prove: that access tracking (RWP) begins anew at the new place.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_move
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "folio_pmd.h"

#define PAGES 16
#define PROTECTED (PAGES / 2)
/* The page that stays in memory, for comparison. */
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
	const char *why = folio_settings(0);

	self->from.fd = -1;
	self->to.fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
			      UFFD_FEATURE_MOVE);
	if (!why && self->uffd < 0)
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

/* Move pages. Returns 0 or -errno. */
static int move_pages(int uffd, char *to, char *from, unsigned int pages)
{
	struct uffdio_move arguments = {
		.dst = (unsigned long)to,
		.src = (unsigned long)from,
		.len = bytes(pages),
	};

	return ioctl(uffd, UFFDIO_MOVE, &arguments) ? -errno : 0;
}

/* Move one page. Returns 0 or -errno. */
static int move(int uffd, char *to, char *from)
{
	return move_pages(uffd, to, from, 1);
}

/* Whether this page is in swap when this variant moves the page. */
static bool in_swap(const FIXTURE_VARIANT(uffd_move) * variant, unsigned int page)
{
	return variant->swapped && page != EXAMPLE;
}

/*
 * 16 pages are enough: each half has several pages, and the first page can stay
 * in memory.
 *
 * Known issue 37: the entry of a page in swap moves unchanged. So each page
 * that was protected still has the protection bit. If its new place is
 * registered for write protection, a write to the page traps.
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
		EXPECT_FALSE(pagemap_has(self->from.at + bytes(page), PM_PRESENT | PM_IN_SWAP));
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

FIXTURE(moved)
{
	struct memory from;
	struct memory to;
	int uffd;
};

/*
 * @order: SINGLE, BLOCK or HUGE
 * @zeros: whether the pages are the zero page
 */
FIXTURE_VARIANT(moved)
{
	enum { SINGLE, BLOCK, HUGE } order;
	bool zeros;
};

FIXTURE_VARIANT_ADD(moved, single)
{
};

FIXTURE_VARIANT_ADD(moved, zeros)
{
	.zeros = true,
};

FIXTURE_VARIANT_ADD(moved, block)
{
	.order = BLOCK,
};

FIXTURE_VARIANT_ADD(moved, huge)
{
	.order = HUGE,
};

/*
 * The new place is registered for missing pages, and is twice as large as the
 * range that moves.
 */
FIXTURE_SETUP(moved)
{
	unsigned int size[] = { 1, cont_ptes(), pmd_pages() };
	int order = size[variant->order] ? order_of(size[variant->order]) : 0;
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	const char *why = folio_settings(order);
	size_t length;

	self->from.fd = -1;
	self->to.fd = -1;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MOVE);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot move pages";
	if (!why && !size[variant->order])
		why = NO_HUGE_PAGES;
	if (!why)
		why = memory_map(&self->from, ANON, order, order ? 2 : PAGES);
	if (!why)
		why = memory_map(&self->to, ANON, order, order ? 2 : PAGES);
	if (why)
		SKIP(return, "%s", why);
	length = bytes(self->to.pages);
	ASSERT_EQ(0, madvise(self->to.at, length, MADV_DONTNEED));
	if (variant->zeros)
		ASSERT_EQ(0, madvise(self->from.at, length, MADV_DONTNEED));
	for (unsigned int page = 0; page < self->from.pages; page++)
		read_byte(self->from.at + bytes(page));
	where.range = (struct uffdio_range){ (unsigned long)self->to.at, length };
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	/* khugepaged must not rebuild folios. */
	folio_settings(0);
}

FIXTURE_TEARDOWN(moved)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->from);
	memory_free(&self->to);
}

/*
 * One call moves the first half. At the new place each moved page has its old content, and no moved
 * page is left at the old place. The second half stays. Two more calls fail: the first because
 * there is already a page at the new place, and the second because there is no page at the old
 * place. Then all moved pages go to swap and come back: reclaim finds them at their new place.
 */
TEST_F(moved, whole)
{
	struct memory *from = &self->from, *to = &self->to;
	unsigned int half = from->pages / 2, page, swapped = 0;
	char *hole = to->at + bytes(half);

	ASSERT_EQ(0, move_pages(self->uffd, to->at, from->at, half));
	for (page = 0; page < from->pages; page++) {
		char *old = from->at + bytes(page), *new = to->at + bytes(page);
		unsigned char value = variant->zeros ? 0 : pattern(page);

		EXPECT_EQ(page >= half, pagemap_has(old, PM_PRESENT)) {
			TH_LOG("old place of page %u", page);
		}
		EXPECT_EQ(page < half, pagemap_has(new, PM_PRESENT)) {
			TH_LOG("new place of page %u", page);
		}
		EXPECT_TRUE(page_is(page < half ? new : old, value)) {
			TH_LOG("content of page %u", page);
		}
		EXPECT_EQ(page < half ? 0 : SIGBUS, try_access(new, false));
	}
	EXPECT_EQ(-EEXIST, move(self->uffd, to->at, from->at + bytes(half)));
	EXPECT_EQ(-ENOENT, move(self->uffd, hole, from->at));
	DID(half, "pages moved");
	if (variant->zeros || !have_swap())
		return;
	ASSERT_EQ(0, madvise(to->at, bytes(half), MADV_PAGEOUT));
	for (page = 0; page < half; page++)
		swapped += pagemap_has(to->at + bytes(page), PM_IN_SWAP);
	EXPECT_EQ(half, swapped);
	for (page = 0; page < half; page++)
		EXPECT_TRUE(page_is(to->at + bytes(page), pattern(page)));
}

/*
 * One call moves pages down by one page within the same range, so the old place
 * and the new place overlap. Each page moves once, and all other pages stay:
 *
 *	before	-  1  2  3  4  5  6  7  8  9 ...
 *	after	1  2  3  4  5  6  7  8  -  9 ...
 *
 * `make tlb` checks the invalidations of this move.
 */
TEST_F(moved, by_one_page)
{
	struct memory *m = &self->from;
	unsigned int half = m->pages / 2;
	struct uffdio_register where = {
		.range = { (unsigned long)m->at, bytes(m->pages) },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	ASSERT_EQ(0, madvise(m->at, bytes(1), MADV_DONTNEED));
	ASSERT_EQ(0, move_pages(self->uffd, m->at, m->at + bytes(1), half));
	for (unsigned int page = 0; page < m->pages; page++) {
		unsigned char value = variant->zeros ? 0 : pattern(page < half ? page + 1 : page);
		char *at = m->at + bytes(page);

		if (page == half) {
			EXPECT_EQ(SIGBUS, try_access(at, false));
		} else {
			EXPECT_TRUE(page_is(at, value)) {
				TH_LOG("content of page %u", page);
			}
		}
	}
	DID(half, "pages moved");
}

TEST_HARNESS_MAIN
