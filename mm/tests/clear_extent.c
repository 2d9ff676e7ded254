// SPDX-License-Identifier: GPL-2.0
/*
 * Memory to be cleared, with neighbours of known content.
 *
 * The page allocator returns blocks. An extent lies in the middle of one block,
 * or of several consecutive blocks, so it can be larger than any block. A write
 * beyond its ends hits pages of known content.
 */

#include <kunit/test-bug.h>
#include <linux/gfp.h>
#include <linux/slab.h>

#include "../internal.h"
#include "clear_extent.h"

/* Blocks from the page allocator: large, but several must fit into memory. */
#define BLOCK_ORDER	min_t(unsigned int, MAX_PAGE_ORDER, \
			      ilog2(SZ_32M) - PAGE_SHIFT)
#define BLOCK_PAGES	((unsigned int)BIT(BLOCK_ORDER))
#define BLOCKS_MAX	1024

/* Each check compares this many guard pages on either side. */
#define GUARD_NEAR	2U

#define PAGE_WORDS	((unsigned int)(PAGE_SIZE / sizeof(u64)))

static u64 *extent_words(struct clear_extent *extent, int page)
{
	return page_address(extent->page + page);
}

/* The content of a word before it is cleared; page 0 is the first to clear. */
static u64 extent_word(struct clear_extent *extent, int page, unsigned int word,
		       enum clear_fill fill)
{
	u64 serial = (page_to_pfn(extent->page) + page) * PAGE_WORDS + word;

	switch (fill) {
	case CLEAR_ONES:
		return ~0ULL;
	case CLEAR_LAST_BYTE:
		return word == PAGE_WORDS - 1 ?
		       (__force u64)cpu_to_be64(0xa5) : 0;
	case CLEAR_WORDS:
	case CLEAR_MARKS:
		break;
	}
	return serial * GOLDEN_RATIO_64 | 0x0101010101010101ULL;
}

/* The n-th word of a page that is written and checked. */
static unsigned int extent_next(int page, unsigned int n, enum clear_fill fill)
{
	if (fill != CLEAR_MARKS)
		return n;
	switch (n) {
	case 0:
		return 0;
	case 1:
		return 1 + (unsigned int)page % (PAGE_WORDS - 2);
	case 2:
		return PAGE_WORDS - 1;
	default:
		return PAGE_WORDS;
	}
}

static void extent_fill(struct clear_extent *extent, int first, int end,
			enum clear_fill fill)
{
	unsigned int n, word;
	int page;

	for (page = first; page < end; page++) {
		u64 *words = extent_words(extent, page);

		for (n = 0; (word = extent_next(page, n, fill)) < PAGE_WORDS; n++)
			words[word] = extent_word(extent, page, word, fill);
	}
}

/*
 * Is each word either zero or as it was filled? If not, sets the place of the
 * first word that is neither.
 */
static bool extent_same(struct clear_extent *extent, int first, int end,
			enum clear_fill fill, bool zero, int *bad_page,
			unsigned int *bad_word)
{
	unsigned int n, word;
	int page;

	for (page = first; page < end; page++) {
		const u64 *words = extent_words(extent, page);

		if (zero && fill != CLEAR_MARKS &&
		    !memchr_inv(words, 0, PAGE_SIZE))
			continue;
		for (n = 0; (word = extent_next(page, n, fill)) < PAGE_WORDS; n++) {
			if (words[word] == (zero ? 0 :
					    extent_word(extent, page, word, fill)))
				continue;
			*bad_page = page;
			*bad_word = word;
			return false;
		}
	}
	return true;
}

static bool extent_report(struct clear_extent *extent, int page,
			  unsigned int word, u64 want, struct va_format *vaf)
{
	KUNIT_FAIL(extent->test,
		   "%pV: page %d of %u, byte %zu: %016llx, expected %016llx", vaf,
		   page, extent->nr, word * sizeof(u64),
		   extent_words(extent, page)[word], want);
	return false;
}

static bool extent_check(struct clear_extent *extent, int first, int end,
			 enum clear_fill fill, bool zero, struct va_format *vaf)
{
	unsigned int word;
	int page;

	if (extent_same(extent, first, end, fill, zero, &page, &word))
		return true;
	return extent_report(extent, page, word, zero ? 0 :
			     extent_word(extent, page, word, fill), vaf);
}

static bool extent_check_guards(struct clear_extent *extent, int guard,
				struct va_format *vaf)
{
	return extent_check(extent, -guard, 0, CLEAR_WORDS, false, vaf) &&
	       extent_check(extent, extent->nr, extent->nr + guard, CLEAR_WORDS,
			    false, vaf);
}

/**
 * clear_extent_fill() - make the pages dirty
 * @extent: the extent
 * @fill: their content
 */
void clear_extent_fill(struct clear_extent *extent, enum clear_fill fill)
{
	extent->fill = fill;
	extent_fill(extent, 0, extent->nr, fill);
}

/**
 * clear_extent_check() - expect some pages to be clear, and no others
 * @extent: the extent, filled before
 * @first: the first page that must be clear
 * @nr: number of pages that must be clear
 * @fmt: what was done, as for printf()
 *
 * Return: whether this holds. If not, the test has failed, with a message.
 */
bool clear_extent_check(struct clear_extent *extent, unsigned int first,
			unsigned int nr, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;
	bool ok;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	ok = extent_check(extent, 0, first, extent->fill, false, &vaf) &&
	     extent_check(extent, first, first + nr, extent->fill, true, &vaf) &&
	     extent_check(extent, first + nr, extent->nr, extent->fill, false,
			  &vaf) &&
	     extent_check_guards(extent, min(extent->guard, GUARD_NEAR), &vaf);
	va_end(args);
	return ok;
}

/**
 * clear_extent_check_copy() - expect that an extent is a copy of another
 * @extent: the extent
 * @from: the other extent, which must still have the content of its last fill
 * @fmt: what was done, as for printf()
 *
 * Return: whether this holds. If not, the test has failed, with a message.
 */
bool clear_extent_check_copy(struct clear_extent *extent,
			     struct clear_extent *from, const char *fmt, ...)
{
	struct va_format vaf;
	unsigned int n, word;
	bool ok = true;
	va_list args;
	int page;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	for (page = 0; ok && page < from->nr; page++) {
		for (n = 0; ok && (word = extent_next(page, n, from->fill)) < PAGE_WORDS;
		     n++) {
			u64 want = extent_word(from, page, word, from->fill);

			if (extent_words(extent, page)[word] != want)
				ok = extent_report(extent, page, word, want, &vaf);
		}
	}
	ok = ok && extent_check(from, 0, from->nr, from->fill, false, &vaf) &&
	     extent_check_guards(extent, min(extent->guard, GUARD_NEAR), &vaf) &&
	     extent_check_guards(from, min(from->guard, GUARD_NEAR), &vaf);
	va_end(args);
	return ok;
}

static struct page *extent_block(struct clear_extent *extent, unsigned long pfn)
{
	unsigned int i;

	for (i = 0; i < extent->blocks; i++) {
		unsigned long first = page_to_pfn(extent->block[i]);

		if (pfn >= first && pfn < first + BLOCK_PAGES)
			return extent->block[i];
	}
	return NULL;
}

/* Do the blocks contain all pages of the extent at @pfn and of its guards? */
static bool extent_place(struct clear_extent *extent, unsigned long pfn)
{
	unsigned long i;

	for (i = pfn - extent->guard; i < pfn + extent->nr + extent->guard;
	     i = ALIGN_DOWN(i, BLOCK_PAGES) + BLOCK_PAGES) {
		if (!extent_block(extent, i))
			return false;
	}
	extent->page = pfn_to_page(pfn);
	return true;
}

/* Look for a place for the extent that includes pages of the newest block. */
static bool extent_find(struct clear_extent *extent, unsigned long block)
{
	unsigned long pfn = ALIGN_DOWN(block, extent->nr);

	pfn -= min(pfn, extent->nr + (unsigned long)ALIGN(extent->guard, extent->nr));
	for (; pfn < block + BLOCK_PAGES + ALIGN(extent->guard, extent->nr);
	     pfn += extent->nr) {
		if (pfn >= extent->guard && extent_place(extent, pfn))
			return true;
	}
	return false;
}

/* Free the blocks that are not in use, or all if there is no extent. */
static void extent_free_blocks(struct clear_extent *extent)
{
	unsigned long first = 0, end = 0;
	unsigned int i, kept = 0;

	if (extent->page) {
		first = page_to_pfn(extent->page) - extent->guard;
		end = page_to_pfn(extent->page) + extent->nr + extent->guard;
	}
	for (i = 0; i < extent->blocks; i++) {
		unsigned long pfn = page_to_pfn(extent->block[i]);

		if (pfn < end && pfn + BLOCK_PAGES > first)
			extent->block[kept++] = extent->block[i];
		else
			__free_pages(extent->block[i], BLOCK_ORDER);
	}
	extent->blocks = kept;
}

static void extent_check_end(struct clear_extent *extent, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	extent_check_guards(extent, extent->guard, &vaf);
	va_end(args);
}

static void extent_free(void *data)
{
	struct clear_extent *extent = data;

	if (extent->page)
		extent_check_end(extent, "guards, at the end of the test");
	if (extent->struct_pages) {
		memcpy(extent->page, extent->struct_pages,
		       extent->nr * sizeof(struct page));
		kvfree(extent->struct_pages);
	}
	extent->page = NULL;
	extent_free_blocks(extent);
}

static unsigned int extent_guard(unsigned int order)
{
	return min(1U << order, BLOCK_PAGES);
}

/**
 * clear_extent_fits() - whether the machine has enough memory for an extent
 * @order: log2 of the number of pages
 */
bool clear_extent_fits(unsigned int order)
{
	return (1UL << order) + 2 * extent_guard(order) <= totalram_pages() / 4;
}

/**
 * clear_extent_alloc() - get an extent
 * @test: the test that owns it
 * @order: log2 of its number of pages, for which clear_extent_fits() is true
 */
struct clear_extent *clear_extent_alloc(struct kunit *test, unsigned int order)
{
	struct clear_extent *extent;

	extent = kunit_kzalloc(test, sizeof(*extent), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, extent);
	extent->test = test;
	extent->nr = 1U << order;
	extent->guard = extent_guard(order);
	extent->block = kunit_kcalloc(test, BLOCKS_MAX, sizeof(*extent->block),
				      GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, extent->block);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, extent_free, extent));

	while (!extent->page && extent->blocks < BLOCKS_MAX) {
		struct page *block = alloc_pages(GFP_KERNEL | __GFP_NOWARN |
						 __GFP_NORETRY, BLOCK_ORDER);

		if (!block)
			break;
		extent->block[extent->blocks++] = block;
		extent_find(extent, page_to_pfn(block));
	}
	extent_free_blocks(extent);
	KUNIT_ASSERT_NOT_NULL_MSG(test, extent->page,
				  "no 2^%u consecutive pages with guards", order);
	extent_fill(extent, -(int)extent->guard, 0, CLEAR_WORDS);
	extent_fill(extent, extent->nr, extent->nr + extent->guard, CLEAR_WORDS);
	return extent;
}

/**
 * clear_extent_folio() - make a folio of an extent
 * @extent: the extent
 *
 * Pass the folio only to functions under test. The struct pages are restored
 * when the test ends.
 */
struct folio *clear_extent_folio(struct clear_extent *extent)
{
	unsigned int order = ilog2(extent->nr);

	if (order) {
		extent->struct_pages = kvmalloc_array(extent->nr,
						      sizeof(struct page),
						      GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(extent->test, extent->struct_pages);
		memcpy(extent->struct_pages, extent->page,
		       extent->nr * sizeof(struct page));
		prep_compound_page(extent->page, order);
	}
	return page_folio(extent->page);
}
