// SPDX-License-Identifier: GPL-2.0
/*
 * MADV_COLLAPSE and khugepaged make large folios from single pages.
 *
 * Proves: a collapse keeps the content, even if pages are in swap, if pages are
 * missing, or if a file is mapped twice. A collapse does not fill in a missing
 * page that userfaultfd watches. khugepaged obeys max_ptes_none, and makes a
 * folio of one block only if all pages of the block exist. If a mapping is
 * read-only, its written pages stay dirty. The new folio is on the NUMA node of
 * the old pages.
 *
 * How: one page table maps single pages, and each page holds a pattern. The
 * cases prepare this memory, collapse it, and check smaps, pagemap and the
 * content.
 *
 * Does not prove: which memory khugepaged chooses first (the selftest
 * khugepaged.c tests this). Other programs test max_ptes_shared (folio_advice)
 * and poisoned pages (uffd_poison).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_collapse
 */
#include <sys/stat.h>

#include "folio_listen.h"
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

FIXTURE(folio_collapse)
{
	struct memory memory;
	char *other;
	int uffd;
};

/* @file: whether the memory is a shared mapping of a memory file */
FIXTURE_VARIANT(folio_collapse)
{
	bool file;
};

FIXTURE_VARIANT_ADD(folio_collapse, anon)
{
};

FIXTURE_VARIANT_ADD(folio_collapse, file)
{
	.file = true,
};

/* Map the file again at @at. Returns whether that worked. */
static bool map_file(const struct memory *m, char *at)
{
	return mmap(at, bytes(m->pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd,
		    0) == at;
}

/* The reserved addresses have room for a second mapping after the first one. */
FIXTURE_SETUP(folio_collapse)
{
	size_t length = bytes(pmd_pages());
	const char *why = folio_settings(0);
	struct memory *m = &self->memory;

	*m = (struct memory){ .fd = -1 };
	self->uffd = -1;
	if (!why && !length)
		why = NO_HUGE_PAGES;
	if (why)
		SKIP(return, "%s", why);
	m->pages = length / psize();
	m->room_bytes = 3 * length;
	m->room = mmap(NULL, m->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, m->room);
	m->at = (char *)(((unsigned long)m->room + length - 1) & -length);
	self->other = m->at + length;
	if (variant->file) {
		m->fd = memory_file(SHMEM, m->pages);
		ASSERT_LE(0, m->fd);
		ASSERT_TRUE(map_file(m, m->at));
	} else {
		ASSERT_EQ(0, mprotect(m->at, length, PROT_READ | PROT_WRITE));
	}
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	ASSERT_TRUE(is_folio(m, 0));
}

FIXTURE_TEARDOWN(folio_collapse)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->memory);
}

/* The number of pages that are mapped by PMDs in the mapping at @at. */
static long huge_pages(const struct memory *m, const char *at)
{
	return smaps_pages(at, m->fd < 0 ? "AnonHugePages" : "ShmemPmdMapped");
}

/* Collapse the mapping at @at into one huge page. Returns 0 or -errno. */
static int collapse(const struct memory *m, char *at)
{
	return madvise(at, bytes(m->pages), MADV_COLLAPSE) ? -errno : 0;
}

/* Drop pages of the mapping. If the mapping maps a file, drop the pages from the file too. */
static bool make_hole(const struct memory *m, unsigned int first, unsigned int pages)
{
	return !madvise(m->at + bytes(first), bytes(pages),
			m->fd < 0 ? MADV_DONTNEED : MADV_REMOVE);
}

/*
 * The first page with wrong content, or -1. From page @first on, @pages pages
 * are missing, so these pages must read as zeros.
 */
static int wrong_page(const struct memory *m, const char *at, unsigned int first,
		      unsigned int pages)
{
	for (unsigned int page = 0; page < m->pages; page++) {
		bool hole = page >= first && page < first + pages;

		if (!page_is(at + bytes(page), hole ? 0 : pattern(page)))
			return page;
	}
	return -1;
}

/*
 * A third of the pages is in swap. After the collapse, the huge page has the
 * content of all pages.
 */
TEST_F(folio_collapse, from_swap)
{
	struct memory *m = &self->memory;

	if (!have_swap())
		SKIP(return, "no swap");
	ASSERT_EQ(0, madvise(m->at + bytes(m->pages / 3), bytes(m->pages / 3), MADV_PAGEOUT));
	DID(swapped_out(m), "pages swapped out");
	ASSERT_EQ(0, collapse(m, m->at));
	EXPECT_EQ(m->pages, huge_pages(m, m->at));
	EXPECT_EQ(0, swapped_out(m));
	m->order = order_of(m->pages);
	EXPECT_TRUE(is_folio(m, 0));
	EXPECT_EQ(-1, wrong_page(m, m->at, 0, 0));
}

/*
 * Some pages are missing. After MADV_COLLAPSE, the huge page contains zeros in
 * their place. In anonymous memory all pages then count as dirty.
 */
TEST_F(folio_collapse, with_hole)
{
	struct memory *m = &self->memory;
	unsigned int first = m->pages / 4 + 1, pages = m->pages / 2;

	ASSERT_TRUE(make_hole(m, first, pages));
	ASSERT_EQ(0, present(m, first, pages));
	ASSERT_EQ(0, collapse(m, m->at));
	EXPECT_EQ(m->pages, huge_pages(m, m->at));
	if (!variant->file)
		EXPECT_EQ(m->pages, smaps_pages(m->at, "Private_Dirty"));
	EXPECT_EQ(-1, wrong_page(m, m->at, first, pages));
	DID(pages, "pages of zeros");
}

/*
 * A file consists of one huge page. MADV_REMOVE on a range in the middle frees
 * exactly the memory of this range, and no other page changes.
 */
TEST_F(folio_collapse, hole_frees_memory)
{
	struct memory *m = &self->memory;
	unsigned int first = m->pages / 4 + 1, pages = m->pages / 4;
	struct stat file;

	if (!variant->file)
		SKIP(return, "needs a file");
	ASSERT_EQ(0, collapse(m, m->at));
	ASSERT_EQ(0, fstat(m->fd, &file));
	ASSERT_EQ(bytes(m->pages), 512 * file.st_blocks);
	ASSERT_TRUE(make_hole(m, first, pages));
	ASSERT_EQ(0, fstat(m->fd, &file));
	EXPECT_EQ(bytes(m->pages - pages), 512 * file.st_blocks);
	EXPECT_EQ(-1, wrong_page(m, m->at, first, pages));
	DID(pages, "pages of a hole");
}

/*
 * A file consists of one huge page. MADV_REMOVE drops the page right after the
 * first half. The first half stays one large folio, because the kernel splits
 * the huge page no further than necessary. Linux 6.12 splits the whole huge
 * page into single pages.
 */
TEST_F(folio_collapse, hole_splits_no_more)
{
	unsigned int pages = self->memory.pages, half = pages / 2, large = 0;
	struct memory *m = &self->memory;

	if (!variant->file)
		SKIP(return, "needs a file");
	ASSERT_EQ(0, collapse(m, m->at));
	ASSERT_TRUE(make_hole(m, half, 1));
	EXPECT_EQ(-1, wrong_page(m, m->at, half, 1));
	for (unsigned int page = 0; page < pages; page++)
		large += !!(kernel_flags(m->at + bytes(page)) & (FOLIO_HEAD | FOLIO_TAIL));
	if (!large)
		SKIP(return, "a hole splits a huge page of a file into single pages");
	m->order = order_of(half);
	EXPECT_TRUE(is_folio(m, 0));
	DID(large, "pages that are still in large folios");
}

/*
 * userfaultfd watches a missing page. The kernel must not fill in this page:
 * the collapse fails, and an access to the page still raises SIGBUS. The test
 * then unregisters the memory from userfaultfd and reads the page. Now the
 * collapse succeeds.
 */
TEST_F(folio_collapse, watched_hole)
{
	struct memory *m = &self->memory;
	unsigned int hole = m->pages / 2;
	struct uffdio_register where = {
		.range = { (unsigned long)m->at, bytes(m->pages) },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	self->uffd = listener(UFFD_FEATURE_SIGBUS);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot raise SIGBUS");
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	ASSERT_TRUE(make_hole(m, hole, 1));
	ASSERT_EQ(SIGBUS, try_access(m->at + bytes(hole), false));
	EXPECT_NE(0, collapse(m, m->at));
	EXPECT_EQ(0, huge_pages(m, m->at));
	EXPECT_EQ(SIGBUS, try_access(m->at + bytes(hole), false));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_UNREGISTER, &where.range));
	EXPECT_EQ(-1, wrong_page(m, m->at, hole, 1));
	ASSERT_EQ(0, collapse(m, m->at));
	EXPECT_EQ(m->pages, huge_pages(m, m->at));
	DID(1, "refused collapses");
}

/*
 * A file is mapped twice. The first collapse turns the file into one huge page.
 * In the second mapping, PTEs map this huge page until the second collapse
 * replaces them with one PMD. After that, RssShmem of the process still counts
 * each page once for each mapping.
 */
TEST_F(folio_collapse, second_mapping)
{
	struct memory *m = &self->memory;
	long before = status_pages("RssShmem");

	if (!variant->file)
		SKIP(return, "needs a file");
	ASSERT_TRUE(map_file(m, self->other));
	ASSERT_EQ(0, collapse(m, m->at));
	ASSERT_EQ(0, madvise(self->other, bytes(m->pages), MADV_NOHUGEPAGE));
	ASSERT_EQ(-1, wrong_page(m, self->other, 0, 0));
	ASSERT_EQ(0, huge_pages(m, self->other));
	ASSERT_EQ(m->pages, smaps_pages(self->other, "Rss"));
	ASSERT_EQ(0, madvise(self->other, bytes(m->pages), MADV_HUGEPAGE));
	ASSERT_EQ(0, collapse(m, self->other));
	EXPECT_EQ(m->pages, huge_pages(m, self->other));
	EXPECT_EQ(-1, wrong_page(m, self->other, 0, 0));
	EXPECT_EQ(before + m->pages, status_pages("RssShmem"));
	DID(m->pages, "entries replaced by a PMD");
}

/*
 * The test moves all pages to one node and collapses them, and then repeats
 * this with the other node. The huge page is on the node of the pages that were
 * collapsed, even if the CPU prefers the other node for new memory.
 */
TEST_F(folio_collapse, stays_on_node)
{
	struct memory *m = &self->memory;
	unsigned int collapsed = 0;

	if (variant->file)
		SKIP(return, "needs anonymous memory");
	for (int node = 0; node < 2; node++) {
		unsigned long there = 1UL << node;
		size_t length = bytes(m->pages);

		if (syscall(__NR_mbind, m->at, length, MPOL_BIND, &there, 8 * sizeof(there),
			    MPOL_MF_MOVE | MPOL_MF_STRICT))
			SKIP(return, "needs two NUMA nodes");
		ASSERT_EQ(0, syscall(__NR_mbind, m->at, length, MPOL_DEFAULT, NULL, 0L, 0));
		ASSERT_EQ(node, move_page(m->at, NULL));
		ASSERT_EQ(0, collapse(m, m->at));
		EXPECT_EQ(m->pages, huge_pages(m, m->at));
		EXPECT_EQ(node, move_page(m->at + bytes(m->pages - 1), NULL));
		EXPECT_EQ(-1, wrong_page(m, m->at, 0, 0));
		collapsed++;
		/* Split the folio into single pages, to repeat the test on the other node. */
		ASSERT_TRUE(split_folios(m));
	}
	DID(collapsed, "collapses");
}

/* The value of a counter in /proc/vmstat, or -1 if there is no such counter. */
static long event_count(const char *name)
{
	char word[64];
	long value, found = -1;
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && found < 0 && fscanf(f, "%63s %ld", word, &value) == 2)
		if (!strcmp(word, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/* The number of times that khugepaged has scanned all memory. */
static unsigned long scans(void)
{
	return read_num(FOLIO_THP "/khugepaged/full_scans");
}

/*
 * Let khugepaged make folios of one order. Wait until it has scanned the memory
 * four times, or has made a huge page. khugepaged needs recent accesses to the
 * memory.
 */
static void let_khugepaged(const struct memory *m, int order, unsigned int max_ptes_none)
{
	unsigned long until = scans() + 4;
	struct thp_settings settings;

	thp_read_settings(&settings);
	for (int i = 0; i < NR_ORDERS; i++)
		settings.hugepages[i].enabled = i == order ? THP_MADVISE : THP_NEVER;
	settings.khugepaged = (struct khugepaged_settings){
		.defrag = true,
		.alloc_sleep_millisecs = 10,
		.scan_sleep_millisecs = 10,
		.max_ptes_none = max_ptes_none,
		.pages_to_scan = 8 * m->pages,
	};
	thp_write_settings(&settings);
	madvise(m->at, bytes(m->pages), MADV_HUGEPAGE);
	for (int i = 0; i < 200 && scans() < until && !huge_pages(m, m->at); i++) {
		read_byte(m->at);
		usleep(50000);
	}
	folio_settings(0);
}

/*
 * max_ptes_none says how many missing pages khugepaged may fill. If the number
 * of missing pages is larger by one, khugepaged makes no huge page.
 */
TEST_F_TIMEOUT(folio_collapse, max_ptes_none, 60)
{
	struct memory *m = &self->memory;
	unsigned int pages = m->pages / 2, first = m->pages / 4 + 1;
	long refused = event_count("thp_scan_exceed_none_pte");

	if (variant->file)
		SKIP(return, "needs anonymous memory");
	ASSERT_TRUE(make_hole(m, first, pages));
	let_khugepaged(m, order_of(m->pages), pages - 1);
	EXPECT_EQ(0, huge_pages(m, m->at));
	EXPECT_LT(refused, event_count("thp_scan_exceed_none_pte"));
	let_khugepaged(m, order_of(m->pages), pages);
	EXPECT_EQ(m->pages, huge_pages(m, m->at));
	EXPECT_EQ(-1, wrong_page(m, m->at, first, pages));
	DID(pages, "pages filled");
}

/*
 * The settings allow khugepaged to make folios of one block, but no huge page.
 * One page is missing. Each block becomes a folio, except for the block with
 * the missing page.
 */
TEST_F_TIMEOUT(folio_collapse, blocks, 60)
{
	struct memory *m = &self->memory;
	unsigned int size = cont_ptes(), hole = 3 * size + 1, made = 0;

	if (variant->file || folio_statistic(size, "collapse_exceed_none_pte") < 0)
		SKIP(return, "needs anonymous memory, and a khugepaged that makes blocks");
	ASSERT_TRUE(make_hole(m, hole, 1));
	let_khugepaged(m, order_of(size), 0);
	m->order = order_of(size);
	for (unsigned int page = 0; page < m->pages; page += size) {
		bool whole = is_folio(m, page);

		made += whole;
		EXPECT_EQ(page != 3 * size, whole) {
			TH_LOG("the block at page %u", page);
		}
	}
	EXPECT_EQ(0, huge_pages(m, m->at));
	EXPECT_EQ(0, present(m, hole, 1));
	EXPECT_EQ(-1, wrong_page(m, m->at, hole, 1));
	DID(made, "blocks");
}

/*
 * The process writes to all pages, and makes the mapping read-only. khugepaged
 * then makes a folio of each block. All pages are still dirty and, on kernels
 * with soft-dirty bits, soft-dirty.
 *
 * Known issue 73: the entries of the new folios are neither dirty nor
 * soft-dirty.
 */
TEST_F_TIMEOUT(folio_collapse, read_only_stays_dirty, 60)
{
	unsigned int size = cont_ptes(), made = 0, soft = 0;
	struct memory *m = &self->memory;
	bool supported = softdirty_supported();
	long dirty;

	if (variant->file || folio_statistic(size, "collapse_exceed_none_pte") < 0)
		SKIP(return, "needs anonymous memory, and a khugepaged that makes blocks");
	if (supported)
		clear_softdirty();
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
	ASSERT_EQ(m->pages, smaps_pages(m->at, "Private_Dirty"));
	let_khugepaged(m, order_of(size), 0);
	m->order = order_of(size);
	for (unsigned int page = 0; page < m->pages; page += size)
		made += is_folio(m, page);
	ASSERT_EQ(m->pages / size, made);
	for (unsigned int page = 0; page < m->pages; page++)
		soft += pagemap_has(m->at + bytes(page), PM_SOFT_DIRTY);
	dirty = smaps_pages(m->at, "Private_Dirty");
	EXPECT_EQ(-1, wrong_page(m, m->at, 0, 0));
	EXPECT_EQ(SIGSEGV, try_access(m->at, true));
	DID(made, "blocks");
	if (!dirty && !soft) {
		KNOWN_ISSUE(73, "a collapse makes dirty pages of a read-only mapping clean");
		return;
	}
	EXPECT_EQ(m->pages, dirty);
	EXPECT_EQ(supported ? m->pages : 0, soft);
	STALE_ISSUE(73);
}

TEST_HARNESS_MAIN
