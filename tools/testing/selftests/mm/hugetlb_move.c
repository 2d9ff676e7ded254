// SPDX-License-Identifier: GPL-2.0
/*
 * A hugetlb page of anonymous memory moves to another node. One process maps this page.
 *
 * Proves: after the move, the kernel still knows that the page belongs to one process alone. If the
 * page is then pinned, fork() gives the child a copy, and the pinned page stays with the parent. A
 * later write of the parent changes the pinned page.
 *
 * How: a page that does not move is the control. /proc/self/pagemap shows the frame of the page.
 *
 * Does not prove: which entries of the page are folded after the move (hugetlb_block tests this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_move
 */
#include "folio_owner.h"
#include "hugetlb_tables.h"

FIXTURE(hugetlb_move)
{
	struct hugetlb_pool pool;
	struct memory memory;
	int go[2];
};

FIXTURE_VARIANT(hugetlb_move)
{
	bool moved;
};

FIXTURE_VARIANT_ADD(hugetlb_move, stays)
{
	.moved = false,
};

FIXTURE_VARIANT_ADD(hugetlb_move, moved)
{
	.moved = true,
};

/* A page, a copy of it for the child, and a page for a kernel that copies wrongly. */
#define POOL 3

FIXTURE_SETUP(hugetlb_move)
{
	struct memory *m = &self->memory;
	size_t size = hugetlb_size_always_forked();
	const char *why = hugetlb_pool_have(&self->pool, size, POOL);

	m->fd = -1;
	if (why)
		SKIP(return, "%s", why);
	m->pages = size / psize();
	m->at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		     MAP_HUGETLB | order_of(size) << MAP_HUGE_SHIFT, -1, 0);
	ASSERT_NE(MAP_FAILED, m->at);
	m->room = m->at;
	m->room_bytes = size;
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(hugetlb_move)
{
	memory_free(&self->memory);
	hugetlb_pool_restore(&self->pool);
}

/*
 * The page moves to the other node, and is pinned there. fork() gives the child a copy. Then the
 * parent writes to its page: the frame is still the pinned one, the write costs no fault, and the
 * child does not see it. If the kernel has forgotten that the page belongs to the parent alone,
 * fork() shares the page, and the write of the parent goes to a copy that is not pinned.
 */
TEST_F(hugetlb_move, pinned_stays_with_parent)
{
	struct memory *m = &self->memory;
	unsigned long frame = pfn_of(m->at);
	char *last = m->at + bytes(m->pages - 1);
	int to = !move_page(m->at, NULL), fd;
	long before;
	pid_t child;

	if (variant->moved) {
		if (move_page(m->at, &to) == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
		ASSERT_EQ(to, move_page(m->at, NULL));
		ASSERT_NE(frame, pfn_of(m->at));
		frame = pfn_of(m->at);
	}
	fd = pin(m->at, m->pages);
	if (fd < 0)
		SKIP(return, "no io_uring");
	ASSERT_EQ(frame, pfn_of(m->at));
	child = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, child);
	EXPECT_EQ(1, mappings(m->at));
	faults_begin(&before);
	memset(last, 0x5a, bytes(1));
	EXPECT_EQ(0, faults() - before);
	EXPECT_EQ(frame, pfn_of(m->at));
	EXPECT_TRUE(child_has(child, m->at, pattern(0)));
	EXPECT_TRUE(child_has(child, last, pattern(m->pages - 1)));
	EXPECT_TRUE(end_child(child));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages - 1));
	EXPECT_TRUE(page_is(last, 0x5a));
	close(fd);
	DID(m->pages, "small pages of a pinned hugetlb page");
}

TEST_HARNESS_MAIN
