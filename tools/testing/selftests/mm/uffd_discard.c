// SPDX-License-Identifier: GPL-2.0
/*
 * A page whose content was discarded counts as written to.
 *
 * Proves: if MADV_DONTNEED or MADV_REMOVE has discarded the content of a page,
 * PAGEMAP_SCAN reports the page as soon as it has new content. This holds even
 * if the page was protected before. A page that keeps its content is not
 * reported.
 *
 * How: memory has asynchronous write protection by userfaultfd. The test protects all pages, as a
 * program that makes incremental copies does. The test then discards the first half. After that,
 * each page is read and scanned. As one control, MADV_DONTNEED drops entries of shared memory,
 * which keeps its content. As another control, MADV_DONTNEED drops anonymous memory, where the
 * kernel always clears the entries.
 *
 * Does not prove: that a scan reports a hole of hugetlb memory that no process has read yet.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_discard
 */
#include <linux/fs.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "hugetlb_pool.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_IN_SWAP BIT_ULL(62)

#define PAGES 8
#define DISCARDED (PAGES / 2)

FIXTURE(uffd_discard)
{
	struct hugetlb_pool pool;
	size_t size;
	char *at;
	int uffd;
	int file;
	int pagemap;
};

/*
 * @file: whether the memory is a file; @shared: whether the mapping is shared; @hugetlb: whether
 * the pages are hugetlb pages; @advice: what discards the pages; @kept: whether they keep their
 * content;
 * @swapped: whether they are in swap
 */
FIXTURE_VARIANT(uffd_discard)
{
	bool file;
	bool shared;
	bool hugetlb;
	int advice;
	bool kept;
	bool swapped;
};

FIXTURE_VARIANT_ADD(uffd_discard, anon)
{
	.advice = MADV_DONTNEED,
};

FIXTURE_VARIANT_ADD(uffd_discard, shared_kept)
{
	.file = true,
	.shared = true,
	.advice = MADV_DONTNEED,
	.kept = true,
};

FIXTURE_VARIANT_ADD(uffd_discard, private)
{
	.file = true,
	.advice = MADV_DONTNEED,
};

FIXTURE_VARIANT_ADD(uffd_discard, private_swapped)
{
	.file = true,
	.advice = MADV_DONTNEED,
	.swapped = true,
};

FIXTURE_VARIANT_ADD(uffd_discard, shared)
{
	.file = true,
	.shared = true,
	.advice = MADV_REMOVE,
};

FIXTURE_VARIANT_ADD(uffd_discard, hugetlb_private)
{
	.hugetlb = true,
	.advice = MADV_DONTNEED,
};

FIXTURE_VARIANT_ADD(uffd_discard, hugetlb_shared)
{
	.hugetlb = true,
	.shared = true,
	.advice = MADV_REMOVE,
};

/* Map the memory of the variant. Returns NULL, or the reason why this memory is not available. */
static const char *map(FIXTURE_DATA(uffd_discard) * self,
		       const FIXTURE_VARIANT(uffd_discard) * variant)
{
	int flags = variant->shared ? MAP_SHARED : MAP_PRIVATE;
	const char *why;

	if (!variant->file)
		flags |= MAP_ANONYMOUS;
	if (variant->hugetlb) {
		self->size = hugetlb_size(0);
		if (!self->size)
			return "no hugetlb pages";
		why = hugetlb_pool_have(&self->pool, self->size, PAGES);
		if (why)
			return why;
		flags |= MAP_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT;
	}
	if (variant->file)
		self->file = memory_file(SHMEM, PAGES);
	self->at = mmap(NULL, PAGES * self->size, PROT_READ | PROT_WRITE, flags, self->file, 0);
	return self->at == MAP_FAILED ? "no memory" : NULL;
}

FIXTURE_SETUP(uffd_discard)
{
	const char *why = folio_settings(0);

	self->at = MAP_FAILED;
	self->size = psize();
	self->pool.folder[0] = 0;
	self->file = -1;
	self->pagemap = open("/proc/self/pagemap", O_RDONLY);
	self->uffd = listener(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED |
			      UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (!why && self->uffd < 0)
		why = "no asynchronous write protection by userfaultfd";
	if (!why && variant->swapped && !have_swap())
		why = "no swap";
	if (!why)
		why = map(self, variant);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_LE(0, self->pagemap);
}

FIXTURE_TEARDOWN(uffd_discard)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->at != MAP_FAILED)
		munmap(self->at, PAGES * self->size);
	if (self->file >= 0)
		close(self->file);
	if (self->pagemap >= 0)
		close(self->pagemap);
	hugetlb_pool_restore(&self->pool);
}

/* Whether PAGEMAP_SCAN reports that a page was written to. Returns -1 if it cannot scan. */
static int written(const FIXTURE_DATA(uffd_discard) * self, unsigned int page)
{
	struct page_region region;
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.start = (unsigned long)self->at + page * self->size,
		.end = (unsigned long)self->at + (page + 1) * self->size,
		.vec = (unsigned long)&region,
		.vec_len = 1,
		.category_mask = PAGE_IS_WRITTEN,
		.return_mask = PAGE_IS_WRITTEN,
	};

	return ioctl(self->pagemap, PAGEMAP_SCAN, &arguments);
}

/*
 * Known issue 41: the kernel keeps the protection in a marker, as it does for
 * pages that keep their content in a file. The page with the new content is
 * then protected too.
 */
TEST_F(uffd_discard, counts_as_written)
{
	const bool issue = !variant->kept && (variant->file || variant->hugetlb);
	struct uffdio_writeprotect on = { .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	size_t length = PAGES * self->size;
	unsigned int page, reported = 0;

	for (page = 0; page < PAGES; page++)
		memset(self->at + page * self->size, pattern(page), self->size);
	ASSERT_EQ(0, listen_to(self->uffd, self->at, length));
	for (page = 0; page < PAGES; page++)
		ASSERT_EQ(1, written(self, page));
	on.range = (struct uffdio_range){ (unsigned long)self->at, length };
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_WRITEPROTECT, &on));
	if (variant->swapped)
		ASSERT_EQ(0, madvise(self->at, length, MADV_PAGEOUT));
	for (page = 0; page < PAGES; page++) {
		ASSERT_EQ(variant->swapped, pagemap_has(self->at + page * self->size, PM_IN_SWAP));
		ASSERT_EQ(0, written(self, page));
	}
	ASSERT_EQ(0, madvise(self->at, DISCARDED * self->size, variant->advice));
	for (page = 0; page < PAGES; page++) {
		bool gone = page < DISCARDED && !variant->kept;
		char *at = self->at + page * self->size;

		EXPECT_TRUE(page_is(at, gone ? 0 : pattern(page)));
		if (page < DISCARDED)
			reported += written(self, page) == 1;
		else
			EXPECT_EQ(0, written(self, page));
	}
	DID(DISCARDED, "pages discarded");
	if (issue && !reported)
		KNOWN_ISSUE(41, "pages with new content count as not written to");
	else
		EXPECT_EQ(variant->kept ? 0 : DISCARDED, reported);
	if (issue && reported == DISCARDED)
		STALE_ISSUE(41);
}

TEST_HARNESS_MAIN
