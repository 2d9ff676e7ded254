// SPDX-License-Identifier: GPL-2.0
/*
 * Which blocks of a folio stay folded when a system call changes some pages.
 *
 * Proves: perf (PERF_SAMPLE_DATA_PAGE_SIZE) sees the contiguous bit on fresh
 * memory in large folios. A system call on a range of pages changes only these
 * pages. The call unfolds each block that it changes only in part, and no other
 * block. A call that only splits the VMA unfolds no block. After each call,
 * every page has the right content.
 *
 *             block 0         block 1         block 2         block 3
 *        |...............|...............|...............|...............|
 *   one  x               x       x      x                               x
 *   two                 xx
 *   half                     xxxxxxxx
 *   over         xxxxxxxxxxxxxxxx
 *   all                  xxxxxxxxxxxxxxxx
 *   many         xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
 *
 * In the drawing, each unbroken run of the letter x is one place, even a single
 * x. So there are ten places. The test makes each call once at each place, and
 * maps fresh memory before every call.
 *
 * Does not prove: which TLB invalidations the calls cause (KUnit: vma_split and
 * the contpte suites count them).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=contpte_fold
 */
#include "folio_state.h"

#define BLOCKS 4

/* The effect of a call on the pages of its range. */
enum fate { SAME, EMPTY, READONLY, NOACCESS };

/* The effect of a call on a block that is partly in the range of the call. */
enum folding { STAYS, UNFOLDS };

struct place {
	unsigned int first, pages;
};

FIXTURE(contpte_fold)
{
	struct memory memory;
	bool contpte;
};

FIXTURE_VARIANT(contpte_fold)
{
	enum memory_kind kind;
	unsigned int blocks_per_folio;
};

FIXTURE_VARIANT_ADD(contpte_fold, anon)
{
	.kind = ANON,
	.blocks_per_folio = 1,
};

FIXTURE_VARIANT_ADD(contpte_fold, anon_two_blocks)
{
	.kind = ANON,
	.blocks_per_folio = 2,
};

FIXTURE_VARIANT_ADD(contpte_fold, shmem)
{
	.kind = SHMEM,
	.blocks_per_folio = 1,
};

FIXTURE_VARIANT_ADD(contpte_fold, xfs)
{
	.kind = XFS,
	.blocks_per_folio = 2,
};

FIXTURE_SETUP(contpte_fold)
{
	const char *why = folio_settings(order_of(variant->blocks_per_folio * cont_ptes()));

	if (why)
		SKIP(return, "%s", why);
	self->contpte = has_contpte();
	self->memory.fd = -1;
}

FIXTURE_TEARDOWN(contpte_fold)
{
	memory_free(&self->memory);
}

/* Map four blocks of fresh memory. Returns whether that worked. */
static bool fresh(struct __test_metadata *_metadata,
		  FIXTURE_DATA(contpte_fold) * self,
		  const FIXTURE_VARIANT(contpte_fold) * variant)
{
	int order = order_of(variant->blocks_per_folio * cont_ptes());
	const char *why;

	/*
	 * The page cache sometimes uses smaller folios, so try an XFS file up
	 * to eight times.
	 */
	for (int i = 0; i < (variant->kind == XFS ? 8 : 1); i++) {
		memory_free(&self->memory);
		why = memory_map(&self->memory, variant->kind, order,
				 BLOCKS / variant->blocks_per_folio);
		if (!why)
			return true;
	}
	SKIP(return false, "%s", why);
}

static bool within(const struct place *p, unsigned int page)
{
	return page >= p->first && page < p->first + p->pages;
}

/* Returns the block's first page that is outside the call's range, or -1. */
static int untouched_page(const struct place *p, unsigned int block)
{
	unsigned int page;

	for (page = block * cont_ptes(); page < (block + 1) * cont_ptes(); page++)
		if (!within(p, page))
			return page;
	return -1;
}

/* Check the content of a page, and whether it can be read and written. */
static void check_page(struct __test_metadata *_metadata, const struct memory *m,
		       unsigned int page, enum fate fate, enum memory_kind kind)
{
	char *at = m->at + bytes(page);

	if (fate == NOACCESS) {
		EXPECT_EQ(SIGSEGV, try_access(at, false))
			TH_LOG("page %u can still be read", page);
		return;
	}
	/* A dropped page of a file comes back with the file's content. */
	EXPECT_TRUE(page_is(at, fate == EMPTY && kind == ANON ? 0 : pattern(page)))
		TH_LOG("page %u begins with %#x", page, (unsigned char)*at);
	EXPECT_EQ(fate == READONLY ? SIGSEGV : 0, try_access(at, true))
		TH_LOG("page %u: wrong write permission", page);
}

/*
 * Make @call once at each place, and map fresh memory before every call. After
 * a call, check the folding before the content, since a read can map a page
 * again.
 */
static void at_each_place(struct __test_metadata *_metadata,
			  FIXTURE_DATA(contpte_fold) * self,
			  const FIXTURE_VARIANT(contpte_fold) * variant,
			  int (*call)(struct memory *m, char *at, size_t length),
			  enum fate fate, enum folding folding)
{
	unsigned int n = cont_ptes();
	const struct place places[] = {
		{ n + n / 2, 1 }, { n, 1 }, { 2 * n - 1, 1 }, { 0, 1 }, { 4 * n - 1, 1 },
		{ n - 1, 2 }, { n + n / 4, n / 2 }, { n / 2, n }, { n, n }, { n / 2, 2 * n },
	};

	unsigned long folds = 0;

	for (const struct place *p = places; p < places + ARRAY_SIZE(places); p++) {
		struct memory *m = &self->memory;
		bool was[BLOCKS];

		if (!fresh(_metadata, self, variant))
			return;
		for (unsigned int block = 0; block < BLOCKS; block++)
			was[block] = folded(m, block * n);
		ASSERT_EQ(0, call(m, m->at + bytes(p->first), bytes(p->pages)))
			TH_LOG("the call on %u pages from page %u on: %s", p->pages, p->first,
			       strerror(errno));
		for (unsigned int block = 0; block < BLOCKS; block++) {
			bool touched = p->first < (block + 1) * n &&
				       p->first + p->pages > block * n;
			int page = untouched_page(p, block);

			if (!self->contpte || page < 0 || !was[block])
				continue;
			EXPECT_EQ(!touched || folding == STAYS, folded(m, page))
				TH_LOG("block %u after the call on %u pages from page %u on", block,
				       p->pages, p->first);
			folds++;
		}
		for (unsigned int page = 0; page < m->pages; page++)
			check_page(_metadata, m, page, within(p, page) ? fate : SAME,
				   variant->kind);
		if (!__test_passed(_metadata))
			return;
	}
	if (self->contpte && perf_tells())
		DID(folds, "folded blocks checked after a call");
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * The test maps four blocks of fresh memory. Each page must be in a folded
 * block. This also applies to the second block of a folio, which begins in the
 * middle of the folio. The test only reads the XFS file, so fault-around maps
 * the file in whole blocks.
 */
TEST_F(contpte_fold, fresh_memory)
{
	if (!self->contpte)
		SKIP(return, "no contpte in this kernel");
	if (!fresh(_metadata, self, variant))
		return;
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
	for (unsigned int page = 0; page < self->memory.pages; page++) {
		EXPECT_TRUE(folded(&self->memory, page)) {
			TH_LOG("the entry of page %u maps %lu bytes", page,
			       mapped_size(self->memory.at + bytes(page)));
		}
	}
}

/*
 * The test maps single pages that fill four blocks. For each page, perf must
 * show the size of one page. This shows that no block is folded.
 */
TEST_F(contpte_fold, single_pages)
{
	struct memory *m = &self->memory;
	const char *why = folio_settings(0);

	ASSERT_EQ(NULL, why);
	if (variant->kind != ANON)
		SKIP(return, "only anonymous memory is tested");
	ASSERT_EQ(NULL, memory_map(m, ANON, 0, BLOCKS * cont_ptes()));
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_EQ(bytes(1), mapped_size(m->at + bytes(page)));
}

static int call_munmap(struct memory *m, char *at, size_t length)
{
	return munmap(at, length);
}

/*
 * The test calls munmap() on each range. The pages of the range are no longer
 * mapped, and all other pages keep their content and permission.
 */
TEST_F(contpte_fold, munmap_part)
{
	at_each_place(_metadata, self, variant, call_munmap, NOACCESS, UNFOLDS);
}

static int call_dontneed(struct memory *m, char *at, size_t length)
{
	return madvise(at, length, MADV_DONTNEED);
}

/*
 * The test calls MADV_DONTNEED on each range. Afterwards, anonymous pages of
 * the range are zero, and pages of a file have the file's content again.
 */
TEST_F(contpte_fold, madvise_dontneed_part)
{
	at_each_place(_metadata, self, variant, call_dontneed, EMPTY, UNFOLDS);
}

static int call_readonly(struct memory *m, char *at, size_t length)
{
	return mprotect(at, length, PROT_READ);
}

/*
 * mprotect(PROT_READ) on each range makes only the pages of the range
 * read-only. The test has only read the XFS file, so the entries of this file
 * are read-only before the call. If mprotect() then writes the last entry of a
 * block, the kernel folds the block again. So the case does not check the
 * folding of the XFS file.
 */
TEST_F(contpte_fold, mprotect_readonly_part)
{
	if (variant->kind == XFS)
		self->contpte = false;
	at_each_place(_metadata, self, variant, call_readonly, READONLY, UNFOLDS);
}

static int call_none(struct memory *m, char *at, size_t length)
{
	return mprotect(at, length, PROT_NONE);
}

/*
 * The test calls mprotect(PROT_NONE) on each range. The pages of the range
 * cannot be accessed, and all other pages stay accessible. Each block that is
 * partly in the range is unfolded.
 */
TEST_F(contpte_fold, mprotect_none_part)
{
	at_each_place(_metadata, self, variant, call_none, NOACCESS, UNFOLDS);
}

static int call_none_and_back(struct memory *m, char *at, size_t length)
{
	return mprotect(at, length, PROT_NONE) ?:
	       mprotect(at, length, PROT_READ | PROT_WRITE);
}

/*
 * mprotect() makes each range PROT_NONE and then accessible again. All pages
 * keep their content and permission. A block may fold again if mprotect()
 * writes its last entry, so the case does not check folding.
 */
TEST_F(contpte_fold, mprotect_none_and_back)
{
	self->contpte = false;
	at_each_place(_metadata, self, variant, call_none_and_back, SAME, STAYS);
}

static int call_exec(struct memory *m, char *at, size_t length)
{
	return mprotect(at, length, PROT_READ | PROT_WRITE | PROT_EXEC);
}

/*
 * mprotect() adds PROT_EXEC to each range. All pages keep their content. Blocks
 * that are partly in the range unfold, since the entries of a folded block need
 * equal permissions.
 */
TEST_F(contpte_fold, mprotect_exec_part)
{
	at_each_place(_metadata, self, variant, call_exec, SAME, UNFOLDS);
}

static int call_mremap(struct memory *m, char *at, size_t length)
{
	char *to = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool same = true;
	size_t offset;

	if (mremap(at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
		return -1;
	for (offset = 0; offset < length; offset += psize())
		same &= page_is(to + offset, pattern((at - m->at + offset) / psize()));
	munmap(to, length);
	errno = EILSEQ;
	return same ? 0 : -1;
}

/*
 * mremap() moves each range. The pages have the right content at the new
 * address, and nothing is mapped at the old address.
 */
TEST_F(contpte_fold, mremap_part)
{
	at_each_place(_metadata, self, variant, call_mremap, NOACCESS, UNFOLDS);
}

static int call_split(struct memory *m, char *at, size_t length)
{
	return madvise(at, length, MADV_DONTFORK) ?: madvise(at, length, MADV_RANDOM) ?:
	       madvise(at, length, MADV_DONTDUMP);
}

/*
 * The test calls madvise() on each range with DONTFORK, then with RANDOM, then
 * with DONTDUMP. After these three calls the VMA is split within a block. The
 * split changes no entry, so every block stays folded.
 */
TEST_F(contpte_fold, vma_split_only)
{
	at_each_place(_metadata, self, variant, call_split, SAME, STAYS);
}

static int call_mlock(struct memory *m, char *at, size_t length)
{
	return mlock(at, length) ?: munlock(at, length);
}

/*
 * mlock() and munlock() on each range unfold no block. The case does not check
 * the folding of the XFS file.
 */
TEST_F(contpte_fold, mlock_part)
{
	if (variant->kind == XFS)
		self->contpte = false;
	at_each_place(_metadata, self, variant, call_mlock, SAME, STAYS);
}

static int call_mincore(struct memory *m, char *at, size_t length)
{
	unsigned int i, pages = length / psize();
	unsigned char answers[1024];

	memset(answers, 0xa5, sizeof(answers));
	if (mincore(at, length, answers))
		return -1;
	errno = EILSEQ;
	for (i = 0; i < sizeof(answers); i++)
		if (answers[i] != (i < pages ? 1 : 0xa5))
			return -1;
	return 0;
}

/*
 * mincore() on each range writes one byte per page, and leaves the rest of the
 * buffer alone. All blocks stay folded.
 */
TEST_F(contpte_fold, mincore_part)
{
	at_each_place(_metadata, self, variant, call_mincore, SAME, STAYS);
}

/*
 * mprotect() makes four whole blocks read-only and then writable again. Linux
 * 6.17 and later write the entries in batches. Older kernels write the entries
 * one by one, and fold a block when they write its last entry. On every kernel
 * all blocks are folded in the end, and all pages are writable.
 */
TEST_F(contpte_fold, mprotect_whole_and_back)
{
	unsigned int n = cont_ptes();

	if (!fresh(_metadata, self, variant))
		return;
	ASSERT_EQ(0, mprotect(self->memory.at, bytes(BLOCKS * n), PROT_READ));
	ASSERT_EQ(0, mprotect(self->memory.at, bytes(BLOCKS * n), PROT_READ | PROT_WRITE));
	for (unsigned int block = 0; block < BLOCKS && self->contpte && perf_tells(); block++) {
		EXPECT_TRUE(folded(&self->memory, block * n))
			TH_LOG("block %u", block);
	}
	for (unsigned int page = 0; page < self->memory.pages; page++)
		check_page(_metadata, &self->memory, page, SAME, variant->kind);
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * mremap() moves all four blocks to a new address. If the new address is
 * aligned to the size of a block, the blocks are folded. If the new address is
 * one page above an aligned address, no block is folded.
 */
TEST_F(contpte_fold, mremap_whole)
{
	unsigned int n = cont_ptes();
	size_t length = bytes(BLOCKS * n);

	for (int beside = 0; beside < 2; beside++) {
		char *room, *to;

		if (!fresh(_metadata, self, variant))
			return;
		room = mmap(NULL, length + 3 * bytes(n), PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		to = (char *)(((unsigned long)room + bytes(n) - 1) & -bytes(n)) + bytes(beside);
		ASSERT_EQ(to, mremap(self->memory.at, length, length,
				     MREMAP_MAYMOVE | MREMAP_FIXED, to));
		for (unsigned int page = 0; page < BLOCKS * n; page++) {
			if (self->contpte && perf_tells()) {
				EXPECT_EQ(bytes(beside ? 1 : n), mapped_size(to + bytes(page)))
					TH_LOG("page %u, shifted by %d pages", page, beside);
			}
			EXPECT_TRUE(page_is(to + bytes(page), pattern(page)));
		}
		munmap(room, length + 3 * bytes(n));
	}
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * The test unmaps a range as long as half a block, maps the range again, and
 * accesses each page of the range. It does this 100 times, at different places
 * in the four blocks. After each round the pages of the range have the right
 * content. In the end all pages have the right content, and Rss counts each
 * page of anonymous memory once.
 */
TEST_F(contpte_fold, munmap_and_fault_again)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes();

	if (!fresh(_metadata, self, variant))
		return;
	for (unsigned int round = 0; round < 100; round++) {
		unsigned int first = (round * 7) % (m->pages - n / 2);
		char *at = m->at + bytes(first);
		int flags = MAP_FIXED |
			    (m->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

		ASSERT_EQ(0, munmap(at, bytes(n / 2)));
		ASSERT_EQ(at, mmap(at, bytes(n / 2), PROT_READ | PROT_WRITE, flags, m->fd,
				   m->fd < 0 ? 0 : bytes(first)));
		for (unsigned int page = first; page < first + n / 2; page++) {
			if (variant->kind == ANON)
				memset(m->at + bytes(page), pattern(page), bytes(1));
			ASSERT_TRUE(page_is(m->at + bytes(page), pattern(page)));
		}
	}
	for (unsigned int page = 0; page < m->pages; page++)
		check_page(_metadata, m, page, SAME, variant->kind);
	if (variant->kind == ANON)
		EXPECT_EQ(m->pages, smaps_pages(m->at, "Rss"));
}

/*
 * The test clears the soft-dirty bits, then writes to one page in the middle of
 * a folded block. Only that page is soft-dirty.
 */
TEST_F(contpte_fold, soft_dirty_page)
{
	struct memory *m = &self->memory;
	unsigned int one = cont_ptes() / 2;

	if (!softdirty_supported())
		SKIP(return, "CONFIG_MEM_SOFT_DIRTY=n");
	if (!fresh(_metadata, self, variant))
		return;
	clear_softdirty();
	m->at[bytes(one)] = pattern(one);
	for (unsigned int page = 0; page < m->pages; page++) {
		EXPECT_EQ(page == one, pagemap_has(m->at + bytes(page), PM_SOFT_DIRTY)) {
			TH_LOG("page %u", page);
		}
	}
}

FIXTURE(kernel_tables)
{
};

FIXTURE_SETUP(kernel_tables)
{
}

FIXTURE_TEARDOWN(kernel_tables)
{
}

/*
 * The kernel's own page tables have contiguous entries. A read of
 * /sys/kernel/debug/kernel_page_tables returns more than 10 lines, and reaches
 * the end of the file.
 */
TEST_F_TIMEOUT(kernel_tables, dump_ends, 60)
{
	FILE *f = fopen("/sys/kernel/debug/kernel_page_tables", "r");
	unsigned int lines = 0;
	char line[256];

	if (!f)
		SKIP(return, "CONFIG_PTDUMP_DEBUGFS=n");
	while (fgets(line, sizeof(line), f))
		lines++;
	fclose(f);
	EXPECT_LT(10, lines);
}

TEST_HARNESS_MAIN
