// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim of lazyfree memory that somebody still needs.
 *
 * Proves: MADV_FREE gives up the memory of the process that calls it, and not
 * the memory of its parent, which has the same pages (freed_by_child).
 *
 * Proves: if a page of a lazyfree folio is pinned, reclaim unmaps the folio but
 * cannot free it. Reclaim then restores each entry with its own write
 * permission and soft-dirty bit, not with the bits of the first entry in the
 * batch.
 *
 *	page		0   1   2   3   4   5 ...
 *	may write	    x       x       x		(other round: 0, 2, 4, ...)
 *
 * How: fork() makes all entries read-only. After the child has exited, the test
 * writes to every second page, which makes these pages writable again. Linux
 * 6.15 and later know that no other process maps the folio, and keep it whole.
 * Older kernels copy each page that is written to, and the case is skipped.
 *
 * Does not prove: that reclaim frees lazyfree memory (folio_advice does).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_lazyfree
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_owner.h"
#include "folio_state.h"

FIXTURE(folio_lazyfree)
{
	struct memory memory;
};

FIXTURE_SETUP(folio_lazyfree)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, ANON, order, 1);
	if (!why && !have_swap())
		why = "no swap: reclaim takes no page";
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_lazyfree)
{
	memory_free(&self->memory);
}

/*
 * [contpte 235] In a folio every second page is writable, and one page is
 * pinned. Reclaim unmaps the folio and restores its entries. After that, a
 * write to a writable page costs no fault. A write to a read-only page faults
 * and copies the page, since the folio is pinned. The case runs twice: the
 * first entry of the batch is writable in one round and read-only in the other.
 */
TEST_F(folio_lazyfree, pinned_keeps_permission)
{
	struct memory *m = &self->memory;
	int order = m->order;
	long before;

	for (unsigned int first = 0; first < 2; first++) {
		bool soft = softdirty_supported();
		unsigned long restored = 0;
		int go[2], fd;

		memory_free(m);
		ASSERT_EQ(NULL, memory_map(m, ANON, order, 1));
		ASSERT_EQ(0, pipe(go));
		ASSERT_TRUE(end_child(waiting_child(go, NULL, m)));
		if (soft)
			clear_softdirty();
		for (unsigned int page = first; page < m->pages; page += 2)
			m->at[bytes(page)] = pattern(page);
		if (!is_folio(m, 0))
			SKIP(return, "this kernel still copies pages after the child has exited");
		fd = pin(m->at + bytes(first), 1);
		if (fd < 0)
			SKIP(return, "no io_uring");
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
		ASSERT_EQ(m->pages, smaps_pages(m->at, "LazyFree"));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		ASSERT_TRUE(is_folio(m, 0));
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);
			unsigned long pfn = pfn_of(at);
			bool writable = page % 2 == first;

			if (soft)
				EXPECT_EQ(writable, pagemap_has(at, PM_SOFT_DIRTY)) {
					TH_LOG("page %u has the wrong soft-dirty bit", page);
				}
			EXPECT_TRUE(page_is(at, pattern(page)));
			faults_begin(&before);
			*at = pattern(page);
			EXPECT_EQ(!writable, faults() - before) {
				TH_LOG("page %u; every second page from page %u on is writable",
				       page, first);
			}
			EXPECT_EQ(writable, pfn_of(at) == pfn);
			restored++;
		}
		DID(restored, "entries checked after reclaim");
		close(fd);
		close(go[0]);
		close(go[1]);
	}
}

FIXTURE(freed_by_child)
{
	struct memory memory;
	int go[2];
};

/*
 * How the pages come to the parent, before the child gets them by fork():
 * @pinned: another child shared them, and a pin for reading copied them
 * @merged: KSM merged them, and MADV_UNMERGEABLE copied them
 * Otherwise the parent wrote to them.
 */
FIXTURE_VARIANT(freed_by_child)
{
	bool pinned;
	bool merged;
	bool large;
};

FIXTURE_VARIANT_ADD(freed_by_child, written)
{
};

FIXTURE_VARIANT_ADD(freed_by_child, written_folio)
{
	.large = true,
};

FIXTURE_VARIANT_ADD(freed_by_child, pinned)
{
	.pinned = true,
};

FIXTURE_VARIANT_ADD(freed_by_child, pinned_folio)
{
	.pinned = true,
	.large = true,
};

FIXTURE_VARIANT_ADD(freed_by_child, merged)
{
	.merged = true,
};

FIXTURE_SETUP(freed_by_child)
{
	int order = variant->large ? order_of(cont_ptes()) : 0;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, ANON, order, 2 * cont_ptes() >> order);
	if (!why && variant->merged && access(FOLIO_KSM "run", W_OK))
		why = "CONFIG_KSM=n";
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(freed_by_child)
{
	memory_free(&self->memory);
}

/* Copy pages without a write: a pin for reading, of pages that a child shares. */
static bool pin_shared(int go[2], struct memory *m)
{
	pid_t child = waiting_child(go, NULL, m);
	char *copy = malloc(bytes(m->pages));
	struct iovec to = { copy, bytes(m->pages) }, from = { m->at, bytes(m->pages) };
	bool right = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes(m->pages);

	free(copy);
	return end_child(child) && right;
}

/* Copy pages without a write: KSM merges them and gives them back. */
static bool merge_and_unmerge(struct memory *m)
{
	char *last = m->at + bytes(m->pages - 1);

	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(0), bytes(1));
	return ksm_merge(m, m->at, last, pattern(0)) &&
	       !madvise(m->at, bytes(m->pages), MADV_UNMERGEABLE);
}

/*
 * A child gives up the first half of the memory with MADV_FREE and ends. The
 * parent gives up the second half. Reclaim drops the second half, which proves
 * that it ran. The parent must find its content in the first half. 16 pages are
 * a whole large folio, which MADV_FREE does not split.
 *
 * Known issue 45: a page that was copied without a write has a clean entry, and
 * its folio is clean too. So the child makes it lazyfree, and reclaim drops it.
 */
TEST_F_TIMEOUT(freed_by_child, parent_keeps_content, 120)
{
	struct memory *m = &self->memory;
	unsigned int page, half = m->pages / 2, lost = 0, dropped = 0, copied = 0;
	unsigned long *before = calloc(m->pages, sizeof(*before));
	pid_t child;

	ASSERT_NE(NULL, before);
	for (page = 0; page < m->pages; page++)
		before[page] = pfn_of(m->at + bytes(page));
	if (variant->pinned)
		ASSERT_TRUE(pin_shared(self->go, m));
	if (variant->merged)
		ASSERT_TRUE(merge_and_unmerge(m));
	for (page = 0; page < half; page++)
		copied += pfn_of(m->at + bytes(page)) != before[page];
	free(before);
	child = fork();
	if (!child)
		_exit(!!madvise(m->at, bytes(half), MADV_FREE));
	ASSERT_EQ(0, child_of(child));
	ASSERT_EQ(0, madvise(m->at + bytes(half), bytes(half), MADV_FREE));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	for (page = 0; page < m->pages; page++) {
		int value = variant->merged ? pattern(0) : pattern(page);
		bool kept = page_is(m->at + bytes(page), value);

		EXPECT_TRUE(kept || page_is(m->at + bytes(page), 0)) {
			TH_LOG("content of page %u", page);
		}
		lost += page < half && !kept;
		dropped += page >= half && !kept;
	}
	DID(dropped, "pages dropped that the parent gave up");
	if (variant->pinned || variant->merged)
		DID(copied, "pages copied without a write");
	if (lost && lost == copied)
		KNOWN_ISSUE(45, "a child gives up pages of its parent");
	else
		EXPECT_EQ(0, lost);
	if (!lost && copied)
		STALE_ISSUE(45);
}

TEST_HARNESS_MAIN
