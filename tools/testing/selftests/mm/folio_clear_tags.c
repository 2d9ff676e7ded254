// SPDX-License-Identifier: GPL-2.0
/*
 * Tags of fresh memory (MTE, arm64).
 *
 * Proves: memory that is mapped with PROT_MTE contains only zeros and has only
 * tags of value 0, although its frames had other bytes and other tags before. A
 * process can also fill memory that has no PROT_MTE, and set PROT_MTE later.
 * All tags of this memory then have the value 0, although its frames had other
 * tags before. The content of the memory is unchanged. Both hold for hugetlb
 * pages too, on kernels that allow tags there.
 *
 * How: as in folio_clear. The test writes and reads tags one by one, and
 * enables no tag checks. The virtual machine of this program has memory with
 * tags.
 *
 * Does not prove: tag checks (selftests/arm64/mte tests them). QEMU 7.2 keeps
 * only two tags for a whole page: one for all even granules, and one for all
 * odd granules. So the test notices if a whole page keeps its old tags. It does
 * not notice if only one granule keeps its old tag.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear_tags
 */
#include "folio_clear.h"
#include "folio_tags.h"
#include "hugetlb_pool.h"

/* Each round allocates this many bytes, or one folio if a folio is larger. */
#define ROOM (4UL << 20)

FIXTURE(folio_clear_tags)
{
	struct memory memory;
	struct filled filled;
	unsigned int folios;
	int order;
};

FIXTURE_VARIANT(folio_clear_tags)
{
	enum folio_size size;
};

FIXTURE_VARIANT_ADD(folio_clear_tags, single_pages)
{
	.size = SINGLE_PAGES,
};

FIXTURE_VARIANT_ADD(folio_clear_tags, blocks)
{
	.size = BLOCKS,
};

FIXTURE_VARIANT_ADD(folio_clear_tags, huge_pages)
{
	.size = HUGE_PAGES,
};

FIXTURE_SETUP(folio_clear_tags)
{
	const char *why;

	self->memory.fd = -1;
	if (!have_tags())
		SKIP(return, "memory has no tags here: needs arm64 with MTE");
	self->order = order_of_size(variant->size);
	why = clear_settings(self->order);
	if (why)
		SKIP(return, "%s", why);
	self->folios = folios_in(ROOM, self->order);
}

FIXTURE_TEARDOWN(folio_clear_tags)
{
	memory_free(&self->memory);
	filled_free(&self->filled);
}

/* Map the memory of one round, and write a zero to each folio. */
static bool take(FIXTURE_DATA(folio_clear_tags) * self, bool of_file, int prot)
{
	int flags = of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = of_file ? fresh_file(self->folios << self->order) : -1;
	struct memory *m = &self->memory;

	if (of_file && fd < 0)
		return false;
	if (!fresh_map(m, self->order, self->folios, prot, flags, fd))
		return false;
	for (unsigned int page = 0; page < m->pages; page += 1U << self->order)
		write_zero(m->at + bytes(page));
	return true;
}

/* The number of granules with a nonzero tag. */
static size_t tagged(const struct memory *m)
{
	size_t count = 0;

	for (size_t i = 0; i < bytes(m->pages); i += GRANULE)
		count += !!tag_of(m->at + i);
	return count;
}

/*
 * Allocate memory with tags, fill it, set all tags, note its frames, and free
 * it. Returns whether it worked.
 */
static bool leave_tags(FIXTURE_DATA(folio_clear_tags) * self, bool of_file)
{
	struct memory *m = &self->memory;
	bool right = take(self, of_file, PROT_READ | PROT_WRITE | PROT_MTE) &&
		     fill(&self->filled, m->at, m->pages);

	for (size_t i = 0; right && i < bytes(m->pages); i += GRANULE)
		set_tag(m->at + i, 1 + i / GRANULE % 15);
	/* The test needs frames in which all tags are nonzero. */
	right = right && tagged(m) == bytes(m->pages) / GRANULE;
	memory_free(m);
	return right;
}

static void check(struct __test_metadata *_metadata, FIXTURE_DATA(folio_clear_tags) * self,
		  bool of_file, bool later)
{
	int prot = PROT_READ | PROT_WRITE;
	unsigned int again, pages = self->folios << self->order;
	struct memory *m = &self->memory;
	int tries = 0;

	do {
		ASSERT_TRUE(leave_tags(self, of_file));
		ASSERT_TRUE(take(self, of_file, later ? prot : prot | PROT_MTE));
		EXPECT_EQ(0, not_zero(m->at, pages));
		EXPECT_TRUE(are_folios(m->at, pages, self->order));
		again = were_filled(&self->filled, m->at, pages);
		if (later) {
			memset(m->at, pattern(tries), bytes(pages));
			ASSERT_EQ(0, mprotect(m->at, bytes(pages), prot | PROT_MTE));
			for (unsigned int page = 0; page < pages; page++)
				EXPECT_TRUE(page_is(m->at + bytes(page), pattern(tries)));
		}
		EXPECT_EQ(0, tagged(m)) {
			TH_LOG("some granules of %u pages have a nonzero tag, round %d", pages,
			       tries);
		}
		memory_free(m);
	} while (2 * again < pages && ++tries < TRIES);
	EXPECT_LE(pages, 2 * again) {
		TH_LOG("fewer than half of %u pages are in filled frames: this proves nothing",
		       pages);
	}
}

/*
 * The test maps anonymous memory with PROT_MTE. It repeats this until at least
 * half of the memory is in frames that had nonzero tags. The content of the
 * memory is zero, and all its tags have the value 0.
 */
TEST_F_TIMEOUT(folio_clear_tags, anon, 120)
{
	check(_metadata, self, false, false);
}

/*
 * The test maps a memory file with PROT_MTE, so the pages are in the page
 * cache. It repeats this until at least half of the pages are in frames that
 * had nonzero tags. The content of the pages is zero, and all their tags have
 * the value 0.
 */
TEST_F_TIMEOUT(folio_clear_tags, file, 120)
{
	check(_metadata, self, true, false);
}

/*
 * Anonymous memory gets PROT_MTE after the process has filled it. All its tags
 * then have the value 0, and its content is unchanged.
 */
TEST_F_TIMEOUT(folio_clear_tags, anon_later, 120)
{
	check(_metadata, self, false, true);
}

FIXTURE(hugetlb_tags)
{
	struct hugetlb_pool pool;
	size_t size;
};

/*
 * @later: the process maps the page without PROT_MTE, writes to it, and sets PROT_MTE later
 */
FIXTURE_VARIANT(hugetlb_tags)
{
	bool later;
};

FIXTURE_VARIANT_ADD(hugetlb_tags, at_once)
{
	.later = false,
};

FIXTURE_VARIANT_ADD(hugetlb_tags, later)
{
	.later = true,
};

FIXTURE_SETUP(hugetlb_tags)
{
	const char *why;

	if (!have_tags())
		SKIP(return, "memory has no tags here: needs arm64 with MTE");
	self->size = hugetlb_size(0);
	why = hugetlb_pool_have(&self->pool, self->size, 1);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(hugetlb_tags)
{
	hugetlb_pool_restore(&self->pool);
}

/*
 * A process maps a hugetlb page with PROT_MTE, sets all its tags, and drops it. The next mapping
 * gets the same frame. The content of this mapping is the one that the process wrote, or zero, and
 * all its tags have the value 0.
 */
TEST_F_TIMEOUT(hugetlb_tags, next_mapping, 60)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
		    order_of(self->size) << MAP_HUGE_SHIFT;
	int prot = PROT_READ | PROT_WRITE, first = variant->later ? prot : prot | PROT_MTE;
	struct memory m = { .pages = self->size / psize() };
	unsigned long frame = 0, again = 0;

	for (int round = 0; round < TRIES; round++) {
		int value = variant->later ? pattern(round) : 0;

		m.at = mmap(NULL, self->size, first, flags, -1, 0);
		if (m.at == MAP_FAILED && errno == EINVAL)
			SKIP(return, "hugetlb takes no PROT_MTE here");
		ASSERT_NE(MAP_FAILED, m.at);
		write_zero(m.at);
		EXPECT_EQ(0, not_zero(m.at, m.pages));
		if (variant->later) {
			memset(m.at, value, self->size);
			if (mprotect(m.at, self->size, prot | PROT_MTE) && errno == EINVAL)
				SKIP(return, "hugetlb takes no PROT_MTE here");
		}
		for (unsigned int page = 0; page < m.pages; page++)
			EXPECT_TRUE(page_is(m.at + bytes(page), value));
		EXPECT_EQ(0, tagged(&m)) {
			TH_LOG("some granules have a nonzero tag, round %d", round);
		}
		again += pfn_of(m.at) == frame;
		frame = pfn_of(m.at);
		set_tags(m.at, self->size, 1 + round % 15);
		ASSERT_EQ(self->size / GRANULE, tagged(&m));
		munmap(m.at, self->size);
	}
	DID(again, "mappings in a frame that had tags");
}

TEST_HARNESS_MAIN
