// SPDX-License-Identifier: GPL-2.0
/*
 * System calls on a whole huge page that one PMD maps.
 *
 * Proves: mremap() moves the PMD, and userfaultfd does not protect the new
 * place. If a process shares a huge page with its child, calls mprotect() and
 * writes, the child keeps the old content. PAGEMAP_SCAN finds the huge page and
 * protects all of it. If a process unmaps a part of a huge page, the statistics
 * count it as partially mapped, and the kernel splits it when memory is short.
 *
 * Does not prove: what a split does to the entries (see pmd_split), or what
 * madvise() does (see folio_huge).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=pmd_change
 */
#include <linux/fs.h>

#include "folio_listen.h"
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

FIXTURE(pmd_change)
{
	struct memory memory;
	int uffd;
};

FIXTURE_SETUP(pmd_change)
{
	const char *why = huge_page_map(&self->memory);

	self->uffd = -1;
	if (why)
		SKIP(return, "%s", why);
	/* khugepaged must not rebuild the huge page. */
	folio_settings(0);
}

FIXTURE_TEARDOWN(pmd_change)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->memory);
}

/*
 * The huge page is protected by userfaultfd, and mremap() moves it to another
 * aligned address. One PMD maps it at the new address too. The huge page is not
 * protected at this address, since the address is not registered.
 */
TEST_F(pmd_change, mremap)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	char *from = m->at, *to = from + length;

	self->uffd = listener(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	if (self->uffd < 0)
		SKIP(return, "no write protection by userfaultfd");
	ASSERT_EQ(0, listen_to(self->uffd, from, length));
	ASSERT_EQ(0, protect(self->uffd, from, m->pages, true));
	ASSERT_TRUE(pagemap_has(from, PM_UFFD_WP));
	ASSERT_EQ(to, mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	m->at = to;
	EXPECT_EQ(m->pages, smaps_pages(to, "AnonHugePages"));
	EXPECT_TRUE(is_folio(m, 0));
	EXPECT_EQ(SIGSEGV, try_access(from, false));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_FALSE(pagemap_has(to + bytes(page), PM_UFFD_WP));
	EXPECT_EQ(-1, foreign_page(to, 0, m->pages));
	for (unsigned int page = 0; page < m->pages; page++)
		ASSERT_EQ(0, try_access(to + bytes(page), true));
	DID(1, "huge pages moved");
}

/*
 * mprotect() makes the huge page read-only, then inaccessible, then writable
 * again. After each change, each page allows exactly the accesses that the new
 * protection permits. No other process maps the huge page, so the writes at the
 * end cause no faults. One PMD still maps the huge page.
 */
TEST_F(pmd_change, mprotect)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	unsigned int refused = 0;
	long before;

	ASSERT_EQ(0, mprotect(m->at, length, PROT_READ));
	for (unsigned int page = 0; page < m->pages; page++)
		refused += try_access(m->at + bytes(page), true) == SIGSEGV;
	EXPECT_EQ(m->pages, refused);
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	ASSERT_EQ(0, mprotect(m->at, length, PROT_NONE));
	for (unsigned int page = 0; page < m->pages; page++)
		refused += try_access(m->at + bytes(page), false) == SIGSEGV;
	EXPECT_EQ(2 * m->pages, refused);
	ASSERT_EQ(0, mprotect(m->at, length, PROT_READ | PROT_WRITE));
	faults_begin(&before);
	for (unsigned int page = 0; page < m->pages; page++)
		m->at[bytes(page)] = pattern(page);
	EXPECT_EQ(0, faults() - before);
	EXPECT_EQ(m->pages, smaps_pages(m->at, "AnonHugePages"));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	DID(refused, "accesses refused");
}

/*
 * A child maps the huge page too. In the parent, mprotect() makes the huge page
 * read-only and then writable again. The child does not see what the parent
 * writes after that.
 */
TEST_F(pmd_change, mprotect_beside_child)
{
	struct memory *m = &self->memory;
	unsigned int right = 0;
	pid_t child;
	int go[2];

	ASSERT_EQ(0, pipe(go));
	child = waiting_child(go, NULL, m);
	ASSERT_LT(0, child);
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
	ASSERT_EQ(SIGSEGV, try_access(m->at, true));
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
	memset(m->at, 0, bytes(m->pages));
	for (unsigned int page = 0; page < m->pages; page++)
		right += child_has(child, m->at + bytes(page), pattern(page));
	EXPECT_EQ(m->pages, right);
	DID(right, "pages that the child kept");
	EXPECT_TRUE(end_child(child));
	close(go[0]);
	close(go[1]);
}

#ifdef PAGEMAP_SCAN
/*
 * Scan the memory, and protect the pages that were written to. Returns the number of these pages,
 * or -1.
 */
static long scan(const char *at, unsigned int pages)
{
	struct page_region region = {};
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.flags = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC,
		.start = (unsigned long)at,
		.end = (unsigned long)at + bytes(pages),
		.vec = (unsigned long)&region,
		.vec_len = 1,
		.category_mask = PAGE_IS_WRITTEN,
		.return_mask = PAGE_IS_WRITTEN,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY);
	long found = ioctl(fd, PAGEMAP_SCAN, &arguments);

	close(fd);
	return found < 0 ? -1 : (long)((region.end - region.start) / psize());
}
#endif

/*
 * One scan reports that all pages of the huge page were written to, and
 * protects all of them. The next scan reports no page. The huge page is not
 * split.
 */
TEST_F(pmd_change, scan)
{
#ifdef PAGEMAP_SCAN
	struct memory *m = &self->memory;

	self->uffd = listener(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED);
	if (self->uffd < 0 || listen_to(self->uffd, m->at, bytes(m->pages)))
		SKIP(return, "no asynchronous write protection by userfaultfd");
	ASSERT_EQ(m->pages, scan(m->at, m->pages));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(pagemap_has(m->at + bytes(page), PM_UFFD_WP));
	EXPECT_EQ(0, scan(m->at, m->pages));
	EXPECT_EQ(m->pages, smaps_pages(m->at, "AnonHugePages"));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	DID(m->pages, "pages found");
#else
	SKIP(return, "no PAGEMAP_SCAN");
#endif
}

/*
 * The process drops half of the huge page, so the folio is partially mapped. In
 * the first round the process drops the other half too. In the second round the
 * kernel's shrinkers split the folio, and the remaining pages keep their
 * content. After each round no folio counts as partially mapped.
 */
TEST_F(pmd_change, mapped_in_part)
{
	struct memory *m = &self->memory;
	long parts = folio_statistic(m->pages, "nr_anon_partially_mapped");
	unsigned int half = m->pages / 2;

	if (parts < 0)
		SKIP(return, "the kernel has no statistics of this size");
	for (int round = 0; round < 2; round++) {
		long folios = folio_statistic(m->pages, "nr_anon");

		ASSERT_EQ(0, madvise(m->at, bytes(half), MADV_DONTNEED));
		EXPECT_EQ(parts + 1, folio_statistic(m->pages, "nr_anon_partially_mapped"));
		EXPECT_EQ(folios, folio_statistic(m->pages, "nr_anon"));
		if (round)
			write_text("/proc/sys/vm/drop_caches", "2");
		else
			ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
		EXPECT_EQ(parts, folio_statistic(m->pages, "nr_anon_partially_mapped"));
		EXPECT_EQ(folios - 1, folio_statistic(m->pages, "nr_anon"));
		if (round) {
			EXPECT_EQ(-1, foreign_page(m->at + bytes(half), half, half));
			break;
		}
		/*
		 * A new mapping has no page table yet, so its first fault makes
		 * a new huge page. The second round needs this huge page.
		 */
		memory_free(m);
		ASSERT_EQ(NULL, huge_page_map(m));
		folio_settings(0);
	}
	DID(half, "pages dropped");
}

/*
 * After a split, the statistics count one more split and one fewer folio of
 * this size.
 */
TEST_F(pmd_change, split)
{
	struct memory *m = &self->memory;
	long folios = folio_statistic(m->pages, "nr_anon");
	long splits = folio_statistic(m->pages, "split");

	if (folios < 0 || !split_folios(m))
		SKIP(return, "no debugfs, or no statistics of this size");
	EXPECT_EQ(folios - 1, folio_statistic(m->pages, "nr_anon"));
	EXPECT_EQ(splits + 1, folio_statistic(m->pages, "split"));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	DID(1, "splits");
}

/*
 * All bytes in the second half of the huge page are zero when the kernel splits it. Each page of
 * zeros becomes the zero page, so the process uses half as much memory. All pages keep their
 * content, and a write to a page of zeros changes only this page.
 */
TEST_F(pmd_change, split_of_zeros)
{
	struct memory *m = &self->memory;
	unsigned int half = m->pages / 2;

	memset(m->at + bytes(half), 0, bytes(half));
	ASSERT_EQ(m->pages, smaps_pages(m->at, "Rss"));
	if (!split_folios(m))
		SKIP(return, "no debugfs, or the kernel cannot split this folio");
	EXPECT_EQ(half, smaps_pages(m->at, "Rss"));
	DID(m->pages - smaps_pages(m->at, "Rss"), "pages of zeros freed");
	for (unsigned int page = half; page < m->pages; page++) {
		EXPECT_TRUE(page_is(m->at + bytes(page), 0));
		memset(m->at + bytes(page), pattern(page), bytes(1));
	}
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

TEST_HARNESS_MAIN
