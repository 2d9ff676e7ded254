// SPDX-License-Identifier: GPL-2.0
/*
 * One process maps the pages of a file twice.
 *
 * Proves: each page counts two mappings, and PM_MMAP_EXCLUSIVE is clear. If the kernel tracks which
 * processes map a large folio (Linux 6.15 and later), the folio still belongs to one process:
 * move_pages() moves it, and MADV_PAGEOUT pages it out if it is a huge page. They refuse it while a
 * child maps the folio, even if the child maps only one page of it, and accept it again after that.
 * Older kernels only count mappings, so they always refuse it, as all kernels do with single pages.
 * No page loses its content.
 *
 * How: both mappings are aligned to the folio. A child inherits them, and unmaps them step by step.
 *
 * Does not prove: how the kernel tracks the processes (KUnit: folio_mapped_*), or what happens with
 * three and more processes.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_twice
 */
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

FIXTURE(folio_twice)
{
	struct memory memory;
	char *again;
	int node;
	bool large;
};

/* @kind: the file; @order: SINGLE, BLOCK or HUGE */
FIXTURE_VARIANT(folio_twice)
{
	enum memory_kind kind;
	enum { SINGLE, BLOCK, HUGE } order;
};

FIXTURE_VARIANT_ADD(folio_twice, shmem_single)
{
	.kind = SHMEM,
	.order = SINGLE,
};

FIXTURE_VARIANT_ADD(folio_twice, shmem_block)
{
	.kind = SHMEM,
	.order = BLOCK,
};

FIXTURE_VARIANT_ADD(folio_twice, shmem_huge)
{
	.kind = SHMEM,
	.order = HUGE,
};

FIXTURE_VARIANT_ADD(folio_twice, xfs_block)
{
	.kind = XFS,
	.order = BLOCK,
};

/* Touch each page of a mapping. */
static void touch(char *at, unsigned int pages)
{
	for (unsigned int page = 0; page < pages; page++)
		read_byte(at + bytes(page));
}

FIXTURE_SETUP(folio_twice)
{
	struct memory *m = &self->memory;
	int order = variant->order == SINGLE ? 0 : order_of(cont_ptes());
	size_t length;
	const char *why = NULL;
	char *room;

	m->fd = -1;
	m->room = NULL;
	self->again = NULL;
	if (variant->order == HUGE) {
		order = pmd_pages() ? order_of(pmd_pages()) : 0;
		why = order ? NULL : NO_HUGE_PAGES;
	}
	why = why ?: folio_settings(order);
	if (!why)
		why = memory_map(m, variant->kind, order, variant->order == SINGLE ? 4 : 1);
	if (why)
		SKIP(return, "%s", why);
	length = bytes(m->pages);
	room = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	room = (char *)(((unsigned long)room + length - 1) & -length);
	self->again = mmap(room, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd, 0);
	ASSERT_NE(MAP_FAILED, self->again);
	touch(m->at, m->pages);
	touch(self->again, m->pages);
	self->node = move_page(m->at, NULL);
	self->large = variant->order != SINGLE;
	for (unsigned int page = 0; page < m->pages; page++) {
		ASSERT_EQ(2, mappings(m->at + bytes(page)));
		ASSERT_EQ(pfn_of(m->at + bytes(page)), pfn_of(self->again + bytes(page)));
	}
}

FIXTURE_TEARDOWN(folio_twice)
{
	if (self->again)
		munmap(self->again, bytes(self->memory.pages));
	memory_free(&self->memory);
}

/* Whether the kernel knows that the pages belong to one process. */
static bool known(const FIXTURE_DATA(folio_twice) * self)
{
	return self->large && folio_owners == OWNERS_TRACKED;
}

/*
 * Ask the kernel to move the folio to the other node. Returns the new node, or -EACCES if the
 * kernel refuses to move the folio.
 */
static int move(FIXTURE_DATA(folio_twice) * self)
{
	int to = !self->node, result = move_page(self->memory.at, &to);

	if (result == to)
		self->node = to;
	return result;
}

/* The pages count two mappings, so none of them is mapped exclusively. */
TEST_F(folio_twice, counts)
{
	struct memory *m = &self->memory;
	unsigned int shared = 0, page;

	for (page = 0; page < m->pages; page++) {
		shared += !pagemap_has(m->at + bytes(page), PM_MMAP_EXCLUSIVE);
		shared += !pagemap_has(self->again + bytes(page), PM_MMAP_EXCLUSIVE);
	}
	EXPECT_EQ(2 * m->pages, shared);
	EXPECT_EQ(m->pages, smaps_pages(m->at, "Rss"));
	EXPECT_EQ(m->pages / 2, smaps_pages(m->at, "Pss"));
	EXPECT_EQ(m->pages / 2, smaps_pages(self->again, "Pss"));
	ASSERT_EQ(0, munmap(self->again, bytes(m->pages)));
	self->again = NULL;
	for (page = 0; page < m->pages; page++) {
		EXPECT_EQ(1, mappings(m->at + bytes(page)));
		EXPECT_TRUE(pagemap_has(m->at + bytes(page), PM_MMAP_EXCLUSIVE));
	}
	EXPECT_EQ(m->pages, smaps_pages(m->at, "Pss"));
	DID(shared, "entries that are not exclusive");
}

/*
 * move_pages() moves the folio if no other process maps it. The child first maps the file twice,
 * then once, then only one page of it, and then not at all.
 */
TEST_F(folio_twice, move_pages)
{
	struct memory *m = &self->memory;
	int alone = known(self), ask[2], answer[2], refused = 0;
	unsigned long frame = pfn_of(m->at);
	pid_t child;
	char byte;

	if (move_page(m->at, &(int){ !self->node }) == -ENODEV)
		SKIP(return, "needs two NUMA nodes");
	self->node = move_page(m->at, NULL);
	EXPECT_EQ(alone, pfn_of(m->at) != frame);
	touch(m->at, m->pages);
	touch(self->again, m->pages);
	ASSERT_EQ(0, pipe(ask));
	ASSERT_EQ(0, pipe(answer));
	child = fork();
	if (!child) {
		touch(m->at, m->pages);
		touch(self->again, m->pages);
		for (int step = 0; step < 4; step++) {
			if (step == 1)
				munmap(m->at, bytes(m->pages));
			if (step == 2) {
				munmap(self->again + bytes(1), bytes(m->pages - 1));
				read_byte(self->again);
			}
			if (step == 3)
				munmap(self->again, bytes(1));
			if (write(answer[1], "", 1) != 1 || read(ask[0], &byte, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	for (int step = 0; step < 4; step++) {
		int result;

		ASSERT_EQ(1, read(answer[0], &byte, 1));
		touch(m->at, m->pages);
		touch(self->again, m->pages);
		frame = pfn_of(m->at);
		result = move(self);
		if (step < 3 || !alone) {
			EXPECT_EQ(-EACCES, result) {
				TH_LOG("step %d", step);
			}
			EXPECT_EQ(frame, pfn_of(m->at));
			refused += result == -EACCES;
		} else {
			EXPECT_EQ(self->node, result);
			EXPECT_NE(frame, pfn_of(m->at));
		}
		ASSERT_EQ(1, write(ask[1], "", 1));
	}
	EXPECT_EQ(0, child_of(child));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	EXPECT_EQ(-1, foreign_page(self->again, 0, m->pages));
	DID(refused, "moves refused");
}

/*
 * MADV_PAGEOUT of one mapping makes a huge page leave both mappings, unless another process maps
 * it too. Both mappings bring back the same pages. If PTEs map the folio, the kernel leaves the
 * folio alone, because this mapping is not its only mapping.
 */
TEST_F(folio_twice, pageout)
{
	struct memory *m = &self->memory;
	bool alone = known(self) && variant->order == HUGE;
	unsigned int left = 0, page;
	int go[2];
	pid_t child;

	if (variant->kind == SHMEM && !have_swap())
		SKIP(return, "no swap");
	ASSERT_EQ(0, pipe(go));
	child = waiting_child(go, NULL, m);
	ASSERT_LT(0, child);
	ASSERT_TRUE(child_has(child, m->at, pattern(0)));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(m->pages, present(m, 0, m->pages));
	ASSERT_TRUE(end_child(child));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(alone ? 0 : m->pages, present(m, 0, m->pages));
	for (page = 0; page < m->pages; page++)
		left += pagemap_has(self->again + bytes(page), PM_PRESENT);
	EXPECT_EQ(alone ? 0 : m->pages, left);
	EXPECT_EQ(-1, foreign_page(self->again, 0, m->pages));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	for (page = 0; page < m->pages; page++)
		EXPECT_EQ(pfn_of(m->at + bytes(page)), pfn_of(self->again + bytes(page)));
	DID(m->pages, "pages that the kernel was asked to page out");
}

TEST_HARNESS_MAIN
