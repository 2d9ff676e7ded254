// SPDX-License-Identifier: GPL-2.0
/*
 * fork() of memory in large folios, and the first write after fork().
 *
 * Proves: the writes of one process after fork() are never visible to the other
 * process. This holds for each page of a folio, and also if
 *
 * - the child inherits only part of the folio;
 * - a page of the folio is in swap, is pinned, or cannot be accessed;
 * - two folios are adjacent in memory;
 * - the folio lies across the end of a page table.
 *
 * Entries that fork() write-protects in batches stay folded in both processes.
 *
 * Does not prove: the absence of races (see folio_race), or the values of
 * reference counts. The kernel checks reference counts when a process exits. If
 * a count is wrong, the kernel prints a message, which fails the case.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_fork
 */
#include "folio_state.h"

#define FOLIOS 2

FIXTURE(folio_fork)
{
	struct memory memory;
	bool contpte;
};

FIXTURE_VARIANT(folio_fork)
{
	int order;	/* folio order minus block order, or SINGLE */
};

#define SINGLE -1

FIXTURE_VARIANT_ADD(folio_fork, block)
{
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_fork, two_blocks)
{
	.order = 1,
};

/*
 * With single pages every batch has one entry. The results are the same as with
 * large folios.
 */
FIXTURE_VARIANT_ADD(folio_fork, single_pages)
{
	.order = SINGLE,
};

FIXTURE_SETUP(folio_fork)
{
	bool single = variant->order == SINGLE;
	int order = single ? 0 : order_of(cont_ptes()) + variant->order;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (why)
		SKIP(return, "%s", why);
	self->contpte = has_contpte() && !single;
	why = memory_map(&self->memory, ANON, order, single ? FOLIOS * cont_ptes() : FOLIOS);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_fork)
{
	memory_free(&self->memory);
}

/* The content of a page that a process has written to after fork(). */
static unsigned char written(unsigned int page)
{
	return pattern(page) ^ 0x80;
}

/* The first page with wrong content, or -1. The process has written only to page @dirty. */
static int wrong_page(const struct memory *m, int dirty)
{
	unsigned int page;

	for (page = 0; page < m->pages; page++)
		if (!page_is(m->at + bytes(page),
			     (int)page == dirty ? written(page) : pattern(page)))
			return page;
	return -1;
}

/*
 * For each page of two folios, a new child writes to that page. The child sees
 * its own write and no other change, and the parent sees no change. The
 * parent's block stays folded. In the child, a block that does not contain the
 * page stays folded too.
 */
TEST_F_TIMEOUT(folio_fork, child_writes_each_page, 120)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes();

	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
	for (unsigned int page = 0; page < m->pages; page++) {
		pid_t child = fork();

		if (!child) {
			bool both = folded(m, 0) && folded(m, m->pages - 1);

			if (self->contpte && !both)
				_exit(2);
			memset(m->at + bytes(page), written(page), bytes(1));
			if (self->contpte && !folded(m, page < n ? m->pages - 1 : 0))
				_exit(3);
			_exit(wrong_page(m, page) < 0 ? 0 : 1);
		}
		ASSERT_EQ(0, child_of(child)) {
			TH_LOG("the child writes to page %u", page);
			TH_LOG("status 1: wrong content; 2: a block is unfolded after fork();");
			TH_LOG("3: the block without the page is unfolded after the write");
		}
		ASSERT_EQ(-1, wrong_page(m, -1));
		if (self->contpte)
			ASSERT_TRUE(folded(m, page));
	}
}

/*
 * For each page of two folios, the parent writes to that page while a new child
 * is running. The write costs exactly one fault, and the child does not see the
 * write. In one run, a write took two faults for an unknown reason. So if a
 * write takes more than one fault, the case repeats it with a new child. The
 * case makes at most three tries for each page.
 */
TEST_F_TIMEOUT(folio_fork, parent_writes_each_page, 120)
{
	struct memory *m = &self->memory;
	unsigned int tries = 0;
	int go[2];

	for (unsigned int page = 0; page < m->pages;) {
		long before, taken;
		pid_t child;
		char byte;

		ASSERT_EQ(0, pipe(go));
		child = fork();
		if (!child) {
			close(go[1]);
			_exit(read(go[0], &byte, 1) || wrong_page(m, -1) >= 0);
		}
		faults_begin(&before);
		m->at[bytes(page)] = written(page);
		taken = faults() - before;
		memset(m->at + bytes(page), written(page), bytes(1));
		close(go[0]);
		close(go[1]);
		ASSERT_EQ(0, child_of(child))
			TH_LOG("the child saw a change while the parent wrote to page %u", page);
		ASSERT_EQ(-1, wrong_page(m, page));
		memset(m->at + bytes(page), pattern(page), bytes(1));
		if (taken > 1 && ++tries < 3)
			continue;
		EXPECT_EQ(1, taken)
			TH_LOG("page %u", page);
		tries = 0;
		page++;
	}
}

/*
 * How the child inherits a range that madvise() has marked: not at all, or as
 * zeros.
 */
enum inherited { MISSING, WIPED };

/*
 * In the child, check that the range is missing or zero, as @how says, and that
 * all other pages have the right content. A block that is partly in the range
 * is not folded, and every block outside the range is folded. Returns 0, or the
 * number of the failed check.
 */
static int child_of_part(const struct memory *m, unsigned int first, unsigned int pages,
			 enum inherited how, bool contpte)
{
	unsigned int n = cont_ptes();

	for (unsigned int page = 0; page < m->pages && contpte; page++) {
		unsigned int block = page / n * n;
		bool part = first < block + n && first + pages > block;

		if (page >= first && page < first + pages)
			continue;
		if (folded(m, page) == part)
			return 3;
	}
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		if (page < first || page >= first + pages) {
			if (!page_is(at, pattern(page)))
				return 1;
			*at = 0;
		} else if (how == MISSING ? try_access(at, false) != SIGSEGV : !page_is(at, 0)) {
			return 2;
		}
	}
	return 0;
}

static void fork_part(struct __test_metadata *_metadata, FIXTURE_DATA(folio_fork) * self,
		      int advice, enum inherited how)
{
	struct memory *m = &self->memory;
	bool contpte = self->contpte && perf_tells();
	unsigned int n = m->pages / FOLIOS;
	const struct {
		unsigned int first, pages;
	} parts[] = {
		{ 0, n / 2 }, { n / 2, n / 2 }, { n / 2, n }, { n - 1, 2 }, { 1, 1 }, { n, n },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		unsigned int first = parts[i].first, pages = parts[i].pages;
		long before;
		pid_t child;
		int go[2];
		char byte;

		/*
		 * The previous fork() has left write-protected entries, so map
		 * fresh memory.
		 */
		memory_free(m);
		ASSERT_EQ(NULL, memory_map(m, ANON, m->order, FOLIOS * n >> m->order));
		ASSERT_EQ(0, madvise(m->at + bytes(first), bytes(pages), advice));
		ASSERT_EQ(0, pipe(go));
		child = fork();
		if (!child) {
			close(go[1]);
			_exit(read(go[0], &byte, 1) ?:
			      child_of_part(m, first, pages, how, contpte));
		}
		/*
		 * The child does not inherit these pages, so the parent's
		 * writes do not fault.
		 */
		faults_begin(&before);
		for (unsigned int page = first; page < first + pages; page++)
			m->at[bytes(page)] = pattern(page);
		EXPECT_EQ(0, faults() - before)
			TH_LOG("the child does not inherit these %u pages from page %u on", pages,
			       first);
		close(go[0]);
		close(go[1]);
		EXPECT_EQ(0, child_of(child)) {
			TH_LOG("the range has %u pages, from page %u on", pages, first);
			TH_LOG("1: wrong outside the range; 2: wrong inside it; 3: wrong folding");
		}
		EXPECT_EQ(-1, wrong_page(m, -1));
	}
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * The test calls MADV_DONTFORK on six ranges in turn, from one page to a whole
 * folio. The child does not inherit the range. In the child, a block that is
 * partly in the range is not folded, and every block outside the range is
 * folded. In the parent, fork() does not write-protect the entries of the
 * range, so the parent writes to them without a fault.
 */
TEST_F(folio_fork, dontfork_part)
{
	fork_part(_metadata, self, MADV_DONTFORK, MISSING);
}

/*
 * The test calls MADV_WIPEONFORK on the same six ranges as in dontfork_part,
 * and forks a child for each range. In the child, this range is zero, and all
 * other pages have the right content.
 */
TEST_F(folio_fork, wipeonfork_part)
{
	fork_part(_metadata, self, MADV_WIPEONFORK, WIPED);
}

/*
 * MADV_DONTFORK splits the VMA in the middle of the first folio. One child does
 * not inherit the second half of this folio, and the next child does not
 * inherit the first half. All other pages have the right content.
 */
TEST_F(folio_fork, halves_one_after_other)
{
	struct memory *m = &self->memory;
	unsigned int half = m->pages / FOLIOS / 2;

	for (int second = 0; second < 2; second++) {
		pid_t child;

		madvise(m->at, bytes(m->pages), MADV_DOFORK);
		madvise(m->at + bytes(second ? 0 : half), bytes(half), MADV_DONTFORK);
		child = fork();
		if (!child)
			_exit(child_of_part(m, second ? 0 : half, half, MISSING, false));
		EXPECT_EQ(0, child_of(child));
		EXPECT_EQ(-1, wrong_page(m, -1));
	}
}

/*
 * The test drops every third page and then reads it, so the kernel maps the
 * zero page there. fork() and munmap() must not include entries of the zero
 * page in their batches. Both processes have the right content.
 */
TEST_F(folio_fork, zero_pages_between)
{
	struct memory *m = &self->memory;
	pid_t child;

	for (unsigned int page = 0; page < m->pages; page += 3) {
		madvise(m->at + bytes(page), bytes(1), MADV_DONTNEED);
		EXPECT_EQ(0, read_byte(m->at + bytes(page)));
	}
	child = fork();
	if (!child) {
		for (unsigned int page = 0; page < m->pages; page++) {
			if (!page_is(m->at + bytes(page), page % 3 ? pattern(page) : 0))
				_exit(1);
			m->at[bytes(page)] = 0xff;
		}
		_exit(munmap(m->at, bytes(m->pages)) ? 2 : 0);
	}
	EXPECT_EQ(0, child_of(child));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(page_is(m->at + bytes(page), page % 3 ? pattern(page) : 0));
}

/*
 * fork() does not write-protect shared memory, so the parent writes without a
 * fault. The parent also sees the writes of the child. In this test fork()
 * copies no entry. The case folio_uffd.fork_with_event tests a fork() that
 * copies the entries of shared memory.
 */
TEST_F(folio_fork, shared_memory)
{
	struct memory m;
	const char *why = memory_map(&m, SHMEM, self->memory.order,
				     self->memory.pages >> self->memory.order);
	long before;
	pid_t child;

	if (why)
		SKIP(return, "%s", why);
	child = fork();
	if (!child) {
		for (unsigned int page = 0; page < m.pages; page += 2)
			memset(m.at + bytes(page), written(page), bytes(1));
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child));
	faults_begin(&before);
	for (unsigned int page = 1; page < m.pages; page += 2)
		memset(m.at + bytes(page), written(page), bytes(1));
	EXPECT_EQ(0, faults() - before);
	for (unsigned int page = 0; page < m.pages; page++)
		EXPECT_TRUE(page_is(m.at + bytes(page), written(page)));
	memory_free(&m);
}

/*
 * The memory is PROT_NONE when the process forks. Parent and child make it
 * accessible again, and both have the right content.
 */
TEST_F(folio_fork, prot_none)
{
	struct memory *m = &self->memory;
	pid_t child;

	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_NONE));
	child = fork();
	if (!child) {
		if (try_access(m->at, false) != SIGSEGV)
			_exit(2);
		if (mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE))
			_exit(3);
		if (wrong_page(m, -1) >= 0)
			_exit(1);
		memset(m->at, 0, bytes(m->pages));
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child));
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
	EXPECT_EQ(-1, wrong_page(m, -1));
}

/*
 * Every fifth page is in swap when the process forks. fork() copies the swap
 * entries one by one, and the present entries between them in batches. Both
 * processes have the right content.
 */
TEST_F(folio_fork, swap_between)
{
	struct memory *m = &self->memory;
	unsigned int swapped = 0;
	pid_t child;

	if (!have_swap())
		SKIP(return, "no swap");
	for (unsigned int page = 1; page < m->pages; page += 5) {
		madvise(m->at + bytes(page), bytes(1), MADV_PAGEOUT);
		swapped += pagemap_has(m->at + bytes(page), PM_SWAP);
	}
	DID(swapped, "pages swapped out");
	child = fork();
	if (!child) {
		if (wrong_page(m, -1) >= 0)
			_exit(1);
		memset(m->at, 0, bytes(m->pages));
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child));
	EXPECT_EQ(-1, wrong_page(m, -1));
}

/*
 * io_uring pins one page of a folio, as a driver does. io_uring must see later
 * writes of the parent to this page. So the parent keeps the pinned page, and
 * fork() copies it for the child.
 */
TEST_F(folio_fork, pinned_page)
{
	struct memory *m = &self->memory;
	unsigned int page = m->pages / FOLIOS / 2;
	char *at = m->at + bytes(page);
	unsigned long before;
	pid_t child;
	int fd, go[2];
	char byte;

	fd = pin(at, 1);
	if (fd < 0)
		SKIP(return, "no io_uring");
	before = pfn_of(at);
	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		close(go[1]);
		if (pfn_of(at) == before)
			_exit(2);
		_exit(read(go[0], &byte, 1) || wrong_page(m, -1) >= 0);
	}
	memset(at, written(page), bytes(1));
	EXPECT_EQ(before, pfn_of(at));
	close(go[0]);
	close(go[1]);
	EXPECT_EQ(0, child_of(child))
		TH_LOG("status 1: wrong content; 2: the child maps the pinned page");
	EXPECT_EQ(-1, wrong_page(m, page));
	close(fd);
}

/*
 * Two folios are adjacent in memory. The test unmaps the second folio except
 * for its first page. If a batch of fork() begins in the first folio, the batch
 * must not contain this page of the second folio. The test allocates 64 folios
 * to find two adjacent folios.
 *
 *   |<-- folio -->|<-- folio -->|
 *   |============== 1 more page
 */
TEST_F(folio_fork, next_folio_adjacent)
{
	const unsigned int folios = 64, size = 1U << self->memory.order;
	struct memory m;
	unsigned int i;
	pid_t child;

	if (!self->memory.order)
		SKIP(return, "needs large folios");
	ASSERT_EQ(NULL, memory_map(&m, ANON, self->memory.order, folios));
	for (i = 0; i + 1 < folios; i++)
		if (pfn_of(m.at + bytes(i * size)) + size == pfn_of(m.at + bytes((i + 1) * size)))
			break;
	if (i + 1 == folios) {
		memory_free(&m);
		SKIP(return, "no two folios are adjacent in memory");
	}
	munmap(m.at, bytes(i * size));
	munmap(m.at + bytes((i + 1) * size + 1), bytes(m.pages - (i + 1) * size - 1));
	child = fork();
	if (!child) {
		for (unsigned int page = i * size; page <= (i + 1) * size; page++) {
			if (!page_is(m.at + bytes(page), pattern(page)))
				_exit(1);
			m.at[bytes(page)] = 0;
		}
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child));
	for (unsigned int page = i * size; page <= (i + 1) * size; page++)
		EXPECT_TRUE(page_is(m.at + bytes(page), pattern(page)));
	memory_free(&m);
}

/*
 * The test moves two folios. A page table ends in the middle of the first
 * folio, and the VMA ends in the middle of the second folio. A batch of fork()
 * must not cross the end of the page table or of the VMA. Parent and child have
 * the right content.
 */
TEST_F(folio_fork, table_end_within_folio)
{
	struct memory *m = &self->memory;
	size_t table = read_pmd_pagesize();
	unsigned int half = m->pages / FOLIOS / 2;
	size_t length = bytes(m->pages - half);
	char *room, *edge, *to;
	pid_t child;

	if (!table || table > 64 << 20)
		SKIP(return, "cannot tell what a page table maps, or it maps more than 64 MiB");
	room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	edge = (char *)(((unsigned long)room + 2 * table - 1) & -table);
	to = edge - bytes(half);
	ASSERT_EQ(to, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	child = fork();
	if (!child) {
		for (unsigned int page = 0; page < m->pages - half; page++) {
			if (!page_is(to + bytes(page), pattern(page)))
				_exit(1);
			to[bytes(page)] = 0;
		}
		_exit(try_access(to + length, false) == SIGSEGV ? 0 : 2);
	}
	EXPECT_EQ(0, child_of(child));
	for (unsigned int page = 0; page < m->pages - half; page++)
		EXPECT_TRUE(page_is(to + bytes(page), pattern(page)));
	munmap(room, 3 * table);
}

/*
 * In the child Rss counts each page once, and Pss counts half of each page.
 * After the child has exited, all pages are private to the parent. If the
 * kernel's RSS counter of a process is wrong at exit, the kernel prints "Bad
 * rss-counter", and the case fails.
 */
TEST_F(folio_fork, counted_once)
{
	struct memory *m = &self->memory;
	long pages = m->pages;
	pid_t child;

	EXPECT_EQ(pages, smaps_pages(m->at, "Private_Dirty"));
	child = fork();
	if (!child) {
		if (smaps_pages(m->at, "Rss") != pages)
			_exit(1);
		if (smaps_pages(m->at, "Shared_Dirty") != pages)
			_exit(2);
		if (smaps_pages(m->at, "Pss") != pages / 2)
			_exit(3);
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child))
		TH_LOG("exit status of the child: 1 wrong Rss, 2 wrong Shared_Dirty, 3 wrong Pss");
	EXPECT_EQ(pages, smaps_pages(m->at, "Rss"));
	EXPECT_EQ(pages, smaps_pages(m->at, "Private_Dirty"));
}

TEST_HARNESS_MAIN
