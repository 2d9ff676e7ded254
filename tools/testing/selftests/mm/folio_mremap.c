// SPDX-License-Identifier: GPL-2.0
/*
 * mremap() of large folios that leaves the old mapping (MREMAP_DONTUNMAP), or that moves several
 * mappings at once.
 *
 * Proves: each page has its content and its frame at the new place. If the new place has the same
 * alignment, entries have the same size as before. After MREMAP_DONTUNMAP, no entry is left at the
 * old place: anonymous memory reads as zeros there, and a write there does not reach the new place.
 * A file can still be reached at the old place. One mremap() of several mappings
 * (Linux 6.17 and later) keeps the gaps between them, the content, and the permissions of each.
 *
 * How: the memory has three folios, or single pages. The case moves all of it, or a range that
 * begins and ends in the middle of a folio.
 *
 * Does not prove: anything about hugetlb (hugetlb_sizes) or userfaultfd (uffd_mremap).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_mremap
 */
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define FOLIOS 3

/*
 * @to: reserved addresses with the alignment of the folios, which are as many as the memory has;
 *	the room around them belongs to @room
 */
FIXTURE(folio_mremap)
{
	struct memory memory;
	struct memory room;
	char *to;
};

/* @kind: anonymous, or a shared mapping of a file; @order: SINGLE, BLOCK or HUGE */
FIXTURE_VARIANT(folio_mremap)
{
	enum memory_kind kind;
	enum { SINGLE, BLOCK, HUGE } order;
};

FIXTURE_VARIANT_ADD(folio_mremap, single)
{
	.kind = ANON,
	.order = SINGLE,
};

FIXTURE_VARIANT_ADD(folio_mremap, block)
{
	.kind = ANON,
	.order = BLOCK,
};

FIXTURE_VARIANT_ADD(folio_mremap, huge_page)
{
	.kind = ANON,
	.order = HUGE,
};

FIXTURE_VARIANT_ADD(folio_mremap, shmem_block)
{
	.kind = SHMEM,
	.order = BLOCK,
};

FIXTURE_VARIANT_ADD(folio_mremap, shmem_huge)
{
	.kind = SHMEM,
	.order = HUGE,
};

FIXTURE_VARIANT_ADD(folio_mremap, xfs_block)
{
	.kind = XFS,
	.order = BLOCK,
};

FIXTURE_SETUP(folio_mremap)
{
	struct memory *m = &self->memory, *room = &self->room;
	int order = variant->order == SINGLE ? 0 : order_of(cont_ptes());
	const char *why = NULL;

	m->fd = -1;
	m->room = NULL;
	*room = (struct memory){ .fd = -1 };
	if (variant->order == HUGE) {
		order = pmd_pages() ? order_of(pmd_pages()) : 0;
		why = order ? NULL : NO_HUGE_PAGES;
	}
	why = why ?: folio_settings(order);
	if (!why)
		why = memory_map(m, variant->kind, order,
				 variant->order == SINGLE ? FOLIOS * cont_ptes() : FOLIOS);
	if (why)
		SKIP(return, "%s", why);
	folio_settings(0);
	room->room_bytes = 3 * bytes(m->pages) + 2 * bytes(1U << order);
	room->room = mmap(NULL, room->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room->room);
	self->to = (char *)(((unsigned long)room->room + 2 * bytes(1U << order) - 1) &
			    -bytes(1U << order));
}

FIXTURE_TEARDOWN(folio_mremap)
{
	memory_free(&self->memory);
	memory_free(&self->room);
}

/* Move pages. Returns whether mremap() succeeded. */
static bool move(char *from, char *to, unsigned int pages, int flags)
{
	return mremap(from, bytes(pages), bytes(pages), MREMAP_MAYMOVE | MREMAP_FIXED | flags,
		      to) == to;
}

/* Store the frame of each page. */
static unsigned long *frames(const char *at, unsigned int pages)
{
	unsigned long *list = calloc(pages, sizeof(*list));

	for (unsigned int page = 0; list && page < pages; page++)
		list[page] = pfn_of(at + bytes(page));
	return list;
}

/*
 * Check that @pages pages, from number @first on, are at @at, and have their frames. The size of
 * each entry is @size, except if @size is 0.
 */
static void check_moved(struct __test_metadata *_metadata, char *at, unsigned int first,
			unsigned int pages, const unsigned long *frame, size_t size)
{
	unsigned int same = 0;

	EXPECT_EQ(-1, foreign_page(at, first, pages));
	for (unsigned int page = 0; page < pages; page++) {
		same += pfn_of(at + bytes(page)) == frame[first + page];
		if (size)
			EXPECT_EQ(size, mapped_size(at + bytes(page)));
	}
	EXPECT_EQ(pages, same);
}

/* Check the old place after MREMAP_DONTUNMAP: first no entries, then zeros or the file's pages. */
static void check_left(struct __test_metadata *_metadata, const FIXTURE_DATA(folio_mremap) * self,
		       unsigned int first, unsigned int pages, char *to)
{
	const struct memory *m = &self->memory;
	unsigned int right = 0, page;

	EXPECT_EQ(0, present(m, first, pages));
	for (page = first; page < first + pages; page++)
		right += page_is(m->at + bytes(page), m->fd < 0 ? 0 : pattern(page));
	EXPECT_EQ(pages, right);
	for (page = first; page < first + pages; page++)
		m->at[bytes(page)] = 0;
	EXPECT_EQ(m->fd < 0 ? pattern(first) : 0, (unsigned char)to[0]);
	for (page = first; page < first + pages; page++)
		to[bytes(page - first)] = pattern(page);
	EXPECT_EQ(-1, foreign_page(to, first, pages));
	EXPECT_EQ(m->fd < 0 ? 0 : pattern(first), (unsigned char)m->at[bytes(first)]);
}

/* All pages move. Entries have the same size at the new place. */
TEST_F(folio_mremap, dontunmap)
{
	struct memory *m = &self->memory;
	unsigned long *frame = frames(m->at, m->pages);
	size_t size = mapped_size(m->at);

	ASSERT_NE(NULL, frame);
	ASSERT_TRUE(move(m->at, self->to, m->pages, MREMAP_DONTUNMAP));
	check_moved(_metadata, self->to, 0, m->pages, frame, size);
	check_left(_metadata, self, 0, m->pages, self->to);
	DID(m->pages, "pages moved");
	free(frame);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * The pages from the middle of the first folio to the middle of the last folio move. The rest stays
 * at its place.
 */
TEST_F(folio_mremap, dontunmap_part)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, first = size / 2, pages = m->pages - size;
	unsigned long *frame = frames(m->at, m->pages);

	ASSERT_NE(NULL, frame);
	ASSERT_TRUE(move(m->at + bytes(first), self->to + bytes(first), pages, MREMAP_DONTUNMAP));
	check_moved(_metadata, self->to + bytes(first), first, pages, frame, 0);
	check_left(_metadata, self, first, pages, self->to + bytes(first));
	check_moved(_metadata, m->at, 0, first, frame, 0);
	check_moved(_metadata, m->at + bytes(first + pages), first + pages,
		    m->pages - first - pages, frame, 0);
	DID(pages, "pages moved");
	free(frame);
}

/* All pages move to a place with another alignment, one page further. */
TEST_F(folio_mremap, dontunmap_unaligned)
{
	struct memory *m = &self->memory;
	unsigned long *frame = frames(m->at, m->pages);
	char *to = self->to + bytes(1);

	ASSERT_NE(NULL, frame);
	ASSERT_TRUE(move(m->at, to, m->pages, MREMAP_DONTUNMAP));
	check_moved(_metadata, to, 0, m->pages, frame, perf_tells() ? psize() : 0);
	check_left(_metadata, self, 0, m->pages, to);
	DID(m->pages, "pages moved");
	free(frame);
}

/*
 * The middle folio is read-only, and one page in the middle of the last folio is unmapped. So there
 * are four mappings, and a gap. One mremap() moves all of them.
 */
TEST_F(folio_mremap, several)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, gone = 2 * size + size / 2, page, kept = 0;
	unsigned long *frame = frames(m->at, m->pages);
	size_t mapped = mapped_size(m->at);
	unsigned char there;

	ASSERT_NE(NULL, frame);
	ASSERT_EQ(0, mprotect(m->at + bytes(size), bytes(size), PROT_READ));
	ASSERT_EQ(0, munmap(m->at + bytes(gone), bytes(1)));
	if (!move(m->at, self->to, m->pages, 0)) {
		EXPECT_EQ(EFAULT, errno);
		EXPECT_EQ(-1, foreign_page(m->at, 0, gone));
		free(frame);
		SKIP(return, "this kernel moves only one mapping at once");
	}
	for (page = 0; page < m->pages; page++) {
		if (page == gone)
			continue;
		kept += try_access(m->at + bytes(page), false) == SIGSEGV;
	}
	EXPECT_EQ(m->pages - 1, kept);
	/* The reserved page at the gap is still there. */
	EXPECT_EQ(0, mincore(self->to + bytes(gone), psize(), &there));
	EXPECT_EQ(SIGSEGV, try_access(self->to + bytes(gone), false));
	check_moved(_metadata, self->to, 0, size, frame, mapped);
	check_moved(_metadata, self->to + bytes(size), size, size, frame, mapped);
	check_moved(_metadata, self->to + bytes(2 * size), 2 * size, size / 2, frame, 0);
	check_moved(_metadata, self->to + bytes(gone + 1), gone + 1, m->pages - gone - 1, frame, 0);
	EXPECT_EQ(0, try_access(self->to, true));
	EXPECT_EQ(SIGSEGV, try_access(self->to + bytes(size), true));
	EXPECT_EQ(0, try_access(self->to + bytes(2 * size), true));
	EXPECT_EQ(0, try_access(self->to + bytes(m->pages - 1), true));
	DID(kept, "pages moved");
	free(frame);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/* The same, but the range begins in the first mapping and ends in the last one. */
TEST_F(folio_mremap, several_in_part)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, first = size / 2, pages = m->pages - size;
	unsigned long *frame = frames(m->at, m->pages);
	char *to = self->to + bytes(first);

	ASSERT_NE(NULL, frame);
	ASSERT_EQ(0, mprotect(m->at + bytes(size), bytes(size), PROT_READ));
	if (!move(m->at + bytes(first), to, pages, MREMAP_DONTUNMAP)) {
		EXPECT_EQ(EFAULT, errno);
		free(frame);
		SKIP(return, "this kernel moves only one mapping at once");
	}
	EXPECT_EQ(0, present(m, first, pages));
	check_moved(_metadata, to, first, pages, frame, 0);
	check_moved(_metadata, m->at, 0, first, frame, 0);
	check_moved(_metadata, m->at + bytes(first + pages), first + pages,
		    m->pages - first - pages, frame, 0);
	EXPECT_EQ(SIGSEGV, try_access(self->to + bytes(size), true));
	EXPECT_EQ(SIGSEGV, try_access(m->at + bytes(size), true));
	EXPECT_EQ(0, try_access(to, true));
	EXPECT_EQ(0, try_access(m->at + bytes(first), true));
	DID(pages, "pages moved");
	free(frame);
}

TEST_HARNESS_MAIN
