// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim unmaps a lazyfree folio, cannot free it, and restores its entries.
 *
 * Proves: if a page of a lazyfree folio is pinned, reclaim unmaps the folio but
 * cannot free it. Reclaim then restores each entry with its own write
 * permission and soft-dirty bit, not with those of the first entry in the
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

TEST_HARNESS_MAIN
