// SPDX-License-Identifier: GPL-2.0
/*
 * mincore() of a mapping of a file.
 *
 * Proves: for each page, mincore() says whether the file has it in memory. An access to one page of
 * the mapping changes nothing for the other pages. This holds for shared and private mappings, with
 * hugetlb pages and with small pages.
 *
 * How: the file has PAGES pages. All but the last page are in memory: the test has written to them
 * through another mapping. The test calls mincore() before and after it accesses the first page.
 * The two mappings never share a page table.
 *
 * Does not prove: what mincore() says about swap, or about files that the caller cannot write to.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_mincore
 */
#include "folio_did.h"
#include "folio_known.h"
#include "hugetlb_pool.h"

#define PAGES 4
#define HOLE (PAGES - 1)

FIXTURE(hugetlb_mincore)
{
	struct hugetlb_pool pool;
	size_t size;
	char *room;	/* memory that the mappings replace */
	size_t length;	/* of @room */
	char *writer;	/* the mapping that writes to the file */
	char *at;	/* the mapping that the test looks at */
	int fd;
};

FIXTURE_VARIANT(hugetlb_mincore)
{
	bool small;
	int flags;
};

FIXTURE_VARIANT_ADD(hugetlb_mincore, shared)
{
	.flags = MAP_SHARED,
};

FIXTURE_VARIANT_ADD(hugetlb_mincore, private)
{
	.flags = MAP_PRIVATE,
};

FIXTURE_VARIANT_ADD(hugetlb_mincore, small_shared)
{
	.small = true,
	.flags = MAP_SHARED,
};

FIXTURE_VARIANT_ADD(hugetlb_mincore, small_private)
{
	.small = true,
	.flags = MAP_PRIVATE,
};

FIXTURE_SETUP(hugetlb_mincore)
{
	unsigned int type = 0;
	const char *why = NULL;
	size_t span;
	char *begin;

	self->fd = -1;
	self->room = MAP_FAILED;
	self->pool.folder[0] = 0;
	self->size = psize();
	if (variant->small) {
		why = folio_settings(0);
	} else {
		self->size = hugetlb_size(0);
		type = MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT;
		why = hugetlb_pool_have(&self->pool, self->size, 2 * PAGES);
	}
	if (why)
		SKIP(return, "%s", why);
	/* A table of this many bytes of entries maps not more than @span. */
	span = self->size * (psize() / sizeof(uint64_t));
	self->length = 4 * span;
	self->room = mmap(NULL, self->length, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	begin = (char *)(((unsigned long)self->room + span - 1) & -span);
	self->fd = syscall(__NR_memfd_create, "hugetlb_mincore", type);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, PAGES * self->size));
	self->writer = mmap(begin, PAGES * self->size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED, self->fd, 0);
	self->at = mmap(begin + 2 * span, PAGES * self->size, PROT_READ | PROT_WRITE,
			variant->flags | MAP_FIXED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->writer);
	ASSERT_NE(MAP_FAILED, self->at);
}

FIXTURE_TEARDOWN(hugetlb_mincore)
{
	if (self->room != MAP_FAILED)
		munmap(self->room, self->length);
	if (self->fd >= 0)
		close(self->fd);
	hugetlb_pool_restore(&self->pool);
}

/*
 * Returns a bit for each page that is in memory, or -1 if mincore() fails or gives different
 * answers for the parts of one page.
 */
static int in_memory(char *at, size_t size)
{
	const size_t parts = size / psize();
	unsigned char *answers = malloc(PAGES * parts);
	int found = 0;

	if (!answers || mincore(at, PAGES * size, answers))
		found = -1;
	for (size_t i = 0; found >= 0 && i < PAGES * parts; i++) {
		if ((answers[i] & 1) != (answers[i - i % parts] & 1))
			found = -1;
		else
			found |= (answers[i] & 1) << (i / parts);
	}
	free(answers);
	return found;
}

/*
 * The last page is a hole, and all other pages are in memory. After an access to the first page,
 * and after an access to the second page, mincore() gives the same answer as before.
 *
 * Known issue 105: after the first access the mapping has a page table. Then mincore() finds only
 * hugetlb pages that the process has accessed in this mapping.
 */
TEST_F(hugetlb_mincore, other_pages_stay_in_memory)
{
	const int present = (1 << HOLE) - 1;
	int before, first, second;

	for (int page = 0; page < HOLE; page++)
		memset(self->writer + page * self->size, 1 + page, psize());
	before = in_memory(self->at, self->size);
	ASSERT_EQ(0, try_access(self->at, variant->flags == MAP_PRIVATE));
	first = in_memory(self->at, self->size);
	ASSERT_EQ(0, try_access(self->at + self->size, variant->flags == MAP_PRIVATE));
	second = in_memory(self->at, self->size);
	DID(PAGES, "pages");
	TH_LOG("pages in memory: %#x, after an access %#x, after another %#x",
	       before, first, second);
	EXPECT_EQ(present, before);
	EXPECT_EQ(present, in_memory(self->writer, self->size));
	if (!variant->small && first == 1 && second == 3) {
		KNOWN_ISSUE(105, "mincore() finds only hugetlb pages that were accessed");
		return;
	}
	EXPECT_EQ(present, first);
	EXPECT_EQ(present, second);
	if (!variant->small)
		STALE_ISSUE(105);
}

TEST_HARNESS_MAIN
