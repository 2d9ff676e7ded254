// SPDX-License-Identifier: GPL-2.0
/*
 * Mapped files in large folios of the page cache.
 *
 * Proves: a write to one page of a block reaches the file and changes nothing
 * else. Punching a hole into a file does not change a private mapping's copies
 * of pages. If a file ends within a folio, no page past the end is mapped. A
 * fault also maps the surrounding pages, even in a new page table. After
 * fork(), parent and child can run code in a mapping of the file.
 *
 * Does not prove: that writeback works (the file system's own tests do).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_file
 */
#include <linux/falloc.h>

#include "folio_owner.h"
#include "folio_state.h"

#define FOLIOS 2

FIXTURE(folio_file)
{
	struct memory memory;
};

FIXTURE_VARIANT(folio_file)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(folio_file, shmem)
{
	.kind = SHMEM,
};

FIXTURE_VARIANT_ADD(folio_file, xfs)
{
	.kind = XFS,
};

FIXTURE_SETUP(folio_file)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, FOLIOS);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_file)
{
	memory_free(&self->memory);
}

/* The first byte of a page of the file, read by pread(). */
static unsigned char in_file(const struct memory *m, unsigned int page)
{
	unsigned char byte = 0;

	if (pread(m->fd, &byte, 1, bytes(page)) != 1)
		return 0;
	return byte;
}

/*
 * For each page of a fully mapped block, the test writes to this page, then
 * unmaps and syncs the file. If the file is on XFS, the test also drops all its
 * pages from the page cache. The written page of the file has the new byte, and
 * all other pages have the old bytes.
 */
TEST_F_TIMEOUT(folio_file, one_dirty_page_reaches_file, 120)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);

	for (unsigned int page = 0; page < m->pages; page++) {
		m->at[bytes(page)] = 0xd0;
		ASSERT_EQ(0, munmap(m->at, length));
		ASSERT_EQ(0, fsync(m->fd));
		ASSERT_EQ(m->at, mmap(m->at, length, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_FIXED, m->fd, 0));
		ASSERT_EQ(0, posix_fadvise(m->fd, 0, length, POSIX_FADV_DONTNEED));
		ASSERT_TRUE(variant->kind != XFS || swapped_out(m) == m->pages);
		for (unsigned int i = 0; i < m->pages; i++) {
			EXPECT_EQ(i == page ? 0xd0 : pattern(i), in_file(m, i)) {
				TH_LOG("page %u of the file, after a write to page %u", i, page);
			}
		}
		for (unsigned int i = 0; i < m->pages; i++)
			read_byte(m->at + bytes(i));
		m->at[bytes(page)] = pattern(page);
	}
}

/*
 * Read all pages of a memory file that nothing was written to. Then write to
 * one page, so that only this page has a dirty entry. Remove the entries in
 * batches: by munmap() if @unmaps, else by reclaim. Reclaim must then write the
 * dirty page to swap. If its dirty bit is lost, reclaim drops the page, and the
 * file has a hole there.
 */
static void check_one_dirty_entry(struct __test_metadata *_metadata, struct memory *m,
				  bool unmaps)
{
	size_t length = bytes(m->pages);
	unsigned long away = 0;

	for (unsigned int page = 0; page < m->pages; page++) {
		ASSERT_EQ(0, ftruncate(m->fd, 0));
		ASSERT_EQ(0, ftruncate(m->fd, length));
		for (unsigned int i = 0; i < m->pages; i++)
			ASSERT_EQ(0, read_byte(m->at + bytes(i)));
		m->at[bytes(page)] = 0x5d;
		if (unmaps) {
			ASSERT_EQ(0, munmap(m->at, length));
			ASSERT_EQ(m->at, mmap(m->at, length, PROT_READ | PROT_WRITE,
					      MAP_SHARED | MAP_FIXED, m->fd, 0));
			for (unsigned int i = 0; i < m->pages; i += 1U << m->order)
				read_byte(m->at + bytes(i));
		}
		ASSERT_EQ(0, madvise(m->at, length, MADV_PAGEOUT));
		away += swapped_out(m);
		EXPECT_EQ(0x5d, m->at[bytes(page)]) {
			TH_LOG("the write to page %u is lost", page);
		}
	}
	DID(away, "pages swapped out");
}

/*
 * munmap() removes a batch with one dirty entry. The content of the dirty page
 * survives reclaim. Each page is the dirty page in one round.
 */
TEST_F_TIMEOUT(folio_file, one_dirty_entry_of_batch, 120)
{
	if (variant->kind != SHMEM || !have_swap())
		SKIP(return, "needs shared memory and swap");
	check_one_dirty_entry(_metadata, &self->memory, true);
}

/*
 * Reclaim itself removes a batch with one dirty entry. The content of the dirty
 * page survives. Each page is the dirty page in one round.
 */
TEST_F_TIMEOUT(folio_file, one_dirty_entry_of_reclaim, 120)
{
	if (variant->kind != SHMEM || !have_swap())
		SKIP(return, "needs shared memory and swap");
	check_one_dirty_entry(_metadata, &self->memory, false);
}

/*
 * In each of three rounds the test writes to every third page and calls
 * msync(), which makes the entries clean and write-protected. The writes of
 * each round reach the file.
 */
TEST_F(folio_file, dirty_again_after_writeback)
{
	struct memory *m = &self->memory;

	for (unsigned int round = 1; round < 4; round++) {
		for (unsigned int page = 0; page < m->pages; page += 3)
			m->at[bytes(page)] = round;
		ASSERT_EQ(0, msync(m->at, bytes(m->pages), MS_SYNC));
		posix_fadvise(m->fd, 0, bytes(m->pages), POSIX_FADV_DONTNEED);
		for (unsigned int page = 0; page < m->pages; page++) {
			EXPECT_EQ(page % 3 ? pattern(page) : round, in_file(m, page)) {
				TH_LOG("page %u, round %u", page, round);
			}
		}
	}
}

/*
 * A private mapping has its own copy of every third page. After the test
 * punches a hole over the whole file, the copies are unchanged and all other
 * pages are zero. The kernel removes only entries that map no copy.
 */
TEST_F(folio_file, punch_hole_beside_copies)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	char *at;

	at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, m->fd, 0);
	ASSERT_NE(MAP_FAILED, at);
	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(at + bytes(page));
	for (unsigned int page = 0; page < m->pages; page += 3)
		memset(at + bytes(page), 0xc0, bytes(1));
	if (fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, length))
		SKIP(return, "the file system cannot punch holes");
	for (unsigned int page = 0; page < m->pages; page++) {
		EXPECT_TRUE(page_is(at + bytes(page), page % 3 ? 0 : 0xc0)) {
			TH_LOG("page %u of the private mapping", page);
		}
		EXPECT_TRUE(page_is(m->at + bytes(page), 0)) {
			TH_LOG("page %u of the shared mapping", page);
		}
	}
	munmap(at, length);
}

/*
 * The test truncates the file within its last folio, at eight places. A page
 * past the end raises SIGBUS, and a page before the end does not, in the old
 * mapping and in a new mapping. Fixed by 74207de2ba10 ("mm/memory: do not
 * populate page table entries beyond i_size").
 */
TEST_F(folio_file, end_within_folio)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << m->order;
	char *at;

	for (unsigned int end = m->pages - 1; end > m->pages - size; end -= size / 8) {
		ASSERT_EQ(0, ftruncate(m->fd, bytes(end) - psize() / 2));
		at = mmap(NULL, bytes(m->pages), PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
		ASSERT_NE(MAP_FAILED, at);
		for (unsigned int page = 0; page < m->pages; page++) {
			int expected = page < end ? 0 : SIGBUS;

			EXPECT_EQ(expected, try_access(m->at + bytes(page), true)) {
				TH_LOG("page %u of the old mapping, file of %u pages", page, end);
			}
			EXPECT_EQ(expected, try_access(at + bytes(page), false)) {
				TH_LOG("page %u of the new mapping, file of %u pages", page, end);
			}
		}
		munmap(at, bytes(m->pages));
	}
}

/*
 * Truncate the file in the middle of its first folio. The kernel cannot split
 * the folio, since a pipe holds a reference to one of its pages. A fault on a
 * page before the new end must map no page past the end.
 */
static void check_end_within_pinned_folio(struct __test_metadata *_metadata, struct memory *m)
{
	unsigned int size = 1U << m->order, end = size / 2;
	struct iovec page_0 = { m->at, bytes(1) };
	size_t length = bytes(m->pages);
	int ends[2];

	/* The folio must be dirty, since the kernel would drop all pages of a clean folio. */
	m->at[0] = pattern(0);
	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(bytes(1), vmsplice(ends[1], &page_0, 1, 0));
	ASSERT_EQ(0, ftruncate(m->fd, bytes(end)));
	for (int written = 0; written < 2; written++) {
		ASSERT_EQ(0, munmap(m->at, length));
		ASSERT_EQ(m->at, mmap(m->at, length, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_FIXED, m->fd, 0));
		/* Write faults and read faults use different kernel functions, so test both. */
		if (written)
			m->at[0] = pattern(0);
		else
			read_byte(m->at);
		for (unsigned int page = 0; page < m->pages; page++) {
			EXPECT_EQ(page < end ? 0 : SIGBUS,
				  try_access(m->at + bytes(page), false)) {
				TH_LOG("page %u, file of %u pages, first access is a %s", page, end,
				       written ? "write" : "read");
			}
		}
	}
	close(ends[0]);
	close(ends[1]);
}

/*
 * The file ends within a folio that the kernel cannot split. No page past the
 * end is accessible (74207de2ba10). Memory files are mapped past their end.
 */
TEST_F(folio_file, end_within_pinned_folio)
{
	if (variant->kind == SHMEM)
		SKIP(return, "memory files are mapped past their end");
	check_end_within_pinned_folio(_metadata, &self->memory);
}

/*
 * For each page of a mapped folio, the test drops this page and writes to it.
 * The other pages stay mapped, so the fault must map this page alone, or it
 * repeats forever. Fixed by 34b82f33cf3f ("mm: fix finish_fault() handling for
 * large folios").
 */
TEST_F(folio_file, write_beside_mapped_pages)
{
	struct memory *m = &self->memory;

	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		ASSERT_EQ(0, madvise(at, bytes(1), MADV_DONTNEED));
		*at = pattern(page);
		EXPECT_TRUE(page_is(at, pattern(page)));
	}
}

/* The number of pages that a read fault maps, including the page that faults. */
static unsigned int pages_around(void)
{
	unsigned long around = psize();
	FILE *f = fopen("/sys/kernel/debug/fault_around_bytes", "r");

	if (!f || fscanf(f, "%lu", &around) != 1)
		around = psize();
	if (f)
		fclose(f);
	return around / psize();
}

/* The number of mapped pages from @at on, up to the first page that is not mapped. */
static unsigned int mapped_pages(const char *at, unsigned int pages)
{
	unsigned int page = 0;

	while (page < pages && pagemap_has(at + bytes(page), PM_PRESENT))
		page++;
	return page;
}

/*
 * Map only the second half of the file's last folio, so that a fault cannot map
 * the whole folio. The mapping begins at an address where a page table begins,
 * and this table does not exist yet. Read the first two pages of the mapping.
 * After each read, store the number of mapped pages in @mapped. Returns whether
 * the mapping succeeded.
 *
 *	|<---- a table ---->|<---- a table ---->|
 *	  ..............room|half|..............
 */
static bool map_last_half(const struct memory *m, unsigned int mapped[2])
{
	unsigned int half = (1U << m->order) / 2;
	size_t table = (size_t)psize() * psize() / sizeof(long), size = bytes(half);
	char *room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)(((unsigned long)room + table - 1) & -table);
	bool right;

	if (room == MAP_FAILED)
		return false;
	right = mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, m->fd,
		     bytes(m->pages) - size) == at;
	for (unsigned int page = 0; page < 2 && right; page++) {
		read_byte(at + bytes(page));
		mapped[page] = mapped_pages(at, half);
	}
	munmap(room, 3 * table);
	return right;
}

/*
 * The first fault in a new page table maps as many surrounding pages as any
 * other fault, even in the last folio of a file. If the first fault maps only
 * one page, a second fault maps the other pages, and the block is never folded.
 * Known issue 9: this happens in the last folio of an XFS file.
 */
TEST_F(folio_file, first_fault_in_table)
{
	struct memory *m = &self->memory;
	unsigned int around = pages_around(), half = (1U << m->order) / 2;
	unsigned int inner[2], last[2];

	if (around < 2)
		SKIP(return, "fault-around is off");
	ASSERT_EQ(0, ftruncate(m->fd, bytes(m->pages + 1)));
	ASSERT_TRUE(map_last_half(m, inner));
	ASSERT_LE(around < half ? around : half, inner[0]);
	ASSERT_EQ(0, ftruncate(m->fd, bytes(m->pages)));
	ASSERT_TRUE(map_last_half(m, last));
	EXPECT_EQ(inner[1], last[1]);
	if (last[0] == 1 && variant->kind == XFS) {
		KNOWN_ISSUE(9, "the first fault in a table maps only one page of the last folio");
		return;
	}
	EXPECT_EQ(inner[0], last[0]);
	if (variant->kind == XFS)
		STALE_ISSUE(9);
}

/*
 * The test truncates the file within a page and extends it again. All bytes
 * after the truncation point are zero, and all bytes before it are unchanged.
 */
TEST_F(folio_file, grown_again_is_zero)
{
	struct memory *m = &self->memory;
	unsigned int end = m->pages / 2 + 1;
	size_t cut = bytes(end) - psize() / 2;

	ASSERT_EQ(0, ftruncate(m->fd, cut));
	ASSERT_EQ(0, ftruncate(m->fd, bytes(m->pages)));
	for (unsigned int page = 0; page < m->pages; page++) {
		if (page + 1 == end)
			continue;
		EXPECT_TRUE(page_is(m->at + bytes(page), page < end ? pattern(page) : 0)) {
			TH_LOG("page %u", page);
		}
	}
	EXPECT_EQ(pattern(end - 1), (unsigned char)m->at[cut - 1]);
	EXPECT_EQ(0, m->at[cut]);
}

/* Call the machine code at @at as a function, and return its result. */
static unsigned int run(const void *at)
{
	union {
		const void *at;
		unsigned int (*call)(int unused);
	} code = { .at = at };

	return code.call(0);
}

/* The state of a page before fork(): its frame and its number of mappings. */
struct mapped {
	unsigned long frame;
	long count;
};

/*
 * Whether all pages are still in the same frames, and each page has gained
 * @more mappings.
 */
static bool entries_are(const char *at, unsigned int pages, const struct mapped *were, int more)
{
	for (unsigned int page = 0; page < pages; page++, at += bytes(1)) {
		if (!pagemap_has(at, PM_PRESENT) || pfn_of(at) != were[page].frame ||
		    mappings(at) != were[page].count + more)
			return false;
	}
	return true;
}

/*
 * A process forks while it has a private mapping of a file in large folios. It
 * first writes to one page, so that fork() copies the entries of the mapping.
 * fork() adds one mapping to each page of the file. The child's Rss counts all
 * pages before the child touches any page. Each page begins with code that
 * returns the number of the page, and parent and child run this code.
 */
TEST_F(folio_file, fork_while_running)
{
#ifdef __aarch64__
	static const unsigned int code[] = { 0x52800000, 0xd65f03c0 };
#else
	static const unsigned char code[] = { 0xb8, 0, 0, 0, 0, 0xc3 };
#endif
	struct memory *m = &self->memory;
	unsigned int file = m->pages - 1;
	unsigned long copied = 0;
	struct mapped were[m->pages];
	char *at;

	for (unsigned int page = 0; page < m->pages; page++) {
		unsigned char copy[sizeof(code)];

		memcpy(copy, code, sizeof(code));
#ifdef __aarch64__
		*(unsigned int *)copy |= page << 5;
#else
		copy[1] = page;
#endif
		ASSERT_EQ(sizeof(copy), pwrite(m->fd, copy, sizeof(copy), bytes(page)));
	}
	at = mmap(NULL, bytes(m->pages), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, m->fd, 0);
	ASSERT_NE(MAP_FAILED, at);
	__builtin___clear_cache(at, at + bytes(m->pages));
	/* The last page is anonymous now, and all other pages belong to the file. */
	ASSERT_EQ(0, try_access(at + bytes(file), true));
	ASSERT_FALSE(pagemap_has(at + bytes(file), PM_FILE));
	read_byte(m->at);
	for (int i = 0; i < 3; i++) {
		unsigned int page;
		pid_t child;

		for (page = 0; page < m->pages; page++) {
			read_byte(at + bytes(page));
			were[page].frame = pfn_of(at + bytes(page));
			were[page].count = mappings(at + bytes(page));
		}
		ASSERT_EQ(pfn_of(m->at), were[0].frame);
		child = fork();
		if (!child) {
			if (!entries_are(at, file, were, 1))
				_exit(2);
			if (smaps_pages(at, "Rss") != m->pages)
				_exit(3);
		}
		for (page = 0; page < m->pages; page++) {
			if (run(at + bytes(page)) != page)
				break;
		}
		if (!child)
			_exit(page < m->pages);
		EXPECT_EQ(m->pages, page);
		EXPECT_EQ(0, child_of(child)) {
			TH_LOG("status 1: wrong return value; 2: wrong entries; 3: wrong Rss");
		}
		EXPECT_TRUE(entries_are(at, file, were, 0));
		copied += file;
	}
	DID(copied, "entries of the file copied");
	munmap(at, bytes(m->pages));
}

FIXTURE(folio_file_huge)
{
	struct memory memory;
};

FIXTURE_SETUP(folio_file_huge)
{
	int order = order_of(read_pmd_pagesize() / psize());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, XFS, order, 1);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_file_huge)
{
	memory_free(&self->memory);
}

/*
 * The file ends within a huge page that the kernel cannot split. No page past
 * the end is accessible: no PMD may map all of the huge page (74207de2ba10).
 */
TEST_F(folio_file_huge, end_within_pinned_folio)
{
	check_end_within_pinned_folio(_metadata, &self->memory);
}

/*
 * One PMD maps a clean huge page of a file. Changing the permission of one page
 * removes the PMD. The huge page then stays clean until a write makes it dirty.
 */
TEST_F(folio_file_huge, split_keeps_clean)
{
	struct memory *m = &self->memory;

	read_byte(m->at);
	ASSERT_EQ(m->pages, smaps_pages(m->at, "FilePmdMapped"));
	ASSERT_FALSE(kernel_flags(m->at) & FOLIO_DIRTY);
	ASSERT_EQ(0, mprotect(m->at, bytes(1), PROT_READ));
	EXPECT_EQ(0, smaps_pages(m->at + bytes(1), "FilePmdMapped"));
	read_byte(m->at);
	EXPECT_FALSE(kernel_flags(m->at) & FOLIO_DIRTY);
	ASSERT_EQ(0, try_access(m->at + bytes(1), true));
	EXPECT_TRUE(kernel_flags(m->at) & FOLIO_DIRTY);
}

FIXTURE(folio_file_small)
{
	struct memory memory;
};

FIXTURE_SETUP(folio_file_small)
{
	const char *why = folio_settings(0);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, SHMEM, 0, 4 * cont_ptes());
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_file_small)
{
	memory_free(&self->memory);
}

/*
 * A read fault maps up to fault_around_bytes of pages from the page cache. Here
 * each page is a separate folio.
 */
TEST_F(folio_file_small, fault_around)
{
	struct memory *m = &self->memory;
	char *at = mmap(NULL, bytes(m->pages), PROT_READ, MAP_SHARED, m->fd, 0);

	ASSERT_NE(MAP_FAILED, at);
	read_byte(at + bytes(2 * cont_ptes()));
	EXPECT_EQ(cont_ptes(), smaps_pages(at, "Rss"));
}

TEST_HARNESS_MAIN
