// SPDX-License-Identifier: GPL-2.0
/*
 * A process drops a hugetlb page while a pipe still uses the page.
 *
 * Proves: after MADV_DONTNEED and munmap() the page in the pipe still counts as used. The process
 * gets another page only if the pool has a page that is not reserved. Another mapping gets the page
 * that it reserved, and the number of reservations is right.
 *
 * How: vmsplice() puts the page into a pipe. The process has two mappings, and each mapping has one
 * page. The pool has exactly two unused pages in some variants, and exactly three in the others. As
 * a control, the test does the same with a page that is in no pipe.
 *
 * Does not prove: anything about pages that a device or io_uring uses, or about
 * files of hugetlbfs.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_pinned
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_util.h"
#include "hugetlb_pool.h"

FIXTURE(hugetlb_pinned)
{
	struct hugetlb_pool pool;
	size_t size;
	unsigned long reserved;	/* before the mappings */
	int pipe[2];
	char *at;
	char *other;	/* a mapping that reserves one page */
};

/*
 * @pinned: the page is in a pipe; @spare: how many pages of the pool are not reserved; @unmap:
 * the process drops the page by munmap() and gets one by mmap(), not by MADV_DONTNEED and a write
 */
FIXTURE_VARIANT(hugetlb_pinned)
{
	bool pinned;
	unsigned int spare;
	bool unmap;
};

FIXTURE_VARIANT_ADD(hugetlb_pinned, dontneed_free)
{
};

FIXTURE_VARIANT_ADD(hugetlb_pinned, dontneed)
{
	.pinned = true,
};

FIXTURE_VARIANT_ADD(hugetlb_pinned, dontneed_spare)
{
	.pinned = true,
	.spare = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_pinned, unmap_free)
{
	.unmap = true,
};

FIXTURE_VARIANT_ADD(hugetlb_pinned, unmap)
{
	.pinned = true,
	.unmap = true,
};

FIXTURE_VARIANT_ADD(hugetlb_pinned, unmap_spare)
{
	.pinned = true,
	.spare = 1,
	.unmap = true,
};

static char *map_one(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		    MAP_HUGETLB | order_of(size) << MAP_HUGE_SHIFT, -1, 0);
}

FIXTURE_SETUP(hugetlb_pinned)
{
	const char *why;

	self->pipe[0] = -1;
	self->pipe[1] = -1;
	self->at = MAP_FAILED;
	self->other = MAP_FAILED;
	self->size = hugetlb_size(0);
	why = hugetlb_pool_have_just(&self->pool, self->size, 2 + variant->spare);
	if (why)
		SKIP(return, "%s", why);
	self->reserved = hugetlb_pool_count(&self->pool, "resv_hugepages");
	ASSERT_EQ(0, pipe(self->pipe));
	self->at = map_one(self->size);
	self->other = map_one(self->size);
	ASSERT_NE(MAP_FAILED, self->at);
	ASSERT_NE(MAP_FAILED, self->other);
}

FIXTURE_TEARDOWN(hugetlb_pinned)
{
	for (int i = 0; i < 2; i++)
		if (self->pipe[i] >= 0)
			close(self->pipe[i]);
	if (self->at != MAP_FAILED)
		munmap(self->at, self->size);
	if (self->other != MAP_FAILED)
		munmap(self->other, self->size);
	hugetlb_pool_restore(&self->pool);
}

/*
 * A process drops a page that is still in a pipe. Then it needs a page again, which it gets only if
 * the pool has a page that is not reserved. The other mapping gets the page that it reserved, and
 * then no reservation is left. The pipe keeps the content of the page.
 *
 * Known issue 66: the process gets the reserved page, and the other mapping gets SIGBUS. If the
 * pool has a third page, both mappings get a page, and the number of reservations is too low by
 * one.
 */
TEST_F(hugetlb_pinned, reservation_of_other)
{
	struct iovec part = { self->at, psize() };
	char in_pipe[part.iov_len];
	bool refused, wrong;
	int caught;
	long left;

	memset(self->at, 1, self->size);
	ASSERT_EQ(variant->spare, hugetlb_pool_left(&self->pool));
	if (variant->pinned)
		ASSERT_EQ((ssize_t)part.iov_len, vmsplice(self->pipe[1], &part, 1, 0));
	if (variant->unmap) {
		ASSERT_EQ(0, munmap(self->at, self->size));
		self->at = map_one(self->size);
	} else {
		ASSERT_EQ(0, madvise(self->at, self->size, MADV_DONTNEED));
		EXPECT_EQ(variant->spare, hugetlb_pool_left(&self->pool));
	}
	refused = self->at == MAP_FAILED || try_access(self->at, true);
	caught = try_access(self->other, true);
	left = hugetlb_pool_count(&self->pool, "resv_hugepages") - self->reserved;
	if (variant->pinned) {
		ASSERT_EQ((ssize_t)part.iov_len, read(self->pipe[0], in_pipe, part.iov_len));
		EXPECT_TRUE(page_is(in_pipe, 1));
	}
	/* The page that was in the pipe is free now. */
	EXPECT_EQ(0, try_access(self->other, true));
	DID(2 - refused - !!caught, "pages that the mappings got");
	wrong = variant->spare ? left == -1 : caught == SIGBUS && !refused;
	if (variant->pinned && wrong) {
		KNOWN_ISSUE(66, "a pinned page gives its reservation back too early");
		return;
	}
	EXPECT_EQ(0, caught);
	EXPECT_EQ(0, left);
	EXPECT_EQ(variant->pinned && !variant->spare, refused);
	if (variant->pinned)
		STALE_ISSUE(66);
}

TEST_HARNESS_MAIN
