// SPDX-License-Identifier: GPL-2.0
/*
 * One system call on memory that two page tables map.
 *
 * Proves: one call of madvise(), mprotect(), mincore() or mremap() acts on two
 * folios, one on each side of the end of a page table. A fault in one of the
 * two folios maps the whole folio, and no page of the other folio.
 *
 *	|<------- a table ------->|<------- a table ------->|
 *	                 |<-folio->|<-folio->|
 *	                  first     second
 *
 * The kernel walks such a range one table at a time. The function for one table
 * returns whether the walk continues. If the walk stopped too early, the call
 * would not act on the second folio. A fault must map the whole folio, even
 * though the folio ends or begins exactly at the end of a table.
 *
 * Does not prove: the effect of a call within one table (folio_advice,
 * folio_permission, folio_move), or the effect of a call on a folio that two
 * tables map (folio_fork, folio_edge).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_tables
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "folio_state.h"

#define FOLIOS 2

/* From include/uapi/asm-generic/mman-common.h, since older headers lack these constants. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

FIXTURE(folio_tables)
{
	struct memory memory;
};

FIXTURE_VARIANT(folio_tables)
{
	bool shared;
};

FIXTURE_VARIANT_ADD(folio_tables, anon)
{
	.shared = false,
};

FIXTURE_VARIANT_ADD(folio_tables, shmem)
{
	.shared = true,
};

/*
 * Map two folios so that the first folio ends where a page table ends. Returns
 * NULL, or the reason why there is no such memory.
 */
static const char *map_over_table_end(struct memory *m, bool shared)
{
	int flags = MAP_FIXED | MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE);
	size_t table = (size_t)psize() * psize() / sizeof(long);
	unsigned int size = cont_ptes();
	char *end;

	*m = (struct memory){ .pages = FOLIOS * size, .order = order_of(size), .fd = -1 };
	m->room_bytes = 3 * table;
	m->room = mmap(NULL, m->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->room == MAP_FAILED) {
		m->room = NULL;
		return "out of addresses";
	}
	end = (char *)(((unsigned long)m->room + 2 * table - 1) & -table);
	m->at = mmap(end - bytes(size), bytes(m->pages), PROT_READ | PROT_WRITE, flags, -1, 0);
	if (m->at == MAP_FAILED)
		return "out of memory";
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	return is_folio(m, 0) && is_folio(m, size) ? NULL :
	       "the kernel allocated no folios of this size";
}

FIXTURE_SETUP(folio_tables)
{
	const char *why = folio_settings(order_of(cont_ptes()));

	self->memory = (struct memory){ .fd = -1 };
	if (!why)
		why = map_over_table_end(&self->memory, variant->shared);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_tables)
{
	memory_free(&self->memory);
}

/* Whether each page has the pattern that the set-up wrote. */
static bool unchanged(const char *at, unsigned int pages)
{
	for (unsigned int page = 0; page < pages; page++) {
		if (!page_is(at + bytes(page), pattern(page)))
			return false;
	}
	return true;
}

/*
 * One call of madvise() acts on both folios: MADV_COLD makes their entries old,
 * MADV_PAGEOUT swaps them out, and MADV_FREE makes them lazyfree.
 */
TEST_F(folio_tables, advice)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);

	if (variant->shared || !have_swap())
		SKIP(return, "needs anonymous memory and swap");
	ASSERT_EQ(m->pages, smaps_pages(m->at, "Referenced"));
	ASSERT_EQ(0, madvise(m->at, length, MADV_COLD));
	EXPECT_EQ(0, smaps_pages(m->at, "Referenced"));
	ASSERT_EQ(0, madvise(m->at, length, MADV_PAGEOUT));
	EXPECT_EQ(m->pages, swapped_out(m));
	EXPECT_TRUE(unchanged(m->at, m->pages));
	/* Bring all pages back into memory, and make them dirty. */
	for (unsigned int page = 0; page < m->pages; page++)
		m->at[bytes(page)] = pattern(page);
	ASSERT_EQ(0, madvise(m->at, length, MADV_FREE));
	EXPECT_EQ(m->pages, smaps_pages(m->at, "LazyFree"));
}

/*
 * One call of mprotect() makes both folios read-only. Each write to them raises
 * SIGSEGV. Another call makes both writable again, and no content has changed.
 */
TEST_F(folio_tables, mprotect)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
	for (unsigned int page = 0; page < m->pages; page++) {
		EXPECT_EQ(SIGSEGV, try_access(m->at + bytes(page), true)) {
			TH_LOG("a write to page %u must raise SIGSEGV", page);
		}
	}
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_EQ(0, try_access(m->at + bytes(page), true));
	EXPECT_TRUE(unchanged(m->at, m->pages));
}

/*
 * One call of mincore() reports both folios as resident. MADV_DONTNEED drops
 * the first folio, and then the second folio. After each step mincore() reports
 * the dropped folios as not resident. It always reports shared memory as
 * resident, since shared memory stays in the page cache.
 */
TEST_F(folio_tables, mincore)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << m->order;
	unsigned char core[m->pages];

	for (unsigned int gone = 0; gone <= FOLIOS; gone++) {
		if (gone)
			ASSERT_EQ(0, madvise(m->at + bytes((gone - 1) * size), bytes(size),
					     MADV_DONTNEED));
		memset(core, 0xff, sizeof(core));
		ASSERT_EQ(0, mincore(m->at, bytes(m->pages), core));
		for (unsigned int page = 0; page < m->pages; page++) {
			EXPECT_EQ(variant->shared || page >= gone * size, core[page]) {
				TH_LOG("page %u, after MADV_DONTNEED of %u folios", page, gone);
			}
		}
	}
}

/*
 * One call of MADV_DONTNEED unmaps both folios: after the call, no page is
 * mapped, and Rss is 0.
 */
TEST_F(folio_tables, dontneed)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(m->pages, present(m, 0, m->pages));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	EXPECT_EQ(0, present(m, 0, m->pages));
	EXPECT_EQ(0, smaps_pages(m->at, "Rss"));
}

/*
 * Map @length bytes of @room at an address that is aligned to @length. @step 0
 * selects the first such address in @room, 1 the second, and so on.
 */
static char *map_aligned(char *room, size_t length, int step)
{
	char *at = (char *)(((unsigned long)room + length - 1) & -length) + step * length;

	return mmap(at, length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/*
 * MADV_DONTNEED drops everything that a page table maps. A guard page in this
 * range stays a guard page. All other pages read as zeros, and can be written
 * to. The test then removes the guard page and drops everything again: now the
 * table is empty, and the kernel may free it.
 */
TEST_F(folio_tables, dontneed_of_table)
{
	size_t table = (size_t)psize() * psize() / sizeof(long);
	char *room, *at, *guard;

	if (variant->shared)
		SKIP(return, "needs anonymous memory");
	room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	at = map_aligned(room, table, 0);
	ASSERT_NE(MAP_FAILED, at);
	guard = at + table / 2;
	if (madvise(guard, bytes(1), MADV_GUARD_INSTALL))
		SKIP(return, "no guard pages");
	for (int round = 0; round < 2; round++) {
		at[0] = 1;
		at[table - 1] = 1;
		ASSERT_EQ(0, madvise(at, table, MADV_DONTNEED));
		EXPECT_EQ(round ? 0 : SIGSEGV, try_access(guard, false));
		EXPECT_TRUE(page_is(at, 0));
		EXPECT_TRUE(page_is(at + table - psize(), 0));
		for (size_t page = 0; page < table; page += 64 * psize())
			if (at + page != guard)
				ASSERT_EQ(0, try_access(at + page, true));
		if (!round)
			ASSERT_EQ(0, madvise(guard, bytes(1), MADV_GUARD_REMOVE));
	}
	munmap(room, 3 * table);
	DID(2, "tables of pages dropped");
}

/*
 * Until @stop is set, a thread writes to the first pages that a page table
 * maps. The thread has a real-time priority, so it interrupts MADV_DONTNEED
 * whenever it wakes up.
 */
#define TOUCHED 16

static struct {
	char *at;
	atomic_bool stop;
	unsigned long rounds;
} toucher;

static void *touch(void *unused)
{
	struct sched_param first = { .sched_priority = 1 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	for (; !atomic_load(&toucher.stop); toucher.rounds++) {
		for (unsigned int page = 0; page < TOUCHED; page++)
			toucher.at[bytes(page)] = 1;
		usleep(100);
	}
	return unused;
}

/*
 * For five seconds, a thread reads all pages that a page table maps, and drops
 * them with MADV_DONTNEED. Meanwhile another thread writes to the first pages,
 * even while the kernel drops the other pages. The kernel must not free the
 * table if it has new entries. Otherwise the pages of these entries would be
 * lost, and would still count as memory of the process.
 */
TEST_F_TIMEOUT(folio_tables, dontneed_beside_faults, 60)
{
	size_t table = (size_t)psize() * psize() / sizeof(long);
	unsigned long dropped = 0;
	time_t end = time(NULL) + 5;
	pthread_t thread;
	char *room, *at;
	long before;

	if (variant->shared)
		SKIP(return, "needs anonymous memory");
	if (table > 64 << 20)
		SKIP(return, "a page table maps more than 64 MiB");
	room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	at = map_aligned(room, table, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(NULL, folio_settings(0));
	before = status_pages("RssAnon");
	toucher.at = at;
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch, NULL));
	for (; time(NULL) < end; dropped++) {
		ASSERT_EQ(0, madvise(at, table, MADV_POPULATE_READ));
		ASSERT_EQ(0, madvise(at, table, MADV_DONTNEED));
	}
	atomic_store(&toucher.stop, true);
	pthread_join(thread, NULL);
	ASSERT_EQ(0, madvise(at, table, MADV_DONTNEED));
	/*
	 * Allow for the stack of the other thread, and for the kernel's batched
	 * updates of its counters.
	 */
	EXPECT_GT(before + 4 * TOUCHED, status_pages("RssAnon"));
	munmap(room, 3 * table);
	DID(dropped, "times that all pages of a table were dropped");
	DID(toucher.rounds, "rounds of the other thread");
}

/*
 * MADV_DONTNEED drops the single pages that many tables map. There are more
 * such pages than the kernel frees at once. So the kernel has to free pages
 * when it has handled only a part of a table. The kernel later checks again
 * whether this table is empty. After the call, either all tables are gone or no
 * table is gone. All pages read as zeros and can be written to.
 */
TEST_F(folio_tables, dontneed_of_many_tables)
{
	size_t table = (size_t)psize() * psize() / sizeof(long), length = 24 * table;
	long filled, left, lost;
	char *room, *at;

	if (variant->shared || length > 64UL << 20)
		SKIP(return, "needs anonymous memory, and small tables");
	room = mmap(NULL, length + table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	ASSERT_EQ(0, madvise(room, length + table, MADV_NOHUGEPAGE));
	at = (char *)(((unsigned long)room + table - 1) & -table);
	left = status_pages("VmPTE");
	for (size_t page = 0; page < length; page += psize())
		at[page] = 1;
	filled = status_pages("VmPTE");
	ASSERT_LE(24, filled - left);
	ASSERT_EQ(0, madvise(at, length, MADV_DONTNEED));
	lost = filled - status_pages("VmPTE");
	if (lost)
		EXPECT_LE(24, lost);
	for (size_t page = 0; page < length; page += psize()) {
		ASSERT_EQ(0, at[page]) {
			TH_LOG("page %zu", page / psize());
		}
		at[page] = 2;
	}
	munmap(room, length + table);
	DID(filled, "kB of tables");
}

/*
 * One call of mremap() moves both folios by half a table, into one page table.
 * Another call moves them back. The folios are not split, and each page keeps
 * its content.
 */
TEST_F(folio_tables, mremap)
{
	size_t table = (size_t)psize() * psize() / sizeof(long);
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	char *there = m->at + table / 2, *back = m->at;

	ASSERT_EQ(there, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, there));
	m->at = there;
	EXPECT_EQ(m->pages, present(m, 0, m->pages));
	EXPECT_TRUE(unchanged(there, m->pages));
	ASSERT_EQ(back, mremap(there, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, back));
	m->at = back;
	EXPECT_TRUE(is_folio(m, 0) && is_folio(m, m->pages / FOLIOS));
	EXPECT_TRUE(unchanged(back, m->pages));
}

/*
 * mremap() moves a range that one page table maps, and then a range that one
 * table of the next level maps. The kernel moves the whole table, and does not
 * move single entries. The first page, a page in the middle and the last page
 * keep their content, and nothing is left at the old place.
 */
TEST_F(folio_tables, mremap_of_tables)
{
	size_t entries = psize() / sizeof(long), length = bytes(entries), moved = 0;

	if (variant->shared)
		SKIP(return, "needs anonymous memory");
	for (int level = 0; level < 2; level++, length *= entries) {
		size_t used[] = { 0, length / 2, length - psize() };
		char *room, *from, *to;

		if (length > 1UL << 40)
			break;
		room = mmap(NULL, 3 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, room);
		from = map_aligned(room, length, 0);
		ASSERT_NE(MAP_FAILED, from);
		for (unsigned int i = 0; i < ARRAY_SIZE(used); i++)
			memset(from + used[i], pattern(i), bytes(1));
		to = from + length;
		ASSERT_EQ(to, mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
		for (unsigned int i = 0; i < ARRAY_SIZE(used); i++) {
			EXPECT_TRUE(page_is(to + used[i], pattern(i))) {
				TH_LOG("level %d, page %u", level, i);
			}
			EXPECT_EQ(SIGSEGV, try_access(from + used[i], false));
		}
		munmap(room, 3 * length);
		moved++;
	}
	DID(moved, "moves of tables");
}

/*
 * mremap() moves memory that begins in the middle of a page table. The first
 * half of this table is empty, so the kernel may move the whole table instead
 * of single entries. The first page, the last page, and the pages on both sides
 * of the end of this table keep their content, and nothing is left at the old
 * place.
 */
TEST_F(folio_tables, mremap_from_middle_of_table)
{
	size_t table = (size_t)psize() * psize() / sizeof(long), length = table + table / 2;
	size_t used[] = { 0, table / 2 - psize(), table / 2, length - psize() };
	char *room, *from, *to;

	if (variant->shared)
		SKIP(return, "needs anonymous memory");
	room = mmap(NULL, 6 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	from = (char *)(((unsigned long)room + table - 1) & -table) + table / 2;
	to = from + 2 * table;
	munmap(room, 6 * table);
	ASSERT_EQ(from, mmap(from, length, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
	for (unsigned int i = 0; i < ARRAY_SIZE(used); i++)
		memset(from + used[i], pattern(i), bytes(1));
	ASSERT_EQ(to, mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	for (unsigned int i = 0; i < ARRAY_SIZE(used); i++) {
		EXPECT_TRUE(page_is(to + used[i], pattern(i))) {
			TH_LOG("page %u", i);
		}
		EXPECT_EQ(SIGSEGV, try_access(from + used[i], false));
	}
	munmap(to, length);
	DID(ARRAY_SIZE(used), "pages moved");
}

/*
 * Both folios are in the page cache, and no page is mapped. A write to a page
 * maps the whole folio of this page, and no page of the other folio. The first
 * folio ends in the last entry of its table, and the second folio begins in the
 * first entry of the next table.
 */
TEST_F(folio_tables, fault)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << m->order;
	unsigned long mapped = 0;

	if (!variant->shared)
		SKIP(return, "needs shared memory");
	for (unsigned int page = 0; page < m->pages; page++) {
		unsigned int hit = page / size;

		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
		ASSERT_EQ(0, present(m, 0, m->pages));
		m->at[bytes(page)] = pattern(page);
		EXPECT_EQ(size, present(m, hit * size, size)) {
			TH_LOG("after a write to page %u", page);
		}
		EXPECT_EQ(0, present(m, !hit * size, size));
		mapped += present(m, hit * size, size);
	}
	EXPECT_TRUE(unchanged(m->at, m->pages));
	DID(mapped, "pages mapped by faults");
}

TEST_HARNESS_MAIN
