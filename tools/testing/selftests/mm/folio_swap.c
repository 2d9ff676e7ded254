// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes have the same large folios in swap.
 *
 * Proves: a fault maps only pages that the faulting process still has. If a
 * folio is in swap and a process drops a page of the folio, faults of this
 * process bring back the other pages. The dropped page reads as zeros in this
 * process, although another process still has the page. All this holds if the
 * folio is only in swap, and also if the other process has brought the folio
 * back into memory. The other process keeps its pages, and all swap slots are
 * free again at the end.
 *
 *	parent	| swap | swap | swap | swap |
 *	child	| swap | swap | none | swap |
 *
 * The swap device is a RAM disk. With such a device one fault may bring a whole
 * folio back.
 *
 * Does not prove: what swap entries contain (KUnit: swap_in).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_swap
 */
#include <sys/sysinfo.h>

#include "folio_owner.h"
#include "folio_state.h"

FIXTURE(folio_swap)
{
	struct memory memory;
	unsigned long free;	/* pages of swap */
};

FIXTURE_VARIANT(folio_swap)
{
	int order;	/* added to the order of a block */
};

FIXTURE_VARIANT_ADD(folio_swap, block)
{
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_swap, two_blocks)
{
	.order = 1,
};

/* How many pages of swap are free. */
static unsigned long free_swap(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : info.freeswap * info.mem_unit / psize();
}

FIXTURE_SETUP(folio_swap)
{
	int order = order_of(cont_ptes()) + variant->order;
	struct memory *m = &self->memory;
	const char *why = folio_settings(order);

	m->fd = -1;
	if (!why && !have_swap())
		why = "no swap";
	if (!why && !swaps_large())
		why = "the kernel splits a folio before it swaps the folio out";
	self->free = free_swap();
	if (!why)
		why = memory_map(m, ANON, order, 1);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	ASSERT_EQ(m->pages, swapped_out(m));
}

FIXTURE_TEARDOWN(folio_swap)
{
	memory_free(&self->memory);
}

/*
 * The child drops a page, reads all other pages, and then reads the dropped
 * page. Returns 0 if each page has the right content. An alarm kills the child
 * if a fault never ends.
 */
static int drop_and_read(const struct memory *m)
{
	unsigned int gone = m->pages / 2;

	alarm(20);
	if (madvise(m->at + bytes(gone), bytes(1), MADV_DONTNEED))
		return 2;
	for (unsigned int i = 1; i < m->pages; i++) {
		unsigned int page = (gone + i) % m->pages;

		if (!page_is(m->at + bytes(page), pattern(page)))
			return 1;
	}
	return !page_is(m->at + bytes(gone), 0);
}

/* Start a child that waits until the pipe is closed, and then drops a page. */
static pid_t dropping_child(int go[2], const struct memory *m)
{
	pid_t child;
	char byte;

	if (pipe(go))
		return -1;
	child = fork();
	if (child)
		return child;
	close(go[1]);
	_exit(read(go[0], &byte, 1) ? 3 : drop_and_read(m));
}

/* Let the child continue. Returns its exit status. */
static int let_go(int go[2], pid_t child)
{
	close(go[0]);
	close(go[1]);
	return child_of(child);
}

/*
 * Unmap the memory, and check that all its swap slots are free. Kernels before
 * 6.15 may keep free slots in a per-CPU cache, and count these slots as used.
 */
static void check_swap(struct __test_metadata *_metadata, FIXTURE_DATA(folio_swap) * self)
{
	memory_free(&self->memory);
	if (!access("/tests/list", F_OK) && !kernel_has("enable_swap_slots_cache"))
		EXPECT_EQ(self->free, free_swap());
}

/*
 * The folio is only in swap. The parent keeps one page of it, and the child
 * keeps all other pages. So each swap slot belongs to exactly one process. The
 * child reads all pages that it kept. The kernel must not bring back the whole
 * folio for such a read, because the fault would then never end. The parent
 * still has its page.
 */
TEST_F(folio_swap, one_page_elsewhere)
{
	struct memory *m = &self->memory;
	unsigned int pages = m->pages, kept = pages / 2, page;
	int go[2];
	pid_t child = dropping_child(go, m);

	ASSERT_LT(0, child);
	for (page = 0; page < pages; page++)
		if (page != kept)
			ASSERT_EQ(0, madvise(m->at + bytes(page), bytes(1), MADV_DONTNEED));
	EXPECT_EQ(0, let_go(go, child)) {
		TH_LOG("status 1: wrong content; 2, 3: set-up failed; 142: a fault never ended");
	}
	EXPECT_EQ(1, swapped_out(m));
	for (page = 0; page < pages; page++)
		EXPECT_TRUE(page_is(m->at + bytes(page), page == kept ? pattern(page) : 0));
	check_swap(_metadata, self);
	DID(pages - 1, "pages brought back for the child");
}

/*
 * The parent brings the whole folio back, while a child waits. Then the child
 * drops a page, and maps the other pages one by one. Each of these faults maps
 * one page, and frees the swap slot of this page. If two processes have a folio
 * in swap, Linux 6.12 brings the pages of the folio back one by one.
 */
TEST_F(folio_swap, whole_folio_elsewhere)
{
	struct memory *m = &self->memory;
	unsigned int pages = m->pages;
	int go[2];
	pid_t child = dropping_child(go, m);
	bool whole;

	ASSERT_LT(0, child);
	read_byte(m->at + bytes(pages / 2));
	whole = present(m, 0, pages) == pages && is_folio(m, 0);
	EXPECT_EQ(0, let_go(go, child)) {
		TH_LOG("status 1: wrong content; 2, 3: set-up failed");
	}
	EXPECT_EQ(-1, foreign_page(m->at, 0, pages));
	for (unsigned int page = 0; page < pages; page++)
		memset(m->at + bytes(page), pattern(page + 1), bytes(1));
	EXPECT_EQ(-1, foreign_page(m->at, 1, pages));
	check_swap(_metadata, self);
	if (!whole)
		SKIP(return, "this kernel swaps in a shared folio page by page");
	DID(pages - 1, "pages of the folio mapped by the child");
}

TEST_HARNESS_MAIN
