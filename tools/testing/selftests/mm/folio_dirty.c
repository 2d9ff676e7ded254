// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages of a mapped file are dirty, in large folios of the page cache.
 *
 * Proves: if mprotect() makes clean and dirty pages writable in one batch,
 * fsync() writes later changes of all these pages to the disk. After writeback,
 * the next write to a page makes the kernel notify the file system again.
 *
 * How: O_DIRECT reads the content of the disk. /proc/kpageflags shows whether a
 * folio is dirty.
 *
 * Does not prove: what happens on file systems that mark only part of a folio
 * as dirty when a page becomes writable. XFS marks the whole folio.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_dirty
 */
#include "folio_owner.h"

#define FOLIOS 4

FIXTURE(folio_dirty)
{
	struct memory memory;
	int direct;	/* the file, opened with O_DIRECT */
};

FIXTURE_VARIANT(folio_dirty)
{
	bool writeback;	/* whether to call fsync() between the two mprotect() calls */
};

FIXTURE_VARIANT_ADD(folio_dirty, still_dirty)
{
	.writeback = false,
};

FIXTURE_VARIANT_ADD(folio_dirty, written_back)
{
	.writeback = true,
};

/*
 * Write the file again, with one call for each folio. A single call for the
 * whole file would make a larger folio. Returns whether each folio has the
 * order @m->order.
 */
static bool separate(struct memory *m)
{
	size_t size = bytes(1U << m->order), length = bytes(m->pages);
	char *content = malloc(length);
	bool right = content && !fsync(m->fd);

	for (size_t at = 0; at < length && right; at += psize())
		memset(content + at, pattern(at / psize()), psize());
	right = right && !munmap(m->at, length) &&
		!posix_fadvise(m->fd, 0, length, POSIX_FADV_DONTNEED);
	for (size_t at = 0; at < length && right; at += size)
		right = pwrite(m->fd, content + at, size, at) == (ssize_t)size;
	free(content);
	if (!right || fsync(m->fd) ||
	    mmap(m->at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd, 0) != m->at)
		return false;
	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(m->at + bytes(page));
	for (unsigned int page = 0; page < m->pages && right; page += 1U << m->order)
		right = is_folio(m, page) && kernel_flags(m->at + bytes(page)) & FOLIO_HEAD;
	return right;
}

static const char *map_file(struct memory *m)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	if (why)
		return why;
	/* The page cache sometimes uses smaller folios, so try again. */
	for (int i = 0; i < 8; i++) {
		memory_free(m);
		why = memory_map(m, XFS, order, FOLIOS);
		if (!why && separate(m))
			return NULL;
	}
	return why ?: "the page cache has no folios of this size";
}

FIXTURE_SETUP(folio_dirty)
{
	const char *why;
	char path[32];

	self->memory = (struct memory){ .fd = -1 };
	self->direct = -1;
	why = map_file(&self->memory);
	if (why)
		SKIP(return, "%s", why);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->memory.fd);
	self->direct = open(path, O_RDONLY | O_DIRECT);
	ASSERT_LE(0, self->direct);
}

FIXTURE_TEARDOWN(folio_dirty)
{
	close(self->direct);
	memory_free(&self->memory);
}

/* The first page whose content on the disk differs from @values, or -1. */
static int not_on_disk(int direct, unsigned int pages, const unsigned char *values)
{
	char *disk = mmap(NULL, bytes(pages), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int wrong = 0;

	if (disk == MAP_FAILED || pread(direct, disk, bytes(pages), 0) != (ssize_t)bytes(pages))
		wrong = pages;
	for (unsigned int page = 0; page < pages && !wrong; page++)
		if (!page_is(disk + bytes(page), values[page]))
			wrong = page + 1;
	munmap(disk, bytes(pages));
	return wrong - 1;
}

/* The flags of the folio that contains the page. */
static __u64 folio_flags(const struct memory *m, unsigned int page)
{
	return kernel_flags(m->at + bytes(page & -(1U << m->order)));
}

static unsigned int dirty_folios(const struct memory *m)
{
	unsigned int count = 0;

	for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
		count += !!(folio_flags(m, page) & FOLIO_DIRTY);
	return count;
}

/*
 * Fill pages with new values. If @chosen is true, fill the pages that the round
 * chooses. If @chosen is false, fill the pages that the round does not choose.
 * Returns the number of filled pages.
 */
static unsigned long fill(struct memory *m, unsigned char *values, unsigned int round,
			  bool chosen)
{
	unsigned int size = 1U << m->order;
	unsigned long count = 0;

	for (unsigned int page = 0; page < m->pages; page++) {
		/*
		 * Each round chooses one page of each folio. Odd rounds also
		 * choose every third page of the file.
		 */
		bool first = page % size == round % size || (round % 2 && page % 3 == 0);

		if (first != chosen)
			continue;
		values[page] += 100;
		memset(m->at + bytes(page), values[page], bytes(1));
		count++;
	}
	return count;
}

/*
 * The test writes to some pages of each folio. The entries of the other pages
 * are clean and read-only. mprotect() makes all pages read-only and then
 * writable, so one batch has dirty and clean entries. One variant calls fsync()
 * between the two mprotect() calls. The test then writes to all other pages,
 * and fsync() must write each byte to the disk. This fsync() makes all entries
 * read-only. The test then writes to one page again, and one more fsync() must
 * write the new content of this page to the disk. In each of 16 rounds the test
 * chooses different pages.
 */
TEST_F_TIMEOUT(folio_dirty, mprotect_and_back, 120)
{
	struct memory *m = &self->memory;
	unsigned long first = 0, others = 0, notified = 0;
	unsigned char values[FOLIOS * 128];
	size_t length = bytes(m->pages);

	ASSERT_GE(sizeof(values), m->pages);
	for (unsigned int page = 0; page < m->pages; page++)
		values[page] = pattern(page);
	for (unsigned int round = 0; round < 16; round++) {
		unsigned int again = (round * 7 + 3) % m->pages;

		ASSERT_EQ(0, fsync(m->fd));
		ASSERT_EQ(0, dirty_folios(m));
		first += fill(m, values, round, true);
		ASSERT_EQ(FOLIOS, dirty_folios(m));
		ASSERT_EQ(0, mprotect(m->at, length, PROT_READ));
		if (variant->writeback) {
			ASSERT_EQ(0, fsync(m->fd));
			ASSERT_EQ(0, dirty_folios(m));
		}
		ASSERT_EQ(0, mprotect(m->at, length, PROT_READ | PROT_WRITE));
		others += fill(m, values, round, false);
		EXPECT_EQ(FOLIOS, dirty_folios(m)) {
			TH_LOG("round %u: the file system missed writes", round);
		}
		ASSERT_EQ(0, fsync(m->fd));
		EXPECT_EQ(-1, not_on_disk(self->direct, m->pages, values)) {
			TH_LOG("round %u: page %d is not on the disk", round,
			       not_on_disk(self->direct, m->pages, values));
		}
		ASSERT_EQ(0, dirty_folios(m));
		memset(m->at + bytes(again), ++values[again], bytes(1));
		notified += dirty_folios(m);
		ASSERT_EQ(0, fsync(m->fd));
		ASSERT_EQ(-1, not_on_disk(self->direct, m->pages, values)) {
			TH_LOG("round %u: the second write to page %u is lost", round, again);
		}
	}
	DID(first, "pages written to before mprotect()");
	DID(others, "pages clean at mprotect(), and written to afterwards");
	EXPECT_EQ(16, notified);
}

TEST_HARNESS_MAIN
