// SPDX-License-Identifier: GPL-2.0
/*
 * Hugetlb pages of the size of a folded block.
 *
 * Proves: these pages are mapped with the contiguous bit, like folded blocks.
 * They are still mapped with this bit after fork(), copy-on-write, mprotect(),
 * migration and UFFDIO_COPY, and after a neighbouring page is unmapped or
 * poisoned.
 *
 * Does not prove: other properties of hugetlb (see hugetlb-madvise and other
 * tests in this folder).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_block
 */
#include "folio_known.h"
#include "folio_listen.h"
#include "folio_poison.h"
#include "folio_state.h"
#include "hugetlb_tables.h"

#define BLOCKS 4

FIXTURE(hugetlb_block)
{
	char *at;
	struct hugetlb_pool pool;
};

FIXTURE_SETUP(hugetlb_block)
{
	unsigned int n = cont_ptes();
	const char *why;

	self->at = MAP_FAILED;
	why = hugetlb_pool_have(&self->pool, bytes(n), 2 * BLOCKS);
	if (why)
		SKIP(return, "%s", why);
	self->at = mmap(NULL, BLOCKS * bytes(n), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			order_of(bytes(n)) << MAP_HUGE_SHIFT, -1, 0);
	if (self->at == MAP_FAILED)
		SKIP(return, "all hugetlb pages of the size of a block are in use");
	for (unsigned int page = 0; page < BLOCKS * n; page++)
		memset(self->at + bytes(page), pattern(page), bytes(1));
}

FIXTURE_TEARDOWN(hugetlb_block)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, BLOCKS * bytes(cont_ptes()));
	hugetlb_pool_restore(&self->pool);
}

/*
 * Check that each block except for block @gone is folded and has the right content.
 */
static void check(struct __test_metadata *_metadata, char *memory, int gone)
{
	unsigned int n = cont_ptes();

	for (unsigned int page = 0; page < BLOCKS * n; page++) {
		char *at = memory + bytes(page);

		if ((int)(page / n) == gone)
			continue;
		if (perf_tells()) {
			EXPECT_EQ(bytes(n), mapped_size(at)) {
				TH_LOG("page %u is not mapped by a folded block", page);
			}
		}
		EXPECT_TRUE(page_is(at, pattern(page))) {
			TH_LOG("wrong content of page %u", page);
		}
	}
}

/* The exit status of the child in fork_and_write. */
enum { RIGHT, WRONG_SHARED, WRONG_OWN, NOT_MAPPED, NO_MEMORY = 128 + SIGBUS };

/*
 * In the child: write to one page of each of the two middle blocks, then check
 * all pages.
 */
static int write_and_look(char *at)
{
	unsigned int n = cont_ptes();

	for (unsigned int block = 0; block < BLOCKS; block++) {
		if (pfn_of(at + bytes(block * n)) == -1UL)
			return NOT_MAPPED;
	}
	memset(at + bytes(n), 0, bytes(1));
	memset(at + bytes(2 * n), 0, bytes(1));
	for (unsigned int page = 0; page < BLOCKS * n; page++) {
		bool own = page == n || page == 2 * n;

		if (!page_is(at + bytes(page), own ? 0 : pattern(page)))
			return own ? WRONG_OWN : WRONG_SHARED;
	}
	return RIGHT;
}

/*
 * Call used_free(), which frees pages with the page->index that @index selects.
 * Then fork a child, whose page tables use some of these pages. Do this at most
 * USED_TRIES times, and stop when a child exits with status @sought. Returns
 * the last exit status.
 */
static int child_writes(char *at, enum used_index index, int sought)
{
	struct used_pages used;
	int end = -1;
	pid_t child;

	if (!used_open(&used))
		return -1;
	for (int i = 0; i < USED_TRIES && end != sought; i++) {
		if (!stay_on_cpu() || !used_free(&used, index))
			break;
		child = fork();
		if (!child)
			_exit(write_and_look(at));
		end = child_of(child);
	}
	used_close(&used);
	return end;
}

/*
 * A child writes to two of the four blocks, and then the parent writes to each
 * page. Each process sees only its own writes, and the parent's blocks stay
 * folded. Known issue 10: if the frame of the child's page table had a
 * page->index other than 0 in its previous use, fork() does not map the blocks
 * in the child.
 */
TEST_F(hugetlb_block, fork_and_write)
{
	unsigned int n = cont_ptes();
	int used = child_writes(self->at, USED_NUMBER, NOT_MAPPED);

	EXPECT_EQ(RIGHT, child_writes(self->at, USED_ZERO, RIGHT)) {
		TH_LOG("status %d: no memory", NO_MEMORY);
	}
	check(_metadata, self->at, -1);
	for (unsigned int page = 0; page < BLOCKS * n; page++)
		self->at[bytes(page)] = pattern(page);
	check(_metadata, self->at, -1);
	if (used == NOT_MAPPED && may_look_shared(bytes(n))) {
		KNOWN_ISSUE(10, "a page table in a reused page looks shared");
		return;
	}
	EXPECT_EQ(RIGHT, used) {
		TH_LOG("status %d: no memory", NO_MEMORY);
	}
	if (may_look_shared(bytes(n)))
		STALE_ISSUE(10);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * mprotect() makes one of the four blocks PROT_NONE, and then accessible again.
 * The other blocks stay folded throughout. After the second call all four
 * blocks are folded.
 */
TEST_F(hugetlb_block, mprotect_one)
{
	size_t size = bytes(cont_ptes());

	ASSERT_EQ(0, mprotect(self->at + size, size, PROT_NONE));
	EXPECT_EQ(SIGSEGV, try_access(self->at + size, false));
	check(_metadata, self->at, 1);
	ASSERT_EQ(0, mprotect(self->at + size, size, PROT_READ | PROT_WRITE));
	check(_metadata, self->at, -1);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * One of the four blocks is unmapped. The other blocks stay folded and keep
 * their content.
 */
TEST_F(hugetlb_block, munmap_one)
{
	size_t size = bytes(cont_ptes());

	ASSERT_EQ(0, munmap(self->at + 2 * size, size));
	EXPECT_EQ(SIGSEGV, try_access(self->at + 2 * size, false));
	check(_metadata, self->at, 2);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * One of the four blocks is missing, and userfaultfd fills it. The filled block
 * contains all copied pages, and is folded like the other blocks.
 */
TEST_F(hugetlb_block, uffd_copy)
{
	size_t size = bytes(cont_ptes());
	char *source = aligned_alloc(psize(), size);
	struct uffdio_register where = {
		.range = { (unsigned long)self->at, BLOCKS * size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_copy copy = {
		.dst = (unsigned long)self->at + size,
		.src = (unsigned long)source,
		.len = size,
	};
	int uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_HUGETLBFS);

	if (uffd < 0)
		SKIP(return, "userfaultfd cannot watch hugetlb pages");
	ASSERT_NE(NULL, source);
	memcpy(source, self->at + size, size);
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_REGISTER, &where));
	ASSERT_EQ(0, madvise(self->at + size, size, MADV_DONTNEED));
	ASSERT_EQ(SIGBUS, try_access(self->at + size, false));
	ASSERT_EQ(0, ioctl(uffd, UFFDIO_COPY, &copy));
	close(uffd);
	check(_metadata, self->at, -1);
	DID(cont_ptes(), "pages copied");
	free(source);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * One of the four blocks is poisoned. An access to any of its pages raises
 * SIGBUS. The other blocks stay folded and keep their content. The case runs
 * only in the virtual machine, because the bad frame cannot be used afterwards.
 */
TEST_F(hugetlb_block, poison_one)
{
	unsigned int n = cont_ptes(), bad = 0;

	if (access("/tests/list", F_OK))
		SKIP(return, "runs only in the virtual machine");
	if (poison(self->at + bytes(2 * n), 1))
		SKIP(return, "CONFIG_MEMORY_FAILURE=n");
	for (unsigned int page = 2 * n; page < 3 * n; page++)
		bad += try_access(self->at + bytes(page), false) == SIGBUS;
	EXPECT_EQ(n, bad);
	DID(bad, "pages that raise SIGBUS");
	check(_metadata, self->at, 2);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * Each block migrates once. The kernel has statistics of transparent huge pages
 * of the same size. These statistics do not count hugetlb pages, so they do not
 * change. A kernel with known issue 27 counts one more folio after each move,
 * and the count stays too high.
 */
TEST_F(hugetlb_block, migrate_not_counted)
{
	unsigned int n = cont_ptes();
	long before = folio_statistic(n, "nr_anon"), moves = 0, more;

	if (before < 0)
		SKIP(return, "the kernel has no statistics of this size");
	for (unsigned int block = 0; block < BLOCKS; block++) {
		char *at = self->at + bytes(block * n);
		unsigned long frame = pfn_of(at);
		int to = !move_page(at, NULL);

		if (move_page(at, &to) == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
		moves += pfn_of(at) != frame;
	}
	DID(moves, "moves of blocks");
	EXPECT_EQ(BLOCKS, moves);
	more = folio_statistic(n, "nr_anon") - before;
	if (more == moves) {
		KNOWN_ISSUE(27, "each hugetlb page that migrates counts as a huge page");
	} else {
		EXPECT_EQ(0, more);
		STALE_ISSUE(27);
	}
}

/*
 * Each block migrates to the other node and back. During a move the entries of
 * the block are migration entries. After each move the block is in other
 * frames, the next block is still in its frames, and all four blocks are
 * folded.
 */
TEST_F(hugetlb_block, migrate_each)
{
	unsigned int n = cont_ptes();
	unsigned long moves = 0;

	for (unsigned int block = 0; block < BLOCKS; block++) {
		char *at = self->at + bytes(block * n), *next = self->at +
			   bytes((block + 1) % BLOCKS * n);
		int node = move_page(at, NULL), to;

		for (int i = 0; i < 2; i++, node = !node) {
			unsigned long before = pfn_of(at), beside = pfn_of(next);

			to = !node;
			if (move_page(at, &to) == -ENODEV)
				SKIP(return, "needs two NUMA nodes");
			EXPECT_EQ(!node, move_page(at, NULL));
			moves += pfn_of(at) != before;
			EXPECT_EQ(beside, pfn_of(next));
			check(_metadata, self->at, -1);
			memset(at, pattern(block * n), bytes(1));
		}
	}
	DID(moves, "moves of blocks");
	EXPECT_EQ(2 * BLOCKS, moves);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

TEST_HARNESS_MAIN
