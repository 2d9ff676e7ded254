// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel must not read or write past the end of a page that it allocated
 * for itself.
 *
 * Proves: mincore() collects its answers in a page, and writes no answer past
 * the end of this page. Reclaim reads no entries past the end of a page table.
 *
 * How: the test fills hundreds of pipes one after the other, so that many of
 * their pages are adjacent in memory. It then closes every second pipe. The
 * next page that the kernel allocates for itself is likely to lie directly
 * before a page of an open pipe. The test knows the content of the pipe's page,
 * and checks it later. One such pair of pages is enough to notice an access
 * past the end.
 *
 *	pipe | free | pipe | free | pipe
 *	                    ^ a page table; the pipe after it holds entries
 *
 * Does not prove: that two pages really are adjacent. On x86-64 a mutant shows
 * that some pages in the test of reclaim are adjacent. If the kernel has
 * bug_ddd05742b45b_unmap_batch_over_table_end, lazyfree_over_table_end must
 * fail.
 *
 * Run: make kselftest TARGETS=mm ARCH=x86_64 TESTS=folio_edge
 */
#include <sys/stat.h>

#include "folio_state.h"

#define PIPES 512
#define ROUNDS 16

FIXTURE(folio_edge)
{
	int pipes[PIPES][2];
	char *page;
};

FIXTURE_SETUP(folio_edge)
{
	struct rlimit files = { 4 * PIPES, 4 * PIPES };

	for (unsigned int i = 0; i < PIPES; i++)
		self->pipes[i][0] = -1;
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	self->page = malloc(bytes(1));
	ASSERT_NE(NULL, self->page);
}

static void close_pipe(int ends[2])
{
	if (ends[0] >= 0) {
		close(ends[0]);
		close(ends[1]);
	}
	ends[0] = -1;
}

FIXTURE_TEARDOWN(folio_edge)
{
	for (unsigned int i = 0; i < PIPES; i++)
		close_pipe(self->pipes[i]);
	free(self->page);
}

/*
 * Write self->page to each pipe. Then close every second pipe. This frees the
 * pages of the closed pipes. Returns whether it worked.
 */
static bool interleave(FIXTURE_DATA(folio_edge) * self)
{
	for (unsigned int i = 0; i < PIPES; i++)
		if (pipe(self->pipes[i]))
			return false;
	for (unsigned int i = 0; i < PIPES; i++)
		if (write(self->pipes[i][1], self->page, psize()) != (ssize_t)psize())
			return false;
	for (unsigned int i = 0; i < PIPES; i += 2)
		close_pipe(self->pipes[i]);
	return true;
}

/* Read and close the open pipes. Returns the number of pipes whose content has changed. */
static unsigned int changed(FIXTURE_DATA(folio_edge) * self)
{
	char *now = malloc(bytes(1));
	unsigned int count = 0;

	for (unsigned int i = 1; i < PIPES; i += 2) {
		if (read(self->pipes[i][0], now, psize()) != (ssize_t)psize() ||
		    memcmp(now, self->page, psize()))
			count++;
		close_pipe(self->pipes[i]);
	}
	free(now);
	return count;
}

/*
 * The test calls mincore() 16 times, each time for so many pages that the
 * answers fill a whole page. The last answers describe a large folio, which
 * arm64 maps as a folded block. The kernel must never write an answer past the
 * page that holds the answers.
 */
TEST_F_TIMEOUT(folio_edge, mincore_answers, 120)
{
	unsigned int pages = psize(), n = cont_ptes();
	unsigned char *answers = malloc(pages);
	struct memory m = { .fd = -1 };
	const char *why = folio_settings(order_of(n));

	if (bytes(pages) > 64 << 20)
		SKIP(return, "one page of mincore() answers covers more than 64 MiB of memory");
	if (!why)
		why = memory_map(&m, ANON, order_of(n), pages / n);
	if (why)
		SKIP(return, "%s", why);
	memset(self->page, 0xee, psize());
	for (unsigned int round = 0; round < ROUNDS; round++) {
		ASSERT_TRUE(interleave(self));
		ASSERT_EQ(0, mincore(m.at, bytes(pages), answers));
		ASSERT_EQ(0, changed(self)) {
			TH_LOG("mincore() wrote past the page that holds its answers");
		}
		for (unsigned int i = 0; i < pages; i++)
			ASSERT_EQ(1, answers[i]);
	}
	DID(ROUNDS, "pages of answers");
	memory_free(&m);
	free(answers);
}

/*
 * The page-table entry that a page has after MADV_FREE: writable, old and
 * clean. Returns 0 on architectures other than x86-64. There, only KASAN
 * notices if the kernel reads past a page table.
 */
static unsigned long entry_of(unsigned long pfn, bool soft_dirty)
{
#ifdef __x86_64__
	return 1UL << 63 | pfn << 12 | (soft_dirty ? 1UL << 11 : 0) | 7;
#else
	return 0;
#endif
}

#define GROUP "/sys/fs/cgroup/folio_edge"

/*
 * Reclaim until the page is gone, at most 50 times. Returns whether it is gone.
 */
static bool take(const char *at)
{
	for (int i = 0; i < 50 && pagemap_has(at, PM_PRESENT); i++)
		write_text(GROUP "/memory.reclaim", "64M");
	return !pagemap_has(at, PM_PRESENT);
}

/*
 * Reclaim frees a folio after MADV_FREE. One page table maps its first half,
 * and another table maps its second half. In physical memory, the page after
 * the table of the first half is likely to belong to a pipe. The page of the
 * pipe holds values that look like entries for the second half. Reclaim must
 * not change this page. The test does not call madvise() while the folio lies
 * across two tables, because madvise() would then split the folio. So the test
 * calls MADV_FREE first, then moves the folio across the end of a table, and
 * starts the reclaim through the memory cgroup. Commit ddd05742b45b ("mm/rmap:
 * fix potential out-of-bounds page table access during batched unmap") fixed a
 * bug here.
 */
TEST_F_TIMEOUT(folio_edge, lazyfree_over_table_end, 120)
{
	unsigned long *entries = (unsigned long *)self->page, taken = 0, large = 0;
	size_t table = read_pmd_pagesize();
	unsigned int n = cont_ptes();
	const char *why = folio_settings(order_of(n));

	if (!why && (!table || table > 64 << 20 || !have_swap()))
		why = "no swap, or page tables that map an unknown size or over 64 MiB";
	if (why)
		SKIP(return, "%s", why);
	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory") ||
	    (mkdir(GROUP, 0755) && errno != EEXIST) || access(GROUP "/memory.reclaim", W_OK))
		SKIP(return, "CONFIG_MEMCG=n, or cgroup v2 is not mounted");
	/* Join the group, because its memory.reclaim frees only pages of the group. */
	ASSERT_EQ(0, write_text(GROUP "/cgroup.procs", "0"));
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct memory m;
		char *room, *to;

		ASSERT_EQ(NULL, memory_map(&m, ANON, order_of(n), 1));
		room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, room);
		to = (char *)(((unsigned long)room + 2 * table - 1) & -table) - bytes(n / 2);
		/*
		 * If the kernel has the soft-dirty bit, mremap() sets this bit
		 * in the entries. So the values in the pipe have the bit too.
		 */
		memset(self->page, 0, psize());
		for (unsigned int i = 0; i < n / 2; i++)
			entries[i] = entry_of(pfn_of(m.at) + n / 2 + i, softdirty_supported());
		ASSERT_EQ(0, madvise(m.at, bytes(n), MADV_FREE));
		ASSERT_TRUE(interleave(self));
		ASSERT_EQ(to, mremap(m.at, bytes(n), bytes(n), MREMAP_MAYMOVE | MREMAP_FIXED, to));
		m.at = to;
		large += is_folio(&m, 0);
		taken += take(to);
		for (unsigned int page = 0; page < n; page++)
			EXPECT_FALSE(pagemap_has(to + bytes(page), PM_PRESENT | PM_SWAP));
		EXPECT_EQ(0, changed(self)) {
			TH_LOG("reclaim changed the page that follows a page table in memory");
		}
		munmap(room, 3 * table);
		memory_free(&m);
	}
	DID(large, "folios across the end of a page table");
	DID(taken, "folios freed by reclaim");
	write_text("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(GROUP);
}

TEST_HARNESS_MAIN
