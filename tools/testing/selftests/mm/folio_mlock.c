// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim of large folios in mlock()ed memory.
 *
 * Proves: reclaim leaves locked pages in memory, whether one or two page tables
 * map their folio. If one page table maps a whole locked folio that has no
 * mlocked flag, reclaim sets the flag. Reclaim sets the flag even if the
 * kernel's count of the locks was too low. If two page tables map the folio,
 * reclaim never sets the flag, since it holds the lock of only one table.
 *
 * Does not prove: the absence of races with mlock() and munlock().
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_mlock
 */
#include <sys/stat.h>

#include "folio_owner.h"
#include "folio_state.h"

#define GROUP "/sys/fs/cgroup/folio_mlock"

/*
 * Charge new memory to a separate memory cgroup, since memory.reclaim of a
 * group reclaims only pages of this group. Returns NULL, or the reason for a
 * failure.
 */
static const char *reclaim_setup(void)
{
	if (!have_swap())
		return "no swap";
	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory") ||
	    (mkdir(GROUP, 0755) && errno != EEXIST) || write_text(GROUP "/cgroup.procs", "0"))
		return "CONFIG_MEMCG=n, or no cgroup v2";
	return NULL;
}

static void reclaim_end(void)
{
	write_text("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(GROUP);
}

/*
 * Allocate a page, and reclaim memory of the group until this page is swapped
 * out. By then reclaim has seen the test's memory, which is older than this
 * page. Returns whether the page was swapped out.
 */
static bool reclaim_all(void)
{
	char *other = mmap(NULL, bytes(1), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool away = false;

	*other = 1;
	for (int i = 0; i < 50 && !away; i++) {
		write_text(GROUP "/memory.reclaim", "64M");
		away = !pagemap_has(other, PM_PRESENT);
	}
	munmap(other, bytes(1));
	return away;
}

static bool all_present(const char *at, unsigned int pages)
{
	for (unsigned int page = 0; page < pages; page++)
		if (!pagemap_has(at + bytes(page), PM_PRESENT))
			return false;
	return true;
}

/*
 * The number of locked pages of the machine. The function first writes to
 * stat_refresh, which adds the counts of each CPU to the total.
 */
static long mlocked(void)
{
	write_text("/proc/sys/vm/stat_refresh", "1");
	return size_in("/proc/meminfo", "Mlocked");
}

FIXTURE(folio_mlock)
{
	struct memory memory;
	char *room;
	size_t table;
	char *end;	/* the address in @room at which a page table ends */
};

FIXTURE_VARIANT(folio_mlock)
{
	int order;	/* added to the order of a block */
};

FIXTURE_VARIANT_ADD(folio_mlock, block)
{
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_mlock, four_blocks)
{
	.order = 2,
};

FIXTURE_SETUP(folio_mlock)
{
	struct memory *m = &self->memory;
	int order = order_of(cont_ptes()) + variant->order;
	const char *why = folio_settings(order);

	m->fd = -1;
	self->room = NULL;
	self->table = read_pmd_pagesize();
	if (why)
		SKIP(return, "%s", why);
	if (!self->table)
		SKIP(return, "cannot tell how much memory a page table maps");
	why = reclaim_setup();
	if (!why)
		why = memory_map(m, ANON, order, 1);
	if (why)
		SKIP(return, "%s", why);
	self->room = mmap(NULL, 4 * self->table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	self->end = (char *)(((unsigned long)self->room + 2 * self->table - 1) & -self->table);
}

FIXTURE_TEARDOWN(folio_mlock)
{
	memory_free(&self->memory);
	reclaim_end();
	if (self->room)
		munmap(self->room, 4 * self->table);
}

/*
 * Move the memory to @to and lock it there. Do not access the memory: reclaim
 * may skip pages that were accessed. Returns @to, or NULL if a call fails or
 * the folio is active.
 */
static char *lock_at(struct memory *m, char *to)
{
	size_t length = bytes(m->pages);

	if (mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to ||
	    mlock2(to, length, MLOCK_ONFAULT) || kernel_flags(to) & FOLIO_ACTIVE)
		return NULL;
	return to;
}

/*
 * A page table ends in the middle of a locked folio. mlock() does not set the
 * mlocked flag of the folio. Reclaim does not set the flag either, since
 * reclaim holds the lock of only one of the two tables. All pages stay in
 * memory. A kernel without CONFIG_THP_SWAP splits the folio before it swaps,
 * and then sets the flag of each page. Commit a2880202767d ("mm/rmap: fix a
 * mlock race condition in folio_referenced_one()") fixed a bug here.
 */
TEST_F(folio_mlock, over_table_end)
{
	struct memory *m = &self->memory;
	char *at = lock_at(m, self->end - bytes(m->pages / 2));

	ASSERT_NE(NULL, at);
	EXPECT_FALSE(kernel_flags(at) & FOLIO_MLOCKED);
	ASSERT_TRUE(reclaim_all());
	EXPECT_EQ(!swaps_large(), !!(kernel_flags(at) & FOLIO_MLOCKED));
	EXPECT_TRUE(all_present(at, m->pages));
	EXPECT_EQ(-1, foreign_page(at, 0, m->pages));
}

/*
 * A page table ends in the middle of a locked folio. mremap() then moves the
 * folio to an address where one page table maps the whole folio. Reclaim sets
 * the mlocked flag, which mlock() did not set, and leaves the pages in memory.
 * munlock() clears the flag. After that, the folio can be swapped out. Commit
 * a2880202767d ("mm/rmap: fix a mlock race condition in
 * folio_referenced_one()") fixed a bug here.
 */
TEST_F(folio_mlock, moved_to_one_table)
{
	struct memory *m = &self->memory;
	char *from = lock_at(m, self->end - bytes(m->pages / 2));
	char *at = self->end + bytes(m->pages);
	size_t length = bytes(m->pages);

	ASSERT_NE(NULL, from);
	ASSERT_EQ(at, mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at));
	EXPECT_FALSE(kernel_flags(at) & FOLIO_MLOCKED);
	ASSERT_TRUE(reclaim_all());
	EXPECT_TRUE(kernel_flags(at) & FOLIO_MLOCKED);
	EXPECT_TRUE(all_present(at, m->pages));
	EXPECT_EQ(-1, foreign_page(at, 0, m->pages));
	ASSERT_EQ(0, munlock(at, length));
	EXPECT_FALSE(kernel_flags(at) & FOLIO_MLOCKED);
	ASSERT_EQ(0, madvise(at, length, MADV_PAGEOUT));
	EXPECT_FALSE(pagemap_has(at, PM_PRESENT));
	EXPECT_EQ(-1, foreign_page(at, 0, m->pages));
}

/*
 * The process drops one page in the middle of the folio, and locks the whole
 * mapping. The mapping no longer maps the whole folio, so mlock() must not
 * count the folio as locked. The mapped pages still stay in memory. munlock()
 * does not change the count either.
 */
TEST_F(folio_mlock, hole)
{
	struct memory *m = &self->memory;
	unsigned int hole = m->pages / 2, last = m->pages - 1;
	long before = mlocked();
	size_t length = bytes(m->pages);

	ASSERT_EQ(0, madvise(m->at + bytes(hole), bytes(1), MADV_DONTNEED));
	ASSERT_EQ(0, mlock2(m->at, length, MLOCK_ONFAULT));
	EXPECT_FALSE(kernel_flags(m->at) & FOLIO_MLOCKED);
	EXPECT_FALSE(kernel_flags(m->at + bytes(last)) & FOLIO_MLOCKED);
	EXPECT_EQ(before, mlocked());
	ASSERT_TRUE(reclaim_all());
	EXPECT_TRUE(all_present(m->at, hole));
	EXPECT_TRUE(all_present(m->at + bytes(hole + 1), last - hole));
	EXPECT_EQ(-1, foreign_page(m->at, 0, hole));
	EXPECT_EQ(-1, foreign_page(m->at + bytes(hole + 1), hole + 1, last - hole));
	DID(last, "pages locked in place");
	ASSERT_EQ(0, munlock(m->at, length));
	EXPECT_FALSE(kernel_flags(m->at) & FOLIO_MLOCKED);
	EXPECT_EQ(before, mlocked());
}

FIXTURE(mlock_twice)
{
	struct memory memory;
	char *room;
	char *other;	/* the second mapping, in @room */
};

FIXTURE_SETUP(mlock_twice)
{
	struct memory *m = &self->memory;
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);
	size_t length;
	char *other;

	m->fd = -1;
	self->room = MAP_FAILED;
	if (!why)
		why = reclaim_setup();
	if (!why)
		why = memory_map(m, SHMEM, order, 1);
	if (why)
		SKIP(return, "%s", why);
	/*
	 * Align @other, so that one page table maps all of it. If a page table
	 * ended within @other, MADV_PAGEOUT of @other would split the folio.
	 * Splitting a folio of a file unmaps its pages in all mappings, even in
	 * a locked mapping. The pages themselves stay in memory.
	 */
	length = bytes(m->pages);
	self->room = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	other = (char *)(((unsigned long)self->room + length - 1) & -length);
	self->other = mmap(other, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd, 0);
	ASSERT_EQ(other, self->other);
}

FIXTURE_TEARDOWN(mlock_twice)
{
	if (self->room != MAP_FAILED)
		munmap(self->room, 2 * bytes(self->memory.pages));
	memory_free(&self->memory);
	reclaim_end();
}

/*
 * The mapping @m is locked. Lock the mapping @other too, drop a page in its
 * middle, and unlock @other. The missing page divides the entries of @other
 * into two ranges. munlock() decrements the folio's count once for each range.
 * The folio then has no mlocked flag, although @m is still locked.
 */
static void lose_count(struct __test_metadata *_metadata, struct memory *m, char *other)
{
	char *hole = other + bytes(m->pages / 2);
	size_t length = bytes(m->pages);
	long locked;

	ASSERT_EQ(0, mlock(other, length));
	ASSERT_EQ(pfn_of(m->at), pfn_of(other));
	ASSERT_TRUE(kernel_flags(m->at) & FOLIO_MLOCKED);
	locked = mlocked();
	ASSERT_EQ(0, madvise(hole, bytes(1), MADV_DONTNEED_LOCKED));
	ASSERT_FALSE(pagemap_has(hole, PM_PRESENT));
	ASSERT_EQ(0, munlock(other, length));
	TH_LOG("%ld pages locked with two locks, %ld with one", locked, mlocked());
	ASSERT_FALSE(kernel_flags(m->at) & FOLIO_MLOCKED);
}

/*
 * Two mappings of one memfd lock the same folio. After munlock() of the second
 * mapping the kernel's count of locks is too low. Reclaim must not take the
 * pages. Reclaim must find that the first mapping is still locked, and must set
 * the mlocked flag of the folio again. MADV_PAGEOUT of the second mapping must
 * not take the pages either. After the last munlock(), MADV_PAGEOUT takes the
 * pages.
 */
TEST_F(mlock_twice, munlock_of_two_runs)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	long before = mlocked();

	ASSERT_EQ(0, mlock(m->at, length));
	ASSERT_EQ(before + m->pages, mlocked());
	lose_count(_metadata, m, self->other);
	ASSERT_TRUE(reclaim_all());
	EXPECT_TRUE(all_present(m->at, m->pages));
	EXPECT_EQ(0, swapped_out(m));
	EXPECT_TRUE(kernel_flags(m->at) & FOLIO_MLOCKED);
	EXPECT_EQ(before + m->pages, mlocked());
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));

	lose_count(_metadata, m, self->other);
	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(self->other + bytes(page));
	ASSERT_EQ(0, madvise(self->other, length, MADV_PAGEOUT));
	EXPECT_TRUE(all_present(m->at, m->pages));
	EXPECT_EQ(0, swapped_out(m));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));

	/* MADV_PAGEOUT skips pages with two mappings, so unmap the second mapping first. */
	ASSERT_EQ(0, munlock(m->at, length));
	EXPECT_EQ(before, mlocked());
	ASSERT_EQ(0, munmap(self->other, length));
	ASSERT_EQ(0, madvise(m->at, length, MADV_PAGEOUT));
	DID(swapped_out(m), "pages swapped out after the last munlock()");
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * Two mappings of one memfd lock the same folio. The folio stays locked until
 * both locks are gone: munlock() removes the first lock, and munmap() removes
 * the second lock. The test maps all pages in both mappings before it locks
 * them, because Linux 6.12 does not count the lock if a fault maps a large
 * folio into locked memory.
 */
TEST_F(mlock_twice, locks_are_counted)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	long before = mlocked();

	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(self->other + bytes(page));
	ASSERT_EQ(0, mlock(m->at, length));
	ASSERT_EQ(0, mlock(self->other, length));
	ASSERT_EQ(0, munlock(m->at, length));
	EXPECT_TRUE(kernel_flags(m->at) & FOLIO_MLOCKED);
	EXPECT_EQ(before + m->pages, mlocked());
	ASSERT_EQ(0, munmap(self->other, length));
	EXPECT_FALSE(kernel_flags(m->at) & FOLIO_MLOCKED);
	EXPECT_EQ(before, mlocked());
	DID(2, "locks");
}

TEST_HARNESS_MAIN
