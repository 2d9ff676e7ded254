// SPDX-License-Identifier: GPL-2.0
/*
 * The tags of a large folio that the kernel splits (MTE, arm64).
 *
 * Proves: a split of a large folio changes no tags of its pages. It does not
 * matter which pages of the folio have PROT_MTE. A page that gets PROT_MTE
 * after the split has only tags of value 0, although its frame had other tags
 * before.
 *
 * How: mprotect() sets PROT_MTE for all pages of each folio, for the first page,
 * or for all pages except the first. Then madvise(MADV_COLD) of one page splits
 * the folio. The test writes and reads tags one by one, and enables no tag
 * checks.
 *
 * Does not prove: the tags of files. All granules of a page get the same tag,
 * because QEMU 7.2 keeps only two tags of each page; see folio_clear_tags.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_split_tags
 */
#include "folio_clear.h"
#include "folio_did.h"
#include "folio_known.h"
#include "folio_owner.h"
#include "folio_state.h"
#include "folio_tags.h"

/* Each round allocates this many bytes, or one folio if a folio is larger. */
#define ROOM (4UL << 20)

#define RW (PROT_READ | PROT_WRITE)

/* LEFT is the tag that the test leaves in free memory. */
#define LEFT 10
#define MARK 5

/* A part of each folio. */
enum some_pages { ALL, FIRST, OTHERS };

FIXTURE(folio_split_tags)
{
	struct memory memory;
	struct filled filled;
	unsigned int folios;
	int order;
};

FIXTURE_VARIANT(folio_split_tags)
{
	enum folio_size size;
};

FIXTURE_VARIANT_ADD(folio_split_tags, blocks)
{
	.size = BLOCKS,
};

FIXTURE_VARIANT_ADD(folio_split_tags, huge_pages)
{
	.size = HUGE_PAGES,
};

FIXTURE_SETUP(folio_split_tags)
{
	const char *why;

	self->memory.fd = -1;
	if (!have_tags())
		SKIP(return, "memory has no tags here: needs arm64 with MTE");
	self->order = order_of_size(variant->size);
	why = clear_settings(self->order);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	self->folios = folios_in(ROOM, self->order);
}

FIXTURE_TEARDOWN(folio_split_tags)
{
	memory_free(&self->memory);
	filled_free(&self->filled);
}

/* Whether a page belongs to a part of its folio. */
static bool in_part(const struct memory *m, unsigned int page, enum some_pages part)
{
	bool first = !(page & ((1U << m->order) - 1));

	return part == ALL || first == (part == FIRST);
}

/* Set PROT_MTE for a part of each folio. Returns true on success. */
static bool enable_tags(const struct memory *m, enum some_pages part)
{
	unsigned int size = 1U << m->order, skip = part == OTHERS;
	bool right = true;

	for (unsigned int page = 0; page < m->pages; page += size)
		right = right && !mprotect(m->at + bytes(page + skip),
					   bytes(part == FIRST ? 1 : size - skip), RW | PROT_MTE);
	return right;
}

/* How many pages belong to large folios. */
static unsigned int in_folios(const struct memory *m)
{
	unsigned int count = 0;

	for (unsigned int page = 0; page < m->pages; page++)
		count += !!(kernel_flags(m->at + bytes(page)) & (FOLIO_HEAD | FOLIO_TAIL));
	return count;
}

/* Split all folios with madvise(MADV_COLD) of one page of each folio. Returns true on success. */
static bool split(const struct memory *m)
{
	bool right = in_folios(m) == m->pages;

	for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
		right = right && !madvise(m->at + bytes(page + 1), bytes(1), MADV_COLD);
	return right && !in_folios(m);
}

/* Whether all granules of a page have this tag. */
static bool has_tag(const char *page, unsigned int tag)
{
	for (size_t i = 0; i < bytes(1); i += GRANULE)
		if (tag_of(page + i) != tag)
			return false;
	return true;
}

/* How many pages have this tag. Counts only pages that belong to the part. */
static unsigned int tagged(const struct memory *m, enum some_pages part, unsigned int tag)
{
	unsigned int count = 0;

	for (unsigned int page = 0; page < m->pages; page++)
		count += in_part(m, page, part) && has_tag(m->at + bytes(page), tag);
	return count;
}

/*
 * Map the folios, and fill all their pages; fill() also notes the frames.
 * Returns true on success.
 */
static bool take(FIXTURE_DATA(folio_split_tags) * self, int prot)
{
	struct memory *m = &self->memory;

	return fresh_map(m, self->order, self->folios, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1) &&
	       fill(&self->filled, m->at, m->pages) && are_folios(m->at, m->pages, self->order);
}

/* The number of pages that do not have the bytes that fill() wrote. */
static unsigned int changed(const struct memory *m)
{
	unsigned int count = 0;

	for (unsigned int page = 0; page < m->pages; page++)
		count += !page_is(m->at + bytes(page), pattern(page));
	return count;
}

/*
 * Give some pages of each folio the tag MARK, and split the folios. Returns how
 * many of these pages keep MARK. @cleared receives how many of them have the
 * tag 0.
 */
static unsigned int keep(struct __test_metadata *_metadata, FIXTURE_DATA(folio_split_tags) * self,
			 enum some_pages part, unsigned int *cleared)
{
	struct memory *m = &self->memory;

	ASSERT_TRUE(take(self, RW));
	ASSERT_TRUE(enable_tags(m, part));
	for (unsigned int page = 0; page < m->pages; page++)
		if (in_part(m, page, part))
			set_tags(m->at + bytes(page), bytes(1), MARK);
	*cleared = tagged(m, part, MARK);
	ASSERT_EQ(*cleared, part == ALL ? m->pages : m->pages - self->folios);
	ASSERT_TRUE(split(m));
	EXPECT_EQ(0, changed(m));
	*cleared = tagged(m, part, 0);
	return tagged(m, part, MARK);
}

/* All pages of a folio have tags, and keep them when the kernel splits the folio. */
TEST_F_TIMEOUT(folio_split_tags, all_pages_keep_tags, 120)
{
	unsigned int cleared, kept = keep(_metadata, self, ALL, &cleared);

	EXPECT_EQ(self->memory.pages, kept);
	DID(kept, "pages with their tags");
}

/*
 * All pages of a folio except the first have tags, and keep them when the kernel
 * splits the folio.
 *
 * Known issue 81: after the split all these tags are 0.
 */
TEST_F_TIMEOUT(folio_split_tags, other_pages_keep_tags, 120)
{
	unsigned int cleared, kept = keep(_metadata, self, OTHERS, &cleared);
	unsigned int pages = self->memory.pages - self->folios;

	DID(kept + cleared, "pages compared");
	if (cleared == pages) {
		KNOWN_ISSUE(81, "a split clears the tags of a folio whose first page has no tags");
		return;
	}
	EXPECT_EQ(pages, kept);
	STALE_ISSUE(81);
}

/*
 * Allocate folios that have tags, note their frames in @before, and free them.
 * Allocate folios without PROT_MTE. Set PROT_MTE for the first page of each
 * folio, split the folios, and set PROT_MTE for the other pages. Returns how
 * many of the other pages are in frames of @before.
 */
static unsigned int tag_later(struct __test_metadata *_metadata,
			      FIXTURE_DATA(folio_split_tags) * self, struct filled *before)
{
	struct memory *m = &self->memory;
	unsigned int used = 0;

	ASSERT_TRUE(take(self, RW | PROT_MTE));
	set_tags(m->at, bytes(m->pages), LEFT);
	ASSERT_EQ(m->pages, tagged(m, ALL, LEFT));
	ASSERT_TRUE(fill_more(before, m->at, m->pages));
	memory_free(m);
	ASSERT_TRUE(take(self, RW));
	for (unsigned int page = 0; page < m->pages; page++)
		if (in_part(m, page, OTHERS))
			used += were_filled(before, m->at + bytes(page), 1);
	ASSERT_TRUE(enable_tags(m, FIRST));
	ASSERT_TRUE(split(m));
	ASSERT_TRUE(enable_tags(m, OTHERS));
	EXPECT_EQ(0, changed(m));
	return used;
}

/*
 * The first page of a folio has tags. After the kernel has split the folio, the
 * other pages get PROT_MTE too. Their tags all have the value 0. The test
 * repeats this until at least half of these pages are in frames that had other
 * tags. After each round, all frames have such tags again.
 *
 * Known issue 81: the pages have the tags that their frames had before.
 */
TEST_F_TIMEOUT(folio_split_tags, later_tags_are_zero, 120)
{
	struct memory *m = &self->memory;
	unsigned int used, left, zero, pages;
	struct filled before = {};
	int tries = 0;

	do {
		memory_free(m);
		used = tag_later(_metadata, self, &before);
		pages = m->pages - self->folios;
		left = tagged(m, OTHERS, LEFT);
		zero = tagged(m, OTHERS, 0);
		EXPECT_EQ(self->folios, tagged(m, FIRST, 0));
		set_tags(m->at, bytes(m->pages), LEFT);
		ASSERT_TRUE(fill_more(&before, m->at, m->pages));
	} while (2 * used < pages && zero == pages && ++tries < TRIES);
	filled_free(&before);
	DID(used, "pages in frames that had tags");
	TH_LOG("%u of %u pages have tags of value 0, %u have the tags of their frames", zero,
	       pages, left);
	/* Other frames may have tags that an earlier program left there. */
	if (left && left >= used) {
		KNOWN_ISSUE(81, "after a split, pages have tags that their frames had before");
		return;
	}
	EXPECT_EQ(pages, zero);
	EXPECT_LE(pages, 2 * used) {
		TH_LOG("fewer than half of %u pages are in frames with tags: this proves nothing",
		       pages);
	}
	STALE_ISSUE(81);
}

TEST_HARNESS_MAIN
