// SPDX-License-Identifier: GPL-2.0
/*
 * Advice on a huge page that one PMD maps.
 *
 * Proves: advice on the whole huge page takes effect without a split, except
 * for MADV_PAGEOUT in a kernel that cannot swap huge pages. Advice on part of
 * the huge page splits it, and takes effect only for this part. While another
 * process maps the huge page, advice changes nothing. MADV_HWPOISON poisons
 * each page of its range, in a large folio and in single pages.
 *
 * Does not prove: the effect of advice on folios that PTEs map (see
 * folio_advice), or the effect of splits for other reasons (see pmd_split).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_huge
 */
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_poison.h"
#include "folio_state.h"

FIXTURE(folio_huge)
{
	struct memory memory;
	int go[2];
};

FIXTURE_SETUP(folio_huge)
{
	struct memory *m = &self->memory;
	const char *why = huge_page_map(m);

	if (!why && !have_swap())
		why = "no swap";
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(m->pages, smaps_pages(m->at, "AnonHugePages"));
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(folio_huge)
{
	memory_free(&self->memory);
}

/* Whether one PMD maps the huge page. */
static bool is_huge(const struct memory *m)
{
	return smaps_pages(m->at, "AnonHugePages") == m->pages;
}

/*
 * Start a child that makes the huge page active. The child calls mprotect() on
 * one page, so that PTEs map the huge page in the child. After that, a read of
 * /proc/self/mem marks a page as accessed. Returns whether the huge page is
 * active.
 */
static bool make_active(const struct memory *m)
{
	pid_t child = fork();
	char byte;
	int fd;

	if (!child) {
		mprotect(m->at, bytes(1), PROT_READ);
		fd = open("/proc/self/mem", O_RDONLY);
		for (int i = 0; i < 3; i++)
			if (pread(fd, &byte, 1, (long)m->at) != 1)
				_exit(1);
		_exit(0);
	}
	return !child_of(child) && kernel_flags(m->at) & FOLIO_ACTIVE;
}

/* MADV_COLD makes an active huge page old and inactive, and does not split it. */
TEST_F(folio_huge, cold)
{
	struct memory *m = &self->memory;

	ASSERT_TRUE(make_active(m));
	ASSERT_TRUE(is_huge(m));
	ASSERT_EQ(m->pages, smaps_pages(m->at, "Referenced"));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_COLD));
	EXPECT_EQ(0, smaps_pages(m->at, "Referenced"));
	EXPECT_FALSE(kernel_flags(m->at) & FOLIO_ACTIVE);
	EXPECT_TRUE(is_huge(m));
}

/*
 * MADV_FREE makes the huge page lazyfree, and does not split it. After a write,
 * none of its pages is lazyfree. After another MADV_FREE, reclaim drops the
 * huge page without writing it to swap, and the memory reads as zeros.
 */
TEST_F(folio_huge, free)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
	EXPECT_EQ(m->pages, smaps_pages(m->at, "LazyFree"));
	EXPECT_TRUE(is_huge(m));
	m->at[0] = pattern(0);
	EXPECT_EQ(0, smaps_pages(m->at, "LazyFree"));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(0, swapped_out(m));
	EXPECT_EQ(0, present(m, 0, m->pages));
	EXPECT_TRUE(page_is(m->at, 0));
}

/*
 * MADV_PAGEOUT takes the whole huge page out of memory, and every page comes
 * back with its content.
 */
TEST_F(folio_huge, pageout)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(m->pages, swapped_out(m));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * MADV_COLD on the second quarter of the huge page splits it, and all pages
 * stay in memory. Then MADV_PAGEOUT on this quarter takes only its pages out of
 * memory.
 */
TEST_F(folio_huge, part_cold)
{
	struct memory *m = &self->memory;
	unsigned int quarter = m->pages / 4;
	char *at = m->at + bytes(quarter);

	ASSERT_EQ(0, madvise(at, bytes(quarter), MADV_COLD));
	EXPECT_FALSE(is_huge(m));
	EXPECT_EQ(m->pages, present(m, 0, m->pages));
	ASSERT_EQ(0, madvise(at, bytes(quarter), MADV_PAGEOUT));
	EXPECT_EQ(quarter, swapped_out(m));
	EXPECT_EQ(0, present(m, quarter, quarter));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * MADV_PAGEOUT on the first quarter of the huge page takes only the pages of
 * this quarter out of memory.
 */
TEST_F(folio_huge, part_paged_out)
{
	struct memory *m = &self->memory;
	unsigned int quarter = m->pages / 4;

	ASSERT_EQ(0, madvise(m->at, bytes(quarter), MADV_PAGEOUT));
	EXPECT_EQ(quarter, swapped_out(m));
	EXPECT_EQ(m->pages - quarter, present(m, quarter, m->pages - quarter));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* MADV_FREE on the first quarter makes only these pages lazyfree. */
TEST_F(folio_huge, part_freed)
{
	struct memory *m = &self->memory;
	unsigned int quarter = m->pages / 4;

	ASSERT_EQ(0, madvise(m->at, bytes(quarter), MADV_FREE));
	/*
	 * The kernel first collects folios in a batch, and marks them lazyfree
	 * later. After MADV_COLD, all folios of the batch are marked.
	 */
	ASSERT_EQ(0, madvise(m->at + bytes(quarter), bytes(1), MADV_COLD));
	EXPECT_EQ(quarter, smaps_pages(m->at, "LazyFree"));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* MADV_FREE on two adjacent huge pages makes both lazyfree. */
TEST_F(folio_huge, free_two)
{
	struct memory two = {};
	const char *why = memory_map(&two, ANON, self->memory.order, 2);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(two.pages, smaps_pages(two.at, "AnonHugePages"));
	ASSERT_EQ(0, madvise(two.at, bytes(two.pages), MADV_FREE));
	EXPECT_EQ(two.pages, smaps_pages(two.at, "LazyFree"));
	memory_free(&two);
}

/*
 * mincore() reports that all pages of the huge page are in memory. After
 * MADV_DONTNEED it reports that none of them is in memory.
 */
TEST_F(folio_huge, mincore)
{
	struct memory *m = &self->memory;
	unsigned char *answers = calloc(m->pages, 1);
	unsigned int in = 0;

	ASSERT_NE(NULL, answers);
	ASSERT_EQ(0, mincore(m->at, bytes(m->pages), answers));
	for (unsigned int page = 0; page < m->pages; page++)
		in += answers[page] & 1;
	EXPECT_EQ(m->pages, in);
	EXPECT_TRUE(is_huge(m));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	ASSERT_EQ(0, mincore(m->at, bytes(m->pages), answers));
	for (unsigned int page = in = 0; page < m->pages; page++)
		in += answers[page] & 1;
	EXPECT_EQ(0, in);
	free(answers);
}

/*
 * A child maps the huge page too. After advice on the whole huge page and on
 * its first quarter, the huge page is still young, in memory and not split, and
 * no page is lazyfree.
 */
TEST_F(folio_huge, beside_child)
{
	static const int advices[] = { MADV_COLD, MADV_FREE, MADV_PAGEOUT };
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, NULL, m);

	ASSERT_LT(0, child);
	for (unsigned int i = 0; i < ARRAY_SIZE(advices); i++) {
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), advices[i]));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages / 4), advices[i]));
		EXPECT_EQ(m->pages, smaps_pages(m->at, "Referenced"));
		EXPECT_EQ(0, smaps_pages(m->at, "LazyFree"));
		EXPECT_TRUE(is_huge(m)) {
			TH_LOG("after advice %d", advices[i]);
		}
	}
	EXPECT_TRUE(end_child(child));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* The number of pages that one call poisons. */
#define BAD 3

FIXTURE(folio_poison)
{
	struct memory memory;
};

/*
 * @pages: the number of pages in one folio; 0 stands for a huge page
 */
FIXTURE_VARIANT(folio_poison)
{
	unsigned int pages;
};

FIXTURE_VARIANT_ADD(folio_poison, single)
{
	.pages = 1,
};

FIXTURE_VARIANT_ADD(folio_poison, small)
{
	.pages = 8,
};

FIXTURE_VARIANT_ADD(folio_poison, huge)
{
};

FIXTURE_SETUP(folio_poison)
{
	struct memory *m = &self->memory;
	int order = variant->pages ? order_of(variant->pages) : 0;
	const char *why = NULL;

	m->fd = -1;
	if (access("/tests/list", F_OK))
		why = "runs only in the virtual machine";
	else if (!variant->pages)
		why = huge_page_map(m);
	else
		why = folio_settings(order) ?: memory_map(m, ANON, order, 8 >> order);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_poison)
{
	memory_free(&self->memory);
}

/*
 * MADV_HWPOISON poisons three pages of a folio. An access to each of these
 * pages raises SIGBUS, and all other pages keep their content. At the end the
 * case tries to make the poisoned frames usable again. This may fail, so the
 * case runs only in the virtual machine.
 *
 * Known issue 52: in a large folio, the kernel poisons only the first page of
 * the range.
 */
TEST_F(folio_poison, each_page)
{
	struct memory *m = &self->memory;
	unsigned int first = m->pages / 2, page, lost = 0, wrong = 0, back = 0;
	unsigned long frames[BAD];
	char number[24];
	bool only_first;

	for (page = 0; page < BAD; page++)
		frames[page] = pfn_of(m->at + bytes(first + page));
	if (poison(m->at + bytes(first), BAD))
		SKIP(return, "CONFIG_MEMORY_FAILURE=n");
	only_first = try_access(m->at + bytes(first), false) == SIGBUS;
	for (page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		if (page >= first && page < first + BAD && try_access(at, false) == SIGBUS)
			lost++;
		else
			wrong += try_access(at, true) || !page_is(at, pattern(page));
	}
	EXPECT_EQ(0, wrong);
	DID(lost, "pages that raise SIGBUS");
	for (page = 0; page < BAD; page++)
		EXPECT_EQ(page < lost, !!(frame_flags(frames[page]) & FRAME_BAD));
	memory_free(m);
	for (page = 0; page < lost; page++) {
		snprintf(number, sizeof(number), "%lu", frames[page]);
		write_text("/sys/kernel/debug/hwpoison/unpoison-pfn", number);
		back += !(frame_flags(frames[page]) & FRAME_BAD);
	}
	TH_LOG("%u of %u frames are usable again", back, lost);
	if (variant->pages != 1 && lost == 1 && only_first) {
		KNOWN_ISSUE(52, "only the first page of the range is poisoned");
		return;
	}
	EXPECT_EQ(BAD, lost);
	if (variant->pages != 1 && lost == BAD)
		STALE_ISSUE(52);
}

TEST_HARNESS_MAIN
