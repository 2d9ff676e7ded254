// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of a large folio leave the page table. The cause is swap, migration, a
 * split, KSM or poison.
 *
 * Proves: pages that come back have the right content at the right address, and
 * the pages next to them never change. A write to a page that came back from
 * swap is not lost when the page is swapped out again. Referenced pages are
 * still referenced after migration.
 *
 * Does not prove: what swap entries and migration entries contain (KUnit:
 * pte_nonpresent, swap_pte_batch).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_move
 */
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "folio_owner.h"
#include "folio_state.h"

#define FOLIOS 2

FIXTURE(folio_move)
{
	struct memory memory;
};

FIXTURE_VARIANT(folio_move)
{
	enum memory_kind kind;
	int order;	/* folio order minus block order */
};

FIXTURE_VARIANT_ADD(folio_move, anon)
{
	.kind = ANON,
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_move, anon_two_blocks)
{
	.kind = ANON,
	.order = 1,
};

FIXTURE_VARIANT_ADD(folio_move, shmem)
{
	.kind = SHMEM,
	.order = 0,
};

FIXTURE_SETUP(folio_move)
{
	int order = order_of(cont_ptes()) + variant->order;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, FOLIOS);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_move)
{
	memory_free(&self->memory);
}

static bool in_swap(const struct memory *m, unsigned int page)
{
	return !pagemap_has(m->at + bytes(page), PM_PRESENT);
}

/* The first page with bytes other than pattern(page) + @shift, or -1 if there is no such page. */
static int wrong_page(const struct memory *m, unsigned char shift)
{
	unsigned int page;

	for (page = 0; page < m->pages; page++)
		if (!page_is(m->at + bytes(page), pattern(page) + shift))
			return page;
	return -1;
}

static void fill(const struct memory *m, unsigned char shift)
{
	unsigned int page;

	for (page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page) + shift, bytes(1));
}

/*
 * The case swaps out each page of two folios in turn. After each swap-out it
 * reads all pages of both folios. Each page has the right content.
 */
TEST_F_TIMEOUT(folio_move, pageout_each_page, 120)
{
	struct memory *m = &self->memory;
	unsigned int away = 0;

	if (!have_swap())
		SKIP(return, "no swap");
	for (unsigned int page = 0; page < m->pages; page++) {
		ASSERT_EQ(0, madvise(m->at + bytes(page), bytes(1), MADV_PAGEOUT));
		away += in_swap(m, page);
		ASSERT_EQ(-1, wrong_page(m, 0)) {
			TH_LOG("wrong content after page %u was swapped out", page);
		}
	}
	DID(away, "pages swapped out, one at a time");
}

/*
 * The test fills two folios, swaps them out and reads them again. It does this
 * four times, each time with different content. Pages that come back from swap
 * are clean, and the next write makes them dirty. If the kernel loses this
 * dirty bit, the next read finds old content.
 */
TEST_F_TIMEOUT(folio_move, pageout_twice, 120)
{
	struct memory *m = &self->memory;

	if (!have_swap())
		SKIP(return, "no swap");
	for (unsigned char shift = 0; shift < 4; shift++) {
		fill(m, shift);
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		DID(swapped_out(m), "pages swapped out");
		ASSERT_EQ(-1, wrong_page(m, shift)) {
			TH_LOG("wrong content in round %u", shift);
		}
	}
}

/*
 * All pages are swapped out and read back, so they are clean. One page is
 * written to. In shared memory, munmap() then removes the entry of this page.
 * In anonymous memory, reclaim removes the entry. The write is not lost. The
 * case repeats all this for each page.
 */
TEST_F_TIMEOUT(folio_move, one_dirty_page, 200)
{
	struct memory *m = &self->memory;
	unsigned long clean = 0, away = 0;

	if (!have_swap())
		SKIP(return, "no swap");
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		clean += swapped_out(m);
		for (unsigned int other = 0; other < m->pages; other++)
			read_byte(m->at + bytes(other));
		*at ^= 0x55;
		if (variant->kind == SHMEM) {
			munmap(at, bytes(1));
			ASSERT_EQ(at, mmap(at, bytes(1), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_FIXED, m->fd, bytes(page)));
			read_byte(at);
		}
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		away += in_swap(m, page);
		EXPECT_EQ(pattern(page) ^ 0x55, (unsigned char)*at) {
			TH_LOG("the write to page %u is lost", page);
		}
		*at ^= 0x55;
		ASSERT_EQ(-1, wrong_page(m, 0)) {
			TH_LOG("wrong content after the write to page %u", page);
		}
	}
	DID(clean, "pages swapped out, and read back");
	DID(away, "pages swapped out again after a write");
}

/* The number of free pages in swap. */
static unsigned long free_swap(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : info.freeswap * info.mem_unit / psize();
}

/*
 * Two folios are swapped out. Then munmap() removes the middle half of their
 * pages. In anonymous memory, this frees the swap slots of the removed pages.
 * The other pages come back with their content. If munmap() left swap entries
 * in the table, the kernel would warn when the process exits.
 */
TEST_F(folio_move, munmap_in_swap)
{
	struct memory *m = &self->memory;
	unsigned int half = m->pages / 2;
	unsigned long before;

	if (!have_swap())
		SKIP(return, "no swap");
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	DID(swapped_out(m), "pages swapped out");
	before = free_swap();
	ASSERT_EQ(0, munmap(m->at + bytes(half / 2), bytes(half)));
	if (variant->kind == ANON)
		EXPECT_LT(before + half / 2, free_swap());
	for (unsigned int page = 0; page < m->pages; page++) {
		bool gone = page >= half / 2 && page < half / 2 + half;
		char *at = m->at + bytes(page);

		EXPECT_EQ(gone ? SIGSEGV : 0, try_access(at, false));
		EXPECT_TRUE(gone || page_is(at, pattern(page)));
	}
}

/*
 * Both folios are swapped out without a split, and MADV_DONTNEED drops one page
 * of the second folio. A read of one page of the first folio brings back this
 * whole folio. The pages of the second folio come back one by one, and the
 * dropped page is zero.
 */
TEST_F(folio_move, swap_in_folio)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << m->order, gone = size + size / 2;

	if (variant->kind != ANON || !swaps_large() || !have_swap())
		SKIP(return, "needs anonymous memory, and swap of large folios");
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	ASSERT_EQ(m->pages, swapped_out(m));
	ASSERT_EQ(0, madvise(m->at + bytes(gone), bytes(1), MADV_DONTNEED));
	read_byte(m->at + bytes(size / 2));
	EXPECT_EQ(size, present(m, 0, size));
	EXPECT_TRUE(is_folio(m, 0));
	read_byte(m->at + bytes(size));
	EXPECT_EQ(0, present(m, gone, 1));
	EXPECT_TRUE(page_is(m->at + bytes(gone), 0));
	memset(m->at + bytes(gone), pattern(gone), bytes(1));
	EXPECT_EQ(-1, wrong_page(m, 0));
	DID(size, "pages brought back by one fault");
}

/*
 * All pages are swapped out, and then swapoff() brings them back. All pages
 * have the right content, and later writes are not lost.
 */
TEST_F(folio_move, swap_off)
{
	struct memory *m = &self->memory;

	if (!have_swap())
		SKIP(return, "no swap");
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	DID(swapped_out(m), "pages swapped out");
	ASSERT_EQ(0, swapoff("/dev/ram0"));
	EXPECT_EQ(0, swapped_out(m));
	EXPECT_EQ(-1, wrong_page(m, 0));
	fill(m, 1);
	EXPECT_EQ(-1, wrong_page(m, 1));
	ASSERT_TRUE(have_swap());
}

/*
 * move_pages() is called once for each page of two folios, and the target node
 * changes with each call. After each call the page is on its target node, and
 * all pages have the right content.
 */
TEST_F(folio_move, migrate)
{
	struct memory *m = &self->memory;
	int node = move_page(m->at, NULL);
	unsigned long moves = 0;

	for (unsigned int page = 0; page < m->pages; page++) {
		unsigned long before = pfn_of(m->at + bytes(page));
		int to = !node;

		if (move_page(m->at + bytes(page), &to) == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
		EXPECT_EQ(to, move_page(m->at + bytes(page), NULL));
		moves += pfn_of(m->at + bytes(page)) != before;
		ASSERT_EQ(-1, wrong_page(m, 0)) {
			TH_LOG("wrong content after the move of page %u", page);
		}
		node = to;
	}
	DID(moves, "moves of folios");
}

/*
 * Whether virtual addresses have 52 bits. If so, page-table entries hold
 * physical addresses of 52 bits too.
 */
static bool wide_addresses(void)
{
	void *hint = (void *)(1UL << 50);
	void *at = mmap(hint, bytes(1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(at, bytes(1));
	return (unsigned long)at >> 48;
}

/*
 * Mark all pages as not referenced, then read each page. Returns how many pages
 * are referenced after that, or -1 on failure.
 */
static long reference(char *at, unsigned int pages)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (!f)
		return -1;
	fputs("1", f);
	if (fclose(f) || smaps_pages(at, "Referenced"))
		return -1;
	/*
	 * The CPU does not set the accessed bit of an entry that is already in
	 * its TLB. So flush the TLB by calling mprotect().
	 */
	if (mprotect(at, bytes(pages), PROT_READ) ||
	    mprotect(at, bytes(pages), PROT_READ | PROT_WRITE))
		return -1;
	for (unsigned int page = 0; page < pages; page++)
		read_byte(at + bytes(page));
	return smaps_pages(at, "Referenced");
}

/*
 * Move a huge page that one PMD maps. Returns 1 if the whole huge page is still
 * referenced, 0 if it is not, and -1 if there is no such huge page.
 */
static int huge_page_keeps_referenced(void)
{
	unsigned int pages = read_pmd_pagesize() / psize();
	struct memory huge;
	int to, kept = -1;

	if (folio_settings(order_of(pages)) || memory_map(&huge, ANON, order_of(pages), 1))
		return -1;
	to = !move_page(huge.at, NULL);
	if (smaps_pages(huge.at, "AnonHugePages") == pages &&
	    reference(huge.at, pages) == pages && move_page(huge.at, &to) == to)
		kept = smaps_pages(huge.at, "Referenced") == pages;
	memory_free(&huge);
	return kept;
}

/*
 * All pages are read, and then moved to the other node. The pages are still
 * referenced there. A huge page keeps its referenced state too. Known issue 1:
 * with 52-bit addresses, migration entries of PTEs lose the young bit.
 */
TEST_F(folio_move, migrate_keeps_referenced)
{
	struct memory *m = &self->memory;
	int node = move_page(m->at, NULL), to = !node;
	bool lost = psize() == 4096 && wide_addresses() && has_contpte();
	long before, after;
	int kept;

	before = reference(m->at, m->pages);
	ASSERT_EQ(m->pages, before);
	for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
		if (move_page(m->at + bytes(page), &to) == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
	ASSERT_EQ(to, move_page(m->at, NULL));
	after = smaps_pages(m->at, "Referenced");
	/*
	 * Move a huge page too, as a control. For a PMD, another kernel
	 * function writes the migration entry, and keeps the young bit.
	 */
	kept = huge_page_keeps_referenced();
	EXPECT_NE(0, kept);
	if (!after && lost && kept == 1) {
		KNOWN_ISSUE(1, "migration entries lose the young bit with 52-bit addresses");
		return;
	}
	EXPECT_EQ(before, after);
	if (lost)
		STALE_ISSUE(1);
}

/*
 * A write to debugfs splits the folios. All pages have the right content. Later
 * writes are not lost, even if the pages are then swapped out.
 */
TEST_F(folio_move, split_folio)
{
	struct memory *m = &self->memory;

	if (!split_folios(m))
		SKIP(return, "no debugfs, or the kernel cannot split these folios");
	EXPECT_FALSE(is_folio(m, 0));
	EXPECT_EQ(-1, wrong_page(m, 0));
	fill(m, 1);
	if (have_swap())
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(-1, wrong_page(m, 1));
}

/*
 * KSM merges two equal pages of different folios into one frame. No other page
 * changes. A write to one of the two merged pages does not change the other.
 */
TEST_F_TIMEOUT(folio_move, ksm_merges_one_page, 120)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << m->order, one = size / 2, other = size + size / 4;
	char *a = m->at + bytes(one), *b = m->at + bytes(other);

	if (variant->kind != ANON || access(FOLIO_KSM "run", W_OK))
		SKIP(return, "needs anonymous memory and CONFIG_KSM=y");
	EXPECT_TRUE(ksm_merge(m, a, b, 0xee));
	for (unsigned int page = 0; page < m->pages; page++) {
		bool merged = page == one || page == other;

		EXPECT_TRUE(page_is(m->at + bytes(page), merged ? 0xee : pattern(page))) {
			TH_LOG("wrong content of page %u", page);
		}
	}
	memset(a, 0x11, bytes(1));
	EXPECT_TRUE(page_is(a, 0x11));
	EXPECT_TRUE(page_is(b, 0xee));
}

/*
 * One page is poisoned. An access to it raises SIGBUS, and all other pages of
 * both folios can be read and written. In anonymous memory, MADV_FREE then
 * drops the bad page, and a read finds zeros. The case runs only in the virtual
 * machine, because the bad frame cannot be used afterwards.
 */
TEST_F(folio_move, poison_one_page)
{
	struct memory *m = &self->memory;
	unsigned int bad = (1U << m->order) / 2;

	if (access("/tests/list", F_OK))
		SKIP(return, "runs only in the virtual machine");
	if (madvise(m->at + bytes(bad), bytes(1), MADV_HWPOISON))
		SKIP(return, "CONFIG_MEMORY_FAILURE=n");
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		if (page == bad) {
			EXPECT_EQ(SIGBUS, try_access(at, false));
		} else {
			EXPECT_EQ(0, try_access(at, true)) {
				TH_LOG("page %u cannot be written to", page);
			}
			EXPECT_TRUE(page_is(at, pattern(page))) {
				TH_LOG("wrong content of page %u", page);
			}
		}
	}
	if (variant->kind != ANON)
		return;
	ASSERT_EQ(0, madvise(m->at + bytes(bad), bytes(1), MADV_FREE));
	ASSERT_EQ(0, try_access(m->at + bytes(bad), false));
	EXPECT_TRUE(page_is(m->at + bytes(bad), 0));
}

/*
 * Two flags in /proc/kpageflags: the page is dirty, and the page is
 * swap-backed. Lazyfree pages are not swap-backed.
 */
#define KPF_IS_DIRTY BIT_ULL(4)
#define KPF_SWAP_BACKED BIT_ULL(14)

/* The flags of the page that is mapped at @at. */
static uint64_t folio_flags(const char *at)
{
	int fd = open("/proc/kpageflags", O_RDONLY);
	uint64_t flags = -1ULL;

	if (pread(fd, &flags, sizeof(flags), pfn_of(at) * sizeof(flags)) != sizeof(flags))
		flags = -1ULL;
	close(fd);
	return flags;
}

/*
 * One page of a lazyfree folio is pinned, so reclaim cannot free the folio.
 * Reclaim restores every entry, and the folio keeps its frames. No page was
 * written to, so the folio is still lazyfree. Known issue 7: the folio becomes
 * swap-backed. Commit faeb2831b517 ("mm: set folio swapbacked iff folios are
 * dirty in try_to_unmap_one") fixed a bug here.
 */
TEST_F(folio_move, lazyfree_pinned)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << m->order;
	unsigned long pfn;
	int fd;

	if (variant->kind != ANON || !have_swap())
		SKIP(return, "needs anonymous memory and swap");
	fd = pin(m->at + bytes(size / 2), 1);
	if (fd < 0)
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, madvise(m->at, bytes(size), MADV_FREE));
	EXPECT_EQ(size, smaps_pages(m->at, "LazyFree"));
	EXPECT_EQ(0, folio_flags(m->at) & (KPF_SWAP_BACKED | KPF_IS_DIRTY));
	pfn = pfn_of(m->at);
	ASSERT_EQ(0, madvise(m->at, bytes(size), MADV_PAGEOUT));
	EXPECT_EQ(-1, wrong_page(m, 0));
	EXPECT_EQ(pfn, pfn_of(m->at));
	EXPECT_TRUE(is_folio(m, 0));
	close(fd);
	/* The folio is clean, but it is swap-backed and no longer lazyfree. */
	if (smaps_pages(m->at, "LazyFree") == 0 &&
	    (folio_flags(m->at) & (KPF_SWAP_BACKED | KPF_IS_DIRTY)) == KPF_SWAP_BACKED) {
		KNOWN_ISSUE(7, "a pin makes clean lazyfree memory swap-backed");
		return;
	}
	EXPECT_EQ(size, smaps_pages(m->at, "LazyFree"));
	STALE_ISSUE(7);
}

#define GROUP "/sys/fs/cgroup/folio_move"
/*
 * The memory limit of the group, as a number of pages. It must be larger than
 * the number of pages that the kernel charges to a group in advance.
 */
#define PRESSURE 2048

/* The value of a counter in /proc/vmstat. */
static unsigned long counted(const char *name)
{
	FILE *f = fopen("/proc/vmstat", "r");
	unsigned long value, found = 0;
	char line[64];

	while (f && !found && fscanf(f, "%63s %lu", line, &value) == 2)
		if (!strcmp(line, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

/*
 * A process uses large folios. The folios need three times as much memory as
 * the control group of the process allows. The process checks and rewrites
 * pages in random order, so most pages go to swap and come back. Each write
 * stores different content, and a page always has the content of its last
 * write. The process reads each page before writing to it, so the page is clean
 * when it comes back from swap.
 */
TEST_F_TIMEOUT(folio_move, memory_pressure, 200)
{
	unsigned long out = counted("pswpout"), in = counted("pswpin");
	unsigned int pages = 3 * PRESSURE;
	char limit[32], *at;
	pid_t child;

	if (variant->kind != ANON || !have_swap())
		SKIP(return, "needs anonymous memory and swap");
	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory") || mkdir(GROUP, 0755))
		SKIP(return, "CONFIG_MEMCG=n, or no cgroup v2");
	snprintf(limit, sizeof(limit), "%zu", bytes(PRESSURE));
	ASSERT_EQ(0, write_text(GROUP "/memory.high", limit));
	child = fork();
	if (!child) {
		unsigned char *writes = calloc(pages, 1);
		unsigned int state = 1;

		at = mmap(NULL, bytes(pages), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (!writes || at == MAP_FAILED || write_text(GROUP "/cgroup.procs", "0"))
			_exit(2);
		for (unsigned int page = 0; page < pages; page++)
			memset(at + bytes(page), pattern(page), bytes(1));
		for (unsigned int round = 0; round < pages; round++) {
			unsigned int page;

			state = state * 1103515245 + 12345;
			page = (state >> 8) % pages;
			if (!page_is(at + bytes(page), pattern(page) + writes[page]))
				_exit(1);
			writes[page]++;
			memset(at + bytes(page), pattern(page) + writes[page], bytes(1));
		}
		for (unsigned int page = 0; page < pages; page++) {
			if (!page_is(at + bytes(page), pattern(page) + writes[page]))
				_exit(3);
		}
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child)) {
		TH_LOG("status 1: wrong content; 2: set-up failed; 3: wrong content at the end");
	}
	DID(counted("pswpout") - out, "pages swapped out");
	DID(counted("pswpin") - in, "pages swapped in");
	rmdir(GROUP);
}

TEST_HARNESS_MAIN
